//! The same random requests to both brokers, good ones and bad ones, and their answers compared one by one.
//!
//! Where the environment names a real Kafka; without it there is nothing to compare with.

use std::collections::{BTreeMap, BTreeSet};

use flechtwerk_conformance::calls::transactions::{Init, settled};
use flechtwerk_conformance::*;
use flechtwerk_dev_broker::DevBroker;

use crate::dice::Dice;

const PARTITIONS: i32 = 2;
const NAMES: usize = 2;

/// Which of its identities a producer uses.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// That of its last start, or one of those before.
    Back(usize),
    /// With an epoch that nobody has been given yet.
    Ahead,
    /// That of the other producer.
    Other,
}

/// One request. `name` is a producer's.
#[derive(Clone, Copy, Debug)]
enum Step {
    Start { name: usize, had: Option<Who> },
    Add { name: usize, who: Who, partition: i32 },
    Send { name: usize, who: Who, partition: i32, ahead: i32, count: usize, transactional: bool },
    Plain { partition: i32 },
    AddOffsets { name: usize, who: Who },
    CommitOffset { name: usize, who: Who, partition: i32, offset: i64 },
    CommitPlainly { partition: i32, offset: i64 },
    End { name: usize, who: Who, commit: bool },
    DeleteRecords { partition: i32 },
}

fn who(dice: &mut Dice) -> Who {
    match dice.roll(20) {
        0..=15 => Who::Back(0),
        16..=17 => Who::Back(1),
        18 => Who::Ahead,
        _ => Who::Other,
    }
}

fn step(dice: &mut Dice) -> Step {
    let name = dice.roll(NAMES);
    let partition = dice.roll(PARTITIONS as usize) as i32;
    match dice.roll(20) {
        0 => Step::Start { name, had: None },
        1..=2 => Step::Start { name, had: Some(who(dice)) },
        3..=6 => Step::Add { name, who: who(dice), partition },
        7..=11 => {
            // With the name of another producer, a real Kafka refuses the first batch of a transaction alone.
            let who = match who(dice) {
                Who::Other => Who::Ahead,
                who => who,
            };
            let ahead = [0, 0, 0, 0, 0, 0, -1, 1][dice.roll(8)];
            // A plain batch of an epoch to come is taken, and then a real Kafka never gets the marker of this one written.
            let transactional = dice.roll(12) != 0 || matches!(who, Who::Ahead);
            Step::Send { name, who, partition, ahead, count: 1 + dice.roll(2), transactional }
        }
        12 => Step::Plain { partition },
        13 => Step::AddOffsets { name, who: who(dice) },
        14 => Step::CommitOffset { name, who: who(dice), partition, offset: dice.roll(100) as i64 },
        15 => Step::CommitPlainly { partition, offset: dice.roll(100) as i64 },
        16..=18 => Step::End { name, who: who(dice), commit: dice.roll(3) != 0 },
        _ if dice.roll(4) == 0 => Step::DeleteRecords { partition },
        _ => Step::End { name, who: Who::Back(0), commit: true },
    }
}

/// One of the two brokers, with names of its own for the same things.
struct Side {
    client: Client,
    topic: String,
    group: String,
    names: Vec<String>,
    /// What each producer was given, the newest last.
    given: Vec<Vec<(i64, i16)>>,
    /// By producer id, epoch and partition: the next sequence number.
    next: BTreeMap<(i64, i16, i32), i32>,
}

impl Side {
    fn new(mut client: Client) -> Side {
        let topic = client.topic(PARTITIONS);
        let names: Vec<String> = (0..NAMES).map(|_| unique("tx")).collect();
        let given = names.iter().map(|name| {
            let first = client.producer_named(name);
            vec![(first.id, first.epoch)]
        });
        let given = given.collect();
        Side { client, topic, group: unique("group"), names, given, next: BTreeMap::new() }
    }

    fn identity(&self, name: usize, who: Who) -> (i64, i16) {
        let own = &self.given[name];
        match who {
            Who::Back(count) => own[own.len().saturating_sub(1 + count)],
            Who::Ahead => (own[own.len() - 1].0, own[own.len() - 1].1 + 1),
            Who::Other => *self.given[(name + 1) % NAMES].last().expect("an identity"),
        }
    }

    fn producer(&self, name: usize, who: Who) -> Producer {
        let (id, epoch) = self.identity(name, who);
        Producer::with_identity(&self.names[name], id, epoch)
    }

    /// Carries a step out; what came of it, in words that are the same for both sides.
    fn take(&mut self, step: Step) -> String {
        match step {
            Step::Start { name, had } => {
                let init = Init { had: had.map(|who| self.identity(name, who)), ..Init::default() };
                let answer = self.client.init_when_ready(&self.names[name], init);
                let known = answer.map(|(id, epoch)| (id == self.given[name][0].0, epoch));
                if let Ok(identity) = answer
                    && self.given[name].last() != Some(&identity)
                {
                    self.given[name].push(identity);
                }
                format!("{known:?}")
            }
            Step::Add { name, who, partition } => {
                let producer = self.producer(name, who);
                format!("{:?}", producer.add(&mut self.client, &self.topic, &[partition]))
            }
            Step::Send { name, who, partition, ahead, count, transactional } => {
                let (id, epoch) = self.identity(name, who);
                let next = self.next.get(&(id, epoch, partition)).copied().unwrap_or(0);
                let sequence = (next + ahead).max(0);
                let batch = Batch::of(vec!["v"; count]).by(id, epoch, sequence);
                let (batch, as_name) = if transactional {
                    (batch.transactional(), Some(self.names[name].as_str()))
                } else {
                    (batch, None)
                };
                let answer = self.client.produce_as(&self.topic, partition, batch.encode(), as_name);
                if answer.error_code == 0 && sequence == next {
                    self.next.insert((id, epoch, partition), next + count as i32);
                }
                format!("{:?}", code(answer.error_code).map(|()| answer.base_offset))
            }
            Step::Plain { partition } => {
                format!("{:?}", self.client.produce(&self.topic, partition, &Batch::of(["plain"])))
            }
            Step::AddOffsets { name, who } => {
                let producer = self.producer(name, who);
                format!("{:?}", producer.add_offsets(&mut self.client, &self.group))
            }
            Step::CommitOffset { name, who, partition, offset } => {
                let producer = self.producer(name, who);
                let (client, topic) = (&mut self.client, &self.topic);
                format!("{:?}", producer.commit_offset(client, &self.group, topic, partition, offset))
            }
            Step::CommitPlainly { partition, offset } => {
                format!("{:?}", self.client.commit_offset(&self.group, &self.topic, partition, offset))
            }
            Step::End { name, who, commit } => {
                let producer = self.producer(name, who);
                let answer = settled(|| producer.end_once(&mut self.client, commit));
                self.settle();
                format!("{answer:?}")
            }
            Step::DeleteRecords { partition } => {
                let before = self.client.stable_end(&self.topic, partition);
                format!("{:?}", self.client.delete_records(&self.topic, partition, before))
            }
        }
    }

    /// Waits until nothing is on its way to the partitions and the group.
    fn settle(&mut self) {
        for name in &self.names {
            wait_for("no transaction is completing", || {
                !self.client.transaction_state(name).starts_with("Prepare")
            });
        }
    }

    /// All that others can see.
    fn look(&mut self) -> String {
        self.settle();
        let mut seen = String::new();
        for name in 0..NAMES {
            let state = self.client.describe_transaction(&self.names[name]).expect("a transaction");
            // A real Kafka lists the partitions of its offsets as well.
            let own = state.topics.iter().filter(|topic| topic.topic.as_str() == self.topic);
            let mut partitions: Vec<i32> = own.flat_map(|topic| topic.partitions.clone()).collect();
            partitions.sort_unstable();
            let words = (state.transaction_state.as_str(), state.producer_epoch, partitions);
            seen.push_str(&format!("{words:?} "));
        }
        for partition in 0..PARTITIONS {
            let topic = &self.topic;
            let start = self.client.list_offset(topic, partition, EARLIEST, UNCOMMITTED).expect("the start");
            let stable = self.client.stable_end(topic, partition);
            let end = self.client.end(topic, partition);
            let committed = self.client.read(topic, partition, start, COMMITTED);
            let fetched = self.client.fetch(topic, partition, start, COMMITTED).expect("a fetch");
            let aborted: Vec<i64> = fetched.aborted.iter().map(|(_, first)| *first).collect();
            seen.push_str(&format!(
                "\n  {start}..{stable}..{end} aborted {aborted:?} committed {committed:?}"
            ));
            let mut producers: Vec<_> = self
                .client
                .describe_producers(topic, partition)
                .expect("producers")
                .iter()
                .map(|one| {
                    let name = self.given.iter().position(|given| given[0].0 == one.producer_id.0);
                    (name, one.producer_epoch, one.last_sequence, one.current_txn_start_offset)
                })
                .collect();
            producers.sort();
            seen.push_str(&format!(" producers {producers:?}"));
            for stable in [false, true] {
                let offset = self.client.fetch_offset(&self.group, topic, partition, stable);
                seen.push_str(&format!(" offset {offset:?}"));
            }
        }
        seen
    }
}

/// Both brokers take the same steps; says where they part.
fn compare(seed: u64, steps: usize) -> Result<(), String> {
    let dev = Broker::dev(DevBroker::builder());
    let mut real = Side::new(Broker::get().client());
    let mut other = Side::new(dev.client());
    let mut dice = Dice(seed);
    let mut history = String::new();
    let mut refused = BTreeSet::new();
    for number in 0..steps {
        let step = step(&mut dice);
        let batch_of = match step {
            Step::Send { name, partition, .. } => Some((name, partition)),
            _ => None,
        };
        if batch_of.is_some_and(|batch| refused.contains(&batch)) {
            continue;
        }
        let (wanted, got) = (real.take(step), other.take(step));
        history.push_str(&format!("\n  {number}: {step:?} -> {wanted}"));
        // A real Kafka remembers the sequence number of a batch whose producer's transaction is not in order, and refuses higher
        // ones of that producer until that one was written.
        refused.extend(batch_of.filter(|_| wanted.starts_with("Err")));
        if wanted != got {
            return Err(format!("seed {seed}:{history}\n  but the development broker: {got}"));
        }
        let (wanted, got) = (real.look(), other.look());
        if wanted != got {
            return Err(format!(
                "seed {seed}:{history}\nseen:\n{wanted}\nbut on the development broker:\n{got}"
            ));
        }
    }
    Ok(())
}

fn compare_all(seeds: std::ops::Range<u64>) {
    if !Broker::get().is_real() {
        return;
    }
    let differences: Vec<String> = seeds.filter_map(|seed| compare(seed, 40).err()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn random_requests_of_producers_are_answered_alike_seeds_1_to_10() {
    compare_all(1..11);
}

#[test]
fn random_requests_of_producers_are_answered_alike_seeds_11_to_20() {
    compare_all(11..21);
}
