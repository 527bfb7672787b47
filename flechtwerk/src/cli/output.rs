//! What the commands print: answers on standard output, problems on standard error, colour on terminals alone.

use std::io::{self, Write};

use crate::startup::Problem;

/// The two streams, and whether they are terminals.
pub(super) struct Output<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) err: &'a mut dyn Write,
    /// Standard error is a terminal.
    pub(super) terminal: bool,
    /// Standard error may be coloured.
    pub(super) colour: bool,
}

const BOLD_RED: &str = "\u{1b}[1;31m";
const BOLD: &str = "\u{1b}[1m";
const GREEN: &str = "\u{1b}[32m";
const RESET: &str = "\u{1b}[0m";

impl Output<'_> {
    /// An answer. A reader that has gone away, as in `.. | head`, is no failure.
    pub(super) fn answer(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }

    /// A heading and all problems below it.
    pub(super) fn problems(&mut self, heading: &str, problems: &[Problem]) {
        let mut text = format!("{}\n", self.painted(BOLD_RED, heading));
        for (index, problem) in problems.iter().enumerate() {
            let problem = problem.to_string();
            let mut mending = false;
            for (line, content) in problem.lines().enumerate() {
                mending |= content.starts_with("   mend");
                text += &match line {
                    0 => format!("\n{}\n", self.painted(BOLD, &format!("{}. {content}", index + 1))),
                    _ if mending => format!("{}\n", self.painted(GREEN, content)),
                    _ => format!("{content}\n"),
                };
            }
        }
        self.complain(&text);
    }

    /// Anything else that is wrong.
    pub(super) fn complain(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.colour { format!("{code}{text}{RESET}") } else { text.to_owned() }
    }
}

/// True where standard error is a terminal.
pub(super) fn terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stderr())
}

/// True unless the environment says that colours are not wanted.
pub(super) fn colourful(environment: &[(std::ffi::OsString, std::ffi::OsString)]) -> bool {
    let value = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, value)| value);
    !(value("NO_COLOR").is_some_and(|value| !value.is_empty())
        || value("TERM").is_some_and(|term| term == "dumb"))
}

/// `1 problem`, `2 problems`
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_only_where_asked_for() {
        let problem = Problem { what: "a".into(), place: "b".into(), why: String::new(), mend: "c".into() };
        for colour in [true, false] {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            Output { out: &mut out, err: &mut err, terminal: false, colour }
                .problems("1 problem", std::slice::from_ref(&problem));
            assert!(out.is_empty());
            assert_eq!(String::from_utf8(err).unwrap().contains('\u{1b}'), colour);
        }
    }
}
