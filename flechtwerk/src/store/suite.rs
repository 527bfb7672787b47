//! What every store must do, written once and run over each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::compact::CompactBytes;
use crate::format::ChangelogRecord;
use crate::port::{Store, StoreError, StoreId};

/// Opens a store of the kind under test. All calls share one state folder, or one process.
pub(super) type Open<'a> = &'a mut dyn FnMut(&StoreId, bool) -> Result<Arc<dyn Store>, StoreError>;

pub(super) fn id(application_id: &str, partition: i32) -> StoreId {
    StoreId { application_id: application_id.to_owned(), partition }
}

/// A put of an entry of kind state.
pub(super) fn put(key: &str, value: &str) -> ChangelogRecord {
    ChangelogRecord { key: state_key(key).into(), value: Some(value.as_bytes().into()) }
}

fn delete(key: &str) -> ChangelogRecord {
    ChangelogRecord { key: state_key(key).into(), value: None }
}

fn state_key(key: &str) -> Vec<u8> {
    [b"\0", key.as_bytes()].concat()
}

/// Looks one key up.
pub(super) fn get(store: &dyn Store, key: &str) -> Option<String> {
    try_get(store, key).expect("the store can be read")
}

pub(super) fn try_get(store: &dyn Store, key: &str) -> Result<Option<String>, StoreError> {
    let mut found = Vec::new();
    store.get_many(&[&state_key(key)], &mut found)?;
    assert_eq!(found.len(), 1);
    Ok(found[0].as_ref().map(|value| String::from_utf8(value.to_vec()).expect("tests write text")))
}

fn entries(store: &dyn Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut seen = Vec::new();
    store
        .for_each(&mut |key, value| seen.push((key.to_vec(), value.to_vec())))
        .expect("the store can be read");
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "for_each goes in key order");
    seen.into_iter().collect()
}

/// The whole contract of [`Store`] and [`StoreFactory`](crate::port::StoreFactory).
pub(super) fn contract(open: Open<'_>) {
    starts_empty(open);
    applies_batches(open);
    finds_many_in_order(open);
    has_no_stamp_while_it_restores(open);
    wipes(open);
    is_found_again(open);
    belongs_to_one_task(open);
    shows_batches_whole(open);
    agrees_with_a_map(open);
    super::timers_suite::contract(open);
}

fn starts_empty(open: Open<'_>) {
    let store = open(&id("starts-empty", 0), false).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    assert!(store.is_empty().unwrap());
    assert_eq!(store.size().entries, 0);
    assert_eq!(get(&*store, "a"), None);
    assert!(entries(&*store).is_empty());
    let mut found = Vec::new();
    store.get_many(&[], &mut found).unwrap();
    assert!(found.is_empty());
}

fn applies_batches(open: Open<'_>) {
    let store = open(&id("applies", 0), false).unwrap();
    store.apply(&[put("a", "1"), put("b", "2"), put("", "empty key"), put("e", "")], "s1").unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s1"));
    assert!(!store.is_empty().unwrap());
    assert_eq!(get(&*store, "a").as_deref(), Some("1"));
    assert_eq!(get(&*store, "").as_deref(), Some("empty key"));
    assert_eq!(get(&*store, "e").as_deref(), Some(""), "an empty value is a value");
    assert_eq!(store.size().entries, 4);

    // Later changes of one batch win; deleting what isn't there is nothing.
    store
        .apply(
            &[put("a", "longer"), put("a", "9"), delete("b"), put("c", "x"), delete("c"), delete("d")],
            "s2",
        )
        .unwrap();
    assert_eq!(get(&*store, "a").as_deref(), Some("9"));
    for gone in ["b", "c", "d"] {
        assert_eq!(get(&*store, gone), None);
    }

    // A batch may change nothing but the stamp.
    store.apply(&[], "s3").unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s3"));
    store.apply(&[delete("a"), delete(""), delete("e")], "s4").unwrap();
    assert!(store.is_empty().unwrap(), "a stamp is no entry");
    store.flush().unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s4"));
}

fn finds_many_in_order(open: Open<'_>) {
    let store = open(&id("finds-many", 0), false).unwrap();
    let changes: Vec<_> = (0..1000).map(|n| put(&format!("key-{n}"), &"v".repeat(n))).collect();
    store.apply(&changes, "s").unwrap();
    let wanted: Vec<_> = [999, 3, 1000, 3, 0, 500, 1001, 1].map(|n| state_key(&format!("key-{n}"))).into();
    let wanted: Vec<_> = wanted.iter().map(Vec::as_slice).collect();
    let mut found = vec![Some(CompactBytes::from(&b"was there before"[..]))];
    store.get_many(&wanted, &mut found).unwrap();
    let lengths: Vec<_> = found.iter().map(|value| value.as_ref().map(|value| value.len())).collect();
    assert_eq!(lengths, [Some(16), Some(999), Some(3), None, Some(3), Some(0), Some(500), None, Some(1)]);
    assert!(store.size().bytes > 0);
}

fn has_no_stamp_while_it_restores(open: Open<'_>) {
    let task = id("restores", 0);
    let store = open(&task, true).unwrap();
    store.restore(&[put("a", "1"), put("b", "1"), put("c", "1")]).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    store.restore(&[put("a", "2"), delete("b"), delete("never")]).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    drop(store);
    let store = open(&task, false).unwrap();
    assert_eq!(store.stamp().unwrap(), None, "half restored, it is nobody's");
    drop(store);

    let store = open(&task, true).unwrap();
    assert!(store.is_empty().unwrap());
    store.restore(&[put("a", "1"), put("b", "1"), put("a", "3"), delete("b")]).unwrap();
    store.restored(Some("s7")).unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s7"));
    assert_eq!((get(&*store, "a").as_deref(), get(&*store, "b")), (Some("3"), None));

    // Restoring into a store that has a stamp takes it away first.
    store.restore(&[put("z", "1")]).unwrap();
    assert_eq!(store.stamp().unwrap(), None);

    // A task whose changelog is empty ends its restore as well.
    let store = open(&id("restores", 1), true).unwrap();
    store.restored(Some("s1")).unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s1"));
    assert!(store.is_empty().unwrap());
}

fn wipes(open: Open<'_>) {
    let task = id("wipes", 0);
    let store = open(&task, false).unwrap();
    store.apply(&[put("a", "1")], "s1").unwrap();
    store.wipe().unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    assert!(store.is_empty().unwrap());
    assert_eq!(get(&*store, "a"), None);
    store.wipe().unwrap();
    store.apply(&[put("b", "1")], "s2").unwrap();
    drop(store);
    let store = open(&task, false).unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s2"), "what was written after a wipe stays");
    assert_eq!((get(&*store, "a"), get(&*store, "b").as_deref()), (None, Some("1")));
    drop(store);
    let store = open(&task, true).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    assert!(store.is_empty().unwrap());
}

fn is_found_again(open: Open<'_>) {
    let task = id("found.again_1", 7);
    let store = open(&task, false).unwrap();
    store.apply(&[put("a", "1"), put("b", "1")], "s1").unwrap();
    store.apply(&[put("a", "2"), delete("b")], "s2").unwrap();
    store.flush().unwrap();
    drop(store);
    let store = open(&task, false).unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s2"));
    store.apply(&[put("c", "1")], "s3").unwrap();
    drop(store);
    // Not flushed: the end of a process that did not stop cleanly.
    let store = open(&task, false).unwrap();
    assert_eq!(store.stamp().unwrap().as_deref(), Some("s3"));
    assert_eq!(
        (get(&*store, "a").as_deref(), get(&*store, "b"), get(&*store, "c").as_deref()),
        (Some("2"), None, Some("1"))
    );
}

fn belongs_to_one_task(open: Open<'_>) {
    let tasks = [
        id("tasks", 0),
        id("tasks", 1),
        id("tasks", 10),
        id("Tasks-2", 0),
        id("tasks.2", 0),
        id("tasks_2", 0),
    ];
    let stores: Vec<_> = tasks.iter().map(|task| open(task, false).unwrap()).collect();
    for (n, store) in stores.iter().enumerate() {
        assert_eq!(get(&**store, "a"), None);
        store.apply(&[put("a", &n.to_string())], &format!("s{n}")).unwrap();
    }
    stores[1].wipe().unwrap();
    for (n, store) in stores.iter().enumerate().filter(|(n, _)| *n != 1) {
        assert_eq!(get(&**store, "a"), Some(n.to_string()));
        assert_eq!(store.stamp().unwrap(), Some(format!("s{n}")));
    }
}

/// A reader beside the writer never sees half a batch.
fn shows_batches_whole(open: Open<'_>) {
    let store = open(&id("whole", 0), false).unwrap();
    let keys: Vec<_> = (0..50).map(|n| state_key(&format!("{n}"))).collect();
    let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..500 {
                let changes: Vec<_> = (0..50).map(|n| put(&n.to_string(), &round.to_string())).collect();
                store.apply(&changes, &format!("s{round}")).unwrap();
            }
            done.store(true, Ordering::Release);
        });
        let mut seen = 0;
        while !done.load(Ordering::Acquire) || seen == 0 {
            let mut found = Vec::new();
            store.get_many(&keys, &mut found).unwrap();
            assert!(found.iter().all(|value| *value == found[0]), "half a batch: {found:?}");
            seen += 1;
        }
    });
    assert_eq!(get(&*store, "49").as_deref(), Some("499"));
}

#[derive(Clone, Debug)]
enum Step {
    Apply(Vec<(u8, Option<Vec<u8>>)>),
    Restore(Vec<(u8, Option<Vec<u8>>)>),
    Restored,
    Wipe,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = prop::option::weighted(0.7, prop::collection::vec(any::<u8>(), 0..20));
    let changes = prop::collection::vec((0u8..20, value), 0..12);
    let step = prop_oneof![
        8 => changes.clone().prop_map(Step::Apply),
        3 => changes.prop_map(Step::Restore),
        2 => Just(Step::Restored),
        1 => Just(Step::Wipe),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..25)
}

fn agrees_with_a_map(open: Open<'_>) {
    let task = id("model", 3);
    let open = std::cell::RefCell::new(open);
    let config = Config { cases: 16, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&steps(), |steps| {
        let mut open = open.borrow_mut();
        let mut store = open(&task, true).unwrap();
        let mut model = BTreeMap::new();
        let mut stamp = None;
        for (n, step) in steps.into_iter().enumerate() {
            let mut change = |changes: Vec<(u8, Option<Vec<u8>>)>| -> Vec<ChangelogRecord> {
                let changes = changes.into_iter().map(|(key, value)| {
                    let key = vec![0, key];
                    match &value {
                        Some(value) => model.insert(key.clone(), value.clone()),
                        None => model.remove(&key),
                    };
                    ChangelogRecord { key: key.into(), value: value.map(Into::into) }
                });
                changes.collect()
            };
            match step {
                Step::Apply(changes) => {
                    stamp = Some(format!("s{n}"));
                    store.apply(&change(changes), &format!("s{n}")).unwrap();
                }
                Step::Restore(changes) => {
                    stamp = None;
                    store.restore(&change(changes)).unwrap();
                }
                Step::Restored => {
                    stamp = Some(format!("s{n}"));
                    store.restored(Some(&format!("s{n}"))).unwrap();
                }
                Step::Wipe => {
                    (stamp, model) = (None, BTreeMap::new());
                    store.wipe().unwrap();
                }
                Step::Reopen => {
                    drop(store);
                    store = open(&task, false).unwrap();
                    // What an unclean end leaves of a restore is not defined; only that it has no stamp.
                    if stamp.is_none() {
                        prop_assert_eq!(store.stamp().unwrap(), None);
                        store.wipe().unwrap();
                        model = BTreeMap::new();
                    }
                }
            }
            prop_assert_eq!(store.stamp().unwrap(), stamp.clone());
            prop_assert_eq!(entries(&*store), model.clone());
            prop_assert_eq!(store.is_empty().unwrap(), model.is_empty());
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
