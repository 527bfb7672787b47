//! The calls of a token's configs: which run, which may begin, and what their pages hold. The futures are polled in
//! place, by the token; dropping this cancels them all.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{AcquireError, OwnedSemaphorePermit};

use super::batch::ClosedBatch;
use super::configs::{Change, Config, ConfigId};
use super::context::StageContext;
use super::error::{Failure, chain};
use super::messages;
use super::schedule::Schedule;
use crate::compact::CompactBytes;
use crate::format::{self, Kind};
use crate::glue::{self, Outputs, StateChange, Trouble};
use crate::next::Next;
use crate::observe::names;
use crate::port::Store;
use crate::task::Overlay;

/// What came of a call.
pub(super) enum Finished {
    /// It was cancelled, had nothing to commit, or only became free to begin.
    Nothing,
    Failed(Failure),
    /// A page to commit; [`Polls::done`] once it is.
    Page(Page, Box<ClosedBatch>),
}

/// A page whose commit is awaited before its config is polled again.
pub(super) struct Page {
    config: Arc<Config>,
    next: Next,
    ended: Instant,
}

/// A call that has ended; without an answer, it was cancelled.
struct Ended {
    config: Arc<Config>,
    page: Option<(glue::Page, Result<Next, Trouble>)>,
}

type Call = Pin<Box<dyn Future<Output = Ended> + Send>>;
type Permit = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// See the module.
pub(super) struct Polls {
    context: Arc<StageContext>,
    token: i32,
    schedule: Schedule,
    calls: FuturesUnordered<Call>,
    cancel: HashMap<ConfigId, AbortHandle>,
    next_number: u64,
    /// A place in the line for `max_concurrent_polls`; kept, or others would always be first.
    waiting: Option<Permit>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Polls {
    pub(super) fn begin(context: Arc<StageContext>, token: i32, configs: Vec<Arc<Config>>) -> Polls {
        let interval = context.info.extractor.map(|extractor| extractor.poll_interval).unwrap_or_default();
        let mut schedule = Schedule::new(interval);
        schedule.begin(configs, Instant::now(), rand::random);
        let polls = Polls {
            context,
            token,
            schedule,
            calls: FuturesUnordered::new(),
            cancel: HashMap::new(),
            // The watch over the rounds of tasks has number zero.
            next_number: 1,
            waiting: None,
            permit: None,
        };
        polls.measure();
        polls
    }

    /// When to call [`start_due`](Self::start_due) again; `None` while there is nothing, or another call must end first.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.schedule.next_at().filter(|_| self.waiting.is_none())
    }

    /// Takes what happened to the token's configs: calls of those that are gone or suspended are cancelled.
    pub(super) fn change(&mut self, changes: Vec<Change>) {
        let now = Instant::now();
        let spread = Schedule::spread(changes.len(), self.interval());
        for change in changes {
            match change {
                Change::Set(config) => {
                    if config.suspended {
                        self.cancel_call(&config.id);
                    }
                    self.schedule.set(config, now + spread.mul_f64(rand::random()));
                }
                Change::Gone(id) => {
                    self.cancel_call(&id);
                    self.schedule.gone(&id);
                }
            }
        }
        self.measure();
    }

    fn interval(&self) -> std::time::Duration {
        self.context.info.extractor.map(|extractor| extractor.poll_interval).unwrap_or_default()
    }

    fn cancel_call(&mut self, id: &ConfigId) {
        if let Some(handle) = self.cancel.get(id) {
            handle.abort();
        }
    }

    /// Begins the calls that are due, as far as others leave room; none without `room`. An error is the store's.
    pub(super) fn start_due(
        &mut self,
        store: Option<&dyn Store>,
        now: Instant,
        room: bool,
    ) -> Result<(), String> {
        while room && self.schedule.next_at().is_some_and(|at| at <= now) && self.waiting.is_none() {
            let semaphore = &self.context.polls;
            let permit = self.permit.take().or_else(|| semaphore.clone().try_acquire_owned().ok());
            let Some(permit) = permit else {
                self.waiting = Some(Box::pin(semaphore.clone().acquire_owned()));
                break;
            };
            let Some(config) = self.schedule.next(now) else { break };
            let state = self.look_up(&config, store)?;
            self.start(config, state, permit);
        }
        // Somebody else may have more use for it.
        self.permit = None;
        names::polls_running(self.context.info.name, self.token).set(self.calls.len() as f64);
        Ok(())
    }

    /// The cursor. All pages of this config are in the store by now.
    fn look_up(&self, config: &Config, store: Option<&dyn Store>) -> Result<Option<CompactBytes>, String> {
        let Some(store) = store.filter(|_| self.context.changelog.is_some()) else { return Ok(None) };
        let mut found = Vec::with_capacity(1);
        store.get_many(&[&changelog_key(config)], &mut found).map_err(|error| chain(&error))?;
        Ok(found.pop().flatten())
    }

    fn start(&mut self, config: Arc<Config>, state: Option<CompactBytes>, permit: OwnedSemaphorePermit) {
        let (handle, registration) = AbortHandle::new_pair();
        self.cancel.insert(config.id.clone(), handle);
        let number = self.next_number;
        self.next_number += 1;
        let place = messages::config_place(&self.context.names, config.record.at());
        let watched = self.context.watchdog.call(self.token, number, place);
        let context = self.context.clone();
        // Each call sees one version of every table.
        let env = context.shared.now();
        let mut page = glue::Page::new(config.record.clone(), state);
        self.calls.push(Box::pin(async move {
            let call = async {
                let next = context.stage.page(&mut page, &env).await;
                drop((watched, permit));
                next
            };
            let called = Abortable::new(call, registration).await;
            Ended { config, page: called.ok().map(|next| (page, next)) }
        }));
    }

    /// The next call that ends.
    pub(super) async fn next(&mut self) -> Finished {
        tokio::select! {
            biased;
            Some(ended) = self.calls.next() => self.ended(ended),
            permit = next_permit(&mut self.waiting) => {
                self.waiting = None;
                self.permit = permit;
                Finished::Nothing
            }
            else => std::future::pending().await,
        }
    }

    fn ended(&mut self, Ended { config, page }: Ended) -> Finished {
        self.cancel.remove(&config.id);
        let now = Instant::now();
        let Some((mut page, answer)) = page else {
            self.schedule.cancelled(&config, now);
            return Finished::Nothing;
        };
        let (stage, names) = (self.context.info.name, &self.context.names);
        let next = match answer {
            Ok(next) => next,
            Err((kind, error)) => {
                let info = self.context.info;
                return Finished::Failed(messages::config_failure(
                    info,
                    names,
                    config.record.at(),
                    &kind,
                    &error,
                ));
            }
        };
        names::polls(stage, self.token).increment(1);
        let moved = page.change != StateChange::Unchanged;
        if let Err(pages) = self.schedule.page(&config.id, next, moved, hash(&page.outputs), now) {
            return Finished::Failed(messages::fruitless(&self.context, &config.record, pages));
        }
        if !page.counts() {
            self.schedule.done(&config, next, now, now);
            return Finished::Nothing;
        }
        page.stamp(millis());
        let mut overlay = Overlay::default();
        overlay.change(changelog_key(&config), page.state, page.change);
        let batch = ClosedBatch {
            outputs: page.outputs,
            layer: Arc::new(overlay.close()),
            page: Some(messages::config_place(names, config.record.at())),
            ..ClosedBatch::default()
        };
        Finished::Page(Page { config, next, ended: now }, Box::new(batch))
    }

    /// A page is committed and in the store.
    pub(super) fn done(&mut self, page: &Page) {
        self.schedule.done(&page.config, page.next, page.ended, Instant::now());
    }

    fn measure(&self) {
        names::configs(self.context.info.name, self.token).set(self.schedule.len() as f64);
    }
}

/// The permit that is waited for; never, where none is.
async fn next_permit(waiting: &mut Option<Permit>) -> Option<OwnedSemaphorePermit> {
    match waiting {
        // It is never closed.
        Some(permit) => permit.await.ok(),
        None => std::future::pending().await,
    }
}

fn changelog_key(config: &Config) -> CompactBytes {
    format::key(Kind::State, &config.key)
}

/// Tells pages with the same messages from others.
fn hash(outputs: &Outputs) -> u64 {
    let mut hasher = DefaultHasher::new();
    outputs.bytes.hash(&mut hasher);
    for record in &outputs.records {
        (record.topic, &record.key, &record.value, record.timestamp, record.partition).hash(&mut hasher);
        for header in record.headers.iter() {
            (&header.name, &header.value).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Now, since the epoch.
fn millis() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
