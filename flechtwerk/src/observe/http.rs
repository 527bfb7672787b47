//! Serves `/metrics`, `/live` and `/ready`. On a thread and runtime of its own: a pipeline whose threads are all busy
//! or hung must still be able to say so.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;

use super::{Health, recorder};
use crate::startup::Problem;

/// How often the recorder tidies up, so that it does not grow while nobody asks.
const UPKEEP: Duration = Duration::from_secs(5);

/// The server; it ends with the process.
pub(crate) struct MetricsServer;

impl MetricsServer {
    /// Binds, makes our recorder that of the process, and serves. Answers with the address that was bound.
    pub(crate) fn start(address: &str, health: Health) -> Result<SocketAddr, Problem> {
        let listener = bind(address)?;
        let recorder = recorder::recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is in use; /metrics will be empty");
        }
        recorder::describe();
        serve(listener, health, handle).map_err(|error| trouble(address, &error))
    }
}

fn bind(address: &str) -> Result<TcpListener, Problem> {
    let listener = TcpListener::bind(address).map_err(|error| trouble(address, &error))?;
    listener.set_nonblocking(true).map_err(|error| trouble(address, &error))?;
    Ok(listener)
}

fn trouble(address: &str, error: &std::io::Error) -> Problem {
    Problem {
        what: format!("metrics can't be served at {address}: {error}"),
        place: "setting `metrics_listen`".into(),
        why: String::new(),
        mend: "use a free port of this machine; port 0 takes any".into(),
    }
}

/// What the handlers answer from.
#[derive(Clone)]
struct Answers {
    health: Health,
    metrics: PrometheusHandle,
}

fn serve(listener: TcpListener, health: Health, metrics: PrometheusHandle) -> std::io::Result<SocketAddr> {
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let answers = Answers { health, metrics };
    std::thread::Builder::new().name("metrics".into()).spawn(move || {
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::spawn(tidy(answers.metrics.clone()));
            axum::serve(listener, router(answers)).await
        });
        if let Err(error) = served {
            tracing::error!(%error, "metrics are no longer served");
        }
    })?;
    Ok(address)
}

async fn tidy(metrics: PrometheusHandle) {
    let mut times = tokio::time::interval(UPKEEP);
    loop {
        times.tick().await;
        metrics.run_upkeep();
    }
}

fn router(answers: Answers) -> Router {
    Router::new()
        .route("/metrics", get(show_metrics))
        .route("/live", get(live))
        .route("/ready", get(ready))
        .with_state(answers)
}

async fn show_metrics(State(answers): State<Answers>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], answers.metrics.render())
}

async fn live(State(answers): State<Answers>) -> impl IntoResponse {
    verdict(answers.health.live(), &answers.health)
}

async fn ready(State(answers): State<Answers>) -> impl IntoResponse {
    verdict(answers.health.ready(), &answers.health)
}

fn verdict(good: bool, health: &Health) -> impl IntoResponse + use<> {
    let status = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CONTENT_TYPE, "application/json")], health.json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// Status and body of a plain GET.
    fn ask(address: SocketAddr, path: &str) -> (u16, String) {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    #[test]
    fn health_and_metrics_are_served() {
        let health = Health::new(["count"]);
        let recorder = recorder::recorder();
        let handle = recorder.handle();
        let address = serve(bind("127.0.0.1:0").unwrap(), health.clone(), handle).unwrap();
        metrics::with_local_recorder(&recorder, || health.update("count", 2, 1));
        assert_eq!(ask(address, "/live").0, 200);
        assert_eq!(ask(address, "/ready").0, 503);
        health.update("count", 2, 2);
        assert_eq!(ask(address, "/ready").0, 200);
        let (status, body) = ask(address, "/metrics");
        assert_eq!(status, 200);
        assert!(body.contains(r#"flechtwerk_tasks_running{stage="count"} 1"#), "{body}");
        assert_eq!(ask(address, "/elsewhere").0, 404);
        health.stopped();
        assert_eq!(ask(address, "/live").0, 503);
    }

    #[test]
    fn a_port_in_use_is_a_problem_that_names_it() {
        let taken = bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let problem = bind(&address).unwrap_err();
        assert!(problem.what.contains(&address), "{problem}");
    }
}
