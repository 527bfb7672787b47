//! Settings of resources: tables `[resources.http]` of the file, and variables `FLECHTWERK_RESOURCES_HTTP_..` above them.
//!
//! Their types are the user's, so all that can be said here is which resource a setting belongs to.

use std::path::Path;

use figment::value::{Num, Value};

use super::values::text;
use crate::naming::list;
use crate::nearest::nearest;
use crate::resource::{Said, Tree};
use crate::startup::Problem;

/// Separates the names of nested settings in a variable.
const NESTED: &str = "__";

/// What was said about resources so far.
pub(super) struct Resources {
    /// The pipeline's, the longest names first: `http_proxy_url` belongs to `http_proxy`, if there is one.
    known: Vec<&'static str>,
    said: Said,
    /// Resource, path and value.
    variables: Vec<(&'static str, String, String)>,
}

impl Resources {
    pub(super) fn new(known: &[&'static str]) -> Self {
        let mut known = known.to_vec();
        known.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Resources { known, said: Said::default(), variables: vec![] }
    }

    /// A hint at what variables there are.
    pub(super) fn names(&self) -> Option<String> {
        match self.known.is_empty() {
            true => None,
            false => Some(format!("; the pipeline's resources are {}", list(&self.known))),
        }
    }

    /// Takes a variable without its prefix, in lower case; false if it is none of a resource's.
    pub(super) fn variable(&mut self, key: &str, value: &str) -> bool {
        let Some(key) = key.strip_prefix("resources_") else { return false };
        let mut fitting =
            self.known.iter().filter_map(|name| Some((*name, key.strip_prefix(name)?.strip_prefix('_')?)));
        match fitting.next() {
            Some((name, path)) if !path.is_empty() => {
                self.variables.push((name, path.to_owned(), value.to_owned()));
                true
            }
            _ => false,
        }
    }

    /// Something was said that could not be read, and may be about any of them.
    pub(super) fn unread(&mut self) {
        self.said.unread = true;
    }

    /// Names the settings file.
    pub(super) fn file_is(&mut self, path: &Path) {
        self.said.file = Some(path.to_owned());
    }

    /// Takes the table `resources` of the settings file.
    pub(super) fn file(&mut self, tables: Value, path: &Path, problems: &mut Vec<Problem>) {
        let mut problem = |what: String, place: &str, mend: String| {
            problems.push(Problem {
                what,
                place: format!("`{place}` in {}", path.display()),
                why: String::new(),
                mend,
            });
        };
        let Value::Dict(_, tables) = tables else {
            let mend = "write a table for each resource: [resources.NAME]".into();
            self.said.unread = true;
            return problem("`resources` is no table".into(), "resources", mend);
        };
        for (name, settings) in tables {
            let place = format!("resources.{name}");
            if !self.known.contains(&name.as_str()) {
                let mend = match nearest(&name, self.known.iter().copied()) {
                    Some(near) => {
                        self.said.unread_of.insert(near.to_owned());
                        format!("did you mean `[resources.{near}]`?")
                    }
                    None if self.known.is_empty() => "remove it: the pipeline has no resources".into(),
                    None => format!("its resources are {}", list(&self.known)),
                };
                problem(format!("the pipeline has no resource `{name}`"), &place, mend);
                continue;
            }
            if let Value::Dict(..) = settings {
                self.said.settings.insert(name, tree(settings));
                continue;
            }
            problem(
                format!("the settings of resource `{name}` are no table"),
                &place,
                format!("write them under [{place}]"),
            );
            self.said.unread_of.insert(name);
        }
    }

    /// All settings, variables over the file.
    pub(super) fn read(mut self, problems: &mut Vec<Problem>) -> Said {
        self.variables.sort();
        for pair in self.variables.windows(2) {
            let [(name, path, _), (other, longer, _)] = pair else { continue };
            if name == other
                && longer.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with(NESTED))
            {
                problems.push(Problem {
                    what: format!("both {} and {} are set", variable(name, path), variable(name, longer)),
                    place: "the environment".into(),
                    why: "one is a value in the place of the table that the other is in".into(),
                    mend: "remove one of them".into(),
                });
            }
        }
        for (name, path, value) in self.variables {
            let path: Vec<&str> = path.split(NESTED).collect();
            let settings = self.said.settings.entry(name.to_owned()).or_insert_with(Tree::empty);
            settings.put(&path, Tree::variable(value));
        }
        self.said
    }
}

fn variable(resource: &str, path: &str) -> String {
    super::keys::variable(&format!("resources_{resource}_{path}"))
}

fn tree(value: Value) -> Tree {
    match value {
        Value::Dict(_, dict) => {
            Tree::Table(dict.into_iter().map(|(name, value)| (name, tree(value))).collect())
        }
        Value::Array(_, items) => Tree::List(items.into_iter().map(tree).collect()),
        Value::Bool(_, value) => Tree::Bool(value),
        Value::Num(_, Num::F32(value)) => Tree::Float(value.into()),
        Value::Num(_, Num::F64(value)) => Tree::Float(value),
        Value::Num(_, number) => match number.to_i128().or_else(|| number.to_u128()?.try_into().ok()) {
            Some(value) => Tree::Integer(value.try_into().unwrap_or(i64::MAX)),
            None => Tree::Integer(i64::MAX),
        },
        other => Tree::Text { text: text(&other).unwrap_or_default(), in_file: true },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::settings::{Given, read};

    fn load(given: &Given) -> Result<crate::settings::load::Loaded, Vec<Problem>> {
        let (loaded, problems) = read(given);
        if problems.is_empty() { Ok(loaded) } else { Err(problems) }
    }

    fn given(file: &str, environment: &[(&str, &str)]) -> (tempfile::TempDir, Given) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.toml");
        std::fs::write(&path, file).unwrap();
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let resources = vec!["http", "http_proxy"];
        (dir, Given { environment, config: Some(path), resources, ..Given::default() })
    }

    fn text(text: &str, in_file: bool) -> Tree {
        Tree::Text { text: text.into(), in_file }
    }

    #[test]
    fn variables_win_over_the_file_and_the_longest_name_takes_them() {
        let (_dir, given) = given(
            "[resources.http]\nurl = \"a\"\nretries = 3\n[resources.http.limits]\nrate = 0.5",
            &[
                ("FLECHTWERK_RESOURCES_HTTP_URL", "b"),
                ("FLECHTWERK_RESOURCES_HTTP_LIMITS__STRICT", "true"),
                ("FLECHTWERK_RESOURCES_HTTP_PROXY_URL", "c"),
            ],
        );
        let loaded = load(&given).unwrap();
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        let mut http = Tree::empty();
        http.put(&["url"], text("b", false));
        http.put(&["retries"], Tree::Integer(3));
        http.put(&["limits", "rate"], Tree::Float(0.5));
        http.put(&["limits", "strict"], text("true", false));
        let mut proxy = Tree::empty();
        proxy.put(&["url"], text("c", false));
        assert_eq!(
            loaded.settings.resources.settings,
            BTreeMap::from([("http".to_owned(), http), ("http_proxy".to_owned(), proxy)])
        );
        assert_eq!(loaded.settings.resources.file, given.config);
        assert!(!format!("{:?}", loaded.settings).contains("\"b\""));
    }

    #[test]
    fn settings_of_no_resource_are_told() {
        let (_dir, given) = given("[resources.htp]\nurl = \"a\"", &[("FLECHTWERK_RESOURCES_FTP_URL", "b")]);
        let problems = load(&given).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].what, "the pipeline has no resource `htp`");
        assert_eq!(problems[0].mend, "did you mean `[resources.http]`?");
        let (_dir, given) = self::given("", &[("FLECHTWERK_RESOURCES_FTP_URL", "b")]);
        let warnings = load(&given).unwrap().warnings;
        assert!(warnings[0].contains("FLECHTWERK_RESOURCES_FTP_URL names no setting"), "{warnings:?}");
    }
}
