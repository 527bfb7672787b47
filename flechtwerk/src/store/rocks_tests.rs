//! What only a store on disk can get wrong: damaged files, two holders of one folder, kills.
//!
//! The tests that need another process start their own binary again, with themselves as the only test; the
//! variable [`CHILD`] tells the child what to do.

use std::fs;
use std::io;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::store::suite;

const CHILD: &str = "FLECHTWERK_TEST_STORE_CHILD";

#[test]
fn keeps_the_contract_of_stores() {
    let dir = tempfile::tempdir().unwrap();
    let stores = RocksStores::new(dir.path());
    suite::contract(&mut |id, wiped| stores.open(id, wiped));
}

/// Applies batch `n`: it adds an entry of its own, and changes one that all batches change.
fn apply(store: &dyn Store, n: u64) -> Result<(), StoreError> {
    store.apply(
        &[suite::put(&format!("batch-{n}"), &"x".repeat(200)), suite::put("last", &n.to_string())],
        &n.to_string(),
    )
}

/// Panics where the data is not exactly what the batches up to the stamp have written; gives the stamp.
fn assert_consistent(store: &dyn Store) -> Result<Option<u64>, StoreError> {
    let Some(stamp) = store.stamp()? else { return Ok(None) };
    let stamp: u64 = stamp.parse().expect("a stamp of these tests");
    let mut entries = 0;
    store.for_each(&mut |_, _| entries += 1)?;
    assert_eq!(entries, stamp + 1, "the stamp {stamp} is not that of the data");
    assert_eq!(suite::try_get(store, "last")?, Some(stamp.to_string()));
    for n in 1..=stamp {
        assert!(
            suite::try_get(store, &format!("batch-{n}"))?.is_some(),
            "batch {n} is missing at stamp {stamp}"
        );
    }
    Ok(Some(stamp))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 3, "a database has more files than {files:?}");
    files
}

/// A folder with one flushed and one logged part.
fn filled(state_dir: &Path, id: &StoreId) -> PathBuf {
    let stores = RocksStores::new(state_dir);
    let store = stores.open(id, true).unwrap();
    for n in 1..=40 {
        apply(&*store, n).unwrap();
        if n == 20 {
            store.flush().unwrap();
        }
    }
    state_dir.join(&id.application_id).join(id.partition.to_string())
}

#[test]
fn damage_is_noticed_or_harmless_and_a_wipe_mends_it() {
    let dir = tempfile::tempdir().unwrap();
    let id = suite::id("damaged", 0);
    let stores = RocksStores::new(dir.path());
    let mut random = StdRng::seed_from_u64(1);
    let mut noticed = 0;
    let count = files(&filled(dir.path(), &id)).len();
    for n in 0..count {
        for damage in ["empty", "cut", "flip", "garbage", "gone"] {
            let folder = filled(dir.path(), &id);
            let Some(file) = files(&folder).into_iter().nth(n) else { continue };
            let mut bytes = fs::read(&file).unwrap();
            match damage {
                "empty" => bytes.clear(),
                "cut" => bytes.truncate(bytes.len() / 2),
                "flip" => {
                    if let Some(at) = bytes.len().checked_sub(1).map(|last| random.random_range(0..=last)) {
                        bytes[at] ^= 0x55;
                    }
                }
                _ => bytes = (0..500).map(|_| random.random()).collect(),
            }
            match damage {
                "gone" => fs::remove_file(&file).unwrap(),
                _ => fs::write(&file, bytes).unwrap(),
            }
            match stores.open(&id, false).and_then(|store| assert_consistent(&*store)) {
                Ok(_) => {}
                Err(error) => {
                    assert!(!error.in_use, "{damage} {}: {error}", file.display());
                    assert!(
                        error.to_string().contains(folder.to_str().unwrap()),
                        "the folder is named: {error}"
                    );
                    noticed += 1;
                }
            }
            let store = stores.open(&id, true).unwrap();
            assert!(store.is_empty().unwrap());
            assert_eq!(store.stamp().unwrap(), None);
            apply(&*store, 1).unwrap();
        }
    }
    assert!(noticed > 10, "only {noticed} damages noticed");
}

#[test]
fn what_is_no_database_at_all_can_be_wiped() {
    let dir = tempfile::tempdir().unwrap();
    let stores = RocksStores::new(dir.path());
    let folder = dir.path().join("app").join("0");
    fs::create_dir_all(folder.join("sub/folder")).unwrap();
    fs::write(folder.join("CURRENT"), "no such manifest").unwrap();
    assert!(stores.open(&suite::id("app", 0), false).is_err());
    assert!(stores.open(&suite::id("app", 0), true).unwrap().is_empty().unwrap());

    let file = dir.path().join("app").join("1");
    fs::write(&file, "a file").unwrap();
    assert!(stores.open(&suite::id("app", 1), false).is_err());
    assert!(stores.open(&suite::id("app", 1), true).unwrap().is_empty().unwrap());
}

#[test]
fn a_removal_that_was_cut_short_is_finished() {
    let dir = tempfile::tempdir().unwrap();
    let id = suite::id("app", 0);
    let folder = filled(dir.path(), &id);
    let trash = folder.with_extension("trash");
    fs::rename(&folder, &trash).unwrap();
    let store = RocksStores::new(dir.path()).open(&id, false).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    assert!(store.is_empty().unwrap());
    assert!(!trash.exists());
}

#[test]
fn the_store_of_another_task_is_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    let stores = RocksStores::new(dir.path());
    let (here, there) = (suite::id("one", 0), suite::id("two", 5));
    let moved = dir.path().join("two").join("5");
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::rename(filled(dir.path(), &here), &moved).unwrap();
    let store = stores.open(&there, false).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    assert!(store.is_empty().unwrap());
    apply(&*store, 1).unwrap();
    drop(store);
    assert_eq!(assert_consistent(&*stores.open(&there, false).unwrap()).unwrap(), Some(1));
}

#[test]
fn a_store_of_another_format_is_not_reused() {
    let dir = tempfile::tempdir().unwrap();
    let id = suite::id("app", 0);
    let folder = filled(dir.path(), &id);
    let db = DB::open_default(&folder).unwrap();
    db.put(IDENTITY, identity(&id).replacen(&FORMAT.to_string(), "999", 1)).unwrap();
    drop(db);
    let store = RocksStores::new(dir.path()).open(&id, false).unwrap();
    assert_eq!(store.stamp().unwrap(), None);
    assert!(store.is_empty().unwrap());
}

#[test]
fn application_ids_stay_inside_the_state_folder() {
    let dir = tempfile::tempdir().unwrap();
    let stores = RocksStores::new(dir.path().join("state"));
    for bad in ["", ".", "..", "../up", "a/b", "/tmp", "a\0b", "ä"] {
        let error =
            stores.open(&suite::id(bad, 0), true).err().unwrap_or_else(|| panic!("{bad:?} was taken"));
        assert!(!error.in_use);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was created");
}

#[test]
fn a_reserved_key_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = RocksStores::new(dir.path()).open(&suite::id("app", 0), false).unwrap();
    let change = ChangelogRecord { key: STAMP.into(), value: Some(b"forged"[..].into()) };
    assert!(store.restore(&[change]).is_err());
    assert_eq!(store.stamp().unwrap(), None);
}

#[test]
fn a_second_holder_in_the_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let id = suite::id("app", 3);
    let first = RocksStores::new(dir.path()).open(&id, false).unwrap();
    apply(&*first, 1).unwrap();
    for wiped in [false, true] {
        let error = RocksStores::new(dir.path()).open(&id, wiped).err().expect("the folder is in use");
        assert!(error.in_use);
        assert!(error.to_string().contains(dir.path().join("app/3").to_str().unwrap()), "{error}");
    }
    assert_eq!(assert_consistent(&*first).unwrap(), Some(1), "the holder's data was not touched");
    drop(first);
    assert_eq!(assert_consistent(&*RocksStores::new(dir.path()).open(&id, false).unwrap()).unwrap(), Some(1));
}

#[test]
fn a_folder_that_a_tool_has_open_is_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let id = suite::id("app", 0);
    let tool = DB::open_default(filled(dir.path(), &id)).unwrap();
    assert!(RocksStores::new(dir.path()).open(&id, false).err().expect("the folder is in use").in_use);
    drop(tool);
    assert_eq!(
        assert_consistent(&*RocksStores::new(dir.path()).open(&id, false).unwrap()).unwrap(),
        Some(40)
    );
}

/// S4.8d: what RocksDB says of damage holds the path, whose words say nothing.
#[test]
fn damage_in_a_folder_named_after_locks_is_not_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = dir.path().join("While lock file: lock hold by current process");
    let id = suite::id("block-count", 0);
    let count = files(&filled(&state_dir, &id)).len();
    let mut said = Vec::new();
    for n in 0..count {
        let Some(file) = files(&filled(&state_dir, &id)).into_iter().nth(n) else { continue };
        fs::remove_file(&file).unwrap();
        // Neither to be read nor to be written anew.
        fs::create_dir(&file).unwrap();
        let opened =
            RocksStores::new(&state_dir).open(&id, false).and_then(|store| assert_consistent(&*store));
        let Err(error) = opened else { continue };
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(!error.in_use, "{name}: {}", error.source);
        said.push((name, error.source.to_string()));
    }
    let is_of_manifest =
        |(name, text): &(String, String)| name.starts_with("MANIFEST") && text.starts_with("IO error: ");
    assert!(said.iter().any(is_of_manifest), "{said:?}");
}

/// What RocksDB says of a lock that is held elsewhere is not what it says of its own.
#[test]
fn a_folder_that_a_tool_of_another_process_has_open_is_in_use() {
    let id = suite::id("app", 0);
    if let Ok(folder) = std::env::var(CHILD) {
        let _tool = DB::open_default(folder).unwrap();
        say("open");
        // Until the parent closes the pipe.
        io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let folder = filled(dir.path(), &id);
    let (mut child, mut said) =
        spawn("a_folder_that_a_tool_of_another_process_has_open_is_in_use", folder.to_str().unwrap());
    assert_eq!(said.next().as_deref(), Some("open"));
    let error = RocksStores::new(dir.path()).open(&id, false).err().expect("the folder is in use");
    assert!(error.in_use, "{}", error.source);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Starts this test binary again with the named test alone; it finds `order` in the variable [`CHILD`].
fn spawn(test: &str, order: &str) -> (Child, impl Iterator<Item = String>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("store::rocks::tests::{test}"), "--nocapture", "--test-threads=1"]);
    let mut child = command.env(CHILD, order).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("child: ").map(str::to_owned));
    (child, said)
}

fn say(what: impl std::fmt::Display) {
    let mut out = io::stdout().lock();
    writeln!(out, "\nchild: {what}").unwrap();
    out.flush().unwrap();
}

#[test]
fn a_folder_in_use_by_another_process_is_refused() {
    let id = suite::id("app", 0);
    if let Ok(dir) = std::env::var(CHILD) {
        let store = RocksStores::new(&dir).open(&id, false).unwrap();
        apply(&*store, 1).unwrap();
        say("open");
        // Until the parent closes the pipe.
        io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut child, mut said) =
        spawn("a_folder_in_use_by_another_process_is_refused", dir.path().to_str().unwrap());
    assert_eq!(said.next().as_deref(), Some("open"));
    let stores = RocksStores::new(dir.path());
    for wiped in [false, true] {
        let error = stores.open(&id, wiped).err().expect("the folder is in use");
        assert!(error.in_use, "{error}");
        assert!(error.to_string().contains(dir.path().to_str().unwrap()), "{error}");
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(assert_consistent(&*stores.open(&id, false).unwrap()).unwrap(), Some(1));
}

/// Kills at random moments of applying, with write buffers so small that they are written out all the time.
#[test]
fn after_a_kill_the_stamp_is_that_of_the_data() {
    let id = suite::id("app", 0);
    if let Ok(dir) = std::env::var(CHILD) {
        let store = RocksStores::new(&dir).open(&id, false).unwrap();
        let start = assert_consistent(&*store).unwrap().unwrap_or(0);
        for n in start + 1.. {
            apply(&*store, n).unwrap();
            say(n);
            if n % 50 == 0 {
                store.flush().unwrap();
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(2);
    let mut before = 0;
    for _ in 0..8 {
        let (mut child, mut said) =
            spawn("after_a_kill_the_stamp_is_that_of_the_data", dir.path().to_str().unwrap());
        for _ in 0..random.random_range(1..200) {
            said.next().expect("the child goes on until it is killed");
        }
        child.kill().unwrap();
        let last = said.last().map_or(0, |line| line.parse().unwrap());
        child.wait().unwrap();
        let stamp =
            assert_consistent(&*RocksStores::new(dir.path()).open(&id, false).unwrap()).unwrap().unwrap();
        // What the child was told to be applied is there; the one it was applying may be.
        assert!(
            stamp > before && (last == 0 || stamp == last || stamp == last + 1),
            "{before} {last} {stamp}"
        );
        before = stamp;
    }
}

/// Aborts at every step of a restore: only the last leaves a stamp, and then all the data.
#[test]
fn a_restore_that_is_killed_leaves_no_stamp() {
    let id = suite::id("app", 0);
    const STEPS: usize = 7;
    if let Ok(order) = std::env::var(CHILD) {
        let (step, dir) = order.split_once(' ').unwrap();
        let mut left = step.parse::<usize>().unwrap();
        let mut step = || {
            if left == 0 {
                std::process::abort();
            }
            left -= 1;
        };
        let store = RocksStores::new(dir).open(&id, false).unwrap();
        assert_eq!(assert_consistent(&*store).unwrap(), Some(40));
        step();
        store.wipe().unwrap();
        step();
        for n in 1..=4 {
            store
                .restore(&[suite::put(&format!("batch-{n}"), "restored"), suite::put("last", &n.to_string())])
                .unwrap();
            step();
        }
        store.restored(Some("4")).unwrap();
        step();
        apply(&*store, 5).unwrap();
        std::process::abort();
    }
    for steps in 0..=STEPS {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), &id);
        let order = format!("{steps} {}", dir.path().display());
        let (mut child, said) = spawn("a_restore_that_is_killed_leaves_no_stamp", &order);
        assert_eq!(said.count(), 0);
        assert!(!child.wait().unwrap().success(), "the child aborts");
        let store = RocksStores::new(dir.path()).open(&id, false).unwrap();
        let expected = [Some(40), None, None, None, None, None, Some(4), Some(5)][steps];
        assert_eq!(assert_consistent(&*store).unwrap(), expected, "after {steps} steps");
    }
}
