//! Walks the bytes of a value by its schema, before anything is made of them. The decoder of the Avro library believes the
//! lengths that the bytes claim, follows them to any depth, and takes a text that is cut off for a null; here all of that
//! is refused, at the cost of one pass that makes nothing.

use std::collections::HashMap;

use apache_avro::Schema;
use apache_avro::schema::{DecimalSchema, InnerDecimalSchema, Name, NamespaceRef, UuidSchema};

/// How deep values may be nested.
const DEPTH: usize = 128;
/// Values without any bytes, such as nulls in an array, that are always allowed. More may come with more bytes.
const FREE: usize = 1 << 16;
/// Values for each byte.
const PER_BYTE: usize = 16;

/// What a value looks like in bytes; others are named by their index.
#[derive(Debug)]
enum Node {
    Nothing,
    Bool,
    Int,
    Long,
    Fixed(usize),
    Bytes,
    Text,
    Array(usize),
    Map(usize),
    Union(Vec<usize>),
    Record(Vec<usize>),
    Enum(usize),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Skim {
    nodes: Vec<Node>,
    root: usize,
    /// There is a map somewhere.
    pub(super) has_map: bool,
    /// There is a floating-point number somewhere.
    pub(super) has_float: bool,
}

/// Why bytes are not a value of the schema, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

impl Skim {
    /// `None`: the schema refers to a type that is not in `names`.
    pub(super) fn new(schema: &Schema, names: &HashMap<Name, &Schema>) -> Option<Skim> {
        let mut making = Making {
            names,
            skim: Skim { nodes: Vec::new(), root: 0, has_map: false, has_float: false },
            made: HashMap::new(),
        };
        let root = making.node(schema, None)?;
        Some(Skim { root, ..making.skim })
    }

    /// Whether `bytes` are one value and no more.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), Broken> {
        let budget = FREE.saturating_add(bytes.len().saturating_mul(PER_BYTE));
        let mut walk = Walk { skim: self, bytes, at: 0, budget };
        walk.value(self.root, 0)?;
        match walk.at == bytes.len() {
            true => Ok(()),
            false => walk.broken("bytes after the end of the value"),
        }
    }
}

struct Making<'a> {
    names: &'a HashMap<Name, &'a Schema>,
    skim: Skim,
    /// Named types that have a node already, or will have.
    made: HashMap<Name, usize>,
}

impl Making<'_> {
    fn add(&mut self, node: Node) -> usize {
        self.skim.nodes.push(node);
        self.skim.nodes.len() - 1
    }

    fn node(&mut self, schema: &Schema, within: NamespaceRef<'_>) -> Option<usize> {
        let node = match schema {
            Schema::Null => Node::Nothing,
            Schema::Boolean => Node::Bool,
            Schema::Int | Schema::Date | Schema::TimeMillis => Node::Int,
            Schema::Long
            | Schema::TimeMicros
            | Schema::TimestampMillis
            | Schema::TimestampMicros
            | Schema::TimestampNanos
            | Schema::LocalTimestampMillis
            | Schema::LocalTimestampMicros
            | Schema::LocalTimestampNanos => Node::Long,
            Schema::Float => {
                self.skim.has_float = true;
                Node::Fixed(4)
            }
            Schema::Double => {
                self.skim.has_float = true;
                Node::Fixed(8)
            }
            Schema::Bytes
            | Schema::BigDecimal
            | Schema::Uuid(UuidSchema::Bytes)
            | Schema::Decimal(DecimalSchema { inner: InnerDecimalSchema::Bytes, .. }) => Node::Bytes,
            Schema::String | Schema::Uuid(UuidSchema::String) => Node::Text,
            Schema::Fixed(fixed)
            | Schema::Duration(fixed)
            | Schema::Uuid(UuidSchema::Fixed(fixed))
            | Schema::Decimal(DecimalSchema { inner: InnerDecimalSchema::Fixed(fixed), .. }) => {
                Node::Fixed(fixed.size)
            }
            Schema::Enum(one) => Node::Enum(one.symbols.len()),
            Schema::Array(array) => Node::Array(self.node(&array.items, within)?),
            Schema::Map(map) => {
                self.skim.has_map = true;
                Node::Map(self.node(&map.types, within)?)
            }
            Schema::Union(union) => {
                let variants = union.variants().iter().map(|variant| self.node(variant, within));
                Node::Union(variants.collect::<Option<_>>()?)
            }
            Schema::Record(record) => {
                let name = record.name.fully_qualified_name(within).into_owned();
                if let Some(made) = self.made.get(&name) {
                    return Some(*made);
                }
                // Its fields may hold the record itself.
                let index = self.add(Node::Nothing);
                self.made.insert(name.clone(), index);
                let fields = record.fields.iter().map(|field| self.node(&field.schema, name.namespace()));
                self.skim.nodes[index] = Node::Record(fields.collect::<Option<_>>()?);
                return Some(index);
            }
            Schema::Ref { name } => {
                let name = name.fully_qualified_name(within).into_owned();
                if let Some(made) = self.made.get(&name) {
                    return Some(*made);
                }
                let schema = *self.names.get(&name)?;
                return match schema {
                    Schema::Ref { .. } => None,
                    schema => self.node(schema, name.namespace()),
                };
            }
        };
        Some(self.add(node))
    }
}

struct Walk<'a> {
    skim: &'a Skim,
    bytes: &'a [u8],
    at: usize,
    /// Values that may still come.
    budget: usize,
}

impl Walk<'_> {
    fn broken<T>(&self, what: &'static str) -> Result<T, Broken> {
        Err(Broken { at: self.at, what })
    }

    fn value(&mut self, node: usize, depth: usize) -> Result<(), Broken> {
        if depth > DEPTH {
            return self.broken("values nested too deep");
        }
        self.budget = match self.budget.checked_sub(1) {
            Some(left) => left,
            None => return self.broken("more values than there are bytes for"),
        };
        let skim = self.skim;
        match &skim.nodes[node] {
            Node::Nothing => Ok(()),
            Node::Bool => match self.take(1)? {
                [0 | 1] => Ok(()),
                _ => self.broken("a boolean that is neither 0 nor 1"),
            },
            Node::Int => match i32::try_from(self.long()?) {
                Ok(_) => Ok(()),
                Err(_) => self.broken("an int of more than 32 bits"),
            },
            Node::Long => self.long().map(drop),
            Node::Fixed(size) => self.take(*size).map(drop),
            Node::Bytes => {
                let length = self.length()?;
                self.take(length).map(drop)
            }
            Node::Text => self.text(),
            Node::Array(items) => self.blocks(|walk| walk.value(*items, depth + 1)),
            Node::Map(values) => self.blocks(|walk| {
                walk.text()?;
                walk.value(*values, depth + 1)
            }),
            Node::Union(variants) => {
                let variant = usize::try_from(self.long()?).ok().and_then(|index| variants.get(index));
                match variant {
                    Some(variant) => self.value(*variant, depth + 1),
                    None => self.broken("a variant that the union does not have"),
                }
            }
            Node::Record(fields) => fields.iter().try_for_each(|field| self.value(*field, depth + 1)),
            Node::Enum(symbols) => match usize::try_from(self.long()?) {
                Ok(index) if index < *symbols => Ok(()),
                _ => self.broken("a symbol that the enum does not have"),
            },
        }
    }

    fn take(&mut self, size: usize) -> Result<&[u8], Broken> {
        let end = self.at.checked_add(size).filter(|end| *end <= self.bytes.len());
        match end {
            Some(end) => {
                let taken = &self.bytes[self.at..end];
                self.at = end;
                Ok(taken)
            }
            None => self.broken("the bytes end too early"),
        }
    }

    /// A variable-length number with its sign in the last bit.
    fn long(&mut self) -> Result<i64, Broken> {
        let mut number: u64 = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return self.broken("a number of more than 64 bits");
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
            }
        }
        self.broken("a number of more than 64 bits")
    }

    fn length(&mut self) -> Result<usize, Broken> {
        let length = self.long()?;
        usize::try_from(length).or_else(|_| self.broken("a negative length"))
    }

    fn text(&mut self) -> Result<(), Broken> {
        let (length, begin) = (self.length()?, self.at);
        match std::str::from_utf8(self.take(length)?) {
            Ok(_) => Ok(()),
            Err(_) => Err(Broken { at: begin, what: "a text that is not UTF-8" }),
        }
    }

    /// The items of an array or a map: blocks, each with their number, and with their size where the number is negative.
    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Broken>) -> Result<(), Broken> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            let size = if count < 0 { Some(self.length()?) } else { None };
            let begin = self.at;
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
            if size.is_some_and(|size| size != self.at - begin) {
                return self.broken("a block that has not the size that it says");
            }
        }
    }
}
