//! The resources of a process: made before anything is read, in the order in which they need each other, and closed in the
//! reverse one.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use super::Tree;
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

/// Settings of all of them that are not of their types.
pub(crate) fn check(
    resources: &[&'static dyn AnyResource],
    settings: &BTreeMap<String, Tree>,
) -> Vec<Problem> {
    let nothing = Tree::empty();
    let misfits = resources.iter().filter_map(|resource| {
        let info = resource.info();
        let given = Given { settings: settings.get(info.name).unwrap_or(&nothing), env: &Env::default() };
        Some(unmade(*resource, resource.fits(&given).err()?))
    });
    misfits.collect()
}

fn unmade(resource: &dyn AnyResource, why: Unmade) -> Problem {
    let info = resource.info();
    match why {
        Unmade::Settings(misfit) => Problem {
            what: format!(
                "the settings of resource `{}` are not what `{}` takes: {misfit}",
                info.name, info.id
            ),
            place: format!("table [resources.{}] of the settings file, and the environment", info.name),
            why: String::new(),
            mend: format!(
                "set it there, or as FLECHTWERK_RESOURCES_{}_.. (with two underscores between nested names)",
                info.name.to_uppercase()
            ),
        },
        Unmade::Failed(error) => Problem {
            what: format!("resource `{}` can't be made: {}", info.name, chain(&*error)),
            place: format!("function `{}`", info.id),
            why: "the stages that take it can't run without it".into(),
            mend: match info.settings {
                true => format!(
                    "mend what the message names; its settings are [resources.{}] and FLECHTWERK_RESOURCES_{}_..",
                    info.name,
                    info.name.to_uppercase()
                ),
                false => "mend what the message names, then start again".into(),
            },
        },
    }
}

/// The resources that were made, and the async runtime that they were made in, which is that of the stages as well.
pub(crate) struct Pool {
    runtime: Runtime,
    /// In the order in which they were made.
    made: Vec<&'static dyn AnyResource>,
    env: Env,
}

impl Pool {
    /// Makes all of `resources`, in their order. If one fails, those that were made are closed.
    pub(crate) fn make(
        resources: &[&'static dyn AnyResource],
        settings: &BTreeMap<String, Tree>,
    ) -> Result<Pool, Problem> {
        let runtime =
            Builder::new_multi_thread().thread_name("flechtwerk").enable_all().build().map_err(|error| {
                Problem {
                    what: format!("can't start the async runtime: {error}"),
                    place: "this process".into(),
                    why: String::new(),
                    mend: "see the limits of threads and memory of this process".into(),
                }
            })?;
        let mut pool = Pool { runtime, made: Vec::new(), env: Env::default() };
        let nothing = Tree::empty();
        for resource in resources {
            let name = resource.info().name;
            let begin = Instant::now();
            match pool.make_one(*resource, settings.get(name).unwrap_or(&nothing).clone()) {
                Ok(()) => {
                    tracing::info!(resource = name, "made within {} ms", begin.elapsed().as_millis());
                }
                Err(why) => {
                    pool.close();
                    return Err(unmade(*resource, why));
                }
            }
        }
        Ok(pool)
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

    /// Closes all of them, the last first, and ends the runtime. What goes wrong is logged and holds nothing up.
    pub(crate) fn close(mut self) {
        let entered = self.runtime.enter();
        while let Some(resource) = self.made.pop() {
            let name = resource.info().name;
            let closing = self.runtime.spawn(resource.close(&self.env));
            match self.runtime.block_on(async { tokio::time::timeout(CLOSE_LIMIT, closing).await }) {
                Ok(Ok(Ok(()))) => tracing::debug!(resource = name, "closed"),
                Ok(Ok(Err(error))) => {
                    tracing::warn!(resource = name, "was not closed: {}", chain(&*error));
                }
                Ok(Err(error)) => tracing::warn!(resource = name, "was not closed: {}", panicked(error)),
                Err(_) => tracing::warn!(
                    resource = name,
                    "has not closed within {} s and is left",
                    CLOSE_LIMIT.as_secs()
                ),
            }
            // Here, since what is dropped may want the runtime.
            self.env.drop_last();
        }
        drop(entered);
        self.runtime.shutdown_background();
    }
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
