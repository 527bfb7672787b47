//! A member of the group as librdkafka is one: it joins, syncs and sends heartbeats in the background, and tells of what happens
//! to its assignment. It assigns by range when it leads.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flechtwerk::simulation::{
    BrokerError, Committed, ErrorKind, Flaw, Group, GroupEvent, TopicPartition, is_on,
};
use flechtwerk_dev_broker::coordinator::group::{
    JoinProtocol, JoinRequest, JoinResponse, LeavingMember, SyncRequest,
};
use flechtwerk_dev_broker::coordinator::{self};

use crate::calls::{call, error};
use crate::plan::{MS, Micros};
use crate::times;
use crate::wire::{Answer, Request, State};
use crate::world::{Event, World, with};

const RETRY: Micros = 20 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits to join (again).
    Out,
    Joining,
    Syncing,
    Stable,
    Left,
}

pub(crate) struct Member {
    pub(crate) client: usize,
    pub(crate) group: Rc<str>,
    topics: Vec<Arc<str>>,
    partitions: i32,
    pub(crate) fixed: Option<String>,
    pub(crate) id: String,
    pub(crate) generation: i32,
    phase: Phase,
    /// Which timer counts.
    timer: u32,
    /// The request that is awaited.
    slot: Option<usize>,
    heard: Micros,
    /// Something was assigned and not taken back yet.
    holds: bool,
    pub(crate) events: Arc<dyn Fn(GroupEvent) + Send + Sync>,
}

impl World {
    pub(crate) fn join(
        &mut self,
        topics: &[Arc<str>],
        fixed: Option<String>,
        events: Arc<dyn Fn(GroupEvent) + Send + Sync>,
    ) -> usize {
        let client = self.client();
        let index = self.members.len();
        self.members.push(Member {
            client,
            group: crate::world::group(self.plan.inputs),
            topics: topics.to_vec(),
            partitions: self.plan.partitions,
            fixed,
            id: String::new(),
            generation: -1,
            phase: Phase::Out,
            timer: 0,
            slot: None,
            heard: self.now,
            holds: false,
            events,
        });
        self.member_timer(index, 0);
        index
    }

    fn member_timer(&mut self, index: usize, time: Micros) {
        self.members[index].timer += 1;
        let timer = self.members[index].timer;
        self.after(time, Event::Member(index, timer));
    }

    fn tell(&mut self, index: usize, event: GroupEvent) {
        self.say(|| format!("member {index}: {event:?}"));
        self.told.push((index, event));
    }

    /// Its time has come: to join, or for a heartbeat.
    pub(crate) fn member_due(&mut self, index: usize, timer: u32) {
        let member = &self.members[index];
        if member.timer != timer || self.is_gone(member.client) {
            return;
        }
        match member.phase {
            Phase::Out => self.member_joins(index),
            Phase::Stable => {
                if self.now - member.heard > times::SESSION {
                    // The client's own look at its session.
                    return self.member_lost(index, true);
                }
                let request = Request::Heartbeat {
                    group: member.group.clone(),
                    generation: member.generation,
                    member: member.id.clone(),
                    fixed: member.fixed.clone(),
                };
                if member.slot.is_none() {
                    let client = member.client;
                    let slot = self.send(client, request);
                    self.members[index].slot = Some(slot);
                }
                self.member_timer(index, times::HEARTBEAT);
            }
            Phase::Joining | Phase::Syncing | Phase::Left => {}
        }
    }

    fn member_joins(&mut self, index: usize) {
        let member = &mut self.members[index];
        member.phase = Phase::Joining;
        let request = Request::Join(Box::new(JoinRequest {
            group: member.group.to_string(),
            member_id: member.id.clone(),
            instance_id: member.fixed.clone(),
            client_id: "sim".into(),
            client_host: "sim".into(),
            session_timeout: (times::SESSION / MS) as i32,
            rebalance_timeout: (times::REBALANCE / MS) as i32,
            protocol_type: "consumer".into(),
            protocols: vec![JoinProtocol { name: "range".into(), metadata: metadata(&member.topics) }],
            member_id_required: true,
            knows_skip_assignment: true,
        }));
        let client = member.client;
        let slot = self.send(client, request);
        self.members[index].slot = Some(slot);
    }

    fn member_out(&mut self, index: usize, time: Micros) {
        self.members[index].phase = Phase::Out;
        self.members[index].slot = None;
        self.member_timer(index, time);
    }

    /// The session is over: what was assigned is gone at once.
    fn member_lost(&mut self, index: usize, forget: bool) {
        if forget {
            self.members[index].id = String::new();
        }
        self.members[index].generation = -1;
        if std::mem::take(&mut self.members[index].holds) {
            self.tell(index, GroupEvent::Lost);
        }
        self.member_out(index, RETRY);
    }

    pub(crate) fn member_hears(&mut self, client: usize, slot: usize) {
        let Some(index) = self.members.iter().position(|member| member.client == client) else { return };
        if self.members[index].slot != Some(slot) {
            return;
        }
        self.members[index].slot = None;
        let state = self.slots[slot].state.clone();
        let (code, answer) = match state {
            State::Answered(answer) => (answer.code(), Some(answer)),
            State::Lost | State::Pending => (-1, None),
        };
        match (self.members[index].phase, code) {
            (Phase::Left, _) => {}
            (_, 82) => {
                self.members[index].phase = Phase::Left;
                let failed = error(ErrorKind::FencedInstance, "FENCED_INSTANCE_ID");
                self.tell(index, GroupEvent::Failed(failed));
            }
            (Phase::Joining, 79) => {
                if let Some(Answer::Join(response)) = answer {
                    self.members[index].id = response.member_id;
                }
                self.member_out(index, 0);
            }
            (Phase::Joining, 0) => {
                if let Some(Answer::Join(response)) = answer {
                    self.member_joined(index, &response);
                }
            }
            (Phase::Joining | Phase::Syncing, 22 | 25) => {
                self.members[index].id = String::new();
                self.member_out(index, RETRY);
            }
            (Phase::Joining | Phase::Syncing, 27) => self.member_out(index, 0),
            (Phase::Syncing, 0) => {
                if let Some(Answer::Sync(response)) = answer {
                    let member = &mut self.members[index];
                    member.phase = Phase::Stable;
                    member.heard = self.now;
                    member.holds = true;
                    let partitions = numbers(&response.assignment);
                    let assigned = member.topics.iter().flat_map(|topic| {
                        partitions
                            .iter()
                            .map(|partition| TopicPartition { topic: topic.clone(), partition: *partition })
                    });
                    let assigned = assigned.collect();
                    self.tell(index, GroupEvent::Assigned(assigned));
                    self.member_timer(index, times::HEARTBEAT);
                }
            }
            (Phase::Joining | Phase::Syncing, _) => self.member_out(index, RETRY),
            (Phase::Stable, 0) => self.members[index].heard = self.now,
            (Phase::Stable, 27) => {
                self.members[index].holds = false;
                self.tell(index, GroupEvent::Revoked);
                self.member_out(index, 0);
            }
            (Phase::Stable, 22 | 25) => self.member_lost(index, true),
            (Phase::Stable | Phase::Out, _) => {}
        }
    }

    fn member_joined(&mut self, index: usize, response: &JoinResponse) {
        let member = &mut self.members[index];
        member.id = response.member_id.clone();
        member.generation = response.generation;
        member.heard = self.now;
        member.phase = Phase::Syncing;
        let mut assignments = Vec::new();
        if response.leader == response.member_id && !response.skip_assignment {
            let mut all: Vec<(Option<String>, String)> =
                response.members.iter().map(|one| (one.instance_id.clone(), one.member_id.clone())).collect();
            all.sort();
            let (count, total) = (all.len() as i32, member.partitions);
            let mut next = 0;
            for (place, (_, id)) in (0..).zip(all) {
                let share = total / count + i32::from(place < total % count);
                let bytes: Vec<u8> = (next..next + share).flat_map(i32::to_be_bytes).collect();
                next += share;
                assignments.push((id, Bytes::from(bytes)));
            }
        }
        let request = Request::Sync(Box::new(SyncRequest {
            group: member.group.to_string(),
            generation: member.generation,
            member_id: member.id.clone(),
            instance_id: member.fixed.clone(),
            protocol_type: None,
            protocol: None,
            assignments,
        }));
        let client = member.client;
        let slot = self.send(client, request);
        self.members[index].slot = Some(slot);
    }
}

/// A subscription, as the consumer protocol writes it.
fn metadata(topics: &[Arc<str>]) -> Bytes {
    let mut bytes = vec![0, 0];
    bytes.extend_from_slice(&(topics.len() as i32).to_be_bytes());
    for topic in topics {
        bytes.extend_from_slice(&(topic.len() as i16).to_be_bytes());
        bytes.extend_from_slice(topic.as_bytes());
    }
    bytes.extend_from_slice(&(-1i32).to_be_bytes());
    bytes.into()
}

fn numbers(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|chunk| i32::from_be_bytes(*chunk)).collect()
}

/// The port.
pub(crate) struct SimGroup(pub(crate) usize);

impl Group for SimGroup {
    fn committed(
        &self,
        partitions: &[TopicPartition],
        limit: Duration,
    ) -> Result<Vec<Committed>, BrokerError> {
        let asked =
            partitions.iter().map(|at| coordinator::TopicPartition::new(&*at.topic, at.partition)).collect();
        let (client, group) = with(|world| {
            let member = &world.members[self.0];
            (member.client, member.group.clone())
        });
        let stable = !is_on(Flaw::UnstablePositions);
        match call(client, Request::OffsetFetch { group, partitions: asked, stable }, limit)? {
            Answer::Offsets(found) => {
                if found.iter().any(|one| !one.error.is_none()) {
                    return Err(error(ErrorKind::Retriable, "UNSTABLE_OFFSET_COMMIT"));
                }
                let committed = partitions.iter().zip(found).map(|(at, one)| Committed {
                    at: at.clone(),
                    offset: (one.offset >= 0).then_some(one.offset),
                    metadata: one.metadata,
                });
                Ok(committed.collect())
            }
            _ => Err(error(ErrorKind::Retriable, "NOT_COORDINATOR")),
        }
    }

    fn subscriptions(&self, _: Duration) -> Result<Vec<(String, Vec<String>)>, BrokerError> {
        Ok(Vec::new())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn leave(&self, _: bool, limit: Duration) -> Result<(), BrokerError> {
        let (client, request) = with(|world| {
            let member = &mut world.members[self.0];
            member.phase = Phase::Left;
            let leaving = LeavingMember { member_id: member.id.clone(), instance_id: member.fixed.clone() };
            (member.client, Request::Leave { group: member.group.clone(), member: leaving })
        });
        call(client, request, limit).map(drop)
    }
}
