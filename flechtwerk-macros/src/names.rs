//! Names that will be names in Kafka.

use syn::LitStr;

use crate::errors::Errors;

/// Kafka's limit for a topic.
pub(crate) const LONGEST: usize = 249;

/// What a stage's state topic adds to its application id.
pub(crate) const CHANGELOG: &str = "-changelog";

/// What is wrong with a name, if anything.
pub(crate) fn fault(what: &str, name: &str, longest: usize) -> Option<String> {
    if name.is_empty() {
        return Some(format!("{what} can't be empty"));
    }
    if let Some(c) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || "._-".contains(*c))) {
        return Some(format!("{c:?} can't be in {what}: Kafka allows letters, digits, `.`, `_` and `-`"));
    }
    if name == "." || name == ".." {
        return Some(format!("{what} can't be `{name}`, which Kafka reserves"));
    }
    if name.len() > longest {
        return Some(format!("{what} has at most {longest} characters, this has {}", name.len()));
    }
    None
}

/// Checks the name of a topic.
pub(crate) fn check_topic(name: &LitStr, errors: &mut Errors) {
    if let Some(fault) = fault("a topic's name", &name.value(), LONGEST) {
        errors.at(name, fault);
    }
}

/// Checks a name from which the names of a group and a changelog are made.
pub(crate) fn check_part(what: &str, name: &LitStr, errors: &mut Errors) {
    if let Some(fault) = fault(what, &name.value(), LONGEST - CHANGELOG.len()) {
        errors.at(name, format!("{fault}; consumer groups and changelog topics are named after it"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kafkas() {
        for name in ["a", "A.b_c-9", "...", &"x".repeat(249)] {
            assert_eq!(fault("a name", name, LONGEST), None, "{name}");
        }
        for name in ["", ".", "..", "a b", "ä", "a/b", &"x".repeat(250)] {
            assert!(fault("a name", name, LONGEST).is_some(), "{name}");
        }
    }
}
