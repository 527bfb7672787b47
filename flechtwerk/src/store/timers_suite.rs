//! What every store must do about timers: find those that are due, in the order of their time, whatever was written, restored
//! or wiped.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::suite::{Open, id, put};
use crate::format::ChangelogRecord;
use crate::port::Store;
use crate::timers::{Clock, Pending, Summary, encode};

/// Event time and wall clock of the one timer of each that a key may have here.
type Timers = (Option<i64>, Option<i64>);

fn change(key: &str, (event, wall): Timers) -> ChangelogRecord {
    let timer = |name: &str, clock, due| Pending { name: name.to_owned(), clock, due };
    let event = event.map(|due| timer("e", Clock::EventTime, due));
    let timers: Vec<_> = event.into_iter().chain(wall.map(|due| timer("w", Clock::WallClock, due))).collect();
    let value = (!timers.is_empty()).then(|| {
        let mut value = Vec::new();
        encode(&timers, &mut value);
        value.into()
    });
    ChangelogRecord { key: [b"\x01", key.as_bytes()].concat().into(), value }
}

fn due(store: &dyn Store, clock: Clock, from: i64, most: usize) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    let mut visit = |due, key: &[u8]| {
        found.push((due, String::from_utf8_lossy(key).into_owned()));
        found.len() < most
    };
    store.due(clock, from, &mut visit).expect("the store can be read");
    found
}

fn pairs(expected: &[(i64, &str)]) -> Vec<(i64, String)> {
    expected.iter().map(|(due, key)| (*due, (*key).to_owned())).collect()
}

pub(super) fn contract(open: Open<'_>) {
    finds_the_earliest_of_each_key(open);
    forgets_what_was_taken_back(open);
    finds_what_was_restored(open);
    agrees_with_a_model(open);
}

fn finds_the_earliest_of_each_key(open: Open<'_>) {
    let store = open(&id("earliest", 0), false).unwrap();
    assert_eq!(due(&*store, Clock::EventTime, 0, 9), []);
    store
        .apply(
            &[
                put("a", "a state is no timer"),
                // Not even one whose bytes could be those of timers.
                ChangelogRecord { key: b"\0d"[..].into(), ..change("d", (Some(1), Some(1))) },
                change("a", (Some(300), Some(7))),
                change("b", (Some(5), None)),
                change("", (Some(i64::MAX), None)),
                change("c", (None, Some(5))),
            ],
            "s1",
        )
        .unwrap();
    assert_eq!(due(&*store, Clock::EventTime, 0, 9), pairs(&[(5, "b"), (300, "a"), (i64::MAX, "")]));
    assert_eq!(due(&*store, Clock::EventTime, 6, 1), pairs(&[(300, "a")]));
    assert_eq!(due(&*store, Clock::EventTime, 300, 1), pairs(&[(300, "a")]));
    assert_eq!(due(&*store, Clock::WallClock, 0, 9), pairs(&[(5, "c"), (7, "a")]));
    assert_eq!(store.size().timers, 5);
}

fn forgets_what_was_taken_back(open: Open<'_>) {
    let task = id("taken-back", 0);
    let store = open(&task, false).unwrap();
    store.apply(&[change("a", (Some(3), Some(4))), change("b", (Some(5), None))], "s1").unwrap();
    store.apply(&[change("a", (Some(9), None))], "s2").unwrap();
    assert_eq!(due(&*store, Clock::EventTime, 0, 9), pairs(&[(5, "b"), (9, "a")]));
    assert_eq!(due(&*store, Clock::WallClock, 0, 9), []);
    // Several changes of one key in a batch: the last counts.
    store
        .apply(&[change("a", (Some(1), None)), change("a", (None, None)), change("b", (Some(2), None))], "s3")
        .unwrap();
    assert_eq!(due(&*store, Clock::EventTime, 0, 9), pairs(&[(2, "b")]));
    assert_eq!(store.size().timers, 1);
    drop(store);
    let store = open(&task, false).unwrap();
    assert_eq!(due(&*store, Clock::EventTime, 0, 9), pairs(&[(2, "b")]));
    assert_eq!(store.size().timers, 1, "the number is found again as well");
    store.wipe().unwrap();
    assert_eq!((due(&*store, Clock::EventTime, 0, 9), store.size().timers), (vec![], 0));
}

fn finds_what_was_restored(open: Open<'_>) {
    let store = open(&id("restored-timers", 0), true).unwrap();
    store.restore(&[change("a", (Some(3), None)), change("b", (Some(2), Some(1)))]).unwrap();
    store.restore(&[change("a", (Some(8), None)), change("b", (None, None)), put("a", "1")]).unwrap();
    // Also where no stamp goes with it.
    store.restored(None).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    assert_eq!(due(&*store, Clock::EventTime, 0, 9), pairs(&[(8, "a")]));
    assert_eq!((due(&*store, Clock::WallClock, 0, 9), store.size().timers), (vec![], 1));
    assert!(!store.is_empty().unwrap());
    store.apply(&[change("a", (None, None)), ChangelogRecord { value: None, ..put("a", "") }], "s1").unwrap();
    assert_eq!(due(&*store, Clock::EventTime, 0, 9), []);
    assert!(store.is_empty().unwrap(), "nothing of the index is an entry");
}

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<(u8, Timers)>),
    /// One change of each key, as the runtime makes them: it says what lies there.
    ApplyOver(BTreeMap<u8, Timers>),
    Restore(Vec<(u8, Timers)>),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let due = || prop::option::weighted(0.6, 0i64..500);
    let changes = prop::collection::vec((0u8..20, (due(), due())), 0..15);
    let step = prop_oneof![
        4 => changes.clone().prop_map(Step::Apply),
        6 => changes.clone().prop_map(|changes| Step::ApplyOver(changes.into_iter().collect())),
        2 => changes.prop_map(Step::Restore),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..20)
}

fn agrees_with_a_model(open: Open<'_>) {
    let task = id("timers-model", 1);
    let open = std::cell::RefCell::new(open);
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&(steps(), 0i64..500), |(steps, from)| {
        let mut open = open.borrow_mut();
        let mut store = open(&task, true).unwrap();
        let mut model: BTreeMap<u8, Timers> = BTreeMap::new();
        for (n, step) in steps.into_iter().enumerate() {
            let known = model.clone();
            let mut made = |changes: Vec<(u8, Timers)>| -> Vec<ChangelogRecord> {
                model.extend(changes.iter().copied());
                changes.into_iter().map(|(key, timers)| change(&format!("k{key}"), timers)).collect()
            };
            match step {
                Step::Apply(changes) => store.apply(&made(changes), &format!("s{n}")).unwrap(),
                Step::ApplyOver(changes) => {
                    let before = |key| {
                        known.get(key).map(|timers| change("", *timers)).and_then(|change| change.value)
                    };
                    let before: Vec<_> =
                        changes.keys().map(|key| Summary::of(before(key).as_deref())).collect();
                    let changes = made(changes.into_iter().collect());
                    store.apply_over(&changes, &before, &format!("s{n}")).unwrap();
                }
                Step::Restore(changes) => {
                    store.restore(&made(changes)).unwrap();
                    store.restored(Some(&format!("s{n}"))).unwrap();
                }
                Step::Reopen => {
                    drop(store);
                    store = open(&task, false).unwrap();
                }
            }
            for clock in Clock::ALL {
                let of = |timers: &Timers| if clock == Clock::EventTime { timers.0 } else { timers.1 };
                let mut expected: Vec<_> = model
                    .iter()
                    .filter_map(|(key, timers)| of(timers).map(|due| (due, format!("k{key}"))))
                    .filter(|(due, _)| *due >= from)
                    .collect();
                expected.sort();
                prop_assert_eq!(due(&*store, clock, from, usize::MAX), expected);
            }
            let count =
                model.values().map(|(event, wall)| event.iter().chain(wall).count() as u64).sum::<u64>();
            prop_assert_eq!(store.size().timers, count);
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
