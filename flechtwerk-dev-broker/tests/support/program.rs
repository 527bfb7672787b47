//! The broker as a process of its own. Not for examples: cargo tells them nothing of the program.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long an end may take before a test gives up.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_flechtwerk-dev-broker"))
}

/// Ends with the test, however that ends.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// What it says it is ready at.
    pub(crate) address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Running {
        Running::of(program().args(args).stderr(Stdio::piped()))
    }

    pub(crate) fn of(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        child.stdout = Some(out.into_inner());
        let address = line.strip_prefix("ready ").and_then(|address| address.trim_end().parse().ok());
        let address = address.unwrap_or_else(|| panic!("{line:?}, {:?}", child.wait()));
        Running { child, address }
    }

    /// Ends it by SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it by a signal: its status, and what it has said since it was ready.
    pub(crate) fn end(mut self, signal: &str) -> (Option<i32>, String, String) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }

    /// How it ended by itself, and what it said.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the broker does not end");
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }

    /// A figure from its status, such as VmHWM: the most memory that it has had so far, in KiB.
    pub(crate) fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }
}
