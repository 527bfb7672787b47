//! What the runtime takes from its surroundings beside the ports: time, chance, threads, and waiting. In a program this is the
//! standard library's and tokio's. Under the feature `simulation` a [`Host`] may stand in for them on its thread, so that
//! the same code runs on a clock of its own, one step after the other, as a seed says.

use std::future::Future;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::glue::RawRecord;

#[cfg(feature = "simulation")]
pub use simulated::{Host, install};

/// The present.
pub(super) fn now() -> Instant {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        return host.now();
    }
    Instant::now()
}

/// How long ago that was.
pub(super) fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// What a round begins with: only a simulation looks at it.
pub(super) fn round(partition: i32, records: &[RawRecord]) {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        let places: Vec<_> = records.iter().map(|record| (record.input, record.offset)).collect();
        host.round(partition, places);
    }
    #[cfg(not(feature = "simulation"))]
    let _ = (partition, records);
}

/// A number that nobody can foretell.
pub(super) fn random() -> u64 {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        return host.random();
    }
    rand::random()
}

/// Holds the calling thread up.
pub(super) fn sleep(time: Duration) {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        return host.wait(host.now() + time, &mut || false);
    }
    std::thread::sleep(time);
}

/// Holds the calling task up.
pub(super) async fn sleep_until(at: Instant) {
    #[cfg(feature = "simulation")]
    if simulated::host().is_some() {
        return simulated::sleep_until(at).await;
    }
    tokio::time::sleep_until(at.into()).await;
}

/// Waits for a message, on the calling thread.
pub(super) fn receive<T>(queue: &Receiver<T>, limit: Duration) -> Result<T, RecvTimeoutError> {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        return simulated::receive(&*host, queue, limit);
    }
    queue.recv_timeout(limit)
}

/// Waits, where a host stands in for the thread, until `ready` says so or the time is up. False: nobody stands in.
#[cfg_attr(not(feature = "simulation"), expect(unused_variables, reason = "nobody stands in"))]
pub(super) fn waits(limit: Duration, ready: &mut dyn FnMut() -> bool) -> bool {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        host.wait(host.now() + limit, ready);
        return true;
    }
    false
}

/// Starts a thread and lets it go.
pub(super) fn thread(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        host.thread(name, Box::new(work));
        return Ok(());
    }
    std::thread::Builder::new().name(name).spawn(work).map(drop)
}

/// Starts an async task; `ended` is called once it has ended, and told whether it panicked.
pub(super) fn spawn(
    runtime: &Handle,
    task: impl Future<Output = ()> + Send + 'static,
    ended: impl FnOnce(bool) + Send + 'static,
) {
    #[cfg(feature = "simulation")]
    if let Some(host) = simulated::host() {
        return host.spawn(Box::pin(async move {
            task.await;
            ended(false);
        }));
    }
    let task = runtime.spawn(task);
    runtime.spawn(async move { ended(task.await.is_err()) });
}

#[cfg(feature = "simulation")]
mod simulated {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::sync::mpsc::TryRecvError;
    use std::task::{Poll, Waker};

    use super::*;

    /// Stands in for clock, chance and threads.
    pub trait Host {
        /// The present.
        fn now(&self) -> Instant;
        /// The next number.
        fn random(&self) -> u64;
        /// A round begins with these records, by input and offset.
        fn round(&self, partition: i32, records: Vec<(u16, i64)>);
        /// Holds the calling thread up until `ready` says true, or until this time. `ready` is asked whenever something has
        /// happened in the process.
        fn wait(&self, until: Instant, ready: &mut dyn FnMut() -> bool);
        /// Starts a thread.
        fn thread(&self, name: String, work: Box<dyn FnOnce() + Send>);
        /// Starts an async task.
        fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);
        /// Wakes a task at this time.
        fn timer(&self, at: Instant, waker: &Waker);
    }

    thread_local! {
        static HOST: RefCell<Option<Rc<dyn Host>>> = const { RefCell::new(None) };
    }

    /// From now on this stands in, on this thread; `None`: nobody does any more.
    pub fn install(host: Option<Rc<dyn Host>>) {
        HOST.with_borrow_mut(|place| *place = host);
    }

    pub(super) fn host() -> Option<Rc<dyn Host>> {
        HOST.with_borrow(Clone::clone)
    }

    pub(super) async fn sleep_until(at: Instant) {
        poll_fn(|cx| match host() {
            Some(host) if host.now() < at => {
                host.timer(at, cx.waker());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
        .await;
    }

    pub(super) fn receive<T>(
        host: &dyn Host,
        queue: &Receiver<T>,
        limit: Duration,
    ) -> Result<T, RecvTimeoutError> {
        let mut got = None;
        host.wait(host.now() + limit, &mut || {
            got = match queue.try_recv() {
                Ok(message) => Some(Ok(message)),
                Err(TryRecvError::Disconnected) => Some(Err(RecvTimeoutError::Disconnected)),
                Err(TryRecvError::Empty) => None,
            };
            got.is_some()
        });
        got.unwrap_or(Err(RecvTimeoutError::Timeout))
    }
}
