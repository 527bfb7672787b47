//! The broker as a program: its one line, its errors, its end.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_flechtwerk-dev-broker"))
}

/// Ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts it, and the address that it says it is ready at.
    fn start(args: &[&str]) -> (Running, String) {
        let child = program().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running(child);
        let mut line = String::new();
        let mut out = BufReader::new(running.0.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        running.0.stdout = Some(out.into_inner());
        let address = line.strip_prefix("ready ").unwrap_or_else(|| panic!("{line:?}")).trim_end();
        (running, address.to_owned())
    }

    fn end(mut self, signal: &str) -> (Option<i32>, String, String) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let (mut out, mut err) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.0.wait().unwrap().code(), out, err)
    }
}

fn fails(args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = program().args(args).output().unwrap();
    assert!(stdout.is_empty());
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn it_says_when_it_is_ready_and_ends_in_good_order() {
    for signal in ["-TERM", "-INT"] {
        let (running, address) = Running::start(&["--listen", "127.0.0.1:0", "--topic", "orders:3"]);
        TcpStream::connect(&address).unwrap();
        let (status, out, err) = running.end(signal);
        assert_eq!((status, out.as_str()), (Some(0), ""));
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains("never for production"), "{err}");
        assert!(TcpStream::connect(&address).is_err());
    }
}

#[test]
fn topics_may_have_settings() {
    let topics =
        ["--topic", "totals:2:cleanup.policy=compact,delete,retention.ms=1000", "--topic", "plain:1"];
    let (running, _) =
        Running::start(&[&["--listen", "127.0.0.1:0", "--compact-every", "500ms"], &topics[..]].concat());
    assert_eq!(running.end("-TERM").0, Some(0));
}

#[test]
fn a_port_in_use_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (status, err) = fails(&["--listen", &address]);
    assert_eq!(status, Some(1));
    assert!(err.contains(&address) && err.contains("choose another address"), "{err}");
}

#[test]
fn a_data_folder_in_use_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let (running, _) = Running::start(&["--listen", "127.0.0.1:0", "--data-dir", folder, "--fsync"]);
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--data-dir", folder]);
    assert_eq!(status, Some(1));
    assert!(err.contains("in use"), "{err}");
    assert_eq!(running.end("-TERM").0, Some(0));
}

#[test]
fn a_folder_of_something_else_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("letter.txt"), "dear").unwrap();
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--data-dir", folder.path().to_str().unwrap()]);
    assert_eq!(status, Some(1));
    assert!(err.contains("not a broker's data folder"), "{err}");
}

#[test]
fn arguments_that_make_no_sense_are_errors() {
    for (args, said) in [
        (["--topic", "orders"], "orders:3"),
        (["--topic", "orders:many"], "no number of partitions"),
        (["--topic", "orders:1:compact"], "KEY=VALUE"),
        (["--compact-every", "soon"], "500ms"),
    ] {
        let (status, err) = fails(&args);
        assert_eq!(status, Some(2), "{args:?}");
        assert!(err.contains(said), "{err}");
    }
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--topic", "a/b:1"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("a/b"), "{err}");
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--log", "[["]);
    assert_eq!(status, Some(1));
    assert!(err.contains("--log"), "{err}");
}
