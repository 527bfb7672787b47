//! What keeps a pipeline from starting, told to the person who has to mend it.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What is wrong, as a sentence without a full stop.
    pub(crate) what: String,
    /// Where: stage and topic, or setting and its source.
    pub(crate) place: String,
    /// Why it matters; may be empty where it is plain.
    pub(crate) why: String,
    /// What to do, with the exact command where there is one, on a line of its own.
    pub(crate) mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        for (label, text) in [("where", &self.place), ("why", &self.why), ("mend", &self.mend)] {
            if !text.is_empty() {
                write!(f, "\n   {label:<5}  {}", text.replace('\n', "\n          "))?;
            }
        }
        Ok(())
    }
}

/// How this binary is called, so that a mend can be copied and run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// As it was typed.
    pub(crate) name: String,
    /// Flags of this call that another command needs too, each with its value: cluster, file, namespace and mapping.
    pub(crate) flags: Vec<(String, String)>,
    /// The stages that this call has chosen by flags, in the same form.
    pub(crate) stages: Vec<(String, String)>,
}

impl Program {
    /// The whole command line of a subcommand. It is for the stages of this call, unless it names others.
    pub(crate) fn command(&self, rest: &str) -> String {
        let stages = self.stages.iter().filter(|_| !rest.contains("--stage "));
        self.line(rest, stages.chain(&self.flags))
    }

    /// The command line of a run that uses other topics for what the code calls by these names, whatever they are
    /// mapped to now: `TOPIC`, or `TOPIC_1`, `TOPIC_2` and so on.
    pub(crate) fn remapped(&self, names: &[&str]) -> String {
        let replaced = |(flag, value): &&(String, String)| {
            let mapped = value.split_once('=').map(|(mapped, _)| mapped.trim());
            flag != "--topic" || mapped.is_none_or(|mapped| !names.contains(&mapped))
        };
        let mut run = "run".to_owned();
        for (index, name) in names.iter().enumerate() {
            let number = if names.len() == 1 { String::new() } else { format!("_{}", index + 1) };
            run += &format!(" --topic {name}=TOPIC{number}");
        }
        self.line(&run, self.stages.iter().chain(&self.flags).filter(replaced))
    }

    fn line<'a>(&self, rest: &str, flags: impl Iterator<Item = &'a (String, String)>) -> String {
        let mut line = quoted(&self.name);
        line += " ";
        line += rest;
        for (flag, value) in flags {
            line += &format!(" {flag} {}", quoted(value));
        }
        line
    }
}

/// As a shell would read it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_leaves_out_what_is_empty_and_aligns_what_is_long() {
        let problem = Problem {
            what: "a is b".into(),
            place: "c".into(),
            why: String::new(),
            mend: "do d\nor e".into(),
        };
        assert_eq!(problem.to_string(), "a is b\n   where  c\n   mend   do d\n          or e");
    }

    fn flag(flag: &str, value: &str) -> (String, String) {
        (flag.to_owned(), value.to_owned())
    }

    #[test]
    fn commands_can_be_copied() {
        let program = Program {
            name: "./my app".into(),
            flags: vec![flag("--topic", "a=b"), flag("--x", "it's")],
            stages: vec![flag("--stage", "count")],
        };
        assert_eq!(program.command("check"), r"'./my app' check --stage count --topic a=b --x 'it'\''s'");
        assert_eq!(
            program.command("reset --stage merge"),
            r"'./my app' reset --stage merge --topic a=b --x 'it'\''s'"
        );
    }

    #[test]
    fn a_new_mapping_takes_the_place_of_the_one_there_was() {
        let flags = vec![flag("--topic", "a=b"), flag("--topic", "ab=c")];
        let program = Program { name: "demo".into(), flags, stages: vec![flag("--stage", "count")] };
        assert_eq!(program.remapped(&["a"]), "demo run --topic a=TOPIC --stage count --topic ab=c");
        assert_eq!(
            program.remapped(&["x"]),
            "demo run --topic x=TOPIC --stage count --topic a=b --topic ab=c"
        );
        assert_eq!(
            program.remapped(&["a", "x"]),
            "demo run --topic a=TOPIC_1 --topic x=TOPIC_2 --stage count --topic ab=c"
        );
    }
}
