//! Timers of one key, as a stage sees them.

use super::*;

fn by(event_time: i64, wall_clock: i64) -> DueBy {
    DueBy { event_time: Some(event_time), wall_clock: Some(wall_clock) }
}

fn taken(timers: &mut Timers, by: DueBy) -> Vec<(String, i64)> {
    std::iter::from_fn(|| timers.take_due(by)).map(|timer| (timer.name, timer.due)).collect()
}

fn changed(timers: &Timers, stored: Option<&[u8]>) -> StateChange {
    timers.change(stored, &mut Vec::new())
}

fn fault(set: impl FnOnce(&mut Timers)) -> String {
    let mut timers = Timers::default();
    set(&mut timers);
    let (kind, error) = timers.check().unwrap_err();
    assert!(matches!(kind, FailureKind::SetTimer), "{kind:?}");
    error.to_string()
}

#[test]
fn set_again_moves_and_cancel_takes_back() {
    let mut timers = Timers::default();
    timers.set("a", 5);
    timers.set_wall_clock("b", 7);
    timers.set("a", 9);
    assert_eq!(timers.due("a"), Some(9));
    assert_eq!(timers.names().collect::<Vec<_>>(), ["a", "b"]);
    assert!(timers.cancel("b"));
    assert!(!timers.cancel("b"));
    assert_eq!(timers.due("b"), None);
    // By another clock it is the same timer.
    timers.set_wall_clock("a", 3);
    assert_eq!(taken(&mut timers, DueBy { event_time: Some(100), wall_clock: None }), []);
    assert_eq!(taken(&mut timers, by(0, 3)), [("a".to_owned(), 3)]);
}

#[test]
fn what_is_due_comes_in_the_order_of_its_time() {
    let mut timers = Timers::default();
    for (name, due) in [("late", 30), ("b", 10), ("a", 10), ("early", 5)] {
        timers.set(name, due);
    }
    timers.set_wall_clock("wall", 1);
    let due = taken(&mut timers, DueBy { event_time: Some(10), wall_clock: None });
    assert_eq!(due, [("early".to_owned(), 5), ("a".to_owned(), 10), ("b".to_owned(), 10)]);
    assert_eq!(timers.names().collect::<Vec<_>>(), ["late", "wall"]);
    assert_eq!(taken(&mut timers, DueBy::default()), []);
}

#[test]
fn only_other_bytes_are_a_change() {
    let mut timers = Timers::default();
    assert_eq!(changed(&timers, None), StateChange::Unchanged);
    timers.set("a", 5);
    let StateChange::Set(stored) = changed(&timers, None) else { panic!("nothing set") };

    let mut timers = Timers::load(Some(&stored), None, 0).unwrap();
    assert_eq!(timers.due("a"), Some(5));
    assert_eq!(changed(&timers, Some(&stored)), StateChange::Unchanged);
    timers.set("a", 6);
    timers.set("a", 5);
    assert_eq!(changed(&timers, Some(&stored)), StateChange::Unchanged);
    timers.cancel("a");
    assert_eq!(changed(&timers, Some(&stored)), StateChange::Deleted);
    assert_eq!(changed(&timers, None), StateChange::Unchanged);
}

#[test]
fn times_far_off_are_refused() {
    assert!(fault(|timers| timers.set("a", -1)).contains("before 1970"));
    assert!(fault(|timers| timers.set_wall_clock("a", i64::MAX)).contains("after the year 9999"));
    assert!(fault(|timers| timers.set("a", LATEST + 1)).contains("not in micro- or nanoseconds"));
    let mut timers = Timers::default();
    timers.set("first", 0);
    timers.set("last", LATEST);
    assert!(timers.check().is_ok());
}

#[test]
fn names_and_numbers_have_limits() {
    assert!(fault(|timers| timers.set("", 1)).contains("empty"));
    assert!(fault(|timers| timers.set(&"x".repeat(LONGEST_NAME + 1), 1)).contains("256 bytes"));
    let all = |timers: &mut Timers| (0..MOST).for_each(|n| timers.set(&n.to_string(), 1));
    let error = fault(|timers| {
        all(timers);
        timers.set("7", 2);
        timers.set("one more", 1);
    });
    assert!(error.contains("one key has 1000 timers"), "{error}");
    let mut timers = Timers::default();
    all(&mut timers);
    timers.set(&"x".repeat(3), 1);
    assert!(timers.check().is_err());
}

#[test]
fn what_is_no_list_of_timers_is_refused() {
    let (kind, error) = Timers::load(Some(b"\x02"), None, 0).unwrap_err();
    assert!(matches!(kind, FailureKind::StoredTimers));
    assert!(error.to_string().contains("version 2"), "{error}");
}

#[test]
fn debug_shows_no_payload() {
    let timer = Timer::<crate::codec::Utf8>::new("secret".into(), "close", 7);
    assert_eq!(format!("{timer:?}"), "Timer { name: \"close\", due: 7, clock: EventTime, .. }");
    let mut timers = Timers::default();
    timers.set("close", 7);
    assert_eq!(format!("{timers:?}"), "Timers(1 pending)");
}

#[test]
fn a_name_may_be_as_long_as_the_limit() {
    let name = "x".repeat(LONGEST_NAME);
    let mut timers = Timers::default();
    timers.set(&name, 1);
    assert!(timers.check().is_ok());
    let StateChange::Set(stored) = changed(&timers, None) else { panic!("nothing set") };
    assert_eq!(Timers::load(Some(&stored), None, 0).unwrap().due(&name), Some(1));
}

#[test]
fn times_are_those_of_the_round() {
    let timers = Timers::at(Some(7), 9);
    assert_eq!((timers.stream_time(), timers.now()), (Some(7), 9));
    let timers = Timers::load(None, None, 11).unwrap();
    assert_eq!((timers.stream_time(), timers.now()), (None, 11));
    let this_millennium = 946_684_800_000..LATEST;
    assert!(this_millennium.contains(&Timers::default().now()), "without a round they are the machine's");
}

#[test]
fn a_timer_says_which_clock_it_goes_by() {
    let timer = Timer::<crate::codec::Utf8>::new("ann".into(), "close", 7);
    assert_eq!(timer.clock, Clock::EventTime);
    assert_eq!(timer.with_clock(Clock::WallClock).clock, Clock::WallClock);
    assert_eq!(Clock::ALL.map(Clock::name), ["event time", "wall clock"]);
}
