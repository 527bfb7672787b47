//! Which tasks a stage has, and where they run (S2.1).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flechtwerk_tests::job::logged;
use flechtwerk_tests::kafka::Write;
use flechtwerk_tests::probe::ANY_PORT;
use flechtwerk_tests::{Case, Probe, STOP, Seen, wait_for};
use rdkafka::consumer::{BaseConsumer, Consumer};

const RIG: &str = env!("CARGO_BIN_EXE_rig");

#[test]
fn one_task_spans_the_partitions_of_one_number() {
    let partitions = 4;
    let case = Case::new(RIG, "join", partitions, &["profiles", "words", "joined"]);
    let on = |partition, value: &str| Write { partition: Some(partition), ..Write::new("a", value) };
    let mut instances = [case.rig.start(), case.rig.start()];
    instances.iter_mut().for_each(|instance| instance.wait_for_log("task is running"));
    // One key everywhere: whoever mixed partitions up would join the wrong profile.
    let profiles = (0..partitions).map(|partition| on(partition, &format!("p{partition}")));
    case.kafka.write(case.topic("profiles"), profiles);
    wait_for("all profiles are committed", || {
        let committed = case.kafka.committed(&case.application_id(), case.topic("profiles"));
        committed.values().filter(|(at, _)| *at == 1).count() == partitions as usize
    });
    let words = (0..partitions).map(|partition| on(partition, &format!("w{partition}")));
    case.kafka.write(case.topic("words"), words);
    let joined = case.observe("joined");
    let mut values: Vec<_> = joined.wait(partitions as usize).iter().map(Seen::value_text).collect();
    values.sort();
    assert_eq!(values, ["w0@p0", "w1@p1", "w2@p2", "w3@p3"]);
    // Each task has an owner, and it is one for both inputs.
    let mut owners = Vec::new();
    for partition in 0..partitions {
        wait_for("the word is committed", || {
            case.committed_of("words", partition).is_some_and(|(at, _)| at == 1)
        });
        let (_, stamp) = case.committed_of("words", partition).expect("committed");
        assert_eq!(case.committed_of("profiles", partition).expect("committed").1, stamp);
        owners.push(stamp.owner);
    }
    owners.sort();
    owners.dedup();
    assert_eq!(owners.len(), partitions as usize);
    for mut instance in instances {
        assert_eq!(instance.terminate(STOP), 0);
    }
}

/// A member of a group that reads one topic only, as an instance of another version would.
struct Stranger {
    quit: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Stranger {
    fn join(case: &Case, topic: &str) -> Stranger {
        let consumer: BaseConsumer = case
            .kafka
            .config()
            .set("group.id", case.application_id())
            .set("partition.assignment.strategy", "range")
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "500")
            .set("enable.auto.commit", "false")
            .create()
            .expect("a consumer");
        consumer.subscribe(&[case.topic(topic)]).expect("subscribe");
        let quit = Arc::new(AtomicBool::new(false));
        let stop = quit.clone();
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let _ = consumer.poll(Duration::from_millis(50));
            }
        });
        Stranger { quit, thread: Some(thread) }
    }

    fn leave(&mut self) {
        self.quit.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the stranger");
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.leave();
    }
}

#[test]
fn a_task_that_lacks_an_input_does_not_start() {
    let case = Case::new(RIG, "join", 2, &["profiles", "words", "joined"]).arg(ANY_PORT.0, ANY_PORT.1);
    let on = |partition| Write { partition: Some(partition), ..Write::new("a", "x") };
    case.kafka.write(case.topic("words"), [on(0), on(1)]);
    let mut stranger = Stranger::join(&case, "words");
    wait_for("the stranger is a member", || case.kafka.members(&case.application_id()) == 1);
    let joined = case.observe("joined");
    let mut instance = case.rig.start();
    // It gets both profiles and one partition of the words: one task runs, and the other must not.
    instance.wait_for_log("the task does not start");
    let of = |topic: &str| case.kafka.committed(&case.application_id(), case.topic(topic));
    wait_for("the complete task commits", || of("words").values().any(|(at, _)| *at == 1));
    assert_eq!(joined.wait(1).len(), 1);
    // It is counted, once for each assignment that it was incomplete in.
    let of_incomplete = "not every input's partition of this number is assigned here";
    wait_for("it is counted", || {
        let counted = Probe::of(&instance).metric("flechtwerk_incomplete_tasks_total", "stage=\"join\"");
        counted == Some(logged(&instance, of_incomplete) as f64)
    });
    // Nothing is committed for it: it was not fenced, and has not read.
    assert_eq!((of("words").len(), of("profiles").len()), (1, 1));
    stranger.leave();
    joined.wait(2);
    wait_for("the other task commits", || of("words").values().filter(|(at, _)| *at == 1).count() == 2);
    assert_eq!(instance.terminate(STOP), 0);
}

/// S2.1e: it is an error after a minute, which names who subscribes to what.
#[test]
fn a_task_that_lacks_an_input_for_a_minute_stops_the_process() {
    let case = Case::new(RIG, "join", 2, &["profiles", "words", "joined"]);
    let _stranger = Stranger::join(&case, "words");
    wait_for("the stranger is a member", || case.kafka.members(&case.application_id()) == 1);
    let mut instance = case.rig.start();
    instance.wait_for_log("the task does not start");
    assert_eq!(instance.wait(Duration::from_secs(120)), 1, "{}", instance.log());
    let log = instance.log();
    let error = log.lines().find(|line| line.contains("since a minute")).unwrap_or_default();
    assert!(
        error.contains(&format!("subscribes to {}, {};", case.topic("profiles"), case.topic("words"))),
        "{log}"
    );
    assert!(error.contains(&format!("subscribes to {}.", case.topic("words"))), "{log}");
}
