//! Starts the stage instances of a process, hands events to them, and ends them: cleanly on a signal, or after a
//! failure (S6.1, S11.4).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

#[cfg(feature = "kafka")]
use super::configs;
use super::configs::Loaded;
use super::context::{Changelog, Limits, StageContext};
use super::error::{Failure, RunError};
use super::host;
#[cfg(feature = "kafka")]
use super::input_watch::InputWatch;
use super::lag;
use super::messages;
use super::stage::{Notice, Notices, StageInstance};
use super::tables::{TablePlan, Tables};
use super::watchdog::Watchdog;
use crate::duration::duration_text;
use crate::glue::{AnyStage, Env};
use crate::naming::StageNames;
use crate::observe::{Health, Restores};
use crate::port::{Clients, ReaderKind, Schemas, StoreFactory};
#[cfg(feature = "kafka")]
use crate::resource::Pool;

/// How often the supervisor looks for what only time tells.
const TICK: Duration = Duration::from_millis(200);
/// After a failure, commits in flight are awaited this long (S6.1).
const FAILURE_LIMIT: Duration = Duration::from_secs(10);
/// Tasks whose time is up, or which are to end at once, have this long to let go.
const LET_GO_LIMIT: Duration = Duration::from_secs(1);
/// Time to leave a group once its tasks have ended.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
/// Time to close the clients once the groups are left. These three limits are what a stop may take beyond
/// `shutdown_timeout`: 10 seconds (S11.4), and what tables and resources take to close comes on top.
const CLOSE_LIMIT: Duration = Duration::from_secs(4);

/// One stage to run, with what the startup checks have found.
pub(crate) struct StagePlan {
    pub(crate) stage: &'static dyn AnyStage,
    pub(crate) names: StageNames,
    pub(crate) changelog: Option<Changelog>,
    /// Of each input, and of the changelog.
    pub(crate) partitions: i32,
    /// In the order of [`StageNames::tables`].
    pub(crate) tables: Vec<TablePlan>,
}

/// What to run, and by what.
pub(crate) struct Plan {
    pub(crate) stages: Vec<StagePlan>,
    pub(crate) instance_id: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) stay_in_group: bool,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) clients: Arc<dyn Clients>,
    pub(crate) stores: Arc<dyn StoreFactory>,
    /// Where schemas come from that records name; `None` without a registry.
    pub(crate) schemas: Option<Arc<dyn Schemas>>,
    pub(crate) health: Health,
    pub(crate) restores: Restores,
}

/// Asks a running pipeline to stop cleanly; a second time: at once.
#[derive(Clone)]
pub(crate) struct Stopper(Sender<Notice>);

impl Stopper {
    pub(crate) fn stop(&self) {
        // A supervisor that is gone has stopped.
        let _ = self.0.send(Notice::Stop);
    }
}

#[cfg(feature = "kafka")]
/// Runs until it is told to stop or something fails, in the runtime of the resources, which it closes. `started` gets the means to stop it.
pub(crate) fn run(plan: Plan, pool: Pool, started: impl FnOnce(Stopper)) -> Result<(), RunError> {
    let (sender, notices) = channel();
    started(Stopper(sender.clone()));
    let (stay, shutdown_timeout) = (plan.stay_in_group, plan.shutdown_timeout);
    let (mut tables, mut stages, mut lag) = (Tables::default(), Vec::new(), None);
    let result = work(plan, &pool, &sender, &notices, &mut tables, &mut stages, &mut lag);
    let ended = end_all(result, &mut stages, &notices, shutdown_timeout);
    leave(&stages, stay && ended.is_ok());
    tables.stop();
    // Nobody holds them any more then, so that each is dropped when it is its turn, and while the runtime is there.
    stages.iter().for_each(|stage| stage.context().shared.let_go());
    let hurried = pool.close(|| is_stopped_again(&notices));
    close(stages, lag);
    let ended = ended.and_then(|()| if hurried { Err(second_signal()) } else { Ok(()) });
    ended.map_err(|failure| RunError(failure.message))
}

/// The same in a simulated process: without tables, resources and what only observes.
#[cfg(feature = "simulation")]
pub(crate) fn run_simulated(
    plan: Plan,
    runtime: &Handle,
    started: impl FnOnce(Stopper),
) -> Result<(), RunError> {
    let (sender, notices) = channel();
    started(Stopper(sender.clone()));
    let (stay, shutdown_timeout) = (plan.stay_in_group, plan.shutdown_timeout);
    let (tables, mut stages) = (Tables::default(), Vec::new());
    let loaded = plan.stages.iter().map(|_| None).collect();
    let result = start_stages(plan, (&Env::default(), runtime), &sender, &tables, loaded, &mut stages)
        .and_then(|()| supervise(&mut stages, &notices));
    let ended = end_all(result, &mut stages, &notices, shutdown_timeout);
    leave(&stages, stay && ended.is_ok());
    ended.map_err(|failure| RunError(failure.message))
}

/// Ends all stages, cleanly if nothing has failed.
pub(super) fn end_all(
    result: Result<(), Failure>,
    stages: &mut [StageInstance],
    notices: &Receiver<Notice>,
    shutdown_timeout: Duration,
) -> Result<(), Failure> {
    match result {
        Ok(()) => {
            let until = host::now() + shutdown_timeout;
            end(stages, notices, Some(shutdown_timeout), until).map_err(|unclean| {
                // What fails in the middle of a clean stop is a failure like any other, but for the time there is.
                let now = host::now();
                let most = until.max(now + LET_GO_LIMIT).min(now + FAILURE_LIMIT);
                let until = if unclean.at_once { now + LET_GO_LIMIT } else { most };
                let _ = end(stages, notices, None, until);
                unclean.failure
            })
        }
        Err(failure) => {
            let _ = end(stages, notices, None, host::now() + FAILURE_LIMIT);
            Err(failure)
        }
    }
}

#[cfg(feature = "kafka")]
/// A further signal has come: nothing is waited for any more.
fn is_stopped_again(notices: &Receiver<Notice>) -> bool {
    notices.try_iter().any(|notice| {
        if let Notice::Failed(failure) = &notice {
            tracing::error!("{}", failure.message);
        }
        matches!(notice, Notice::Stop)
    })
}

#[cfg(feature = "kafka")]
/// Closes all clients. One that takes too long is left behind: the process ends, and nothing is lost by that.
fn close(stages: Vec<StageInstance>, lag: Option<lag::Observer>) {
    let (closed, wait) = channel();
    std::thread::spawn(move || {
        drop((stages, lag));
        let _ = closed.send(());
    });
    if wait.recv_timeout(CLOSE_LIMIT).is_err() {
        tracing::warn!("the Kafka clients have not closed in time and are left behind");
    }
}

#[cfg(feature = "kafka")]
/// From the tables to the end.
fn work(
    plan: Plan,
    pool: &Pool,
    sender: &Sender<Notice>,
    notices: &Receiver<Notice>,
    tables: &mut Tables,
    stages: &mut Vec<StageInstance>,
    lag: &mut Option<lag::Observer>,
) -> Result<(), Failure> {
    tables.start(&plan, sender)?;
    if !tables_are_read(tables, notices)? {
        return Ok(());
    }
    // Before any group is joined: a token that starts finds all its configs (S10.5).
    let Some(loaded) = configs::load(&plan, sender, notices)? else { return Ok(()) };
    start_stages(plan, (pool.env(), pool.runtime()), sender, tables, loaded, stages)?;
    let contexts: Vec<_> = stages.iter().map(|stage| stage.context().clone()).collect();
    let failed = sender.clone();
    let _inputs = InputWatch::start(contexts.clone(), move |failure| {
        let _ = failed.send(Notice::Failed(failure));
    });
    *lag = Some(lag::Observer::start(contexts));
    supervise(stages, notices)
}

/// Waits until every table is whole; false if a stop was asked for meanwhile.
fn tables_are_read(tables: &Tables, notices: &Receiver<Notice>) -> Result<bool, Failure> {
    while !tables.are_read() {
        match notices.recv_timeout(TICK) {
            Ok(Notice::Failed(failure)) => return Err(failure),
            Ok(Notice::Stop) => return Ok(false),
            _ => {}
        }
    }
    Ok(true)
}

fn start_stages(
    plan: Plan,
    (env, runtime): (&Env, &Handle),
    sender: &Sender<Notice>,
    tables: &Tables,
    loaded: Vec<Option<Loaded>>,
    stages: &mut Vec<StageInstance>,
) -> Result<(), Failure> {
    for ((index, one), loaded) in plan.stages.into_iter().enumerate().zip(loaded) {
        let info = one.stage.info();
        let application_id = one.names.application_id.clone();
        let failed = |what: &str, error| Failure::broker(info.name, what, &error);
        if one.changelog.is_some() {
            plan.stores.hold(&application_id).map_err(|error| messages::store_failure(info.name, &error))?;
        }
        let (inputs, configs) = match loaded {
            Some(Loaded { reader, configs }) => (reader, Some(configs)),
            None => {
                let reader =
                    plan.clients.reader(&application_id, ReaderKind::Inputs { headers: info.headers });
                (reader.map_err(|error| failed("make a reader", error))?, None)
            }
        };
        let changelogs = match &one.changelog {
            Some(_) => Some(
                plan.clients
                    .reader(&application_id, ReaderKind::Changelogs)
                    .map_err(|error| failed("make a reader", error))?,
            ),
            None => None,
        };
        let notices = Notices { stage: index, sender: sender.clone() };
        let events = sender.clone();
        crash_point!(BeforeJoin);
        let group = plan
            .clients
            .join(
                &application_id,
                &one.names.leases,
                Box::new(move |event| {
                    let _ = events.send(Notice::Group { stage: index, event });
                }),
            )
            .map_err(|error| failed("join the group", error))?;
        crash_point!(AfterJoin);
        warm_up(&inputs, one.names.leases.clone());
        if let (Some(reader), Some(changelog)) = (&changelogs, &one.changelog) {
            warm_up(reader, vec![changelog.topic.clone()]);
        }
        let env = env.clone().for_inputs(one.names.inputs.clone());
        let context = Arc::new(StageContext {
            stage: one.stage,
            info,
            names: one.names,
            changelog: one.changelog,
            instance_id: plan.instance_id.clone(),
            limits: plan.limits,
            shared: tables.of(info, env),
            group,
            inputs,
            changelogs,
            producers: plan.clients.producers(),
            stores: plan.stores.clone(),
            schemas: plan.schemas.clone(),
            watchdog: Watchdog::default(),
            progress: plan.restores.clone(),
            positions: lag::Positions::default(),
            configs,
            polls: Arc::new(Semaphore::new(plan.limits.max_concurrent_polls.min(Semaphore::MAX_PERMITS))),
        });
        stages.push(StageInstance::new(context, notices, runtime.clone(), plan.health.clone()));
    }
    Ok(())
}

/// Connects ahead of need, while the group forms.
fn warm_up(reader: &Arc<dyn crate::port::Reader>, topics: Vec<Arc<str>>) {
    let reader = reader.clone();
    // Without it the first requests take a little longer.
    let _ = host::thread("warm-up".into(), move || reader.warm_up(&topics, Duration::from_secs(5)));
}

/// Hands notices on until a stop or a failure.
fn supervise(stages: &mut [StageInstance], notices: &Receiver<Notice>) -> Result<(), Failure> {
    loop {
        match host::receive(notices, TICK) {
            Ok(Notice::Group { stage, event }) => stages[stage].group(event)?,
            Ok(Notice::Ended { stage, partition }) => stages[stage].ended(partition),
            Ok(Notice::Running { stage, partition, running }) => stages[stage].running(partition, running),
            Ok(Notice::Failed(failure)) => return Err(failure),
            Ok(Notice::Stop) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        for stage in stages.iter_mut() {
            stage.tick()?;
        }
    }
}

fn second_signal() -> Failure {
    Failure::new("stopped at once by a second signal")
}

/// Why a clean stop is none.
struct Unclean {
    failure: Failure,
    /// A second signal: nothing is waited for any more.
    at_once: bool,
}

impl From<Failure> for Unclean {
    fn from(failure: Failure) -> Unclean {
        Unclean { failure, at_once: false }
    }
}

/// Ends all tasks: their groups are still polled, so that a rebalance on the way is answered. A clean end names the
/// setting that limits it.
fn end(
    stages: &mut [StageInstance],
    notices: &Receiver<Notice>,
    clean: Option<Duration>,
    until: Instant,
) -> Result<(), Unclean> {
    // After a failure a further one, of a task or of a membership, does not cut short what is awaited.
    let failed = |failure: Failure| match clean {
        Some(_) => Err(Unclean::from(failure)),
        None => {
            tracing::error!("{}", failure.message);
            Ok(())
        }
    };
    stages.iter_mut().for_each(|stage| stage.stop(clean.is_some()));
    while !stages.iter().all(StageInstance::is_stopped) {
        let left = until.saturating_duration_since(host::now());
        if left.is_zero() {
            return match clean {
                Some(limit) => Err(Failure::new(format!(
                    "the tasks have not ended within --shutdown-timeout ({}): what was in flight is taken up again \
                     at the next start",
                    duration_text(limit)
                ))
                .into()),
                None => Ok(()),
            };
        }
        match host::receive(notices, left.min(TICK)) {
            Ok(Notice::Group { stage, event }) => {
                if let Err(failure) = stages[stage].group(event) {
                    failed(failure)?;
                }
            }
            Ok(Notice::Ended { stage, partition }) => stages[stage].ended(partition),
            Ok(Notice::Running { stage, partition, running }) => stages[stage].running(partition, running),
            Ok(Notice::Failed(failure)) => failed(failure)?,
            Ok(Notice::Stop) => {
                return Err(Unclean { failure: second_signal(), at_once: true });
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// Leaves all groups at once.
fn leave(stages: &[StageInstance], stay: bool) {
    let leave = |stage: &StageInstance| {
        if let Err(error) = stage.context().group.leave(stay, LEAVE_LIMIT) {
            tracing::warn!(stage = stage.context().info.name, "the group was not left: {error}");
        }
    };
    if let [stage] = stages {
        return leave(stage);
    }
    std::thread::scope(|scope| {
        for stage in stages {
            scope.spawn(move || leave(stage));
        }
    });
}
