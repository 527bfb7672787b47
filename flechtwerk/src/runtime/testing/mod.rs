//! What the tests of single parts of the runtime share: a context around the ports of a test, a cluster that answers as it is told,
//! and what a part says of itself in metrics and warnings.

mod cluster;
mod seen;
mod shelf;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub(super) use self::cluster::{Cluster, error};
pub(super) use self::seen::{Seen, seen};
pub(super) use self::shelf::Shelf;
use super::context::{Changelog, Limits, StageContext};
use super::lag::Positions;
use super::watchdog::Watchdog;
use crate::glue::{AnyStage, RawRecord};
use crate::naming::{Mapping, names};
use crate::observe::Restores;
use crate::port::{Group, ProducerFactory, Reader};
use crate::store::MemoryStores;

/// For whatever must happen at last.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// Limits that no test comes up to.
pub(super) fn limits() -> Limits {
    Limits {
        max_poll_records: 5,
        max_batch_bytes: 1 << 20,
        max_batch_time: LONG,
        commit_interval: Duration::ZERO,
        broker_timeout: LONG,
        revoke_timeout: LONG,
        heartbeat_interval: Duration::from_millis(1),
        transaction_timeout: LONG,
        max_concurrent_polls: 1,
        idle_commit: LONG,
    }
}

/// A stage of the pipeline `demo`, whose ports are all the same world.
pub(super) fn context<W>(stage: &'static dyn AnyStage, world: &W, limits: Limits) -> StageContext
where
    W: Group + Reader + ProducerFactory + Clone + 'static,
{
    let info = stage.info();
    let unmapped = BTreeMap::new();
    let names = names("demo", &[info], Mapping::of("", &unmapped)).unwrap().remove(0);
    let changelog = names.changelog.clone().map(|topic| Changelog { topic, id: "id".into(), partitions: 1 });
    let world = Arc::new(world.clone());
    StageContext {
        stage,
        info,
        names,
        changelog,
        instance_id: None,
        limits,
        shared: Default::default(),
        group: world.clone(),
        inputs: world.clone(),
        changelogs: Some(world.clone()),
        producers: world,
        stores: Arc::new(MemoryStores::default()),
        watchdog: Watchdog::default(),
        progress: Restores::new(false),
        positions: Positions::default(),
        schemas: None,
        configs: None,
        polls: Arc::new(tokio::sync::Semaphore::new(1)),
    }
}

/// A record of the first input.
pub(super) fn record(offset: i64, key: &'static [u8], value: Option<&'static [u8]>) -> RawRecord {
    RawRecord {
        input: 0,
        partition: 0,
        offset,
        timestamp: 0,
        key: Some(Bytes::from_static(key)),
        value: value.map(Bytes::from_static),
        headers: Default::default(),
    }
}
