//! Whether memory, threads, files and disk grow under load (L): the slope of each process, compared with its own noise.
//!
//! The time after the first tenth (starting is not growing) is cut into parts of equal length, and each part has the median of its
//! samples as its level: what comes and goes within a part is no growth. A line is fitted to the levels. Where a task came or went
//! for good the level makes a step, which a line would take for a slope: so up to two steps are taken out, each only if it explains
//! at least half of what the line leaves over. What then is growth must be larger than four standard errors of the slope, with the
//! steps and without them, and larger than a small share of the level an hour. A leak with each restore or rebalance is a staircase of
//! many steps, and is found.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::journal::Entry;

/// Instance, process and what is measured.
type Series = (String, u64, &'static str);
/// Seconds and a value.
type Point = (f64, f64);

/// Of what lived shorter nothing is said.
const LONG: f64 = 300.0;
/// What lived shorter is still warming up: caches fill, allocators settle.
const JUDGED: f64 = 1800.0;
/// Parts of the time, each with one level.
const PARTS: usize = 20;
/// Each step that is taken out leaves at most this share of what was left over without it.
const EXPLAINED: f64 = 0.5;
/// Growth exceeds so many standard errors of the slope: with as few levels, chance does so about once in two thousand times.
const ERRORS: f64 = 4.0;
/// And this share of the level an hour: less is the rest of warming up, and nothing that an operator would see.
const SHARE: f64 = 0.05;
/// Residuals of neighbours that are more alike than this say nothing more.
const MOST_ALIKE: f64 = 0.9;

/// What is said of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was looked at for too short a time.
    Short,
    /// It does not grow, or not more than its noise.
    Flat,
    /// It grows.
    Grows,
}

/// What became of a number in the life of a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// Which instance.
    pub who: String,
    /// How long it was looked at.
    pub minutes: f64,
    /// Which number.
    pub what: &'static str,
    /// The level at first, after the first tenth.
    pub first: f64,
    /// The level at last.
    pub last: f64,
    /// By the line that fits best.
    pub per_hour: f64,
    /// The standard error of that.
    pub noise: f64,
    /// Steps that were taken out.
    pub steps: usize,
    /// What is said of it.
    pub verdict: Verdict,
}

impl Growth {
    /// In words.
    pub fn said(&self) -> &'static str {
        match self.verdict {
            Verdict::Short => "too short to say",
            Verdict::Flat => "flat",
            Verdict::Grows => "GROWS",
        }
    }
}

/// Of all processes that lived for long.
pub fn growth(entries: &[Entry]) -> Vec<Growth> {
    let mut series = BTreeMap::<Series, Vec<Point>>::new();
    for entry in entries {
        let at = entry.at.as_secs_f64();
        let mut add = |who: &str, pid: u64, what, value: &serde_json::Value| {
            let Some(value) = value.as_f64() else { return };
            series.entry((who.to_owned(), pid, what)).or_default().push((at, value));
        };
        match entry.event.as_str() {
            "sample" => {
                let (who, pid) = (entry.data["slot"].as_str().unwrap_or("?"), entry.data["pid"].as_u64());
                for (what, name) in [("memory in KiB", "memory"), ("threads", "threads"), ("files", "files")]
                {
                    add(who, pid.unwrap_or(0), what, &entry.data[name]);
                }
            }
            "disk" => add("all", 0, "disk in KiB", &entry.data["kib"]),
            _ => {}
        }
    }
    series.into_iter().filter_map(|((who, _, what), points)| of(who, what, &points)).collect()
}

fn of(who: String, what: &'static str, points: &[Point]) -> Option<Growth> {
    let (begin, end) = (points.first()?.0, points.last()?.0);
    let length = end - begin;
    if length < LONG {
        return None;
    }
    let levels = levels(points, begin + length / 10.0, end);
    let (line, steps) = fitted(&levels)?;
    let (per_hour, noise) = (line.slope * 3600.0, line.error * 3600.0);
    // Steps that are taken out of mere noise leave less of it than there is.
    let whole = self::line(&levels, &[])?;
    let certain = line.slope > ERRORS * line.error && whole.slope > ERRORS * whole.error / whole.inflated;
    let mean = levels.iter().map(|level| level.1).sum::<f64>() / levels.len() as f64;
    let grows = certain && per_hour > SHARE * mean;
    let verdict = match grows {
        _ if length < JUDGED => Verdict::Short,
        true => Verdict::Grows,
        false => Verdict::Flat,
    };
    Some(Growth {
        who,
        minutes: length / 60.0,
        what,
        first: levels.first()?.1,
        last: levels.last()?.1,
        per_hour,
        noise,
        steps,
        verdict,
    })
}

/// The medians of equal parts of the time.
fn levels(points: &[Point], begin: f64, end: f64) -> Vec<Point> {
    let width = (end - begin) / PARTS as f64;
    let part = |number: usize| {
        let from = begin + width * number as f64;
        let last = number + 1 == PARTS;
        let inside = points.iter().filter(|(at, _)| *at >= from && (*at < from + width || last));
        let mut values: Vec<f64> = inside.map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        Some((from + width / 2.0, *values.get(values.len() / 2)?))
    };
    (0..PARTS).filter_map(part).collect()
}

/// A line with steps.
struct Line {
    slope: f64,
    /// The standard error of the slope.
    error: f64,
    /// So many times of what it would be if no level was like its neighbour.
    inflated: f64,
    /// The sum of the squares of what is left over.
    rest: f64,
}

/// The line that fits best, and how many steps were taken out.
fn fitted(levels: &[Point]) -> Option<(Line, usize)> {
    let places = || 1..levels.len();
    let best = |all: &mut dyn Iterator<Item = Vec<usize>>| {
        all.filter_map(|steps| line(levels, &steps)).min_by(|one, other| one.rest.total_cmp(&other.rest))
    };
    let none = line(levels, &[])?;
    let one = best(&mut places().map(|at| vec![at]));
    // Two that lead up together are hidden from a search for one.
    let two = best(&mut places().flat_map(|at| (at + 1..levels.len()).map(move |next| vec![at, next])));
    let fewer = one.as_ref().map_or(none.rest, |one| one.rest.min(none.rest));
    match (one, two) {
        (_, Some(two)) if two.rest < (none.rest * EXPLAINED).min(fewer) * EXPLAINED => Some((two, 2)),
        (Some(one), _) if one.rest < none.rest * EXPLAINED => Some((one, 1)),
        _ => Some((none, 0)),
    }
}

/// The common slope of the pieces between the steps; `steps`: the first level of each piece but the first, ascending.
fn line(levels: &[Point], steps: &[usize]) -> Option<Line> {
    let ends = steps.iter().copied().chain([levels.len()]);
    let mut from = 0;
    // Each level as its distance from the middle of its piece.
    let mut centred: Vec<Point> = Vec::with_capacity(levels.len());
    for end in ends {
        let piece = levels.get(from..end)?;
        let mean = |of: fn(&Point) -> f64| piece.iter().map(of).sum::<f64>() / piece.len() as f64;
        let (x, y) = (mean(|level| level.0), mean(|level| level.1));
        centred.extend(piece.iter().map(|level| (level.0 - x, level.1 - y)));
        from = end;
    }
    let spread: f64 = centred.iter().map(|(x, _)| x * x).sum();
    if spread <= 0.0 || levels.len() < steps.len() + 3 {
        return None;
    }
    let slope = centred.iter().map(|(x, y)| x * y).sum::<f64>() / spread;
    let left: Vec<f64> = centred.iter().map(|(x, y)| y - slope * x).collect();
    let rest: f64 = left.iter().map(|one| one * one).sum();
    // Neighbours that are alike are fewer than they seem.
    let alike: f64 = left.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let alike = if rest > 0.0 { alike / rest } else { 0.0 };
    // What is left over after a fit looks less alike than it is, the more so the fewer levels there are.
    let alike = (alike + (1.0 + 4.0 * alike) / levels.len() as f64).clamp(0.0, MOST_ALIKE);
    let inflated = ((1.0 + alike) / (1.0 - alike)).sqrt();
    let free = (levels.len() - steps.len() - 2) as f64;
    Some(Line { slope, error: (rest / free / spread).sqrt() * inflated, inflated, rest })
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A look every five seconds, for an hour. `of`: the value at a time in hours.
    fn hour(of: impl FnMut(f64) -> f64) -> Growth {
        series(3600, of)
    }

    fn series(seconds: u64, mut of: impl FnMut(f64) -> f64) -> Growth {
        let points: Vec<Point> =
            (0..=seconds / 5).map(|index| index as f64 * 5.0).map(|at| (at, of(at / 3600.0))).collect();
        super::of("i0".into(), "memory in KiB", &points).expect("long enough")
    }

    fn noise(seed: u64, width: f64) -> impl FnMut() -> f64 {
        let mut random = StdRng::seed_from_u64(seed);
        move || random.random_range(-width..=width)
    }

    #[test]
    fn what_stays_is_flat() {
        let found = hour(|_| 92.0);
        assert_eq!((found.verdict, found.per_hour, found.noise, found.steps), (Verdict::Flat, 0.0, 0.0, 0));
        assert_eq!((found.first, found.last, found.minutes), (92.0, 92.0, 60.0));
    }

    #[test]
    fn noise_is_flat_whatever_its_seed() {
        for seed in 0..300 {
            let mut noise = noise(seed, 20_000.0);
            let found = hour(|_| 60_000.0 + noise());
            assert_eq!(found.verdict, Verdict::Flat, "seed {seed}: {found:?}");
        }
    }

    #[test]
    fn a_walk_that_leads_nowhere_is_flat() {
        // Each value is near the last one, and is drawn back to a middle: what allocators do. One in a hundred may err.
        let grown = (0..300).filter(|seed| {
            let (mut noise, mut level) = (noise(*seed, 400.0), 0.0);
            let found = hour(|_| {
                level = level * 0.98 + noise();
                60_000.0 + level
            });
            found.verdict == Verdict::Grows
        });
        assert!(grown.count() <= 3);
    }

    #[test]
    fn what_grows_is_found_in_its_noise() {
        for seed in 0..300 {
            let mut noise = noise(seed, 5000.0);
            let found = hour(|at| 60_000.0 + 9000.0 * at + noise());
            assert_eq!(found.verdict, Verdict::Grows, "seed {seed}: {found:?}");
            assert!((found.per_hour - 9000.0).abs() < 4.0 * found.noise, "seed {seed}: {found:?}");
        }
        // One file every three minutes.
        let found = hour(|at| 100.0 + (at * 20.0).floor());
        assert_eq!(found.verdict, Verdict::Grows, "{found:?}");
    }

    #[test]
    fn a_step_is_no_growth() {
        for seed in 0..100 {
            for place in [0.15, 0.3, 0.5, 0.7, 0.9] {
                let mut noise = noise(seed, 1000.0);
                let once = hour(|at| if at < place { 40_000.0 } else { 60_000.0 } + noise());
                assert_eq!(once.verdict, Verdict::Flat, "seed {seed}, {place}: {once:?}");
                assert!(once.steps > 0, "seed {seed}, {place}: {once:?}");
                let twice = hour(|at| {
                    40_000.0 + f64::from(u8::from(at > 0.4) + u8::from(at > place)) * 9000.0 + noise()
                });
                assert_eq!(twice.verdict, Verdict::Flat, "seed {seed}, {place}: {twice:?}");
            }
        }
    }

    #[test]
    fn tasks_that_come_and_go_are_no_growth() {
        for seed in 0..100 {
            let mut noise = noise(seed, 500.0);
            let found = hour(|at| {
                // Every two minutes, more or less.
                let more = (at * 30.0 + seed as f64 * 0.37) as u64 % 2;
                40_000.0 + more as f64 * 15_000.0 + noise()
            });
            assert_eq!(found.verdict, Verdict::Flat, "seed {seed}: {found:?}");
        }
    }

    #[test]
    fn a_staircase_and_a_slope_with_a_step_are_growth() {
        for seed in 0..100 {
            let mut noise = noise(seed, 300.0);
            // A leak with each restore, every five minutes.
            let stairs = hour(|at| 40_000.0 + (at * 12.0).floor() * 1000.0 + noise());
            assert_eq!(stairs.verdict, Verdict::Grows, "seed {seed}: {stairs:?}");
            let both = hour(|at| 40_000.0 + 8000.0 * at + if at > 0.5 { 20_000.0 } else { 0.0 } + noise());
            assert_eq!(both.verdict, Verdict::Grows, "seed {seed}: {both:?}");
            assert!((both.per_hour - 8000.0).abs() < 2000.0, "seed {seed}: {both:?}");
        }
    }

    #[test]
    fn starting_and_shrinking_are_no_growth() {
        let starting = hour(|at| if at < 0.09 { at * 500_000.0 } else { 45_000.0 });
        assert_eq!(starting.verdict, Verdict::Flat, "{starting:?}");
        let shrinking = hour(|at| 50_000.0 - at * 9000.0);
        assert_eq!(shrinking.verdict, Verdict::Flat, "{shrinking:?}");
        // Certain, but next to nothing.
        let slow = hour(|at| 50_000.0 + at * 500.0);
        assert_eq!(slow.verdict, Verdict::Flat, "{slow:?}");
    }

    #[test]
    fn of_short_lives_it_is_not_said() {
        assert_eq!(series(1000, |at| 10_000.0 + at * 90_000.0).verdict, Verdict::Short);
        let sample = |at: u64, pid: u64, memory: u64| Entry {
            at: std::time::Duration::from_secs(at),
            event: "sample".into(),
            data: serde_json::json!({"slot": "i0", "pid": pid, "memory": memory}),
        };
        let mut entries = vec![sample(0, 1, 9), sample(20, 1, 99)];
        entries.extend((0..100).map(|index| sample(index * 10, 2, 1000 + index)));
        let found = growth(&entries);
        assert_eq!(found.len(), 1, "that of the process that lived for long: {found:?}");
        assert_eq!((found[0].who.as_str(), found[0].what), ("i0", "memory in KiB"));
        assert!((found[0].per_hour - 360.0).abs() < 10.0, "{found:?}");
    }
}
