//! Watches payments as they come: against what is known of their accounts, which is a table, and against how fast an account
//! pays, which is state. What does not decode goes to a topic of its own, so that one broken terminal stops nobody.

use flechtwerk::invalid;
use flechtwerk::prelude::*;
use serde::{Deserialize, Serialize};

pub mod bank;

/// So many payments within [`PACE_TIME`] are too many.
pub const PACE: usize = 5;
/// In milliseconds.
pub const PACE_TIME: i64 = 60_000;

/// What the bank knows of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The most that one payment may be.
    pub limit_cents: u32,
    /// Where its owner lives.
    pub country: String,
    /// The card was reported as stolen.
    pub stolen: bool,
}

/// Keyed by account. Every instance holds all of it.
#[topic("accounts", key = Utf8, value = Json<Account>)]
pub struct Accounts;

/// A payment at a terminal, at the time of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    /// How much. Nobody pays nothing, and what a terminal pays back is no payment.
    #[serde(deserialize_with = "above_zero")]
    pub cents: i64,
    /// Where the terminal stands.
    pub country: String,
}

/// Refuses amounts that no terminal should send; some do.
fn above_zero<'de, D: serde::Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    match i64::deserialize(from)? {
        cents if cents > 0 => Ok(cents),
        _ => Err(serde::de::Error::custom("an amount is above zero")),
    }
}

/// Keyed by account.
#[topic("payments", key = Utf8, value = Json<Payment>)]
pub struct Payments;

/// Payments that could not be read, as they were.
#[topic("payments-dead", key = Nullable<Bytes>, value = Nullable<Bytes>)]
pub struct DeadPayments;

/// Why somebody should look at a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// The bank does not know the account.
    NoAccount,
    /// The card was reported as stolen.
    Stolen,
    /// It is more than the account allows.
    AboveLimit,
    /// It is large, and made abroad.
    Abroad,
    /// It is one of too many in a short time.
    TooFast,
}

/// A payment to look at, at its time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Alert {
    /// All that speaks against it.
    pub reasons: Vec<Reason>,
    /// How much.
    pub cents: i64,
}

/// Keyed by account.
#[topic("alerts", key = Utf8, value = Json<Alert>)]
pub struct Alerts;

/// How fast an account pays: the times of its last payments, the oldest first.
#[derive(State, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    times: Vec<i64>,
}

impl Pace {
    /// Adds a payment; true: it is one of too many.
    pub fn add(&mut self, at: i64) -> bool {
        self.times.push(at);
        // Terminals send some payments late.
        self.times.sort_unstable();
        let last = self.times.last().copied().unwrap_or(at);
        self.times.retain(|time| *time > last - PACE_TIME);
        // More than that is never asked for, so that a busy account does not grow.
        let surplus = self.times.len().saturating_sub(2 * PACE);
        self.times.drain(..surplus);
        self.times.iter().filter(|time| (at - PACE_TIME..=at).contains(*time)).count() > PACE
    }
}

/// All that speaks against a payment but its pace.
pub fn judge(payment: &Payment, account: Option<&Account>) -> Vec<Reason> {
    let Some(account) = account else { return vec![Reason::NoAccount] };
    let limit = i64::from(account.limit_cents);
    let abroad = payment.country != account.country && payment.cents > limit / 2;
    let all = [
        (account.stolen, Reason::Stolen),
        (payment.cents > limit, Reason::AboveLimit),
        (abroad, Reason::Abroad),
    ];
    all.into_iter().filter_map(|(holds, reason)| holds.then_some(reason)).collect()
}

/// Watches payments, those of an account one after another.
#[transformer(
    inputs = [Payments],
    state = Pace,
    on_invalid = invalid::dead_letter,
    dead_letters = DeadPayments
)]
pub async fn watch(
    payment: Record<Payments>,
    pace: &mut State<Pace>,
    accounts: &Table<Accounts>,
    alerts: &mut Out<Alerts>,
) -> flechtwerk::Result {
    let at = payment.timestamp.ok_or("a payment without a time has no pace")?;
    let mut reasons = judge(&payment.value, accounts.get(&payment.key));
    if pace.get_or_insert_default().add(at) {
        reasons.push(Reason::TooFast);
    }
    if !reasons.is_empty() {
        alerts.send(payment.key, Alert { reasons, cents: payment.value.cents });
    }
    Ok(())
}

/// Makes up the payments of one minute: those of the first day at once, and then a minute each second. With the first come
/// the accounts.
#[extractor(state = u64, poll_interval = "1s")]
pub async fn trade(
    minute: &mut State<u64>,
    accounts: &mut Out<Accounts>,
    payments: &mut Out<Payments>,
) -> flechtwerk::Result<Next> {
    let now = minute.unwrap_or(0);
    if now == 0 {
        bank::accounts().into_iter().for_each(|(name, account)| accounts.send(name, account));
    }
    for (account, at, payment) in bank::payments(now) {
        payments.send_record(OutRecord::new(account, payment).timestamp(at));
    }
    minute.set(now + 1);
    Ok(if now < bank::DAY { Next::Again } else { Next::Idle })
}

flechtwerk::pipeline!(
    /// Makes up a bank, and watches its payments.
    pub FRAUD = "fraud": [trade, watch]
);

#[cfg(test)]
mod tests;
