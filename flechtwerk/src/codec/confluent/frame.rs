//! The bytes in front of a value: a zero, and the id of the schema as four bytes.

/// The first byte of every such value.
const MAGIC: u8 = 0;
/// Bytes of the zero and the id.
pub(crate) const LENGTH: usize = 5;

/// What stands in front of every value of a schema.
pub(crate) fn front(id: u32, behind_id: &[u8]) -> Vec<u8> {
    [&[MAGIC][..], &id.to_be_bytes(), behind_id].concat()
}

/// The id of the schema, if there is one.
pub(crate) fn id(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [MAGIC, a, b, c, d, ..] => Some(u32::from_be_bytes([*a, *b, *c, *d])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_four_bytes_behind_a_zero() {
        assert_eq!(front(258, &[7]), [0, 0, 0, 1, 2, 7]);
        assert_eq!(id(&front(u32::MAX, &[])), Some(u32::MAX));
        assert_eq!(id(&[0, 0, 0, 1]), None);
        assert_eq!(id(b"{\"a\":1}"), None);
        assert_eq!(id(&[]), None);
    }
}
