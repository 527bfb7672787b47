//! The broker as a program: its one line, its errors, its end.

#[path = "support/program.rs"]
mod program;

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use program::{Running, program};

fn fails(args: &[&str]) -> (Option<i32>, String) {
    let mut command = program();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            child.kill().unwrap();
            panic!("{args:?} is no error");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(out, "");
    (status.code(), err)
}

#[test]
fn it_says_when_it_is_ready_and_ends_in_good_order() {
    for signal in ["-TERM", "-INT"] {
        let running = Running::start(&["--listen", "127.0.0.1:0", "--topic", "orders:3"]);
        let address = running.address;
        TcpStream::connect(address).unwrap();
        let (status, out, err) = running.end(signal);
        assert_eq!((status, out.as_str()), (Some(0), ""));
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains("never for production"), "{err}");
        assert!(TcpStream::connect(address).is_err());
    }
}

#[test]
fn topics_may_have_settings() {
    let topics =
        ["--topic", "totals:2:cleanup.policy=compact,delete,retention.ms=1000", "--topic", "plain:1"];
    let running =
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
    let running = Running::start(&["--listen", "127.0.0.1:0", "--data-dir", folder, "--fsync"]);
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
fn a_folder_of_another_version_is_an_error() {
    let folder = used_folder();
    std::fs::write(folder.path().join("version"), "77\n").unwrap();
    let err = does_not_open(&folder);
    assert!(err.contains("has format 77"), "{err}");
}

#[test]
fn a_folder_with_damaged_or_truncated_files_is_an_error() {
    let folder = used_folder();
    let topics = std::fs::read(folder.path().join("topics")).unwrap();
    std::fs::write(folder.path().join("topics"), &topics[..topics.len() / 2]).unwrap();
    let err = does_not_open(&folder);
    assert!(err.contains("topics"), "{err}");

    let folder = used_folder();
    std::fs::write(folder.path().join("version"), "").unwrap();
    let err = does_not_open(&folder);
    assert!(err.contains("format"), "{err}");
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    // Whatever the user may do: below a file there are no folders.
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = file.path().join("data");
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--data-dir", folder.to_str().unwrap()]);
    assert_eq!(status, Some(1));
    assert!(err.contains(folder.to_str().unwrap()), "{err}");
}

/// The folder of a broker that has been there.
fn used_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let running = Running::start(&["--listen", "127.0.0.1:0", "--data-dir", path, "--topic", "orders:2"]);
    assert_eq!(running.end("-TERM").0, Some(0));
    folder
}

/// What is said about a folder that no broker starts with.
fn does_not_open(folder: &tempfile::TempDir) -> String {
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--data-dir", folder.path().to_str().unwrap()]);
    assert_eq!(status, Some(1), "{err}");
    assert!(err.starts_with("error: "), "{err}");
    err
}

#[test]
fn arguments_that_make_no_sense_are_errors() {
    for (args, said) in [
        (["--topic", "orders"], "orders:3"),
        (["--topic", "orders:many"], "no number of partitions"),
        (["--topic", "orders:0"], "no number of partitions"),
        (["--topic", "orders:-1"], "no number of partitions"),
        (["--topic", "orders:99999999999"], "no number of partitions"),
        (["--topic", "orders:1:compact"], "KEY=VALUE"),
        (["--compact-every", "soon"], "500ms"),
        (["--compact-every", "0s"], "nothing"),
        (["--nodes", "many"], "many"),
    ] {
        let (status, err) = fails(&args);
        assert_eq!(status, Some(2), "{args:?}");
        assert!(err.contains(said), "{err}");
    }
    for (topic, said) in [("a/b:1", "a/b"), (":1", "topic \"\""), ("..:1", "\"..\"")] {
        let (status, err) = fails(&["--listen", "127.0.0.1:0", "--topic", topic]);
        assert_eq!(status, Some(1), "{topic}");
        assert!(err.starts_with("error: can't create topic") && err.contains(said), "{err}");
    }
    let long = format!("{}:1", "x".repeat(250));
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--topic", &long]);
    assert_eq!(status, Some(1));
    assert!(err.starts_with("error: can't create topic"), "{err}");
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--topic", "orders:1:cleanup.policy=shred"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("cleanup.policy"), "{err}");
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--nodes", "0"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("0 nodes"), "{err}");
    let (status, err) = fails(&["--listen", "nowhere"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("nowhere"), "{err}");
    let (status, err) = fails(&["--listen", "127.0.0.1:0", "--log", "[["]);
    assert_eq!(status, Some(1));
    assert!(err.contains("--log"), "{err}");
}
