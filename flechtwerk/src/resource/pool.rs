//! The resources of a process: made before anything is read, in the order in which they need each other, and closed in the
//! reverse one.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::problems::problems;
use super::tree::{Said, Tree};
use crate::glue::{AnyResource, Env, Given, Need, ResourceEntry, StageInfo, Unmade};
use crate::runtime::chain;
use crate::startup::{INTERRUPTED, Problem};

/// A resource that has not closed after this is left.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Time between two looks whether a stop was asked for meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// One that is not made after this says so.
const SLOW: Duration = Duration::from_secs(10);

/// The resources that stages need, in an order in which they can be made.
pub(crate) fn choose(
    all: &'static [ResourceEntry],
    stages: &[&'static StageInfo],
) -> Vec<&'static dyn AnyResource> {
    let mut chosen = Vec::new();
    for need in stages.iter().flat_map(|stage| stage.resources()) {
        add(all, need, &mut chosen);
    }
    chosen
}

/// Adds a resource behind those that it needs. That there is no cycle was checked when the pipeline was compiled.
fn add(all: &'static [ResourceEntry], need: Need, chosen: &mut Vec<&'static dyn AnyResource>) {
    let Some(entry) = all.iter().find(|entry| entry.listed.info.id == need.id) else { return };
    if chosen.iter().any(|resource| resource.info().id == need.id) {
        return;
    }
    for need in entry.listed.info.needs {
        add(all, *need, chosen);
    }
    chosen.push(entry.listed.resource);
}

/// All that is wrong with the settings of all of them.
pub(crate) fn check(resources: &[&'static dyn AnyResource], said: &Said) -> Vec<Problem> {
    let found = resources.iter().flat_map(|resource| {
        let info = resource.info();
        let given = Given { settings: said.of(info.name), env: &Env::default() };
        let why = resource.fits(&given).err();
        why.map(|why| problems(info, said, why)).unwrap_or_default()
    });
    found.collect()
}

/// The resources that were made, and the async runtime that they were made in, which is that of the stages as well.
pub(crate) struct Pool {
    runtime: Runtime,
    /// In the order in which they were made.
    made: Vec<&'static dyn AnyResource>,
    env: Env,
}

impl Pool {
    /// Makes all of `resources`, in their order. If one fails, those that need it are left out, so that all that fail are
    /// told; then those that were made are closed.
    pub(crate) fn make(resources: &[&'static dyn AnyResource], said: &Said) -> Result<Pool, Vec<Problem>> {
        let runtime =
            Builder::new_multi_thread().thread_name("flechtwerk").enable_all().build().map_err(|error| {
                vec![Problem {
                    what: format!("can't start the async runtime: {error}"),
                    place: "this process".into(),
                    why: String::new(),
                    mend: "see the limits of threads and memory of this process".into(),
                }]
            })?;
        let mut pool = Pool { runtime, made: Vec::new(), env: Env::default() };
        let (mut failed, mut found) = (Vec::new(), Vec::new());
        for resource in resources {
            let info = resource.info();
            if info.needs.iter().any(|need| failed.contains(&need.id)) {
                failed.push(info.id);
                continue;
            }
            let begin = Instant::now();
            match pool.make_one(*resource, said.of(info.name).clone()) {
                Ok(()) => {
                    tracing::info!(resource = info.name, "made within {} ms", begin.elapsed().as_millis());
                }
                Err(why) => {
                    failed.push(info.id);
                    found.extend(problems(info, said, why));
                    if INTERRUPTED.load(SeqCst) {
                        break;
                    }
                }
            }
        }
        if found.is_empty() {
            return Ok(pool);
        }
        pool.close(|| false);
        Err(found)
    }

    fn make_one(&mut self, resource: &'static dyn AnyResource, settings: Tree) -> Result<(), Unmade> {
        let env = self.env.clone();
        // In a task of its own, so that a panic is an answer.
        let mut making = self.runtime.spawn(async move {
            let given = Given { settings: &settings, env: &env };
            resource.make(&given).await
        });
        let mut said = Instant::now();
        let made = self.runtime.block_on(async {
            loop {
                match tokio::time::timeout(LOOK, &mut making).await {
                    Ok(made) => break made,
                    Err(_) if INTERRUPTED.load(SeqCst) => {
                        making.abort();
                        break Ok(Err(Unmade::Failed("a stop was asked for".into())));
                    }
                    Err(_) if said.elapsed() >= SLOW => {
                        said = Instant::now();
                        tracing::warn!(
                            resource = resource.info().name,
                            "is still being made, and nothing starts before"
                        );
                    }
                    Err(_) => {}
                }
            }
        });
        self.env.put(made.unwrap_or_else(|error| Err(Unmade::Failed(panicked(error))))?);
        self.made.push(resource);
        Ok(())
    }

    /// What stages find their resources in.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn runtime(&self) -> &tokio::runtime::Handle {
        self.runtime.handle()
    }

    /// Closes and drops all of them, the last first, and ends the runtime. What goes wrong is logged and holds nothing up. `hurry`
    /// says that nothing is to be waited for any more; true if it did.
    pub(crate) fn close(mut self, mut hurry: impl FnMut() -> bool) -> bool {
        let mut hurried = false;
        while let Some(resource) = self.made.pop() {
            let name = resource.info().name;
            let until = Instant::now() + CLOSE_LIMIT;
            let closing = self.spawn_close(resource);
            match self.end(closing, until, &mut hurry) {
                Ended::Well(Ok(())) => tracing::debug!(resource = name, "closed"),
                Ended::Well(Err(error)) => {
                    tracing::warn!(resource = name, "was not closed: {}", chain(&*error));
                }
                Ended::Panicked(why) => tracing::warn!(resource = name, "was not closed: {why}"),
                Ended::Left => tracing::warn!(
                    resource = name,
                    "has not closed within {} s and is left",
                    CLOSE_LIMIT.as_secs()
                ),
                Ended::Hurried => {
                    tracing::warn!(
                        resource = name,
                        "is left without being closed, as are those made before it"
                    );
                    hurried = true;
                    break;
                }
            }
            // Here, since what is dropped may want the runtime; and where it may block.
            let last = self.env.take_last();
            let dropping = self.runtime.spawn_blocking(move || drop(last));
            match self.end(dropping, until.max(Instant::now() + LOOK), &mut hurry) {
                Ended::Well(()) => {}
                Ended::Panicked(why) => tracing::warn!(resource = name, "was not dropped well: {why}"),
                Ended::Left => tracing::warn!(resource = name, "takes too long to be dropped and is left"),
                Ended::Hurried => {
                    hurried = true;
                    break;
                }
            }
        }
        self.runtime.shutdown_background();
        hurried
    }

    fn spawn_close(&self, resource: &'static dyn AnyResource) -> JoinHandle<Result<(), crate::BoxError>> {
        let _entered = self.runtime.enter();
        self.runtime.spawn(resource.close(&self.env))
    }

    /// Waits for the end of something, no longer than until then.
    fn end<T>(&self, mut work: JoinHandle<T>, until: Instant, hurry: &mut impl FnMut() -> bool) -> Ended<T> {
        self.runtime.block_on(async {
            loop {
                let look = until.min(Instant::now() + LOOK);
                match tokio::time::timeout_at(look.into(), &mut work).await {
                    Ok(Ok(value)) => return Ended::Well(value),
                    Ok(Err(error)) => return Ended::Panicked(panicked(error)),
                    Err(_) if hurry() => return Ended::Hurried,
                    Err(_) if Instant::now() >= until => {
                        work.abort();
                        return Ended::Left;
                    }
                    Err(_) => {}
                }
            }
        })
    }
}

/// How something ended that is not waited for without a limit.
enum Ended<T> {
    Well(T),
    Panicked(crate::BoxError),
    /// It takes too long.
    Left,
    /// Nothing is to be waited for.
    Hurried,
}

fn panicked(error: tokio::task::JoinError) -> crate::BoxError {
    let message = match error.try_into_panic() {
        Ok(panic) => match panic.downcast::<String>() {
            Ok(message) => *message,
            Err(panic) => {
                panic.downcast::<&'static str>().map_or("(no message)".into(), |text| (*text).to_owned())
            }
        },
        Err(_) => "it was cancelled".into(),
    };
    format!("its code panicked: {message}").into()
}
