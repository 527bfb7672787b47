//! What the pages say beside Rust code: commands that can be run, links that lead somewhere, a table of contents that
//! is complete. Rust blocks are compiled as doctests of `lib.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Put before a block that can't be checked, with the reason.
const NOT_CHECKED: &str = "<!-- not checked:";

struct Page {
    /// Relative to the root of the checkout.
    path: PathBuf,
    text: String,
}

/// A fenced block.
struct Block {
    language: String,
    lines: Vec<(usize, String)>,
    checked: bool,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("docs/ lies in the checkout")
}

fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = markdown(&root().join("docs/src"));
    for folder in ["", "examples"] {
        paths.extend(markdown_here(&root().join(folder)));
    }
    for example in std::fs::read_dir(root().join("examples")).expect("examples/ can be read") {
        paths.extend(markdown_here(&example.expect("an entry").path()));
    }
    let page = |path: PathBuf| Page {
        text: std::fs::read_to_string(&path).expect("a page is UTF-8"),
        path: path.strip_prefix(root()).expect("it lies in the checkout").to_owned(),
    };
    paths.into_iter().map(page).collect()
}

fn markdown_here(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|ext| ext == "md"));
    found.sort();
    found
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let mut found = markdown_here(folder);
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(markdown(&path));
        }
    }
    found
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (n, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                let checked = !before.starts_with(NOT_CHECKED);
                open = Some(Block { language: language.trim().to_owned(), lines: Vec::new(), checked });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => block.lines.push((n + 1, line.to_owned())),
            (None, None) => {}
        }
        if !line.trim().is_empty() {
            before = line.trim();
        }
    }
    found
}

fn is_shell(language: &str) -> bool {
    matches!(language, "console" | "sh" | "shell" | "bash")
}

#[test]
fn every_command_can_be_run() {
    let commands = Commands::new();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        for block in blocks(&page.text).iter().filter(|block| is_shell(&block.language) && block.checked) {
            for (line, command) in joined(&block.lines) {
                seen += 1;
                if let Err(reason) = commands.check(&command) {
                    wrong.push(format!("{}:{line}: `{command}`: {reason}", page.path.display()));
                }
            }
        }
    }
    assert!(seen > 10, "the blocks were not found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Commands of a block: lines that end in a backslash go on, comments and empty lines are none.
fn joined(lines: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (n, line) in lines {
        let text = line.trim().trim_start_matches("$ ");
        let text = text.split_once("  # ").map_or(text, |(command, _)| command.trim_end());
        if !goes_on && (text.is_empty() || text.starts_with('#')) {
            continue;
        }
        let part = text.trim_end_matches('\\').trim();
        if goes_on {
            let command = &mut commands.last_mut().expect("a line that goes on has a beginning").1;
            command.push(' ');
            command.push_str(part);
        } else {
            commands.push((*n, part.to_owned()));
        }
        goes_on = text.ends_with('\\');
    }
    commands
}

/// What can be run in a checkout.
struct Commands {
    targets: BTreeSet<String>,
    packages: BTreeSet<String>,
    /// The text of `--help`, by command.
    help: BTreeMap<String, String>,
}

impl Commands {
    fn new() -> Self {
        let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap_or_default();
        let targets =
            makefile.lines().filter_map(|line| line.split_once(':')).flat_map(|(names, _)| names.split(' '));
        let targets = targets
            .filter(|name| !name.is_empty() && !name.starts_with(['.', '\t', '#']))
            .map(str::to_owned)
            .collect();
        let members =
            ["", "examples"].into_iter().flat_map(|folder| std::fs::read_dir(root().join(folder))).flatten();
        let manifests =
            members.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("Cargo.toml")).ok());
        let name = |manifest: String| {
            Some(manifest.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"').to_owned())
        };
        let mut help = BTreeMap::new();
        for command in ["", "run", "check", "topology", "topics", "topics create", "reset"] {
            let run = Command::new(env!("CARGO_BIN_EXE_flechtwerk-docs"))
                .args(command.split_whitespace())
                .arg("--help")
                .output()
                .expect("the program starts");
            assert!(run.status.success(), "there is no command `{command}`");
            help.insert(command.to_owned(), String::from_utf8(run.stdout).expect("the help is UTF-8"));
        }
        Commands { targets, packages: manifests.filter_map(name).collect(), help }
    }

    fn check(&self, command: &str) -> Result<(), String> {
        if let Some((first, second)) = command.split_once(" | ") {
            return self.check(first).and_then(|()| self.check(second));
        }
        if let Some((_, substituted)) =
            command.strip_prefix("export ").and_then(|rest| rest.split_once("=$("))
        {
            return self.check(substituted.trim_end_matches(')'));
        }
        let mut words: Vec<&str> = command.split_whitespace().collect();
        while words.first().is_some_and(|word| is_assignment(word)) {
            words.remove(0);
        }
        if words.first() == Some(&"export") && words.len() == 2 && is_assignment(words[1]) {
            return Ok(());
        }
        match words.as_slice() {
            [] => Ok(()),
            ["make", targets @ ..] => {
                targets.iter().filter(|word| !is_assignment(word)).try_for_each(|target| {
                    if self.targets.contains(*target) {
                        Ok(())
                    } else {
                        Err(format!("the Makefile has no target `{target}`"))
                    }
                })
            }
            ["cargo", "run", rest @ ..] => self.cargo_run(rest),
            ["cargo", "new", _] | ["cd", _] | ["printf", ..] | ["bash"] => Ok(()),
            ["psql", arguments @ ..] => self.files(arguments),
            ["cargo", "test" | "build" | "check", rest @ ..] => {
                let packages = rest.windows(2).filter(|pair| pair[0] == "-p");
                packages.map(|pair| pair[1]).try_for_each(|package| self.package(package))
            }
            [script, rest @ ..] if script.contains("scripts/") => {
                // Beside the checkout, as in the README: ../flechtwerk/scripts/..
                let path = &script[script.find("scripts/").unwrap_or(0)..];
                if !root().join(path).is_file() {
                    return Err(format!("there is no {path}"));
                }
                match rest.iter().position(|word| *word == "--") {
                    Some(at) if ["scripts/kafka", "scripts/postgres"].contains(&path) => {
                        self.check(&rest[at + 1..].join(" "))
                    }
                    _ => Ok(()),
                }
            }
            _ => Err(format!(
                "can't be checked; if that is meant, put `{NOT_CHECKED} reason -->` before the block"
            )),
        }
    }

    fn package(&self, name: &str) -> Result<(), String> {
        if self.packages.contains(name) { Ok(()) } else { Err(format!("there is no package `{name}`")) }
    }

    /// What `--file` names is there.
    fn files(&self, arguments: &[&str]) -> Result<(), String> {
        let mut files = arguments.windows(2).filter(|pair| pair[0] == "--file").map(|pair| pair[1]);
        files
            .find(|file| !root().join(file).is_file())
            .map_or(Ok(()), |file| Err(format!("there is no {file}")))
    }

    fn binary(&self, name: &str) -> Result<(), String> {
        let examples = std::fs::read_dir(root().join("examples")).into_iter().flatten().flatten();
        let mut files = examples.map(|example| example.path().join(format!("src/bin/{name}.rs")));
        if files.any(|file| file.is_file()) {
            Ok(())
        } else {
            Err(format!("no example has a binary `{name}`"))
        }
    }

    fn cargo_run(&self, words: &[&str]) -> Result<(), String> {
        let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let (cargo, arguments) = (&words[..end], words.get(end + 1..).unwrap_or_default());
        for pair in cargo.windows(2).filter(|pair| pair[0] == "-p") {
            self.package(pair[1])?;
        }
        // Another program of an example, with flags of its own.
        if let Some(at) = cargo.iter().position(|word| *word == "--bin") {
            return self.binary(cargo.get(at + 1).copied().unwrap_or_default());
        }
        let named: Vec<&str> = arguments.iter().copied().take_while(|word| !word.starts_with('-')).collect();
        let command = match named.as_slice() {
            ["topics", "create", ..] => "topics create",
            [first, ..] => first,
            // Without a command it is `run`; the help of all commands is `--help` alone.
            [] if arguments.iter().all(|word| *word == "--help") => "",
            [] => "run",
        };
        let help = self.help.get(command).ok_or_else(|| format!("there is no command `{command}`"))?;
        let flags: BTreeSet<&str> = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
        let given = arguments.iter().filter(|word| word.starts_with('-'));
        given.map(|word| word.split('=').next().unwrap_or(word)).try_for_each(|flag| {
            if flags.contains(flag) { Ok(()) } else { Err(format!("`{command}` does not take `{flag}`")) }
        })
    }
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn every_setting_of_the_program_is_in_the_reference() {
    let commands = Commands::new();
    let reference = std::fs::read_to_string(root().join("docs/src/settings.md")).expect("the page exists");
    let help = &commands.help["run"];
    let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    let flags: BTreeSet<&str> =
        words.filter_map(|word| word.strip_prefix("--")).filter(|flag| !flag.is_empty()).collect();
    assert!(flags.contains("commit-interval"), "the flags were not found in:\n{help}");
    let missing: Vec<&&str> = flags
        .iter()
        .filter(|flag| !matches!(**flag, "help" | "version"))
        .filter(|flag| {
            !reference.contains(&format!("`{}`", flag.replace('-', "_")))
                && !reference.contains(&format!("`--{flag}"))
        })
        .collect();
    assert!(missing.is_empty(), "not in docs/src/settings.md: {missing:?}");
}

#[test]
fn the_reference_of_metrics_is_that_of_the_code() {
    let page = std::fs::read_to_string(root().join("docs/src/metrics.md")).expect("the page exists");
    let code =
        std::fs::read_to_string(root().join("flechtwerk/src/observe/names.rs")).expect("the list exists");
    let names = |text: &str, quote: char| -> BTreeSet<String> {
        let metric = |part: &str| {
            part.starts_with("flechtwerk_") && part.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        };
        text.split(quote).filter(|part| metric(part)).map(str::to_owned).collect()
    };
    let mut declared = names(&code, '"');
    declared.remove("flechtwerk_");
    assert!(!declared.is_empty(), "the names were not found");
    assert_eq!(names(&page, '`'), declared);
}

#[test]
fn what_the_compiler_is_said_to_say_it_says() {
    let page = std::fs::read_to_string(root().join("docs/src/errors.md")).expect("the page exists");
    let mut expected = String::new();
    for macro_ in std::fs::read_dir(root().join("ui-tests/fail")).expect("the mistakes exist").flatten() {
        for file in std::fs::read_dir(macro_.path()).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|extension| extension == "stderr") {
                expected.push_str(&std::fs::read_to_string(file.path()).expect("a message is UTF-8"));
            }
        }
    }
    // A message stands there with other types and names, so what stands in backquotes may differ.
    let pieces = |line: &str| -> Vec<String> { line.split('`').step_by(2).map(str::to_owned).collect() };
    let known: BTreeSet<Vec<String>> =
        expected.lines().filter(|line| line.starts_with("error")).map(pieces).collect();
    let said: Vec<(usize, String)> = blocks(&page)
        .into_iter()
        .filter(|block| block.language == "text")
        .flat_map(|block| block.lines)
        .collect();
    let mut wrong = Vec::new();
    for (line, text) in said.iter().filter(|(_, text)| text.starts_with("error")) {
        if !known.contains(&pieces(text)) {
            wrong.push(format!("docs/src/errors.md:{line}: no mistake in ui-tests gives: {text}"));
        }
    }
    assert!(said.len() > 5, "the messages were not found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        pages.iter().map(|page| (&*page.path, anchors(&page.text))).collect();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in &pages {
        for (line, target) in links(&page.text) {
            if target.contains("://") {
                continue;
            }
            seen += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let folder = page.path.parent().expect("a page lies in a folder");
            let path = if file.is_empty() { page.path.clone() } else { tidy(&folder.join(file)) };
            let found = root().join(&path).exists()
                && (anchor.is_empty() || anchors.get(&*path).is_some_and(|all| all.contains(anchor)));
            if !found {
                wrong.push(format!("{}:{line}: {target}", page.path.display()));
            }
        }
    }
    assert!(seen > 10, "the links were not found");
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
}

/// Lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!code && !fence).then_some((n + 1, line))
    })
}

fn links(text: &str) -> Vec<(usize, String)> {
    let targets = |line: &str| -> Vec<String> {
        line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
    };
    prose(text).flat_map(|(n, line)| targets(line).into_iter().map(move |target| (n, target))).collect()
}

/// The anchors of the headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading =
        |line: &str| line.starts_with('#').then(|| line.trim_start_matches('#').trim().to_lowercase());
    let anchor = |text: String| {
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    prose(text).filter_map(|(_, line)| heading(line)).map(anchor).collect()
}

/// `a/b/../c` is `a/c`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                tidy.pop();
            }
            std::path::Component::CurDir => {}
            part => tidy.push(part),
        }
    }
    tidy
}

#[test]
fn the_table_of_contents_is_complete() {
    let folder = Path::new("docs/src");
    let summary = std::fs::read_to_string(root().join(folder).join("SUMMARY.md")).expect("it exists");
    let listed: BTreeSet<PathBuf> =
        links(&summary).into_iter().map(|(_, target)| folder.join(target)).collect();
    let pages = pages().into_iter().map(|page| page.path);
    let there: BTreeSet<PathBuf> =
        pages.filter(|path| path.starts_with(folder) && !path.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, there);
}

#[test]
fn every_rust_block_is_compiled() {
    let compiled: BTreeSet<PathBuf> =
        flechtwerk_docs::PAGES.iter().map(|path| tidy(&Path::new("docs").join(path))).collect();
    let mut wrong = Vec::new();
    for page in pages() {
        for block in blocks(&page.text) {
            let rust = block.language.starts_with("rust");
            if rust && !compiled.contains(&page.path) {
                wrong.push(format!("{}: has Rust, and is not in docs/lib.rs", page.path.display()));
            }
            if rust && block.language.split(',').any(|word| word == "ignore" || word == "text") {
                wrong.push(format!("{}: has a Rust block that is ignored", page.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
