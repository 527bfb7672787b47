//! The stage alone, and the pipeline in memory.

use flechtwerk::testing::Driver;

use super::*;

const MINUTE: i64 = 60_000;

fn click(minute: i64, page: &str) -> Record<Clicks> {
    Record::new("ann".into(), Click { page: page.into() }).with_timestamp(minute * MINUTE)
}

fn session(begin: i64, end: i64, entry: &str, exit: &str, clicks: u32) -> Session {
    Session { begin: begin * MINUTE, end: end * MINUTE, entry: entry.into(), exit: exit.into(), clicks }
}

#[tokio::test]
async fn each_click_moves_the_end() -> flechtwerk::Result {
    let (mut state, mut timers, mut out) = (State::default(), Timers::default(), Out::default());
    collect(click(10, "/"), &mut state, &mut timers, &mut out).await?;
    assert_eq!(timers.due("close"), Some(40 * MINUTE));
    collect(click(25, "/news"), &mut state, &mut timers, &mut out).await?;
    // A late one does not move it back.
    collect(click(8, "/help"), &mut state, &mut timers, &mut out).await?;
    assert_eq!(timers.due("close"), Some(55 * MINUTE));
    assert!(out.sent().is_empty());

    close(Timer::new("ann".into(), "close", 55 * MINUTE), &mut state, &mut timers, &mut out).await?;
    assert_eq!(out.sent(), [("ann".to_owned(), session(8, 25, "/help", "/news", 3))]);
    assert!(state.is_none());
    Ok(())
}

#[test]
fn half_an_hour_ends_a_session() -> Result<(), flechtwerk::testing::Failed> {
    let mut driver = Driver::new(&SESSIONS).partitions(1);
    let send = |driver: &mut Driver, minute: i64, visitor: &str| {
        let click = OutRecord::<Clicks>::new(visitor.into(), Click { page: "/".into() });
        driver.send_record(click.timestamp(minute * MINUTE));
    };
    send(&mut driver, 0, "ann");
    send(&mut driver, 29, "ann");
    // Another one's click tells the time; at this one the session of ann is over.
    send(&mut driver, 58, "bob");
    driver.run_blocking()?;
    assert!(driver.read::<Sessions>().is_empty());
    send(&mut driver, 59, "bob");
    driver.run_blocking()?;
    let sent = driver.read::<Sessions>();
    assert_eq!((&*sent[0].key, &sent[0].value), ("ann", &session(0, 29, "/", "/", 2)));
    assert_eq!(sent[0].timestamp, Some(59 * MINUTE), "the time at which it was over");
    // So late that nothing is open any more: a session of its own, at once.
    send(&mut driver, 1, "ann");
    driver.run_blocking()?;
    assert_eq!(driver.read::<Sessions>()[0].value, session(1, 1, "/", "/", 1));
    assert_eq!(driver.state::<Session>("collect", "ann"), None);
    Ok(())
}

#[tokio::test]
async fn a_click_of_an_earlier_session_is_one_of_its_own() -> flechtwerk::Result {
    let (mut state, mut timers, mut out) = (State::default(), Timers::default(), Out::default());
    collect(click(100, "/"), &mut state, &mut timers, &mut out).await?;
    collect(click(69, "/news"), &mut state, &mut timers, &mut out).await?;
    assert_eq!(out.sent(), [("ann".to_owned(), session(69, 69, "/news", "/news", 1))]);
    assert_eq!(state.as_ref(), Some(&session(100, 100, "/", "/", 1)));
    Ok(())
}

#[test]
fn visitors_are_always_the_same() {
    let day: Vec<_> = (0..visitors::DAY).flat_map(visitors::clicks).collect();
    let again: Vec<_> = (0..visitors::DAY).flat_map(visitors::clicks).collect();
    let what = |clicks: &[(String, i64, Click)]| -> Vec<(String, i64)> {
        clicks.iter().map(|(visitor, at, _)| (visitor.clone(), *at)).collect()
    };
    assert_eq!(what(&day), what(&again));
    assert!((5_000..20_000).contains(&day.len()), "{} clicks", day.len());
}
