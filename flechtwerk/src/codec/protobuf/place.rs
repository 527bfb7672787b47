//! Which message of a schema a value is, as it stands between the schema's id and the value.

/// How deep messages are declared within each other.
const DEPTH: usize = 32;

/// Writes a message's place: which of the file's messages, which of the messages declared in that one, and so on.
pub(super) fn write(indexes: &[usize]) -> Vec<u8> {
    // The first message is what most files have, and gets by with one byte.
    if indexes == [0] {
        return vec![0];
    }
    let mut bytes = Vec::new();
    for number in std::iter::once(indexes.len()).chain(indexes.iter().copied()) {
        let mut rest = (number as u64) << 1;
        while rest > 0x7f {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

/// Reads a message's place, and how many bytes it took.
pub(super) fn read(bytes: &[u8]) -> Option<(Vec<usize>, usize)> {
    let (count, mut at) = number(bytes)?;
    if count == 0 {
        return Some((vec![0], at));
    }
    let mut indexes = Vec::new();
    for _ in 0..Some(count).filter(|count| *count <= DEPTH)? {
        let (index, size) = number(bytes.get(at..)?)?;
        indexes.push(index);
        at += size;
    }
    Some((indexes, at))
}

/// A variable-length number whose last bit is the sign, and the number of its bytes.
fn number(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut number: u64 = 0;
    // No file has so many messages that five bytes would not do.
    for (n, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            let positive = number & 1 == 0;
            return positive.then_some(((number >> 1) as usize, n + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_back() {
        assert_eq!(write(&[0]), [0]);
        assert_eq!(write(&[1, 0]), [4, 2, 0]);
        for indexes in [vec![0], vec![1], vec![0, 0], vec![2, 0, 300]] {
            let bytes = write(&indexes);
            assert_eq!(read(&bytes), Some((indexes, bytes.len())));
            let cut = &bytes[..bytes.len() - 1];
            assert_eq!(read(cut), None);
        }
        // Written in full where one byte would do.
        assert_eq!(read(&[2, 0, 9]), Some((vec![0], 2)));
    }

    #[test]
    fn places_are_not_believed() {
        assert_eq!(read(&[0xfe, 0xff, 0xff, 0xff, 0x0f, 0]), None);
        assert_eq!(read(&[0xff; 20]), None);
        assert_eq!(read(&[1]), None, "a negative number");
    }
}
