//! The whole example: a real PostgreSQL, its program as a process that is killed, and a broker.

use std::sync::atomic::{AtomicUsize, Ordering};

use flechtwerk_dev_broker::{Api, DevBroker};
use flechtwerk_tests::{DEADLINE, Instance, Kafka, Observer, Rig, STOP, wait_for};
use postgres_orders::Order;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

const PROGRAM: &str = env!("CARGO_BIN_EXE_postgres-orders");
const SCHEMA: &str = include_str!("../schema.sql");

struct World {
    database: Database,
    broker: DevBroker,
    rig: Rig,
    orders: Observer,
}

/// A database of its own, with the table.
struct Database {
    url: String,
    runtime: Runtime,
    client: Client,
}

impl Database {
    fn new() -> Database {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let server = variable("FLECHTWERK_TEST_POSTGRES");
        let runtime = Runtime::new().expect("a runtime");
        let name = format!("orders_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let (address, _) = server.rsplit_once('/').expect("an address that names a database");
        let url = format!("{address}/{name}");
        let client = runtime.block_on(async {
            connect(&server)
                .await
                .batch_execute(&format!("CREATE DATABASE {name}"))
                .await
                .expect("a database");
            let client = connect(&url).await;
            client.batch_execute(SCHEMA).await.expect("the schema");
            client
        });
        Database { url, runtime, client }
    }

    fn execute(&self, sql: &str) {
        self.on(&self.client, sql);
    }

    fn on(&self, client: &Client, sql: &str) {
        self.runtime.block_on(client.batch_execute(sql)).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn another(&self) -> Client {
        self.runtime.block_on(connect(&self.url))
    }

    fn number(&self, sql: &str) -> i64 {
        self.runtime
            .block_on(self.client.query_one(sql, &[]))
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
            .get(0)
    }

    /// Orders as they are, by the time of their last change.
    fn now(&self) -> Vec<(i64, String)> {
        let rows = self.client.query("SELECT id, status FROM orders ORDER BY updated_at, id", &[]);
        let rows = self.runtime.block_on(rows).expect("the orders");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Waits until the program has looked at the table twice from now on: what it could see, it has seen.
    #[track_caller]
    fn wait_until_looked(&self) {
        for _ in 0..2 {
            let begin = self.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
            let looked = format!(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'postgres-orders' AND state = 'idle'
                 AND datname = current_database() AND query LIKE '%FROM orders%'
                 AND (extract(epoch FROM query_start) * 1000000)::bigint > {begin}"
            );
            wait_for("the program looks at the table", || self.number(&looked) > 0);
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!(
            "this test needs a PostgreSQL: run it with `scripts/postgres run -- cargo test -p postgres-orders`, or set \
             FLECHTWERK_TEST_POSTGRES to postgresql://USER:PASSWORD@HOST:PORT/DATABASE, where USER may create databases, and \
             FLECHTWERK_TEST_POSTGRES_CA to a file with the certificate that its server's is signed by"
        )
    })
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    // It may be terminated by a test.
    tokio::spawn(async move { drop(connection.await) });
    client
}

impl World {
    fn new() -> World {
        let database = Database::new();
        let broker = DevBroker::builder().topic(("orders", 2)).start().expect("a broker");
        let kafka = Kafka { brokers: broker.bootstrap() };
        let rig = Rig::new(&kafka, PROGRAM)
            .env("FLECHTWERK_RESOURCES_DATABASE_URL", &format!("{}?sslmode=require", database.url))
            .env("FLECHTWERK_RESOURCES_DATABASE_CA", &variable("FLECHTWERK_TEST_POSTGRES_CA"))
            .env("FLECHTWERK_RESOURCES_DATABASE_PAGE_SIZE", "10");
        let orders = Observer::start(&kafka, "orders");
        World { database, broker, rig, orders }
    }

    /// So many changes have arrived, each order's last one is its present state, and no change came twice.
    #[track_caller]
    fn assert_arrived(&self, changes: usize) {
        let mut seen: Vec<Order> = self
            .orders
            .wait(changes)
            .iter()
            .map(|seen| serde_json::from_slice(seen.value.as_deref().unwrap_or_default()).expect("an order"))
            .collect();
        assert_eq!(seen.len(), changes);
        seen.sort_by_key(|order| (order.updated_at, order.id));
        assert!(seen.is_sorted_by(|a, b| (a.updated_at, a.id) < (b.updated_at, b.id)), "a change came twice");
        seen.reverse();
        let mut last: Vec<(i64, String)> = Vec::new();
        for order in seen {
            if !last.iter().any(|(id, _)| *id == order.id) {
                last.push((order.id, order.status));
            }
        }
        last.reverse();
        assert_eq!(last, self.database.now());
    }
}

#[track_caller]
fn stop(mut instance: Instance) {
    assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
}

#[test]
fn every_change_arrives_once_across_a_kill() {
    let world = World::new();
    let place = "INSERT INTO orders (customer, cents) SELECT 'customer ' || n, n * 100 FROM generate_series(1, 35) AS n";
    world.database.execute(place);
    // A page has been read and written, and its commit does not get through. The first transaction is that of the lease.
    let id = format!("{}-0", world.rig.application_id("postgres-orders", "follow"));
    let held = world.broker.fault().api(Api::EndTxn).transactional_id(id).nth(3).hold();
    let mut first = world.rig.start();
    assert!(held.wait(DEADLINE), "no third commit; log:\n{}", first.log());
    first.kill();
    held.release();
    assert!(world.orders.count() < 35);

    let second = world.rig.start();
    world.assert_arrived(35);
    world.database.execute("UPDATE orders SET status = 'shipped' WHERE id <= 12");
    world.assert_arrived(47);
    stop(second);
}

#[test]
fn changes_of_transactions_that_commit_late_are_not_passed_by() {
    let world = World::new();
    let database = &world.database;
    database.execute("INSERT INTO orders (customer, cents) VALUES ('first', 1)");
    let instance = world.rig.start();
    world.assert_arrived(1);
    // One that has changed something and does not commit.
    let late = database.another();
    database.on(&late, "BEGIN; INSERT INTO orders (customer, cents) VALUES ('late', 2)");
    database.wait_until_looked();
    // Others come and go meanwhile.
    database.execute("INSERT INTO orders (customer, cents) VALUES ('quick', 3)");
    database.execute("BEGIN; INSERT INTO orders (customer, cents) VALUES ('never', 4); ROLLBACK");
    database.execute("UPDATE orders SET status = 'shipped' WHERE customer = 'first'");
    database.wait_until_looked();
    assert_eq!(world.orders.count(), 1, "a page went past a transaction that is under way");
    database.on(&late, "UPDATE orders SET status = 'paid' WHERE customer = 'late'; COMMIT");
    world.assert_arrived(4);
    stop(instance);
}

#[test]
fn a_connection_that_breaks_is_made_anew() {
    let world = World::new();
    let database = &world.database;
    let mut instance = world.rig.start();
    database.execute("INSERT INTO orders (customer, cents) VALUES ('first', 1)");
    world.assert_arrived(1);
    database.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
         WHERE application_name = 'postgres-orders' AND datname = current_database()",
    );
    database.execute("INSERT INTO orders (customer, cents) VALUES ('second', 2)");
    world.assert_arrived(2);
    // What asking again does not mend ends the process.
    database.execute("ALTER TABLE orders RENAME COLUMN cents TO euros");
    wait_for("the end of the process", || instance.try_wait().is_some());
    assert_eq!(instance.wait(STOP), 1);
    assert!(instance.log().contains("stage follow failed at its one config"), "{}", instance.log());
}

#[test]
fn the_connection_is_encrypted_to_a_server_that_is_known_and_to_no_other() {
    let world = World::new();
    let database = &world.database;
    let instance = world.rig.start();
    database.execute("INSERT INTO orders (customer, cents) VALUES ('first', 1)");
    world.assert_arrived(1);
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
         WHERE application_name = 'postgres-orders' AND datname = current_database() AND ssl";
    assert_eq!(database.number(encrypted), 1);
    stop(instance);

    // One that nobody vouches for, and one under a name that its certificate does not have.
    let elsewhere = database.url.replacen("127.0.0.1", "elsewhere", 1);
    let refused = [
        ("FLECHTWERK_RESOURCES_DATABASE_CA", String::new(), "certificate verify failed"),
        (
            "FLECHTWERK_RESOURCES_DATABASE_URL",
            format!("{elsewhere}?sslmode=require&hostaddr=127.0.0.1"),
            "hostname mismatch",
        ),
        (
            "FLECHTWERK_RESOURCES_DATABASE_CA",
            concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql").into(),
            "no certificate",
        ),
    ];
    for (name, value, says) in refused {
        let mut instance = world.rig.clone().env(name, &value).start();
        assert_eq!(instance.wait(STOP), 2);
        let log = instance.log();
        let (_, password) = database.url.split_once("flechtwerk:").expect("a user");
        let (password, _) = password.split_once('@').expect("a password");
        assert!(log.contains(says) && !log.contains(password), "{log}");
    }
}

#[test]
fn a_database_that_can_not_be_reached_is_a_failed_start_without_its_password() {
    let world = World::new();
    let url = "postgresql://nobody:hunter2@127.0.0.1:1/nowhere";
    let mut instance = world.rig.clone().env("FLECHTWERK_RESOURCES_DATABASE_URL", url).start();
    assert_eq!(instance.wait(STOP), 2);
    let log = instance.log();
    assert!(log.contains("database") && !log.contains("hunter2"), "{log}");
}

#[test]
fn the_readme_shows_the_pipeline() {
    flechtwerk_tests::readme::assert_diagram(env!("CARGO_MANIFEST_DIR"), PROGRAM);
}
