//! The name of a task's last committed transaction (S3.3), written as the metadata of every offset it commits.
//!
//! One read of the committed offsets then tells whether a batch of unknown outcome was committed, whether a store
//! on disk is current, and whether another owner has written since.

use std::fmt;

/// Written in place of a stamp while `reset` is under way; it stops every start.
pub const RESETTING: &str = "resetting";

/// `{owner}:{counter}:{changelog topic id, or -}`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Random, and new with every fence.
    pub owner: String,
    /// The committed one plus 1.
    pub counter: u64,
    /// Topic id of the changelog; `None` for a stage without state.
    pub changelog: Option<String>,
}

impl Stamp {
    /// Reads a stamp; `None` for anything else, such as the metadata of other tools.
    pub fn parse(text: &str) -> Option<Stamp> {
        let mut parts = text.split(':');
        let (owner, counter, changelog) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || owner.is_empty() || changelog.is_empty() {
            return None;
        }
        let number = counter.parse::<u64>().ok()?;
        // Each stamp has one spelling: we write neither a plus nor leading zeroes, which `parse` takes.
        if counter.starts_with('+') || (counter.starts_with('0') && counter != "0") {
            return None;
        }
        Some(Stamp {
            owner: owner.to_owned(),
            counter: number,
            changelog: (changelog != "-").then(|| changelog.to_owned()),
        })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.owner, self.counter, self.changelog.as_deref().unwrap_or("-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_back() {
        for changelog in [None, Some("dGhlIGlkIG9mIGEgdG9waWM".to_owned())] {
            let stamp = Stamp { owner: "0af3".into(), counter: u64::MAX, changelog };
            assert_eq!(Stamp::parse(&stamp.to_string()), Some(stamp));
        }
        let stamp = Stamp { owner: "a".into(), counter: 7, changelog: None };
        assert_eq!(stamp.to_string(), "a:7:-");
        assert!(Stamp::parse("a:0:-").is_some());
    }

    #[test]
    fn metadata_of_others_is_no_stamp() {
        for text in ["", RESETTING, "a:b:c", "a:1", "a:1:b:c", ":1:-", "a:1:", "a:-1:-", "a:+1:-", "a:01:-"] {
            assert_eq!(Stamp::parse(text), None, "{text:?}");
        }
    }
}
