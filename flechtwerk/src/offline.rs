//! The command line without the feature `kafka`: it shows the topology, and says of everything else what is missing.
//!
//! Its few arguments are read by hand: the parser of the whole command line comes with the feature.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use crate::Pipeline;
use crate::chosen::{Chosen, choose, infos};
use crate::naming::{Mapping, list};
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
    let asked = read(arguments);
    // Of a command that can't work the flags don't matter.
    let command = asked.as_ref().map_or(None, |asked| asked.command.as_deref()).unwrap_or("run").to_owned();
    let asked = match (asked, command.as_str()) {
        (Ok(asked), "topology" | "check") => asked,
        (Ok(_), other) => return Err(format!("error: `{other}` needs a cluster, and {WITHOUT}; {MEND}\n")),
        (Err(error), _) => return Err(format!("error: {error}\n\n{}", help(pipeline))),
    };
    let mapping = Mapping { namespace: &asked.namespace, topics: &asked.topics };
    let stages = choose(pipeline.name, &infos(pipeline.stages), &asked.stages, mapping).map_err(told)?;
    if command == "check" {
        return Err(format!(
            "stages and names are sound: {}\n\
             error: topics, changelogs and offsets were not looked at: {WITHOUT}; {MEND}\n",
            list(&names(&stages))
        ));
    }
    let topology = Topology::new(pipeline.name, &stages);
    match asked.format.as_deref().unwrap_or("text") {
        "text" => Ok(topology.text()),
        "mermaid" => Ok(topology.mermaid()),
        "dot" => Ok(topology.dot()),
        "json" => Ok(topology.json()),
        other => {
            Err(format!("error: {other:?} is no value for `format`: set it to text, mermaid, dot or json\n"))
        }
    }
}

fn names(stages: &[Chosen]) -> Vec<&'static str> {
    stages.iter().map(|stage| stage.names.stage).collect()
}

fn told(problems: Vec<Problem>) -> String {
    let mut text = String::new();
    for (index, problem) in problems.iter().enumerate() {
        // Writing to a string can't fail.
        let _ = writeln!(text, "{}. {problem}", index + 1);
    }
    text
}

fn read(arguments: Vec<String>) -> Result<Asked, String> {
    let mut asked = Asked::default();
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
        let known = ["--format", "--stage", "--namespace", "--topic"].contains(&flag.as_str());
        // `run --bootstrap-servers ..` is no misspelling: the command is what can't be had.
        if !known && matches!(asked.command.as_deref(), None | Some("run" | "check" | "topics" | "reset")) {
            asked.command.get_or_insert_with(|| "run".into());
            break;
        }
        if !known {
            return Err(format!("{flag} is not known here: {WITHOUT}"));
        }
        let value = given.or_else(|| arguments.next()).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--format" => asked.format = Some(value),
            "--stage" => asked.stages.push(value),
            "--namespace" => asked.namespace = value,
            _ => {
                let pair =
                    value.split_once('=').filter(|(name, topic)| !name.is_empty() && !topic.is_empty());
                let (name, topic) = pair.ok_or("--topic is written NAME=TOPIC")?;
                asked.topics.insert(name.to_owned(), topic.to_owned());
            }
        }
    }
    Ok(asked)
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
        ] {
            let text = call(line).unwrap_err();
            assert!(text.contains(expected), "{line}: {text}");
        }
        assert!(call("--help").unwrap().contains("Usage: demo topology"));
    }
}
