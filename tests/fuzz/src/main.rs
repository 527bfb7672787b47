//! A long run of the library's fuzz targets on the stable toolchain:
//! `scripts/fuzz SECONDS [SEED]`.
//!
//! It goes through the targets a second at a time and says the seed of what it finds. An input that is not read within a minute
//! ends it as well. The targets are played in a process of their own: a stack or a memory that is used up ends it without a word,
//! and its parent then says at which input.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::parent_id;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flechtwerk_dev_broker::fuzzing::end_with_a_hang;
use flechtwerk_fuzz::{Played, input, play, targets};

const TURN: Duration = Duration::from_secs(1);
/// Bytes of an input that are shown.
const SHOWN: usize = 256;
/// Set for the child. It notes in the file that is its standard input which input it reads: the target's number and the seed.
const CHILD: &str = "FLECHTWERK_FUZZ_CHILD";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(seconds)), seed) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: flechtwerk-fuzz SECONDS [SEED]");
        return ExitCode::from(2);
    };
    let Ok(first) = seed.unwrap_or_else(|| Ok(u64::from(std::process::id()) << 32)) else {
        eprintln!("a seed is a number");
        return ExitCode::from(2);
    };
    if std::env::var_os(CHILD).is_none() {
        return watch(seconds, first);
    }
    match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(notes) => run(seconds, first, &File::from(notes)),
        Err(error) => failed(&format!("the file for notes: {error}")),
    }
}

fn failed(what: &str) -> ExitCode {
    eprintln!("flechtwerk-fuzz: {what}");
    ExitCode::from(2)
}

/// Runs the child, and says where it died if it did.
fn watch(seconds: u64, first: u64) -> ExitCode {
    let run = || {
        let notes = tempfile::tempfile()?;
        let mut child = Command::new(std::env::current_exe()?);
        child.args([seconds, first].map(|number| number.to_string())).env(CHILD, "1");
        Ok::<_, std::io::Error>((child.stdin(notes.try_clone()?).status()?, notes))
    };
    let (status, notes) = match run() {
        Ok(done) => done,
        Err(error) => return failed(&format!("the run can't be started: {error}")),
    };
    let Some(code) = status.code() else {
        let mut noted = [0; 16];
        if notes.read_exact_at(&mut noted, 0).is_ok() {
            let [target, seed] = [&noted[..8], &noted[8..]]
                .map(|bytes| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)));
            let target = targets().nth(target as usize);
            let name = target.map_or("?", |target| target.name);
            eprintln!("{name}: seed {seed} ends the process: {status}; the input has {} bytes", {
                target.map_or(0, |target| input(target, seed).len())
            });
        }
        return ExitCode::FAILURE;
    };
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn run(seconds: u64, first: u64, notes: &File) -> ExitCode {
    let current = Arc::new(AtomicU64::new(first));
    end_with_a_hang(Arc::clone(&current));

    let mut all: Vec<_> = targets().map(|target| (target, Played::default())).collect();
    let (start, mut seed) = (Instant::now(), first);
    println!("first seed {first}");
    let parent = parent_id();
    while start.elapsed() < Duration::from_secs(seconds) {
        for (number, (target, played)) in all.iter_mut().enumerate() {
            if parent_id() != parent {
                return failed("nobody waits for it any more");
            }
            let turn = Instant::now();
            while turn.elapsed() < TURN.min(Duration::from_secs(seconds)) {
                current.store(seed, Ordering::Relaxed);
                let note = [(number as u64).to_le_bytes(), seed.to_le_bytes()].concat();
                if let Err(error) = notes.write_all_at(&note, 0) {
                    return failed(&format!("the notes: {error}"));
                }
                let bytes = input(target, seed);
                if catch_unwind(AssertUnwindSafe(|| play(target, &bytes, played))).is_err() {
                    let some = &bytes[..bytes.len().min(SHOWN)];
                    eprintln!("{}: seed {seed}, {} bytes: {some:?}", target.name, bytes.len());
                    return ExitCode::FAILURE;
                }
                seed += 1;
            }
        }
    }
    for (target, Played { good, refused, memory }) in &all {
        println!("{:<24} {good:>9} read {refused:>9} refused, at most {memory} bytes of memory", target.name);
    }
    println!("{} inputs in {} s", seed - first, start.elapsed().as_secs());
    ExitCode::SUCCESS
}
