//! What the checks say of a registry and of what it holds.

use apache_avro::AvroSchema;
use serde::{Deserialize, Serialize};

use super::*;
use crate as flechtwerk;
use crate::chosen::{choose, infos};
use crate::codec::ProtobufSchema;
use crate::naming::Mapping;
use crate::prelude::*;
use crate::registry::tests::stand_in::{Conduct, StandIn};
use crate::settings::{Access, Secret};

#[derive(Serialize, Deserialize, AvroSchema)]
pub(crate) struct Payment {
    account: String,
    cents: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Alert {
    #[prost(string, tag = "1")]
    account: String,
}

impl ProtobufSchema for Alert {
    const PROTO: &'static str = "syntax = \"proto3\"; message First {} message Alert { string account = 1; }";
    const MESSAGE: &'static str = "Alert";
}

#[topic("payments", key = Utf8, value = Confluent<Avro<Payment>>, crate = flechtwerk)]
pub(crate) struct Payments;
#[topic("alerts", key = Utf8, value = Nullable<Confluent<Protobuf<Alert>>>, crate = flechtwerk)]
pub(crate) struct Alerts;

#[transformer(inputs = [Payments], crate = flechtwerk)]
pub(crate) async fn watch(payment: Record<Payments>, out: &mut Out<Alerts>) -> flechtwerk::Result {
    out.send(payment.key, Some(Alert { account: payment.value.account }));
    Ok(())
}

flechtwerk::pipeline!(pub(crate) WATCH = "bank": [watch]);

fn stages() -> Vec<Chosen> {
    choose("bank", &infos(WATCH.stages), &[], Mapping::of("", &BTreeMap::new())).unwrap()
}

fn settings(url: &str) -> Settings {
    let access = Access { urls: vec![url.to_owned()], username: None, password: None, token: None, ca: None };
    let connect_timeout = Duration::from_millis(50);
    Settings { schema_registry: SchemaRegistry::At(access), connect_timeout, ..Settings::default() }
}

fn check(settings: &Settings) -> Result<ReadySchemas, Vec<Problem>> {
    let program = Program { name: "bank".into(), ..Program::default() };
    check_schemas(&stages(), settings, &program).map(|ready| ready.expect("there are schemas"))
}

/// The only problem.
fn problem(settings: &Settings) -> Problem {
    let mut problems = check(settings).err().expect("a problem");
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

fn payments() -> String {
    serde_json::to_string(&Payment::get_schema()).unwrap()
}

#[test]
fn a_registry_must_be_named() {
    let problem = problem(&Settings::default());
    assert_eq!(problem.what, "no schema registry is named");
    assert_eq!(problem.place, "the values of topic `alerts`, stages `watch`");
    assert_eq!(problem.mend, "bank run --schema-registry http://HOST:8081");
    let here = Settings { schema_registry: SchemaRegistry::InProcess, ..Settings::default() };
    assert!(matches!(check_schemas(&stages(), &here, &Program::default()), Ok(None)));
}

#[test]
fn a_registry_that_does_not_answer_is_one_problem() {
    let problem = problem(&settings("http://127.0.0.1:9"));
    assert!(
        problem.what.starts_with("the schema registry can't be asked: no answer from http://127.0.0.1:9: ")
    );
    assert!(problem.mend.starts_with("start the registry, or name another"), "{problem}");
}

#[test]
fn credentials_that_are_refused_are_told_and_not_shown() {
    let registry = StandIn::start();
    registry.conduct(Conduct { authorization: Some("Bearer right".into()), ..Conduct::default() });
    let mut settings = settings(&registry.url);
    let SchemaRegistry::At(access) = &mut settings.schema_registry else { unreachable!() };
    access.token = Some(Secret::new("hunter2"));
    let problem = problem(&settings);
    assert!(problem.what.contains("answers 401"), "{problem}");
    assert!(problem.mend.contains("--schema-registry-token-file"), "{problem}");
    assert!(!format!("{problem:?} {settings:?}").contains("hunter2"));
}

#[test]
fn what_is_written_must_be_there_or_may_be_put_there() {
    let registry = StandIn::start();
    let problem = problem(&settings(&registry.url));
    assert_eq!(problem.what, "subject `alerts-value` has no schema");
    assert!(problem.mend.ends_with("\nbank run --register-schemas"), "{problem}");
    let may = Settings { register_schemas: true, ..settings(&registry.url) };
    let ready = check(&may).map_err(|problems| format!("{problems:?}")).unwrap();
    assert_eq!(ready.missing().collect::<Vec<_>>(), ["alerts-value"]);
    assert_eq!(registry.requests("/versions HTTP"), 0, "a check changes nothing");
}

#[test]
fn another_spelling_is_the_same_schema() {
    let registry = StandIn::start();
    let text = format!("// as whoever keeps the registry likes it\n{}", Alert::PROTO.replace("; ", ";\n"));
    let id = registry.register("alerts-value", "PROTOBUF", &text);
    registry.register("payments-value", "AVRO", &payments());
    let ready = check(&settings(&registry.url)).map_err(|problems| format!("{problems:?}")).unwrap();
    let (of, front) = &ready.fronts[0];
    assert_eq!((of.topic.name, front), ("alerts", &frame::front(id, &[2, 2])));
    assert_eq!(ready.missing().count(), 0);
}

#[test]
fn an_older_version_is_found_as_well() {
    let registry = StandIn::start();
    let id = registry.register("alerts-value", "PROTOBUF", Alert::PROTO);
    registry.register("alerts-value", "PROTOBUF", "syntax = \"proto3\"; message Next {}");
    let ready = check(&settings(&registry.url)).map_err(|problems| format!("{problems:?}")).unwrap();
    assert_eq!(ready.fronts[0].1, frame::front(id, &[2, 2]));
}

#[test]
fn the_rules_of_a_subject_are_asked() {
    let registry = StandIn::start();
    registry.register("alerts-value", "PROTOBUF", "syntax = \"proto3\"; message Before {}");
    registry.conduct(Conduct { frozen: true, ..Conduct::default() });
    let may = Settings { register_schemas: true, ..settings(&registry.url) };
    let problem = problem(&may);
    assert!(
        problem.what.ends_with("can't be the next version of subject `alerts-value`: it is frozen"),
        "{problem}"
    );
}

#[test]
fn what_is_written_now_must_be_readable() {
    let registry = StandIn::start();
    registry.register("alerts-value", "PROTOBUF", Alert::PROTO);
    let text = payments().replace("cents", "pence");
    let id = registry.register("payments-value", "AVRO", &text);
    let problem = problem(&settings(&registry.url));
    assert!(
        problem.what.starts_with(&format!(
            "what is written by schema {id}, version 1 of subject `payments-value`, can't"
        )),
        "{problem}"
    );
    assert!(problem.what.contains("cents"), "{problem}");
    assert_eq!(problem.place, "the values of topic `payments`, stages `watch`");
}

#[test]
fn what_a_registry_lacks_is_asked_for_again_for_a_while() {
    let registry = StandIn::start();
    let id = registry.register("payments-value", "AVRO", &payments());
    registry.conduct(Conduct { behind: 1, ..Conduct::default() });
    let client = crate::registry::tests::client(&registry.url, &crate::registry::Credentials::Nobody);
    let fetching = Fetching { registry: Arc::new(client), asked: Mutex::default() };
    let error = fetching.fetch(id).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Retriable);
    assert_eq!(error.to_string(), "the schema registry has no schema of this id yet (unknown id)");
    fetching.fetch(id).unwrap();
    registry.conduct(Conduct { status: Some(503), ..Conduct::default() });
    assert_eq!(fetching.fetch(id + 1).unwrap_err().kind, ErrorKind::Retriable);
    registry.conduct(Conduct { status: Some(403), ..Conduct::default() });
    assert_eq!(fetching.fetch(id + 1).unwrap_err().kind, ErrorKind::Hopeless);
}
