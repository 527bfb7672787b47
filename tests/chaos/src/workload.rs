//! What comes in: a function of the seed, paced so that it lasts through all faults, and canaries in transactions that are
//! aborted.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use flechtwerk_tests::Kafka;
use flechtwerk_tests::kafka::{Write, send};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rdkafka::producer::{BaseProducer, Producer};

use crate::pipeline::SEQ;
use crate::tier::Tier;

/// The key of records that are aborted on purpose.
pub const CANARY: &str = "canary";
/// One record of so many is no text.
const INVALID: u32 = 200;
/// One record of so many forgets its key.
const FORGET: u32 = 50;
/// One record of so many has this key.
const HOT: (u32, &str) = (10, "hot");
/// How much of the input is kept back until the faults are over.
const RESERVE: u64 = 10;

/// Draws records, each with the number that it has for its key.
pub struct Draw {
    random: StdRng,
    keys: u32,
    seqs: HashMap<String, u64>,
}

impl Draw {
    /// From the first record on.
    pub fn new(seed: u64, keys: u32) -> Draw {
        Draw { random: StdRng::seed_from_u64(seed ^ 0x0057_ead5), keys, seqs: HashMap::new() }
    }

    /// The next record.
    pub fn draw(&mut self) -> Write {
        let random = &mut self.random;
        let hot = random.random_range(0..HOT.0) == 0;
        let key = if hot { HOT.1.to_owned() } else { format!("key-{}", random.random_range(0..self.keys)) };
        if random.random_range(0..INVALID) == 0 {
            // Some have no key, which is invalid as well.
            let key = random.random_bool(0.8).then(|| key.into_bytes());
            return Write { key, value: Some(vec![0xff, 0xfe]), ..Write::default() };
        }
        let seq = self.seqs.entry(key.clone()).or_default();
        *seq += 1;
        let value = (random.random_range(0..FORGET) != 0).then(|| b"x".to_vec());
        let mut headers = vec![(SEQ.to_owned(), seq.to_string().into_bytes())];
        if random.random_range(0..100) == 0 {
            headers.extend(["again", "again"].map(|name| (name.to_owned(), b"and again".to_vec())));
        }
        Write { key: Some(key.into_bytes()), value, headers, ..Write::default() }
    }
}

/// How far the faults are, which the input keeps up with.
#[derive(Debug, Default)]
pub struct Pace {
    /// In thousandths of the span.
    progress: AtomicU64,
    over: AtomicBool,
    written: AtomicU64,
    quit: AtomicBool,
}

impl Pace {
    /// So much of the schedule has passed: 0 to 1.
    pub fn reached(&self, part: f64) {
        self.progress.store((part.clamp(0.0, 1.0) * 1e6) as u64, Ordering::SeqCst);
    }

    /// The rest may come at once.
    pub fn over(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Nothing more is wanted.
    pub fn quit(&self) {
        self.quit.store(true, Ordering::SeqCst);
    }

    /// Records so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    fn may_write(&self, index: u64, records: u64) -> bool {
        let (first, last) = (records / 100, records - records / RESERVE);
        let progress = self.progress.load(Ordering::SeqCst) as f64 / 1e6;
        self.over.load(Ordering::SeqCst) || (index as f64) < first as f64 + (last - first) as f64 * progress
    }
}

/// Writes all records, as the pace lets it.
pub fn write(kafka: &Kafka, topic: &str, seed: u64, tier: &Tier, pace: Arc<Pace>) -> JoinHandle<()> {
    let (kafka, topic, records, keys) = (kafka.clone(), topic.to_owned(), tier.records, tier.keys);
    std::thread::spawn(move || {
        let producer = kafka.producer();
        let mut draw = Draw::new(seed, keys);
        for index in 0..records {
            while !pace.may_write(index, records) {
                if pace.quit.load(Ordering::SeqCst) {
                    return;
                }
                producer.poll(Duration::from_millis(5));
            }
            send(&producer, &topic, &draw.draw());
            pace.written.store(index + 1, Ordering::SeqCst);
            if index % 100 == 0 {
                producer.poll(Duration::ZERO);
            }
        }
        producer.flush(Duration::from_secs(120)).expect("flush the input");
    })
}

/// Writes canaries and aborts them, every second, until it is told to quit. Gives the number of aborted transactions.
pub fn sing(kafka: &Kafka, topic: &str, pace: Arc<Pace>) -> JoinHandle<usize> {
    let (kafka, topic) = (kafka.clone(), topic.to_owned());
    std::thread::spawn(move || {
        let (mut producer, mut sung) = (None, 0);
        while !pace.over.load(Ordering::SeqCst) && !pace.quit.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_secs(1));
            // A broker that is down is no failure of the rig: the next one sings.
            match verse(&kafka, &topic, &mut producer) {
                Ok(()) => sung += 1,
                Err(error) => {
                    eprintln!("canaries: {error}");
                    producer = None;
                }
            }
        }
        sung
    })
}

fn verse(
    kafka: &Kafka,
    topic: &str,
    producer: &mut Option<BaseProducer>,
) -> Result<(), rdkafka::error::KafkaError> {
    const LIMIT: Duration = Duration::from_secs(20);
    let producer = match producer {
        Some(producer) => producer,
        None => {
            let mut config = kafka.config();
            config.set("transactional.id", format!("{topic}-canaries")).set("transaction.timeout.ms", "5000");
            let new: BaseProducer = config.create()?;
            new.init_transactions(LIMIT)?;
            producer.insert(new)
        }
    };
    producer.begin_transaction()?;
    for _ in 0..3 {
        let header = (SEQ.to_owned(), b"0".to_vec());
        send(producer, topic, &Write { headers: vec![header], ..Write::new(CANARY, CANARY) });
    }
    producer.flush(LIMIT)?;
    producer.abort_transaction(LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_an_input_with_records_of_each_kind() {
        let draw = || {
            let mut draw = Draw::new(5, 100);
            (0..10_000).map(|_| draw.draw()).collect::<Vec<Write>>()
        };
        let all = draw();
        let again = draw();
        let same = |one: &Write, other: &Write| {
            (&one.key, &one.value, &one.headers) == (&other.key, &other.value, &other.headers)
        };
        assert!(all.iter().zip(&again).all(|(one, other)| same(one, other)));
        let has = |which: fn(&Write) -> bool| all.iter().filter(|one| which(one)).count();
        assert!(has(|one| one.value.is_none()) > 100, "forgotten keys");
        assert!(has(|one| one.value.as_deref() == Some(b"\xff\xfe")) > 20, "invalid values");
        assert!(has(|one| one.key.is_none()) > 2, "missing keys");
        assert!(has(|one| one.headers.len() > 1) > 20, "repeated headers");
        assert!(has(|one| one.key.as_deref() == Some(b"hot")) > 800, "a hot key");
    }

    #[test]
    fn the_records_of_a_key_are_numbered() {
        let mut draw = Draw::new(1, 3);
        let mut last = HashMap::new();
        for one in (0..1000).map(|_| draw.draw()).filter(|one| !one.headers.is_empty()) {
            let seq: u64 = String::from_utf8_lossy(&one.headers[0].1).parse().expect("a number");
            assert_eq!(last.insert(one.key, seq).unwrap_or(0) + 1, seq);
        }
    }

    #[test]
    fn the_input_lasts_until_the_faults_are_over() {
        let pace = Pace::default();
        assert!(pace.may_write(9, 1000) && !pace.may_write(10, 1000));
        pace.reached(1.0);
        assert!(pace.may_write(899, 1000) && !pace.may_write(900, 1000));
        pace.over();
        assert!(pace.may_write(999, 1000));
    }
}
