//! What `#[extractor]` generates is an implementation of [`Extractor`], and how one page of it is run. The checks of its
//! parameters are those of every stage.

use std::future::Future;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;

use super::runner::{caught, panicked};
use super::{
    AnyStage, BoxFuture, Closing, Env, Failure, FailureKind, Listed, Opening, Outputs, Params, RawRecord,
    Round, RoundEnd, Settled, SharedParams, StageInfo, StateChange, Times, Topics, Tried, Trouble, Visit,
    policy,
};
use crate::compact::CompactBytes;
use crate::error::BoxError;
use crate::next::Next;

/// What a config says to the runtime.
pub struct Config {
    /// The record that it is; another one than was read, where the topic's `on_invalid` says so.
    pub record: RawRecord,
    /// The state key.
    pub key: Bytes,
    /// It is not to be polled.
    pub suspended: bool,
}

/// What a record says about the config under its key.
pub enum ConfigChange {
    /// It is this.
    Set(Config),
    /// There is none any more.
    Gone,
    /// It stays as it was: the record did not decode, and the topic's `on_invalid` skips it.
    Stays,
}

/// One page: a call of an extractor's function, and what came of it.
pub struct Page {
    /// The config record; that of an implicit config is made up.
    pub config: RawRecord,
    /// The cursor before the page, as encoded in the changelog.
    pub state: Option<CompactBytes>,
    /// What became of the cursor; filled in by the call.
    pub change: StateChange,
    /// What was sent. Outputs without a timestamp of their own have a negative one.
    pub outputs: Outputs,
}

impl Page {
    /// A page that is still to be run.
    pub fn new(config: RawRecord, state: Option<CompactBytes>) -> Page {
        Page { config, state, change: StateChange::Unchanged, outputs: Outputs::default() }
    }

    /// The config of an extractor that has no config topic.
    pub fn implicit() -> RawRecord {
        RawRecord {
            input: 0,
            partition: 0,
            offset: 0,
            timestamp: -1,
            key: Some(Bytes::new()),
            value: None,
            headers: Default::default(),
        }
    }

    /// There is something to commit.
    pub fn counts(&self) -> bool {
        self.change != StateChange::Unchanged || !self.outputs.records.is_empty()
    }

    /// Outputs to which the function gave no timestamp get this one.
    pub fn stamp(&mut self, now: i64) {
        for output in &mut self.outputs.records {
            if output.timestamp < 0 {
                output.timestamp = now;
            }
        }
    }
}

/// An extractor as its generated code describes it.
pub trait Extractor: Sized + 'static {
    /// Its description.
    const INFO: &'static StageInfo;
    /// The config: what the first parameter refers to.
    type Config: Send + 'static;
    /// The config topics.
    type Topics: Topics<Self::Config>;
    /// All parameters by `&mut`.
    type Slots: Params;
    /// All parameters by `&`, but for the config.
    type Shared: SharedParams;
    /// Decodes a config.
    fn decode(raw: &RawRecord) -> Tried<Self::Config> {
        Self::Topics::decode(raw.input, raw)
    }
    /// The state key of a config; generated where the stage computes it.
    fn key(raw: &RawRecord) -> Tried<Bytes> {
        Ok(raw.key.clone().unwrap_or_default())
    }
    /// The config is not to be polled; generated where the stage says so.
    fn suspended(raw: &RawRecord) -> Tried<bool> {
        Self::decode(raw).map(|_| false)
    }
    /// Calls the function. The future is the function's own.
    fn call(
        config: &Self::Config,
        slots: &mut Self::Slots,
        shared: &Self::Shared,
    ) -> impl Future<Output: Polled> + Send;
}

/// What an extractor's function returns.
#[diagnostic::on_unimplemented(
    message = "an extractor returns `flechtwerk::Result<Next>`, not `{Self}`",
    label = "should be `flechtwerk::Result<Next>`",
    note = "`Result<Next, E>` will do with every `E` that goes into a `Box<dyn Error + Send + Sync>`; messages are sent with \
            `Out`, not returned"
)]
pub trait Polled {
    /// What generated code asks for, to tell what does not return this.
    const PROOF: usize = 0;
    fn polled(self) -> Result<Next, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> Polled for Result<Next, E> {
    fn polled(self) -> Result<Next, BoxError> {
        self.map_err(Into::into)
    }
}

/// A function that says whether a config is suspended.
#[diagnostic::on_unimplemented(
    message = "this can't be the `suspended` of an extractor whose config is `{I}`",
    label = "not a function from `&{I}` to `bool`",
    note = "write `fn name(config: &{I}) -> bool`"
)]
pub trait SuspendedFn<I> {
    fn suspended(&self, config: &I) -> bool;
}

#[diagnostic::do_not_recommend]
impl<I, F: Fn(&I) -> bool> SuspendedFn<I> for F {
    fn suspended(&self, config: &I) -> bool {
        self(config)
    }
}

/// Asks it.
pub fn suspended<I, F: SuspendedFn<I>>(function: F, config: &I) -> Result<bool, Trouble> {
    Ok(function.suspended(config))
}

/// Makes the entry of an extractor.
pub const fn listed_extractor<E: Extractor>() -> Listed {
    Listed { info: E::INFO, stage: const { &ErasedExtractor::<E>(PhantomData) } }
}

/// An [`Extractor`] as an object.
struct ErasedExtractor<E>(PhantomData<fn() -> E>);

impl<E: Extractor> AnyStage for ErasedExtractor<E> {
    fn info(&self) -> &'static StageInfo {
        E::INFO
    }

    fn key(&self, record: &RawRecord) -> Result<Bytes, Trouble> {
        caught(|| E::key(record))
    }

    fn round<'a>(
        &'a self,
        _: &'a mut Round,
        _: &'a mut Outputs,
        _: &'a Env,
        _: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, Failure>> {
        unreachable!("an extractor has no rounds")
    }

    fn config(&self, record: &RawRecord) -> Result<(ConfigChange, Option<Settled>), Trouble> {
        // The one config of an extractor without config topics has no value.
        if record.value.is_none() && !E::INFO.inputs.is_empty() {
            return Ok((ConfigChange::Gone, None));
        }
        caught(|| {
            let (part, error) = match config::<E>(record) {
                Ok(config) => return Ok((ConfigChange::Set(config), None)),
                Err((FailureKind::Decode(part), error)) => (part, error),
                Err(trouble) => return Err(trouble),
            };
            match E::Topics::on_invalid(record.input, record, E::INFO.name, part, error)? {
                None => Ok((ConfigChange::Stays, Some(Settled::Skip))),
                Some(instead) => match config::<E>(&instead) {
                    Err((FailureKind::Decode(_), error)) => policy::not_read_back(part, &error),
                    config => Ok((ConfigChange::Set(config?), Some(Settled::Instead))),
                },
            }
        })
    }

    fn page<'a>(&'a self, page: &'a mut Page, env: &'a Env) -> BoxFuture<'a, Result<Next, Trouble>> {
        Box::pin(run::<E>(page, env))
    }
}

fn config<E: Extractor>(record: &RawRecord) -> Tried<Config> {
    // Both decode it, so that what does not decode is found before it is polled.
    Ok(Config { suspended: E::suspended(record)?, key: E::key(record)?, record: record.clone() })
}

async fn run<E: Extractor>(page: &mut Page, env: &Env) -> Result<Next, Trouble> {
    let Some(shared) = E::Shared::open(env) else {
        return Err((FailureKind::User, "a parameter that the stages share was never made".into()));
    };
    let Page { config, state, change, outputs } = page;
    let mut pool = Vec::new();
    let mut slots = {
        let mut opening = Opening {
            stored: state.as_deref(),
            timers: None,
            times: Times::default(),
            outputs: 0,
            pool: &mut pool,
        };
        caught(|| E::Slots::open(&mut opening))?
    };
    // The timestamp of the config is not that of what it leads to.
    let place = RawRecord { timestamp: -1, ..config.clone() };
    let _ = slots.visit(&mut Visit::Begin(&place));
    let call = async {
        let config = E::decode(config)?;
        let returned = E::call(&config, &mut slots, &shared).await;
        returned.polled().map_err(|error| (FailureKind::User, error))
    };
    let called = AssertUnwindSafe(call).catch_unwind().await;
    let returned = called.unwrap_or_else(|panic| Err(panicked(panic)));
    // What could not be encoded came before what the function returned.
    let next = match slots.visit(&mut Visit::Check(&mut 0)) {
        Err(trouble) if !matches!(returned, Err((FailureKind::Panic, _))) => return Err(trouble),
        _ => returned?,
    };
    let mut closing = Closing {
        stored: state.as_deref(),
        change,
        stored_timers: None,
        timers_change: &mut StateChange::Unchanged,
        outputs,
        pool: &mut pool,
        scratch: &mut Vec::new(),
    };
    let closed = caught(|| slots.visit(&mut Visit::Close(&mut closing)));
    if let Err(trouble) = closed {
        *outputs = Outputs::default();
        *change = StateChange::Unchanged;
        return Err(trouble);
    }
    Ok(next)
}
