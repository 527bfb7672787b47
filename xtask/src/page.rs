//! Reads a page of the docs: its numbered sentences and its tables, each with the tests named for them.
//!
//! A numbered sentence begins a line with its number (`S3.7` or `S3.7c`, in a list or not) and ends where the next one, a
//! heading, a table or (after an empty line, not indented) a paragraph begins. Its tests stand at its end:
//!
//! ```text
//! - S3.7c A suspect producer is discarded.
//!   Tests: `suspect::after_a_timeout`, `ui-tests/fail/topic/bad_name.rs`
//! ```
//!
//! or `Not testable: ` with the reason. A table whose last column is headed `Tests` names the tests of each row the same way.

/// Where the tests of something should be named, and what stands there.
#[derive(Debug, PartialEq, Eq)]
pub enum Proof {
    /// The names of tests, at least one.
    Tests(Vec<String>),
    /// The reason why there can be none.
    NotTestable(String),
    /// What is wrong with it.
    Bad(String),
}

/// A numbered sentence or the row of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// `S3.7` or `S3.7c`, or the row's first cells.
    pub name: String,
    /// Counted from 1.
    pub line: usize,
    /// What proves it.
    pub proof: Proof,
}

/// What a page says.
#[derive(Debug, Default)]
pub struct Page {
    /// The numbered sentences.
    pub sentences: Vec<Entry>,
    /// The rows of tables that name tests.
    pub rows: Vec<Entry>,
    /// The backquoted names in the columns headed `Argument`.
    pub arguments: Vec<String>,
}

impl Page {
    /// Reads a page of Markdown.
    pub fn read(text: &str) -> Page {
        let mut page = Page::default();
        let mut sentence: Option<(String, usize, String)> = None;
        let mut table: Option<Vec<String>> = None;
        let mut fenced = false;
        let mut empty_line = false;
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let trimmed = line.trim();
            let after_empty_line =
                std::mem::replace(&mut empty_line, trimmed.is_empty()) && !trimmed.is_empty();
            if trimmed.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            if fenced {
                continue;
            }
            if trimmed.starts_with('|') {
                page.close(&mut sentence);
                page.row(&mut table, trimmed, line_number);
                continue;
            }
            table = None;
            if let Some((number, rest)) = numbered(trimmed) {
                page.close(&mut sentence);
                sentence = Some((number, line_number, rest.to_owned()));
            } else if trimmed.starts_with('#') || after_empty_line && !line.starts_with(' ') {
                page.close(&mut sentence);
            } else if let Some((_, _, text)) = &mut sentence {
                text.push('\n');
                text.push_str(trimmed);
            }
        }
        page.close(&mut sentence);
        page
    }

    fn close(&mut self, sentence: &mut Option<(String, usize, String)>) {
        if let Some((name, line, text)) = sentence.take() {
            self.sentences.push(Entry { name, line, proof: proof_at_the_end(&text) });
        }
    }

    fn row(&mut self, table: &mut Option<Vec<String>>, line: &str, line_number: usize) {
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let Some(header) = table else {
            *table = Some(cells);
            return;
        };
        let is_rule = cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c)));
        if is_rule || header.last().is_none_or(|last| last != "Tests") {
            return;
        }
        let (tests, named) = match cells.split_last() {
            Some((tests, named)) if cells.len() == header.len() => (tests.as_str(), named),
            _ => ("", &cells[..]),
        };
        let proof = if cells.len() == header.len() {
            proof(tests)
        } else {
            Proof::Bad(format!("the row has {} cells, its header {}", cells.len(), header.len()))
        };
        for (cell, head) in named.iter().zip(header.iter()) {
            if head == "Argument" {
                self.arguments.extend(backquoted(cell).0);
            }
        }
        let name = named.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(" ");
        self.rows.push(Entry { name, line: line_number, proof });
    }
}

/// The number that a line begins with, and the rest of the line.
fn numbered(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start_matches(['-', '*', ' ']);
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let after_s = line.strip_prefix('S')?;
    let section = digits(after_s);
    let after_dot = after_s.get(section..)?.strip_prefix('.')?;
    let item = digits(after_dot);
    if section == 0 || item == 0 {
        return None;
    }
    // One letter may follow: the sentences of an item.
    let letter = after_dot[item..].chars().next().filter(char::is_ascii_lowercase);
    let end = item + letter.map_or(0, char::len_utf8);
    // `S3.7` and `**S3.7**`, but no line that begins by citing `S3.7, ..`.
    let rest = after_dot[end..].trim_start_matches('*');
    let number = format!("S{}.{}", &after_s[..section], &after_dot[..end]);
    (rest.is_empty() || rest.starts_with(' ')).then_some((number, rest))
}

fn proof_at_the_end(text: &str) -> Proof {
    for mark in ["Tests:", "Not testable:"] {
        let at_line_start = text
            .lines()
            .scan(0, |offset, line| {
                let start = *offset;
                *offset += line.len() + 1;
                Some((start, line))
            })
            .find(|(_, line)| line.trim().starts_with(mark));
        if let Some((start, _)) = at_line_start {
            return proof(&text[start..]);
        }
    }
    Proof::Bad("no test is named; end it with a line `Tests: ..` or `Not testable: ..`".into())
}

fn proof(text: &str) -> Proof {
    let text = text.trim();
    if let Some(reason) = text.strip_prefix("Not testable:") {
        let reason = reason.trim();
        return match reason.is_empty() {
            true => Proof::Bad("`Not testable:` needs a reason".into()),
            false => Proof::NotTestable(reason.to_owned()),
        };
    }
    let (names, rest) = backquoted(text.strip_prefix("Tests:").unwrap_or(text));
    let rest = rest.trim_matches([' ', ',', '\n']);
    if !rest.is_empty() && rest.chars().any(|c| !" ,\n".contains(c)) {
        return Proof::Bad(format!("what names tests holds something else: {rest:?}"));
    }
    match names.is_empty() {
        true => Proof::Bad("no test is named".into()),
        false => Proof::Tests(names),
    }
}

/// The parts between backquotes, and all that is outside of them.
fn backquoted(text: &str) -> (Vec<String>, String) {
    let mut names = Vec::new();
    let mut rest = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            names.push(part.trim().to_owned());
        } else {
            rest.push_str(part);
        }
    }
    (names, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proofs(text: &str) -> Vec<(String, Proof)> {
        Page::read(text).sentences.into_iter().map(|entry| (entry.name, entry.proof)).collect()
    }

    #[test]
    fn sentences_end_with_their_tests() {
        let text = "# Title\n\n- S1.1 One, of\n  two lines (see S1.2).\n  Tests: `a::b`,\n  `c`\n- **S1.2b** Two.\n  Not testable: it is a promise\n\n### S2.1 Of three\nS2.1 Three.\n";
        let proofs = proofs(text);
        assert_eq!(proofs[0], ("S1.1".into(), Proof::Tests(vec!["a::b".into(), "c".into()])));
        assert_eq!(proofs[1], ("S1.2b".into(), Proof::NotTestable("it is a promise".into())));
        assert!(matches!(&proofs[2], (name, Proof::Bad(_)) if name == "S2.1"), "{proofs:?}");
        assert_eq!(proofs.len(), 3);
    }

    #[test]
    fn a_citation_at_the_start_of_a_line_begins_no_sentence() {
        assert_eq!(proofs("- S1.1 One, as in\n  S1.2, and\n  S1.3.\n  Tests: `a`").len(), 1);
    }

    #[test]
    fn a_paragraph_outside_of_the_list_ends_the_sentence() {
        let proofs = proofs(
            "- S1.1 One.\n\n  Still one.\n  Tests: `a`\n\nSomething else.\n- S1.2 Two.\n\nText.\nTests: `b`\n",
        );
        assert_eq!(proofs[0].1, Proof::Tests(vec!["a".into()]));
        assert!(matches!(proofs[1].1, Proof::Bad(_)), "{proofs:?}");
    }

    #[test]
    fn prose_after_the_mark_is_refused() {
        let proofs = proofs(
            "- S1.1 One.\n  Tests: `a` on good days\n- S1.2 Two.\n  Tests:\n- S1.3 Three.\n  Not testable:\n",
        );
        assert!(proofs.iter().all(|(_, proof)| matches!(proof, Proof::Bad(_))), "{proofs:?}");
    }

    #[test]
    fn code_blocks_are_not_read() {
        assert_eq!(proofs("```\n- S1.1 One.\n```\n").len(), 0);
    }

    #[test]
    fn rows_of_tables_that_name_tests() {
        let page = Page::read(
            "| Attribute | Argument | Tests |\n|---|:--|---|\n| `topic` | `key` | `a` |\n| `topic` | `value` | |\n\n| A | B |\n|---|---|\n| 1 | 2 |\n",
        );
        assert_eq!(page.rows.len(), 2);
        assert_eq!(page.rows[0].proof, Proof::Tests(vec!["a".into()]));
        assert!(matches!(page.rows[1].proof, Proof::Bad(_)));
        assert_eq!(page.rows[1].line, 4);
        assert_eq!(page.arguments, ["key", "value"]);
    }
}
