//! The rules alone, the stage alone, and the pipeline in memory.

use std::collections::BTreeSet;

use flechtwerk::testing::Driver;

use super::*;

fn account(limit_cents: u32) -> Account {
    Account { limit_cents, country: "DE".into(), stolen: false }
}

fn payment(cents: i64, country: &str) -> Payment {
    Payment { cents, country: country.into() }
}

#[test]
fn each_rule_is_a_reason() {
    let known = account(100);
    assert_eq!(judge(&payment(100, "DE"), Some(&known)), []);
    assert_eq!(judge(&payment(101, "DE"), Some(&known)), [Reason::AboveLimit]);
    assert_eq!(judge(&payment(50, "FR"), Some(&known)), []);
    assert_eq!(judge(&payment(51, "FR"), Some(&known)), [Reason::Abroad]);
    assert_eq!(judge(&payment(1, "DE"), None), [Reason::NoAccount]);
    let stolen = Account { stolen: true, ..known };
    let all = [Reason::Stolen, Reason::AboveLimit, Reason::Abroad];
    assert_eq!(judge(&payment(101, "FR"), Some(&stolen)), all);
}

#[test]
fn a_pace_is_that_of_one_minute() {
    let mut pace = Pace::default();
    let times = [0, 10_000, 20_000, 30_000, 40_000];
    assert!(times.iter().all(|at| !pace.add(*at)), "five are no haste");
    assert!(pace.add(50_000));
    assert!(!pace.add(85_000), "only those of the last minute count");
    (0..1_000).for_each(|_| assert!(pace.times.len() <= 2 * PACE || pace.add(90_000)));
}

#[test]
fn a_payment_that_comes_late_counts_at_its_own_time() {
    let mut pace = Pace::default();
    assert!(!pace.add(100_000));
    (0..PACE).for_each(|_| assert!(!pace.add(90_000)));
    assert!(pace.add(95_000));
    assert!(!pace.add(41_000), "one of the minute before");
}

#[tokio::test]
async fn one_payment_may_have_several_reasons() -> flechtwerk::Result {
    let accounts: Table<Accounts> = [("a".to_owned(), account(100))].into_iter().collect();
    let (mut pace, mut alerts) = (State::default(), Out::default());
    for _ in 0..PACE {
        let record = Record::new("a".into(), payment(1, "DE")).with_timestamp(5);
        watch(record, &mut pace, &accounts, &mut alerts).await?;
    }
    assert!(alerts.sent().is_empty());
    let record = Record::new("a".into(), payment(500, "DE")).with_timestamp(6);
    watch(record, &mut pace, &accounts, &mut alerts).await?;
    let reasons = vec![Reason::AboveLimit, Reason::TooFast];
    assert_eq!(alerts.sent(), [("a".to_owned(), Alert { reasons, cents: 500 })]);
    Ok(())
}

#[test]
fn what_is_no_payment_stops_nobody() -> Result<(), flechtwerk::testing::Failed> {
    let mut driver = Driver::new(&FRAUD).partitions(1);
    driver.send::<Accounts>("a".into(), account(100));
    driver.send::<Payments>("a".into(), payment(-5, "DE"));
    driver.send_raw::<Payments>(Some(b"a"), Some(b"beep"));
    driver.send::<Payments>("a".into(), payment(101, "DE"));
    driver.send::<Payments>("b".into(), payment(1, "DE"));
    driver.run_blocking()?;
    let reasons: Vec<_> = driver.read::<Alerts>().into_iter().map(|alert| alert.value.reasons).collect();
    assert_eq!(reasons, [[Reason::AboveLimit], [Reason::NoAccount]]);
    let dead = driver.read::<DeadPayments>();
    assert_eq!(dead.len(), 2);
    assert_eq!(dead[1].value.as_deref(), Some(&b"beep"[..]));
    assert_eq!(dead[0].headers.get("flechtwerk.invalid.part").map(|part| &part[..]), Some(&b"value"[..]));
    Ok(())
}

#[test]
fn the_bank_is_always_the_same_and_has_of_everything() {
    let day = || (0..bank::DAY).flat_map(bank::payments).collect::<Vec<_>>();
    assert_eq!(day(), day());
    assert_eq!(bank::accounts(), bank::accounts());
    let accounts: std::collections::BTreeMap<_, _> = bank::accounts().into_iter().collect();
    let mut reasons = BTreeSet::new();
    for (name, _, payment) in day() {
        reasons.extend(judge(&payment, accounts.get(&name)));
    }
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    let broken = day().iter().filter(|(.., payment)| payment.cents <= 0).count();
    assert!(
        (50..1_000).contains(&broken) && (10_000..40_000).contains(&day().len()),
        "{broken} of {}",
        day().len()
    );
}
