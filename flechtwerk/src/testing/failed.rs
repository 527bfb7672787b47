//! Why a pipeline stopped.

use std::fmt;

use crate::error::BoxError;
use crate::glue::{Failure, FailureKind, Need, RawRecord, RecordPart, Refused, StageInfo, Trouble};

/// A pipeline could not be run to its end: which stage, at which record, and why.
#[derive(Debug)]
pub struct Failed {
    place: String,
    source: Option<BoxError>,
}

impl Failed {
    /// A round did not count.
    pub(super) fn of_round(stage: &StageInfo, records: &[RawRecord], failure: Failure) -> Self {
        let Failure { record, timer, kind, error } = failure;
        match (timer, records.get(record)) {
            (None, Some(record)) => Failed::at(stage, record, (kind, error)),
            (timer, _) => {
                let place = timer.map_or("a timer".to_owned(), |timer| timer.to_string());
                let place = format!("stage `{}` failed at {place}: {}", stage.name, what(stage, &kind));
                Failed { place, source: Some(error) }
            }
        }
    }

    pub(super) fn at(stage: &StageInfo, record: &RawRecord, trouble: Trouble) -> Self {
        Self::config(stage, Refused { at: record.at(), trouble })
    }

    /// The same of a config.
    pub(super) fn config(stage: &StageInfo, Refused { at, trouble: (kind, error) }: Refused) -> Self {
        let what = what(stage, &kind);
        let place = match stage.inputs.get(usize::from(at.input)) {
            Some(topic) => {
                let at = format!("{}/{} offset {}", topic.name, at.partition, at.offset);
                format!("stage `{}` failed at {at}: {what}", stage.name)
            }
            // An extractor without config topics.
            None => format!("stage `{}` failed: {what}", stage.name),
        };
        Failed { place, source: Some(error) }
    }

    pub(super) fn row(topic: &str, Refused { at, trouble: (kind, error) }: Refused) -> Self {
        let what = match kind {
            FailureKind::Decode(RecordPart::Key) => "the key can't be decoded",
            FailureKind::Decode(RecordPart::Value) => "the value can't be decoded",
            FailureKind::Panic => "the code panicked",
            FailureKind::Undecided(_) => "what `on_invalid` answered can't be done",
            _ => "the `enrich` function returned an error",
        };
        let place = format!(
            "the table of topic \"{topic}\" failed at {topic}/{} offset {}: {what}",
            at.partition, at.offset
        );
        Failed { place, source: Some(error) }
    }

    pub(super) fn missing(stage: &StageInfo, need: Need) -> Self {
        let place = format!(
            "stage `{}` takes a `&Res<{ty}>`, and the driver has none: give it one with `Driver::resource`",
            stage.name,
            ty = need.type_name
        );
        Failed { place, source: None }
    }

    pub(super) fn output(stage: &StageInfo, fault: String) -> Self {
        Failed { place: format!("stage `{}` failed: {fault}", stage.name), source: None }
    }

    pub(super) fn endless_pages(stage: &StageInfo, config: &RawRecord, pages: usize) -> Self {
        let topic = stage.inputs.get(usize::from(config.input)).map_or("-", |topic| topic.name);
        let (partition, offset) = (config.partition, config.offset);
        Failed {
            place: format!(
                "stage `{}` answers `Next::Again` for ever: {pages} pages, the last of the config \
                 {topic}[{partition}]@{offset}",
                stage.name
            ),
            source: None,
        }
    }

    pub(super) fn endless(rounds: usize) -> Self {
        Failed {
            place: format!("the pipeline did not come to rest in {rounds} rounds: does a stage feed itself?"),
            source: None,
        }
    }
}

/// What a failure was, in words.
fn what(stage: &StageInfo, kind: &FailureKind) -> String {
    match kind {
        FailureKind::Decode(RecordPart::Key) => "the key can't be decoded".into(),
        FailureKind::Decode(RecordPart::Value) => "the value can't be decoded".into(),
        FailureKind::Undecided(part) => {
            format!("the {} can't be decoded, and what `on_invalid` answered can't be done", part.name())
        }
        FailureKind::User => "the function returned an error".into(),
        FailureKind::Panic => "the code panicked".into(),
        FailureKind::Encode { output } => {
            let topic = stage.outputs().nth((*output).into()).map_or("?", |topic| topic.name);
            format!("a record for topic \"{topic}\" can't be encoded")
        }
        FailureKind::State { .. } => "the stored state can't be decoded".into(),
        FailureKind::Upgrade { version } => {
            format!("the stored state of version {version} can't be upgraded")
        }
        FailureKind::EncodeState => "the new state can't be encoded".into(),
        FailureKind::StoredTimers => "the stored timers can't be decoded".into(),
        FailureKind::SetTimer => "a timer can't be set".into(),
        FailureKind::TimerKey => "the state key can't be decoded for the timer".into(),
        FailureKind::EndlessTimers => "its timers fire for ever".into(),
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        self.source.as_ref().map_or(Ok(()), |source| write!(f, ": {source}"))
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().and_then(|source| source.source())
    }
}
