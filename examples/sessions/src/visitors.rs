//! Visitors that are made up, always the same ones: what each clicks in some minute follows from a seed.

use crate::Click;

/// Minutes of a day.
pub const DAY: u64 = 24 * 60;
/// How many there are.
pub const VISITORS: u64 = 300;
/// The first minute: 2026-01-01, in milliseconds since the epoch.
const BEGIN: i64 = 1_767_225_600_000;
const MINUTE: i64 = 60_000;
const SEED: u64 = 30;
/// A session has so many clicks at most, and less than [`STEP`] minutes between two of them.
const CLICKS: u64 = 15;
const STEP: u64 = 8;
/// From the begin of a session to that of the next, at least: there is more than an hour between them.
const PERIOD: u64 = CLICKS * STEP + 60;
/// Some clicks come late, by so many milliseconds at most.
const LATE: u64 = 120_000;
const PAGES: [&str; 7] = ["/", "/news", "/looms", "/looms/40", "/yarns", "/basket", "/help"];

/// A number that is as good as random, and always the same (splitmix64).
fn number(of: [u64; 4]) -> u64 {
    of.into_iter().fold(SEED, |seed, part| {
        let mut z = (seed ^ part).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// The clicks that arrive in a minute: visitor, time and page.
pub fn clicks(minute: u64) -> Vec<(String, i64, Click)> {
    let of = |visitor| {
        let period = PERIOD + number([visitor, 0, 0, 0]) % 240;
        let first = number([visitor, 1, 0, 0]) % period;
        let session = minute.checked_sub(first).map(|since| since / period);
        session.into_iter().flat_map(move |session| {
            let begin = first + session * period;
            of_session(visitor, session, begin).filter(move |(at, _)| *at == minute)
        })
    };
    let mut clicks = Vec::new();
    for visitor in 0..VISITORS {
        clicks.extend(of(visitor).map(|(minute, click)| {
            let random = number([visitor, minute, click, 2]);
            let late = if random.is_multiple_of(5) { random / 64 % LATE } else { 0 };
            let at = BEGIN + minute as i64 * MINUTE + (random % MINUTE as u64) as i64 - late as i64;
            let page = PAGES[(random / 8 % PAGES.len() as u64) as usize].to_owned();
            (format!("visitor-{visitor}"), at, Click { page })
        }));
    }
    clicks
}

/// Minute and number of each click.
fn of_session(visitor: u64, session: u64, begin: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = 1 + number([visitor, session, 0, 3]) % CLICKS;
    (0..count).scan(begin, move |minute, click| {
        let at = *minute;
        *minute += number([visitor, session, click, 4]) % STEP;
        Some((at, click))
    })
}
