//! The in-memory driver: partitions, order, failures.
#![allow(missing_docs)]

use flechtwerk::prelude::*;
use flechtwerk::testing::Driver;

#[topic("orders", key = Utf8, value = Json<i64>)]
pub struct Orders;
#[topic("prices", key = Utf8, value = Json<i64>)]
pub struct Prices;
#[topic("log", key = Utf8, value = Utf8)]
pub struct Log;
#[topic("loop", key = Utf8, value = Json<i64>)]
pub struct Loop;
#[topic("unkeyed", key = Nullable<Utf8>, value = Json<i64>)]
pub struct Unkeyed;

#[derive(Input)]
pub enum Any {
    Order(Record<Orders>),
    Price(Record<Prices>),
}

fn describe(any: Any) -> (String, String) {
    match any {
        Any::Order(order) => (order.key, format!("order {}", order.value)),
        Any::Price(price) => (price.key, format!("price {}", price.value)),
    }
}

#[transformer(inputs = [Orders, Prices])]
pub async fn by_input(any: Any, out: &mut Out<Log>) -> flechtwerk::Result {
    let (key, text) = describe(any);
    out.send(key, text);
    Ok(())
}

#[transformer(inputs = [Orders, Prices], order = timestamp)]
pub async fn by_time(any: Any, out: &mut Out<Log>) -> flechtwerk::Result {
    let (key, text) = describe(any);
    out.send(key, text);
    Ok(())
}

/// Counts down, through its own input.
#[transformer(inputs = [Loop], state = i64)]
pub async fn down(number: Record<Loop>, seen: &mut State<i64>, out: &mut Out<Loop>) -> flechtwerk::Result {
    match number.value {
        -1 => return Err("below zero".into()),
        0 => seen.clear(),
        n => {
            seen.set(n);
            out.send(number.key, n - 1);
        }
    }
    Ok(())
}

#[transformer(inputs = [Loop])]
pub async fn forever(number: Record<Loop>, out: &mut Out<Loop>) -> flechtwerk::Result {
    out.send(number.key, number.value);
    Ok(())
}

#[transformer(inputs = [Unkeyed], state = i64, key = parity)]
pub async fn parities(number: Record<Unkeyed>, count: &mut State<i64>) -> flechtwerk::Result {
    let _ = number;
    *count.get_or_insert_default() += 1;
    Ok(())
}

fn parity(number: &Record<Unkeyed>) -> [u8; 1] {
    assert!(number.value >= 0, "negative");
    [(number.value % 2) as u8]
}

flechtwerk::pipeline!(INPUT = "a": [by_input]);
flechtwerk::pipeline!(TIME = "a": [by_time]);
flechtwerk::pipeline!(DOWN = "a": [down]);
flechtwerk::pipeline!(FOREVER = "a": [forever]);
flechtwerk::pipeline!(PARITIES = "a": [parities]);

fn fed(pipeline: &flechtwerk::Pipeline) -> Vec<String> {
    let mut driver = Driver::new(pipeline);
    driver.send_record::<Prices>(OutRecord::new("k".into(), 1).timestamp(10));
    driver.send_record::<Orders>(OutRecord::new("k".into(), 2).timestamp(20));
    driver.send_record::<Prices>(OutRecord::new("k".into(), 3).timestamp(20));
    driver.send_record::<Orders>(OutRecord::new("k".into(), 4).timestamp(5));
    driver.run_blocking().unwrap();
    driver.read::<Log>().into_iter().map(|record| record.value).collect()
}

#[test]
fn inputs_come_in_their_order() {
    assert_eq!(fed(&INPUT), ["order 2", "order 4", "price 1", "price 3"]);
}

#[test]
fn timestamps_merge_and_offsets_hold() {
    assert_eq!(fed(&TIME), ["price 1", "order 2", "order 4", "price 3"]);
}

#[test]
fn keys_lie_where_kafka_puts_them() {
    let mut driver = Driver::new(&INPUT).partitions(8);
    for key in ["21", "foobar", "abc"] {
        driver.send::<Orders>(key.into(), 1);
    }
    let mut found: Vec<_> =
        driver.records::<Orders>().into_iter().map(|record| (record.key, record.partition)).collect();
    found.sort();
    let of = |hash: i32| (hash & 0x7fff_ffff) % 8;
    assert_eq!(
        found,
        [("21".into(), of(-973932308)), ("abc".into(), of(479470107)), ("foobar".into(), of(-790332482))]
    );
}

#[test]
fn a_stage_may_feed_itself() {
    let mut driver = Driver::new(&DOWN);
    driver.send::<Loop>("a".into(), 3);
    driver.run_blocking().unwrap();
    assert_eq!(driver.records::<Loop>().iter().map(|record| record.value).collect::<Vec<_>>(), [3, 2, 1, 0]);
    assert_eq!(driver.state::<i64>("down", "a"), None);
    assert!(driver.states::<i64>("down").is_empty());
}

#[test]
fn but_not_for_ever() {
    let mut driver = Driver::new(&FOREVER);
    driver.send::<Loop>("a".into(), 3);
    let error = driver.run_blocking().unwrap_err().to_string();
    assert!(error.contains("did not come to rest"), "{error}");
}

#[test]
fn after_a_failure_nothing_of_the_round_counts() {
    let mut driver = Driver::new(&DOWN).partitions(1);
    driver.send::<Loop>("a".into(), 0);
    driver.send::<Loop>("b".into(), 5);
    driver.send::<Loop>("a".into(), -1);
    for _ in 0..2 {
        let error = driver.run_blocking().unwrap_err().to_string();
        assert_eq!(
            error,
            "stage `down` failed at loop/0 offset 2: the function returned an error: below zero"
        );
        assert!(driver.states::<i64>("down").is_empty());
        assert_eq!(driver.records::<Loop>().len(), 3);
    }
}

#[test]
fn custom_keys_group_within_a_partition() {
    let mut driver = Driver::new(&PARITIES).partitions(2);
    for n in 0..8 {
        driver.send::<Unkeyed>(None, n);
    }
    driver.run_blocking().unwrap();
    let states: Vec<_> =
        driver.states::<i64>("parities").into_iter().map(|(p, key, n)| (p, key[0], n)).collect();
    assert_eq!(states, [(0, 0, 4), (1, 1, 4)]);
    driver.send::<Unkeyed>(None, -1);
    let error = driver.run_blocking().unwrap_err().to_string();
    assert_eq!(error, "stage `parities` failed at unkeyed/0 offset 4: the code panicked: negative");
}

#[test]
fn reading_goes_on_where_it_ended() {
    let mut driver = Driver::new(&INPUT);
    driver.send::<Orders>("a".into(), 1);
    assert_eq!(driver.read::<Orders>().len(), 1);
    driver.send::<Orders>("a".into(), 2);
    let read = driver.read::<Orders>();
    assert_eq!((read.len(), read[0].value, read[0].offset, read[0].timestamp), (1, 2, 1, Some(1)));
    assert_eq!(driver.records::<Orders>().len(), 2);
}

#[test]
#[should_panic = "a record was sent to orders/3, but there are 3 partitions"]
fn partitions_must_exist() {
    Driver::new(&INPUT).send_record::<Orders>(OutRecord::new("a".into(), 1).partition(3));
}

#[test]
#[should_panic = "the pipeline has no stage `other`"]
fn stages_must_exist() {
    let _ = Driver::new(&INPUT).state::<i64>("other", "a");
}
