//! Keeps what the process holds of the machine's memory near what it uses.
//!
//! What a backlog takes (records that were fetched, batches, the write buffers of RocksDB) is freed with it. The allocator of glibc
//! keeps that, for each thread apart: with a million timers right after they were set, it was more than what was in use.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::kafka::malloc;

/// Between two looks. One takes some microseconds, and giving back 100 MiB some milliseconds.
const INTERVAL: Duration = Duration::from_secs(2);
/// Growth since memory was last given back, from which on it is worth while. Idle processes stay below.
const GROWTH: u64 = 16 << 20;

/// Gives memory back until it is dropped.
pub(super) struct GivingBack(#[expect(dead_code, reason = "dropping it ends the thread")] Sender<()>);

impl GivingBack {
    pub(super) fn start() -> GivingBack {
        let (sender, stopped) = channel::<()>();
        let look = move || {
            let mut least = resident().unwrap_or_default();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(INTERVAL) {
                // Where the system does not say, it is not glibc's either.
                let Some(now) = resident() else { return };
                least = least.min(now);
                if now > least + GROWTH {
                    malloc::give_back();
                    least = resident().unwrap_or(now);
                }
            }
        };
        // Without it, all goes on with more memory.
        let _ = std::thread::Builder::new().name("memory".into()).spawn(look);
        GivingBack(sender)
    }
}

/// Bytes of memory that the process holds.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    // Larger pages only make it look more seldom.
    Some(pages * 4096)
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::time::Instant;

    use super::*;

    const BLOCKS: usize = 96 * 1024;
    const BLOCK: usize = 4000;

    /// Freed between blocks that stay, as batches are between states: the allocator by itself keeps all of it.
    #[test]
    fn what_was_freed_is_given_back() {
        let before = resident().unwrap();
        let _giving_back = GivingBack::start();
        let fill = || {
            let blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| vec![1; BLOCK]).collect();
            blocks.into_iter().step_by(64).collect::<Vec<_>>()
        };
        let kept = std::thread::spawn(fill).join().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let most = before + (BLOCKS * BLOCK / 2) as u64;
        while resident().unwrap() > most {
            assert!(Instant::now() < until, "{} bytes are held, {before} before", resident().unwrap());
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(kept.len(), BLOCKS / 64);
    }
}
