//! The whole example: its server, its program as a process that is killed, and a broker.

use std::collections::BTreeMap;

use flechtwerk_dev_broker::{Api, DevBroker};
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::{DEADLINE, Instance, Kafka, Observer, Rig, STOP, wait_for};
use http_feed::Item;
use http_feed::server::FeedServer;

const PROGRAM: &str = env!("CARGO_BIN_EXE_http-feed");
const FEEDS: [&str; 3] = ["news", "weather", "traffic"];
/// Items of each feed at first, three pages and a half.
const ITEMS: u64 = 35;

struct World {
    server: FeedServer,
    broker: DevBroker,
    rig: Rig,
    items: Observer,
}

impl World {
    fn new() -> World {
        let server = FeedServer::start("127.0.0.1:0").expect("a server");
        let broker = DevBroker::builder().topic(("feeds", 2)).topic(("items", 2)).start().expect("a broker");
        let kafka = Kafka { brokers: broker.bootstrap() };
        let rig = Rig::new(&kafka, PROGRAM).env("FLECHTWERK_RESOURCES_HTTP_PAGE_SIZE", "10");
        FEEDS.iter().for_each(|feed| server.add(feed, ITEMS));
        let config = |feed: &&str| Write::new(feed, &format!(r#"{{"url":"{}"}}"#, server.url(feed)));
        kafka.write("feeds", FEEDS.iter().map(config));
        let items = Observer::start(&kafka, "items");
        World { server, broker, rig, items }
    }

    /// What has arrived is what the server has, each item once and in its order.
    #[track_caller]
    fn assert_items(&self) {
        let all: usize = FEEDS.iter().map(|feed| self.server.ids(feed).len()).sum();
        let mut by_feed: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for seen in self.items.wait(all) {
            let item: Item =
                serde_json::from_slice(seen.value.as_deref().unwrap_or_default()).expect("an item");
            assert_eq!(seen.timestamp, item.published);
            by_feed.entry(seen.key_text()).or_default().push(item.id);
        }
        for feed in FEEDS {
            assert_eq!(by_feed.get(feed), Some(&self.server.ids(feed)), "{feed}");
        }
    }
}

#[track_caller]
fn stop(mut instance: Instance) {
    assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
}

#[test]
fn every_item_arrives_once_across_a_kill() {
    let world = World::new();
    // A page of each token has been read and written, and its commit does not get through.
    let commits = |token: i32| {
        let id = format!("{}-{token}", world.rig.application_id("http-feed", "poll"));
        // The first transaction is that of the leases.
        world.broker.fault().api(Api::EndTxn).transactional_id(id).nth(3).hold()
    };
    let held = [commits(0), commits(1)];
    let mut first = world.rig.start();
    for commit in &held {
        assert!(commit.wait(DEADLINE), "no third commit; log:\n{}", first.log());
    }
    first.kill();
    assert_eq!(world.server.repeated(), 0);

    // Those pages are read again, and count once all the same.
    let second = world.rig.start();
    wait_for("the pages under way are read again", || world.server.repeated() > 0);
    // The commits come late, when another owner has fenced them off: let go before, they would count.
    drop(held);
    world.assert_items();
    FEEDS.iter().for_each(|feed| world.server.add(feed, 1));
    world.assert_items();
    stop(second);
}

#[test]
fn a_busy_server_is_left_alone_for_as_long_as_it_says() {
    let world = World::new();
    world.server.refuse("news", 2);
    let instance = world.rig.start();
    world.assert_items();
    assert_eq!(world.server.refusals_left("news"), 0);
    assert_eq!(world.server.impatient(), 0);
    stop(instance);
}

#[test]
fn a_feed_that_is_not_there_stops_the_process_naming_its_config() {
    let world = World::new();
    let kafka = Kafka { brokers: world.broker.bootstrap() };
    let mut instance = world.rig.start();
    world.assert_items();
    kafka.write("feeds", [Write::new("gone", &format!(r#"{{"url":"{}"}}"#, world.server.url("gone")))]);
    wait_for("the end of the process", || instance.try_wait().is_some());
    assert_eq!(instance.wait(STOP), 1);
    let log = instance.log();
    assert!(log.contains("stage poll failed at the config at feeds/") && log.contains("404"), "{log}");
}

#[test]
fn the_readme_shows_the_pipeline() {
    flechtwerk_tests::readme::assert_diagram(env!("CARGO_MANIFEST_DIR"), PROGRAM);
}
