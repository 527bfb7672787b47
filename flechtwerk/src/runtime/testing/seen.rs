//! What a piece of work shows to an operator: its metrics, and its warnings.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};

/// See the module.
pub(crate) struct Seen {
    metrics: BTreeMap<String, Vec<f64>>,
    pub(crate) warnings: usize,
}

impl Seen {
    /// All that a metric was set to, one value after another; each step of a counter.
    pub(crate) fn of(&self, metric: &str) -> &[f64] {
        self.metrics.get(metric).map_or(&[], Vec::as_slice)
    }
}

/// Does the work on this thread, and says what was seen of it.
pub(crate) fn seen<T>(work: impl FnOnce() -> T) -> (T, Seen) {
    let figures = Figures::default();
    let warnings = Arc::new(AtomicUsize::new(0));
    let done = metrics::with_local_recorder(&figures, || {
        tracing::subscriber::with_default(Warnings(warnings.clone()), work)
    });
    let metrics = figures.lines().iter().map(|(name, line)| (name.clone(), line.values().clone())).collect();
    (done, Seen { metrics, warnings: warnings.load(Ordering::SeqCst) })
}

#[derive(Default)]
struct Figures(Mutex<BTreeMap<String, Arc<Line>>>);

impl Figures {
    fn lines(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Line>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self, key: &Key) -> Arc<Line> {
        self.lines().entry(key.name().to_owned()).or_default().clone()
    }
}

impl Recorder for Figures {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.line(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.line(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[derive(Default)]
struct Line(Mutex<Vec<f64>>);

impl Line {
    fn values(&self) -> MutexGuard<'_, Vec<f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CounterFn for Line {
    fn increment(&self, by: u64) {
        self.values().push(by as f64);
    }

    fn absolute(&self, value: u64) {
        self.values().push(value as f64);
    }
}

impl GaugeFn for Line {
    fn increment(&self, by: f64) {
        self.values().push(by);
    }

    fn decrement(&self, by: f64) {
        self.values().push(-by);
    }

    fn set(&self, value: f64) {
        self.values().push(value);
    }
}

/// Counts what is at least a warning.
struct Warnings(Arc<AtomicUsize>);

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
