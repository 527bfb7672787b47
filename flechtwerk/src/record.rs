//! Records and what they carry beside key and value.

use std::sync::Arc;

use bytes::Bytes;

/// One header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name; names may repeat.
    pub name: Arc<str>,
    /// Its value, `None` for null.
    pub value: Option<Bytes>,
}

/// The headers of a record, in order. Empty ones cost nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Option<Arc<Vec<Header>>>);

impl Headers {
    /// The headers, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Header> {
        self.0.iter().flat_map(|headers| headers.iter())
    }

    /// Adds one at the end.
    pub fn push(&mut self, name: impl Into<Arc<str>>, value: Option<Bytes>) {
        Arc::make_mut(self.0.get_or_insert_default()).push(Header { name: name.into(), value });
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}
