//! The structure of a request, walked before it is decoded.
//!
//! The decoders of `kafka-protocol` reserve memory for as many items as an array claims to have, which a few bytes can
//! make so many that the process ends. So the bytes are walked first by a table of each request's fields: every length must
//! fit into what is left, and all arrays together have a limit. A walk allocates nothing.

use super::message::Malformed;

/// How many items all arrays and tagged fields of one request may have together. A request for every partition of a large
/// cluster stays below.
const MAX_ITEMS: usize = 200_000;

/// A field: its name, its kind, and the versions that have it.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) from: i16,
    pub(super) to: i16,
}

/// What a field looks like on the wire. Null is allowed here wherever the encoding can say it; the decoder knows better.
#[derive(Debug)]
pub(super) enum Kind {
    /// So many bytes.
    Fixed(usize),
    Text,
    Bytes,
    /// An array of structs.
    Structs(&'static [Field]),
    /// An array of plain values.
    Values(&'static Kind),
    /// A struct or nothing.
    Optional(&'static [Field]),
}

/// Walks a request: how many bytes are left behind it. They are let pass, as Kafka does: librdkafka 2.12 has three in the
/// Metadata request for all topics.
pub(super) fn walk(
    fields: &'static [Field],
    version: i16,
    flexible: bool,
    body: &[u8],
) -> Result<usize, Malformed> {
    let mut walker = Walker { rest: body, version, flexible, items: 0 };
    walker.fields(fields)?;
    Ok(walker.rest.len())
}

/// Skips the tagged fields at the start of `bytes`: how long they are.
pub(super) fn skip_tags(bytes: &[u8]) -> Result<usize, Malformed> {
    let mut walker = Walker { rest: bytes, version: 0, flexible: true, items: 0 };
    walker.tags()?;
    Ok(bytes.len().saturating_sub(walker.rest.len()))
}

struct Walker<'a> {
    rest: &'a [u8],
    version: i16,
    flexible: bool,
    items: usize,
}

impl<'a> Walker<'a> {
    fn fields(&mut self, fields: &'static [Field]) -> Result<(), Malformed> {
        for field in fields {
            if (field.from..=field.to).contains(&self.version) {
                self.kind(field.name, &field.kind)?;
            }
        }
        if self.flexible { self.tags() } else { Ok(()) }
    }

    fn kind(&mut self, name: &'static str, kind: &'static Kind) -> Result<(), Malformed> {
        match kind {
            Kind::Fixed(size) => self.take(name, *size).map(drop),
            Kind::Text => {
                let length = if self.flexible { self.compact(name)? } else { self.short(name)? };
                self.take(name, length.unwrap_or(0)).map(drop)
            }
            Kind::Bytes => {
                let length = self.length(name)?;
                self.take(name, length.unwrap_or(0)).map(drop)
            }
            Kind::Structs(fields) => {
                for _ in 0..self.count(name)? {
                    self.fields(fields)?;
                }
                Ok(())
            }
            Kind::Values(kind) => {
                for _ in 0..self.count(name)? {
                    self.kind(name, kind)?;
                }
                Ok(())
            }
            Kind::Optional(fields) => match self.take(name, 1)? {
                [1] => self.fields(fields),
                _ => Ok(()),
            },
        }
    }

    fn tags(&mut self) -> Result<(), Malformed> {
        let count = self.varint("tagged fields")?;
        self.claim("tagged fields", count as usize)?;
        for _ in 0..count {
            self.varint("tag")?;
            let size = self.varint("tagged field")?;
            self.take("tagged field", size as usize)?;
        }
        Ok(())
    }

    fn count(&mut self, name: &'static str) -> Result<usize, Malformed> {
        let count = self.length(name)?.unwrap_or(0);
        self.claim(name, count)?;
        Ok(count)
    }

    /// Notes that `count` more items are to come. Each has a byte at least.
    fn claim(&mut self, name: &'static str, count: usize) -> Result<(), Malformed> {
        if count > self.rest.len() {
            return Err(Malformed::new(name, format!("claims {count} items in {} bytes", self.rest.len())));
        }
        self.items = self.items.saturating_add(count);
        if self.items > MAX_ITEMS {
            return Err(Malformed::new(name, format!("brings the request to more than {MAX_ITEMS} items")));
        }
        Ok(())
    }

    /// The length of bytes or of an array.
    fn length(&mut self, name: &'static str) -> Result<Option<usize>, Malformed> {
        if self.flexible {
            return self.compact(name);
        }
        let bytes = self.array::<4>(name)?;
        signed(name, i64::from(i32::from_be_bytes(bytes)))
    }

    fn short(&mut self, name: &'static str) -> Result<Option<usize>, Malformed> {
        let bytes = self.array::<2>(name)?;
        signed(name, i64::from(i16::from_be_bytes(bytes)))
    }

    fn compact(&mut self, name: &'static str) -> Result<Option<usize>, Malformed> {
        Ok(self.varint(name)?.checked_sub(1).map(|length| length as usize))
    }

    fn varint(&mut self, name: &'static str) -> Result<u32, Malformed> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array::<1>(name)?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::new(name, "a varint of more than 32 bits"))
    }

    fn array<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N], Malformed> {
        let (bytes, rest) =
            self.rest.split_first_chunk::<N>().ok_or_else(|| Malformed::new(name, "cut off"))?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn take(&mut self, name: &'static str, length: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| Malformed::new(name, format!("claims {length} of {} bytes", self.rest.len())))?;
        self.rest = rest;
        Ok(bytes)
    }
}

fn signed(name: &'static str, length: i64) -> Result<Option<usize>, Malformed> {
    match length {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| Malformed::new(name, "negative length")),
    }
}
