//! The recorder of all metrics, for Prometheus.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use super::names::{ALL, Kind};

/// A recorder that knows the buckets of our distributions.
pub(super) fn recorder() -> PrometheusRecorder {
    let mut builder = PrometheusBuilder::new();
    for metric in ALL {
        if let Kind::Histogram(bounds) = metric.kind {
            let named = Matcher::Full(metric.name.to_owned());
            // Fails on an empty list of bounds alone, which a test of the names excludes.
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
    for metric in ALL {
        match metric.kind {
            Kind::Counter => metrics::describe_counter!(metric.name, metric.description),
            Kind::Gauge => metrics::describe_gauge!(metric.name, metric.description),
            Kind::Histogram(_) => metrics::describe_histogram!(metric.name, metric.description),
        }
    }
}
