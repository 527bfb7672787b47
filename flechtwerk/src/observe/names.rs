//! The names of all metrics, with unit and description, and the way to each: one list, so that documentation and
//! code can't differ.
//!
//! A function here makes a handle with its labels. Where nothing is served, the handles do nothing.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Label};

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution; the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Its labels.
    pub(crate) labels: &'static [&'static str],
    pub(crate) description: &'static str,
}

const STAGE: &[&str] = &["stage"];
const TASK: &[&str] = &["stage", "partition"];
const INPUT: &[&str] = &["stage", "topic", "partition"];
const TABLE: &[&str] = &["table"];
const INVALID: &[&str] = &["stage", "topic", "outcome"];

/// What becomes of a record that does not decode: the values of the label `outcome`.
pub(crate) const CRASH: &str = "crash";
/// See [`CRASH`].
pub(crate) const SKIP: &str = "skip";
/// See [`CRASH`].
pub(crate) const INSTEAD: &str = "instead";
/// See [`CRASH`].
pub(crate) const DEAD_LETTER: &str = "dead_letter";

const RECORD_BUCKETS: &[f64] = &[1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0];
const TIME_BUCKETS: &[f64] = &[0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0];

macro_rules! metrics {
    ($($(#[doc = $description:literal])+ $constant:ident = $name:literal, $kind:expr, $labels:ident;)*) => {
        $(
            $(#[doc = $description])+
            const $constant: Metric =
                Metric { name: $name, kind: $kind, labels: $labels, description: concat!($($description),+).trim_ascii() };
        )*

        /// All of them.
        pub(crate) const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    /// input records whose transaction has committed
    RECORDS = "flechtwerk_records_total", Kind::Counter, TASK;
    /// offsets between the committed position and the end of the input
    LAG = "flechtwerk_lag_records", Kind::Gauge, INPUT;
    /// committed transactions
    COMMITS = "flechtwerk_commits_total", Kind::Counter, TASK;
    /// time of a transaction from its first request to the answered commit, in seconds
    COMMIT_SECONDS = "flechtwerk_commit_seconds", Kind::Histogram(TIME_BUCKETS), TASK;
    /// input records of a transaction
    BATCH_RECORDS = "flechtwerk_batch_records", Kind::Histogram(RECORD_BUCKETS), TASK;
    /// aborted transactions
    ABORTS = "flechtwerk_aborts_total", Kind::Counter, TASK;
    /// times that a producer fenced the previous owner of its task
    FENCES = "flechtwerk_fences_total", Kind::Counter, TASK;
    /// times that a task was started anew, because another owner had written or an outcome stayed unknown
    REBUILDS = "flechtwerk_rebuilds_total", Kind::Counter, TASK;
    /// producers discarded because a request of a transaction was never answered
    SUSPECTS = "flechtwerk_suspect_producers_total", Kind::Counter, TASK;
    /// changelog offsets that are still to be restored before the task can start
    RESTORE_REMAINING = "flechtwerk_restore_remaining_offsets", Kind::Gauge, TASK;
    /// 1 while an open transaction of another producer on the changelog keeps the task from starting
    CHANGELOG_BLOCKED = "flechtwerk_changelog_blocked", Kind::Gauge, TASK;
    /// bytes of the task's local state, roughly
    STORE_BYTES = "flechtwerk_store_bytes", Kind::Gauge, TASK;
    /// entries of the task's local state, where that is known
    STORE_ENTRIES = "flechtwerk_store_entries", Kind::Gauge, TASK;
    /// timers that are set and have not fired
    TIMERS_PENDING = "flechtwerk_timers_pending", Kind::Gauge, TASK;
    /// timers that fired, with their transaction
    TIMERS_FIRED = "flechtwerk_timers_fired_total", Kind::Counter, TASK;
    /// keys of a table
    TABLE_KEYS = "flechtwerk_table_keys", Kind::Gauge, TABLE;
    /// bytes of a table's keys and values as they are in its topic; what they take in memory is more by a constant for each key
    TABLE_BYTES = "flechtwerk_table_bytes", Kind::Gauge, TABLE;
    /// offsets of a table's topic that are still to be read before the stages can join their groups
    TABLE_REMAINING = "flechtwerk_table_remaining_offsets", Kind::Gauge, TABLE;
    /// input records that did not decode, by what became of them: `crash`, or with their transaction `skip`, `instead` or `dead_letter`
    INVALID_RECORDS = "flechtwerk_invalid_records_total", Kind::Counter, INVALID;
    /// calls of an extractor's function that have ended well, with or without something to commit
    POLLS = "flechtwerk_polls_total", Kind::Counter, TASK;
    /// pages of an extractor that are committed
    PAGES = "flechtwerk_pages_total", Kind::Counter, TASK;
    /// calls of an extractor's function under way
    POLLS_RUNNING = "flechtwerk_polls_running", Kind::Gauge, TASK;
    /// configs of the token that are polled here
    CONFIGS = "flechtwerk_configs", Kind::Gauge, TASK;
    /// tasks assigned to this instance
    TASKS_ASSIGNED = "flechtwerk_tasks_assigned", Kind::Gauge, STAGE;
    /// tasks of this instance that process records
    TASKS_RUNNING = "flechtwerk_tasks_running", Kind::Gauge, STAGE;
    /// tasks that could not start because an assignment had their partition of some inputs only
    INCOMPLETE_TASKS = "flechtwerk_incomplete_tasks_total", Kind::Counter, STAGE;
}

fn labels(metric: Metric, values: &[&str]) -> Vec<Label> {
    debug_assert_eq!(metric.labels.len(), values.len(), "{}", metric.name);
    metric.labels.iter().zip(values).map(|(name, value)| Label::new(*name, (*value).to_owned())).collect()
}

macro_rules! of_task {
    ($($function:ident -> $kind:ident = $make:ident!($constant:ident);)*) => {
        $(
            #[doc = concat!("See `", stringify!($constant), "`.")]
            pub(crate) fn $function(stage: &str, partition: i32) -> $kind {
                metrics::$make!($constant.name, labels($constant, &[stage, &partition.to_string()]))
            }
        )*
    };
}

of_task! {
    records -> Counter = counter!(RECORDS);
    commits -> Counter = counter!(COMMITS);
    commit_seconds -> Histogram = histogram!(COMMIT_SECONDS);
    batch_records -> Histogram = histogram!(BATCH_RECORDS);
    aborts -> Counter = counter!(ABORTS);
    fences -> Counter = counter!(FENCES);
    rebuilds -> Counter = counter!(REBUILDS);
    suspects -> Counter = counter!(SUSPECTS);
    restore_remaining -> Gauge = gauge!(RESTORE_REMAINING);
    changelog_blocked -> Gauge = gauge!(CHANGELOG_BLOCKED);
    store_bytes -> Gauge = gauge!(STORE_BYTES);
    store_entries -> Gauge = gauge!(STORE_ENTRIES);
    timers_pending -> Gauge = gauge!(TIMERS_PENDING);
    timers_fired -> Counter = counter!(TIMERS_FIRED);
    polls -> Counter = counter!(POLLS);
    pages -> Counter = counter!(PAGES);
    polls_running -> Gauge = gauge!(POLLS_RUNNING);
    configs -> Gauge = gauge!(CONFIGS);
}

/// See `LAG`.
pub(crate) fn lag(stage: &str, topic: &str, partition: i32) -> Gauge {
    metrics::gauge!(LAG.name, labels(LAG, &[stage, topic, &partition.to_string()]))
}

/// See `TABLE_KEYS`.
pub(crate) fn table_keys(topic: &str) -> Gauge {
    metrics::gauge!(TABLE_KEYS.name, labels(TABLE_KEYS, &[topic]))
}

/// See `TABLE_BYTES`.
pub(crate) fn table_bytes(topic: &str) -> Gauge {
    metrics::gauge!(TABLE_BYTES.name, labels(TABLE_BYTES, &[topic]))
}

/// See `TABLE_REMAINING`.
pub(super) fn table_remaining(topic: &str) -> Gauge {
    metrics::gauge!(TABLE_REMAINING.name, labels(TABLE_REMAINING, &[topic]))
}

/// See `INVALID_RECORDS`.
pub(crate) fn invalid_records(stage: &str, topic: &str, outcome: &str) -> Counter {
    metrics::counter!(INVALID_RECORDS.name, labels(INVALID_RECORDS, &[stage, topic, outcome]))
}

/// See `INCOMPLETE_TASKS`.
pub(crate) fn incomplete_tasks(stage: &str) -> Counter {
    metrics::counter!(INCOMPLETE_TASKS.name, labels(INCOMPLETE_TASKS, &[stage]))
}

/// See `TASKS_ASSIGNED`.
pub(super) fn tasks_assigned(stage: &str) -> Gauge {
    metrics::gauge!(TASKS_ASSIGNED.name, labels(TASKS_ASSIGNED, &[stage]))
}

/// See `TASKS_RUNNING`.
pub(super) fn tasks_running(stage: &str) -> Gauge {
    metrics::gauge!(TASKS_RUNNING.name, labels(TASKS_RUNNING, &[stage]))
}

/// A task begins: its counters are there from now on, so that a rate sees their first step.
pub(crate) fn task_begins(stage: &str, inputs: &[Arc<str>], partition: i32) {
    for counter in [records, commits, aborts, fences, rebuilds, suspects] {
        counter(stage, partition).increment(0);
    }
    for topic in inputs {
        for outcome in [CRASH, SKIP, INSTEAD, DEAD_LETTER] {
            invalid_records(stage, topic, outcome).increment(0);
        }
    }
    incomplete_tasks(stage).increment(0);
}

/// A token begins: what only extractors count is there from now on.
pub(crate) fn token_begins(stage: &str, token: i32) {
    for counter in [polls, pages] {
        counter(stage, token).increment(0);
    }
}

/// A token no longer polls.
pub(crate) fn token_rests(stage: &str, token: i32) {
    for gauge in [polls_running, configs] {
        gauge(stage, token).set(0.0);
    }
}

/// A task has gone: its gauges go to zero, since somebody else has its lag and its state now.
pub(crate) fn task_gone(stage: &str, inputs: &[Arc<str>], partition: i32) {
    for topic in inputs {
        lag(stage, topic, partition).set(0.0);
    }
    for gauge in [changelog_blocked, store_bytes, store_entries] {
        gauge(stage, partition).set(0.0);
    }
}

#[cfg(all(test, feature = "kafka"))]
mod tests {
    use super::super::recorder::{describe, recorder};
    use super::*;

    /// What a scrape would see after `work`.
    fn scraped(work: impl FnOnce()) -> String {
        let recorder = recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            describe();
            work();
        });
        handle.render()
    }

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        for metric in ALL {
            assert!(metric.name.starts_with("flechtwerk_"), "{}", metric.name);
            assert!(metric.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            assert!(!metric.description.ends_with('.'));
            if let Kind::Histogram(bounds) = metric.kind {
                assert!(!bounds.is_empty() && bounds.is_sorted(), "{}", metric.name);
            }
        }
        let mut names: Vec<_> = ALL.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn a_tasks_numbers_carry_stage_topic_and_partition() {
        let text = scraped(|| {
            records("count", 3).increment(5);
            lag("count", "words", 3).set(40.0);
            fences("count", 3).increment(1);
            commit_seconds("count", 3).record(0.015);
            batch_records("count", 3).record(7.0);
            invalid_records("count", "words", SKIP).increment(2);
            incomplete_tasks("count").increment(1);
        });
        for line in [
            r#"flechtwerk_records_total{stage="count",partition="3"} 5"#,
            r#"flechtwerk_lag_records{stage="count",topic="words",partition="3"} 40"#,
            r#"flechtwerk_fences_total{stage="count",partition="3"} 1"#,
            r#"flechtwerk_commit_seconds_bucket{stage="count",partition="3",le="0.01"} 0"#,
            r#"flechtwerk_commit_seconds_bucket{stage="count",partition="3",le="0.02"} 1"#,
            r#"flechtwerk_batch_records_sum{stage="count",partition="3"} 7"#,
            r#"flechtwerk_invalid_records_total{stage="count",topic="words",outcome="skip"} 2"#,
            r#"flechtwerk_incomplete_tasks_total{stage="count"} 1"#,
            "# HELP flechtwerk_lag_records offsets between the committed position and the end of the input",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_task_that_goes_takes_its_gauges_along() {
        let text = scraped(|| {
            lag("count", "words", 3).set(40.0);
            store_bytes("count", 3).set(1000.0);
            task_gone("count", &["words".into()], 3);
        });
        assert!(
            text.contains(r#"flechtwerk_lag_records{stage="count",topic="words",partition="3"} 0"#),
            "{text}"
        );
        assert!(text.contains(r#"flechtwerk_store_bytes{stage="count",partition="3"} 0"#), "{text}");
    }
}
