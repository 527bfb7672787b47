//! The whole example: its program as a process that is killed, and a broker.

use std::collections::BTreeMap;
use std::time::Duration;

use flechtwerk_dev_broker::{DevBroker, NewTopic};
use flechtwerk_tests::{Kafka, Observer, Rig, STOP, Seen, wait_within};
use fraud::{Account, Alert, Pace, Payment, Reason, bank, judge};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fraud");
/// Time to make up a day and to watch it.
const LIMIT: Duration = Duration::from_secs(120);

/// Each with its account.
type Alerts = Vec<(String, Alert)>;
/// Partitions and offsets.
type Places = Vec<(i32, i64)>;

/// What a plain recount makes of the payments, in the order of each partition: alerts, and offsets of what is none.
fn recount(payments: &[Seen], accounts: &BTreeMap<String, Account>) -> (Alerts, Places) {
    let (mut alerts, mut dead, mut paces) = (vec![], vec![], BTreeMap::<String, Pace>::new());
    let mut payments: Vec<_> = payments.iter().collect();
    payments.sort_by_key(|payment| (payment.partition, payment.offset));
    for seen in payments {
        let Ok(payment) = serde_json::from_slice::<Payment>(seen.value.as_deref().unwrap_or_default()) else {
            dead.push((seen.partition, seen.offset));
            continue;
        };
        let account = seen.key_text();
        let mut reasons = judge(&payment, accounts.get(&account));
        if paces.entry(account.clone()).or_default().add(seen.timestamp) {
            reasons.push(Reason::TooFast);
        }
        if !reasons.is_empty() {
            alerts.push((account, Alert { reasons, cents: payment.cents }));
        }
    }
    alerts.sort();
    (alerts, dead)
}

fn alerts(seen: &[Seen]) -> Alerts {
    let alert = |seen: &Seen| {
        let alert = serde_json::from_slice(seen.value.as_deref().unwrap_or_default()).expect("an alert");
        (seen.key_text(), alert)
    };
    let mut alerts: Vec<_> = seen.iter().map(alert).collect();
    alerts.sort();
    alerts
}

fn dead(seen: &[Seen]) -> Places {
    let number =
        |seen: &Seen, name: &str| seen.header(name).and_then(|text| text.parse().ok()).expect("a number");
    let place = |seen: &Seen| {
        let partition = number(seen, "flechtwerk.invalid.partition");
        (partition as i32, number(seen, "flechtwerk.invalid.offset"))
    };
    let mut places: Places = seen.iter().map(place).collect();
    places.sort_unstable();
    places
}

#[test]
fn every_payment_is_judged_once_across_kills() {
    let accounts = NewTopic::new("accounts", 2).config("cleanup.policy", "compact");
    let broker = DevBroker::builder()
        .topic(accounts)
        .topic(("payments", 3))
        .topic(("payments-dead", 1))
        .topic(("alerts", 3))
        .start()
        .expect("a broker");
    let kafka = Kafka { brokers: broker.bootstrap() };
    let [payments, sent, unread] =
        ["payments", "alerts", "payments-dead"].map(|topic| Observer::start(&kafka, topic));

    // The bank first, so that all accounts are known when the first payment is judged.
    let day: usize = (0..=bank::DAY).map(|minute| bank::payments(minute).len()).sum();
    let mut trading = Rig::new(&kafka, PROGRAM).arg("--stage", "trade").start();
    wait_within(LIMIT, "a day of payments", || payments.count() >= day);
    assert_eq!(trading.terminate(STOP), 0, "a clean stop; log:\n{}", trading.log());
    let known: BTreeMap<String, Account> = bank::accounts().into_iter().collect();
    let (expected, broken) = recount(&payments.seen(), &known);
    assert!(expected.len() > 1_000 && broken.len() > 50, "{} alerts, {} dead", expected.len(), broken.len());
    for reason in [Reason::NoAccount, Reason::Stolen, Reason::AboveLimit, Reason::Abroad, Reason::TooFast] {
        assert!(expected.iter().any(|(_, alert)| alert.reasons.contains(&reason)), "{reason:?}");
    }

    // Small batches, so that the kills hit the middle of the day.
    let watching = Rig::new(&kafka, PROGRAM).arg("--stage", "watch").arg("--max-poll-records", "200");
    for count in [100, 600] {
        let mut instance = watching.start();
        wait_within(LIMIT, "some alerts", || sent.count() >= count);
        instance.kill();
    }
    let mut instance = watching.start();
    wait_within(LIMIT, "all alerts and dead letters", || {
        sent.count() >= expected.len() && unread.count() >= broken.len()
    });
    assert_eq!(instance.terminate(STOP), 0, "a clean stop; log:\n{}", instance.log());
    assert_eq!(alerts(&sent.seen()), expected);
    assert_eq!(dead(&unread.seen()), broken);
}

#[test]
fn the_readme_shows_the_pipeline() {
    flechtwerk_tests::readme::assert_diagram(env!("CARGO_MANIFEST_DIR"), PROGRAM);
}
