//! The configs of an extractor: read whole by every instance before it joins the group, and kept up to date. Each token
//! gets those that belong to it, wherever their records lie (S10.3).

use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::context::Cancel;
use super::error::{Failure, guarded};
use super::messages;
use super::schemas::Asking;
use super::stage::{Notice, Notices};
use super::supervisor::{Plan, StagePlan};
use super::topic_watch::Count;
use super::whole::{Open, Whole};
use crate::glue::{self, AnyStage, Broken, ConfigChange, Deleted, Page, RawRecord, Refused, Written};
use crate::naming::StageNames;
use crate::observe::names;
use crate::partitioner::partition_of;
use crate::port::{Reader, ReaderKind};

/// How often the start looks whether the configs are read.
const NOTICE: Duration = Duration::from_millis(10);

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
    written: Written,
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
    state: Mutex<State>,
}

struct State {
    all: HashMap<ConfigId, Arc<Config>>,
    broken: Broken<ConfigId>,
    deleted: Deleted<ConfigId>,
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
    let who = format!("the configs of stage {name}");
    let asking = Asking { schemas: plan.schemas.as_ref(), who: &who, limit, cancel };
    let configs = Configs::load(stage.stage, &stage.names, stage.partitions, &reader, &asking, notices)?;
    Ok(configs.map(|configs| Loaded { reader, configs }))
}

impl Configs {
    /// Reads the config topics whole; without any there is one config. What comes later arrives by itself, and what goes
    /// wrong then is said to `notices`. `None`: cancelled.
    pub(super) fn load(
        stage: &'static dyn AnyStage,
        names: &StageNames,
        tokens: i32,
        reader: &Arc<dyn Reader>,
        asking: &Asking<'_>,
        notices: Notices,
    ) -> Result<Option<Arc<Configs>>, Failure> {
        let configs = Configs::of_none(stage, names, tokens);
        if names.inputs.is_empty() {
            configs.take(&Page::implicit());
            configs.settle()?;
            return Ok(Some(configs));
        }
        let Some(whole) = configs.read(reader, asking)? else { return Ok(None) };
        let name = format!("{} configs", names.stage);
        let who = format!("stage {}: the thread that reads the configs", names.stage);
        let weak = Arc::downgrade(&configs);
        let started = std::thread::Builder::new().name(name).spawn(move || {
            if let Err(failure) = guarded(&who, || follow(whole, &weak)) {
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

    /// Nothing is read yet.
    pub(super) fn of_none(stage: &'static dyn AnyStage, names: &StageNames, tokens: i32) -> Arc<Configs> {
        let state = State {
            all: HashMap::new(),
            broken: Broken::default(),
            deleted: Deleted::new(tokens),
            tokens: BTreeMap::new(),
        };
        Arc::new(Configs { stage, names: names.clone(), tokens, state: Mutex::new(state) })
    }

    fn read(&self, reader: &Arc<dyn Reader>, asking: &Asking<'_>) -> Result<Option<Whole>, Failure> {
        let (topics, types) = (&*self.names.inputs, self.stage.info().inputs);
        let count = Count { partitions: self.tokens, grown: messages::configs_grown(&self.names) };
        let open = Open { reader, topics, types, count };
        tracing::info!(stage = self.names.stage, ?topics, "reading configs");
        let Some(mut whole) = Whole::open(open, asking)? else { return Ok(None) };
        if !whole.read(|record| self.take(record), |_| {})? {
            return Ok(None);
        }
        self.settle()?;
        tracing::info!(stage = self.names.stage, configs = self.lock().all.len(), "configs are read");
        Ok(Some(whole))
    }

    /// Takes a record; what is wrong with it matters only if it is the last of its key when [`Configs::settle`] is called.
    fn take(&self, record: &RawRecord) {
        let id = (record.input, record.key.clone());
        let Some(written) = Written::of(record).behind(self.lock().written(&id)) else { return };
        let taken = self.stage.config(record).map(|(change, settled)| {
            if let Some(settled) = settled {
                let topic = &self.names.inputs[usize::from(record.input)];
                names::invalid_records(self.names.stage, topic, messages::outcome(settled)).increment(1);
            }
            change
        });
        let mut state = self.lock();
        let taken = taken.map(|change| state.apply(&id, change, written, self.tokens));
        state.broken.note(id, record, written, taken);
    }

    /// Refuses what could not be taken (S10.5).
    fn settle(&self) -> Result<(), Failure> {
        let mut state = self.lock();
        state.deleted.settle();
        state.broken.first().map_err(|refused| {
            let Refused { at, trouble: (kind, error) } = refused;
            messages::config_failure(self.stage.info(), &self.names, at, &kind, &error)
        })
    }

    /// The configs of a token, and what happens to them from now on.
    pub(super) fn of(&self, token: i32) -> (Vec<Arc<Config>>, UnboundedReceiver<Change>) {
        let (sender, changes) = unbounded_channel();
        let mut state = self.lock();
        state.tokens.insert(token, sender);
        let mine = state.all.values().filter(|config| config.token == token).cloned().collect();
        (mine, changes)
    }

    /// How many the configs are shared out among.
    pub(super) fn tokens(&self) -> i32 {
        self.tokens
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// When a config was written last.
    fn written(&self, id: &ConfigId) -> Option<Written> {
        // What does not decode came behind what there is.
        let config = || self.all.get(id).map(|config| config.written);
        self.broken.written(id).or_else(config).or_else(|| self.deleted.written(id))
    }

    fn apply(&mut self, id: &ConfigId, change: ConfigChange, written: Written, tokens: i32) {
        match change {
            ConfigChange::Stays => {}
            ConfigChange::Gone => {
                self.deleted.insert(|| id.clone(), written);
                if let Some(config) = self.all.remove(id) {
                    self.tell(config.token, Change::Gone(config.id.clone()));
                }
            }
            ConfigChange::Set(glue::Config { record, key, suspended }) => {
                let token = partition_of(&key, tokens);
                let config = Arc::new(Config { id: id.clone(), record, key, suspended, token, written });
                self.deleted.remove(id);
                let before = self.all.insert(id.clone(), config.clone());
                if let Some(before) = before.filter(|before| before.token != token) {
                    self.tell(before.token, Change::Gone(before.id.clone()));
                }
                self.tell(token, Change::Set(config));
            }
        }
    }

    fn tell(&mut self, token: i32, change: Change) {
        // A token that is gone has dropped its end.
        if self.tokens.get(&token).is_some_and(|sender| sender.send(change).is_err()) {
            self.tokens.remove(&token);
        }
    }
}

fn follow(mut whole: Whole, configs: &Weak<Configs>) -> Result<(), Failure> {
    while let Some(configs) = configs.upgrade() {
        if whole.follow(|record| configs.take(record))? > 0 {
            configs.settle()?;
        }
    }
    Ok(())
}

/// A config for tests, of this record key and state key.
#[cfg(test)]
pub(super) fn config_of(name: &str, key: &str, suspended: bool) -> Config {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    let record = RawRecord { key: Some(bytes(name)), ..Page::implicit() };
    Config {
        id: (0, Some(bytes(name))),
        record,
        key: bytes(key),
        suspended,
        token: 0,
        written: Written::default(),
    }
}
