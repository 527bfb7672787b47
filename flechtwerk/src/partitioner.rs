//! Which partition a key belongs to: as Kafka's Java client decides, so that all producers of a topic agree.

/// The murmur2 hash of Kafka's Java client (`org.apache.kafka.common.utils.Utils.murmur2`).
pub(crate) fn murmur2(bytes: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    const SEED: u32 = 0x9747_b28c;
    let mix = |word: u32| {
        let word = word.wrapping_mul(M);
        (word ^ (word >> 24)).wrapping_mul(M)
    };
    // The client computes with 32 bits; no key is as long as to tell the difference.
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_mul(M) ^ mix(u32::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        for (n, byte) in rest.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * n);
        }
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// The partition of a keyed record.
pub(crate) fn partition_of(key: &[u8], partitions: i32) -> i32 {
    // The client makes the hash positive by dropping its sign bit.
    (murmur2(key) & 0x7fff_ffff) as i32 % partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tests of Kafka's client.
    #[test]
    fn hashes_as_the_java_client() {
        for (text, hash) in [
            ("21", -973932308),
            ("foobar", -790332482),
            ("a-little-bit-long-string", -985981536),
            ("a-little-bit-longer-string", -1486304829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
            ("abc", 479470107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
    }

    #[test]
    fn partitions_are_in_range() {
        for partitions in [1, 3, 8] {
            for n in 0..100u32 {
                assert!((0..partitions).contains(&partition_of(&n.to_be_bytes(), partitions)));
            }
        }
        assert_eq!(partition_of(b"foobar", 8), ((-790332482i32) & 0x7fff_ffff) % 8);
    }
}
