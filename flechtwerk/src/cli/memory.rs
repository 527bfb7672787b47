//! Keeps what the process holds of the machine's memory near what it uses.
//!
//! What a backlog takes (records that were fetched, batches, the write buffers of RocksDB) is freed with it. The allocator of glibc
//! keeps that, for each thread apart: with a million timers right after they were set, it was more than what was in use.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::kafka::malloc;

/// Between two looks, each of which takes some microseconds.
const INTERVAL: Duration = Duration::from_secs(2);
/// CPU time between two looks from which on a process is at work, and not at rest.
const WORK: Duration = Duration::from_secs(1);
/// A process at work will want its memory again at once, and to give 300 MiB back and have them again takes a tenth of a second of CPU
/// time: it does so only now and then.
const AT_WORK: Duration = Duration::from_secs(30);
/// When work has ended it gives back so often: what it held may be freed a little later.
const AFTER_WORK: u8 = 3;
/// What little work adds up to, before it is worth while.
const GROWTH: u64 = 16 << 20;

/// Gives memory back until it is dropped.
pub(super) struct GivingBack(#[expect(dead_code, reason = "dropping it ends the thread")] Sender<()>);

impl GivingBack {
    pub(super) fn start() -> GivingBack {
        let (sender, stopped) = channel::<()>();
        let look = move || {
            let mut watch = Watch::new();
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(INTERVAL) {
                // Where the system does not say, the allocator is not glibc's either.
                let (Some(resident), Some(worked)) = (resident(), worked()) else { return };
                if watch.is_time(resident, worked) {
                    malloc::give_back();
                    watch.given_back(self::resident().unwrap_or(resident));
                }
            }
        };
        // Without it, all goes on with more memory.
        let _ = std::thread::Builder::new().name("memory".into()).spawn(look);
        GivingBack(sender)
    }
}

struct Watch {
    /// The least that was held since memory was last given back.
    least: u64,
    /// CPU time of the process, at the last look.
    worked: Duration,
    /// How often it is to be given back, now that work has ended.
    left: u8,
    /// When memory was last given back.
    since: Instant,
}

impl Watch {
    fn new() -> Watch {
        Watch { least: u64::MAX, worked: Duration::ZERO, left: 0, since: Instant::now() }
    }

    fn is_time(&mut self, resident: u64, worked: Duration) -> bool {
        self.least = self.least.min(resident);
        let rests = worked.saturating_sub(self.worked) < WORK;
        self.worked = worked;
        match rests {
            true if self.left > 0 => {
                self.left -= 1;
                true
            }
            true => resident > self.least + GROWTH,
            false => {
                self.left = AFTER_WORK;
                self.since.elapsed() >= AT_WORK
            }
        }
    }

    fn given_back(&mut self, resident: u64) {
        self.least = resident;
        self.since = Instant::now();
    }
}

/// Bytes of memory that the process holds.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    // Where pages are larger it looks more seldom.
    Some(pages * 4096)
}

/// CPU time of the process.
fn worked() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the name, which may hold anything: the times of user and system are the 14th and the 15th field, in hundredths of a second.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut time = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((time()? + time()?) * 10))
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    const BLOCKS: usize = 96 * 1024;
    const BLOCK: usize = 4000;

    #[test]
    fn a_process_at_work_gives_back_now_and_then_and_one_at_rest_at_once() {
        let seconds = Duration::from_secs;
        let mut watch = Watch::new();
        assert!(!watch.is_time(100 << 20, seconds(2)), "it is at work");
        for look in 0..AFTER_WORK {
            assert!(watch.is_time(100 << 20, seconds(2)), "work has ended, {look}");
            watch.given_back(90 << 20);
        }
        assert!(!watch.is_time(100 << 20, seconds(2)), "that is not worth while");
        assert!(watch.is_time(120 << 20, seconds(2)), "it has grown");
        watch.given_back(90 << 20);
        assert!(!watch.is_time(300 << 20, seconds(4)), "it is at work");
        watch.since = Instant::now().checked_sub(AT_WORK).unwrap();
        assert!(watch.is_time(300 << 20, seconds(6)), "for long");
    }

    #[test]
    fn the_system_tells_what_the_process_takes() {
        let before = worked().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while worked().unwrap() == before {
            assert!(Instant::now() < until);
        }
        assert!(resident().unwrap() > 1 << 20);
    }

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
