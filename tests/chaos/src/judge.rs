//! What is checked when the faults are over and all instances have ended: the logs as they lie on the brokers, and the stores, handed
//! to the checkers. One partition at a time, so that a long run fits into memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use flechtwerk_checkers::batches::{Fate, Fated, fates};
use flechtwerk_checkers::ends::Ends;
use flechtwerk_checkers::reads::{Read, Written};
use flechtwerk_checkers::state::{Entries, folded};
use flechtwerk_checkers::tiling::{OffsetRecord, Transaction};
use flechtwerk_checkers::whole::Effect;
use flechtwerk_checkers::{Check, Partition, Violation, ends, outputs, reads, state, tiling, whole};
use flechtwerk_tests::Kafka;
use serde::{Deserialize, Serialize};

use crate::feed::{self, Entry, Input, Made};
use crate::model::{TaskLogs, state_text};
use crate::names::Names;
use crate::offsets;
use crate::opened::Task;
use crate::raw::{End, Log, Reader};
use crate::stores;
use crate::watch::{Call, Watchers};

/// What was looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Input records, without those that were aborted on purpose.
    pub inputs: usize,
    /// Input records that were aborted on purpose.
    pub canaries: usize,
    /// Committed outputs and dead letters of all stages.
    pub outputs: usize,
    /// Outputs that lie in aborted transactions.
    pub aborted_outputs: usize,
    /// Records of changelogs.
    pub changes: usize,
    /// Keys with a state at the end.
    pub keys: usize,
    /// Transactions in the chains of all tasks.
    pub transactions: usize,
    /// Owners in these chains: fences that led to a commit.
    pub owners: usize,
    /// Markers that abort, in the outputs.
    pub aborts: usize,
    /// Outputs that the observer has read.
    pub observed: usize,
    /// Stores on disk that were compared.
    pub stores: usize,
}

/// Dead letters with where they lie, by stage and partition of the task.
type Letters = BTreeMap<(&'static str, i32), Vec<(Partition, Fated<Made>)>>;

/// The verdict.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What must never happen.
    pub violations: Vec<Violation>,
    /// What was looked at.
    pub figures: Figures,
    /// Markers in the outputs, by task.
    pub ends: BTreeMap<Task, Vec<End>>,
}

/// What the judge looks at.
pub struct Judge<'a> {
    /// The cluster.
    pub kafka: &'a Kafka,
    /// What things are called.
    pub names: &'a Names,
    /// Of every topic.
    pub partitions: i32,
    /// What was read all the time.
    pub watchers: &'a Watchers,
    /// Everything was processed; otherwise only what is committed is compared.
    pub done: bool,
    /// The folders of the instances' states.
    pub states: &'a [PathBuf],
    /// The cluster lets the committed offsets be read.
    pub offsets_topic: bool,
    /// Tells how far it is.
    pub say: &'a dyn Fn(String),
}

impl Judge<'_> {
    /// Looks at everything.
    pub fn judge(&self) -> anyhow::Result<Verdict> {
        let mut reader = Reader::new(self.kafka)?;
        let mut verdict = Verdict::default();
        let records = if self.offsets_topic { self.offset_records(&mut reader)? } else { BTreeMap::new() };
        let mut letters = self.dead_letters(&mut reader, &mut verdict)?;
        for stage in &self.names.stages {
            let committed = self.kafka.committed(&stage.group, &stage.input);
            for number in 0..self.partitions {
                (self.say)(format!("checking {} {number} of {}", stage.name, self.partitions));
                let task = TaskLogs {
                    stage,
                    number,
                    input: Partition::new(&stage.input, number),
                    stamp: committed.get(&number).map(|(_, stamp)| stamp.clone()).unwrap_or_default(),
                };
                let chain = match records.get(&stage.group) {
                    Some(records) => {
                        let (chain, bad) = tiling::transactions(records, number);
                        verdict.violations.extend(bad);
                        verdict.violations.extend(tiling::check(&chain, &task.start()));
                        chain
                    }
                    // Only the last is known; those before were looked at while they came.
                    None => committed
                        .get(&number)
                        .map(|(offset, stamp)| task.last(*offset, stamp))
                        .into_iter()
                        .flatten()
                        .collect(),
                };
                verdict.figures.transactions += chain.last().map_or(0, |last| last.stamp.counter as usize);
                let owners: BTreeSet<&str> = chain.iter().map(|one| one.stamp.owner.as_str()).collect();
                verdict.figures.owners += owners.len();
                let letters = letters.remove(&(stage.name, number)).unwrap_or_default();
                self.task(&mut reader, &task, &chain, letters, &mut verdict)?;
            }
        }
        Ok(verdict)
    }

    /// The committed positions of our groups, in the order of their log.
    fn offset_records(&self, reader: &mut Reader) -> anyhow::Result<BTreeMap<String, Vec<OffsetRecord>>> {
        (self.say)("reading the committed offsets".to_owned());
        let mut found: BTreeMap<String, Vec<OffsetRecord>> = BTreeMap::new();
        for partition in 0..self.kafka.partitions(offsets::TOPIC) {
            let log = reader.batches(offsets::TOPIC, partition, &|_, record| {
                Ok(offsets::commit(record.key.as_deref(), record.value.as_deref()))
            })?;
            for (group, record) in offsets::committed(&log.batches) {
                let stage = self.names.stages.iter().find(|stage| stage.group == group);
                if stage.is_some_and(|stage| stage.input == record.partition.topic) {
                    found.entry(group).or_default().push(record);
                }
            }
        }
        Ok(found)
    }

    /// Dead letters by the task that has written them: they lie anywhere.
    fn dead_letters(&self, reader: &mut Reader, verdict: &mut Verdict) -> anyhow::Result<Letters> {
        let mut found = Letters::new();
        for partition in 0..self.partitions {
            let place = Partition::new(&self.names.rejected, partition);
            let log = reader.batches(&place.topic, partition, &feed::dead_letter)?;
            settled(&place, &log, verdict);
            for one in fates(&log.batches) {
                let task = (self.names.stages[0].name, one.record.at.0);
                found.entry(task).or_default().push((place.clone(), one));
            }
        }
        Ok(found)
    }

    fn task(
        &self,
        reader: &mut Reader,
        task: &TaskLogs<'_>,
        chain: &[Transaction],
        letters: Vec<(Partition, Fated<Made>)>,
        verdict: &mut Verdict,
    ) -> anyhow::Result<()> {
        crate::interrupt::check()?;
        let (stage, number) = (task.stage, task.number);
        let first = stage.name == self.names.stages[0].name;
        let log = reader.batches(&stage.input, number, &feed::input)?;
        if first {
            settled(&task.input, &log, verdict);
        }
        let mut inputs: BTreeMap<i64, Input> = committed(fates(&log.batches)).collect();
        if first {
            verdict.figures.inputs += inputs.len();
            let all: usize = log.batches.iter().map(|batch| records(&batch.content)).sum();
            verdict.figures.canaries += all - inputs.len();
        }
        drop(log);
        if !self.done {
            let end = chain.last().and_then(|last| last.after.get(&task.input)).copied().unwrap_or(0);
            inputs.retain(|offset, _| *offset < end);
        }

        let place = Partition::new(&stage.output, number);
        let log = reader.batches(&place.topic, number, &feed::output)?;
        settled(&place, &log, verdict);
        verdict.ends.insert((stage.name.to_owned(), number), log.ends.clone());
        verdict.figures.aborts += log.ends.iter().filter(|end| !end.commit).count();
        let made = fates(&log.batches);
        drop(log);
        verdict.figures.outputs += made
            .iter()
            .chain(letters.iter().map(|(_, one)| one))
            .filter(|one| one.fate == Fate::Committed)
            .count();
        verdict.figures.aborted_outputs += made.iter().filter(|one| one.fate == Fate::Aborted).count();

        verdict.violations.extend(task.whole(chain, &inputs, &place, &made, &letters));
        let (wanted, states) = task.model(&inputs, &place, &self.names.rejected);
        let seen = task.seen(&place, &made, &letters, &self.names.rejected);
        verdict.violations.extend(outputs::check(&wanted, &seen));
        drop((wanted, seen));

        if stage.output == self.names.tallies() {
            self.observed(task, &place, &made, verdict)?;
        }
        if let Some(changelog) = &stage.changelog {
            self.state(reader, task, chain, changelog, &states, &made, verdict)?;
        }
        Ok(())
    }

    /// I5 and I8: what the observer has read is what lies there and is committed.
    fn observed(
        &self,
        task: &TaskLogs<'_>,
        place: &Partition,
        made: &[Fated<Made>],
        verdict: &mut Verdict,
    ) -> anyhow::Result<()> {
        let observed = self.watchers.observed(task.number)?;
        verdict.figures.observed += observed.len();
        let aborted = canaries(made);
        let sung: Vec<Vec<u8>> = observed.iter().map(|(_, call)| name(*call)).collect();
        let sung = sung.iter().map(Vec::as_slice);
        verdict.violations.extend(reads::canaries(&aborted, "the output", sung));
        let written: Vec<Written> = made
            .iter()
            .map(|one| Written {
                at: place.clone(),
                offset: one.offset,
                value: name(one.record.by.unwrap_or_default()),
                fate: one.fate,
            })
            .collect();
        let end = observed.last().map_or(0, |(offset, _)| offset + 1);
        let read: Vec<Read> = observed
            .into_iter()
            .map(|(offset, call)| Read {
                reader: "observer".to_owned(),
                at: place.clone(),
                offset,
                value: name(call),
                open: false,
            })
            .collect();
        let ends = BTreeMap::from([(("observer".to_owned(), place.clone()), end)]);
        verdict.violations.extend(reads::anomalies(&written, &read, &ends));
        let last = made.iter().rev().find(|one| one.fate == Fate::Committed).map(|one| one.offset);
        if last.is_some_and(|last| end <= last) {
            let what = format!("the observer has read {place} up to {end}, the last output is at {last:?}");
            verdict.violations.push(Violation::new(Check::Anomalies, "lost", what));
        }
        Ok(())
    }

    /// I4, and I2 and I5 of the changelog.
    #[allow(clippy::too_many_arguments, reason = "they are all of one task")]
    fn state(
        &self,
        reader: &mut Reader,
        task: &TaskLogs<'_>,
        chain: &[Transaction],
        changelog: &str,
        model: &Entries,
        made: &[Fated<Made>],
        verdict: &mut Verdict,
    ) -> anyhow::Result<()> {
        let place = Partition::new(changelog, task.number);
        let raw = |_, record: flechtwerk_conformance::Record| {
            let entry = feed::entry(record.key.as_deref(), record.value.as_deref())?;
            Ok((entry, record.value))
        };
        let log = reader.batches(changelog, task.number, &raw)?;
        settled(&place, &log, verdict);
        let changes = fates(&log.batches);
        drop(log);
        verdict.figures.changes += changes.len();
        let effects: Vec<Effect> = changes
            .iter()
            .filter_map(|one| {
                let at = feed::place(one.record.0.state.as_ref()?.at.as_bytes())?;
                Some(Effect {
                    at: place.clone(),
                    offset: one.offset,
                    input: (Partition::new(&task.input.topic, at.0), at.1),
                    fate: one.fate,
                })
            })
            .collect();
        verdict.violations.extend(whole::check(chain, &task.start(), &effects, &BTreeMap::new()));

        let kept = changes.iter().filter(|one| one.fate == Fate::Committed);
        let full = folded(kept.map(|one| (one.record.0.key.as_slice(), one.record.1.as_deref())));
        verdict.figures.keys += full.len();
        let (short, calls) = readable(&full)?;
        let number = task.number.to_string();
        verdict.violations.extend(state::check(&number, None, &short, model));
        let aborted = canaries(made);
        verdict.violations.extend(reads::canaries(
            &aborted,
            "the changelog",
            calls.iter().map(Vec::as_slice),
        ));
        for folder in self.states {
            // One that was spoilt and is nobody's since can't be read: its next owner would wipe it.
            let Ok(Some(content)) = stores::read(folder, &task.stage.group, task.number) else { continue };
            // What others have overtaken is restored before it is used.
            if content.stamp.as_ref() != Some(&task.stamp) {
                continue;
            }
            verdict.figures.stores += 1;
            verdict.violations.extend(state::check(&number, Some(&content.entries), &full, &full));
            let (_, calls) = readable(&content.entries)?;
            verdict.violations.extend(reads::canaries(&aborted, "a store", calls.iter().map(Vec::as_slice)));
        }
        Ok(())
    }
}

/// Entries as the model writes them, and the calls that wrote them.
fn readable(entries: &Entries) -> anyhow::Result<(Entries, Vec<Vec<u8>>)> {
    let (mut short, mut calls) = (Entries::new(), Vec::new());
    for (key, value) in entries {
        let Entry { state: Some(state), .. } = feed::entry(Some(key), Some(value))? else { continue };
        short.insert(key.clone(), state_text(state.n, &state.at));
        calls.push(name(crate::watch::call(state.by.as_bytes()).unwrap_or_default()));
    }
    Ok((short, calls))
}

fn name(call: Call) -> Vec<u8> {
    format!("{:016x}.{}", call.0, call.1).into_bytes()
}

/// Calls whose outputs were aborted, and never written again: nobody may ever see them. What was computed may be sent once more after an
/// abort, and then it is no canary.
fn canaries(made: &[Fated<Made>]) -> BTreeSet<Vec<u8>> {
    let calls = |fate: Fate| {
        let of = made.iter().filter(move |one| one.fate == fate);
        of.filter_map(|one| one.record.by)
    };
    let committed: BTreeSet<Call> = calls(Fate::Committed).collect();
    calls(Fate::Aborted).filter(|call| !committed.contains(call)).map(name).collect()
}

fn committed<T>(records: Vec<Fated<T>>) -> impl Iterator<Item = (i64, T)> {
    records.into_iter().filter(|one| one.fate == Fate::Committed).map(|one| (one.offset, one.record))
}

fn records<T>(content: &flechtwerk_checkers::batches::Content<T>) -> usize {
    match content {
        flechtwerk_checkers::batches::Content::Records(records) => records.len(),
        flechtwerk_checkers::batches::Content::Marker { .. } => 0,
    }
}

/// I6: nothing is open in this log.
fn settled<T>(place: &Partition, log: &Log<T>, verdict: &mut Verdict) {
    let both = Ends { at: place.clone(), stable: log.extent.stable, high: log.extent.high };
    verdict.violations.extend(ends::hanging(&[both], &[]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_again_after_an_abort_is_no_canary() {
        let made = |call, fate| {
            let record = Made { key: None, value: None, seq: None, at: (0, 0), by: Some((1, call)) };
            Fated { offset: 0, producer: None, fate, record }
        };
        let all = [
            made(1, Fate::Aborted),
            made(2, Fate::Aborted),
            made(2, Fate::Committed),
            made(3, Fate::Committed),
        ];
        assert_eq!(canaries(&all), BTreeSet::from([name((1, 1))]));
    }
}
