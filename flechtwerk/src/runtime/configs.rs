//! The configs of an extractor: read whole by every instance before it joins the group, and kept up to date. Each token
//! gets those that belong to it, wherever their records lie (S10.3).

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::context::Cancel;
use super::error::Failure;
use super::messages;
use super::schemas::Asking;
use super::stage::{Notice, Notices};
use super::supervisor::{Plan, StagePlan};
use super::whole::Whole;
use crate::glue::{AnyStage, Page, RawRecord};
use crate::naming::StageNames;
use crate::partitioner::partition_of;
use crate::port::{Reader, ReaderKind, Schemas};

/// How long the reading waits for more before it sees whether anybody is left to read for.
const WAIT: Duration = Duration::from_millis(200);
/// How often the start looks whether the configs are read.
const NOTICE: Duration = Duration::from_millis(10);
/// A reading that takes longer says so, each time this has passed.
const STILL_INTERVAL: Duration = Duration::from_secs(10);

/// Which config: the config topic's index and the record's key.
pub(super) type ConfigId = (u16, Option<Bytes>);

/// One config, as it is now.
pub(super) struct Config {
    pub(super) id: ConfigId,
    pub(super) record: RawRecord,
    /// The state key.
    pub(super) key: Bytes,
    pub(super) suspended: bool,
    token: i32,
}

/// What happened to a config of a token.
pub(super) enum Change {
    Set(Arc<Config>),
    /// Tombstoned, or of another token now.
    Gone(ConfigId),
}

/// See the module.
pub(crate) struct Configs {
    stage: &'static dyn AnyStage,
    names: StageNames,
    tokens: i32,
    schemas: Option<Arc<dyn Schemas>>,
    /// How long a question is repeated.
    limit: Duration,
    cancel: Cancel,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: HashMap<ConfigId, Arc<Config>>,
    /// The tokens that run here.
    tokens: BTreeMap<i32, UnboundedSender<Change>>,
}

/// The configs of an extractor, and the reader that they come from.
pub(super) struct Loaded {
    pub(super) reader: Arc<dyn Reader>,
    pub(super) configs: Arc<Configs>,
}

/// Reads the configs of all extractors of the plan, each at its stage's index; `None` if a stop was asked for meanwhile.
pub(super) fn load(
    plan: &Plan,
    sender: &Sender<Notice>,
    notices: &Receiver<Notice>,
) -> Result<Option<Vec<Option<Loaded>>>, Failure> {
    let cancel = Cancel::default();
    std::thread::scope(|scope| {
        let mut loading = Vec::new();
        for (index, stage) in plan.stages.iter().enumerate() {
            let notices = Notices { stage: index, sender: sender.clone() };
            let cancel = cancel.clone();
            let extracts = stage.stage.info().extractor.is_some();
            loading.push(extracts.then(|| scope.spawn(move || load_one(plan, stage, &cancel, notices))));
        }
        let mut said = None;
        while said.is_none() && loading.iter().flatten().any(|thread| !thread.is_finished()) {
            said = match notices.recv_timeout(NOTICE) {
                Ok(Notice::Failed(failure)) => Some(Err(failure)),
                Ok(Notice::Stop) => Some(Ok(None)),
                _ => None,
            };
        }
        if said.is_some() {
            cancel.cancel();
        }
        let mut all = Vec::new();
        for thread in loading {
            all.push(match thread.map(|thread| thread.join()) {
                None => None,
                Some(Ok(loaded)) => loaded?,
                Some(Err(_)) => return Err(Failure::new("the reading of configs died of an error in Flechtwerk itself; please report it with the panic message above")),
            });
        }
        said.unwrap_or(Ok(Some(all)))
    })
}

fn load_one(
    plan: &Plan,
    stage: &StagePlan,
    cancel: &Cancel,
    notices: Notices,
) -> Result<Option<Loaded>, Failure> {
    let (name, id) = (stage.names.stage, &stage.names.application_id);
    let reader = plan
        .clients
        .reader(id, ReaderKind::Tables)
        .map_err(|error| Failure::broker(name, "make a reader", &error))?;
    let limit = plan.limits.broker_timeout;
    let asking = Asking { schemas: plan.schemas.as_ref(), who: name, limit, cancel };
    let configs = Configs::load(stage.stage, &stage.names, stage.partitions, &*reader, &asking, notices)?;
    Ok(configs.map(|configs| Loaded { reader, configs }))
}

impl Configs {
    /// Reads the config topics whole; without any there is one config. What comes later arrives by itself, and what goes
    /// wrong then is said to `notices`. `None`: cancelled.
    pub(super) fn load(
        stage: &'static dyn AnyStage,
        names: &StageNames,
        tokens: i32,
        reader: &dyn Reader,
        asking: &Asking<'_>,
        notices: Notices,
    ) -> Result<Option<Arc<Configs>>, Failure> {
        let configs = Arc::new(Configs {
            stage,
            names: names.clone(),
            tokens,
            schemas: asking.schemas.cloned(),
            limit: asking.limit,
            cancel: asking.cancel.clone(),
            state: Mutex::default(),
        });
        if names.inputs.is_empty() {
            configs.set(Page::implicit())?;
            return Ok(Some(configs));
        }
        let Some(whole) = configs.read(reader)? else { return Ok(None) };
        let name = format!("{} configs", names.stage);
        let weak = Arc::downgrade(&configs);
        let started = std::thread::Builder::new().name(name).spawn(move || {
            if let Err(failure) = follow(whole, &weak) {
                notices.failed(failure);
            }
        });
        match started {
            Ok(_) => Ok(Some(configs)),
            Err(error) => Err(Failure::new(format!(
                "stage {}: can't start a thread to read the configs: {error}",
                names.stage
            ))),
        }
    }

    fn read(&self, reader: &dyn Reader) -> Result<Option<Whole>, Failure> {
        let (limit, cancel) = (self.limit, &self.cancel);
        let began = Instant::now();
        let mut said = began;
        let inputs = &self.names.inputs;
        tracing::info!(stage = self.names.stage, topics = ?inputs, "reading configs");
        let Some(mut whole) = Whole::open(self.names.stage, reader, inputs, self.tokens, limit, cancel)?
        else {
            return Ok(None);
        };
        // Only the last record of a key has to make sense: a wrong one may have been corrected since.
        let mut last: HashMap<ConfigId, RawRecord> = HashMap::new();
        loop {
            for record in whole.take()? {
                let id = (record.input, record.key.clone());
                match record.value {
                    Some(_) => drop(last.insert(id, record)),
                    None => drop(last.remove(&id)),
                }
            }
            if whole.is_whole() {
                break;
            }
            if cancel.is_cancelled() {
                return Ok(None);
            }
            if said.elapsed() >= STILL_INTERVAL {
                said = Instant::now();
                let waited = began.elapsed().as_secs();
                tracing::warn!(
                    stage = self.names.stage,
                    "the configs are not read to their end after {waited} s: {}",
                    whole.behind()
                );
            }
            whole.wait(WAIT);
        }
        tracing::info!(stage = self.names.stage, configs = last.len(), "configs are read");
        for record in last.into_values() {
            if !self.set(record)? {
                return Ok(None);
            }
        }
        Ok(Some(whole))
    }

    fn apply(&self, record: RawRecord) -> Result<(), Failure> {
        if record.value.is_some() {
            return self.set(record).map(drop);
        }
        let mut state = self.lock();
        if let Some(config) = state.all.remove(&(record.input, record.key)) {
            state.tell(config.token, Change::Gone(config.id.clone()));
        }
        Ok(())
    }

    /// False: cancelled.
    fn set(&self, record: RawRecord) -> Result<bool, Failure> {
        let info = self.stage.info();
        let who = format!("stage {}", info.name);
        let asking =
            Asking { schemas: self.schemas.as_ref(), who: &who, limit: self.limit, cancel: &self.cancel };
        if !asking.ask(info.inputs, [&record])? {
            return Ok(false);
        }
        let said = self.stage.config(&record);
        let said = said
            .map_err(|(kind, error)| messages::config_failure(info, &self.names, &record, &kind, &error))?;
        let id = (record.input, record.key.clone());
        let token = partition_of(&said.key, self.tokens);
        let config =
            Arc::new(Config { id: id.clone(), record, key: said.key, suspended: said.suspended, token });
        let mut state = self.lock();
        let before = state.all.insert(id, config.clone());
        if let Some(before) = before.filter(|before| before.token != token) {
            state.tell(before.token, Change::Gone(before.id.clone()));
        }
        state.tell(token, Change::Set(config));
        Ok(true)
    }

    /// The configs of a token, and what happens to them from now on.
    pub(super) fn of(&self, token: i32) -> (Vec<Arc<Config>>, UnboundedReceiver<Change>) {
        let (sender, changes) = unbounded_channel();
        let mut state = self.lock();
        state.tokens.insert(token, sender);
        let mine = state.all.values().filter(|config| config.token == token).cloned().collect();
        (mine, changes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, token: i32, change: Change) {
        // A token that is gone has dropped its end.
        if self.tokens.get(&token).is_some_and(|sender| sender.send(change).is_err()) {
            self.tokens.remove(&token);
        }
    }
}

fn follow(mut whole: Whole, configs: &Weak<Configs>) -> Result<(), Failure> {
    while let Some(configs) = configs.upgrade() {
        whole.take()?.into_iter().try_for_each(|record| configs.apply(record))?;
        drop(configs);
        whole.wait(WAIT);
    }
    Ok(())
}

/// A config for tests, of this record key and state key.
#[cfg(test)]
pub(super) fn config_of(name: &str, key: &str, suspended: bool) -> Config {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let record = RawRecord { key: Some(bytes(name)), ..Page::implicit() };
    Config { id: (0, Some(bytes(name))), record, key: bytes(key), suspended, token: 0 }
}
