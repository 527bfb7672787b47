//! Random histories of members that join, sync, send heartbeats, leave and fall silent. Whatever happens:
//!
//! - each request that waits is answered once, and after long enough a silence none waits any more;
//! - a generation has one leader, and all its members are told the same one;
//! - the generation only grows, and no request with an older one is accepted;
//! - a broker that was killed at any point is the same again, as far as it is durable.

use std::collections::{BTreeSet, HashSet};

use proptest::prelude::*;

use super::*;

/// What a client does. Clients are numbered; the first two are static members, and even ones ask for an id first.
#[derive(Debug, Clone)]
enum Step {
    Join { client: usize, changed: bool, forgets: bool },
    Sync { client: usize },
    SyncStale { client: usize },
    Heartbeat { client: usize },
    Leave { client: usize },
    Commit { client: usize, offset: i64 },
    Pass { millis: u64 },
    Restart,
}

const CLIENTS: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    prop_oneof![
        6 => (client.clone(), prop::bool::weighted(0.2), prop::bool::weighted(0.1))
            .prop_map(|(client, changed, forgets)| Step::Join { client, changed, forgets }),
        6 => client.clone().prop_map(|client| Step::Sync { client }),
        1 => client.clone().prop_map(|client| Step::SyncStale { client }),
        4 => client.clone().prop_map(|client| Step::Heartbeat { client }),
        1 => client.clone().prop_map(|client| Step::Leave { client }),
        2 => (client, 0..100i64).prop_map(|(client, offset)| Step::Commit { client, offset }),
        3 => prop_oneof![1..200u64, 5_000..15_000u64, 60_000..70_000u64].prop_map(|millis| Step::Pass { millis }),
        1 => Just(Step::Restart),
    ]
}

#[derive(Default)]
struct Client {
    member_id: String,
    generation: i32,
    subscribes: usize,
}

struct History {
    f: Fixture,
    clients: Vec<Client>,
    /// Joins and syncs, by ticket, with their client.
    waiting: BTreeMap<Ticket, usize>,
    /// The leader that the members of a generation were told, by generation; anew after a restart, which may begin one again.
    leaders: BTreeMap<i32, BTreeSet<String>>,
    generation: i32,
}

impl History {
    fn new(delay: u64) -> Self {
        let settings =
            GroupSettings { initial_rebalance_delay: Millis(delay), max_size: 4, ..GroupSettings::default() };
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        let (waiting, leaders) = Default::default();
        Self { f: Fixture::with(settings), clients, waiting, leaders, generation: 0 }
    }

    fn instance(client: usize) -> Option<String> {
        (client < 2).then(|| format!("i{client}"))
    }

    fn request(&self, client: usize) -> JoinRequest {
        let topics = ["t", "u", "v"];
        JoinRequest {
            client_id: format!("c{client}"),
            instance_id: Self::instance(client),
            protocols: vec![
                protocol("sticky", subscription(&topics[..1 + self.clients[client].subscribes])),
                protocol("range", Bytes::new()),
            ],
            rebalance_timeout: [30_000, 5_000, -1, 0, 60_000][client],
            member_id_required: client.is_multiple_of(2),
            knows_skip_assignment: client == 1,
            ..dynamic(&self.clients[client].member_id)
        }
    }

    fn sync_request(&self, client: usize, generation: i32) -> SyncRequest {
        let of = &self.clients[client];
        let ids: Vec<&str> = self.clients.iter().map(|client| client.member_id.as_str()).collect();
        let assigned: Vec<(&str, &'static str)> = ids.into_iter().map(|id| (id, "x")).collect();
        SyncRequest { instance_id: Self::instance(client), ..sync(&of.member_id, generation, &assigned) }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Join { client, changed, forgets } => {
                if changed {
                    self.clients[client].subscribes = (self.clients[client].subscribes + 1) % 3;
                }
                if forgets {
                    self.clients[client].member_id.clear();
                }
                let ticket = self.f.join(self.request(client));
                self.waiting.insert(ticket, client);
            }
            Step::Sync { client } => {
                let generation = self.clients[client].generation;
                let ticket = self.f.sync(self.sync_request(client, generation));
                self.waiting.insert(ticket, client);
            }
            Step::SyncStale { client } => {
                let Some(group) = self.f.groups.describe("g") else { return };
                let response = self.f.sync_now(self.sync_request(client, group.generation - 1));
                assert!(!response.error.is_none(), "an old generation was accepted");
            }
            Step::Heartbeat { client } => {
                let of = &self.clients[client];
                let instance = Self::instance(client);
                let now = self.f.now;
                let code =
                    self.f.groups.heartbeat(now, "g", &of.member_id, instance.as_deref(), of.generation);
                let current = self.f.groups.describe("g").map(|group| group.generation);
                let accepted = matches!(code, ErrorCode::None | ErrorCode::RebalanceInProgress);
                assert!(!accepted || current == Some(of.generation), "an old generation was accepted");
            }
            Step::Leave { client } => {
                let member_id = self.clients[client].member_id.clone();
                if self.f.groups.describe("g").is_some() {
                    self.f.leave(&member_id, Self::instance(client).as_deref());
                }
                self.clients[client].member_id.clear();
            }
            Step::Commit { client, offset } => {
                let of = &self.clients[client];
                let (member_id, generation) = (of.member_id.clone(), of.generation);
                let instance = Self::instance(client);
                let before = self.f.groups.describe("g");
                let code = self.f.commit_as(&member_id, instance.as_deref(), generation, commit(0, offset));
                let accepted = code.is_none();
                let current = before.is_some_and(|group| group.generation == generation);
                assert!(!accepted || current, "an old generation was accepted");
            }
            Step::Pass { millis } => self.f.pass(millis),
            Step::Restart => {
                // All connections are gone, and with them what waited.
                self.waiting.clear();
                self.leaders.clear();
                self.f.restart(10);
                self.generation = self.f.groups.describe("g").map_or(0, |group| group.generation);
            }
        }
        self.take_answers();
        self.check();
    }

    fn take_answers(&mut self) {
        for (ticket, answer) in std::mem::take(&mut self.f.answers) {
            let client = self.waiting.remove(&ticket);
            let Some(client) = client else {
                // A sync with an old generation, which was looked at where it was asked.
                continue;
            };
            match answer {
                Answer::Join { response, .. } if response.error.is_none() => {
                    let is_leader = response.leader == response.member_id;
                    assert!(is_leader || response.members.is_empty());
                    assert!(response.generation > 0);
                    self.clients[client].member_id = response.member_id;
                    self.clients[client].generation = response.generation;
                }
                Answer::Join { response, .. } if response.error == ErrorCode::MemberIdRequired => {
                    self.clients[client].member_id = response.member_id;
                }
                Answer::Join { response, .. } if response.error == ErrorCode::UnknownMemberId => {
                    self.clients[client].member_id.clear();
                }
                Answer::Join { .. } | Answer::Sync { .. } => {}
            }
        }
    }

    fn check(&mut self) {
        let Some(group) = self.f.groups.describe("g") else { return };
        assert!(group.generation >= self.generation, "a generation came back");
        self.generation = group.generation;
        let ids: HashSet<&str> = group.members.iter().map(|member| member.member_id.as_str()).collect();
        let instances: Vec<&str> =
            group.members.iter().filter_map(|member| member.instance_id.as_deref()).collect();
        assert_eq!(instances.len(), instances.iter().collect::<HashSet<_>>().len(), "one for each instance");
        match group.state {
            GroupState::Empty => assert!(group.leader.is_none() && ids.is_empty()),
            GroupState::CompletingRebalance | GroupState::Stable => {
                let dynamic = group.members.iter().filter(|member| member.instance_id.is_none());
                assert!(dynamic.count() <= 4, "larger than it may be");
                let leader = group.leader.clone().expect("a generation has a leader");
                assert!(ids.contains(leader.as_str()), "the leader is a member");
                let leaders = self.leaders.entry(group.generation).or_default();
                leaders.insert(leader);
                // Only a static leader that comes back changes the id, and never who it is.
                let owners: HashSet<&str> = leaders.iter().map(|id| id.split('-').next().unwrap()).collect();
                assert_eq!(owners.len(), 1, "a generation has one leader");
            }
            GroupState::PreparingRebalance => {
                assert!(self.f.groups.next_deadline().is_some(), "nothing would end the rebalance");
            }
            GroupState::Dead => panic!("a dead group is no group"),
        }
        if let Some(at) = self.f.groups.next_deadline() {
            assert!(at > self.f.now.since_start || self.f.tickets == 0, "a deadline was missed");
        }
        if !self.waiting.is_empty() {
            assert!(self.f.groups.next_deadline().is_some(), "a request waits for nothing");
        }
    }

    /// Everyone falls silent: after the longest time-outs nobody is left, and nobody waits.
    fn fall_silent(&mut self) {
        let mut steps = 0;
        while let Some(at) = self.f.groups.next_deadline() {
            self.f.pass(at.0.saturating_sub(self.f.now.since_start.0));
            self.take_answers();
            self.check();
            steps += 1;
            assert!(steps < 1_000, "the group does not come to rest");
        }
        assert!(self.waiting.is_empty(), "a request was never answered");
        if let Some(group) = self.f.groups.describe("g") {
            assert_eq!(group.state, GroupState::Empty);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_rules(
        steps in prop::collection::vec(step(), 1..120),
        delay in prop_oneof![3 => Just(0u64), 1 => Just(3_000u64)],
    ) {
        let mut history = History::new(delay);
        for step in steps {
            history.run(step);
        }
        history.fall_silent();
    }

    #[test]
    fn the_journal_is_the_durable_state_at_every_point(steps in prop::collection::vec(step(), 1..60)) {
        let mut history = History::new(0);
        for step in steps {
            history.run(step);
            let restored = restored(&history.f, &history.f.journal);
            prop_assert!(restored.snapshot() == history.f.groups.snapshot());
            let again = self::restored(&history.f, &history.f.groups.snapshot());
            prop_assert!(again.snapshot() == history.f.groups.snapshot());
        }
    }
}

fn restored(f: &Fixture, records: &[Record]) -> Groups {
    let settings = Settings { groups: f.settings.clone(), ..Settings::default() };
    let records = records.iter().map(|record| Record::decode(record.encode()).unwrap());
    Coordinators::restore(settings, f.now, records, &mut Effects::new()).groups
}
