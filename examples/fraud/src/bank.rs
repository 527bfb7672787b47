//! A bank that is made up, always the same one: its accounts, and what they pay in some minute, follow from a seed.

use crate::{Account, Payment};

/// Minutes of a day.
pub const DAY: u64 = 24 * 60;
/// How many accounts there are.
pub const ACCOUNTS: u64 = 400;
/// The first minute: 2026-01-01, in milliseconds since the epoch.
const BEGIN: i64 = 1_767_225_600_000;
const MINUTE: u64 = 60_000;
const SEED: u64 = 11;
const COUNTRIES: [&str; 5] = ["DE", "FR", "PL", "NL", "AT"];

/// Numbers that are as good as random, and always the same (xorshift).
struct Random(u64);

impl Random {
    fn of(a: u64, b: u64) -> Random {
        let mut random =
            Random(SEED ^ a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        // Neighbours are alike at first.
        (0..4).for_each(|_| {
            random.below(2);
        });
        random
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.max(1);
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % limit
    }

    fn country(&mut self) -> String {
        COUNTRIES[self.below(COUNTRIES.len() as u64) as usize].to_owned()
    }
}

fn name(account: u64) -> String {
    format!("account-{account:03}")
}

fn account(number: u64) -> Account {
    let mut random = Random::of(number, u64::MAX);
    Account {
        limit_cents: [10_000, 50_000, 200_000][random.below(3) as usize],
        country: random.country(),
        stolen: random.below(40) == 0,
    }
}

/// All accounts and their names.
pub fn accounts() -> Vec<(String, Account)> {
    (0..ACCOUNTS).map(|number| (name(number), account(number))).collect()
}

/// The payments that arrive in a minute: account, time and payment. Some are of accounts that the bank does not have, some
/// come in bursts, and some of amounts that are none.
pub fn payments(minute: u64) -> Vec<(String, i64, Payment)> {
    let mut random = Random::of(minute, 0);
    let mut payments = Vec::new();
    for _ in 0..5 + random.below(10) {
        let number = random.below(ACCOUNTS + 2);
        let Account { limit_cents, country, .. } = account(number);
        let at_home = random.below(8) > 0;
        let country = if at_home { country } else { random.country() };
        let times = if random.below(30) == 0 { 4 + random.below(6) } else { 1 };
        for _ in 0..times {
            let cents = match random.below(60) {
                0 => -(random.below(5) as i64),
                1 => i64::from(limit_cents) + 1 + random.below(10_000) as i64,
                _ => 1 + random.below(u64::from(limit_cents)) as i64,
            };
            let at = BEGIN + (minute * MINUTE + random.below(MINUTE)) as i64;
            payments.push((name(number), at, Payment { cents, country: country.clone() }));
        }
    }
    payments
}
