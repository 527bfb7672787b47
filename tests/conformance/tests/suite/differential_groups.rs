//! The same random requests of one member of a group to both brokers, with right and wrong identities and generations, and
//! their answers compared one by one. There is never a second living member, so that no request waits.
//!
//! Where the environment names a real Kafka; without it there is nothing to compare with.

use flechtwerk_conformance::calls::groups::offset_commit;
use flechtwerk_conformance::*;
use flechtwerk_dev_broker::DevBroker;
use kafka_protocol::messages::{HeartbeatRequest, JoinGroupRequest};

use crate::dice::Dice;

/// Whose member id a request has.
#[derive(Clone, Copy, Debug)]
enum Who {
    Current,
    Former,
    Nobody,
    /// An empty one.
    None,
}

/// Whose instance id a request has.
#[derive(Clone, Copy, Debug)]
enum Instance {
    Own,
    Other,
    None,
}

#[derive(Clone, Copy, Debug)]
struct Identity {
    who: Who,
    instance: Instance,
    /// What is added to the generation.
    off: i32,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(Identity),
    Sync(Identity),
    Heartbeat(Identity),
    Commit(Identity, i64),
    CommitInTransaction(Identity, i64, bool),
    CommitPlainly(i64),
    Leave(Who),
    DeleteGroup,
}

fn identity(dice: &mut Dice) -> Identity {
    let who = [Who::Current, Who::Current, Who::Current, Who::Current, Who::Former, Who::Nobody, Who::None];
    let instance =
        [Instance::Own, Instance::Own, Instance::Own, Instance::Own, Instance::Other, Instance::None];
    let off = [0, 0, 0, 0, 0, 1, -1];
    Identity {
        who: who[dice.roll(who.len())],
        instance: instance[dice.roll(instance.len())],
        off: off[dice.roll(off.len())],
    }
}

fn step(dice: &mut Dice) -> Step {
    match dice.roll(20) {
        // A member that is new must be the one that has the name, or it would wait for that one.
        0..=2 => Step::Join(Identity { who: Who::None, instance: Instance::Own, off: 0 }),
        3..=5 => match identity(dice) {
            Identity { who: Who::None, off, .. } => {
                Step::Join(Identity { who: Who::None, instance: Instance::Own, off })
            }
            identity => Step::Join(identity),
        },
        6..=8 => Step::Sync(Identity { who: Who::Current, instance: Instance::Own, off: 0 }),
        9 => Step::Sync(identity(dice)),
        10..=11 => Step::Heartbeat(identity(dice)),
        12..=13 => Step::Commit(identity(dice), dice.roll(100) as i64),
        14..=15 => Step::CommitInTransaction(identity(dice), dice.roll(100) as i64, dice.roll(2) == 0),
        16 => Step::CommitPlainly(dice.roll(100) as i64),
        17 => Step::Leave([Who::Current, Who::Former, Who::Nobody][dice.roll(3)]),
        18 => Step::DeleteGroup,
        _ => Step::Heartbeat(Identity { who: Who::Current, instance: Instance::Own, off: 0 }),
    }
}

/// One of the two brokers.
struct Side {
    client: Client,
    topic: String,
    producer: Producer,
    member: Member,
    /// All member ids that were given.
    given: Vec<String>,
    generation: i32,
}

impl Side {
    fn new(mut client: Client) -> Side {
        let topic = client.topic(1);
        let member = Member::new(client.another(), &unique("group")).fixed("own");
        let producer = client.transactional_producer();
        Side { client, topic, producer, member, given: Vec::new(), generation: -1 }
    }

    fn id(&self, who: Who) -> String {
        match who {
            Who::Current => self.given.last().cloned(),
            Who::Former => self.given.iter().rev().nth(1).cloned(),
            Who::Nobody => None,
            Who::None => Some(String::new()),
        }
        .unwrap_or_else(|| "nobody".to_owned())
    }

    fn dress(&mut self, identity: Identity) {
        self.member.id = self.id(identity.who);
        self.member.generation = self.generation + identity.off;
        self.member.instance = match identity.instance {
            Instance::Own => Some("own".to_owned()),
            Instance::Other => Some("other".to_owned()),
            Instance::None => None,
        };
    }

    fn take(&mut self, step: Step) -> String {
        match step {
            Step::Join(identity) => {
                self.dress(identity);
                let mut request = self.member.join_request();
                request.protocols[0].metadata = "metadata".into();
                let answer = self.member.client.call::<JoinGroupRequest>(&request);
                if answer.error_code != 0 {
                    return format!("{:?}", code(answer.error_code));
                }
                let id = answer.member_id.as_str().to_owned();
                if self.given.last() != Some(&id) {
                    self.given.push(id.clone());
                }
                self.generation = answer.generation_id;
                let members: Vec<_> =
                    answer.members.iter().map(|one| one.group_instance_id.clone()).collect();
                format!("{} {} {members:?}", answer.generation_id, answer.leader.as_str() == id)
            }
            Step::Sync(identity) => {
                self.dress(identity);
                let id = self.member.id.clone();
                format!("{:?}", self.member.sync(&[(&id, "all")]))
            }
            Step::Heartbeat(identity) => {
                self.dress(identity);
                let request = HeartbeatRequest::default()
                    .with_group_id(text(&self.member.group).into())
                    .with_generation_id(self.member.generation)
                    .with_member_id(text(&self.member.id))
                    .with_group_instance_id(self.member.instance.as_deref().map(text));
                format!("{:?}", code(self.client.call(&request).error_code))
            }
            Step::Commit(identity, offset) => {
                self.dress(identity);
                let request = offset_commit(&self.member.group, &self.topic, &[(0, offset, "")])
                    .with_member_id(text(&self.member.id))
                    .with_generation_id_or_member_epoch(self.member.generation)
                    .with_group_instance_id(self.member.instance.as_deref().map(text));
                format!("{:?}", code(self.client.call(&request).topics[0].partitions[0].error_code))
            }
            Step::CommitInTransaction(identity, offset, commit) => {
                self.dress(identity);
                self.producer.add_offsets(&mut self.client, &self.member.group).expect("added");
                let request = self
                    .producer
                    .offset_commit(&self.member.group, &self.topic, 0, offset)
                    .with_member_id(text(&self.member.id))
                    .with_generation_id(self.member.generation)
                    .with_group_instance_id(self.member.instance.as_deref().map(text));
                let answer = code(self.client.call(&request).topics[0].partitions[0].error_code);
                self.producer.end(&mut self.client, commit).expect("the end");
                wait_for("nothing is pending", || {
                    self.client.fetch_offset(&self.member.group, &self.topic, 0, true).is_ok()
                });
                format!("{answer:?}")
            }
            Step::CommitPlainly(offset) => {
                format!("{:?}", self.client.commit_offset(&self.member.group, &self.topic, 0, offset))
            }
            Step::Leave(who) => {
                self.member.id = self.id(who);
                format!("{:?}", self.member.leave())
            }
            Step::DeleteGroup => format!("{:?}", self.client.delete_group(&self.member.group)),
        }
    }

    fn look(&mut self) -> String {
        let group = self.client.describe_group(&self.member.group);
        let stable = group.group_state.as_str() == "Stable";
        let members = group.members.iter().map(|one| {
            let position = self.given.iter().rev().position(|id| id == one.member_id.as_str());
            // Before there is a new assignment, a real Kafka still shows the old one.
            let assignment = stable.then(|| one.member_assignment.clone());
            (position, one.group_instance_id.clone(), one.member_metadata.clone(), assignment)
        });
        let members: Vec<_> = members.collect();
        let offset = self.client.committed(&self.member.group, &self.topic, 0);
        let words = (group.group_state, group.protocol_type, group.protocol_data, members, offset);
        format!("{words:?}")
    }
}

fn compare(seed: u64) -> Result<(), String> {
    let dev = Broker::dev(DevBroker::builder());
    let mut real = Side::new(Broker::get().client());
    let mut other = Side::new(dev.client());
    let mut dice = Dice(seed);
    let mut history = String::new();
    for number in 0..60 {
        let step = step(&mut dice);
        let (wanted, got) = (real.take(step), other.take(step));
        history.push_str(&format!("\n  {number}: {step:?} -> {wanted}"));
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

#[test]
fn random_requests_of_a_member_are_answered_alike() {
    if !Broker::get().is_real() {
        return;
    }
    let differences: Vec<String> = (1..16).filter_map(|seed| compare(seed).err()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
