//! The tests that there are, found in the sources, each by its full path: crate, modules, function.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::{Attribute, Item};

/// A test function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Crate, modules and name.
    pub path: Vec<String>,
    /// The crate's folder, which may stand for its name.
    pub folder: String,
    /// `#[ignore]` stands on it.
    pub ignored: bool,
}

impl Test {
    fn new(modules: &[String], name: &Ident, ignored: bool) -> Test {
        let path = modules.iter().cloned().chain([name.to_string()]).collect();
        Test { path, folder: String::new(), ignored }
    }

    /// Whether this name can mean this test: its last part is the function, the others are in the path, in order. The first
    /// may be the crate's folder as well.
    pub fn is_named(&self, name: &[&str]) -> bool {
        let (Some((function, modules)), Some((own, path))) = (name.split_last(), self.path.split_last())
        else {
            return false;
        };
        let within = |modules: &[&str], path: &[String]| {
            let mut rest = path.iter();
            modules.iter().all(|module| rest.any(|part| part == module))
        };
        function == own
            && (within(modules, path)
                || modules.first().is_some_and(|first| *first == self.folder)
                    && within(&modules[1..], &path[1..]))
    }
}

/// All tests of the workspace in this folder.
pub fn tests(root: &Path) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    walk(root, &mut |folder| collect_crate(root, folder, &mut tests))?;
    Ok(tests)
}

/// The files of all Rust sources under a folder.
pub fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(folder, &mut |folder| {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
        Ok(())
    })?;
    files.sort();
    Ok(files)
}

/// Calls `visit` for the folder and those in it, but for hidden ones, build output and fixtures.
fn walk(folder: &Path, visit: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    visit(folder)?;
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let skipped = name.to_string_lossy().starts_with('.') || name == "target" || name == "fixtures";
        if entry.file_type()?.is_dir() && !skipped {
            walk(&entry.path(), visit)?;
        }
    }
    Ok(())
}

fn collect_crate(root: &Path, folder: &Path, tests: &mut Vec<Test>) -> Result<()> {
    let manifest = folder.join("Cargo.toml");
    if folder == root || !manifest.exists() {
        return Ok(());
    }
    let manifest = fs::read_to_string(&manifest)?;
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    let Some(name) = name else { return Ok(()) };
    let first = tests.len();
    for part in ["src", "tests", "benches"] {
        let part = folder.join(part);
        if !part.is_dir() {
            continue;
        }
        for file in sources(&part)? {
            let mut path = vec![name.replace('-', "_")];
            path.extend(modules(file.strip_prefix(&part)?));
            let text = fs::read_to_string(&file)?;
            let parsed =
                syn::parse_file(&text).with_context(|| format!("cannot parse {}", file.display()))?;
            collect_items(&parsed.items, &mut path, tests);
        }
    }
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    for test in &mut tests[first..] {
        test.folder = folder.clone().into_owned();
    }
    Ok(())
}

/// The modules that a file's place stands for.
fn modules(file: &Path) -> Vec<String> {
    let without_extension = file.with_extension("");
    let names = without_extension.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    names.filter(|name| !matches!(name.as_str(), "lib" | "main" | "mod")).collect()
}

fn collect_items(items: &[Item], path: &mut Vec<String>, tests: &mut Vec<Test>) {
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    path.push(module.ident.to_string());
                    collect_items(items, path, tests);
                    path.pop();
                }
            }
            Item::Fn(function) if function.attrs.iter().any(is_test) => {
                let ignored = function.attrs.iter().any(|attribute| attribute.path().is_ident("ignore"));
                tests.push(Test::new(path, &function.sig.ident, ignored));
            }
            // `proptest! { #[test] fn name(..) { .. } }` and macros of the tests' own. A macro's definition makes none.
            Item::Macro(call) if !call.mac.path.is_ident("macro_rules") => {
                collect_tokens(call.mac.tokens.clone(), path, tests);
            }
            _ => {}
        }
    }
}

/// `#[test]`, `#[tokio::test]` and the like.
fn is_test(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
}

fn collect_tokens(tokens: TokenStream, path: &[String], tests: &mut Vec<Test>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut marked = false;
    let mut ignored = false;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let text = group.stream().to_string();
                marked |= text == "test" || text.starts_with("tokio :: test");
                ignored |= text.starts_with("ignore");
            }
            TokenTree::Ident(word) if word == "fn" => {
                if let (true, Some(TokenTree::Ident(name))) = (marked, tokens.get(index + 1)) {
                    tests.push(Test::new(path, name, ignored));
                }
                marked = false;
                ignored = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut tests = Vec::new();
        collect_items(&syn::parse_file(text).unwrap().items, &mut vec!["krate".into()], &mut tests);
        tests.iter().map(|test| test.path.join("::") + if test.ignored { " ignored" } else { "" }).collect()
    }

    #[test]
    fn functions_with_a_test_attribute() {
        let text = "fn helper() {} #[test] fn one() {} mod inner { #[tokio::test(flavor = \"multi_thread\")] async fn two() {} } #[test] #[ignore] fn three() {}";
        assert_eq!(found(text), ["krate::one", "krate::inner::two", "krate::three ignored"]);
    }

    #[test]
    fn functions_inside_macros() {
        let text = "macro_rules! not { () => { #[test] fn zero() {} } } proptest! { #![cfg(x)] #[test] fn one(n in 0..3) { inner(); } fn helper() {} }";
        assert_eq!(found(text), ["krate::one"]);
    }

    #[test]
    fn text_and_comments_hold_no_tests() {
        assert!(
            found("const A: &str = \"#[test] fn one() {}\"; /* #[test] fn two() {} */ // #[test] fn x() {}")
                .is_empty()
        );
    }

    #[test]
    fn names_may_leave_out_modules_but_not_mix_them_up() {
        let path = ["flechtwerk_tests", "suite", "topics", "codec"].map(str::to_owned).to_vec();
        let test = Test { path, folder: "tests".into(), ignored: false };
        let named = |name: &str| test.is_named(&name.split("::").collect::<Vec<_>>());
        for name in [
            "codec",
            "topics::codec",
            "suite::codec",
            "tests::topics::codec",
            "flechtwerk_tests::suite::codec",
        ] {
            assert!(named(name), "{name}");
        }
        for name in
            ["topics", "codec::topics", "topics::suite::codec", "suite::tests::codec", "other::codec", ""]
        {
            assert!(!named(name), "{name}");
        }
    }

    #[test]
    fn a_files_place_is_its_module() {
        assert_eq!(modules(Path::new("lib.rs")), Vec::<String>::new());
        assert_eq!(modules(Path::new("task/mod.rs")), ["task"]);
        assert_eq!(modules(Path::new("task/restore.rs")), ["task", "restore"]);
    }
}
