//! What a stage makes of timers: when they fire, in which order, and what is refused. In the in-memory driver.
#![allow(missing_docs)]

use std::collections::BTreeMap;

use flechtwerk::prelude::*;
use flechtwerk::testing::Driver;
use flechtwerk::{Clock, OutRecord};
use proptest::prelude::*;

#[topic("commands", key = Utf8, value = Utf8)]
pub struct Commands;
#[topic("log", key = Utf8, value = Utf8)]
pub struct Log;

/// Does what the record says, and logs it: `set NAME DUE`, `wall NAME DUE`, `in NAME MILLIS` by the wall clock, `cancel NAME`.
#[transformer(inputs = [Commands], state = u64, on_timer = fire)]
pub async fn obey(
    command: Record<Commands>,
    count: &mut State<u64>,
    timers: &mut Timers,
    out: &mut Out<Log>,
) -> flechtwerk::Result {
    *count.get_or_insert_default() += 1;
    out.send(command.key, format!("record {}", command.value));
    run(&command.value, timers)
}

fn run(command: &str, timers: &mut Timers) -> flechtwerk::Result {
    match command.split(' ').collect::<Vec<_>>()[..] {
        ["set", name, due] => timers.set(name, due.parse()?),
        ["wall", name, due] => timers.set_wall_clock(name, due.parse()?),
        ["in", name, millis] => timers.set_wall_clock(name, timers.now() + millis.parse::<i64>()?),
        ["cancel", name] => drop(timers.cancel(name)),
        _ => {}
    }
    Ok(())
}

/// Logs the timer. Some names do more.
async fn fire(
    timer: Timer<Utf8>,
    count: &mut State<u64>,
    timers: &mut Timers,
    out: &mut Out<Log>,
) -> flechtwerk::Result {
    let count = count.unwrap_or_default();
    out.send(timer.key, format!("{} due {} count {count}", timer.name, timer.due));
    match &*timer.name {
        "again" => timers.set("again", timer.due),
        "tick" => timers.set("tick", timer.due + 10),
        "last" => timers.set("first", 1),
        "fail" => return Err("as asked".into()),
        "panic" => panic!("as asked"),
        "bad" => timers.set("bad", -7),
        _ => {}
    }
    Ok(())
}

/// Timers without state, under keys of its own.
#[transformer(inputs = [Commands], key = initial, on_timer = gone)]
pub async fn by_initial(
    command: Record<Commands>,
    timers: &mut Timers,
    _: &mut Out<Log>,
) -> flechtwerk::Result {
    timers.set("gone", command.timestamp.unwrap_or_default() + 100);
    Ok(())
}

fn initial(command: &Record<Commands>) -> Vec<u8> {
    command.key.bytes().take(1).collect()
}

async fn gone(timer: Timer<Bytes>, _: &mut Timers, out: &mut Out<Log>) -> flechtwerk::Result {
    out.send(String::from_utf8_lossy(&timer.key).into_owned(), timer.name);
    Ok(())
}

/// The same with keys that are read as something which they are not.
#[transformer(inputs = [Commands], key = initial, on_timer = as_number, name = "misread")]
pub async fn misread(_: Record<Commands>, timers: &mut Timers) -> flechtwerk::Result {
    timers.set("now", 0);
    Ok(())
}

async fn as_number(_: Timer<BigEndian<u64>>, _: &mut Timers) -> flechtwerk::Result {
    Ok(())
}

flechtwerk::pipeline!(OBEY = "obey": [obey]);
flechtwerk::pipeline!(INITIALS = "initials": [by_initial]);
flechtwerk::pipeline!(MISREAD = "misread": [misread]);

fn driver() -> Driver {
    Driver::new(&OBEY).partitions(1)
}

fn send(driver: &mut Driver, key: &str, command: &str, timestamp: i64) {
    driver.send_record(OutRecord::<Commands>::new(key.into(), command.into()).timestamp(timestamp));
}

fn log(driver: &mut Driver) -> Vec<String> {
    driver.run_blocking().unwrap();
    driver.read::<Log>().into_iter().map(|record| format!("{} {}", record.key, record.value)).collect()
}

fn failure(commands: &[&str]) -> String {
    let mut driver = driver();
    for command in commands {
        send(&mut driver, "a", command, 0);
    }
    driver.run_blocking().unwrap_err().to_string()
}

#[test]
fn a_timer_fires_before_the_next_record_of_its_key() {
    let mut driver = driver();
    send(&mut driver, "a", "set x 50", 10);
    send(&mut driver, "a", "one", 49);
    send(&mut driver, "a", "two", 50);
    assert_eq!(log(&mut driver), ["a record set x 50", "a record one", "a x due 50 count 2", "a record two"]);
    assert_eq!(driver.timers("obey", "a"), []);
}

#[test]
fn those_of_other_keys_fire_at_the_end_of_the_round() {
    let mut driver = driver();
    send(&mut driver, "a", "set x 50", 10);
    send(&mut driver, "b", "set x 60", 10);
    assert_eq!(log(&mut driver), ["a record set x 50", "b record set x 60"]);
    send(&mut driver, "c", "one", 55);
    assert_eq!(log(&mut driver), ["c record one", "a x due 50 count 1"]);
    driver.advance_stream_time(59);
    assert!(log(&mut driver).is_empty());
    driver.advance_stream_time(60);
    assert_eq!(log(&mut driver), ["b x due 60 count 1"]);
}

#[test]
fn due_order_and_then_the_order_of_names() {
    let mut driver = driver();
    for command in ["set late 40", "set b 20", "set a 20", "set early 5", "set never 41"] {
        send(&mut driver, "a", command, 0);
    }
    log(&mut driver);
    send(&mut driver, "a", "one", 40);
    let log = log(&mut driver);
    assert_eq!(
        log,
        [
            "a early due 5 count 5",
            "a a due 20 count 5",
            "a b due 20 count 5",
            "a late due 40 count 5",
            "a record one"
        ]
    );
}

#[test]
fn setting_again_moves_and_cancelling_takes_back() {
    let mut driver = driver();
    for command in ["set x 20", "set y 20", "set x 90", "cancel y"] {
        send(&mut driver, "a", command, 0);
    }
    log(&mut driver);
    assert_eq!(driver.timers("obey", "a"), [("x".to_owned(), Clock::EventTime, 90)]);
    driver.advance_stream_time(89);
    assert!(log(&mut driver).is_empty());
    driver.advance_stream_time(90);
    assert_eq!(log(&mut driver), ["a x due 90 count 4"]);
    driver.advance_stream_time(900);
    assert!(log(&mut driver).is_empty(), "a timer fires once");
}

#[test]
fn one_for_the_past_fires_at_once() {
    let mut driver = driver();
    send(&mut driver, "a", "one", 100);
    send(&mut driver, "a", "set x 5", 100);
    send(&mut driver, "b", "set last 90", 20);
    assert_eq!(
        log(&mut driver),
        [
            "a record one",
            "a record set x 5",
            "a x due 5 count 2",
            "b record set last 90",
            "b last due 90 count 1",
            "b first due 1 count 1"
        ]
    );
}

#[test]
fn what_is_due_already_fires_before_any_record() {
    let mut driver = driver();
    send(&mut driver, "a", "set x 50", 10);
    log(&mut driver);
    driver.advance_stream_time(50);
    send(&mut driver, "a", "set x 40", 20);
    assert_eq!(log(&mut driver), ["a x due 50 count 1", "a record set x 40", "a x due 40 count 2"]);
}

#[test]
fn a_late_record_does_not_turn_stream_time_back() {
    let mut driver = driver();
    send(&mut driver, "a", "one", 100);
    log(&mut driver);
    // The record itself is of a time before the timer's, the task's time is not.
    send(&mut driver, "a", "set x 60", 50);
    send(&mut driver, "a", "two", 55);
    assert_eq!(log(&mut driver), ["a record set x 60", "a record two", "a x due 60 count 3"]);
    let record = driver.records::<Log>().pop().unwrap();
    assert_eq!(record.timestamp, Some(60), "what a timer sends has the time that it was set for");
}

#[test]
fn the_wall_clock_goes_by_itself() {
    let mut driver = driver();
    driver.advance_wall_clock(1_000);
    send(&mut driver, "a", "in x 500", 10);
    send(&mut driver, "a", "wall y 900", 10);
    // Also one that has passed waits for a round of the wall clock, and needs no record for it.
    assert_eq!(log(&mut driver), ["a record in x 500", "a record wall y 900", "a y due 900 count 2"]);
    driver.advance_stream_time(10_000);
    assert!(log(&mut driver).is_empty());
    driver.advance_wall_clock(1_500);
    assert_eq!(log(&mut driver), ["a x due 1500 count 2"]);
}

#[test]
fn a_timer_that_ticks_catches_up() {
    let mut driver = driver();
    send(&mut driver, "a", "set tick 10", 0);
    send(&mut driver, "a", "one", 35);
    let log = log(&mut driver);
    assert_eq!(
        log[1..],
        ["a tick due 10 count 1", "a tick due 20 count 1", "a tick due 30 count 1", "a record one"]
    );
    assert_eq!(driver.timers("obey", "a"), [("tick".to_owned(), Clock::EventTime, 40)]);
}

#[test]
fn timers_that_fire_for_ever_are_an_error() {
    let error = failure(&["set again 0"]);
    assert!(
        error.starts_with(
            "stage `obey` failed at timer \"again\", due at 0 ms of event time: its timers fire for ever"
        ),
        "{error}"
    );
    assert!(error.contains("set them for later than `timers.stream_time()`"), "{error}");
}

#[test]
fn a_failure_names_the_timer() {
    assert_eq!(
        failure(&["set fail 0"]),
        "stage `obey` failed at timer \"fail\", due at 0 ms of event time: the function returned an error: as asked"
    );
    assert!(
        failure(&["wall panic 0"])
            .starts_with("stage `obey` failed at timer \"panic\", due at 0 ms of wall clock")
    );
    let error = failure(&["set bad 0"]);
    assert!(error.contains("at timer \"bad\"") && error.contains("was set for -7, before 1970"), "{error}");
    let error = failure(&["set x 99999999999999999"]);
    assert!(error.contains("commands/0 offset 0") && error.contains("after the year 9999"), "{error}");
}

#[test]
fn nothing_of_a_round_that_failed_counts() {
    let mut driver = driver();
    send(&mut driver, "a", "set x 50", 10);
    log(&mut driver);
    send(&mut driver, "a", "set fail 55", 60);
    for _ in 0..2 {
        assert!(driver.run_blocking().is_err());
        assert_eq!(driver.timers("obey", "a"), [("x".to_owned(), Clock::EventTime, 50)]);
        assert!(driver.read::<Log>().is_empty());
    }
}

#[test]
fn without_state_and_under_keys_of_its_own() {
    let mut driver = Driver::new(&INITIALS).partitions(1);
    send(&mut driver, "ann", "one", 10);
    send(&mut driver, "abe", "two", 20);
    send(&mut driver, "bob", "three", 30);
    driver.run_blocking().unwrap();
    assert_eq!(driver.timers("by_initial", "a"), [("gone".to_owned(), Clock::EventTime, 120)]);
    driver.advance_stream_time(200);
    driver.run_blocking().unwrap();
    let log: Vec<_> = driver.read::<Log>().into_iter().map(|record| record.key).collect();
    assert_eq!(log, ["a", "b"]);
}

#[test]
fn a_key_that_the_timer_can_not_read_is_an_error() {
    let mut driver = Driver::new(&MISREAD);
    send(&mut driver, "ann", "one", 10);
    let error = driver.run_blocking().unwrap_err().to_string();
    assert!(error.contains("timer \"now\"") && error.contains("the state key can't be decoded"), "{error}");
}

/// What a model expects of one key: its timers, by name.
#[derive(Default)]
struct Model {
    keys: BTreeMap<String, BTreeMap<String, i64>>,
    stream_time: i64,
    log: Vec<String>,
}

impl Model {
    fn fire(&mut self, key: &str, by: i64) {
        let timers = self.keys.entry(key.to_owned()).or_default();
        while let Some((name, due)) = timers
            .iter()
            .map(|(name, due)| (name.clone(), *due))
            .filter(|(_, due)| *due <= by)
            .min_by_key(|(_, due)| *due)
        {
            timers.remove(&name);
            self.log.push(format!("{key} {name} {due}"));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(u8, u8, i64, i64),
    Cancel(u8, u8, i64),
    Run,
    Advance(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..4, 0u8..3, 0i64..200, 0i64..150).prop_map(|(key, name, due, at)| Step::Set(key, name, due, at)),
        2 => (0u8..4, 0u8..3, 0i64..150).prop_map(|(key, name, at)| Step::Cancel(key, name, at)),
        3 => Just(Step::Run),
        1 => (0i64..200).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Of each key: the same firings in the same order as a model that does one record after another, whatever is taken
    /// into one round.
    #[test]
    fn each_key_sees_what_a_model_says(steps in steps()) {
        let mut driver = driver();
        let mut waiting: Vec<(String, String, i64)> = vec![];
        let mut model = Model::default();
        let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for step in steps.into_iter().chain([Step::Run]) {
            match step {
                Step::Set(key, name, due, at) => waiting.push((format!("k{key}"), format!("set n{name} {due}"), at)),
                Step::Cancel(key, name, at) => waiting.push((format!("k{key}"), format!("cancel n{name}"), at)),
                Step::Advance(to) => {
                    driver.advance_stream_time(to);
                    model.stream_time = model.stream_time.max(to);
                    for key in model.keys.keys().cloned().collect::<Vec<_>>() {
                        model.fire(&key, model.stream_time);
                    }
                }
                Step::Run => {
                    for (key, command, at) in &waiting {
                        send(&mut driver, key, command, *at);
                    }
                    for record in { driver.run_blocking().unwrap(); driver.read::<Log>() } {
                        if let [name, "due", due, ..] = record.value.split(' ').collect::<Vec<_>>()[..] {
                            seen.entry(record.key.clone()).or_default().push(format!("{} {name} {due}", record.key));
                        }
                    }
                    for (key, command, at) in std::mem::take(&mut waiting) {
                        model.fire(&key, at);
                        let timers = model.keys.entry(key.clone()).or_default();
                        match command.split(' ').collect::<Vec<_>>()[..] {
                            ["set", name, due] => drop(timers.insert(name.to_owned(), due.parse().unwrap())),
                            [_, name] => drop(timers.remove(name)),
                            _ => unreachable!(),
                        }
                        model.stream_time = model.stream_time.max(at);
                    }
                    for key in model.keys.keys().cloned().collect::<Vec<_>>() {
                        model.fire(&key, model.stream_time);
                    }
                }
            }
        }
        let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in model.log {
            expected.entry(line[..2].to_owned()).or_default().push(line);
        }
        prop_assert_eq!(seen, expected);
        for (key, timers) in model.keys {
            let left: Vec<_> = driver.timers("obey", &key).into_iter().map(|(name, _, due)| (name, due)).collect();
            prop_assert_eq!(left, timers.into_iter().collect::<Vec<_>>());
        }
    }
}
