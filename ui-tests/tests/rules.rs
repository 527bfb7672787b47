//! The rules for the texts under `fail/`, which the README states.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files whose mistake gives another number of errors than one, and why.
const EXCEPTIONS: [(&str, usize, &str); 8] = [
    ("transformer/several_mistakes", 4, "four mistakes on purpose"),
    ("transformer/body_and_attribute", 2, "two mistakes on purpose"),
    ("transformer/associated_function", 4, "a macro can't see the `impl` around a function"),
    ("transformer/input_not_a_topic", 3, "rustc reports each use of such a type in the function itself"),
    ("transformer/output_not_a_topic", 2, "rustc reports each use of such a type in the function itself"),
    ("derive_input/variant_not_a_topic", 7, "rustc reports each use of such a type"),
    ("resource/not_send", 2, "`Send` and `Sync` are two"),
    ("pipeline/stage_beside_module", 2, "rustc's own rule for names"),
];

/// All mistakes: name and path without extension.
fn mistakes() -> BTreeMap<String, PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    let mut mistakes = BTreeMap::new();
    for folder in fs::read_dir(&root).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path().with_extension("");
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            mistakes.insert(name, path);
        }
    }
    mistakes
}

/// Those mistakes that break a rule.
fn breaking(rule: impl Fn(&str, &str, &str) -> bool) -> Vec<String> {
    let mut names = vec![];
    for (name, path) in mistakes() {
        let source = fs::read_to_string(path.with_extension("rs")).unwrap_or_default();
        let text = fs::read_to_string(path.with_extension("stderr")).unwrap_or_default();
        if !rule(&name, &source, &text) {
            names.push(name);
        }
    }
    names
}

fn errors(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("error")).count()
}

#[test]
fn there_are_many() {
    assert!(mistakes().len() >= 45);
}

#[test]
fn each_says_what_it_is_and_what_comes_of_it() {
    let none: [&str; 0] = [];
    assert_eq!(breaking(|_, source, text| source.starts_with("//! ") && errors(text) > 0), none);
}

#[test]
fn one_mistake_is_one_error() {
    let expected: BTreeMap<_, _> = EXCEPTIONS.iter().map(|(name, count, _)| (*name, *count)).collect();
    let none: [&str; 0] = [];
    assert_eq!(
        breaking(|name, _, text| errors(text) == expected.get(name).copied().unwrap_or(1)),
        none,
        "these have another number of errors; if that can't be helped, list them with the reason"
    );
    let names = mistakes();
    assert!(
        EXCEPTIONS.iter().all(|(name, ..)| names.contains_key(*name)),
        "an exception for a file that is gone"
    );
}

#[test]
fn no_generated_name_shows() {
    let none: [&str; 0] = [];
    let generated = |text: &str| {
        text.match_indices("__").any(|(at, _)| text[at + 2..].starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    assert_eq!(breaking(|_, _, text| !generated(text)), none);
}

/// Whoever takes a wrong parameter learns nothing from how the library asks for the right ones.
#[test]
fn errors_about_parameters_show_no_source_of_the_library() {
    let none: [&str; 0] = [];
    let about_parameters = |name: &str| {
        ["shared/", "slot/"].iter().any(|folder| name.starts_with(folder))
            || ["_by_mut", "_by_alias", "_by_reference", "state_undeclared", "state_disagrees", "/returns_"]
                .iter()
                .any(|part| name.contains(part))
    };
    let shows = |text: &str| text.contains("flechtwerk/src/glue/");
    // A function is no parameter of a stage.
    let is_function = |name: &str| name.starts_with("upgrade_from/");
    assert_eq!(breaking(|name, _, text| is_function(name) || !about_parameters(name) || !shows(text)), none);
}

#[test]
fn errors_point_into_the_users_file() {
    let none: [&str; 0] = [];
    // The line after each error is where it is.
    let into_file = |name: &str, text: &str| {
        let lines: Vec<_> = text.lines().collect();
        let places = (0..lines.len()).filter(|n| lines[*n].starts_with("error")).map(|n| lines.get(n + 1));
        places
            .into_iter()
            .all(|place| place.is_some_and(|place| place.contains(&format!("--> fail/{name}.rs:"))))
    };
    assert_eq!(breaking(|name, _, text| into_file(name, text)), none);
}

#[test]
fn no_warning_distracts() {
    let none = ["pipeline/stage_beside_module"];
    assert_eq!(breaking(|_, _, text| !text.lines().any(|line| line.starts_with("warning"))), none);
}
