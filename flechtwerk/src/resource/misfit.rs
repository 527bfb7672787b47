//! What is wrong with a setting of a resource: its name and what would do, and never its value, which may be a secret that
//! stands in the wrong place.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use super::tree::Tree;

/// A setting that is not what a resource's type wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The setting's name in the resource's table, outermost last.
    path: Vec<String>,
    pub(super) what: String,
    pub(super) kind: Kind,
}

/// What can be done about a [`Misfit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Set it.
    Missing { secret: bool },
    /// Take it away: there is no such setting.
    Unknown { known: &'static [&'static str] },
    /// Set it to something else.
    Wrong { variants: &'static [&'static str] },
    /// As the last; the type's own words, which may repeat what it was given.
    Custom,
    /// A secret was looked for where [`Tree::Nothing`] stands.
    NoSecret,
}

impl Misfit {
    pub(super) fn new(what: impl fmt::Display) -> Self {
        Misfit { path: vec![], what: what.to_string(), kind: Kind::Wrong { variants: &[] } }
    }

    pub(super) fn no_secret() -> Self {
        Misfit { kind: Kind::NoSecret, ..Misfit::new("missing") }
    }

    pub(super) fn under(mut self, name: impl Into<String>) -> Self {
        self.path.push(name.into());
        self
    }

    /// The same as a mistake in the name, not in what it stands for.
    pub(super) fn of_name(self, name: &str) -> Self {
        match self.path.is_empty() {
            true => Misfit { kind: Kind::Unknown { known: &[] }, ..self.under(name) },
            false => self,
        }
    }

    /// The same without what the setting holds, which may be a secret. What is short is in many words by chance.
    pub(super) fn without(mut self, value: &Tree) -> Self {
        if self.kind == Kind::Custom {
            let mut texts = Vec::new();
            value.texts(&mut texts);
            for text in texts.into_iter().filter(|text| text.len() >= 4) {
                let escaped = text.escape_debug().to_string();
                self.what = self.what.replace(&escaped, "(not shown)").replace(text, "(not shown)");
            }
        }
        self
    }

    /// The setting's name in the resource's table, outermost first.
    pub(super) fn path(&self) -> Vec<String> {
        self.path.iter().rev().cloned().collect()
    }
}

/// `limits.rate`, `tags[0]`.
pub(super) fn dotted(path: &[String]) -> String {
    let mut name = String::new();
    for part in path {
        name += if name.is_empty() || part.starts_with('[') { "" } else { "." };
        name += part;
    }
    name
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.what),
            false => write!(f, "`{}`: {}", dotted(&self.path()), self.what),
        }
    }
}

impl std::error::Error for Misfit {}

/// What serde found, without the value.
fn kind_of(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "true or false",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
        Unexpected::Char(_) | Unexpected::Str(_) => "text",
        Unexpected::Seq => "a list",
        Unexpected::Map | Unexpected::StructVariant => "a table",
        Unexpected::Option | Unexpected::Unit => "nothing",
        _ => "something else",
    }
}

/// What serde wants, in the words of a settings file.
fn wanted(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    let whole = |from: i128, to: i128| format!("a whole number from {from} to {to}");
    match expected.as_str() {
        "u8" => whole(0, u8::MAX.into()),
        "u16" => whole(0, u16::MAX.into()),
        "u32" => whole(0, u32::MAX.into()),
        "i8" => whole(i8::MIN.into(), i8::MAX.into()),
        "i16" => whole(i16::MIN.into(), i16::MAX.into()),
        "i32" => whole(i32::MIN.into(), i32::MAX.into()),
        "u64" | "usize" => "a whole number from 0".into(),
        "i64" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" | "string" => "text".into(),
        "a sequence" => "a list".into(),
        "a map" => "a table".into(),
        other => match other.strip_prefix("struct ") {
            Some(name) => format!("a table (for {name})"),
            None => expected,
        },
    }
}

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Misfit { kind: Kind::Custom, ..Misfit::new(message) }
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Misfit::new(format_args!("this is {}, expected {}", kind_of(unexpected), wanted(expected)))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Misfit::new(format_args!("{} that will not do, expected {}", kind_of(unexpected), wanted(expected)))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        let what = format!("expected one of {}", expected.join(", "));
        Misfit { kind: Kind::Wrong { variants: expected }, ..Misfit::new(what) }
    }

    fn missing_field(field: &'static str) -> Self {
        Misfit { kind: Kind::Missing { secret: false }, ..Misfit::new("missing") }.under(field)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let what = "there is no such setting";
        Misfit { kind: Kind::Unknown { known: expected }, ..Misfit::new(what) }.under(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        let what = "set twice, under two names that mean the same";
        Misfit { kind: Kind::Unknown { known: &[] }, ..Misfit::new(what) }.under(field)
    }
}
