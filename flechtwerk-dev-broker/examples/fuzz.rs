//! A long run of the fuzz targets, on the stable toolchain:
//! `cargo run --release -p flechtwerk-dev-broker --features fuzzing --example fuzz -- SECONDS [SEED]`.
//!
//! It says the seed before each part of the run. A panic or a session that does not end within a minute ends it with an error.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flechtwerk_dev_broker::fuzzing::{Entropy, data_folder, end_with_a_hang, frames, logs, requests};

const REPORT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let (Some(Ok(seconds)), seed) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: fuzz SECONDS [SEED]");
        return ExitCode::from(2);
    };
    let Ok(first) = seed.unwrap_or_else(|| Ok(std::process::id().into())) else {
        eprintln!("a seed is a number");
        return ExitCode::from(2);
    };
    let parent = tempfile::tempdir().expect("a folder for temporary files");
    let current = Arc::new(AtomicU64::new(first));
    end_with_a_hang(Arc::clone(&current));

    let (start, mut reported) = (Instant::now(), Instant::now());
    let (mut seed, mut answered, mut started, mut slowest) = (first, 0, 0, Duration::ZERO);
    println!("first seed {first}, {} MiB", resident_mib());
    while start.elapsed() < Duration::from_secs(seconds) {
        current.store(seed, Ordering::Relaxed);
        let session = Instant::now();
        frames(&mut Entropy::seeded(seed));
        answered += requests(&mut Entropy::seeded(seed));
        logs(&mut Entropy::seeded(seed));
        started += usize::from(seed % 8 == 0 && data_folder(parent.path(), &mut Entropy::seeded(seed)));
        slowest = slowest.max(session.elapsed());
        seed += 1;
        if reported.elapsed() >= REPORT {
            reported = Instant::now();
            println!(
                "{:>5} s: seed {seed}, {answered} requests answered, {started} damaged folders started, slowest {} ms, {} MiB",
                start.elapsed().as_secs(),
                slowest.as_millis(),
                resident_mib()
            );
        }
    }
    println!("{} sessions, {answered} requests answered, {} MiB", seed - first, resident_mib());
    ExitCode::SUCCESS
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
}
