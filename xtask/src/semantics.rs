//! The page of semantics against the tests: every numbered sentence and every attribute argument names tests that exist.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};

use crate::Faults;
use crate::inventory::{self, Test};
use crate::page::{Entry, Page, Proof};

/// The pages, and whether the page must exist. Tables of attribute arguments may stand on either.
const SEMANTICS: &str = "docs/src/semantics.md";
const ATTRIBUTES: &str = "docs/src/attributes.md";
/// Where the macros declare what arguments they know, as `("name", Kind::..)`.
const MACROS: &str = "flechtwerk-macros/src";

/// The faults, and a summary for when there are none.
pub fn check(root: &Path) -> Result<(Faults, String)> {
    let tests = inventory::tests(root)?;
    let mut faults = Faults::new();
    let (mut sentences, mut rows) = (0, 0);
    let mut documented = HashSet::new();
    for (place, required) in [(SEMANTICS, true), (ATTRIBUTES, false)] {
        let file = root.join(place);
        if !required && !file.exists() {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {place}"))?;
        let page = Page::read(&text);
        if required && page.sentences.is_empty() {
            faults.push(format!("{place}: no sentence is numbered (`S1.1 ..`)"));
        }
        let mut numbers = HashSet::new();
        for sentence in &page.sentences {
            if !numbers.insert(&sentence.name) {
                faults.push(format!("{place}:{}: {} is there twice", sentence.line, sentence.name));
            }
        }
        for entry in page.sentences.iter().chain(&page.rows) {
            check_entry(root, &tests, place, entry, &mut faults);
        }
        sentences += page.sentences.len();
        rows += page.rows.len();
        documented.extend(page.arguments);
    }
    let declared = declared_arguments(root)?;
    for argument in declared.iter().filter(|argument| !documented.contains(*argument)) {
        faults.push(format!(
            "{SEMANTICS}: the attribute argument `{argument}` is in no table with the columns `Argument` and `Tests`"
        ));
    }
    let summary = format!(
        "semantics: {sentences} sentences and {rows} rows name their tests, {} attribute arguments, {} tests",
        declared.len(),
        tests.len()
    );
    Ok((faults, summary))
}

fn check_entry(root: &Path, tests: &[Test], place: &str, entry: &Entry, faults: &mut Faults) {
    let mut fault = |text: String| faults.push(format!("{place}:{}: {}: {text}", entry.line, entry.name));
    match &entry.proof {
        Proof::Bad(text) => fault(text.clone()),
        Proof::NotTestable(_) => {}
        Proof::Tests(names) => {
            for name in names {
                if let Err(text) = resolve(root, tests, name) {
                    fault(text);
                }
            }
        }
    }
}

/// A name with a slash is a file; any other means a test by its path.
fn resolve(root: &Path, tests: &[Test], name: &str) -> Result<(), String> {
    if name.contains('/') {
        let file = root.join(name);
        if !file.is_file() {
            return Err(format!("there is no file {name}"));
        }
        if name.starts_with("ui-tests/") && !file.with_extension("stderr").is_file() {
            return Err(format!("{name} has no .stderr beside it, so nothing is expected of it"));
        }
        return Ok(());
    }
    let wanted: Vec<&str> = name.split("::").collect();
    let found: Vec<&Test> = tests.iter().filter(|test| test.is_named(&wanted)).collect();
    match found[..] {
        [] => Err(format!("there is no test `{name}`")),
        [test] if test.ignored => Err(format!("the test `{name}` is ignored")),
        [_] => Ok(()),
        [..] => {
            let all = found.iter().map(|test| test.path.join("::")).collect::<Vec<_>>().join(", ");
            Err(format!("`{name}` could be several tests, name more of the path: {all}"))
        }
    }
}

/// The attribute arguments that the macros know.
fn declared_arguments(root: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for file in inventory::sources(&root.join(MACROS))? {
        let text = fs::read_to_string(&file)?;
        let tokens: TokenStream =
            text.parse().map_err(|error| anyhow::anyhow!("cannot parse {}: {error}", file.display()))?;
        collect_declared(tokens, &mut names);
    }
    Ok(names)
}

fn collect_declared(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        let TokenTree::Group(group) = token else { continue };
        let inner: Vec<TokenTree> = group.stream().into_iter().take(3).collect();
        if let [TokenTree::Literal(name), TokenTree::Punct(comma), TokenTree::Ident(kind)] = &inner[..] {
            let name = name.to_string();
            if comma.as_char() == ',' && kind == "Kind" {
                names.insert(name.trim_matches('"').to_owned());
            }
        }
        collect_declared(group.stream(), names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with one crate of two tests, one of them ignored, and these semantics.
    fn workspace(semantics: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write(
            "flechtwerk-macros/src/args.rs",
            "const SPEC: &[(&str, Kind)] = &[(\"inputs\", Kind::Types), (\"order\", Kind::Word(&[\"offset\"]))];",
        );
        write("some-crate/Cargo.toml", "[package]\nname = \"some-crate\"\n");
        write(
            "some-crate/src/a/mod.rs",
            "#[test] fn good() {} mod b { #[test] fn twice() {} } mod c { #[test] fn twice() {} }",
        );
        write("some-crate/tests/outer.rs", "#[test] fn from_outside() {} #[test] #[ignore] fn idle() {}");
        write("ui-tests/fail/topic/bad_name.rs", "fn main() {}");
        write("ui-tests/fail/topic/bad_name.stderr", "error");
        write("ui-tests/fail/topic/unexpected.rs", "fn main() {}");
        write("target/debug/build/x/Cargo.toml", "name = \"stray\"");
        write(SEMANTICS, semantics);
        root
    }

    const ARGUMENTS: &str = "\n| Attribute | Argument | Tests |\n|---|---|---|\n| `transformer` | `inputs`, `order` | `a::good` |\n";

    fn faults(semantics: &str) -> Faults {
        check(workspace(semantics).path()).unwrap().0
    }

    #[test]
    fn a_page_whose_tests_exist_passes() {
        let page = format!(
            "- S1.1 One.\n  Tests: `good`, `a::b::twice`, `some_crate::a::c::twice`\n- S1.2 Two.\n  Tests: `outer::from_outside`, `ui-tests/fail/topic/bad_name.rs`\n- S1.3 Three.\n  Not testable: a promise\n{ARGUMENTS}"
        );
        assert_eq!(faults(&page), Faults::new());
    }

    #[test]
    fn each_fault_is_found_and_names_its_place() {
        for (sentence, expected) in [
            ("S1.1 One.", "no test is named"),
            ("S1.1 One.\n  Tests: `bad`", "there is no test `bad`"),
            ("S1.1 One.\n  Tests: `other::good`", "there is no test `other::good`"),
            ("S1.1 One.\n  Tests: `twice`", "could be several tests"),
            ("S1.1 One.\n  Tests: `idle`", "is ignored"),
            ("S1.1 One.\n  Tests: `ui-tests/fail/topic/gone.rs`", "there is no file"),
            ("S1.1 One.\n  Tests: `ui-tests/fail/topic/unexpected.rs`", "has no .stderr"),
            ("S1.1 One.\n  Tests: `good`\n- S1.1 Two.\n  Tests: `good`", "is there twice"),
        ] {
            let faults = faults(&format!("- {sentence}\n{ARGUMENTS}"));
            assert_eq!(faults.len(), 1, "{sentence}: {faults:?}");
            assert!(faults[0].contains(expected), "{sentence}: {faults:?}");
            assert!(faults[0].starts_with("docs/src/semantics.md:"), "{faults:?}");
        }
    }

    #[test]
    fn every_argument_that_a_macro_knows_must_be_in_a_table() {
        let page = "- S1.1 One.\n  Tests: `good`\n\n| Argument | Tests |\n|---|---|\n| `inputs` | `good` |\n";
        let faults = faults(page);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("`order`"), "{faults:?}");
    }

    #[test]
    fn a_page_without_sentences_is_a_fault() {
        assert!(faults(ARGUMENTS)[0].contains("no sentence is numbered"));
    }
}
