//! Cycles of configs, on a clock of the tests' own.

use super::super::configs::config_of;
use super::*;

const INTERVAL: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

struct Clock {
    now: Instant,
    schedule: Schedule,
}

impl Clock {
    fn new(configs: &[Arc<Config>]) -> Clock {
        let mut clock = Clock { now: Instant::now(), schedule: Schedule::new(INTERVAL) };
        clock.schedule.begin(configs.to_vec(), clock.now, || 0.0);
        clock
    }

    /// The keys that are due now; each is under way after this.
    fn due(&mut self) -> Vec<Arc<Config>> {
        std::iter::from_fn(|| self.schedule.next(self.now)).collect()
    }

    fn names(&mut self) -> Vec<String> {
        self.due().iter().map(|config| name(config)).collect()
    }

    fn done(&mut self, config: &Config, next: Next) {
        self.schedule.done(config, next, self.now, self.now);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }
}

fn name(config: &Config) -> String {
    String::from_utf8_lossy(config.id.1.as_deref().unwrap_or_default()).into_owned()
}

fn config(name: &str) -> Arc<Config> {
    Arc::new(config_of(name, name, false))
}

fn suspended(name: &str) -> Arc<Config> {
    Arc::new(config_of(name, name, true))
}

#[test]
fn each_answer_has_its_time() {
    let mut clock = Clock::new(&[config("a")]);
    let a = clock.due().remove(0);
    assert!(clock.due().is_empty(), "it is under way");
    clock.done(&a, Next::Again);
    assert_eq!(clock.names(), ["a"]);
    clock.done(&a, Next::Idle);
    clock.pass(INTERVAL - SECOND);
    assert!(clock.names().is_empty());
    clock.pass(SECOND);
    assert_eq!(clock.names(), ["a"]);
    clock.done(&a, Next::After(2 * INTERVAL));
    assert_eq!(clock.schedule.next_at(), Some(clock.now + 2 * INTERVAL));
    clock.pass(2 * INTERVAL);
    assert_eq!(clock.names(), ["a"]);
    // No time that a clock could not show.
    clock.done(&a, Next::After(Duration::MAX));
    assert!(clock.schedule.next_at().is_some_and(|at| at > clock.now + INTERVAL));
}

#[test]
fn a_missed_tick_is_not_made_up_for() {
    let mut clock = Clock::new(&[config("a")]);
    let a = clock.due().remove(0);
    clock.done(&a, Next::Idle);
    clock.pass(100 * INTERVAL);
    assert_eq!(clock.names(), ["a"]);
    clock.done(&a, Next::Idle);
    assert!(clock.names().is_empty());
    // The same where a commit took long.
    clock.pass(INTERVAL);
    assert_eq!(clock.names(), ["a"]);
    let ended = clock.now;
    clock.pass(10 * INTERVAL);
    clock.schedule.done(&a, Next::Idle, ended, clock.now);
    assert_eq!(clock.names(), ["a"]);
    clock.done(&a, Next::Idle);
    assert!(clock.names().is_empty());
}

#[test]
fn those_that_want_more_take_turns() {
    let mut clock = Clock::new(&[config("a"), config("b"), config("c")]);
    let all = clock.due();
    assert_eq!(all.len(), 3);
    for config in &all {
        clock.done(config, Next::Again);
    }
    let mut seen = vec![];
    for _ in 0..6 {
        let config = clock.schedule.next(clock.now).expect("one is due");
        seen.push(name(&config));
        clock.done(&config, Next::Again);
    }
    assert_eq!(seen[..3], seen[3..], "each comes once before one comes twice");
}

#[test]
fn many_configs_do_not_fire_at_once() {
    let configs: Vec<_> = (0..1000).map(|n| config(&n.to_string())).collect();
    let mut clock = Clock { now: Instant::now(), schedule: Schedule::new(INTERVAL) };
    let mut chance = 0.0;
    clock.schedule.begin(configs, clock.now, || {
        chance += 0.001;
        chance
    });
    let (mut most, mut all) = (0, 0);
    for _ in 0..=100 {
        let due = clock.due().len();
        most = most.max(due);
        all += due;
        clock.pass(LONGEST_SPREAD / 100);
    }
    assert_eq!(all, 1000);
    assert!(most <= 20, "{most} at once");
}

#[test]
fn a_short_interval_and_few_configs_keep_the_first_poll_near() {
    let first = |interval, count: usize| {
        let mut schedule = Schedule::new(interval);
        let now = Instant::now();
        schedule.begin((0..count).map(|n| config(&n.to_string())).collect(), now, || 1.0);
        schedule.next_at().expect("a first poll") - now
    };
    assert_eq!(first(INTERVAL, 1), SPREAD);
    assert_eq!(first(SECOND, 1000), SECOND);
    assert_eq!(first(INTERVAL, 100_000), LONGEST_SPREAD);
}

#[test]
fn tombstoned_and_suspended_configs_are_not_polled() {
    let mut clock = Clock::new(&[config("a"), config("b"), suspended("c")]);
    clock.schedule.gone(&config("a").id);
    assert_eq!(clock.schedule.len(), 1);
    let b = clock.due().remove(0);
    assert_eq!(name(&b), "b");
    // While its page is still being committed.
    clock.schedule.set(suspended("b"), clock.now);
    clock.done(&b, Next::Again);
    clock.pass(10 * INTERVAL);
    assert!(clock.names().is_empty());
    clock.schedule.set(config("b"), clock.now);
    clock.schedule.set(config("c"), clock.now);
    assert_eq!(clock.names(), ["b", "c"]);
}

#[test]
fn a_config_that_comes_back_waits_for_its_last_page() {
    let mut clock = Clock::new(&[config("a")]);
    let a = clock.due().remove(0);
    clock.schedule.gone(&a.id);
    clock.schedule.set(config("a"), clock.now);
    assert!(clock.names().is_empty(), "the page of its earlier life is not committed yet");
    clock.done(&a, Next::Idle);
    clock.pass(INTERVAL);
    assert_eq!(clock.names(), ["a"]);
}

#[test]
fn a_cancelled_call_lets_the_config_go_on() {
    let mut clock = Clock::new(&[config("a")]);
    let a = clock.due().remove(0);
    clock.schedule.set(suspended("a"), clock.now);
    clock.schedule.set(config("a"), clock.now);
    clock.schedule.cancelled(&a, clock.now);
    assert_eq!(clock.names(), ["a"]);
}

#[test]
fn two_configs_of_one_state_key_are_never_under_way_together() {
    let (one, other) = (Arc::new(config_of("x", "k", false)), Arc::new(config_of("y", "k", false)));
    let mut clock = Clock::new(&[one, other]);
    let mut seen = vec![];
    for _ in 0..4 {
        let due = clock.due();
        assert_eq!(due.len(), 1);
        seen.push(name(&due[0]));
        clock.done(&due[0], Next::Again);
    }
    assert_eq!(seen[0], seen[2]);
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn a_held_config_that_is_suspended_meanwhile_is_forgotten() {
    let (one, other) = (Arc::new(config_of("x", "k", false)), Arc::new(config_of("y", "k", false)));
    let mut clock = Clock::new(&[one, other]);
    let first = clock.due().remove(0);
    let held = if name(&first) == "x" { "y" } else { "x" };
    clock.schedule.set(Arc::new(config_of(held, "k", true)), clock.now);
    clock.done(&first, Next::Idle);
    assert!(clock.names().is_empty());
}

#[test]
fn again_without_anything_new_has_a_limit() {
    let id = config("a").id.clone();
    let mut clock = Clock::new(&[config("a")]);
    let now = clock.now;
    let mut page = |next, moved, messages| clock.schedule.page(&id, next, moved, messages, now);
    for _ in 1..AGAIN_LIMIT {
        assert_eq!(page(Next::Again, false, 0), Ok(()));
    }
    // A cursor that moves, other messages, or a rest: it begins anew.
    assert_eq!(page(Next::Again, true, 0), Ok(()));
    for _ in 1..AGAIN_LIMIT {
        assert_eq!(page(Next::Again, false, 0), Ok(()));
    }
    assert_eq!(page(Next::Again, false, 7), Ok(()));
    // The same messages for ever are nothing new either.
    for _ in 1..AGAIN_LIMIT {
        assert_eq!(page(Next::Again, false, 7), Ok(()));
    }
    assert_eq!(page(Next::Idle, false, 7), Ok(()));
    for _ in 1..AGAIN_LIMIT {
        assert_eq!(page(Next::Again, false, 7), Ok(()));
    }
    assert_eq!(page(Next::After(Duration::from_millis(1)), false, 7), Ok(()));
    for n in 1..AGAIN_LIMIT {
        // Not to wait at all is the same, in other words.
        let next = if n % 2 == 0 { Next::Again } else { Next::After(Duration::ZERO) };
        assert_eq!(page(next, false, 7), Ok(()));
    }
    assert_eq!(page(Next::After(Duration::ZERO), false, 7), Err(AGAIN_LIMIT));
}

/// S10.1g: a source that waits for something new before it answers is asked for as long as it likes; one that answers at once is not.
#[test]
fn a_call_that_waits_for_its_source_does_not_count() {
    let mut clock = Clock::new(&[config("a")]);
    let mut page = |took: Duration| {
        let a = clock.due().remove(0);
        clock.pass(took);
        let counted = clock.schedule.page(&a.id, Next::Again, false, 0, clock.now);
        clock.done(&a, Next::Again);
        // The wait before a call is none of its own.
        clock.pass(INTERVAL);
        counted
    };
    let short = WAITED - Duration::from_nanos(1);
    for took in [WAITED, 30 * SECOND] {
        for _ in 0..3 * AGAIN_LIMIT {
            assert_eq!(page(took), Ok(()));
        }
        // One that waits between others: they are not in a row.
        for _ in 1..AGAIN_LIMIT {
            assert_eq!(page(short), Ok(()));
        }
        assert_eq!(page(took), Ok(()));
    }
    for _ in 1..AGAIN_LIMIT {
        assert_eq!(page(short), Ok(()));
    }
    assert_eq!(page(short), Err(AGAIN_LIMIT));
}
