//! Schemas that come up in records, asked for before the records are decoded: so a registry that does not answer holds its
//! task up, and stops the process like a broker that does not, but never makes a record invalid (S1.6).

use std::sync::Arc;
use std::time::Duration;

use super::context::{Cancel, StageContext, repeat};
use super::error::Failure;
use super::rounds::{Finished, Running};
use crate::codec::unknown_schemas;
use crate::glue::{RawRecord, TopicInfo};
use crate::port::Schemas;

/// Who asks.
pub(super) struct Asking<'a> {
    pub(super) schemas: Option<&'a Arc<dyn Schemas>>,
    /// Begins messages: "stage count".
    pub(super) who: &'a str,
    pub(super) limit: Duration,
    pub(super) cancel: &'a Cancel,
}

impl Asking<'_> {
    /// Waits until all schemas that these records name are known; false: cancelled. A record's `input` is its topic's place
    /// among `inputs`.
    pub(super) fn ask<'a>(
        &self,
        inputs: &[&'static TopicInfo],
        records: impl IntoIterator<Item = &'a RawRecord>,
    ) -> Result<bool, Failure> {
        let Some(schemas) = self.schemas else { return Ok(true) };
        self.fetch(schemas, &unknown_schemas(inputs, records))
    }

    fn fetch(&self, schemas: &Arc<dyn Schemas>, ids: &[u32]) -> Result<bool, Failure> {
        for id in ids {
            let what = format!("ask the schema registry for schema {id}");
            if repeat(self.who, self.limit, &what, self.cancel, || schemas.fetch(*id))?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Ends the asking when nobody waits for it any more.
struct Until(Cancel);

impl Drop for Until {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Asks for what a round's records need; `None` where all of it is known.
pub(super) fn first(context: &Arc<StageContext>, records: &[RawRecord]) -> Option<Running> {
    let schemas = context.schemas.clone()?;
    let ids = unknown_schemas(context.info.inputs, records);
    if ids.is_empty() {
        return None;
    }
    let (context, until) = (context.clone(), Until(Cancel::default()));
    Some(Box::pin(async move {
        let cancel = until.0.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let who = format!("stage {}", context.info.name);
            let limit = context.limits.broker_timeout;
            Asking { schemas: Some(&schemas), who: &who, limit, cancel: &cancel }.fetch(&schemas, &ids)
        });
        let asked = asked.await;
        drop(until);
        match asked {
            Ok(Ok(_)) => Finished::Asked,
            Ok(Err(failure)) => Finished::Failed(failure),
            Err(_) => Finished::Failed(Failure::new(
                "the asking for schemas died of an error in Flechtwerk itself; please report it with the panic message above",
            )),
        }
    }))
}
