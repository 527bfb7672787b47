//! The tables of a pipeline in memory.

use std::sync::Arc;

use super::Failed;
use super::topics::Topics;
use crate::glue::{AnyTable, Env, StageInfo};

/// Each table once, whatever number of stages take it.
#[derive(Default)]
pub(super) struct Tables(Vec<Reading>);

struct Reading {
    topic: &'static str,
    /// The first stage that takes it.
    stage: &'static str,
    table: Box<dyn AnyTable>,
    /// For each partition, the offset of the next record.
    positions: Vec<usize>,
    /// There is a version of it in the environment.
    shown: bool,
}

impl Tables {
    pub(super) fn of(stages: impl Iterator<Item = &'static StageInfo>, partitions: i32) -> Self {
        let mut tables: Vec<Reading> = vec![];
        for (stage, table) in stages.flat_map(|stage| stage.tables().map(|table| (stage.name, table))) {
            let topic = table.topic.name;
            if tables.iter().all(|reading| reading.topic != topic) {
                let positions = vec![0; partitions as usize];
                tables.push(Reading {
                    topic,
                    stage,
                    table: (table.make)(partitions),
                    positions,
                    shown: false,
                });
            }
        }
        Tables(tables)
    }

    /// Reads what is new in the tables' topics.
    pub(super) fn read(&mut self, topics: &Topics, env: &mut Env) -> Result<(), Failed> {
        for Reading { topic, stage, table, positions, shown } in &mut self.0 {
            let mut changed = !*shown;
            for (partition, position) in positions.iter_mut().enumerate() {
                for record in topics.from(topic, partition as i32, *position) {
                    table.take(record, stage);
                    *position += 1;
                    changed = true;
                }
            }
            if changed {
                table.publish().map_err(|refused| Failed::row(topic, refused))?;
                let version: Arc<_> = table.version();
                env.put(version);
                *shown = true;
            }
        }
        Ok(())
    }
}
