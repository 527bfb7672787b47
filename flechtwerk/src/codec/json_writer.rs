//! Writes JSON. serde_json turns NaN into null, which then can't be read back as a number, and it writes object keys in
//! the order they come; a stored state that can't be read any more or a key with two spellings would be the
//! consequence. So the structure is written here, and only strings and numbers are left to serde_json.

use std::fmt::Display;
use std::ops::Range;

use serde::Serialize;
use serde::ser;

use crate::error::CodecError;

/// In which order object keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// As `Serialize` gives them.
    AsWritten,
    /// Those of maps sorted, those of structs in the order of their fields: always the same for one type, at no cost
    /// for structs.
    MapsSorted,
    /// All sorted, and no negative zero: equal values are equal bytes.
    Sorted,
}

/// Appends `value` as JSON. On an error, `into` may have grown.
pub(crate) fn write<T: Serialize + ?Sized>(
    value: &T,
    keys: Keys,
    into: &mut Vec<u8>,
) -> Result<(), CodecError> {
    value.serialize(Writer { into, keys }).map_err(|Error(error)| error)
}

/// Wraps [`CodecError`] so that serde's trait does not become part of its public face.
#[derive(Debug)]
pub(crate) struct Error(CodecError);

impl Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

impl ser::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Error(CodecError::NotJson(message.to_string()))
    }
}

fn refuse<T>(why: &'static str) -> Result<T, Error> {
    Err(Error(CodecError::NotJson(why.to_owned())))
}

struct Writer<'a> {
    into: &'a mut Vec<u8>,
    keys: Keys,
}

impl<'a> Writer<'a> {
    /// Strings and numbers.
    fn scalar<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        serde_json::to_writer(self.into, value).map_err(ser::Error::custom)
    }

    fn open(self, text: &str, sorted: bool, close: &'static [u8]) -> Parts<'a> {
        self.into.extend_from_slice(text.as_bytes());
        let start = self.into.len();
        Parts {
            into: self.into,
            keys: self.keys,
            start,
            close,
            entries: sorted.then(Vec::new),
            verbatim: false,
        }
    }

    /// `{"Variant":` in front of an enum variant's contents.
    fn variant(&mut self, variant: &str) -> Result<(), Error> {
        self.into.push(b'{');
        Writer { into: self.into, keys: self.keys }.scalar(variant)?;
        self.into.push(b':');
        Ok(())
    }
}

macro_rules! scalars {
    ($($method:ident $type:ty,)*) => { $(
        fn $method(self, value: $type) -> Result<(), Error> {
            self.scalar(&value)
        }
    )* };
}

macro_rules! floats {
    ($($method:ident $type:ty,)*) => { $(
        fn $method(self, value: $type) -> Result<(), Error> {
            if !value.is_finite() {
                return refuse("NaN and infinity have no form in JSON");
            }
            let zero = self.keys == Keys::Sorted && value == 0.0;
            self.scalar(if zero { &0.0 } else { &value })
        }
    )* };
}

impl<'a> ser::Serializer for Writer<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    scalars! {
        serialize_bool bool,
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_u128 u128,
        serialize_char char, serialize_str &str,
    }

    floats! { serialize_f32 f32, serialize_f64 f64, }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Error> {
        self.scalar(value)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.into.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.scalar(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.variant(variant)?;
        value.serialize(Writer { into: self.into, keys: self.keys })?;
        self.into.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Error> {
        Ok(self.open("[", false, b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Error> {
        Ok(self.open("[", false, b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Error> {
        Ok(self.open("[", false, b"]"))
    }

    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Error> {
        self.variant(variant)?;
        Ok(self.open("[", false, b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Error> {
        let sorted = self.keys != Keys::AsWritten;
        Ok(self.open("{", sorted, b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts<'a>, Error> {
        // serde_json passes its own numbers and raw texts through as structs of this name, if certain features of it
        // are on anywhere in the build.
        if name.starts_with("$serde_json::private::") {
            return Ok(Parts { verbatim: true, ..self.open("", false, b"") });
        }
        let sorted = self.keys == Keys::Sorted;
        Ok(self.open("{", sorted, b"}"))
    }

    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Error> {
        self.variant(variant)?;
        let sorted = self.keys == Keys::Sorted;
        Ok(self.open("{", sorted, b"}}"))
    }
}

/// An array or object that is being written.
struct Parts<'a> {
    into: &'a mut Vec<u8>,
    keys: Keys,
    start: usize,
    close: &'static [u8],
    /// Where they are to be sorted: the entries of the object, each with its key without quotes.
    entries: Option<Vec<(Range<usize>, Range<usize>)>>,
    /// The only field is a string that is JSON already.
    verbatim: bool,
}

impl Parts<'_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        if self.into.len() > self.start {
            self.into.push(b',');
        }
        value.serialize(Writer { into: self.into, keys: self.keys })
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        if self.into.len() > self.start {
            self.into.push(b',');
        }
        let start = self.into.len();
        key.serialize(Writer { into: self.into, keys: self.keys })?;
        // Numbers and booleans become strings, as everywhere in JSON; what is no scalar can't be a key.
        match self.into.get(start) {
            Some(b'"') => {}
            Some(b'{' | b'[' | b'n') | None => {
                return refuse("the key of an object must be a string or a number");
            }
            Some(_) => {
                self.into.insert(start, b'"');
                self.into.push(b'"');
            }
        }
        if let Some(entries) = &mut self.entries {
            let end = self.into.len();
            entries.push((start + 1..end - 1, start..end));
        }
        self.into.push(b':');
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(Writer { into: self.into, keys: self.keys })?;
        if let Some(entry) = self.entries.as_mut().and_then(|entries| entries.last_mut()) {
            entry.1.end = self.into.len();
        }
        Ok(())
    }

    fn verbatim<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let text = serde_json::to_value(value).map_err(<Error as ser::Error>::custom)?;
        self.into.extend_from_slice(text.as_str().unwrap_or_default().as_bytes());
        Ok(())
    }

    fn finish(self) -> Result<(), Error> {
        if let Some(mut entries) = self.entries {
            let text = self.into.split_off(self.start);
            let slice = |range: &Range<usize>| &text[range.start - self.start..range.end - self.start];
            entries.sort_by(|a, b| slice(&a.0).cmp(slice(&b.0)));
            if entries.windows(2).any(|pair| slice(&pair[0].0) == slice(&pair[1].0)) {
                return refuse("an object has a key twice");
            }
            for (n, (_, entry)) in entries.iter().enumerate() {
                if n > 0 {
                    self.into.push(b',');
                }
                self.into.extend_from_slice(slice(entry));
            }
        }
        self.into.extend_from_slice(self.close);
        Ok(())
    }
}

macro_rules! arrays {
    ($($trait:ident $method:ident,)*) => { $(
        impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish()
            }
        }
    )* };
}

arrays! {
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field,
}

macro_rules! structs {
    ($($trait:ident,)*) => { $(
        impl ser::$trait for Parts<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
                if self.verbatim {
                    return self.verbatim(value);
                }
                self.key(key)?;
                self.value(value)
            }

            fn end(self) -> Result<(), Error> {
                self.finish()
            }
        }
    )* };
}

structs! { SerializeStruct, SerializeStructVariant, }

impl ser::SerializeMap for Parts<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.value(value)
    }

    fn end(self) -> Result<(), Error> {
        self.finish()
    }
}
