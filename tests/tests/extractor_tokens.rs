//! Tokens that move between instances: by a rebalance, after a kill, and away from a zombie (S10.3, S10.5, S5).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Case, Instance, Observer, Probe, STOP, Source, wait_for};
use nix::sys::signal::Signal;

const RIG: &str = env!("CARGO_BIN_EXE_rig");
const FEEDS: usize = 16;

fn case() -> (Case, Source, Vec<String>) {
    let case = Case::new(RIG, "fetch", 4, &["feeds", "items"])
        .arg(ANY_PORT.0, ANY_PORT.1)
        .arg("--session-timeout", "6s");
    let source = Source::start();
    let names: Vec<String> = (0..FEEDS).map(|n| format!("feed-{n}")).collect();
    let value = source.value();
    case.kafka.write(case.topic("feeds"), names.iter().map(|name| Write::new(name, &value)));
    (case, source, names)
}

fn wait_for_tokens(instance: &Instance, tokens: u64) -> Probe {
    let probe = Probe::of(instance);
    wait_for(&format!("{tokens} tokens"), || probe.tasks("fetch") == (tokens, tokens));
    probe
}

/// Every feed has exactly these items, in order.
#[track_caller]
fn assert_items(seen: &Observer, names: &[String], items: u64) {
    seen.wait(names.len() * items as usize);
    let mut by_feed: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for one in seen.seen() {
        by_feed.entry(one.key_text()).or_default().push(one.value_text().parse().expect("a number"));
    }
    for name in names {
        assert_eq!(by_feed.get(name), Some(&(0..items).collect()), "{name}");
    }
}

#[test]
fn a_rebalance_cancels_the_calls_of_the_tokens_that_leave_and_only_those() {
    let (case, source, names) = case();
    names.iter().for_each(|name| source.set(name, 3));
    source.silence(true);
    let seen = case.observe("items");
    let mut first = case.rig.start();
    let probe = wait_for_tokens(&first, 4);
    wait_for("every config's call hangs", || source.open() == FEEDS);
    assert_eq!(probe.metric("flechtwerk_polls_running", "stage=\"fetch\""), Some(FEEDS as f64));

    let mut second = case.rig.start();
    wait_for_tokens(&second, 2);
    wait_for("two tokens have left", || probe.tasks("fetch") == (2, 2));
    wait_for("the calls of those that moved begin anew", || {
        source.open() == FEEDS && source.requests() > FEEDS
    });
    let calls: Vec<usize> = names.iter().map(|name| source.requests_for(name)).collect();
    assert!(calls.iter().all(|calls| [1, 2].contains(calls)), "{calls:?}");
    let stayed = calls.iter().filter(|calls| **calls == 1).count();
    assert_eq!(probe.metric("flechtwerk_polls_running", "stage=\"fetch\""), Some(stayed as f64));
    source.silence(false);
    assert_items(&seen, &names, 3);
    // What was cancelled had not counted, and what stayed did.
    assert_eq!(source.repeated(), 0);
    for instance in [&mut first, &mut second] {
        assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    }
}

#[test]
fn a_killed_instances_tokens_move_and_nothing_is_lost_or_doubled() {
    let (case, source, names) = case();
    names.iter().for_each(|name| source.set(name, 25));
    let seen = case.observe("items");
    let mut instances = [case.rig.start(), case.rig.start()];
    let probes = instances.each_ref().map(|instance| wait_for_tokens(instance, 2));
    source.delay(Duration::from_millis(20));
    names.iter().for_each(|name| source.set(name, 400));
    seen.wait(FEEDS * 100);
    instances[0].kill();
    wait_for("all tokens are here", || probes[1].tasks("fetch") == (4, 4));
    assert_items(&seen, &names, 400);
    assert_eq!(instances[1].terminate(STOP), 0, "log:\n{}", instances[1].log());
}

/// Says how long the configs of a killed instance rest: the session time-out has to pass, and then their tokens move. The time is for the
/// reader; what is asserted is that they move at all.
#[test]
fn the_configs_of_a_killed_instance_are_polled_again_after_the_session_time_out() {
    let (case, source, names) = case();
    names.iter().for_each(|name| source.set(name, 1));
    let seen = case.observe("items");
    let mut instances = [case.rig.start(), case.rig.start()];
    let probes = instances.each_ref().map(|instance| wait_for_tokens(instance, 2));
    assert_items(&seen, &names, 1);
    instances[0].kill();
    let killed = Instant::now();
    names.iter().for_each(|name| source.set(name, 2));
    assert_items(&seen, &names, 2);
    println!(
        "the last config was read {:.1} s after the kill; the session time-out is 6 s",
        killed.elapsed().as_secs_f64()
    );
    assert_eq!(probes[1].tasks("fetch"), (4, 4));
    assert_eq!(instances[1].terminate(STOP), 0, "log:\n{}", instances[1].log());
}

#[test]
fn a_zombies_pages_do_not_count() {
    let (case, source, names) = case();
    let seen = case.observe("items");
    let mut zombie = case.rig.start();
    wait_for_tokens(&zombie, 4);
    source.silence(true);
    names.iter().for_each(|name| source.set(name, 30));
    wait_for("every config's call hangs", || source.open() == FEEDS);
    zombie.signal(Signal::SIGSTOP);
    // Its pages will be complete when it wakes up.
    source.silence(false);
    let mut other = case.rig.start();
    wait_for_tokens(&other, 4);
    assert_items(&seen, &names, 30);
    zombie.signal(Signal::SIGCONT);
    zombie.wait_for_log("the session expired");
    names.iter().for_each(|name| source.set(name, 50));
    assert_items(&seen, &names, 50);
    for instance in [&mut zombie, &mut other] {
        assert_eq!(instance.terminate(STOP), 0, "log:\n{}", instance.log());
    }
}
