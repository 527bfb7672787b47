//! Handles to the metrics of a stage and of a task. They are made once and cost an atomic operation afterwards; where
//! nothing is served they cost nothing.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use super::names::{self, Kind, Metric};

/// A recorder that knows all our metrics.
pub(super) fn recorder() -> PrometheusRecorder {
    let mut builder = PrometheusBuilder::new();
    for metric in names::ALL {
        if let Kind::Histogram(bounds) = metric.kind {
            let named = Matcher::Full(metric.name.to_owned());
            // Fails on an empty list of bounds alone; the list then falls back to quantiles.
            builder = match builder.set_buckets_for_metric(named, bounds) {
                Ok(builder) => builder,
                Err(_) => PrometheusBuilder::new(),
            };
        }
    }
    builder.build_recorder()
}

/// Tells the recorder in use what our metrics mean.
pub(super) fn describe() {
    for metric in names::ALL {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.description),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.description),
            Kind::Histogram(_) => metrics::describe_histogram!(metric.name, metric.description),
        }
    }
}

fn labels(metric: Metric, values: &[&str]) -> Vec<Label> {
    debug_assert_eq!(metric.labels.len(), values.len(), "{}", metric.name);
    metric.labels.iter().zip(values).map(|(name, value)| Label::new(*name, (*value).to_owned())).collect()
}

fn counter(metric: Metric, values: &[&str]) -> Counter {
    metrics::counter!(metric.name, labels(metric, values))
}

fn gauge(metric: Metric, values: &[&str]) -> Gauge {
    metrics::gauge!(metric.name, labels(metric, values))
}

fn histogram(metric: Metric, values: &[&str]) -> Histogram {
    metrics::histogram!(metric.name, labels(metric, values))
}

/// A count in a gauge; exact up to 2^53.
fn set(gauge: &Gauge, value: u64) {
    gauge.set(value as f64);
}

/// Metrics of a stage on this instance.
pub(crate) struct StageMetrics {
    stage: String,
    assigned: Gauge,
    running: Gauge,
    skipped: Gauge,
}

impl StageMetrics {
    pub(crate) fn new(stage: &str) -> Self {
        StageMetrics {
            assigned: gauge(names::TASKS_ASSIGNED, &[stage]),
            running: gauge(names::TASKS_RUNNING, &[stage]),
            skipped: gauge(names::TASKS_SKIPPED, &[stage]),
            stage: stage.to_owned(),
        }
    }

    /// Tasks assigned, running, and not startable because not all inputs have their number.
    pub(crate) fn tasks(&self, assigned: usize, running: usize, skipped: usize) {
        set(&self.assigned, assigned as u64);
        set(&self.running, running as u64);
        set(&self.skipped, skipped as u64);
    }

    /// A record that did not decode; `outcome` is what the stage made of it: `crash`, `skip`, ...
    pub(crate) fn invalid_record(&self, topic: &str, outcome: &str) {
        counter(names::INVALID_RECORDS, &[&self.stage, topic, outcome]).increment(1);
    }
}

/// One committed transaction, for the metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Committed {
    /// Records by input.
    pub(crate) records: Vec<u64>,
    pub(crate) outputs: u64,
    pub(crate) bytes: u64,
    pub(crate) took: Duration,
}

/// Metrics of a task. When it goes, its gauges go to zero: somebody else has its lag now.
pub(crate) struct TaskMetrics {
    records: Vec<Counter>,
    lag: Vec<Gauge>,
    outputs: Counter,
    commits: Counter,
    commit_time: Histogram,
    batch_records: Histogram,
    batch_bytes: Histogram,
    aborts: Counter,
    fences: Counter,
    rebuilds: Counter,
    suspect: Counter,
    held: Gauge,
    store_bytes: Gauge,
    store_entries: Gauge,
}

impl TaskMetrics {
    pub(crate) fn new(stage: &str, inputs: &[Arc<str>], partition: i32) -> Self {
        let partition = &partition.to_string();
        let task: &[&str] = &[stage, partition];
        TaskMetrics {
            records: inputs.iter().map(|topic| counter(names::RECORDS, &[stage, topic, partition])).collect(),
            lag: inputs.iter().map(|topic| gauge(names::LAG, &[stage, topic, partition])).collect(),
            outputs: counter(names::OUTPUTS, task),
            commits: counter(names::COMMITS, task),
            commit_time: histogram(names::COMMIT_TIME, task),
            batch_records: histogram(names::BATCH_RECORDS, task),
            batch_bytes: histogram(names::BATCH_BYTES, task),
            aborts: counter(names::ABORTS, task),
            fences: counter(names::FENCES, task),
            rebuilds: counter(names::REBUILDS, task),
            suspect: counter(names::SUSPECT_PRODUCERS, task),
            held: gauge(names::CHANGELOG_HELD, task),
            store_bytes: gauge(names::STORE_BYTES, task),
            store_entries: gauge(names::STORE_ENTRIES, task),
        }
    }

    pub(crate) fn committed(&self, batch: &Committed) {
        for (counter, records) in self.records.iter().zip(&batch.records) {
            counter.increment(*records);
        }
        self.outputs.increment(batch.outputs);
        self.commits.increment(1);
        self.commit_time.record(batch.took.as_secs_f64());
        self.batch_records.record(batch.records.iter().sum::<u64>() as f64);
        self.batch_bytes.record(batch.bytes as f64);
    }

    /// Offsets between the committed position and the end, by input.
    pub(crate) fn lag(&self, input: usize, offsets: u64) {
        if let Some(gauge) = self.lag.get(input) {
            set(gauge, offsets);
        }
    }

    pub(crate) fn aborted(&self) {
        self.aborts.increment(1);
    }

    pub(crate) fn fenced(&self) {
        self.fences.increment(1);
    }

    pub(crate) fn rebuilt(&self) {
        self.rebuilds.increment(1);
    }

    pub(crate) fn suspect_producer(&self) {
        self.suspect.increment(1);
    }

    /// A foreign open transaction holds the changelog's end back, or no longer does.
    pub(crate) fn changelog_held(&self, held: bool) {
        set(&self.held, u64::from(held));
    }

    pub(crate) fn store(&self, bytes: u64, entries: u64) {
        set(&self.store_bytes, bytes);
        set(&self.store_entries, entries);
    }
}

impl Drop for TaskMetrics {
    fn drop(&mut self) {
        let single = [&self.held, &self.store_bytes, &self.store_entries];
        for gauge in self.lag.iter().chain(single) {
            gauge.set(0.0);
        }
    }
}

/// Offsets that a restore has before it.
pub(super) fn restore_remaining(stage: &str, partition: i32) -> Gauge {
    gauge(names::RESTORE_REMAINING, &[stage, &partition.to_string()])
}

#[cfg(test)]
mod tests {
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
    fn a_tasks_numbers_carry_stage_topic_and_partition() {
        let text = scraped(|| {
            let task = TaskMetrics::new("count", &["words".into(), "more".into()], 3);
            task.committed(&Committed {
                records: vec![5, 2],
                outputs: 7,
                bytes: 900,
                took: Duration::from_millis(15),
            });
            task.lag(1, 40);
            task.fenced();
            // Its gauges are to be seen as they are while the task lives.
            std::mem::forget(task);
        });
        for line in [
            r#"flechtwerk_records_total{stage="count",topic="words",partition="3"} 5"#,
            r#"flechtwerk_records_total{stage="count",topic="more",partition="3"} 2"#,
            r#"flechtwerk_output_records_total{stage="count",partition="3"} 7"#,
            r#"flechtwerk_lag_records{stage="count",topic="more",partition="3"} 40"#,
            r#"flechtwerk_fences_total{stage="count",partition="3"} 1"#,
            r#"flechtwerk_commit_seconds_bucket{stage="count",partition="3",le="0.01"} 0"#,
            r#"flechtwerk_commit_seconds_bucket{stage="count",partition="3",le="0.02"} 1"#,
            r#"flechtwerk_batch_records_sum{stage="count",partition="3"} 7"#,
            "# HELP flechtwerk_lag_records offsets between the committed position and the end of the input",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }

    #[test]
    fn a_task_that_goes_takes_its_gauges_along() {
        let text = scraped(|| {
            let task = TaskMetrics::new("count", &["words".into()], 3);
            task.lag(0, 40);
            task.store(1000, 10);
        });
        assert!(
            text.contains(r#"flechtwerk_lag_records{stage="count",topic="words",partition="3"} 0"#),
            "{text}"
        );
        assert!(text.contains(r#"flechtwerk_store_bytes{stage="count",partition="3"} 0"#), "{text}");
    }

    #[test]
    fn a_stages_numbers() {
        let text = scraped(|| {
            let stage = StageMetrics::new("count");
            stage.tasks(4, 3, 1);
            stage.invalid_record("words", "skip");
        });
        for line in [
            r#"flechtwerk_tasks_assigned{stage="count"} 4"#,
            r#"flechtwerk_tasks_running{stage="count"} 3"#,
            r#"flechtwerk_tasks_not_co_assigned{stage="count"} 1"#,
            r#"flechtwerk_invalid_records_total{stage="count",topic="words",outcome="skip"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
