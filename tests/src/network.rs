//! What a network can do to the requests of a stage, on whatever cluster stands behind the proxy. After each of them every word
//! counts once (S3.7, S4, S5, S6.2).

use std::time::Duration;

use flechtwerk_proxy::{Action, ApiKey};

use crate::proxied::wait_fired;
use crate::{Proxied, wait_for};

/// The client knows at once that it gets no answer.
const DROPPED: [Action; 2] = [Action::DropConnection, Action::ApplyThenDropReply];
/// The client waits for an answer until it has no patience left.
const LOST: [Action; 2] = [Action::Lose, Action::ApplyThenLoseReply];
/// The answer comes late.
const LATE: [Action; 2] = [Action::Delay(DELAY), Action::ApplyThenDelayReply(DELAY)];
const DELAY: Duration = Duration::from_millis(300);

/// A scenario, and its name.
pub type Scenario = (&'static str, fn(Proxied));

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    ("transactions", transactions),
    ("late requests", late_requests),
    ("after the time-out", after_the_timeout),
    ("starts", starts),
    ("signs of life", signs_of_life),
    ("reading", reading),
    ("nodes", nodes),
];

/// Connections that stay silent are given up soon.
fn impatient(proxied: Proxied) -> Proxied {
    proxied.with(|rig| rig.arg("-X", "socket.timeout.ms=1000"))
}

/// S3.7a, S3.7c: each request of a transaction gets no answer, or a late one, before and after the broker acted. Nothing is
/// computed again; only a time-out may have the task start anew.
pub fn transactions(proxied: Proxied) {
    let mut proxied = impatient(proxied);
    let mut instance = proxied.start();
    proxied.process(3);
    let each = |proxied: &mut Proxied, apis: &[ApiKey], actions: &[Action]| {
        for (api, action) in apis.iter().flat_map(|api| actions.iter().map(move |action| (*api, *action))) {
            let fault = proxied.break_producer(api, action);
            proxied.write(1);
            wait_fired(&fault);
            proxied.wait_done();
        }
    };
    let ends = [ApiKey::EndTxn, ApiKey::TxnOffsetCommit, ApiKey::Produce];
    let begins = [ApiKey::AddPartitionsToTxn, ApiKey::AddOffsetsToTxn];
    each(&mut proxied, &[&ends[..], &begins[..]].concat(), &[&DROPPED[..], &LATE[..]].concat());
    proxied.assert_computed_once(&instance);
    each(&mut proxied, &ends, &LOST);
    proxied.finish(&mut instance);
}

/// S3.7a: a request arrives that the client has given up long ago, when the next transaction is open. It has no part in it.
pub fn late_requests(proxied: Proxied) {
    let mut proxied = impatient(proxied);
    let mut instance = proxied.start();
    for api in [ApiKey::EndTxn, ApiKey::TxnOffsetCommit] {
        let before = proxied.process(3);
        let late = proxied.break_producer(api, Action::Hold);
        proxied.write(1);
        wait_fired(&late);
        // By the client's retry, or in another transaction.
        proxied.wait_done();
        let open = proxied.proxy.rule(proxied.producer(ApiKey::Produce).always().then(Action::Hold));
        proxied.write(1);
        wait_fired(&open);
        let ends = ends_of_counts(&proxied);
        proxied.release(api, &late);
        assert_eq!(
            ends_of_counts(&proxied),
            ends,
            "{api:?} has ended the next transaction; log:\n{}",
            instance.log()
        );
        open.release();
        let after = proxied.wait_done();
        assert_ne!(after.owner, before.owner, "{api:?}: the producer is replaced; log:\n{}", instance.log());
    }
    proxied.finish(&mut instance);
}

/// S3.7d: positions are held for so long that the broker ends the transaction. They count for nothing, and all of it is done
/// again.
pub fn after_the_timeout(proxied: Proxied) {
    let mut proxied =
        proxied.with(|rig| rig.arg("--transaction-timeout", "2s").arg("--max-batch-bytes", "1MiB"));
    let mut instance = proxied.start();
    let before = proxied.process(3);
    let begin = end_of_counts(&proxied);
    let held = proxied.break_producer(ApiKey::TxnOffsetCommit, Action::Hold);
    proxied.write(1);
    wait_fired(&held);
    wait_for("the broker aborts the transaction", || ends_of_counts(&proxied) == [begin + 2; 2]);
    held.release();
    let after = proxied.wait_done();
    assert_ne!(after.owner, before.owner, "log:\n{}", instance.log());
    assert_eq!(after.counter, before.counter + 1, "nothing was committed in between");
    proxied.finish(&mut instance);
}

/// S4.1, S4.2, S6.2a: the fence, the committed positions, the group and its coordinators, the restore.
pub fn starts(proxied: Proxied) {
    let mut proxied = impatient(proxied);
    proxied.process_with_another(3);
    let [drop, drop_reply] = DROPPED;
    let [late, late_reply] = LATE;
    let [_, lose_reply] = LOST;
    let breaks = [
        [(ApiKey::InitProducerId, late), (ApiKey::OffsetFetch, late), (ApiKey::Fetch, late)],
        [
            (ApiKey::InitProducerId, late_reply),
            (ApiKey::OffsetFetch, late_reply),
            (ApiKey::Fetch, late_reply),
        ],
        [(ApiKey::JoinGroup, drop), (ApiKey::InitProducerId, drop), (ApiKey::OffsetFetch, drop_reply)],
        [(ApiKey::JoinGroup, drop_reply), (ApiKey::InitProducerId, drop_reply), (ApiKey::OffsetFetch, drop)],
        [(ApiKey::SyncGroup, drop_reply), (ApiKey::FindCoordinator, drop), (ApiKey::ListOffsets, drop_reply)],
        [
            (ApiKey::Metadata, drop_reply),
            (ApiKey::InitProducerId, lose_reply),
            (ApiKey::OffsetFetch, lose_reply),
        ],
    ];
    for broken in breaks {
        let faults: Vec<_> = broken.iter().map(|(api, action)| proxied.break_client(*api, *action)).collect();
        proxied.process_with_another(3);
        for (fault, (api, action)) in faults.iter().zip(broken) {
            assert_eq!(fault.fired(), 1, "{api:?}: {action}");
        }
    }
}

/// S5.1a, S5.1d: some signs of life are lost, which costs nothing. Then the network is cut with a commit on its way, for longer
/// than the session lasts: the task is gone, and begins anew when there is a network again.
pub fn signs_of_life(mut proxied: Proxied) {
    let mut instance = proxied.start();
    proxied.process(3);
    for action in DROPPED {
        let fault = proxied.break_client(ApiKey::Heartbeat, action);
        wait_fired(&fault);
        proxied.process(3);
    }
    proxied.assert_computed_once(&instance);

    let before = proxied.wait_done();
    let held = proxied.break_producer(ApiKey::EndTxn, Action::Hold);
    proxied.write(1);
    wait_fired(&held);
    // What is held is lost with its connection.
    let cut = proxied.proxy.partition(&proxied.client_id(), None);
    wait_for("the session is over", || instance.log().contains("the session expired"));
    cut.remove();
    // The commit may have got through after all, or not: what comes next is another owner's.
    proxied.wait_done();
    proxied.process(3);
    let after = proxied.wait_done();
    assert_ne!(after.owner, before.owner, "log:\n{}", instance.log());
    proxied.finish(&mut instance);
}

/// S6.2a: requests for records wait, and answers with records; nothing is read twice, and nothing is left out.
pub fn reading(mut proxied: Proxied) {
    let mut instance = proxied.start();
    proxied.process(3);
    for action in [Action::Hold, Action::ApplyThenHoldReply] {
        let held = proxied.break_client(ApiKey::Fetch, action);
        wait_fired(&held);
        proxied.write(3);
        held.release();
        proxied.wait_done();
    }
    for action in DROPPED {
        let fault = proxied.break_client(ApiKey::Fetch, action);
        proxied.write(3);
        wait_fired(&fault);
        proxied.wait_done();
    }
    proxied.assert_computed_once(&instance);
    proxied.finish(&mut instance);
}

/// S6.2a: one node after the other can't be reached for a while, whatever it leads and coordinates.
pub fn nodes(mut proxied: Proxied) {
    let mut instance = proxied.start();
    proxied.process(3);
    for node in proxied.proxy.nodes() {
        eprintln!("node {node} can't be reached");
        let end = end_of_counts(&proxied);
        proxied.proxy.node_down(node).expect("a node");
        proxied.write(3);
        // A node that leads nothing here is not even missed: then there are three counts, and a marker.
        let is_done = || ends_of_counts(&proxied).iter().all(|one| *one >= end + 4);
        wait_for("it is missed, or all is done", || proxied.proxy.refused(node) > 0 || is_done());
        proxied.proxy.node_up(node).expect("a node");
        proxied.wait_done();
    }
    let refused: u64 = proxied.proxy.nodes().into_iter().map(|node| proxied.proxy.refused(node)).sum();
    assert!(refused > 0, "no node was missed");
    proxied.finish(&mut instance);
}

/// The ends of the output's partition, up to where all is stable, and of all.
fn ends_of_counts(proxied: &Proxied) -> [i64; 2] {
    let counts = proxied.job.topic("counts");
    ["read_committed", "read_uncommitted"].map(|of| proxied.job.kafka.watermarks(counts, 0, of).1)
}

/// The same when no transaction is open and all markers are written, which may be a moment after the positions are committed.
fn end_of_counts(proxied: &Proxied) -> i64 {
    let mut ends = [0; 2];
    wait_for("the output is stable", || {
        ends = ends_of_counts(proxied);
        ends[0] == ends[1]
    });
    ends[1]
}
