//! A long run of the library's fuzz targets on the stable toolchain:
//! `scripts/fuzz SECONDS [SEED]`.
//!
//! It goes through the targets a second at a time and says the seed of what it finds. An input that is not read within a minute
//! ends it as well.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flechtwerk_dev_broker::fuzzing::end_with_a_hang;
use flechtwerk_fuzz::{Played, input, play, targets};

const TURN: Duration = Duration::from_secs(1);

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
    let current = Arc::new(AtomicU64::new(first));
    end_with_a_hang(Arc::clone(&current));

    let mut all: Vec<_> = targets().map(|target| (target, Played::default())).collect();
    let (start, mut seed) = (Instant::now(), first);
    println!("first seed {first}");
    while start.elapsed() < Duration::from_secs(seconds) {
        for (target, played) in &mut all {
            let turn = Instant::now();
            while turn.elapsed() < TURN.min(Duration::from_secs(seconds)) {
                current.store(seed, Ordering::Relaxed);
                let bytes = input(target, seed);
                if catch_unwind(AssertUnwindSafe(|| play(target, &bytes, played))).is_err() {
                    eprintln!("{}: seed {seed}: {bytes:?}", target.name);
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
