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
    /// Flags of this call that another command needs too: cluster, file, namespace and mapping.
    pub(crate) flags: Vec<String>,
}

impl Program {
    /// The whole command line of a subcommand.
    pub(crate) fn command(&self, rest: &str) -> String {
        let mut line = quoted(&self.name);
        line += " ";
        line += rest;
        for flag in &self.flags {
            line += " ";
            line += &quoted(flag);
        }
        line
    }
}

/// As a shell would read it back.
fn quoted(word: &str) -> String {
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

    #[test]
    fn commands_can_be_copied() {
        let program = Program {
            name: "./my app".into(),
            flags: vec!["--topic".into(), "a=b".into(), "--x".into(), "it's".into()],
        };
        assert_eq!(program.command("check"), r"'./my app' check --topic a=b --x 'it'\''s'");
    }
}
