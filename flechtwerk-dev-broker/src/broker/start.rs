//! From settings to a running broker: the data folder first, then ports, then the thread.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::clock::{Clock, wall};
use super::nodes::{Node, Nodes};
use super::server;
use super::settings::Settings;
use super::shared::Shared;
use super::state::State;
use super::topics::Topics;
use super::{DevBroker, StartError, base64};
use crate::ErrorCode;
use crate::coordinator::{self, Coordinators, Effects, Record};
use crate::storage::{Storage, StorageOptions};

impl DevBroker {
    pub(super) fn start(settings: Settings) -> Result<DevBroker, StartError> {
        if !(1..=100).contains(&settings.nodes) {
            return Err(StartError::Nodes { count: settings.nodes });
        }
        let (mut storage, journal) = storage(&settings)?;
        let (listeners, nodes) = listen(&settings, &storage)?;
        storage.keep_ports(nodes.all().iter().map(|node| (node.id, node.port)).collect())?;
        let addresses: Vec<SocketAddr> =
            listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let shared = Arc::new(Shared::new(restore(settings, nodes, storage, journal)?));

        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("dev-broker".to_owned())
            .spawn(move || runtime.block_on(server::serve(serving, listeners)))
            .map_err(StartError::Thread)?;
        Ok(DevBroker { shared, addresses, thread: Some(thread) })
    }
}

/// The data folder with its journal, or memory.
fn storage(settings: &Settings) -> Result<(Storage, Vec<Bytes>), StartError> {
    let new_cluster_id = base64(random_uuid());
    match &settings.data_dir {
        None => Ok((Storage::in_memory(new_cluster_id), Vec::new())),
        Some(folder) => Ok(Storage::open(folder, StorageOptions { fsync: settings.fsync }, new_cluster_id)?),
    }
}

/// Takes a port for each node. Those that have a choice take the one of last time, where their clients look for them.
fn listen(settings: &Settings, storage: &Storage) -> Result<(Vec<TcpListener>, Nodes), StartError> {
    let failed = |source| StartError::Listen { address: settings.listen.clone(), source };
    let mut listeners = Vec::new();
    let mut nodes = Vec::new();
    let first: Vec<SocketAddr> = settings.listen.to_socket_addrs().map_err(failed)?.collect();
    for id in 1..=settings.nodes {
        let on = |port| -> Vec<SocketAddr> {
            first.iter().map(|address| SocketAddr::new(address.ip(), port)).collect()
        };
        let bind = |addresses: &[SocketAddr]| TcpListener::bind(addresses);
        let listener = match storage.port(id) {
            _ if id == 1 => bind(&first),
            Some(port) => bind(&on(port)).or_else(|_| bind(&on(0))),
            None => bind(&on(0)),
        }
        .map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        nodes.push(Node { id, host: advertised(&settings.listen, address), port: address.port(), up: true });
        listeners.push(listener);
    }
    Ok((listeners, Nodes::new(nodes)))
}

/// The host that clients are told: the one that was asked for, where it is one to connect to.
fn advertised(listen: &str, address: SocketAddr) -> String {
    match listen.rsplit_once(':') {
        _ if address.ip().is_unspecified() => "localhost".to_owned(),
        Some((host, _)) if !host.is_empty() && address.ip().to_string() != host => {
            host.trim_matches(['[', ']']).to_owned()
        }
        _ => address.ip().to_string(),
    }
}

/// Builds the state that the storage kept.
fn restore(
    settings: Settings,
    nodes: Nodes,
    mut storage: Storage,
    journal: Vec<Bytes>,
) -> Result<State, StartError> {
    let clock = Clock::start();
    let mut topics = Topics::restore(&mut storage, &nodes)?;
    for topic in &settings.topics {
        match topics.create(topic, &nodes, &mut storage) {
            Ok(_) => {}
            Err(refusal)
                if refusal.code == ErrorCode::TOPIC_ALREADY_EXISTS && settings.data_dir.is_some() => {}
            Err(refusal) => {
                return Err(StartError::Topic { topic: topic.name.clone(), reason: refusal.message });
            }
        }
    }
    let records = journal.into_iter().map(Record::decode).collect::<Result<Vec<_>, _>>()?;
    let mut groups = settings.groups.clone();
    groups.member_id_seed = random_uuid().as_u128();
    let coordinator_settings = coordinator::Settings { groups, transactions: settings.transactions.clone() };
    let mut effects = Effects::new();
    let coordinators = Coordinators::restore(coordinator_settings, clock.now(), records, &mut effects);
    let mut state = State::new(clock, settings, nodes, topics, storage, coordinators);
    state.settle(effects);
    Ok(state)
}

/// What a broker with these settings works on, without its port and its thread.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn for_fuzzing(builder: super::Builder) -> Result<State, StartError> {
    let node = Node { id: 1, host: "127.0.0.1".to_owned(), port: 1, up: true };
    let settings = builder.into_settings();
    let (storage, journal) = storage(&settings)?;
    restore(settings, Nodes::new(vec![node]), storage, journal)
}

/// A random (version 4) uuid. The randomness is that of the hash tables: there is nothing to protect.
pub(crate) fn random_uuid() -> Uuid {
    let half = |salt: u64| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(salt);
        hasher.write_i64(wall());
        hasher.finish()
    };
    let bits = (u128::from(half(1)) << 64) | u128::from(half(2));
    let version = 0xf000_u128 << 64;
    let variant = 0xc000_u128 << 48;
    Uuid::from_u128((bits & !version & !variant) | (0x4000_u128 << 64) | (0x8000_u128 << 48))
}
