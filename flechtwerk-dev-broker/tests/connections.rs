//! Many connections at a time: the broker stays responsive, takes a little memory for each and no thread, and nothing of them stays.
//! `CONNECTIONS=10000` makes it as many.

#[path = "support/program.rs"]
mod program;
mod support;

use std::fs::File;
use std::process::Command;
use std::time::Instant;

use flechtwerk_dev_broker::DevBroker;
use kafka_protocol::messages::ApiVersionsRequest;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use program::{Running, program};
use support::*;

const CONNECTIONS: usize = 1_500;
/// For each connection; measured are 5.
const MOST_KIB: u64 = 10;

fn open_files(broker: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", broker.child.id())).unwrap().count()
}

#[test]
fn many_connections_cost_little_and_leave_nothing() {
    let count = std::env::var("CONNECTIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(CONNECTIONS);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let needed = count as u64 + 100;
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(needed), hard)
        .unwrap_or_else(|error| panic!("{needed} open files are not allowed here, but {hard}: {error}"));

    let broker = Running::start(&["--listen", "127.0.0.1:0", "--topic", "abc:1"]);
    let mut bystander = Client::connect(broker.address);
    bystander.call(9, &produce("abc", 0, batch(b"x")));
    let (files, threads, memory) = (open_files(&broker), broker.status("Threads"), broker.status("VmRSS"));
    let mut first = 0;
    for round in 0..3 {
        let start = Instant::now();
        let clients: Vec<Client> = (0..count)
            .map(|number| {
                let mut client = Client::connect(broker.address);
                // One of ten never says anything.
                if number % 10 != 0 {
                    assert_eq!(client.call(0, &ApiVersionsRequest::default()).error_code, 0);
                }
                client
            })
            .collect();
        let opened = start.elapsed();
        let start = Instant::now();
        let answer = bystander.call(9, &produce("abc", 0, batch(b"x")));
        assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
        bystander.call(11, &fetch("abc", 0, 0, 0));
        let asked = start.elapsed();
        until("all are accepted", || open_files(&broker) == files + count);
        let more = broker.status("VmRSS").saturating_sub(memory);
        assert_eq!(broker.status("Threads"), threads);
        assert!(more < count as u64 * MOST_KIB, "{more} KiB for {count} connections");
        if round == 0 {
            first = more;
        }
        assert!(more < first + count as u64, "{more} KiB where the first round took {first}");
        drop(clients);
        until("nothing of them is left", || open_files(&broker) == files);
        println!("{count} connections in {opened:?}, {more} KiB; two requests of another client: {asked:?}");
    }
    assert_eq!(bystander.call(0, &ApiVersionsRequest::default()).error_code, 0);
}

#[test]
fn one_more_than_allowed_is_closed() {
    let broker = DevBroker::builder().max_connections(10).start().unwrap();
    let asks = |client: &mut Client| client.try_call(0, &ApiVersionsRequest::default()).is_ok();
    let mut clients: Vec<Client> = (0..10).map(|_| Client::connect(broker.address())).collect();
    assert!(clients.iter_mut().all(asks));
    assert!(!asks(&mut Client::connect(broker.address())));
    assert!(clients.iter_mut().all(asks));
    clients.pop();
    until("there is room for another", || asks(&mut Client::connect(broker.address())));
}

#[test]
fn without_files_left_it_says_so_once_and_goes_on() {
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]).arg(program().get_program());
    command.args(["--listen", "127.0.0.1:0"]).stderr(File::create(said.path()).unwrap());
    let broker = Running::of(&mut command);
    let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(broker.address)).collect();
    assert_eq!(clients[0].call(0, &ApiVersionsRequest::default()).error_code, 0);
    let told = || {
        let said = std::fs::read_to_string(said.path()).unwrap();
        said.lines().filter(|line| line.contains("no connection can be accepted")).count()
    };
    until("it says so", || told() == 1);
    let mut last = clients.pop().unwrap();
    drop(clients);
    assert_eq!(last.call(0, &ApiVersionsRequest::default()).error_code, 0);
    assert_eq!(told(), 1);
}
