//! The settings of a resource: a tree that comes from file and environment, read into the user's type.
//!
//! The environment knows text alone, so text is read as a number or a boolean where the type wants one.

use serde::de::value::{MapAccessDeserializer, StrDeserializer, StringDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer, Unexpected, Visitor};

use super::misfit::Misfit;
use super::secret;
use super::tree::{Tree, item_name};

/// Reads a [`Tree`].
pub(super) struct Deserializer(pub(super) Tree);

impl IntoDeserializer<'_, Misfit> for Deserializer {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// What is under one name; an error knows the name, and not what was there.
fn inner<'de, S: DeserializeSeed<'de>>(name: String, value: Tree, seed: S) -> Result<S::Value, Misfit> {
    seed.deserialize(Deserializer(value.clone())).map_err(|misfit| misfit.without(&value).under(name))
}

/// The entries of a table.
struct Entries(std::collections::btree_map::IntoIter<String, Tree>, Option<(String, Tree)>);

impl<'de> de::MapAccess<'de> for Entries {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Misfit> {
        self.1 = self.0.next();
        let Some((name, _)) = &self.1 else { return Ok(None) };
        let key = seed.deserialize(StrDeserializer::<Misfit>::new(name));
        key.map(Some).map_err(|misfit| misfit.of_name(name))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        match self.1.take() {
            Some((name, value)) => inner(name, value, seed),
            None => Err(Misfit::new("a value was asked for before its name")),
        }
    }
}

/// The items of a list, and how many were taken.
struct Items(std::vec::IntoIter<Tree>, usize);

impl Items {
    fn read<'de, V: Visitor<'de>>(items: Vec<Tree>, visitor: V) -> Result<V::Value, Misfit> {
        let mut items = Items(items.into_iter(), 0);
        let read = visitor.visit_seq(&mut items)?;
        match items.0.len() {
            0 => Ok(read),
            more => Err(Misfit::new(format_args!("a list of {}, expected {}", items.1 + more, items.1))),
        }
    }
}

impl<'de> de::SeqAccess<'de> for Items {
    type Error = Misfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        let Some(item) = self.0.next() else { return Ok(None) };
        self.1 += 1;
        inner(item_name(self.1 - 1), item, seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
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
            Tree::List(items) => Items::read(items, visitor),
            Tree::Table(table) => visitor.visit_map(Entries(table.into_iter(), None)),
            Tree::Nothing => visitor.visit_unit(),
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
        match self.0 {
            Tree::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Misfit> {
        self.0.split_at_commas();
        self.deserialize_any(visitor)
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
            Tree::Nothing => return Err(Misfit::no_secret()),
            _ => {
                return Err(Misfit::new(
                    "a secret has no place in the settings file, which is copied, shown and checked in: put it into a \
                     file of its own, `{ file = \"..\" }`, or into the environment",
                ));
            }
        };
        visitor.visit_newtype_struct(Deserializer(Tree::variable(text)))
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
