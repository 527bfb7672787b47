//! The schemas that this process knows. Before it runs on a cluster it has none of a registry, and numbers those of its own
//! types itself: that is what tests work with. The checks at the start put the registry's ids in their place. From then on an
//! id that is not known has to be asked for, which happens before the records that name it are decoded.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::frame;
use crate::codec::schema::{Of, OwnSchema, RegisteredSchema, SchemaInfo};
use crate::error::BoxError;
use crate::glue::RecordPart;
#[cfg(feature = "runtime")]
use crate::glue::{RawRecord, TopicInfo};

/// The topic's id, and whether it is of keys.
type Place = (&'static str, bool);

/// See the module.
#[derive(Default)]
struct Known {
    /// The ids are those of a registry.
    connected: bool,
    /// What is written in front of values.
    fronts: HashMap<Place, Arc<[u8]>>,
    /// `None`: the registry has none of this id. What a process was told once holds until it ends, so that a record is
    /// valid or not whenever it is computed again.
    schemas: HashMap<u32, Option<Arc<RegisteredSchema>>>,
    /// How a type is read from what a schema wrote.
    plans: HashMap<(TypeId, u32), Arc<dyn Any + Send + Sync>>,
}

static KNOWN: RwLock<Option<Known>> = RwLock::new(None);

fn read() -> RwLockReadGuard<'static, Option<Known>> {
    KNOWN.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Option<Known>> {
    KNOWN.write().unwrap_or_else(PoisonError::into_inner)
}

fn place(of: Of) -> Place {
    (of.topic.id, of.part == RecordPart::Key)
}

/// An id that was not asked for before something with it was decoded.
#[derive(Debug, thiserror::Error)]
#[error("the schema of id {0} was not asked for in time, an error in Flechtwerk itself; please report it")]
pub(crate) struct Unasked(u32);

/// What is written in front of the values of a topic.
pub(super) fn front(of: Of, info: &SchemaInfo) -> Result<Arc<[u8]>, BoxError> {
    let place = place(of);
    let known = read();
    if let Some(front) = known.as_ref().and_then(|known| known.fronts.get(&place)) {
        return Ok(front.clone());
    }
    drop(known);
    let own = (info.own)(of.part)?;
    let mut known = write();
    let known = known.get_or_insert_default();
    if known.connected {
        return Err("no id of a schema is known for this topic, which no stage of this process writes".into());
    }
    let id = known.number(info.kind, &own);
    let front: Arc<[u8]> = frame::front(id, &own.behind_id).into();
    known.fronts.insert(place, front.clone());
    Ok(front)
}

impl Known {
    /// The number of a schema, in a process without a registry.
    fn number(&mut self, kind: &str, own: &OwnSchema) -> u32 {
        let schema =
            RegisteredSchema { kind: Some(kind.to_owned()), text: own.text.clone(), references: Vec::new() };
        let mut all = self.schemas.iter();
        if let Some((id, _)) = all.find(|(_, known)| known.as_deref() == Some(&schema)) {
            return *id;
        }
        let id = self.schemas.len() as u32 + 1;
        self.schemas.insert(id, Some(Arc::new(schema)));
        id
    }
}

/// How a `T` is read from what the schema of this id wrote; `make` is called once. `None`: there is no such schema.
pub(super) fn plan<T: 'static, P: Send + Sync + 'static>(
    id: u32,
    make: impl FnOnce(&RegisteredSchema) -> P,
) -> Result<Option<Arc<P>>, Unasked> {
    let key = (TypeId::of::<T>(), id);
    let known = read();
    let known_plan = known.as_ref().and_then(|known| known.plans.get(&key)).cloned();
    let schema = known.as_ref().and_then(|known| known.schemas.get(&id)).cloned();
    let connected = known.as_ref().is_some_and(|known| known.connected);
    drop(known);
    if let Some(plan) = known_plan.and_then(|plan| plan.downcast().ok()) {
        return Ok(Some(plan));
    }
    let schema = match schema {
        Some(Some(schema)) => schema,
        Some(None) => return Ok(None),
        None if connected => return Err(Unasked(id)),
        None => return Ok(None),
    };
    let plan = Arc::new(make(&schema));
    write().get_or_insert_default().plans.insert(key, plan.clone());
    Ok(Some(plan))
}

/// The ids of schemas in these records that have to be asked for before the records are decoded.
#[cfg(feature = "runtime")]
pub(crate) fn unknown<'a>(
    inputs: &[&'static TopicInfo],
    records: impl IntoIterator<Item = &'a RawRecord>,
) -> Vec<u32> {
    if inputs.iter().all(|topic| topic.schemas.iter().all(Option::is_none)) {
        return Vec::new();
    }
    let known = read();
    let mut ids: Vec<u32> = Vec::new();
    for record in records {
        let Some(topic) = inputs.get(usize::from(record.input)) else { continue };
        for (schema, bytes) in topic.schemas.iter().zip([&record.key, &record.value]) {
            let (Some(_), Some(bytes)) = (schema, bytes) else { continue };
            let Some(id) = frame::id(bytes) else { continue };
            let is_known = known.as_ref().is_some_and(|known| known.schemas.contains_key(&id));
            if !is_known && !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    ids
}

/// Keeps what the registry has answered.
#[cfg(feature = "kafka")]
pub(crate) fn learn(id: u32, schema: Option<RegisteredSchema>) {
    write().get_or_insert_default().schemas.entry(id).or_insert(schema.map(Arc::new));
}

/// From now on the ids are those of a registry: these are in front of what is written.
#[cfg(feature = "kafka")]
pub(crate) fn connect(fronts: Vec<(Of, Vec<u8>)>) {
    let fronts = fronts.into_iter().map(|(of, front)| (place(of), front.into())).collect();
    *write() = Some(Known { connected: true, fronts, ..Known::default() });
}
