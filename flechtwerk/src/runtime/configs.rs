//! The configs of an extractor: read whole by every instance before it joins the group, and kept up to date. Each token
//! gets those that belong to it, wherever their records lie (S10.3).

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::error::Failure;
use super::messages;
use super::stage::Notices;
use super::whole::Whole;
use crate::glue::{AnyStage, Page, RawRecord};
use crate::naming::StageNames;
use crate::partitioner::partition_of;
use crate::port::Reader;

/// How long the reading waits for more before it sees whether anybody is left to read for.
const WAIT: Duration = Duration::from_millis(200);
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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: HashMap<ConfigId, Arc<Config>>,
    /// The tokens that run here.
    tokens: BTreeMap<i32, UnboundedSender<Change>>,
}

impl Configs {
    /// Reads the config topics whole; without any there is one config. What comes later arrives by itself, and what goes
    /// wrong then is said to `notices`.
    pub(super) fn load(
        stage: &'static dyn AnyStage,
        names: &StageNames,
        tokens: i32,
        reader: &dyn Reader,
        limit: Duration,
        notices: Notices,
    ) -> Result<Arc<Configs>, Failure> {
        let configs = Arc::new(Configs { stage, names: names.clone(), tokens, state: Mutex::default() });
        if names.inputs.is_empty() {
            configs.set(Page::implicit())?;
            return Ok(configs);
        }
        let whole = configs.read(reader, limit)?;
        let name = format!("{} configs", names.stage);
        let weak = Arc::downgrade(&configs);
        let started = std::thread::Builder::new().name(name).spawn(move || {
            if let Err(failure) = follow(whole, &weak) {
                notices.failed(failure);
            }
        });
        match started {
            Ok(_) => Ok(configs),
            Err(error) => Err(Failure::new(format!(
                "stage {}: can't start a thread to read the configs: {error}",
                names.stage
            ))),
        }
    }

    fn read(&self, reader: &dyn Reader, limit: Duration) -> Result<Whole, Failure> {
        let began = Instant::now();
        let mut said = began;
        let mut whole = Whole::open(self.names.stage, reader, &self.names.inputs, self.tokens, limit)?;
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
        last.into_values().try_for_each(|record| self.set(record))?;
        Ok(whole)
    }

    fn apply(&self, record: RawRecord) -> Result<(), Failure> {
        if record.value.is_some() {
            return self.set(record);
        }
        let mut state = self.lock();
        if let Some(config) = state.all.remove(&(record.input, record.key)) {
            state.tell(config.token, Change::Gone(config.id.clone()));
        }
        Ok(())
    }

    fn set(&self, record: RawRecord) -> Result<(), Failure> {
        let said = self.stage.config(&record);
        let said = said.map_err(|(kind, error)| {
            messages::config_failure(self.stage.info(), &self.names, &record, &kind, &error)
        })?;
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
        Ok(())
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
