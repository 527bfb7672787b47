//! Many transactions at once, at random, and every reader's view of them compared with a model.

use flechtwerk_conformance::*;

use crate::dice::Dice;

const PRODUCERS: usize = 4;
const PARTITIONS: i32 = 3;
const STEPS: usize = 60;

/// What a transaction has come to.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Open,
    Committed,
    Aborted,
}

/// What stands at an offset.
enum Entry {
    Marker,
    Plain(String),
    InTransaction(usize, String),
}

/// What the broker should have.
struct Model {
    logs: Vec<Vec<Entry>>,
    fates: Vec<Fate>,
}

impl Model {
    fn stable_end(&self, partition: i32) -> i64 {
        let log = &self.logs[partition as usize];
        let open = |entry: &Entry| matches!(entry, Entry::InTransaction(number, _) if self.fates[*number] == Fate::Open);
        log.iter().position(open).unwrap_or(log.len()) as i64
    }

    fn view(&self, partition: i32, from: i64, isolation: i8) -> Vec<(i64, String)> {
        let end = if isolation == COMMITTED { self.stable_end(partition) } else { i64::MAX };
        let mut seen = Vec::new();
        for (offset, entry) in (0..end).zip(&self.logs[partition as usize]) {
            let value = match entry {
                Entry::Marker => continue,
                Entry::Plain(value) => value,
                Entry::InTransaction(number, value) => {
                    if isolation == COMMITTED && self.fates[*number] == Fate::Aborted {
                        continue;
                    }
                    value
                }
            };
            if offset >= from {
                seen.push((offset, value.clone()));
            }
        }
        seen
    }
}

/// Compares both views from the start, from both ends, and from some offsets in between.
fn compare(client: &mut Client, topic: &str, model: &Model, dice: &mut Dice, place: &str) {
    for partition in 0..PARTITIONS {
        let end = model.logs[partition as usize].len() as i64;
        let stable = model.stable_end(partition);
        assert_eq!(client.end(topic, partition), end, "{place}, partition {partition}: the end");
        assert_eq!(
            client.stable_end(topic, partition),
            stable,
            "{place}, partition {partition}: the stable end"
        );
        let mut starts = vec![0, stable, end];
        starts.extend((0..4).map(|_| dice.roll(end as usize + 1) as i64));
        for from in starts {
            for isolation in [UNCOMMITTED, COMMITTED] {
                let seen = client.read(topic, partition, from, isolation);
                let wanted = model.view(partition, from, isolation);
                assert_eq!(seen, wanted, "{place}, partition {partition} from {from}, isolation {isolation}");
            }
        }
    }
}

fn run(seed: u64) {
    let mut client = Broker::get().client();
    let topic = client.topic(PARTITIONS);
    let mut dice = Dice(seed);
    let mut producers: Vec<Producer> = (0..PRODUCERS).map(|_| client.transactional_producer()).collect();
    // Of each producer: its open transaction and the partitions that are part of it.
    let mut open: Vec<Option<(usize, Vec<i32>)>> = vec![None; PRODUCERS];
    let mut model = Model { logs: (0..PARTITIONS).map(|_| Vec::new()).collect(), fates: Vec::new() };

    for step in 0..STEPS {
        let who = dice.roll(PRODUCERS);
        let partition = dice.roll(PARTITIONS as usize) as i32;
        let log = &mut model.logs[partition as usize];
        match dice.roll(10) {
            0..=5 => {
                let (number, partitions) = open[who].get_or_insert_with(|| {
                    model.fates.push(Fate::Open);
                    (model.fates.len() - 1, Vec::new())
                });
                if !partitions.contains(&partition) {
                    producers[who].add(&mut client, &topic, &[partition]).expect("added");
                    partitions.push(partition);
                }
                let values: Vec<String> = (0..=dice.roll(3)).map(|index| format!("{step}.{index}")).collect();
                let texts: Vec<&str> = values.iter().map(String::as_str).collect();
                let offset = producers[who].send(&mut client, &topic, partition, &texts);
                assert_eq!(offset, Ok(log.len() as i64), "seed {seed}, step {step}");
                log.extend(values.into_iter().map(|value| Entry::InTransaction(*number, value)));
            }
            6 => {
                let value = format!("{step}.plain");
                assert_eq!(client.produce(&topic, partition, &Batch::of([&value])), Ok(log.len() as i64));
                log.push(Entry::Plain(value));
            }
            choice => {
                let Some((number, partitions)) = open[who].take() else { continue };
                let commit = choice != 9;
                producers[who].end(&mut client, commit).expect("the end");
                model.fates[number] = if commit { Fate::Committed } else { Fate::Aborted };
                for partition in partitions {
                    model.logs[partition as usize].push(Entry::Marker);
                }
            }
        }
        if step % 20 == 19 {
            compare(&mut client, &topic, &model, &mut dice, &format!("seed {seed}, after step {step}"));
        }
    }
    for (producer, open) in producers.iter().zip(open) {
        let Some((number, partitions)) = open else { continue };
        let commit = dice.roll(2) == 0;
        producer.end(&mut client, commit).expect("the end");
        model.fates[number] = if commit { Fate::Committed } else { Fate::Aborted };
        for partition in partitions {
            model.logs[partition as usize].push(Entry::Marker);
        }
    }
    compare(&mut client, &topic, &model, &mut dice, &format!("seed {seed}, at the end"));
}

#[test]
fn every_readers_view_of_random_interleavings_is_that_of_the_model_seeds_1_to_3() {
    (1..=3).for_each(run);
}

#[test]
fn every_readers_view_of_random_interleavings_is_that_of_the_model_seeds_4_to_6() {
    (4..=6).for_each(run);
}

#[test]
fn every_readers_view_of_random_interleavings_is_that_of_the_model_seeds_7_to_9() {
    (7..=9).for_each(run);
}
