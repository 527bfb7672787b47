//! The client, against the registry that `FLECHTWERK_TEST_SCHEMA_REGISTRY` names, or one that stands in for it.

// Shared with a crate that it is public in.
#[allow(unreachable_pub, reason = "public elsewhere")]
#[path = "../../../tests/src/schema_registry.rs"]
pub(crate) mod stand_in;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use self::stand_in::{Conduct, StandIn};
use super::*;

const FIRST: &str = r#"{"type":"record","name":"P","fields":[{"name":"a","type":"string"}]}"#;
const SECOND: &str = r#"{"type":"record","name":"P","fields":[{"name":"a","type":"string"},{"name":"b","type":"int","default":0}]}"#;
const PROTO: &str = "syntax = \"proto3\";\nmessage A {\n  int64 a = 1;\n}\n";

pub(crate) fn client(url: &str, credentials: &Credentials) -> Registry {
    Registry::new(&[url.to_owned()], credentials, None).unwrap()
}

/// A subject that no other test has.
fn subject(name: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    format!("{name}-{now}-value")
}

fn registry() -> Registry {
    let url = std::env::var("FLECHTWERK_TEST_SCHEMA_REGISTRY").unwrap_or_else(|_| StandIn::start().url);
    client(&url, &Credentials::Nobody)
}

#[test]
fn schemas_are_registered_looked_up_and_given_out() {
    let (registry, payments) = (registry(), subject("payments"));
    assert_eq!(registry.latest(&payments), Ok(None));
    assert_eq!(registry.look_up(&payments, "AVRO", FIRST), Ok(None));
    assert_eq!(registry.compatible(&payments, "AVRO", FIRST), Ok(Ok(())));
    let id = registry.register(&payments, "AVRO", FIRST).unwrap();
    assert_eq!(registry.register(&payments, "AVRO", FIRST), Ok(id), "it is there already");
    assert_eq!(registry.look_up(&payments, "AVRO", FIRST), Ok(Some(id)));
    assert_eq!(registry.look_up(&payments, "AVRO", SECOND), Ok(None));
    let latest = registry.latest(&payments).unwrap().unwrap();
    assert_eq!((latest.id, latest.version, latest.schema.text.as_str()), (id, 1, FIRST));
    let second = registry.register(&payments, "AVRO", SECOND).unwrap();
    assert_ne!(second, id);
    assert_eq!(registry.latest(&payments).unwrap().unwrap().version, 2);
    assert_eq!(registry.schema(id).unwrap().unwrap().text, FIRST);
    assert_eq!(registry.schema(0x7fff_0000), Ok(None));
}

#[test]
fn kinds_are_kept() {
    let (registry, alerts) = (registry(), subject("alerts"));
    let id = registry.register(&alerts, "PROTOBUF", PROTO).unwrap();
    let schema = registry.schema(id).unwrap().unwrap();
    assert_eq!(schema.kind.as_deref(), Some("PROTOBUF"));
    assert!(schema.text.contains("message A"));
    assert_eq!(registry.look_up(&alerts, "PROTOBUF", PROTO), Ok(Some(id)));
}

#[test]
fn what_the_rules_refuse_is_said() {
    let stand_in = StandIn::start();
    let registry = client(&stand_in.url, &Credentials::Nobody);
    registry.register("s", "AVRO", FIRST).unwrap();
    stand_in.conduct(Conduct { frozen: true, ..Conduct::default() });
    assert_eq!(registry.compatible("s", "AVRO", SECOND), Ok(Err("it is frozen".into())));
    let fault = registry.register("s", "AVRO", SECOND).unwrap_err();
    assert_eq!(fault.to_string(), format!("{} answers 409: no (error 409)", stand_in.url));
    assert!(!fault.passes() && !fault.is_about_rights());
}

#[test]
fn credentials_are_shown_to_the_registry_and_to_nobody_else() {
    let stand_in = StandIn::start();
    let authorization = Some("Basic YW5uOmh1bnRlcjI=".to_owned());
    stand_in.conduct(Conduct { authorization, ..Conduct::default() });
    let password = || Secret::new("hunter2".to_owned());
    let ann = client(&stand_in.url, &Credentials::Basic { username: "ann".into(), password: password() });
    assert_eq!(ann.latest("s"), Ok(None));
    assert!(!format!("{ann:?}").contains("hunter2") && !format!("{ann:?}").contains("YW5u"));
    let fault = client(&stand_in.url, &Credentials::Nobody).latest("s").unwrap_err();
    assert!(fault.is_about_rights() && !fault.passes(), "{fault}");
    stand_in.conduct(Conduct { authorization: Some("Bearer hunter2".into()), ..Conduct::default() });
    assert_eq!(client(&stand_in.url, &Credentials::Token(password())).latest("s"), Ok(None));
}

#[test]
fn the_next_address_is_asked_where_one_does_not_answer() {
    let (broken, good) = (StandIn::start(), StandIn::start());
    broken.conduct(Conduct { status: Some(503), ..Conduct::default() });
    let gone = "http://127.0.0.1:9".to_owned();
    let urls = [broken.url.clone(), gone.clone(), format!("{}/", good.url)];
    let registry = Registry::new(&urls, &Credentials::Nobody, None).unwrap();
    assert_eq!(registry.latest("s"), Ok(None));
    assert_eq!(registry.latest("s"), Ok(None));
    assert_eq!((broken.requests("latest"), good.requests("latest")), (1, 2), "it stays with the good one");
    let fault = Registry::new(&urls[..2], &Credentials::Nobody, None).unwrap().latest("s").unwrap_err();
    assert!(matches!(&fault, Fault::Silent { url, .. } if *url == gone) && fault.passes(), "{fault}");
}

#[test]
fn what_is_no_registry_is_told() {
    let stand_in = StandIn::start();
    let fault = client(&format!("{}/api", stand_in.url), &Credentials::Nobody).latest("s").unwrap_err();
    assert!(fault.to_string().ends_with("nothing is at /subjects/s/versions/latest"), "{fault}");
    stand_in.conduct(Conduct { status: Some(302), ..Conduct::default() });
    let fault = client(&stand_in.url, &Credentials::Nobody).latest("s").unwrap_err();
    assert!(!fault.passes() && fault.to_string().contains("not followed"), "{fault}");
}

#[test]
fn an_answer_that_is_too_long_is_not_asked_for_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", LONGEST + 1);
            // Who asked hangs up before the end.
            let _ = (&stream).write_all(head.as_bytes()).and_then(|()| {
                std::io::copy(&mut std::io::repeat(b' ').take(LONGEST + 1), &mut &stream).map(drop)
            });
        }
    });
    let fault = client(&url, &Credentials::Nobody).latest("s").unwrap_err();
    assert!(!fault.passes() && fault.to_string().contains("longer than 16777216 bytes"), "{fault}");
}

#[test]
fn subjects_of_any_name_are_asked_for() {
    assert_eq!(escaped("google/protobuf/any.proto"), "google%2Fprotobuf%2Fany.proto");
    assert_eq!(short("a\nb"), "a b");
    assert_eq!(short(&"x".repeat(600)).len(), QUOTED + 2);
}
