//! SIGTERM and SIGINT: the first asks for a clean stop, the second for one at once. They are heard from the moment a run
//! begins: a stop that comes while it still starts is a clean one too (S6.3).

use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::observe::Health;
use crate::runtime::Stopper;
use crate::startup::INTERRUPTED;

/// Hears signals, on a thread of its own for as long as the process lives.
#[derive(Clone, Default)]
pub(super) struct Signals(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// How often a stop was asked for.
    asked: usize,
    /// Who is told, once there is something to stop.
    runs: Option<(Stopper, Health)>,
}

impl Signals {
    /// Listens; the handlers are in place when this returns.
    pub(super) fn listen() -> Signals {
        let signals = Signals::default();
        let (ready, wait) = channel();
        let heard = signals.clone();
        let spawned = std::thread::Builder::new().name("signals".into()).spawn(move || {
            if let Err(error) = heard.hear(&ready) {
                tracing::error!("signals are not heard: {error}; only SIGKILL ends this process");
            }
        });
        match spawned {
            // Where it fails, the sender is dropped, and there is nothing to wait for.
            Ok(_) => drop(wait.recv()),
            Err(error) => tracing::error!("signals are not heard: {error}"),
        }
        signals
    }

    /// A stop was asked for.
    pub(super) fn asked(&self) -> bool {
        self.lock().asked > 0
    }

    /// From here on there is something to stop; what was asked for before counts.
    pub(super) fn hand_to(&self, stopper: Stopper, health: Health) {
        let mut state = self.lock();
        for _ in 0..state.asked {
            health.stopping();
            stopper.stop();
        }
        state.runs = Some((stopper, health));
    }

    fn hear(&self, ready: &Sender<()>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        runtime.block_on(async {
            let (mut terminate, mut interrupt) =
                (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
            // Whoever waits may have gone on without.
            let _ = ready.send(());
            loop {
                let name = either(&mut terminate, &mut interrupt).await;
                self.stop(name);
            }
        })
    }

    fn stop(&self, name: &str) {
        let mut state = self.lock();
        state.asked += 1;
        match state.asked {
            1 => tracing::info!("{name}: stopping; once more to stop at once"),
            _ => tracing::warn!("{name}: stopping at once"),
        }
        INTERRUPTED.store(true, SeqCst);
        if let Some((stopper, health)) = &state.runs {
            health.stopping();
            stopper.stop();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
