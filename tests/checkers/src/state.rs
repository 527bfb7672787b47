//! I4: local store = compacted changelog = model, key by key.

use std::collections::BTreeMap;

use crate::{Check, Violation};

/// Keys and encoded values, deleted ones left out.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// Folds a changelog partition's committed records, in their order, into what is left of it; `None` is a tombstone.
pub fn folded<'a>(records: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>) -> Entries {
    let mut entries = Entries::new();
    for (key, value) in records {
        match value {
            Some(value) => entries.insert(key.to_vec(), value.to_vec()),
            None => entries.remove(key),
        };
    }
    entries
}

/// Compares both places of one task's state with the model. `local`: `None` where the task has no store at hand.
pub fn check(task: &str, local: Option<&Entries>, changelog: &Entries, model: &Entries) -> Vec<Violation> {
    let mut violations = differences(task, "changelog", changelog, model);
    if let Some(local) = local {
        violations.extend(differences(task, "store", local, model));
    }
    violations
}

fn differences(task: &str, place: &'static str, found: &Entries, model: &Entries) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut add = |kind: &'static str, key: &[u8]| {
        let what = format!("task {task}: key {} in the {place}", key.escape_ascii());
        violations.push(Violation::new(Check::State, kind, what));
    };
    let store = place == "store";
    for (key, value) in model {
        match found.get(key) {
            None => add(if store { "store lost a key" } else { "changelog lost a key" }, key),
            Some(other) if other != value => {
                add(if store { "store has another value" } else { "changelog has another value" }, key);
            }
            Some(_) => {}
        }
    }
    for key in found.keys().filter(|key| !model.contains_key(*key)) {
        add(if store { "store kept a deleted key" } else { "changelog kept a deleted key" }, key);
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn entries(list: &[(&str, &str)]) -> Entries {
        list.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
    }

    #[test]
    fn equal_states_pass() {
        let model = entries(&[("a", "1"), ("b", "2")]);
        assert_eq!(check("0", Some(&model), &model, &model), []);
        assert_eq!(check("0", None, &model, &model), []);
    }

    #[test]
    fn each_difference_has_its_name() {
        let model = entries(&[("a", "1"), ("b", "2")]);
        let bad = [
            ("lost a key", entries(&[("a", "1")])),
            ("has another value", entries(&[("a", "1"), ("b", "1")])),
            ("kept a deleted key", entries(&[("a", "1"), ("b", "2"), ("c", "3")])),
        ];
        for (kind, found) in bad {
            assert_eq!(kinds(&check("0", Some(&found), &model, &model)), [format!("store {kind}")]);
            assert_eq!(kinds(&check("0", Some(&model), &found, &model)), [format!("changelog {kind}")]);
        }
    }

    #[test]
    fn a_changelog_folds_to_its_last_values() {
        let records: [(&[u8], Option<&[u8]>); 4] =
            [(b"a", Some(b"1")), (b"b", Some(b"1")), (b"a", Some(b"2")), (b"b", None)];
        assert_eq!(folded(records), entries(&[("a", "2")]));
    }
}
