//! The runtime on a development broker in the test's own process, where any single request can be broken: one stage,
//! what it did, and that its results are exact all the same.

use std::ops::{Deref, DerefMut};

use crate::{DEADLINE, Kafka, Rig, Subject};
use flechtwerk_dev_broker::{Api, Builder, DevBroker, Fault, FaultBuilder, Held, NewTopic};

/// A stage on a broker of its own.
pub struct Trial {
    /// There is none only for a moment: [`Trial::restart`].
    broker: Option<DevBroker>,
    subject: Subject,
}

impl Trial {
    /// One partition on one node. `binary`: `env!("CARGO_BIN_EXE_rig")`.
    pub fn new(binary: &str) -> Trial {
        Trial::on(Trial::builder(), binary, 1, 1)
    }

    /// Settings of a broker.
    pub fn builder() -> Builder {
        DevBroker::builder()
    }

    /// On another broker, with more partitions, and topics on several nodes.
    pub fn on(builder: Builder, binary: &str, partitions: i32, replication: i16) -> Trial {
        let broker = builder.start().expect("a broker");
        let kafka = Kafka { brokers: broker.bootstrap() };
        let subject = Subject::without_topics(&kafka, binary, partitions);
        let job = &subject.job;
        for topic in ["words", "counts"] {
            let topic = NewTopic::new(job.topic(topic), partitions).replication(replication);
            broker.create_topic(topic).expect("a topic");
        }
        let changelog = NewTopic::new(job.changelog(), partitions).config("cleanup.policy", "compact");
        broker.create_topic(changelog.replication(replication)).expect("a topic");
        Trial { broker: Some(broker), subject }
    }

    /// Changes how instances are started.
    pub fn with(mut self, change: impl FnOnce(Rig) -> Rig) -> Trial {
        self.set(change);
        self
    }

    /// Where faults are said.
    pub fn broker(&self) -> &DevBroker {
        self.broker.as_ref().expect("a broker")
    }

    /// Kills the broker and starts it again with these settings, which name its address and its folder.
    pub fn restart(&mut self, builder: Builder) {
        self.broker.take().expect("a broker").kill();
        self.broker = Some(builder.start().expect("a broker"));
    }

    /// A fault of requests of the first task's producer.
    pub fn producer(&self, api: Api) -> FaultBuilder {
        self.broker().fault().api(api).transactional_id(self.transactional_id(0))
    }

    /// A fault of requests of any client of the instances, but not of this test.
    pub fn client(&self, api: Api) -> FaultBuilder {
        self.broker().fault().api(api).client(self.client_id())
    }

    /// How often the instances have asked for this.
    pub fn asked(&self, api: Api) -> usize {
        let client = self.client_id();
        self.broker()
            .requests()
            .count_where(|request| request.api == api && request.client_id.as_deref() == Some(&client))
    }

    /// The same, and something goes wrong on the way.
    #[track_caller]
    pub fn process_with_fault(&mut self, fault: Fault, what: &str) {
        eprintln!("with a fault: {what}");
        self.process_with_another(3);
        assert!(fault.fired() > 0, "no request came to be broken: {what}");
        fault.remove();
    }

    /// How often the first task's id was asked for.
    pub fn fences(&self) -> usize {
        let id = self.transactional_id(0);
        self.broker().requests().count_where(|request| {
            request.api == Api::InitProducerId && request.transactional_id.as_deref() == Some(&id)
        })
    }
}

impl Deref for Trial {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

impl DerefMut for Trial {
    fn deref_mut(&mut self) -> &mut Subject {
        &mut self.subject
    }
}

/// Waits until a fault has hit so many requests.
#[track_caller]
pub fn wait_fired(fault: &Fault, times: u64) {
    assert!(
        fault.wait_times(times, DEADLINE),
        "only {} of {times} requests came to be broken",
        fault.fired()
    );
}

/// Waits until a request is held.
#[track_caller]
pub fn wait_held(held: &Held) {
    assert!(held.wait(DEADLINE), "no request came to be held");
}

impl Drop for Trial {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let Some(broker) = &self.broker else { return };
        let mut asked = broker.requests().all();
        asked.retain(|one| {
            ![Api::Fetch, Api::Heartbeat, Api::ListOffsets, Api::OffsetFetch].contains(&one.api)
        });
        eprintln!("--- the last requests:");
        for one in asked.iter().skip(asked.len().saturating_sub(100)) {
            let about = one.transactional_id.as_deref().or(one.group_id.as_deref()).unwrap_or_default();
            let client = one.client_id.as_deref().unwrap_or_default();
            eprintln!("{:?} node {} {} v{} {about} by {client}", one.at, one.node, one.api, one.version);
        }
    }
}
