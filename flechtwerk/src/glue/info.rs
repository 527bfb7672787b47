//! Constant descriptions of topics and stages, made by the macros and read by the compile-time checks, the
//! startup checks and the runtime.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;

use super::{
    ConfigChange, Env, Failure, FailureKind, Need, Outputs, Page, RawRecord, Round, RoundEnd, Settled, Share,
    TableInfo,
};
use crate::BoxError;
use crate::codec::schema::SchemaInfo;

/// A topic type, as a constant.
#[derive(Debug)]
pub struct TopicInfo {
    /// The topic's name in Kafka, before any mapping.
    pub name: &'static str,
    /// The path of the type that stands for it: `my_crate::Words`.
    pub id: &'static str,
    /// The codecs' names, for messages: `Utf8`, `Json<u64>`.
    pub key_codec: &'static str,
    /// See `key_codec`.
    pub value_codec: &'static str,
    /// The key may be null.
    pub key_nullable: bool,
    /// The schemas of its keys and of its values, where they are a registry's.
    pub schemas: [Option<&'static SchemaInfo>; 2],
}

/// The state that a stage keeps.
#[derive(Clone, Copy, Debug)]
pub struct StateInfo {
    /// The type's name as written.
    pub type_name: &'static str,
    /// The version that is written.
    pub version: u32,
    /// The oldest version that can be read: those between are upgraded.
    pub oldest: u32,
}

/// What a parameter of a stage stands for.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// `&mut State<S>`
    State(StateInfo),
    /// `&mut Out<T>`
    Output(&'static TopicInfo),
    /// `&mut Timers`
    Timers,
}

/// Where reading starts when the group has committed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the oldest record there is.
    Earliest,
    /// At the end.
    Latest,
}

/// The order of a bucket's records from several inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the inputs are listed.
    Inputs,
    /// Smallest timestamp first, ties as the inputs are listed.
    Timestamp,
}

/// How an extractor is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtractorInfo {
    /// How long a config rests after [`crate::Next::Idle`].
    pub poll_interval: Duration,
    /// A function says which configs are not polled.
    pub suspends: bool,
}

/// What a stage does about records that don't decode.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// It names a function that decides; else it crashes.
    pub named: bool,
    /// Where that function may send them.
    pub dead_letters: Option<&'static TopicInfo>,
}

impl Policy {
    /// What holds where nothing is said.
    pub const CRASH: Policy = Policy { named: false, dead_letters: None };
}

/// A stage, as a constant.
#[derive(Clone, Copy, Debug)]
pub struct StageInfo {
    /// Unique in its pipeline.
    pub name: &'static str,
    /// The path of the function: `my_crate::count`.
    pub id: &'static str,
    /// Set by the user, else made of namespace, pipeline and stage name.
    pub application_id: Option<&'static str>,
    /// The inputs, as listed.
    pub inputs: &'static [&'static TopicInfo],
    /// The parameters after the input, in order.
    pub parts: &'static [Part],
    /// What the parameters by `&` stand for, in order.
    pub shared: &'static [Share],
    /// See [`Start`].
    pub start: Start,
    /// See [`Order`].
    pub order: Order,
    /// The state key is computed by a function: [`AnyStage::key`] is to be asked.
    pub custom_key: bool,
    /// Whether anything of it may look at the headers of its inputs; else they are not read.
    pub headers: bool,
    /// What only an extractor has; its inputs are its config topics.
    pub extractor: Option<ExtractorInfo>,
    /// See [`Policy`].
    pub policy: Policy,
    /// Stands in for a stage with errors, so that one mistake stays one error.
    pub stub: bool,
}

impl StageInfo {
    /// The output topics, in parameter order, and then that of the dead letters; [`super::OutputRecord::topic`] is an
    /// index into this.
    pub fn outputs(&self) -> impl Iterator<Item = &'static TopicInfo> + use<> {
        let (parts, dead_letters) = (self.parts, self.policy.dead_letters);
        let sent = parts.iter().filter_map(|part| match part {
            Part::Output(topic) => Some(*topic),
            Part::State(_) | Part::Timers => None,
        });
        sent.chain(dead_letters)
    }

    /// The state, if the stage keeps one.
    pub fn state(&self) -> Option<StateInfo> {
        self.parts.iter().find_map(|part| match part {
            Part::State(state) => Some(*state),
            Part::Output(_) | Part::Timers => None,
        })
    }

    /// It takes timers.
    pub const fn takes_timers(&self) -> bool {
        let mut n = 0;
        while n < self.parts.len() {
            if matches!(self.parts[n], Part::Timers) {
                return true;
            }
            n += 1;
        }
        false
    }

    /// It keeps something for its keys, and so has a store and a changelog.
    pub fn keeps(&self) -> bool {
        self.state().is_some() || self.takes_timers()
    }

    /// The topics of the tables.
    pub fn tables(&self) -> impl Iterator<Item = &'static TableInfo> + use<> {
        let shared = self.shared;
        shared.iter().filter_map(|share| match share {
            Share::Table(table) => Some(*table),
            Share::Resource(_) => None,
        })
    }

    /// The resources.
    pub fn resources(&self) -> impl Iterator<Item = Need> + use<> {
        let shared = self.shared;
        shared.iter().filter_map(|share| match share {
            Share::Resource(need) => Some(*need),
            Share::Table(_) => None,
        })
    }
}

/// A future that is boxed once a round.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stage behind one virtual call per round.
pub trait AnyStage: Sync {
    /// Its description.
    fn info(&self) -> &'static StageInfo;

    /// The state key of a record; asked only where [`StageInfo::custom_key`] is set.
    fn key(&self, record: &RawRecord) -> Result<Bytes, (FailureKind, BoxError)>;

    /// Runs the function over a round: buckets concurrently, records of a bucket one after another. Fills in
    /// each bucket's `change` and appends to `outputs`. `budget` is how many bytes of outputs and changed state
    /// the round may make; past it the round stops with `OverBudget`, unless it has only one record. On an
    /// error or `OverBudget`, `outputs` is as it was before. Panics of user code are caught.
    fn round<'a>(
        &'a self,
        round: &'a mut Round,
        outputs: &'a mut Outputs,
        env: &'a Env,
        budget: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, Failure>>;

    /// What a record of a config topic says, and what became of it if it did not decode; asked of extractors only.
    fn config(&self, record: &RawRecord) -> Result<(ConfigChange, Option<Settled>), (FailureKind, BoxError)> {
        unreachable!("a transformer has no config {}", record.offset)
    }

    /// Runs the function of an extractor once. Fills in the page's `change` and `outputs`, which on an error are as they
    /// were before. Panics of user code are caught.
    fn page<'a>(
        &'a self,
        page: &'a mut Page,
        env: &'a Env,
    ) -> BoxFuture<'a, Result<crate::Next, (FailureKind, BoxError)>> {
        let _ = (page, env);
        unreachable!("a transformer has no pages")
    }
}
