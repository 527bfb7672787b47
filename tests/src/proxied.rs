//! A stage whose connections all pass a proxy, so that its requests can be broken on any broker. What the test itself reads and
//! writes does not pass it.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use flechtwerk_proxy::{Action, ApiKey, Fault, Proxy, Rule, RuleBuilder};

use crate::{Cluster, DEADLINE, Kafka, Rig, Subject};

/// A stage behind a proxy.
pub struct Proxied {
    /// Where rules are put in force.
    pub proxy: Proxy,
    subject: Subject,
}

impl Proxied {
    /// One partition on the cluster of the environment. `binary`: `env!("CARGO_BIN_EXE_rig")`.
    pub fn new(binary: &str) -> Proxied {
        let kafka = Kafka::from_env();
        Proxied::before(&kafka, binary, |topic| kafka.create_topic(topic, 1, &[]))
    }

    /// One partition on a cluster, with a replica on each node.
    pub fn on(cluster: &Cluster, nodes: i32, binary: &str) -> Proxied {
        Proxied::before(&cluster.kafka, binary, |topic| cluster.create_topic(topic, 1, nodes))
    }

    fn before(kafka: &Kafka, binary: &str, create: impl Fn(&str)) -> Proxied {
        let brokers: Vec<&str> = kafka.brokers.split(',').collect();
        let proxy = Proxy::start(&brokers).expect("a proxy");
        let mut subject = Subject::without_topics(kafka, binary, 1);
        for topic in ["words", "counts"] {
            create(subject.job.topic(topic));
        }
        subject.set(|rig| rig.arg("--bootstrap-servers", &proxy.bootstrap()));
        Proxied { proxy, subject }
    }

    /// Changes how instances are started.
    pub fn with(mut self, change: impl FnOnce(Rig) -> Rig) -> Proxied {
        self.set(change);
        self
    }

    /// Requests of the task's producer.
    pub fn producer(&self, api: ApiKey) -> RuleBuilder {
        Rule::on(api).transactional_id(self.transactional_id(0))
    }

    /// Requests of any client of the instances.
    pub fn client(&self, api: ApiKey) -> RuleBuilder {
        Rule::on(api).client(self.client_id())
    }

    /// Does this to the next request of the task's producer.
    pub fn break_producer(&self, api: ApiKey, action: Action) -> Fault {
        eprintln!("{api:?}: {action}");
        self.proxy.rule(self.producer(api).then(action))
    }

    /// Does this to the next request of any client.
    pub fn break_client(&self, api: ApiKey, action: Action) -> Fault {
        eprintln!("{api:?}: {action}");
        self.proxy.rule(self.client(api).then(action))
    }

    /// Lets a request that is held go on, and waits until the broker has carried it out, or refused it.
    #[track_caller]
    pub fn release(&self, api: ApiKey, held: &Fault) {
        let answered = self.proxy.rule(self.producer(api).then(Action::ApplyThenDelayReply(Duration::ZERO)));
        held.release();
        wait_fired(&answered);
    }
}

/// Waits until a rule has hit something.
#[track_caller]
pub fn wait_fired(fault: &Fault) {
    assert!(fault.wait(DEADLINE), "nothing came to be broken by rule {}", fault.number());
}

impl Deref for Proxied {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

impl DerefMut for Proxied {
    fn deref_mut(&mut self) -> &mut Subject {
        &mut self.subject
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what the proxy did:");
            self.proxy.log().iter().for_each(|event| eprintln!("{event}"));
            eprintln!("--- requests: {:?}", self.proxy.requests());
        }
    }
}
