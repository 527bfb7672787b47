//! SIGINT, SIGTERM and SIGHUP: the run ends at once, and what it has started ends with it. Instances that stand stopped would
//! otherwise stay for ever.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

static ASKED: AtomicBool = AtomicBool::new(false);

/// The run was interrupted by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("interrupted; there is no verdict")
    }
}

impl std::error::Error for Interrupted {}

/// Hears the signals from now on.
pub fn listen() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
    let runtime = runtime.context("a runtime that hears signals")?;
    let mut signals = {
        // They are registered in the context of the runtime that waits for them.
        let _inside = runtime.enter();
        let on = |kind| signal(kind).context("hear signals");
        (on(SignalKind::interrupt())?, on(SignalKind::terminate())?, on(SignalKind::hangup())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = signals.0.recv() => {}
                _ = signals.1.recv() => {}
                _ = signals.2.recv() => {}
            }
            ASKED.store(true, Ordering::SeqCst);
            // Those that come after it are heard, and mean the same.
            std::future::pending::<()>().await;
        });
    });
    Ok(())
}

/// An error once a signal has come.
pub fn check() -> Result<(), Interrupted> {
    if ASKED.load(Ordering::SeqCst) { Err(Interrupted) } else { Ok(()) }
}
