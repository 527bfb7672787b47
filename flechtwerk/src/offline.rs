//! The command line without the feature `kafka`: it shows the topology, and says of everything else what is missing.
//!
//! Its few arguments are read by hand: the parser of the whole command line comes with the feature.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use crate::Pipeline;
use crate::chosen::{Chosen, choose, infos};
use crate::naming::{Known, Mapping, list, mapped_twice};
use crate::nearest::nearest;
use crate::report::Problem;
use crate::topology::Topology;

/// What keeps most commands from working, and how to have them.
const WITHOUT: &str = "this program was built without the feature `kafka` of flechtwerk";
const MEND: &str = "build it with that feature, which is on by default";

/// Runs what can be run without a cluster; arguments are those of the process.
pub(crate) fn run(pipeline: &Pipeline) -> ExitCode {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    match answer(pipeline, arguments.collect()) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprint!("{text}");
            ExitCode::from(2)
        }
    }
}

/// What the command line has with the feature `kafka`.
const COMMANDS: &[&str] = &["run", "check", "topology", "topics", "reset"];
/// What is understood here.
const FLAGS: &[&str] = &["--format", "--stage", "--namespace", "--topic"];

/// What was asked for.
#[derive(Default)]
struct Asked {
    command: Option<String>,
    format: Option<String>,
    stages: Vec<String>,
    namespace: String,
    topics: BTreeMap<String, String>,
}

/// The text for standard output, or that for standard error.
fn answer(pipeline: &Pipeline, arguments: Vec<String>) -> Result<String, String> {
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return Ok(help(pipeline));
    }
    let mend = match arguments.iter().any(|argument| argument == "--dev") {
        true => "build it with the feature `dev-broker`, which brings that one along",
        false => MEND,
    };
    let (asked, known, mut problems) = read(arguments);
    let command = asked.command.as_deref().unwrap_or("run");
    match command {
        "topology" | "check" => {}
        // Of a command that can't work the flags don't matter.
        known if COMMANDS.contains(&known) => {
            return Err(format!("error: `{known}` needs a cluster, and {WITHOUT}; {mend}\n"));
        }
        unknown => {
            let hint = match nearest(unknown, COMMANDS.iter().copied()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::new(),
            };
            return Err(format!("error: there is no command `{unknown}`{hint}\n\n{}", help(pipeline)));
        }
    }
    let mapping = Mapping { namespace: &asked.namespace, topics: &asked.topics, known };
    let stages = choose(pipeline.name, &infos(pipeline.stages), &asked.stages, mapping);
    let stages = stages.unwrap_or_else(|more| {
        problems.extend(more);
        Vec::new()
    });
    let topology = Topology::new(pipeline.name, &stages);
    let text = match asked.format.as_deref().unwrap_or("text") {
        "text" => topology.text(),
        "mermaid" => topology.mermaid(),
        "dot" => topology.dot(),
        "json" => topology.json(),
        other => {
            problems.push(wrong(
                format!("{other:?} is no value for `format`"),
                "--format",
                "set it to text, mermaid, dot or json",
            ));
            String::new()
        }
    };
    if !problems.is_empty() {
        return Err(told(&problems));
    }
    if command == "check" {
        return Err(format!(
            "stages and names are sound: {}\n\
             error: topics, changelogs and offsets were not looked at: {WITHOUT}; {MEND}\n",
            list(&names(&stages))
        ));
    }
    Ok(text)
}

fn names(stages: &[Chosen]) -> Vec<&'static str> {
    stages.iter().map(|stage| stage.names.stage).collect()
}

fn told(problems: &[Problem]) -> String {
    let mut text = String::new();
    for (index, problem) in problems.iter().enumerate() {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}. {problem}", index + 1);
    }
    text
}

fn wrong(what: String, flag: &str, mend: impl Into<String>) -> Problem {
    Problem { what, place: format!("flag {flag}"), why: String::new(), mend: mend.into() }
}

/// What was asked for, which of the names in it are meant as they stand, and everything that was not understood.
fn read(arguments: Vec<String>) -> (Asked, Known, Vec<Problem>) {
    let (mut asked, mut problems) = (Asked::default(), Vec::new());
    let mut known = Known { namespace: true, topics: true };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if !argument.starts_with('-') {
            // What follows the first word of a command belongs to it: `topics create`.
            asked.command.get_or_insert(argument);
            continue;
        }
        let (flag, given) = match argument.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        let is_known = FLAGS.contains(&flag.as_str());
        // `run --bootstrap-servers ..` is no misspelling: the command is what can't be had.
        if !is_known && matches!(asked.command.as_deref(), None | Some("run" | "check" | "topics" | "reset"))
        {
            asked.command.get_or_insert_with(|| "run".into());
            break;
        }
        if !is_known {
            let mend = match nearest(&flag, FLAGS.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("leave it out: {WITHOUT}"),
            };
            problems.push(wrong(format!("{flag} is not known here"), &flag, mend));
            continue;
        }
        let value = given.or_else(|| arguments.next()).filter(|value| !value.is_empty());
        known.namespace &= flag != "--namespace" || value.is_some();
        let Some(value) = value else {
            known.topics &= flag != "--topic";
            problems.push(wrong(format!("{flag} needs a value"), &flag, format!("write {flag} VALUE")));
            continue;
        };
        match flag.as_str() {
            "--format" => asked.format = Some(value),
            "--stage" => asked.stages.extend(value.split(',').map(|name| name.trim().to_owned())),
            "--namespace" => asked.namespace = value,
            _ => known.topics &= map(&value, &mut asked.topics, &mut problems),
        }
    }
    (asked, known, problems)
}

/// Takes one `--topic`; false if it was not understood.
fn map(pairs: &str, topics: &mut BTreeMap<String, String>, problems: &mut Vec<Problem>) -> bool {
    let before = problems.len();
    for pair in pairs.split(',') {
        let split = pair.split_once('=').map(|(name, topic)| (name.trim(), topic.trim()));
        let Some((name, topic)) = split.filter(|(name, topic)| !name.is_empty() && !topic.is_empty()) else {
            let what = "an entry of `topic` is not of the form NAME=TOPIC".to_owned();
            problems.push(wrong(
                what,
                "--topic",
                "write --topic words=prod.words, with the name in the code first",
            ));
            continue;
        };
        match topics.get(name) {
            Some(other) if other != topic => {
                problems.push(mapped_twice(name, [other, topic], "flag --topic".into()));
            }
            _ => drop(topics.insert(name.to_owned(), topic.to_owned())),
        }
    }
    problems.len() == before
}

fn help(pipeline: &Pipeline) -> String {
    let stages = list(&infos(pipeline.stages).iter().map(|stage| stage.name).collect::<Vec<_>>());
    format!(
        "The pipeline `{name}`: {stages}\n\n\
         Usage: {name} topology [--format text|mermaid|dot|json] [--stage NAME].. [--namespace PREFIX] \
         [--topic NAME=TOPIC]..\n\n\
         All else needs a cluster, and {WITHOUT}; {MEND}.\n",
        name = pipeline.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::DEMO;

    fn call(line: &str) -> Result<String, String> {
        answer(&DEMO, line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn topology_works_without_a_cluster() {
        let beginnings =
            [("text", "pipeline demo\n"), ("mermaid", "flowchart LR\n"), ("dot", "digraph"), ("json", "{\n")];
        for (format, beginning) in beginnings {
            let text = call(&format!("topology --format {format}")).unwrap();
            assert!(text.starts_with(beginning), "{text}");
        }
        let text = call("topology --stage count --namespace=x- --topic words=prod.words").unwrap();
        assert!(text.contains("x-demo-count-changelog") && text.contains("mapped from words"), "{text}");
        assert!(!text.contains("─ merge"), "{text}");
    }

    #[test]
    fn what_needs_a_cluster_names_the_feature() {
        for line in [
            "",
            "run",
            "--stage count",
            "run --bootstrap-servers b:9",
            "--store memory",
            "reset",
            "topics create",
        ] {
            let text = call(line).unwrap_err();
            assert!(text.contains("built without the feature `kafka`"), "{line}: {text}");
        }
        let text = call("run --dev").unwrap_err();
        assert!(text.contains("the feature `dev-broker`"), "{text}");
        let text = call("check").unwrap_err();
        assert!(
            text.contains("names are sound: `count`, `enrich` and `merge`") && text.contains("`kafka`"),
            "{text}"
        );
    }

    #[test]
    fn mistakes_are_explained() {
        for (line, expected) in [
            ("topology --format svg", "text, mermaid, dot or json"),
            ("topology --stage cuont", "did you mean `count`?"),
            ("topology --topic words=counts", "have one name"),
            ("topology --topic words", "NAME=TOPIC"),
            ("topology --stage", "needs a value"),
            ("topology --no-such", "--no-such is not known here"),
            ("topology --fromat json", "did you mean --format?"),
            ("topology --topic words=a --topic words=b", "mapped twice: to `a` and to `b`"),
            ("toplogy", "did you mean `topology`?"),
            ("cehck --stage count", "did you mean `check`?"),
            ("frobnicate", "there is no command `frobnicate`\n"),
        ] {
            let text = call(line).unwrap_err();
            assert!(text.contains(expected), "{line}: {text}");
        }
        assert!(call("--help").unwrap().contains("Usage: demo topology"));
    }

    #[test]
    fn all_mistakes_of_a_call_are_one_report() {
        let text = call(
            "topology --format svg --stage cuont --topic wrods=x --topic counts --topic alerts=words --no-such \
             --namespace n/",
        )
        .unwrap_err();
        for expected in ["\"svg\"", "`cuont`", "`wrods`", "NAME=TOPIC", "--no-such", "application id"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        // `words` may be mapped as well: what was not understood might have said so.
        assert!(text.contains("\n6. ") && !text.contains("\n7. "), "{text}");
    }
}
