//! stub
pub(crate) mod names {
    macro_rules! c { ($($n:ident)*) => { $(pub(crate) fn $n(_: &'static str, _: i32) -> metrics::Counter { metrics::Counter::noop() })* } }
    macro_rules! h { ($($n:ident)*) => { $(pub(crate) fn $n(_: &'static str, _: i32) -> metrics::Histogram { metrics::Histogram::noop() })* } }
    c!(fences commits aborts suspects rebuilds records);
    h!(commit_seconds batch_records);
    pub(crate) fn changelog_blocked(_: &'static str, _: i32) -> metrics::Gauge {
        metrics::Gauge::noop()
    }
    pub(crate) fn lag(_: &'static str, _: &str, _: i32) -> metrics::Gauge {
        metrics::Gauge::noop()
    }
    pub(crate) fn invalid_records(_: &'static str, _: &str) -> metrics::Counter {
        metrics::Counter::noop()
    }
    pub(crate) fn incomplete_tasks(_: &'static str) -> metrics::Counter {
        metrics::Counter::noop()
    }
}
#[derive(Clone, Default)]
pub(crate) struct Health;
impl Health {
    pub(crate) fn update(&self, _: &'static str, _: usize, _: usize) {}
}
#[derive(Clone, Default)]
pub(crate) struct Restores;
pub(crate) struct Restore;
impl Restores {
    pub(crate) fn begin(&self, _: &'static str, _: i32, _: u64) -> Restore {
        Restore
    }
}
impl Restore {
    pub(crate) fn advance(&self, _: u64, _: u64, _: u64) {}
}
