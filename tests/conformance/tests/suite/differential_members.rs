//! The same random requests of two members of a group to both brokers, joins and syncs that wait among them, and what comes of
//! them compared.
//!
//! Where the environment names a real Kafka; without it there is nothing to compare with. Two members and no more: which of
//! several others leads after the leader has left is chance on a real Kafka.

use std::time::{Duration, Instant};

use flechtwerk_conformance::*;
use flechtwerk_dev_broker::DevBroker;
use kafka_protocol::messages::{JoinGroupRequest, SyncGroupRequest};

use crate::dice::Dice;

/// After that long without an answer a request is one that waits. Where that is a mistake, the two sides are looked at again.
const SILENCE: Duration = Duration::from_millis(40);

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(usize),
    Sync(usize),
    Heartbeat(usize),
    Commit(usize, i64),
    Leave(usize),
    /// The process of the static member begins anew.
    Restart,
    Protocols(usize, &'static [&'static str]),
}

fn step(dice: &mut Dice) -> Step {
    let slot = dice.roll(2);
    match dice.roll(16) {
        0..=5 => Step::Join(slot),
        6..=9 => Step::Sync(slot),
        10..=11 => Step::Heartbeat(slot),
        12 => Step::Commit(slot, dice.roll(100) as i64),
        13 => Step::Leave(slot),
        14 => Step::Restart,
        _ => Step::Protocols(slot, [&["range"][..], &["range", "other"], &["third"]][dice.roll(3)]),
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Waits {
    No,
    Join,
    Sync,
}

struct Slot {
    member: Member,
    /// For what the broker is asked while `member` waits.
    aside: Client,
    waits: Waits,
}

struct Side {
    client: Client,
    topic: String,
    group: String,
    slots: [Slot; 2],
    /// All ids of members, as the leader has learned them.
    known: Vec<String>,
}

impl Side {
    fn new(mut client: Client) -> Side {
        let (topic, group) = (client.topic(1), unique("group"));
        let slot = |member: Member| {
            let member = Member { session_ms: 60_000, rebalance_ms: 60_000, ..member };
            Slot { member, aside: client.another(), waits: Waits::No }
        };
        let dynamic = slot(Member::new(client.another(), &group));
        let fixed = slot(Member::new(client.another(), &group).fixed("fixed"));
        Side { client, topic, group, slots: [dynamic, fixed], known: Vec::new() }
    }

    fn waits(&self, slot: usize) -> bool {
        self.slots[slot].waits != Waits::No
    }

    /// Begins a step; what came of it, if that is known at once.
    fn begin(&mut self, step: Step) -> String {
        match step {
            Step::Join(slot) => {
                let Slot { member, waits, .. } = &mut self.slots[slot];
                if member.id.is_empty() && member.instance.is_none() {
                    let answer = member.client.call(&member.join_request());
                    if code(answer.error_code) != Err(Code::MemberIdRequired) {
                        return format!("{:?}", code(answer.error_code));
                    }
                    member.id = answer.member_id.as_str().to_owned();
                }
                member.start_join();
                *waits = Waits::Join;
                String::new()
            }
            Step::Sync(slot) => {
                let Slot { member, waits, .. } = &mut self.slots[slot];
                let texts: Vec<(&str, &str)> = if member.leads {
                    self.known
                        .iter()
                        .map(|id| (id.as_str(), if *id == member.id { "leader's" } else { "other's" }))
                        .collect()
                } else {
                    Vec::new()
                };
                member.start_sync(&texts);
                *waits = Waits::Sync;
                String::new()
            }
            Step::Heartbeat(slot) => self.aside(slot, Member::heartbeat),
            Step::Commit(slot, offset) => {
                let topic = self.topic.clone();
                self.aside(slot, |member| member.commit(&topic, 0, offset))
            }
            Step::Leave(slot) => {
                let answer = self.aside(slot, Member::leave);
                if !self.waits(slot) {
                    self.slots[slot].member.id.clear();
                }
                answer
            }
            Step::Restart => {
                self.slots[1].member.id.clear();
                String::new()
            }
            Step::Protocols(slot, names) => {
                self.slots[slot].member.protocols = names.iter().map(|&name| name.to_owned()).collect();
                String::new()
            }
        }
    }

    /// Asks something on the other connection of a member.
    fn aside(&mut self, slot: usize, ask: impl FnOnce(&mut Member) -> Answer) -> String {
        let Slot { member, aside, .. } = &mut self.slots[slot];
        std::mem::swap(&mut member.client, aside);
        let answer = ask(member);
        std::mem::swap(&mut member.client, aside);
        format!("{answer:?}")
    }

    /// The answers that have come to those who wait.
    fn collect(&mut self) -> Vec<String> {
        let mut came = Vec::new();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if slot.waits == Waits::No || slot.member.client.is_silent_for(SILENCE) {
                continue;
            }
            let member = &mut slot.member;
            let words = if slot.waits == Waits::Join {
                let answer = member.client.receive::<JoinGroupRequest>();
                if answer.error_code == 0 {
                    member.id = answer.member_id.as_str().to_owned();
                    member.generation = answer.generation_id;
                    member.leads = answer.leader == answer.member_id;
                    if member.leads {
                        self.known =
                            answer.members.iter().map(|one| one.member_id.as_str().to_owned()).collect();
                    }
                } else if code(answer.error_code) == Err(Code::UnknownMemberId) {
                    member.id.clear();
                }
                let count = answer.members.len();
                format!(
                    "joins {:?} {} {} {count} {:?}",
                    code(answer.error_code),
                    answer.generation_id,
                    member.leads,
                    answer.protocol_name.filter(|name| !name.is_empty())
                )
            } else {
                let answer = member.client.receive::<SyncGroupRequest>();
                format!("syncs {:?} {:?}", code(answer.error_code), answer.assignment)
            };
            slot.waits = Waits::No;
            came.push(format!("{number} {words}"));
        }
        came
    }

    fn look(&mut self) -> String {
        let group = self.client.describe_group(&self.group);
        let mut members: Vec<_> = group.members.iter().map(|one| one.group_instance_id.clone()).collect();
        members.sort();
        let offset = self.client.committed(&self.group, &self.topic, 0);
        format!("{} {} {members:?} {offset}", group.group_state.as_str(), group.protocol_data.as_str())
    }
}

fn compare(seed: u64) -> Result<(), String> {
    let dev = Broker::dev(DevBroker::builder());
    let mut real = Side::new(Broker::get().client());
    let mut other = Side::new(dev.client());
    let mut dice = Dice(seed);
    let mut history = String::new();
    for number in 0..40 {
        let step = step(&mut dice);
        let taken = match step {
            Step::Join(slot) | Step::Sync(slot) => !real.waits(slot),
            Step::Protocols(slot, _) => !real.waits(slot),
            Step::Restart => !real.waits(1),
            // A member without an id is nobody in particular.
            Step::Heartbeat(slot) | Step::Commit(slot, _) => !real.slots[slot].member.id.is_empty(),
            // A real Kafka never answers the sync of a member that leaves meanwhile.
            Step::Leave(slot) => {
                !real.slots[slot].member.id.is_empty() && real.slots[slot].waits != Waits::Sync
            }
        };
        if !taken {
            continue;
        }
        let (wanted, got) = (real.begin(step), other.begin(step));
        history.push_str(&format!("\n  {number}: {step:?} {wanted}"));
        if wanted != got {
            return Err(format!("seed {seed}:{history}\n  but the development broker: {got}"));
        }
        let (mut wanted, mut got) = (real.collect(), other.collect());
        let until = Instant::now() + Duration::from_secs(4);
        loop {
            wanted.sort();
            got.sort();
            let (real_look, other_look) = (real.look(), other.look());
            if wanted == got && real_look == other_look {
                history.push_str(&format!(" {wanted:?} {real_look}"));
                break;
            }
            if Instant::now() > until {
                return Err(format!(
                    "seed {seed}:{history}\n  {wanted:?} {real_look}\n  but the development broker: {got:?} {other_look}"
                ));
            }
            wanted.extend(real.collect());
            got.extend(other.collect());
        }
    }
    Ok(())
}

#[test]
fn random_requests_of_two_members_come_to_the_same() {
    if !Broker::get().is_real() {
        return;
    }
    let differences: Vec<String> = (1..7).filter_map(|seed| compare(seed).err()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
