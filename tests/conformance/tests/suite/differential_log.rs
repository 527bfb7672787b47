//! The same random batches to both brokers, sound ones and damaged ones, and then the same random reads, their answers
//! compared one by one.
//!
//! Where the environment names a real Kafka; without it there is nothing to compare with.

use flechtwerk_conformance::calls::records::fetch_request;
use flechtwerk_conformance::*;
use flechtwerk_dev_broker::DevBroker;

use crate::dice::Dice;

/// Long ago, and the same on both sides.
const EPOCH: i64 = 1_700_000_000_000;

/// Settings of the topics, of which each seed takes one.
const TOPICS: &[&[(&str, &str)]] = &[
    &[("retention.ms", "-1")],
    &[("retention.ms", "-1"), ("cleanup.policy", "compact,delete")],
    &[("retention.ms", "-1"), ("max.message.bytes", "300")],
];

#[derive(Clone, Debug)]
enum Step {
    Produce(String, Vec<u8>),
    Fetch { from: i64, limit: i32 },
    ByTime(i64),
    DeleteRecords(i64),
}

fn record(dice: &mut Dice) -> Record {
    let bytes =
        |dice: &mut Dice| (dice.roll(6) != 0).then(|| vec![b'a' + dice.roll(26) as u8; dice.roll(12)]);
    let headers = if dice.roll(6) == 0 { vec![("h".to_owned(), bytes(dice))] } else { Vec::new() };
    Record { key: bytes(dice), value: bytes(dice), timestamp_delta: dice.roll(200) as i64 - 50, headers }
}

/// A batch, and words for what is wrong with it. One that is compressed is sound and has keys: the development broker does not
/// look into it.
fn batch(dice: &mut Dice) -> (String, Vec<u8>) {
    let records: Vec<Record> = (0..1 + dice.roll(4)).map(|_| record(dice)).collect();
    let mut batch = Batch::records(records).at(EPOCH + dice.roll(1000) as i64);
    let codec = [0, 0, 0, codec::GZIP, codec::SNAPPY][dice.roll(5)];
    let mut words = format!("codec {codec}, {} records", batch.records.len());
    if codec != 0 {
        batch.records.iter_mut().for_each(|record| record.key = Some(b"key".to_vec()));
        return (words, batch.compressed(codec).encode().to_vec());
    }
    let any = |dice: &mut Dice| dice.roll(8) as i32 - 2;
    match dice.roll(24) {
        0 => batch.base_offset = i64::from(any(dice)),
        1 => batch.magic = any(dice) as i8,
        // Not the codec: that is looked into by a real Kafka alone.
        2 => batch.attributes ^= 1 << (3 + dice.roll(13)),
        3 => batch.count = Some(any(dice)),
        4 => batch.last_offset_delta = Some(any(dice)),
        5 => batch.length = Some(any(dice) * 30),
        6 => batch.crc = Some(7),
        7 => batch.producer_id = i64::from(any(dice)),
        8 => (batch.producer_epoch, batch.base_sequence) = (any(dice) as i16, any(dice)),
        9 => batch = batch.by(5_000_000, any(dice) as i16, any(dice)),
        10 => (batch.count, batch.last_offset_delta) = (Some(2), Some(1)),
        _ => return (words, batch.encode().to_vec()),
    }
    words.push_str(&format!(
        ", base offset {}, magic {}, attributes {:#x}, count {:?}, last {:?}, length {:?}, producer {} {} {}",
        batch.base_offset,
        batch.magic,
        batch.attributes,
        batch.count,
        batch.last_offset_delta,
        batch.length,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
    ));
    (words, batch.encode().to_vec())
}

/// The whole batches at the front; a real Kafka cuts the last one off at the limit. Without the greatest timestamp and the
/// checksum, which it corrects.
fn whole(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut rest = bytes;
    while let Some(length) = rest.get(8..12) {
        let length = 12 + u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
        let Some((batch, behind)) = rest.split_at_checked(length) else { break };
        all.extend([&batch[..17], &batch[21..35], &batch[43..]].concat());
        rest = behind;
    }
    all
}

/// A sound batch, in the records of which bytes are others, with a checksum that is right again.
fn damaged(dice: &mut Dice) -> (String, Vec<u8>) {
    let records = (0..1 + dice.roll(3)).map(|_| record(dice)).collect();
    let mut bytes = Batch::records(records).at(EPOCH).encode().to_vec();
    let position = 61 + dice.roll(bytes.len() - 61);
    bytes[position] ^= 1 << dice.roll(8);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    (format!("damaged at {position}: {:?}", &bytes[61..]), bytes)
}

fn step(dice: &mut Dice) -> Step {
    match dice.roll(12) {
        0..=5 => {
            let (words, bytes) = batch(dice);
            Step::Produce(words, bytes)
        }
        6..=7 => {
            let (words, bytes) = damaged(dice);
            Step::Produce(words, bytes)
        }
        8..=9 => Step::Fetch { from: dice.roll(40) as i64, limit: 1 + dice.roll(400) as i32 },
        10 => Step::ByTime(EPOCH + dice.roll(1200) as i64 - 100),
        _ if dice.roll(3) == 0 => Step::DeleteRecords(dice.roll(30) as i64 - 1),
        _ => Step::ByTime([EARLIEST, LATEST, MAX_TIMESTAMP][dice.roll(3)]),
    }
}

fn take(client: &mut Client, topic: &str, step: &Step) -> String {
    match step {
        Step::Produce(_, bytes) => {
            let answer = client.produce_as(topic, 0, bytes.clone().into(), None);
            format!("{:?} end {}", code(answer.error_code).map(|()| answer.base_offset), client.end(topic, 0))
        }
        Step::Fetch { from, limit } => {
            let mut request = fetch_request(topic, &[(0, *from)], COMMITTED);
            request.topics[0].partitions[0].partition_max_bytes = *limit;
            let data = client.call(&request).responses.remove(0).partitions.remove(0);
            let bytes = whole(&data.records.unwrap_or_default());
            format!("{:?} {} {} {bytes:?}", code(data.error_code), data.high_watermark, data.log_start_offset)
        }
        Step::ByTime(time) => {
            let answer = client.list_offset_full(topic, 0, *time, UNCOMMITTED);
            format!("{:?} {} {}", code(answer.error_code), answer.offset, answer.timestamp)
        }
        Step::DeleteRecords(before) => format!("{:?}", client.delete_records(topic, 0, *before)),
    }
}

fn compare(seed: u64) -> Result<(), String> {
    let dev = Broker::dev(DevBroker::builder());
    let (mut real, mut other) = (Broker::get().client(), dev.client());
    let settings = TOPICS[seed as usize % TOPICS.len()];
    let (real_topic, other_topic) = (real.topic_with(1, settings), other.topic_with(1, settings));
    let mut dice = Dice(seed);
    let mut differences = String::new();
    let mut same_times = true;
    for number in 0..60 {
        let step = step(&mut dice);
        // After a deletion a real Kafka still finds the highest timestamp below the start, and one that was damaged was corrected.
        if matches!(step, Step::ByTime(_)) && !same_times {
            continue;
        }
        same_times &= match &step {
            Step::Produce(words, _) => !words.starts_with("damaged"),
            Step::DeleteRecords(_) => false,
            Step::Fetch { .. } | Step::ByTime(_) => true,
        };
        let (wanted, got) = (take(&mut real, &real_topic, &step), take(&mut other, &other_topic, &step));
        if wanted != got {
            let damaged = matches!(&step, Step::Produce(words, _) if words.starts_with("damaged"));
            if damaged && wanted.starts_with("Ok") && got.starts_with("Err(InvalidRecord)") {
                // The development broker looks more closely; the two logs are no longer the same.
                return Ok(());
            }
            let said = match &step {
                Step::Produce(words, _) => words.clone(),
                step => format!("{step:?}"),
            };
            differences = format!(
                "seed {seed}, step {number}: {said}\n  {wanted}\n  but the development broker: {got}"
            );
            break;
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}

#[test]
fn random_batches_and_reads_are_answered_alike() {
    if !Broker::get().is_real() {
        return;
    }
    let differences: Vec<String> = (1..31).filter_map(|seed| compare(seed).err()).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}
