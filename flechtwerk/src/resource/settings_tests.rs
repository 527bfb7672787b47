//! Settings read into a type, and all that can be wrong with them.

use std::io::Write;

use serde::Deserialize;

use super::tree::Tree;
use super::{Secret, read};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Settings {
    url: String,
    #[serde(default)]
    retries: Option<u32>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    token: Option<Secret<String>>,
    #[serde(default)]
    pin: Option<Secret<u16>>,
    #[serde(default)]
    limits: Limits,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Quick,
    Slow,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
struct Limits {
    rate: f64,
    strict: bool,
}

fn text(text: &str, in_file: bool) -> Tree {
    Tree::Text { text: text.into(), in_file }
}

fn tree(entries: &[(&str, Tree)]) -> Tree {
    let mut tree = Tree::empty();
    for (name, value) in entries {
        let path: Vec<&str> = name.split('.').collect();
        tree.put(&path, value.clone());
    }
    tree
}

/// The settings, or all mistakes.
fn settings<T: serde::de::DeserializeOwned>(entries: &[(&str, Tree)]) -> Result<T, Vec<String>> {
    read(&tree(entries)).map_err(|misfits| misfits.iter().map(ToString::to_string).collect())
}

/// The only mistake.
#[track_caller]
fn mistake(entries: &[(&str, Tree)]) -> String {
    let mistakes = settings::<Settings>(entries).unwrap_err();
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes[0].clone()
}

#[test]
fn text_becomes_what_the_type_wants() {
    let read: Settings = settings(&[
        ("url", text("u", true)),
        ("retries", text("3", false)),
        ("tags", text("a, b", false)),
        ("mode", text("slow", false)),
        ("token", text("hunter2", false)),
        ("pin", text("1234", false)),
        ("limits.rate", text("0.5", false)),
        ("limits.strict", text("true", false)),
    ])
    .unwrap();
    assert_eq!((read.url.as_str(), read.retries, read.mode), ("u", Some(3), Mode::Slow));
    assert_eq!(read.tags, ["a", "b"]);
    assert_eq!(read.token.unwrap().expose(), "hunter2");
    assert_eq!(read.pin.unwrap().expose(), &1234);
    assert_eq!(read.limits, Limits { rate: 0.5, strict: true });
}

#[test]
fn what_the_file_holds_keeps_its_kind() {
    let list = Tree::List(vec![text("a", true)]);
    let read: Settings =
        settings(&[("url", text("u", true)), ("retries", Tree::Integer(7)), ("tags", list)]).unwrap();
    assert_eq!((read.retries, read.tags), (Some(7), vec!["a".to_owned()]));
}

#[test]
fn a_misfit_names_the_setting_and_never_the_value() {
    let url = ("url", text("u", true));
    let numbers = "a whole number from 0 to 4294967295";
    for (entry, expected) in [
        (
            ("retries", text("hunter2", false)),
            format!("`retries`: text that will not do, expected {numbers}"),
        ),
        (("retries", Tree::Integer(-1)), format!("`retries`: a number that will not do, expected {numbers}")),
        (("limits", text("hunter2", true)), "`limits`: this is text, expected a table (for Limits)".into()),
        (("mode", text("hunter2", true)), "`mode`: expected one of quick, slow".into()),
        (("pin", text("hunter2", false)), "`pin`: the secret is no u16 (it is not shown)".into()),
    ] {
        assert_eq!(mistake(&[url.clone(), entry]), expected);
    }
    assert_eq!(mistake(&[]), "`url`: missing");
    let misfits = read::<Settings>(&text("hunter2", true)).unwrap_err();
    assert_eq!(misfits[0].to_string(), "this is text, expected a table (for Settings)");
    let unknown = mistake(&[url, ("retrys", Tree::Integer(1))]);
    assert_eq!(unknown, "`retrys`: there is no such setting");
}

#[test]
fn a_secret_comes_from_a_file_of_its_own_not_from_the_settings_file() {
    let url = ("url", text("u", true));
    let refused = mistake(&[url.clone(), ("token", text("hunter2", true))]);
    assert!(refused.starts_with("`token`: a secret has no place in the settings file"), "{refused}");
    assert!(!refused.contains("hunter2"));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"hunter2\n").unwrap();
    let path = text(file.path().to_str().unwrap(), true);
    let read: Settings = settings(&[url.clone(), ("token.file", path)]).unwrap();
    assert_eq!(read.token.unwrap().expose(), "hunter2");
    let tree = tree(&[url, ("token", text("hunter2", false))]);
    assert!(!format!("{tree:?}").contains("hunter2"));
}

#[test]
fn all_mistakes_are_told_once_each() {
    let mistakes = settings::<Settings>(&[
        ("retries", text("many", false)),
        ("tags", Tree::List(vec![Tree::Integer(1), text("a", true), Tree::Bool(true)])),
        ("mode", text("hasty", true)),
        ("pin", text("hunter2", false)),
        ("limits.rate", text("fast", true)),
        ("tokn", text("hunter2", false)),
    ])
    .unwrap_err();
    assert_eq!(
        mistakes,
        [
            "`limits.rate`: text that will not do, expected a number",
            "`limits.strict`: missing",
            "`mode`: expected one of quick, slow",
            "`pin`: the secret is no u16 (it is not shown)",
            "`retries`: text that will not do, expected a whole number from 0 to 4294967295",
            "`tags[0]`: this is a number, expected text",
            "`tags[2]`: this is true or false, expected text",
            "`tokn`: there is no such setting",
            "`url`: missing",
        ]
    );
}

/// Types whose values have a form of their own, and what is in them.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Strange {
    #[serde(deserialize_with = "seconds")]
    every: u64,
    address: std::net::SocketAddr,
    nonzero: std::num::NonZeroU16,
    secret: Secret<std::net::Ipv4Addr>,
    letter: char,
    kind: Kind,
    #[serde(alias = "peers")]
    hosts: Vec<Host>,
    pair: (u8, bool),
    checked: Checked,
    any: serde_json::Map<String, serde_json::Value>,
    last: u8,
}

/// `5s`.
fn seconds<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    let number = text.strip_suffix('s').and_then(|number| number.parse().ok());
    number.ok_or_else(|| serde::de::Error::custom(format!("{text} is no time")))
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
enum Kind {
    Near(Host),
    Far { hops: u8 },
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "only read")]
struct Host {
    name: String,
    port: u16,
}

/// One that is more than its parts.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Host")]
struct Checked;

impl TryFrom<Host> for Checked {
    type Error = String;

    fn try_from(host: Host) -> Result<Self, String> {
        Err(format!("no host {:?} is good", host.name))
    }
}

#[test]
fn what_has_a_form_of_its_own_does_not_hide_the_others() {
    let missing = [
        "every", "address", "nonzero", "secret", "letter", "kind", "hosts", "pair", "checked", "any", "last",
    ];
    // Nothing will ever do for `checked`: what comes after it is not found.
    let found = settings::<Strange>(&[]).unwrap_err();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, missing[..9].iter().map(|name| format!("`{name}`: missing")).collect::<Vec<_>>());

    let host = |port: Tree| tree(&[("name", text("a", true)), ("port", port)]);
    let found = settings::<Strange>(&[
        ("every", Tree::Integer(5)),
        ("address", text("nowhere", true)),
        ("nonzero", Tree::Integer(0)),
        ("secret", text("hunter2", false)),
        ("kind.Far.hops", Tree::Integer(300)),
        ("peers", Tree::List(vec![host(Tree::Integer(1)), host(Tree::Integer(70_000)), Tree::empty()])),
        ("pair", Tree::List(vec![Tree::Integer(1), Tree::Bool(true), Tree::Bool(true)])),
        ("any", Tree::Bool(true)),
        ("last", text("first", false)),
    ])
    .unwrap_err();
    for (name, times) in [
        ("`every`: this is a number", 1),
        ("`address`: invalid socket address syntax", 1),
        ("`nonzero`: a number that will not do", 1),
        ("`secret`: the secret is no ", 1),
        ("`kind.Far.hops`: a number that will not do", 1),
        ("`peers[1].port`: a number that will not do", 1),
        ("`peers[2].name`: missing", 1),
        ("`peers[2].port`: missing", 1),
        ("`pair`: a list of 3, expected 2", 1),
        ("`any`: this is true or false, expected a table", 1),
        ("`last`: text that will not do", 1),
        ("`letter`: missing", 1),
        ("`checked`: missing", 1),
        ("hunter2", 0),
    ] {
        let count = found.iter().filter(|mistake| mistake.contains(name)).count();
        assert_eq!(count, times, "{name} in {found:#?}");
    }
    assert_eq!(found.len(), 13, "{found:#?}");
}

#[test]
fn a_message_of_the_type_itself_does_not_repeat_the_value() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Outer {
        inner: Checked,
    }
    let entries = [("inner.name", text("hunter2", true)), ("inner.port", Tree::Integer(1))];
    let found = settings::<Outer>(&entries).unwrap_err();
    assert_eq!(found, ["`inner`: no host \"(not shown)\" is good"]);
}

#[test]
fn a_list_of_the_environment_has_its_mistakes_told_one_by_one() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Ports {
        ports: Vec<u16>,
    }
    let found = settings::<Ports>(&[("ports", text("1,x,2,y", false))]).unwrap_err();
    let expected = "text that will not do, expected a whole number from 0 to 65535";
    assert_eq!(found, [format!("`ports[1]`: {expected}"), format!("`ports[3]`: {expected}")]);
}

/// Only what ends can be read, and only what can be read ends the search by itself.
#[test]
fn a_type_without_end_ends_the_search() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Endless {
        next: Box<Endless>,
    }
    assert_eq!(settings::<Endless>(&[]).unwrap_err(), ["`next`: missing"]);
}
