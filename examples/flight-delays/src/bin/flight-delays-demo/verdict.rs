//! The comparison: every committed result against the recount, one by one and in order.

use std::collections::BTreeMap;

use flechtwerk::Topic;
use flight_delays::{AirportDelays, Delays, Figures};

use crate::cluster::{Isolation, Reader};
use crate::observe::decode;

/// Differences that are listed; the others are counted.
const LISTED: usize = 20;

/// What the results were found to be.
#[derive(Default)]
pub(crate) struct Comparison {
    /// Committed results.
    pub(crate) results: u64,
    /// Airports whose figures were compared.
    pub(crate) airports: usize,
    /// Records of aborted transactions that lie in the log and that no reader of committed records sees.
    pub(crate) aborted: u64,
    /// The last result of each airport.
    pub(crate) latest: BTreeMap<String, Delays>,
    differences: Vec<String>,
}

impl Comparison {
    /// Compares one airport's results, in the order in which they lie there.
    fn result(
        &mut self,
        recount: &BTreeMap<String, Vec<Figures>>,
        seen: &mut BTreeMap<String, usize>,
        airport: String,
        delays: Delays,
    ) {
        self.results += 1;
        let n = seen.entry(airport.clone()).or_default();
        *n += 1;
        match recount.get(&airport).and_then(|figures| figures.get(*n - 1)) {
            Some(expected) if *expected == delays.figures => {}
            Some(expected) => {
                let found = delays.figures;
                self.differences.push(format!("{airport}, result {n}: {found:?} instead of {expected:?}"));
            }
            None => self.differences.push(format!("{airport}, result {n}: it has no such flight")),
        }
        self.latest.insert(airport, delays);
    }

    /// Looks for airports whose results are not all there.
    fn end(&mut self, recount: &BTreeMap<String, Vec<Figures>>, seen: &BTreeMap<String, usize>) {
        self.airports = recount.len();
        for (airport, figures) in recount {
            let n = seen.get(airport).copied().unwrap_or(0);
            if n < figures.len() {
                self.differences.push(format!("{airport}: {n} results for {} flights", figures.len()));
            }
        }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.differences.is_empty()
    }

    /// The differences, one a line.
    pub(crate) fn differences(&self) -> String {
        let mut lines: Vec<_> =
            self.differences.iter().take(LISTED).map(|line| format!("  {line}")).collect();
        if self.differences.len() > LISTED {
            lines.push(format!("  and {} more", self.differences.len() - LISTED));
        }
        lines.join("\n")
    }
}

/// Reads all results and compares them. Nobody may be writing any more.
pub(crate) fn compare(
    brokers: &str,
    partitions: &[i32],
    recount: &BTreeMap<String, Vec<Figures>>,
) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison::default();
    let mut seen = BTreeMap::new();
    Reader::new(brokers, AirportDelays::NAME, partitions, Isolation::Committed)?.read_all(|key, value| {
        let (airport, delays) = decode(key, value)?;
        comparison.result(recount, &mut seen, airport, delays);
        Ok(())
    })?;
    comparison.end(recount, &seen);
    let mut all = 0;
    Reader::new(brokers, AirportDelays::NAME, partitions, Isolation::Everything)?.read_all(|_, _| {
        all += 1;
        Ok(())
    })?;
    comparison.aborted = all - comparison.results;
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares results given as (airport, number of the flight whose figures it shows).
    fn compared(results: &[(&str, usize)]) -> Comparison {
        let figures = |n| Figures { flights: n as u64, ..Figures::default() };
        let recount = [("A", 3), ("B", 1)]
            .map(|(airport, n)| (airport.to_owned(), (1..=n).map(figures).collect()))
            .into();
        let (mut comparison, mut seen) = (Comparison::default(), BTreeMap::new());
        for (airport, n) in results {
            let delays = Delays { name: None, city: None, figures: figures(*n) };
            comparison.result(&recount, &mut seen, (*airport).to_owned(), delays);
        }
        comparison.end(&recount, &seen);
        comparison
    }

    #[test]
    fn each_once_and_in_order_is_exact() {
        assert!(compared(&[("A", 1), ("B", 1), ("A", 2), ("A", 3)]).is_exact());
    }

    #[test]
    fn anything_else_is_a_difference() {
        for results in [
            &[("A", 1), ("B", 1), ("A", 2)][..],
            &[("A", 1), ("A", 2), ("A", 3)],
            &[("A", 1), ("B", 1), ("A", 2), ("A", 2), ("A", 3)],
            &[("A", 1), ("B", 1), ("A", 2), ("A", 3), ("A", 3)],
            &[("A", 2), ("B", 1), ("A", 1), ("A", 3)],
            &[("A", 1), ("B", 1), ("B", 1), ("A", 2), ("A", 3)],
            &[("A", 1), ("B", 1), ("A", 2), ("A", 3), ("C", 1)],
        ] {
            assert!(!compared(results).is_exact(), "{results:?}");
        }
    }
}
