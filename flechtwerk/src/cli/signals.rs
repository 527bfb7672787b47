//! SIGTERM and SIGINT: the first asks for a clean stop, the second for one at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::observe::Health;
use crate::runtime::Stopper;

/// Hands signals to the runtime, from a thread of its own for as long as the process lives.
pub(super) fn stop_on_signals(stopper: Stopper, health: Health) {
    let spawned = std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Err(error) = listen(&stopper, &health) {
            tracing::error!("signals are not heard: {error}; only SIGKILL ends this process");
        }
    });
    if let Err(error) = spawned {
        tracing::error!("signals are not heard: {error}; only SIGKILL ends this process");
    }
}

fn listen(stopper: &Stopper, health: &Health) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        for asked in 1_usize.. {
            let name = either(&mut terminate, &mut interrupt).await;
            match asked {
                1 => tracing::info!("{name}: stopping; once more to stop at once"),
                _ => tracing::warn!("{name}: stopping at once"),
            }
            health.stopping();
            stopper.stop();
        }
        Ok(())
    })
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
