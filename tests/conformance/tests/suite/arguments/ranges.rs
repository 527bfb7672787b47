//! What arguments there are: good ones, and those at the edges.

use flechtwerk_conformance::text;
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;

use super::World;
use crate::dice::Dice;

/// The timestamp of the records that there are.
pub(super) const SOME_TIME: i64 = 1_700_000_000_000;

pub(super) fn one<T: Copy>(dice: &mut Dice, of: &[T]) -> T {
    of[dice.roll(of.len())]
}

/// One to three of what `make` makes; sometimes none, sometimes one twice.
pub(super) fn some<T: Clone>(dice: &mut Dice, mut make: impl FnMut(&mut Dice) -> T) -> Vec<T> {
    match dice.roll(12) {
        0 => Vec::new(),
        1 => {
            let twice = make(dice);
            vec![twice.clone(), twice]
        }
        2..=3 => vec![make(dice), make(dice), make(dice)],
        _ => vec![make(dice)],
    }
}

/// As [`some`], but none of them twice.
pub(super) fn flat<T: Clone + PartialEq>(dice: &mut Dice, make: impl FnMut(&mut Dice) -> T) -> Vec<T> {
    let mut distinct: Vec<T> = Vec::new();
    for one in some(dice, make) {
        if !distinct.contains(&one) {
            distinct.push(one);
        }
    }
    distinct
}

/// The name of a topic that there is, mostly.
pub(super) fn topic(dice: &mut Dice, world: &World) -> String {
    match dice.roll(12) {
        0..=7 => world.topics[dice.roll(world.topics.len())].clone(),
        8..=9 => world.others[dice.roll(world.others.len())].clone(),
        _ => odd_name(dice),
    }
}

pub(super) fn odd_name(dice: &mut Dice) -> String {
    match dice.roll(6) {
        0 => String::new(),
        1 => "..".to_owned(),
        2 => "a b".to_owned(),
        3 => "x".repeat(250),
        4 => "nowhere".to_owned(),
        _ => "ä".to_owned(),
    }
}

pub(super) fn partition(dice: &mut Dice) -> i32 {
    one(dice, &[0, 0, 0, 0, 1, 1, 2, -1, i32::MAX, i32::MIN])
}

pub(super) fn group(dice: &mut Dice, world: &World) -> String {
    match dice.roll(10) {
        0 => String::new(),
        1 => "no such group".to_owned(),
        _ => world.groups[dice.roll(world.groups.len())].clone(),
    }
}

pub(super) fn transactional_id(dice: &mut Dice, world: &World) -> String {
    match dice.roll(12) {
        0 => String::new(),
        1 => "no such id".to_owned(),
        _ => world.transactional_ids[dice.roll(world.transactional_ids.len())].clone(),
    }
}

pub(super) fn epoch(dice: &mut Dice) -> i32 {
    one(dice, &[-1, -1, -1, -1, 0, 0, 1, 5, -2, i32::MAX, i32::MIN])
}

pub(super) fn metadata_topic(name: Option<&str>) -> MetadataRequestTopic {
    MetadataRequestTopic::default().with_name(name.map(|name| text(name).into()))
}
