//! Requests of every API with random arguments, most of which make sense alone and many not together: what both brokers say to
//! them is compared, field by field.
//!
//! Where the environment names a real Kafka; without it there is nothing to compare with.

mod groups;
mod logs;
mod ranges;
mod topics;
mod transactions;
mod words;

use std::time::{Duration, Instant};

use flechtwerk_conformance::*;
use flechtwerk_dev_broker::DevBroker;
use kafka_protocol::messages::{DeleteTopicsRequest, MetadataRequest};
use kafka_protocol::protocol::Request;

use crate::dice::Dice;
use words::plain;

/// After that long, what a broker says is what it means: a real one tells its parts of a change one after the other.
const SETTLED: Duration = Duration::from_secs(2);
/// A request that is not answered by then never is.
const PATIENCE: Duration = Duration::from_secs(5);

/// What both sides know by the same names.
#[derive(Clone)]
struct World {
    /// Topics that there are: with two partitions and records, compacted, and with an open transaction.
    topics: Vec<String>,
    /// Topics that requests create and delete.
    others: Vec<String>,
    groups: Vec<String>,
    transactional_ids: Vec<String>,
}

/// What each side has given out.
#[derive(Clone, Default)]
struct Given {
    producers: Vec<(i64, i16)>,
    member: String,
}

/// A request: how it is asked on one side, and what is answered.
struct Question {
    words: String,
    /// Whether it changes nothing, so that it may be asked again.
    reads: bool,
    ask: Box<dyn Fn(&mut Side) -> String>,
}

/// A request that `make` makes up from what the side has given out.
fn question<R>((version, reads): (i16, bool), make: impl Fn(&Given) -> R + 'static) -> Question
where
    R: Request<Response: std::fmt::Debug> + std::fmt::Debug,
{
    let words = format!("{} v{version} {}", std::any::type_name::<R>(), plain(&make(&Given::dummy())));
    let ask = move |side: &mut Side| {
        let request = make(&side.given);
        side.client.send_at(version, &request);
        match side.client.try_receive_at::<R>(version, PATIENCE) {
            Ok(answer) => plain(&answer),
            Err(why) => {
                side.client = side.client.another();
                why
            }
        }
    };
    Question { words, reads, ask: Box::new(ask) }
}

impl Given {
    /// Only to put a request into words.
    fn dummy() -> Given {
        Given { producers: vec![(1, 0); 2], member: "member".to_owned() }
    }
}

struct Side {
    client: Client,
    given: Given,
}

impl Side {
    fn new(mut client: Client, world: &World) -> Side {
        let kept = ("retention.ms", "-1");
        let configs: [&[(&str, &str)]; 3] = [&[kept], &[kept, ("cleanup.policy", "compact")], &[kept]];
        for (name, configs) in world.topics.iter().zip(configs) {
            let topic = calls::topics::new_topic(name, 2).with_configs(calls::topics::settings(configs));
            assert_eq!(client.create(topic).error_code, 0, "{name}");
            client.await_partitions(name, 2);
            let stamped = Batch::keyed(&[("a", "1"), ("b", "2"), ("c", "3")]).at(ranges::SOME_TIME);
            client.produce(name, 0, &stamped).expect("a batch");
        }
        let mut given = Given::default();
        for name in &world.transactional_ids {
            let mut producer = client.producer_named(name);
            producer.write(&mut client, &world.topics[2], 0, &["x"]);
            given.producers.push((producer.id, producer.epoch));
        }
        client.commit_offset(&world.groups[0], &world.topics[0], 0, 1).expect("an offset");
        let mut member = Member::new(client.another(), &world.groups[1]);
        member.session_ms = 300_000;
        member.join_alone();
        given.member = member.id;
        Side { client, given }
    }

    /// The topics that requests make and delete, as clients see them.
    fn look(&mut self, world: &World) -> String {
        let wanted = world.topics.iter().chain(&world.others);
        let topics = wanted.map(|name| ranges::metadata_topic(Some(name)));
        let request = MetadataRequest::default().with_topics(Some(topics.collect()));
        plain(&self.client.call_at(9, &request))
    }
}

fn compare(seed: u64, steps: usize) -> Result<(), String> {
    let world = World {
        topics: (0..3).map(|_| unique("t")).collect(),
        others: (0..3).map(|_| unique("new.x")).collect(),
        groups: (0..3).map(|_| unique("group")).collect(),
        transactional_ids: (0..2).map(|_| unique("tx")).collect(),
    };
    let dev = Broker::dev(DevBroker::builder());
    let mut real = Side::new(Broker::get().client(), &world);
    let mut other = Side::new(dev.client(), &world);
    let mut dice = Dice(seed);
    let mut history = String::new();
    let mut differences = String::new();
    for number in 0..steps {
        let question = any(&mut dice, &world);
        let (mut wanted, mut got) = ((question.ask)(&mut real), (question.ask)(&mut other));
        let until = Instant::now() + SETTLED;
        let waits = |answer: &str| answer.contains("error_code: 51");
        while wanted != got && (question.reads || waits(&wanted)) && Instant::now() < until {
            (wanted, got) = ((question.ask)(&mut real), (question.ask)(&mut other));
        }
        if wanted != got {
            differences.push_str(&format!(
                "\nseed {seed} step {number}: {}\n  real {wanted}\n  dev  {got}",
                question.words
            ));
        }
        history.push_str(&format!("\n  {number}: {} -> {wanted}", question.words));
        if !question.reads {
            let (mut wanted, mut got) = (real.look(&world), other.look(&world));
            while wanted != got && Instant::now() < until {
                (wanted, got) = (real.look(&world), other.look(&world));
            }
            if wanted != got {
                return Err(format!("{differences}\nseed {seed}:{history}\nseen\n{wanted}\nbut dev\n{got}"));
            }
        }
    }
    if std::env::var("ARGUMENTS_SHOW").is_ok() {
        eprintln!("{history}");
    }
    for name in &world.others {
        real.client.call(&DeleteTopicsRequest::default().with_topics(vec![
                kafka_protocol::messages::delete_topics_request::DeleteTopicState::default()
                    .with_name(Some(text(name).into())),
            ]));
    }
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}

fn any(dice: &mut Dice, world: &World) -> Question {
    match dice.roll(4) {
        0 => topics::any(dice, world),
        1 => logs::any(dice, world),
        2 => groups::any(dice, world),
        _ => transactions::any(dice, world),
    }
}

fn compare_all(seeds: std::ops::Range<u64>) {
    if !Broker::get().is_real() {
        return;
    }
    let differences: Vec<String> = seeds.filter_map(|seed| compare(seed, 60).err()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn random_arguments_are_answered_alike_seeds_1_to_6() {
    compare_all(1..7);
}

#[test]
fn random_arguments_are_answered_alike_seeds_7_to_12() {
    compare_all(7..13);
}

#[test]
fn random_arguments_are_answered_alike_seeds_13_to_18() {
    compare_all(13..19);
}

#[test]
fn random_arguments_are_answered_alike_seeds_19_to_24() {
    compare_all(19..25);
}
