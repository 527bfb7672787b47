//! Avro behind a schema registry comes in, Protocol Buffers and CBOR go out; and what happens when the registry fails (S1.6).
//!
//! The registry is the one that `FLECHTWERK_TEST_SCHEMA_REGISTRY` names, where the test needs none that fails on demand.

use std::time::Duration;

use flechtwerk::prelude::*;
use flechtwerk_tests::job::read_all;
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::schema_registry::{Conduct, StandIn};
use flechtwerk_tests::stages_codecs::{Alert, Payment, SMALL_PAYMENTS};
use flechtwerk_tests::{Case, STOP, Seen, wait_for};

const CODECS: &str = env!("CARGO_BIN_EXE_codecs");
const TOPICS: [&str; 6] = ["orders", "payments", "limits", "alerts", "audit", "dead-payments"];

fn case(url: &str) -> Case {
    let mut case = Case::new(CODECS, "watch", 1, &TOPICS).arg("--schema-registry", url);
    case.rig = case.rig.flag("--register-schemas");
    case
}

/// With `pay` as well.
fn both(url: &str) -> Case {
    let mut case = case(url);
    case.rig = case.rig.stage("pay");
    case
}

fn id(seen: &Seen) -> u32 {
    match seen.value.as_deref() {
        Some([0, a, b, c, d, ..]) => u32::from_be_bytes([*a, *b, *c, *d]),
        other => panic!("no id in front of {other:?}"),
    }
}

fn write(case: &Case, value: Vec<u8>) {
    let record = Write { key: Some(b"ann".to_vec()), value: Some(value), ..Write::new("", "") };
    case.kafka.write(case.topic("payments"), [Write { partition: Some(0), ..record }]);
}

/// A payment in the old schema: channel "web", account "ann", so many cents.
fn small(id: u32, cents: u8) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), b"\x06web\x06ann", &[cents * 2]].concat()
}

fn audited(seen: &[Seen]) -> Vec<i64> {
    let read = |one: &Seen| {
        let bytes = Bytes::from(one.value.clone().expect("a value"));
        Cbor::<Payment>::decode(&bytes).expect("CBOR").cents
    };
    seen.iter().map(read).collect()
}

#[test]
fn avro_comes_in_and_protobuf_and_cbor_go_out() {
    let url = std::env::var("FLECHTWERK_TEST_SCHEMA_REGISTRY").unwrap_or_else(|_| StandIn::start().url);
    let case = both(&url);
    case.write("orders", &[("ann", "100"), ("ann", "150"), ("ann", "50"), ("bob", "7"), ("bob", "8")]);
    let mut first = case.rig.clone().start();
    let payments = case.observe("payments").wait(3);
    assert_eq!(first.terminate(STOP), 0, "{}", first.log());
    assert!(payments.iter().all(|payment| id(payment) == id(&payments[0])));
    write(&case, b"{\"account\":\"ann\"}".to_vec());
    write(&case, [&payments[0].value.clone().expect("a value")[..], b"x"].concat());

    // Now the limits are there from the beginning.
    case.write("orders", &[("ann", "200"), ("bob", "9")]);
    let mut second = case.rig.clone().start();
    let dead = case.observe("dead-payments").wait(2);
    let errors: Vec<_> = dead.iter().filter_map(|one| one.header("flechtwerk.invalid.error")).collect();
    assert!(errors[0].starts_with("no zero byte and id of a schema at the beginning"), "{errors:?}");
    assert!(errors[1].starts_with("bytes after the end of the value"), "{errors:?}");
    let audit = case.observe("audit").wait(5);
    let mut cents = audited(&audit);
    cents.sort_unstable();
    assert_eq!(cents, [8, 9, 50, 150, 200]);
    wait_for("the alerts of the second instance", || {
        let alerts = read_all(&case.kafka, case.topic("alerts"));
        alerts.iter().any(|alert| {
            let bytes = alert.value.as_deref().expect("a value");
            // The first message of its file: one zero.
            assert_eq!(bytes[5], 0);
            let alert = <Alert as prost::Message>::decode(&bytes[6..]).expect("a message");
            alert == Alert { account: "ann".into(), excess: 100 }
        })
    });
    assert_eq!(second.terminate(STOP), 0, "{}", second.log());
    for secret in ["DE-4711", "\"account\""] {
        assert!(!second.log().contains(secret), "{}", second.log());
    }
}

#[test]
fn a_schema_that_comes_up_is_asked_for_once_and_read_by() {
    let registry = StandIn::start();
    let case = case(&registry.url);
    let mut instance = case.start();
    let old = registry.register("somebody-elses", "AVRO", SMALL_PAYMENTS);
    for cents in [1, 2, 3] {
        write(&case, small(old, cents));
    }
    case.wait_committed("payments", 3);
    write(&case, small(old, 4));
    assert_eq!(audited(&case.observe("audit").wait(4)), [1, 2, 3, 4]);
    assert_eq!(registry.requests(&format!("/schemas/ids/{old} ")), 1);
    assert_eq!(instance.terminate(STOP), 0);
    assert!(read_all(&case.kafka, case.topic("dead-payments")).is_empty());
}

#[test]
fn a_registry_that_fails_holds_records_up_and_makes_none_invalid() {
    let registry = StandIn::start();
    let case = case(&registry.url);
    let mut instance = case.start();
    let old = registry.register("somebody-elses", "AVRO", SMALL_PAYMENTS);
    registry.conduct(Conduct { status: Some(503), ..Conduct::default() });
    write(&case, small(old, 1));
    wait_for("the schema is asked for again", || registry.requests("/schemas/ids/") >= 4);
    assert!(read_all(&case.kafka, case.topic("audit")).is_empty());
    // A copy that is behind is no answer either.
    registry.conduct(Conduct { behind: 3, ..Conduct::default() });
    assert_eq!(audited(&case.observe("audit").wait(1)), [1]);
    assert_eq!(instance.terminate(STOP), 0);
    assert!(read_all(&case.kafka, case.topic("dead-payments")).is_empty());
}

#[test]
fn a_registry_that_stays_away_stops_the_process() {
    let registry = StandIn::start();
    let case = case(&registry.url).arg("--broker-timeout", "1s");
    let mut instance = case.start();
    registry.conduct(Conduct { status: Some(503), ..Conduct::default() });
    write(&case, small(77, 1));
    assert_eq!(instance.wait(STOP), 1, "{}", instance.log());
    let said = format!(
        "error: stage watch: can't ask the schema registry for schema 77: {} answers 503",
        registry.url
    );
    assert!(instance.log().contains(&said), "{said:?} in\n{}", instance.log());
    for topic in ["audit", "dead-payments"] {
        assert!(read_all(&case.kafka, case.topic(topic)).is_empty(), "{topic}");
    }
    assert_eq!(case.committed("payments").map_or(0, |(at, _)| at), 0, "the record is still to be read");
}

#[test]
fn a_stop_does_not_wait_for_a_registry() {
    let registry = StandIn::start();
    let case = case(&registry.url).arg("--shutdown-timeout", "30s");
    let mut instance = case.start();
    registry.conduct(Conduct { status: Some(503), ..Conduct::default() });
    write(&case, small(77, 1));
    wait_for("the schema is asked for", || registry.requests("/schemas/ids/") >= 1);
    assert_eq!(instance.terminate(Duration::from_secs(25)), 0, "{}", instance.log());
}

#[test]
fn an_id_that_no_schema_has_is_the_records_fault() {
    let registry = StandIn::start();
    let case = case(&registry.url);
    let mut instance = case.start();
    write(&case, small(77, 1));
    let dead = case.observe("dead-payments").wait(1);
    let error = dead[0].header("flechtwerk.invalid.error").expect("an error");
    assert!(error.starts_with("no schema has the id 77"), "{error}");
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn tables_wait_for_their_schemas_as_well() {
    let registry = StandIn::start();
    let case = case(&registry.url);
    let limits = registry.register("somebody-elses", "AVRO", "\"int\"");
    let payments = registry.register("somebody-elses", "AVRO", SMALL_PAYMENTS);
    // A limit of 10 cents, in another schema than ours.
    let limit = [&[0][..], &limits.to_be_bytes(), &[20]].concat();
    let record = Write { key: Some(b"ann".to_vec()), value: Some(limit), ..Write::new("", "") };
    case.kafka.write(case.topic("limits"), [record]);
    write(&case, small(payments, 60));
    let mut instance = case.rig.start();
    let alerts = case.observe("alerts").wait(1);
    let bytes = alerts[0].value.as_deref().expect("a value");
    let alert = <Alert as prost::Message>::decode(&bytes[6..]).expect("a message");
    assert_eq!(alert, Alert { account: "ann".into(), excess: 50 });
    assert_eq!(instance.terminate(STOP), 0);
}

#[test]
fn without_a_registry_nothing_starts() {
    let case = Case::new(CODECS, "watch", 1, &TOPICS);
    let (status, _, said) = case.rig.run(&["run"]);
    assert_eq!(status, 2);
    assert!(said.contains("no schema registry is named"), "{said}");
    let case = case.arg("--schema-registry", "http://127.0.0.1:9").arg("--connect-timeout", "1s");
    let (status, _, said) = case.rig.run(&["check"]);
    assert_eq!(status, 2);
    assert!(said.contains("the schema registry can't be asked: no answer from http://127.0.0.1:9"), "{said}");
}
