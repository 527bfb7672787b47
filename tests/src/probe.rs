//! What an instance serves by HTTP: metrics and probes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::{Instance, wait_for};

/// The flag that makes an instance serve on a free port.
pub const ANY_PORT: (&str, &str) = ("--metrics-listen", "127.0.0.1:0");

/// Where an instance serves, once it does.
#[derive(Clone, Debug)]
pub struct Probe(String);

impl Probe {
    /// Waits for the log line with the address.
    #[track_caller]
    pub fn of(instance: &Instance) -> Probe {
        let mut found = None;
        wait_for("the address of /metrics in the log", || {
            let log = instance.log();
            found = log.lines().find(|line| line.contains("serving /metrics")).and_then(|line| {
                let (_, address) = line.split_once("address=")?;
                Some(Probe(address.trim().to_owned()))
            });
            found.is_some()
        });
        found.expect("an address")
    }

    /// Status and body; `None` where nobody answers.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.0).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.0).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split_whitespace().nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }

    /// Status of a path; 0 where nobody answers.
    pub fn status(&self, path: &str) -> u16 {
        self.get(path).map_or(0, |(status, _)| status)
    }

    /// Assigned and running tasks of a stage, as `/ready` tells them.
    pub fn tasks(&self, stage: &str) -> (u64, u64) {
        let body = self.get("/ready").map_or_else(String::new, |(_, body)| body);
        let json: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
        let number = |name: &str| json["stages"][stage][name].as_u64().unwrap_or(u64::MAX);
        (number("assigned"), number("running"))
    }

    /// The sum of a metric over the series whose labels contain `labels`; `None` where there is no such series.
    pub fn metric(&self, name: &str, labels: &str) -> Option<f64> {
        let (_, body) = self.get("/metrics")?;
        let values = body.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let rest = series.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with('{') && rest.contains(labels))
                .then(|| value.parse::<f64>().ok())?
        });
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }
}
