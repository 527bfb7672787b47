//! The search for the name that was meant by a misspelt one.

/// The candidate that `name` is most likely a misspelling of.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace(['-', '.'], "_");
    let name = plain(name);
    let scored = candidates.into_iter().map(|candidate| (distance(&name, &plain(candidate)), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= name.len().max(3) / 3).then_some(candidate)
}

/// Number of characters to insert, delete or replace, or neighbours to swap.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("wrods", "words", 1), ("kitten", "sitting", 3), ("ab", "ba", 1)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_nearest_must_be_near() {
        let names = ["commit_interval", "session_timeout"];
        assert_eq!(nearest("comit-interval", names), Some("commit_interval"));
        assert_eq!(nearest("SESSION_TIMEOUTS", names), Some("session_timeout"));
        assert_eq!(nearest("zookeeper", names), None);
        assert_eq!(nearest("x", []), None);
    }
}
