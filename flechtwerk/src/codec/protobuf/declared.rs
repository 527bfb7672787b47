//! The messages that a .proto file declares: all that has to be known of it to say which of them a value is. Nothing else in
//! it is looked at, so that whatever a registry accepts will do.

/// A message, and the messages that are declared in it.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    name: String,
    messages: Vec<Message>,
}

/// What a file declares.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Declared {
    package: String,
    messages: Vec<Message>,
}

/// The words and signs of a file, without white space and comments. Texts keep their quotes.
pub(super) fn tokens(file: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = file.trim_start();
    while let Some(first) = rest.chars().next() {
        let size = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else {
            let size = match first {
                '"' | '\'' => text(rest, first),
                _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            tokens.push(&rest[..size]);
            size
        };
        rest = rest[size..].trim_start();
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// Bytes of a text in quotes, these included.
fn text(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

impl Declared {
    /// `None`: the braces don't match.
    pub(super) fn of(file: &str) -> Option<Declared> {
        let tokens = tokens(file);
        let mut package = String::new();
        // Each open brace: the message that it belongs to, or none.
        let mut open: Vec<Option<Message>> = Vec::new();
        let mut messages = Vec::new();
        let mut at = 0;
        let mut begins = true;
        while at < tokens.len() {
            // An enum, a service or an option holds no messages.
            let within_message = open.iter().all(Option::is_some);
            match &tokens[at..] {
                ["message", name, "{", ..] if begins && within_message => {
                    open.push(Some(Message { name: (*name).to_owned(), messages: Vec::new() }));
                    at += 3;
                    continue;
                }
                ["package", name, ";", ..] if begins && open.is_empty() => {
                    package = (*name).to_owned();
                }
                ["{", ..] => open.push(None),
                ["}", ..] => {
                    if let Some(message) = open.pop()? {
                        match open.last_mut() {
                            Some(Some(around)) => around.messages.push(message),
                            _ => messages.push(message),
                        }
                    }
                }
                _ => {}
            }
            begins = matches!(tokens[at], "{" | "}" | ";");
            at += 1;
        }
        open.is_empty().then_some(Declared { package, messages })
    }

    /// The place of the message of this full name: which of the file's messages, which of those declared in it, and so on.
    pub(super) fn place(&self, full_name: &str) -> Option<Vec<usize>> {
        let name = match self.package.as_str() {
            "" => full_name,
            package => full_name.strip_prefix(package)?.strip_prefix('.')?,
        };
        let (mut place, mut within) = (Vec::new(), &self.messages);
        for part in name.split('.') {
            let index = within.iter().position(|message| message.name == part)?;
            place.push(index);
            within = &within[index].messages;
        }
        Some(place)
    }

    /// The full name of the message at a place.
    pub(super) fn name(&self, place: &[usize]) -> Option<String> {
        let mut name = self.package.clone();
        let mut within = &self.messages;
        for index in place {
            let message = within.get(*index)?;
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&message.name);
            within = &message.messages;
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
        syntax = "proto3";  // message No {
        package demo.bank;
        /* message Neither { */
        import "google/protobuf/timestamp.proto";
        option (note) = { text: "} message" };
        message First {
          string message = 1 [(x) = { a: "{" }];
          enum Kind { message = 0; }
          map<string, int32> counts = 2;
          oneof one { int32 a = 3; }
          message Inner { message Innermost {} }
          message Other {}
        }
        service S { rpc Get (First) returns (Second) { option (y) = '\'}'; } }
        message Second { int64 b = 1; }
    "#;

    #[test]
    fn messages_are_found_by_name_and_by_place() {
        let declared = Declared::of(FILE).unwrap();
        for (name, place) in [
            ("demo.bank.First", vec![0]),
            ("demo.bank.First.Inner", vec![0, 0]),
            ("demo.bank.First.Inner.Innermost", vec![0, 0, 0]),
            ("demo.bank.First.Other", vec![0, 1]),
            ("demo.bank.Second", vec![1]),
        ] {
            assert_eq!(declared.place(name), Some(place.clone()), "{name}");
            assert_eq!(declared.name(&place).as_deref(), Some(name));
        }
        assert_eq!(declared.place("demo.bank.No"), None);
        assert_eq!(declared.place("First"), None);
        assert_eq!(declared.name(&[2]), None);
        assert_eq!(Declared::of("message A {}").unwrap().place("A"), Some(vec![0]));
    }

    #[test]
    fn braces_that_do_not_match_are_no_file() {
        for file in ["message A {", "}", "message A {}}", "message A { \"}"] {
            assert_eq!(Declared::of(file), None, "{file}");
        }
    }

    #[test]
    fn comments_and_spaces_make_no_difference() {
        assert_eq!(tokens("message A{int32 a=1;} // x"), tokens("message A {\n  int32 a = 1;\n}\n"));
        assert_ne!(tokens("message A { int32 a = 1; }"), tokens("message A { int32 a = 2; }"));
    }
}
