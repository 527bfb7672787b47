//! Stages by hand, which the tests of names, checks and commands share.

use std::time::Duration;

use bytes::Bytes;

use crate::glue::{
    AnyStage, BoxFuture, Env, ExtractorInfo, Failure, FailureKind, Need, Order, Outputs, Part, Policy,
    RawRecord, Round, RoundEnd, Share, StageInfo, Start, StateInfo, TableInfo, TopicInfo,
};
use crate::{BoxError, Pipeline};

const fn topic(name: &'static str, id: &'static str) -> TopicInfo {
    TopicInfo {
        name,
        id,
        key_codec: "Utf8",
        value_codec: "Json<u64>",
        key_nullable: false,
        schemas: [None; 2],
    }
}

static WORDS: TopicInfo = topic("words", "demo::Words");
static COUNTS: TopicInfo = topic("counts", "demo::Counts");
static ALERTS: TopicInfo = topic("alerts", "demo::Alerts");
static DEAD: TopicInfo = topic("dead", "demo::Dead");

const fn stage(
    name: &'static str,
    inputs: &'static [&'static TopicInfo],
    parts: &'static [Part],
    application_id: Option<&'static str>,
) -> StageInfo {
    StageInfo {
        name,
        id: name,
        application_id,
        inputs,
        parts,
        shared: &[],
        start: Start::Earliest,
        order: Order::Inputs,
        custom_key: false,
        headers: true,
        extractor: None,
        policy: Policy::CRASH,
        stub: false,
    }
}

const STATE: Part = Part::State(StateInfo { type_name: "Count", version: 1, oldest: 1 });

/// words -> counts, with state.
pub(crate) static COUNT: StageInfo = stage("count", &[&WORDS], &[STATE, Part::Output(&COUNTS)], None);
/// The same under an application id of its own.
pub(crate) static COUNT_ALL: StageInfo = stage("count-all", &[&WORDS], &[STATE], Some("legacy-counter"));
/// words -> alerts, no state.
pub(crate) static ENRICH: StageInfo = stage("enrich", &[&WORDS], &[Part::Output(&ALERTS)], None);
/// words and counts -> alerts, with state.
pub(crate) static MERGE: StageInfo =
    stage("merge", &[&WORDS, &COUNTS], &[STATE, Part::Output(&ALERTS)], None);

/// words, counts and items -> alerts, no state.
#[cfg(feature = "kafka")]
pub(crate) static JOIN: StageInfo = stage("join", &[&WORDS, &COUNTS, &ITEMS], &[Part::Output(&ALERTS)], None);

/// words -> words: it reads what it writes.
pub(crate) static AGAIN: StageInfo = stage("again", &[&WORDS], &[Part::Output(&WORDS)], None);
/// alerts -> counts, and `REPLY` the other way.
pub(crate) static ASK: StageInfo = stage("ask", &[&ALERTS], &[Part::Output(&COUNTS)], None);
/// counts -> alerts.
pub(crate) static REPLY: StageInfo = stage("reply", &[&COUNTS], &[Part::Output(&ALERTS)], None);

const fn extractor(
    name: &'static str,
    configs: &'static [&'static TopicInfo],
    parts: &'static [Part],
) -> StageInfo {
    let poll_interval = Duration::from_secs(90);
    let extractor = Some(ExtractorInfo { poll_interval, suspends: false });
    StageInfo { extractor, ..stage(name, configs, parts, None) }
}

/// Configs in words, to alerts, with a cursor.
pub(crate) static POLL: StageInfo = extractor("poll", &[&WORDS], &[STATE, Part::Output(&ALERTS)]);
/// Configs in words and counts, to alerts, without a cursor.
#[cfg(feature = "kafka")]
pub(crate) static POLL_BOTH: StageInfo = extractor("poll-both", &[&WORDS, &COUNTS], &[Part::Output(&ALERTS)]);
/// No configs, to alerts.
pub(crate) static TICK: StageInfo = extractor("tick", &[], &[STATE, Part::Output(&ALERTS)]);

static ITEMS: TopicInfo = topic("items", "demo::Items");
static TABLE: TableInfo = TableInfo { topic: &ITEMS, make: |_| unreachable!("this table is never read") };

/// words -> alerts, with the table items and a resource.
pub(crate) static LOOKUP: StageInfo = StageInfo {
    shared: &[Share::Table(&TABLE), Share::Resource(Need { id: "demo::http", type_name: "Http" })],
    ..stage("lookup", &[&WORDS], &[Part::Output(&ALERTS)], None)
};

/// words -> alerts; what does not decode goes to `dead`.
pub(crate) static JUDGE: StageInfo = StageInfo {
    policy: Policy { named: true, dead_letters: Some(&DEAD) },
    ..stage("judge", &[&WORDS], &[Part::Output(&ALERTS)], None)
};

/// words -> alerts, with timers and no state.
pub(crate) static REMIND: StageInfo =
    stage("remind", &[&WORDS], &[Part::Timers, Part::Output(&ALERTS)], None);
/// The same with state.
pub(crate) static SESSIONS: StageInfo =
    stage("sessions", &[&WORDS], &[STATE, Part::Timers, Part::Output(&ALERTS)], None);

/// A stage that can be described and nothing else.
pub(crate) struct Described(pub(crate) &'static StageInfo);

impl AnyStage for Described {
    fn info(&self) -> &'static StageInfo {
        self.0
    }

    fn key(&self, _: &RawRecord) -> Result<Bytes, (FailureKind, BoxError)> {
        Err((FailureKind::User, "this stage is never run".into()))
    }

    fn round<'a>(
        &'a self,
        _: &'a mut Round,
        _: &'a mut Outputs,
        _: &'a Env,
        _: usize,
    ) -> BoxFuture<'a, Result<RoundEnd, Failure>> {
        let error = "this stage is never run".into();
        Box::pin(async { Err(Failure { record: 0, timer: None, kind: FailureKind::User, error }) })
    }
}

/// A pipeline of `count`, `enrich` and `merge`.
pub(crate) static DEMO: Pipeline = Pipeline {
    name: "demo",
    stages: &[&Described(&COUNT), &Described(&ENRICH), &Described(&MERGE)],
    resources: &[],
};

/// A pipeline of extractors.
#[cfg(feature = "kafka")]
pub(crate) static EXTRACT: Pipeline = Pipeline {
    name: "demo",
    stages: &[&Described(&POLL), &Described(&POLL_BOTH), &Described(&TICK)],
    resources: &[],
};
