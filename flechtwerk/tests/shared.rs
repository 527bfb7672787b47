//! Tables and resources: in unit tests of a function, and in the in-memory driver.
#![deny(warnings)]
#![allow(missing_docs, unreachable_pub)]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use flechtwerk::prelude::*;
use flechtwerk::testing::Driver;
use flechtwerk::{Key, Secret, Value};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
pub struct Item {
    name: String,
    cents: u32,
}

/// What [`priced`] makes of an item.
#[derive(Debug, PartialEq)]
pub struct Priced {
    text: String,
}

#[topic("items", key = Utf8, value = Json<Item>)]
pub struct Items;
#[topic("prices", key = Utf8, value = Json<Item>, row = Priced, enrich = priced, empty_is_delete = true)]
pub struct Prices;
#[topic("raw-prices", key = Bytes, value = Bytes)]
pub struct RawPrices;
#[topic("orders", key = Utf8, value = Utf8)]
pub struct Orders;
#[topic("bills", key = Utf8, value = Utf8)]
pub struct Bills;

static ENRICHED: AtomicUsize = AtomicUsize::new(0);

fn priced(key: &Key<Prices>, item: Value<Prices>) -> Result<Priced, std::num::ParseIntError> {
    ENRICHED.fetch_add(1, Ordering::SeqCst);
    if item.name == "bad" {
        "x".parse::<u8>()?;
    }
    Ok(Priced { text: format!("{key}: {} for {}", item.name, item.cents) })
}

#[derive(Deserialize)]
pub struct HttpSettings {
    #[expect(dead_code)]
    url: String,
    #[expect(dead_code)]
    token: Secret<String>,
}

pub struct Http {
    prefix: &'static str,
}

pub struct Cache;

#[resource(close = close)]
pub async fn http(settings: HttpSettings) -> flechtwerk::Result<Http> {
    let _ = settings;
    Ok(Http { prefix: "real" })
}

async fn close(http: &Http) -> flechtwerk::Result {
    let _ = http;
    Ok(())
}

#[resource(name = "memory_cache")]
async fn cache(http: &Res<Http>) -> Result<Cache, std::fmt::Error> {
    let _ = http;
    Ok(Cache)
}

#[transformer(inputs = [Orders])]
pub async fn bill(
    order: Record<Orders>,
    items: &Table<Items>,
    out: &mut Out<Bills>,
    http: &Res<Http>,
) -> flechtwerk::Result {
    match items.get(&order.value) {
        Some(item) => out.send(order.key, format!("{} {} of {}", http.prefix, item.name, items.len())),
        None => out.send(order.key, "unknown".into()),
    }
    Ok(())
}

/// A type of the user's own, under another name.
pub struct Known {
    parts: (Table<Items>, Res<Cache>),
}

impl Shared for Known {
    type Parts = (Table<Items>, Res<Cache>);

    fn from_parts(parts: Self::Parts) -> Self {
        Known { parts }
    }
}

type Ours = Known;

#[transformer(inputs = [Orders], state = u64)]
async fn counting(
    order: Record<Orders>,
    prices: &Table<Prices>,
    seen: &mut State<u64>,
    known: &Ours,
) -> flechtwerk::Result {
    let _ = (order, &known.parts.1);
    *seen.get_or_insert_default() += prices.len() as u64 + known.parts.0.len() as u64;
    Ok(())
}

flechtwerk::pipeline!(pub SHOP = "shop": [bill, counting], resources = [cache, #[cfg(all())] http]);
flechtwerk::pipeline!(pub BILLS = "bills": [bill], resources = [http,],);

fn block_on<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("nothing to wait for"),
    }
}

fn item(name: &str, cents: u32) -> Item {
    Item { name: name.into(), cents }
}

fn driver() -> Driver {
    Driver::new(&SHOP).resource(Http { prefix: "fake" }).resource(Cache)
}

#[test]
fn a_bare_function_takes_a_table_and_a_resource() {
    let items: Table<Items> = [("a".to_owned(), item("tea", 250))].into_iter().collect();
    let http = Res::new(Http { prefix: "test" });
    let mut out = Out::default();
    block_on(bill(Record::new("k".into(), "a".into()), &items, &mut out, &http)).unwrap();
    assert_eq!(out.sent()[0].1, "test tea of 1");
    assert_eq!(items.iter().map(|(key, row)| (key.as_str(), row.cents)).collect::<Vec<_>>(), [("a", 250)]);
    assert!(items.contains_key("a") && !items.is_empty() && Table::<Items>::new().is_empty());
}

#[test]
fn neither_shows_what_it_holds() {
    let items: Table<Items> = [("secret".to_owned(), item("secret", 1))].into_iter().collect();
    assert_eq!(format!("{items:?}"), "Table(items, 1 keys)");
    assert_eq!(format!("{:?}", Res::new(Http { prefix: "secret" })), "Res<shared::Http>");
}

#[test]
fn the_driver_reads_tables_before_each_round() {
    let mut driver = driver();
    driver.send::<Items>("a".into(), item("tea", 250));
    driver.send::<Items>("b".into(), item("milk", 90));
    driver.send::<Orders>("k".into(), "a".into());
    driver.run_blocking().unwrap();
    assert_eq!(driver.read::<Bills>()[0].value, "fake tea of 2");
    driver.send::<Items>("a".into(), item("green tea", 300));
    driver.delete::<Items>(&"b".into());
    driver.send::<Orders>("k".into(), "a".into());
    driver.send::<Orders>("k".into(), "b".into());
    driver.run_blocking().unwrap();
    let bills: Vec<_> = driver.read::<Bills>().into_iter().map(|bill| bill.value).collect();
    assert_eq!(bills, ["fake green tea of 1", "unknown"]);
}

#[test]
fn a_user_type_of_shared_parts_sees_them() {
    let mut driver = driver();
    driver.send::<Items>("a".into(), item("tea", 250));
    driver.send::<Prices>("p".into(), item("tea", 250));
    driver.send::<Orders>("k".into(), "a".into());
    driver.run_blocking().unwrap();
    assert_eq!(driver.state::<u64>("counting", "k"), Some(2));
}

#[test]
fn the_driver_says_what_resource_it_lacks() {
    let mut driver = Driver::new(&SHOP).resource(Cache);
    let failed = driver.run_blocking().unwrap_err().to_string();
    assert_eq!(
        failed,
        "stage `bill` takes a `&Res<Http>`, and the driver has none: give it one with `Driver::resource`"
    );
}

#[test]
fn a_record_that_is_none_of_a_tables_is_told_with_its_place() {
    #[topic("items", key = Utf8, value = Utf8)]
    struct Text;

    let mut driver = driver();
    driver.send::<Text>("a".into(), "hunter2".into());
    let failed = driver.run_blocking().unwrap_err().to_string();
    let expected = "the table of topic \"items\" failed at items/";
    assert!(failed.starts_with(expected) && failed.contains("the value can't be decoded"), "{failed}");
    assert!(!failed.contains("hunter2"), "{failed}");
}
