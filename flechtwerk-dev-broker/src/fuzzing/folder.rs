//! Data folders: the files of a broker that was killed, damaged, and opened by the next one.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::Entropy;
use super::logs::batch;
use crate::broker::for_fuzzing;
use crate::coordinator::transaction::InitRequest;
use crate::coordinator::{Effects, Producer, Record};
use crate::{DevBroker, NewTopic, StartError};

/// Makes a folder within `parent`, damages one of its files and starts from it. A broker that starts must start again. Whether
/// it did.
pub fn data_folder(parent: &Path, entropy: &mut Entropy<'_>) -> bool {
    let folder = parent.join("data");
    let _ = fs::remove_dir_all(&folder);
    start(&folder, entropy).expect("a new folder is good");
    let mut files = Vec::new();
    collect(&folder, &mut files);
    files.sort();
    if let Some(file) = (!files.is_empty()).then(|| entropy.pick(&files)) {
        let mut bytes = fs::read(file).expect("what was written can be read");
        entropy.damage(&mut bytes, 0);
        if entropy.percent(10) {
            bytes = entropy.some_bytes(200);
        }
        fs::write(file, &bytes).expect("the folder can be written");
        // The journal's records have check sums; behind them lies a decoder of its own.
        let _ = Record::decode(Bytes::from(bytes));
    }
    let started = start(&folder, entropy).is_ok();
    if started {
        // Both have appended something since: nothing of it may keep the next from starting.
        assert!(start(&folder, entropy).is_ok(), "a folder that could be opened can't be opened again");
    }
    started
}

/// Starts a broker, lets it write, and ends it.
fn start(folder: &Path, entropy: &mut Entropy<'_>) -> Result<(), StartError> {
    let totals = NewTopic::new("totals", 1).config("cleanup.policy", "compact");
    let mut state = for_fuzzing(DevBroker::builder().data_dir(folder).topic(("abc", 2)).topic(totals))?;
    for _ in 0..entropy.below(4) {
        let (topic, partition) = *entropy.pick(&[("abc", 0), ("abc", 1), ("totals", 0)]);
        if let Some(partition) = state.topics.partition_mut(topic, partition) {
            let _ = partition.log.append(Bytes::from(batch(entropy)), 1_700_000_000_000);
            if entropy.percent(20) {
                let _ = partition.log.delete_records(1);
            }
        }
        let mut effects = Effects::new();
        let now = state.now();
        let id = *entropy.pick(&["one", "two"]);
        let _ = state.coordinators.transactions.init_producer_id(
            now,
            &InitRequest {
                transactional_id: Some(id.to_owned()),
                timeout_ms: 60_000,
                current: Producer::new(-1, -1),
            },
            &mut effects,
        );
        state.settle(effects);
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.file_name().is_some_and(|name| name != "lock") {
            files.push(path);
        }
    }
}
