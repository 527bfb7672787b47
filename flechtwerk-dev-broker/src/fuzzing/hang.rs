//! A long run must end where an input does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const HANG: Duration = Duration::from_secs(60);

/// From now on ends the process, with status 1 and the seed, where one seed takes longer than a minute.
pub fn end_with_a_hang(current: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let (mut seen, mut since) = (current.load(Ordering::Relaxed), Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = current.load(Ordering::Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            } else if since.elapsed() > HANG {
                eprintln!("seed {seen} does not end");
                std::process::exit(1);
            }
        }
    });
}
