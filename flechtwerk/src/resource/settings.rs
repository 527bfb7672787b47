//! The settings of a resource: a tree that comes from file and environment, read into the user's type.
//!
//! The environment knows text alone, so text is read as a number or a boolean where the type wants one. Errors name the
//! setting and never its value, which may be a secret that stands in the wrong place.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};

use super::secret;

/// Settings of a resource, before their type is known.
#[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "only a run has settings"))]
#[derive(Clone, PartialEq)]
pub(crate) enum Tree {
    Bool(bool),
    Integer(i64),
    Float(f64),
    /// Text; of the settings file, or of the environment.
    Text {
        text: String,
        in_file: bool,
    },
    List(Vec<Tree>),
    Table(BTreeMap<String, Tree>),
}

impl Tree {
    /// No settings.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn empty() -> Self {
        Tree::Table(BTreeMap::new())
    }

    /// Puts `value` at a path of names, in the place of what is there.
    #[cfg(any(feature = "kafka", test))]
    pub(crate) fn put(&mut self, path: &[&str], value: Tree) {
        let Some((first, rest)) = path.split_first() else {
            *self = value;
            return;
        };
        if !matches!(self, Tree::Table(_)) {
            *self = Tree::empty();
        }
        if let Tree::Table(table) = self {
            table.entry((*first).to_owned()).or_insert_with(Tree::empty).put(rest, value);
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Tree::Bool(_) => "true or false",
            Tree::Integer(_) | Tree::Float(_) => "a number",
            Tree::Text { .. } => "text",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
        }
    }
}

/// Shows the names alone: values may be secret.
impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Table(table) => f.debug_map().entries(table).finish(),
            other => f.write_str(other.kind()),
        }
    }
}

/// Settings that are not what a resource's type wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The setting's name in the resource's table, outermost last.
    path: Vec<String>,
    what: String,
}

impl Misfit {
    fn new(what: impl fmt::Display) -> Self {
        Misfit { path: vec![], what: what.to_string() }
    }

    fn under(mut self, name: &str) -> Self {
        self.path.push(name.to_owned());
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.what);
        }
        let path: Vec<&str> = self.path.iter().rev().map(String::as_str).collect();
        write!(f, "`{}`: {}", path.join("."), self.what)
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

impl de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Misfit::new(message)
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Misfit::new(format_args!("this is {}, expected {expected}", kind_of(unexpected)))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Misfit::new(format_args!("{} that will not do, expected {expected}", kind_of(unexpected)))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Misfit::new(format_args!("expected one of {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Misfit::new("missing").under(field)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Misfit::new(format_args!("there is no such setting; there are {}", expected.join(", "))).under(field)
    }
}

/// Reads a [`Tree`].
pub(crate) struct Deserializer(pub(crate) Tree);

impl IntoDeserializer<'_, Misfit> for Deserializer {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The entries of a table; an error knows the name of its entry.
struct Entries(std::collections::btree_map::IntoIter<String, Tree>, Option<(String, Tree)>);

impl<'de> de::MapAccess<'de> for Entries {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        self.1 = self.0.next();
        let Some((name, _)) = &self.1 else { return Ok(None) };
        seed.deserialize(StrDeserializer::<Misfit>::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let Some((name, value)) = self.1.take() else {
            return Err(Misfit::new("a value was asked for before its name"));
        };
        seed.deserialize(Deserializer(value)).map_err(|misfit| misfit.under(&name))
    }
}

macro_rules! from_text {
    ($($method:ident $type:ident;)*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            match &self.0 {
                Tree::Text { text, .. } => match text.trim().parse::<$type>() {
                    Ok(value) => value.into_deserializer().deserialize_any(visitor),
                    Err(_) => Err(de::Error::invalid_value(Unexpected::Str(""), &visitor)),
                },
                _ => self.deserialize_any(visitor),
            }
        }
    )* };
}

impl<'de> de::Deserializer<'de> for Deserializer {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Tree::Bool(value) => visitor.visit_bool(value),
            Tree::Integer(value) => visitor.visit_i64(value),
            Tree::Float(value) => visitor.visit_f64(value),
            Tree::Text { text, .. } => visitor.visit_string(text),
            Tree::List(items) => {
                SeqDeserializer::new(items.into_iter().map(Deserializer)).deserialize_any(visitor)
            }
            Tree::Table(table) => visitor.visit_map(Entries(table.into_iter(), None)),
        }
    }

    from_text! {
        deserialize_bool bool;
        deserialize_i8 i8;
        deserialize_i16 i16;
        deserialize_i32 i32;
        deserialize_i64 i64;
        deserialize_u8 u8;
        deserialize_u16 u16;
        deserialize_u32 u32;
        deserialize_u64 u64;
        deserialize_f32 f32;
        deserialize_f64 f64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
    }

    /// In the environment a list is written with commas.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let list = match self.0 {
            Tree::Text { text, in_file: false } => Tree::List(
                text.split(',').map(|text| Tree::Text { text: text.trim().into(), in_file: false }).collect(),
            ),
            other => other,
        };
        Deserializer(list).deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if name != secret::NAME {
            return visitor.visit_newtype_struct(self);
        }
        let text = match self.0 {
            Tree::Table(table) => match table.get("file") {
                Some(Tree::Text { text: path, .. }) if table.len() == 1 => read(path)?,
                _ => return Err(Misfit::new("a secret is text, or the name of a file: `{ file = \"..\" }`")),
            },
            Tree::Text { text, in_file: false } => text,
            _ => {
                return Err(Misfit::new(
                    "a secret has no place in the settings file, which is copied, shown and checked in: put it into a \
                     file of its own, `{ file = \"..\" }`, or into the environment",
                ));
            }
        };
        visitor.visit_newtype_struct(Deserializer(Tree::Text { text, in_file: false }))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            Tree::Text { text, .. } => visitor.visit_enum(StringDeserializer::<Misfit>::new(text)),
            Tree::Table(table) => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries(table.into_iter(), None)))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier ignored_any
    }
}

fn read(path: &str) -> Result<String, Misfit> {
    match std::fs::read_to_string(path) {
        Ok(content) => match content.trim_end_matches(['\n', '\r']) {
            "" => Err(Misfit::new(format_args!(
                "the file {path} holds no text: write the secret into it, and nothing else"
            ))),
            secret => Ok(secret.to_owned()),
        },
        Err(error) => Err(Misfit::new(format_args!("the file {path} can't be read: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use serde::Deserialize;

    use super::super::Secret;
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        url: String,
        #[serde(default)]
        retries: Option<u32>,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        mode: Mode,
        #[serde(default)]
        token: Option<Secret<String>>,
        #[serde(default)]
        pin: Option<Secret<u16>>,
        #[serde(default)]
        limits: Limits,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        #[default]
        Quick,
        Slow,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    struct Limits {
        rate: f64,
        strict: bool,
    }

    fn text(text: &str, in_file: bool) -> Tree {
        Tree::Text { text: text.into(), in_file }
    }

    fn tree(entries: &[(&str, Tree)]) -> Tree {
        let mut tree = Tree::empty();
        for (name, value) in entries {
            let path: Vec<&str> = name.split('.').collect();
            tree.put(&path, value.clone());
        }
        tree
    }

    fn read(entries: &[(&str, Tree)]) -> Result<Settings, String> {
        Settings::deserialize(Deserializer(tree(entries))).map_err(|misfit| misfit.to_string())
    }

    #[test]
    fn text_becomes_what_the_type_wants() {
        let read = read(&[
            ("url", text("u", true)),
            ("retries", text("3", false)),
            ("tags", text("a, b", false)),
            ("mode", text("slow", false)),
            ("token", text("hunter2", false)),
            ("pin", text("1234", false)),
            ("limits.rate", text("0.5", false)),
            ("limits.strict", text("true", false)),
        ])
        .unwrap();
        assert_eq!((read.url.as_str(), read.retries, read.mode), ("u", Some(3), Mode::Slow));
        assert_eq!(read.tags, ["a", "b"]);
        assert_eq!(read.token.unwrap().expose(), "hunter2");
        assert_eq!(read.pin.unwrap().expose(), &1234);
        assert_eq!(read.limits, Limits { rate: 0.5, strict: true });
    }

    #[test]
    fn what_the_file_holds_keeps_its_kind() {
        let list = Tree::List(vec![text("a", true)]);
        let read = read(&[("url", text("u", true)), ("retries", Tree::Integer(7)), ("tags", list)]).unwrap();
        assert_eq!((read.retries, read.tags), (Some(7), vec!["a".to_owned()]));
    }

    #[test]
    fn a_misfit_names_the_setting_and_never_the_value() {
        let url = ("url", text("u", true));
        for (entry, expected) in [
            (("retries", text("hunter2", false)), "`retries`: text that will not do, expected u32"),
            (("retries", Tree::Integer(-1)), "`retries`: a number that will not do, expected u32"),
            (("limits.rate", text("hunter2", false)), "`limits.rate`: text that will not do, expected f64"),
            (("limits", text("hunter2", true)), "`limits`: this is text, expected struct Limits"),
            (("mode", text("hunter2", true)), "`mode`: expected one of quick, slow"),
            (("pin", text("hunter2", false)), "`pin`: the secret is no u16 (it is not shown)"),
        ] {
            assert_eq!(read(&[url.clone(), entry]).unwrap_err(), expected);
        }
        assert_eq!(read(&[]).unwrap_err(), "`url`: missing");
        assert_eq!(
            Settings::deserialize(Deserializer(text("hunter2", true))).unwrap_err().to_string(),
            "this is text, expected struct Settings"
        );
        let unknown = read(&[url, ("retrys", Tree::Integer(1))]).unwrap_err();
        assert!(unknown.starts_with("`retrys`"), "{unknown}");
    }

    #[test]
    fn a_secret_comes_from_a_file_of_its_own_not_from_the_settings_file() {
        let url = ("url", text("u", true));
        let refused = read(&[url.clone(), ("token", text("hunter2", true))]).unwrap_err();
        assert!(refused.starts_with("`token`: a secret has no place in the settings file"), "{refused}");
        assert!(!refused.contains("hunter2"));
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"hunter2\n").unwrap();
        let path = text(file.path().to_str().unwrap(), true);
        let read = read(&[url.clone(), ("token.file", path)]).unwrap();
        assert_eq!(read.token.unwrap().expose(), "hunter2");
        let tree = tree(&[url, ("token", text("hunter2", false))]);
        assert!(!format!("{tree:?}").contains("hunter2"));
    }
}
