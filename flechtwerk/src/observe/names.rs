//! The names of all metrics, with unit and description: one list, so that documentation and code can't differ.

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
const OUTCOME: &[&str] = &["stage", "topic", "outcome"];

const RECORD_BUCKETS: &[f64] = &[1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0];
const BYTE_BUCKETS: &[f64] = &[1e2, 1e3, 1e4, 1e5, 1e6, 4e6, 8e6, 16e6, 64e6];
const TIME_BUCKETS: &[f64] = &[0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 30.0];

const fn metric(
    name: &'static str,
    kind: Kind,
    labels: &'static [&'static str],
    description: &'static str,
) -> Metric {
    Metric { name, kind, labels, description }
}

pub(crate) const RECORDS: Metric =
    metric("flechtwerk_records_total", Kind::Counter, INPUT, "input records whose transaction has committed");
pub(crate) const OUTPUTS: Metric = metric(
    "flechtwerk_output_records_total",
    Kind::Counter,
    TASK,
    "output records whose transaction has committed",
);
pub(crate) const LAG: Metric = metric(
    "flechtwerk_lag_records",
    Kind::Gauge,
    INPUT,
    "offsets between the committed position and the end of the input",
);
pub(crate) const COMMITS: Metric =
    metric("flechtwerk_commits_total", Kind::Counter, TASK, "committed transactions");
pub(crate) const COMMIT_TIME: Metric = metric(
    "flechtwerk_commit_seconds",
    Kind::Histogram(TIME_BUCKETS),
    TASK,
    "time of a transaction from its first produce request to the answered commit, in seconds",
);
pub(crate) const BATCH_RECORDS: Metric = metric(
    "flechtwerk_batch_records",
    Kind::Histogram(RECORD_BUCKETS),
    TASK,
    "input records of a transaction",
);
pub(crate) const BATCH_BYTES: Metric = metric(
    "flechtwerk_batch_bytes",
    Kind::Histogram(BYTE_BUCKETS),
    TASK,
    "bytes of a transaction: inputs, outputs and changed state",
);
pub(crate) const ABORTS: Metric =
    metric("flechtwerk_aborts_total", Kind::Counter, TASK, "aborted transactions");
pub(crate) const FENCES: Metric = metric(
    "flechtwerk_fences_total",
    Kind::Counter,
    TASK,
    "times that a producer fenced the previous owner of its task",
);
pub(crate) const REBUILDS: Metric = metric(
    "flechtwerk_rebuilds_total",
    Kind::Counter,
    TASK,
    "times that a task was started anew, because its transactions were no longer its own or of unknown outcome",
);
pub(crate) const SUSPECT_PRODUCERS: Metric = metric(
    "flechtwerk_suspect_producers_total",
    Kind::Counter,
    TASK,
    "producers discarded because a request of a transaction was never answered",
);
pub(crate) const RESTORE_REMAINING: Metric = metric(
    "flechtwerk_restore_remaining_offsets",
    Kind::Gauge,
    TASK,
    "changelog offsets that are still to be restored before the task can start",
);
pub(crate) const CHANGELOG_HELD: Metric = metric(
    "flechtwerk_changelog_held",
    Kind::Gauge,
    TASK,
    "1 while an open transaction of somebody else on the changelog keeps the task from starting",
);
pub(crate) const STORE_BYTES: Metric =
    metric("flechtwerk_store_bytes", Kind::Gauge, TASK, "bytes of the task's local state, roughly");
pub(crate) const STORE_ENTRIES: Metric =
    metric("flechtwerk_store_entries", Kind::Gauge, TASK, "entries of the task's local state");
pub(crate) const INVALID_RECORDS: Metric = metric(
    "flechtwerk_invalid_records_total",
    Kind::Counter,
    OUTCOME,
    "input records that did not decode, by what became of them",
);
pub(crate) const TASKS_ASSIGNED: Metric =
    metric("flechtwerk_tasks_assigned", Kind::Gauge, STAGE, "tasks assigned to this instance");
pub(crate) const TASKS_RUNNING: Metric =
    metric("flechtwerk_tasks_running", Kind::Gauge, STAGE, "tasks of this instance that process records");
pub(crate) const TASKS_SKIPPED: Metric = metric(
    "flechtwerk_tasks_not_co_assigned",
    Kind::Gauge,
    STAGE,
    "partition numbers that this instance has for some inputs only, so that their tasks can't start",
);

/// All of them.
pub(crate) const ALL: &[Metric] = &[
    RECORDS,
    OUTPUTS,
    LAG,
    COMMITS,
    COMMIT_TIME,
    BATCH_RECORDS,
    BATCH_BYTES,
    ABORTS,
    FENCES,
    REBUILDS,
    SUSPECT_PRODUCERS,
    RESTORE_REMAINING,
    CHANGELOG_HELD,
    STORE_BYTES,
    STORE_ENTRIES,
    INVALID_RECORDS,
    TASKS_ASSIGNED,
    TASKS_RUNNING,
    TASKS_SKIPPED,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        for metric in ALL {
            assert!(metric.name.starts_with("flechtwerk_"), "{}", metric.name);
            assert!(metric.name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
            assert!(!metric.description.ends_with('.'));
            if let Kind::Histogram(bounds) = metric.kind {
                assert!(bounds.is_sorted(), "{}", metric.name);
            }
        }
        let mut names: Vec<_> = ALL.iter().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
