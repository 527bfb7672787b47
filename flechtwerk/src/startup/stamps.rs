//! What committed offsets say about the changelog they go with (S7.3).

use crate::port::Committed;
use crate::task::{RESETTING, Stamp};

/// What the committed offsets of a stage say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict<'a> {
    /// Nothing that speaks against a start.
    Fine,
    /// A reset was cut short, or is running.
    Resetting,
    /// The last transaction wrote to another changelog than the one there is, or to one that is gone.
    OtherChangelog(&'a Committed),
}

/// Compares the stamps with the changelog as the cluster has it, `None` where there is none.
pub(super) fn judge<'a>(committed: &'a [Committed], changelog_id: Option<&str>) -> Verdict<'a> {
    if committed.iter().any(|at| at.metadata == RESETTING) {
        return Verdict::Resetting;
    }
    let other =
        committed.iter().find(|at| match Stamp::parse(&at.metadata).and_then(|stamp| stamp.changelog) {
            Some(named) => Some(named.as_str()) != changelog_id,
            // Metadata of another tool, or a stamp of a stage that kept no state.
            None => false,
        });
    other.map_or(Verdict::Fine, Verdict::OtherChangelog)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::TopicPartition;

    fn committed(metadata: &[&str]) -> Vec<Committed> {
        let at = |(partition, metadata): (usize, &&str)| Committed {
            at: TopicPartition { topic: "words".into(), partition: i32::try_from(partition).unwrap() },
            offset: Some(5),
            metadata: (*metadata).to_owned(),
        };
        metadata.iter().enumerate().map(at).collect()
    }

    #[test]
    fn every_committed_offset_counts() {
        assert_eq!(judge(&committed(&["", "a:1:x", "a:2:-", "lag:7"]), Some("x")), Verdict::Fine);
        let mixed = committed(&["a:1:x", "b:1:y"]);
        assert_eq!(judge(&mixed, Some("x")), Verdict::OtherChangelog(&mixed[1]));
        assert_eq!(judge(&mixed[..1], None), Verdict::OtherChangelog(&mixed[0]));
        assert_eq!(judge(&committed(&["a:1:x", RESETTING]), Some("y")), Verdict::Resetting);
        assert_eq!(judge(&[], None), Verdict::Fine);
    }
}
