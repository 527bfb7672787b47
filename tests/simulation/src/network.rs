//! The network: how long requests and answers take, and how connections break.

use flechtwerk::simulation::Unanswered;

use crate::chance::mix;
use crate::plan::{MS, Micros, Wire};
use crate::wire::{Answer, Client, Request, Slot, State};
use crate::world::{Event, World};

/// A client that hears nothing for so long breaks its connection.
const REQUEST_TIMEOUT: Micros = 900 * MS;

impl World {
    pub(crate) fn client(&mut self) -> usize {
        let (process, life) = self.current;
        self.clients.push(Client {
            process,
            life,
            connections: Default::default(),
            unanswered: Unanswered::default(),
            pending: Vec::new(),
        });
        self.clients.len() - 1
    }

    pub(crate) fn is_gone(&self, client: usize) -> bool {
        let client = &self.clients[client];
        let process = &self.processes[client.process];
        !process.alive || process.life != client.life
    }

    /// Sends a request; gives its slot.
    pub(crate) fn send(&mut self, client: usize, request: Request) -> usize {
        let (kind, node, waits) = (request.kind(), request.node(), request.waits());
        let nth = self.counts[kind];
        self.counts[kind] += 1;
        let slot = self.slots.len();
        let fault =
            self.request_faults.iter().find(|(k, n, _)| *k == kind && *n == nth).map(|(.., wire)| *wire);
        let mut delay = self.delay();
        let one = &mut self.clients[client];
        one.sent(kind);
        one.pending.push(slot);
        let number = one.connections[node].number;
        let queue = if let Request::Fetch { queue } = request { Some(queue) } else { None };
        self.slots.push(Slot {
            kind,
            queue,
            waits,
            answer: None,
            client,
            node,
            connection: number,
            request: Some(request),
            arrived: false,
            silent: false,
            cut_after: false,
            state: State::Pending,
        });
        match waits {
            false => self.overdue.push_back((self.now + REQUEST_TIMEOUT, slot)),
            // It waits for others, or for records. Only where it was lost is its time-out of interest.
            true if fault == Some(Wire::Silent) => self.after(4 * REQUEST_TIMEOUT, Event::Overdue(slot)),
            true => {}
        }
        if self.trace.is_some() {
            let process = self.clients[client].process;
            self.say(|| {
                let fault = fault.map(|fault| format!("  !! {fault:?}")).unwrap_or_default();
                format!("p{process} c{client} sends {} #{nth}{fault}", crate::wire::KINDS[kind])
            });
        }
        match fault {
            None => {}
            Some(Wire::Slow(more)) => delay += more,
            Some(Wire::Deafen(time)) => self.cut_off(node, true, time),
            Some(Wire::CutAfter) => self.slots[slot].cut_after = true,
            Some(Wire::Silent) => {
                self.slots[slot].silent = true;
                // The request or the answer.
                if mix(self.plan.seed ^ slot as u64) & 1 == 0 {
                    return slot;
                }
            }
            Some(Wire::CutBefore) => {
                self.after(delay, Event::Broken(client, node, number));
                return slot;
            }
            Some(Wire::Late(more)) => {
                // It lies in the node's buffers when the connection breaks.
                self.after(delay, Event::Broken(client, node, number));
                self.after(delay + more, Event::Arrive(slot));
                return slot;
            }
        }
        let connection = &mut self.clients[client].connections[node];
        let at = connection.there.max(self.now + delay);
        connection.there = at;
        self.at(at, Event::Arrive(slot));
        slot
    }

    /// A request that has no time-out of its own, and no answer to come: the client gives it up in the end.
    fn give_up(&mut self, slot: usize) {
        if self.slots[slot].waits {
            self.after(4 * REQUEST_TIMEOUT, Event::Overdue(slot));
        }
    }

    /// A node is cut off.
    pub(crate) fn cut_off(&mut self, node: usize, heard: bool, time: Micros) {
        self.deaf[node] = (self.now + time, heard);
    }

    fn delay(&mut self) -> Micros {
        let base = self.chance.range(100, 1_500);
        if self.chance.one_in(40) { base + self.chance.range(MS, 40 * MS) } else { base }
    }

    pub(crate) fn arrive(&mut self, slot: usize) {
        if std::mem::replace(&mut self.slots[slot].arrived, true) {
            return;
        }
        let (until, heard) = self.deaf[self.slots[slot].node];
        if self.now < until && !heard {
            self.slots[slot].arrived = false;
            self.slots[slot].silent = true;
            return self.give_up(slot);
        }
        if let Some(queue) = self.slots[slot].queue {
            return self.fetch_arrives(slot, queue);
        }
        let Some(request) = self.slots[slot].request.take() else { return };
        let mut todo = Vec::new();
        let answer = self.broker.handle(slot, &request, self.now, &mut todo);
        self.say(|| {
            let code = answer.as_ref().map_or("waits".into(), |answer| answer.code().to_string());
            format!("   broker: slot {slot} {} -> {code}", crate::wire::KINDS[request.kind()])
        });
        if let Some(answer) = answer {
            self.answer(slot, answer);
        }
        self.carry_out(todo);
    }

    pub(crate) fn answer(&mut self, slot: usize, answer: Answer) {
        let Slot { client, node, connection, silent, cut_after, .. } = self.slots[slot];
        if silent || self.now < self.deaf[node].0 {
            return self.give_up(slot);
        }
        let delay = self.delay();
        if cut_after {
            return self.after(delay, Event::Broken(client, node, connection));
        }
        let wire = &mut self.clients[client].connections[node];
        if wire.number != connection {
            return;
        }
        let at = wire.back.max(self.now + delay);
        wire.back = at;
        self.slots[slot].answer = Some(answer);
        self.at(at, Event::Answer(slot));
    }

    pub(crate) fn answered(&mut self, slot: usize) {
        let Some(answer) = self.slots[slot].answer.take() else { return };
        let Slot { client, node, connection, ref state, .. } = self.slots[slot];
        if self.clients[client].connections[node].number != connection || !matches!(state, State::Pending) {
            return;
        }
        self.finish(slot, State::Answered(answer), false);
    }

    fn finish(&mut self, slot: usize, state: State, lost: bool) {
        let client = self.slots[slot].client;
        let kind = self.slots[slot].kind;
        self.slots[slot].state = state;
        self.clients[client].done(kind, lost);
        self.clients[client].pending.retain(|pending| *pending != slot);
        let process = self.clients[client].process;
        self.touch(process);
        if !self.is_gone(client) {
            match (self.slots[slot].queue, kind) {
                (Some(queue), _) => self.fetched(queue, slot),
                // JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
                (None, 6..=8) => self.member_hears(client, slot),
                _ => {}
            }
        }
    }

    /// A connection breaks: all that is pending on it is lost for the client. What the node has not seen yet may lie in its
    /// buffers.
    pub(crate) fn broken(&mut self, client: usize, node: usize, number: u32) {
        if self.clients[client].connections[node].number != number {
            return;
        }
        self.say(|| format!("c{client}'s connection to node {node} breaks"));
        let connection = &mut self.clients[client].connections[node];
        *connection = crate::wire::Connection { number: number + 1, there: self.now, back: self.now };
        let pending: Vec<usize> = self.clients[client]
            .pending
            .iter()
            .copied()
            .filter(|slot| self.slots[*slot].node == node && self.slots[*slot].connection == number)
            .collect();
        for slot in pending {
            self.finish(slot, State::Lost, true);
        }
    }

    pub(crate) fn is_overdue(&mut self, slot: usize) {
        let Slot { client, node, connection, ref state, .. } = self.slots[slot];
        if matches!(state, State::Pending) {
            self.broken(client, node, connection);
        }
    }
}
