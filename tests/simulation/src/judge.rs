//! What is checked of a history: the world's records, handed to the checkers.

use std::collections::{BTreeMap, BTreeSet};

use flechtwerk_checkers::batches::{Fate, Fated, fates};
use flechtwerk_checkers::ends::{Ends, Progress};
use flechtwerk_checkers::outputs::{Output, Reading};
use flechtwerk_checkers::reads::{Read, Written};
use flechtwerk_checkers::state::Entries;
use flechtwerk_checkers::whole::Effect;
use flechtwerk_checkers::{Check, Partition, Violation, ends, outputs, reads, state, tiling, whole};
use flechtwerk_dev_broker::coordinator::TopicPartition;

use crate::history::{canaries, last_record, raw, starts};
use crate::plan::INVALID;
use crate::records::Item;
use crate::world::{World, group, topics};

/// An output, taken apart: what it was made of, and the count it tells.
struct Made {
    input: usize,
    offset: i64,
    operation: u8,
    n: u64,
}

/// Committed outputs by task and key, in log order, with where they lie.
type ByTask = BTreeMap<(i32, Vec<u8>), Vec<(Made, Partition)>>;

fn made(value: &[u8]) -> Option<Made> {
    let text = std::str::from_utf8(value).ok()?;
    let mut parts = text.split(':');
    let input = parts.next()?.parse().ok()?;
    let offset = parts.next()?.parse().ok()?;
    let operation = *parts.next()?.as_bytes().first()?;
    Some(Made { input, offset, operation, n: parts.next()?.parse().ok()? })
}

/// How far each input is.
pub(crate) fn progress(world: &World) -> Vec<Progress> {
    let group = group(world.plan.inputs);
    let inputs = topics(world.plan.inputs).into_iter().take(world.plan.inputs);
    let places =
        inputs.flat_map(|(topic, _)| (0..world.plan.partitions).map(move |partition| (topic, partition)));
    let one = |(topic, partition)| {
        let log = world.broker.log_of(topic, partition)?;
        let (committed, _) = world.broker.committed_at(&group, &TopicPartition::new(topic, partition));
        let committed = (committed >= 0).then_some(committed);
        Some(Progress { at: Partition::new(topic, partition), last: last_record(world, log), committed })
    };
    places.filter_map(one).collect()
}

/// All checks but liveness. `whole`: everything was processed, so that all that is expected must be there.
pub(crate) fn judge(world: &World, done: bool, violations: &mut Vec<Violation>) {
    let plan = &world.plan;
    let inputs: Vec<&str> =
        topics(plan.inputs).into_iter().take(plan.inputs).map(|(topic, _)| topic).collect();
    let changelog = topics(plan.inputs)[plan.inputs + 1].0;
    let input_of = |input: usize, number: i32| Partition::new(*inputs.get(input).unwrap_or(&"?"), number);

    // Every log once.
    let mut fated: Vec<Vec<Fated<Item>>> = Vec::with_capacity(world.broker.logs.len());
    for log in 0..world.broker.logs.len() {
        fated.push(fates(&raw(world, log)));
    }

    // Inputs: what counts, by input, partition and offset.
    let mut expected: BTreeMap<(Partition, i64), (Vec<u8>, u8)> = BTreeMap::new();
    for (log, records) in world.broker.logs.iter().zip(&fated) {
        if inputs.contains(&&*log.topic) {
            for record in records.iter().filter(|record| record.fate == Fate::Committed) {
                let key = record.record.key.as_ref().map(|key| key.to_vec()).unwrap_or_default();
                let operation = record.record.value.as_ref().and_then(|value| value.first().copied());
                // What does not decode is skipped.
                if operation != Some(INVALID) {
                    expected.insert((log.at(), record.offset), (key, operation.unwrap_or(0)));
                }
            }
        }
    }

    // Outputs with their fates, in log order. A record's number says which partition its task has.
    let number_of = |key: &[u8], input: usize, offset: i64| {
        (0..plan.partitions).find(|number| {
            expected.get(&(input_of(input, *number), offset)).is_some_and(|(known, _)| known == key)
        })
    };
    let mut effects: BTreeMap<i32, Vec<Effect>> = BTreeMap::new();
    let mut by_task = ByTask::new();
    let mut written = Vec::new();
    for (log, records) in world.broker.logs.iter().zip(&fated) {
        if &*log.topic != "seen" {
            continue;
        }
        for record in records {
            let key = record.record.key.as_ref().map(|key| key.to_vec()).unwrap_or_default();
            let value = record.record.value.as_ref().map(|value| value.to_vec()).unwrap_or_default();
            written.push(Written {
                at: log.at(),
                offset: record.offset,
                value: value.clone(),
                fate: record.fate,
            });
            let Some(made) = made(&value) else { continue };
            // Two tasks may have a record at one offset with one key; the producer tells them apart.
            let number = world
                .broker
                .committed
                .iter()
                .find(|one| {
                    one.producer.is_some() && one.producer.map(|p| p.id) == record.producer.map(|p| p.id)
                })
                .map(|one| one.partition.number)
                .or_else(|| number_of(&key, made.input, made.offset))
                .unwrap_or(0);
            effects.entry(number).or_default().push(Effect {
                at: log.at(),
                offset: record.offset,
                input: (input_of(made.input, number), made.offset),
                fate: record.fate,
            });
            if record.fate == Fate::Committed {
                by_task.entry((number, key)).or_default().push((made, log.at()));
            }
        }
    }

    let order = orders(&by_task);
    let mut model_states: BTreeMap<i32, BTreeMap<Vec<u8>, (u64, String)>> = BTreeMap::new();
    for number in 0..plan.partitions {
        let start = starts(world, number);
        let (chain, bad) = tiling::transactions(&world.broker.committed, number);
        violations.extend(bad);
        violations.extend(tiling::check(&chain, &start));
        let of_task: BTreeMap<(Partition, i64), usize> = expected
            .iter()
            .filter(|((at, _), _)| at.number == number)
            .map(|(place, _)| (place.clone(), 1))
            .collect();
        let effects = effects.remove(&number).unwrap_or_default();
        violations.extend(whole::check(&chain, &start, &effects, &of_task));
        let changes = changelog_effects(world, &fated, changelog, number, &input_of);
        violations.extend(whole::check(&chain, &start, &changes, &BTreeMap::new()));
        outputs_of_task(number, &expected, &mut by_task, done, &mut model_states, violations);
    }
    violations.extend(in_inputs_order(world, &order));
    check_states(world, &fated, changelog, &model_states, done, violations);

    // Nothing aborted is seen anywhere.
    let canaries = canaries(world);
    let mut observed = Vec::new();
    let mut ends_of_reader = BTreeMap::new();
    for (log, (next, items)) in world.broker.logs.iter().zip(&world.observed) {
        if &*log.topic != "seen" {
            continue;
        }
        ends_of_reader.insert(("observer".to_owned(), log.at()), *next);
        for item in items {
            let value = item.value.as_ref().map(|value| value.to_vec()).unwrap_or_default();
            observed.push(Read {
                reader: "observer".into(),
                at: log.at(),
                offset: item.offset,
                value,
                open: false,
            });
        }
    }
    let sung = observed.iter().filter_map(|read| read.value.split(|byte| *byte == b':').nth(2));
    violations.extend(reads::canaries(&canaries, "the output", sung));
    violations.extend(reads::anomalies(&written, &observed, &ends_of_reader));
    violations.extend(observer(world));

    let open = world.broker.open_transactions(world.now);
    let both = world.broker.logs.iter().map(|log| Ends {
        at: log.at(),
        stable: log.log.last_stable_offset(),
        high: log.log.high_watermark(),
    });
    violations.extend(ends::hanging(&both.collect::<Vec<_>>(), &open));
}

/// I3: the outputs of one task against the sequential model of its stage. Across inputs the order is the stage's own, so the
/// model follows the order that the outputs tell, as long as each input's own order is kept.
fn outputs_of_task(
    number: i32,
    expected: &BTreeMap<(Partition, i64), (Vec<u8>, u8)>,
    by_task: &mut ByTask,
    done: bool,
    states: &mut BTreeMap<i32, BTreeMap<Vec<u8>, (u64, String)>>,
    violations: &mut Vec<Violation>,
) {
    let mut keys: BTreeSet<Vec<u8>> = BTreeSet::new();
    keys.extend(expected.iter().filter(|((at, _), _)| at.number == number).map(|(_, (key, _))| key.clone()));
    keys.extend(by_task.keys().filter(|(task, _)| *task == number).map(|(_, key)| key.clone()));
    for key in keys {
        let seen = by_task.remove(&(number, key.clone())).unwrap_or_default();
        let seen_offsets: Vec<(usize, i64)> =
            seen.iter().map(|(made, _)| (made.input, made.offset)).collect();
        let mut left: BTreeMap<usize, Vec<(i64, u8)>> = BTreeMap::new();
        for ((at, offset), (of, operation)) in expected {
            if at.number == number && *of == key {
                left.entry(usize::from(at.topic == "right")).or_default().push((*offset, *operation));
            }
        }
        // In the order of the outputs, then whatever is missing.
        let mut order: Vec<(usize, i64, u8)> = Vec::new();
        for (input, _) in &seen_offsets {
            let Some(queue) = left.get_mut(input).filter(|queue| !queue.is_empty()) else { continue };
            let (offset, operation) = queue.remove(0);
            order.push((*input, offset, operation));
        }
        if done {
            for (input, queue) in left {
                order.extend(queue.into_iter().map(|(offset, operation)| (input, offset, operation)));
            }
        }
        let at = seen.first().map_or_else(|| Partition::new("seen", -1), |(_, at)| at.clone());
        let mut state: Option<(u64, String)> = None;
        let wanted: Vec<Output> = order
            .iter()
            .map(|(input, offset, operation)| {
                let n = match operation {
                    b'd' => {
                        state = None;
                        0
                    }
                    b'u' | b'n' => state.as_ref().map_or(0, |(n, _)| *n),
                    _ => {
                        let n = state.as_ref().map_or(0, |(n, _)| *n) + 1;
                        state = Some((n, format!("{input}:{offset}")));
                        n
                    }
                };
                let value = format!("{input}:{offset}:{}:{n}", char::from(*operation));
                Output { at: at.clone(), key: key.clone(), value: value.into_bytes() }
            })
            .collect();
        let found: Vec<Output> = seen
            .iter()
            .map(|(made, at)| {
                let value =
                    format!("{}:{}:{}:{}", made.input, made.offset, char::from(made.operation), made.n);
                Output { at: at.clone(), key: key.clone(), value: value.into_bytes() }
            })
            .collect();
        violations.extend(outputs::check(&wanted, &found));
        if let Some(state) = state {
            states.entry(number).or_default().insert(key, state);
        }
    }
}

/// Input and offset of the records of each task and key, in the order of their outputs.
type Order = Vec<(i32, Vec<(u16, i64)>)>;

fn orders(by_task: &ByTask) -> Order {
    let places = |seen: &[(Made, Partition)]| {
        seen.iter().map(|(made, _)| (made.input as u16, made.offset)).collect::<Vec<_>>()
    };
    by_task.iter().map(|((number, _), seen)| (*number, places(seen))).collect()
}

/// I3: records of one key that a task has never seen but in the same round come in the order of `inputs`.
fn in_inputs_order(world: &World, order: &Order) -> Vec<Violation> {
    let mut violations = Vec::new();
    if world.plan.inputs < 2 {
        return violations;
    }
    for (number, places) in order {
        for pair in places.windows(2).filter(|pair| pair[0].0 > pair[1].0) {
            let mut rounds =
                world.rounds.iter().filter(|(of, records)| of == number && records.contains(&pair[0]));
            if rounds.all(|(_, records)| records.contains(&pair[1])) {
                let what = format!(
                    "task {number}: the record at {}:{} comes before the one at {}:{} of the same round",
                    pair[0].0, pair[0].1, pair[1].0, pair[1].1
                );
                violations.push(Violation::new(Check::Outputs, "not in the order of inputs", what));
            }
        }
    }
    violations
}

/// The changelog records of a task; each tells which input record wrote it.
fn changelog_effects(
    world: &World,
    fated: &[Vec<Fated<Item>>],
    changelog: &str,
    number: i32,
    input_of: &dyn Fn(usize, i32) -> Partition,
) -> Vec<Effect> {
    let mut found = Vec::new();
    for (log, records) in world.broker.logs.iter().zip(fated) {
        if &*log.topic != changelog || log.partition != number {
            continue;
        }
        for record in records {
            // Tombstones tell nothing.
            let Some(of) = record.record.value.as_deref().and_then(state_of).map(|(_, of)| of) else {
                continue;
            };
            let place = of
                .split_once(':')
                .and_then(|(input, offset)| Some((input.parse().ok()?, offset.parse().ok()?)));
            let Some((input, offset)) = place else { continue };
            found.push(Effect {
                at: log.at(),
                offset: record.offset,
                input: (input_of(input, number), offset),
                fate: record.fate,
            });
        }
    }
    found
}

/// Count and last writer of an encoded state: a version, and JSON.
fn state_of(value: &[u8]) -> Option<(u64, String)> {
    let text = std::str::from_utf8(value.get(1..)?).ok()?;
    let n = text.split_once("\"n\":")?.1.split([',', '}']).next()?.parse().ok()?;
    let of = text.split_once("\"of\":\"")?.1.split('"').next()?.to_owned();
    Some((n, of))
}

/// I4: stores and changelog against the model. A store counts where its stamp is the committed one.
fn check_states(
    world: &World,
    fated: &[Vec<Fated<Item>>],
    changelog: &str,
    states: &BTreeMap<i32, BTreeMap<Vec<u8>, (u64, String)>>,
    done: bool,
    violations: &mut Vec<Violation>,
) {
    if !done {
        return;
    }
    let readable =
        |value: &[u8]| state_of(value).map(|(n, of)| format!("{n} of {of}").into_bytes()).unwrap_or_default();
    let group = group(world.plan.inputs);
    for number in 0..world.plan.partitions {
        let model: Entries = states
            .get(&number)
            .into_iter()
            .flatten()
            .map(|(key, (n, of))| {
                let mut full = vec![0];
                full.extend_from_slice(key);
                (full, format!("{n} of {of}").into_bytes())
            })
            .collect();
        let Some(log) = world.broker.log_of(changelog, number) else { continue };
        let committed = fated[log].iter().filter(|record| record.fate == Fate::Committed);
        let folded = state::folded(committed.map(|record| {
            (record.record.key.as_deref().unwrap_or_default(), record.record.value.as_deref())
        }));
        let folded: Entries = folded.into_iter().map(|(key, value)| (key, readable(&value))).collect();
        let stamps: BTreeSet<String> = topics(world.plan.inputs)
            .into_iter()
            .take(world.plan.inputs)
            .map(|(topic, _)| world.broker.committed_at(&group, &TopicPartition::new(topic, number)).1)
            .collect();
        violations.extend(state::check(&number.to_string(), None, &folded, &model));
        for process in &world.processes {
            for (partition, content) in process.disk.contents() {
                let current = content.stamp.is_some()
                    && stamps.len() == 1
                    && stamps.iter().next() == content.stamp.as_ref();
                if partition != number || !current {
                    continue;
                }
                let local: Entries =
                    content.entries.iter().map(|(key, value)| (key.clone(), readable(value))).collect();
                violations.extend(state::check(&number.to_string(), Some(&local), &model, &model));
            }
        }
    }
}

/// I7, for keys whose count only grows: with one input and no deletions.
fn observer(world: &World) -> Vec<Violation> {
    let mut readings = Vec::new();
    if world.plan.partitions > 1 || world.plan.records.iter().any(|record| record.operation != b's') {
        return Vec::new();
    }
    for (log, (_, items)) in world.broker.logs.iter().zip(&world.observed) {
        for item in items.iter().filter(|_| &*log.topic == "seen") {
            let Some(made) = item.value.as_deref().and_then(made) else { continue };
            let key = item.key.as_ref().map(|key| key.to_vec()).unwrap_or_default();
            let made_of = None;
            readings.push(Reading { at: log.at(), offset: item.offset, key, version: made.n, made_of });
        }
    }
    outputs::observer(&readings)
}
