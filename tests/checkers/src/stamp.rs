//! The name of a task's transaction, as it stands beside each offset that the transaction commits. Read here anew, from the
//! format that the semantics fix, so that a mistake of the library's own reader can't hide itself.

use std::fmt;

/// `{owner}:{counter}:{changelog topic id, or -}`
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Who wrote it; new with every fence.
    pub owner: String,
    /// The number of the transaction in the life of the task.
    pub counter: u64,
    /// The changelog's topic id; `None` for a stage without state.
    pub changelog: Option<String>,
}

impl Stamp {
    /// Reads a stamp; `None` for any other text.
    pub fn parse(text: &str) -> Option<Stamp> {
        let parts: Vec<&str> = text.split(':').collect();
        let &[owner, counter, changelog] = parts.as_slice() else { return None };
        let counter = counter.parse().ok().filter(|_| !owner.is_empty() && !changelog.is_empty())?;
        Some(Stamp {
            owner: owner.to_owned(),
            counter,
            changelog: Some(changelog).filter(|id| *id != "-").map(str::to_owned),
        })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changelog = self.changelog.as_deref().unwrap_or("-");
        write!(f, "{}:{}:{changelog}", self.owner, self.counter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stamps_are_stamps() {
        assert_eq!(Stamp::parse("a:7:-").map(|stamp| stamp.to_string()), Some("a:7:-".to_owned()));
        assert_eq!(Stamp::parse("a:7:id").and_then(|stamp| stamp.changelog), Some("id".to_owned()));
        for text in ["", "resetting", "a:b:-", "a:1", "a:1:b:c", ":1:-", "a:1:"] {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
    }
}
