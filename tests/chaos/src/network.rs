//! Requests of the instances, broken on their way by the proxy through which all of them go.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use flechtwerk_proxy::{Action, ApiKey, Fault, Proxy, Rule, RuleBuilder};
use flechtwerk_tests::Kafka;
use serde_json::json;

use crate::journal::Journal;
use crate::schedule::{Harm, Request};

/// A fault that no request met in this time waits for the very next one, and then for a heartbeat: those always come.
const UNMET: Duration = Duration::from_secs(15);

/// The proxy and the faults in force.
pub struct Network {
    proxy: Proxy,
    active: Vec<Active>,
    journal: Journal,
    done: BTreeMap<String, usize>,
}

struct Active {
    fault: Fault,
    name: String,
    again: Vec<Again>,
    action: Action,
    since: Instant,
    fired: Option<Instant>,
    held: Duration,
}

/// What to wait for in place of a request that did not come.
struct Again {
    rule: RuleBuilder,
    name: String,
}

impl Network {
    /// Starts a proxy in front of a cluster.
    pub fn start(kafka: &Kafka, journal: Journal) -> anyhow::Result<Network> {
        let brokers: Vec<&str> = kafka.brokers.split(',').collect();
        Ok(Network { proxy: Proxy::start(&brokers)?, active: Vec::new(), journal, done: BTreeMap::new() })
    }

    /// What the instances connect to.
    pub fn bootstrap(&self) -> String {
        self.proxy.bootstrap()
    }

    /// Breaks one request.
    pub fn break_one(&mut self, api: Request, harm: Harm, nth: u32) {
        let (action, held) = action(harm);
        let rule = Rule::on(key(api)).nth(u64::from(nth)).then(action);
        // The last one is tried first.
        let again =
            [Request::Heartbeat, api].map(|api| Again { rule: Rule::on(key(api)), name: name(api, harm) });
        let fault = self.proxy.rule(rule);
        self.active.push(Active {
            fault,
            name: name(api, harm),
            again: again.into(),
            action,
            since: Instant::now(),
            fired: None,
            held,
        });
    }

    /// Looks which have been met, and lets go on what was held long enough.
    pub fn tick(&mut self) {
        let (proxy, journal, done) = (&self.proxy, &self.journal, &mut self.done);
        self.active.retain_mut(|one| {
            if one.fired.is_none() && one.fault.fired() > 0 {
                one.fired = Some(Instant::now());
                journal.write("network", json!({"what": one.name, "held": one.held.as_secs_f64()}));
                *done.entry("network".to_owned()).or_default() += 1;
                *done.entry(format!("network {}", one.name)).or_default() += 1;
            }
            match one.fired {
                Some(at) if at.elapsed() >= one.held => {
                    one.fault.release();
                    false
                }
                Some(_) => true,
                None if one.since.elapsed() > UNMET => {
                    one.fault.remove();
                    one.fault.release();
                    if let Some(Again { rule, name }) = one.again.pop() {
                        one.fault = proxy.rule(rule.then(one.action));
                        (one.name, one.since) = (name, Instant::now());
                        return true;
                    }
                    journal.write("network_unmet", json!({"what": one.name}));
                    *done.entry("network, met by no request".to_owned()).or_default() += 1;
                    false
                }
                None => true,
            }
        });
    }

    /// True if some fault may still be met, or holds something.
    pub fn is_busy(&self) -> bool {
        !self.active.is_empty()
    }

    /// What was done.
    pub fn done(&self) -> BTreeMap<String, usize> {
        self.done.clone()
    }
}

fn key(api: Request) -> ApiKey {
    match api {
        Request::Produce => ApiKey::Produce,
        Request::Fetch => ApiKey::Fetch,
        Request::Heartbeat => ApiKey::Heartbeat,
        Request::OffsetFetch => ApiKey::OffsetFetch,
        Request::InitProducerId => ApiKey::InitProducerId,
        Request::TxnOffsetCommit => ApiKey::TxnOffsetCommit,
        Request::EndTxn => ApiKey::EndTxn,
    }
}

/// What the proxy does, and how long it holds something.
fn action(harm: Harm) -> (Action, Duration) {
    match harm {
        Harm::Delay(time) => (Action::Delay(time), Duration::ZERO),
        Harm::DelayReply(time) => (Action::ApplyThenDelayReply(time), Duration::ZERO),
        Harm::Hold(time) => (Action::Hold, time),
        Harm::HoldReply(time) => (Action::ApplyThenHoldReply, time),
        Harm::Lose => (Action::Lose, Duration::ZERO),
        Harm::LoseReply => (Action::ApplyThenLoseReply, Duration::ZERO),
        Harm::Cut => (Action::DropConnection, Duration::ZERO),
        Harm::CutReply => (Action::ApplyThenDropReply, Duration::ZERO),
        Harm::CutClient => (Action::DropClient, Duration::ZERO),
        Harm::CutClientAfter => (Action::ApplyThenDropClient, Duration::ZERO),
    }
}

fn name(api: Request, harm: Harm) -> String {
    let harm = format!("{harm:?}");
    format!("{api:?} {}", harm.split('(').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use flechtwerk_dev_broker::{DevBroker, NewTopic};
    use flechtwerk_tests::kafka::Write;
    use flechtwerk_tests::wait_for;

    use super::*;

    #[test]
    fn a_request_is_broken_and_counted() {
        let broker = DevBroker::builder().start().expect("a broker");
        broker.create_topic(NewTopic::new("t", 1)).expect("a topic");
        let dir = tempfile::tempdir().expect("a folder");
        let journal = Journal::create(&dir.path().join("log")).expect("a journal");
        let mut network = Network::start(&Kafka { brokers: broker.bootstrap() }, journal).expect("a proxy");
        network.break_one(Request::Produce, Harm::CutReply, 1);
        assert!(network.is_busy());
        Kafka { brokers: network.bootstrap() }.write("t", [Write::new("a", "b")]);
        wait_for("the fault is met", || {
            network.tick();
            !network.is_busy()
        });
        assert_eq!(network.done().get("network Produce CutReply"), Some(&1));
    }
}
