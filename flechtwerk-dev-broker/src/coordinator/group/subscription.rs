//! What a member of a consumer group says it consumes. Every version of that metadata begins the same way: the version, and the topics.

/// The topics of a subscription, if the bytes are one.
pub(super) fn topics(metadata: &[u8]) -> Option<Vec<String>> {
    let (_version, rest) = metadata.split_first_chunk::<2>()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let mut topics = Vec::new();
    for _ in 0..i32::from_be_bytes(*count).max(0) {
        let (len, after) = rest.split_first_chunk::<2>()?;
        let len = usize::try_from(i16::from_be_bytes(*len)).ok()?;
        let (topic, after) = after.split_at_checked(len)?;
        topics.push(std::str::from_utf8(topic).ok()?.to_owned());
        rest = after;
    }
    Some(topics)
}
