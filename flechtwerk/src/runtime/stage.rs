//! One stage instance: its membership in the group, and the tasks that the assignment gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::context::StageContext;
use super::control::Control;
use super::error::Failure;
use super::host;
use super::{incomplete, messages, task, token};
use crate::duration::duration_text;
use crate::observe::Health;
use crate::observe::names;
use crate::port::{BrokerError, ErrorKind, GroupEvent, TopicPartition};

/// A task number that not all inputs give to this instance is waited for this long (S2.1).
const INCOMPLETE_LIMIT: Duration = Duration::from_secs(60);
/// How long the cluster is asked whether a topic is there.
const DESCRIBE_LIMIT: Duration = Duration::from_secs(5);
/// After a lost session the next assignment is waited for at least this long, however short `broker_timeout` is: the
/// group may have to wait for a member that died.
const LEAST_REJOIN_LIMIT: Duration = Duration::from_secs(20);

/// What reaches the supervisor.
pub(super) enum Notice {
    Group {
        stage: usize,
        event: GroupEvent,
    },
    Ended {
        stage: usize,
        partition: i32,
    },
    Running {
        stage: usize,
        partition: i32,
        running: bool,
    },
    Failed(Failure),
    /// SIGTERM or SIGINT.
    Stop,
}

/// A task's line to the supervisor.
#[derive(Clone)]
pub(super) struct Notices {
    pub(super) stage: usize,
    pub(super) sender: Sender<Notice>,
}

impl Notices {
    // The supervisor outlives its tasks; if it is gone, so is the process.
    pub(super) fn failed(&self, failure: Failure) {
        let _ = self.sender.send(Notice::Failed(failure));
    }

    pub(super) fn running(&self, partition: i32, running: bool) {
        let _ = self.sender.send(Notice::Running { stage: self.stage, partition, running });
    }
}

struct Handed {
    controls: UnboundedSender<Control>,
    /// It was told to end; the next task of this number starts when it has.
    ending: bool,
}

/// See the module.
pub(super) struct StageInstance {
    context: Arc<StageContext>,
    notices: Notices,
    runtime: Handle,
    health: Health,
    tasks: BTreeMap<i32, Handed>,
    /// Task numbers that the assignment gives us for every input.
    assigned: BTreeSet<i32>,
    /// Numbers that it gives us for some inputs only, and since when.
    incomplete: BTreeMap<i32, Instant>,
    running: BTreeSet<i32>,
    pending: bool,
    /// Since when the session is lost and no assignment has come.
    lost: Option<Instant>,
    /// Since when an input may have been gone.
    unknown: Option<Instant>,
    stopping: bool,
}

impl StageInstance {
    pub(super) fn new(
        context: Arc<StageContext>,
        notices: Notices,
        runtime: Handle,
        health: Health,
    ) -> StageInstance {
        StageInstance {
            context,
            notices,
            runtime,
            health,
            tasks: BTreeMap::new(),
            assigned: BTreeSet::new(),
            incomplete: BTreeMap::new(),
            running: BTreeSet::new(),
            pending: false,
            lost: None,
            unknown: None,
            stopping: false,
        }
    }

    pub(super) fn context(&self) -> &Arc<StageContext> {
        &self.context
    }

    /// Takes what happened to the membership.
    pub(super) fn group(&mut self, event: GroupEvent) -> Result<(), Failure> {
        let stage = self.context.info.name;
        match event {
            GroupEvent::Assigned(partitions) => {
                crash_point!(BeforeAssign);
                self.assign(&partitions)?;
                crash_point!(AfterAssign);
            }
            GroupEvent::Revoked => {
                tracing::debug!(stage, "the group rebalances");
                self.pending = true;
                self.tell_all(Control::Revoked);
                crash_point!(AfterRevoke);
            }
            GroupEvent::Lost if flawed!(TaskKeptWhenLost) => self.pending = true,
            GroupEvent::Lost => {
                tracing::warn!(stage, "the session expired: all partitions are lost");
                self.pending = true;
                self.lost = Some(host::now());
                self.assigned.clear();
                self.incomplete.clear();
                self.tell_all(Control::Lost);
                self.tasks.values_mut().for_each(|task| task.ending = true);
            }
            GroupEvent::UnknownTopic => {
                tracing::debug!(stage, "an input is not known to the broker");
                self.unknown.get_or_insert_with(host::now);
            }
            GroupEvent::Failed(error) if error.kind == ErrorKind::FencedInstance => {
                return Err(instance_fenced(&self.context, &error));
            }
            GroupEvent::Failed(error) => {
                return Err(Failure::broker(stage, "stay a member of the group", &error));
            }
        }
        self.report_health();
        Ok(())
    }

    fn assign(&mut self, partitions: &[TopicPartition]) -> Result<(), Failure> {
        let stage = self.context.info.name;
        let mut by_number: BTreeMap<i32, BTreeSet<&str>> = BTreeMap::new();
        for one in partitions {
            by_number.entry(one.partition).or_default().insert(&one.topic);
        }
        let inputs = self.context.names.leases.len();
        let (complete, incomplete): (Vec<i32>, Vec<i32>) = {
            let (full, part): (Vec<_>, Vec<_>) =
                by_number.iter().partition(|(_, topics)| topics.len() == inputs);
            (full.into_iter().map(|(n, _)| *n).collect(), part.into_iter().map(|(n, _)| *n).collect())
        };
        if let Some(changelog) = &self.context.changelog
            && let Some(number) = complete.iter().find(|number| **number >= changelog.partitions)
        {
            return Err(Failure::new(format!(
                "stage {stage}: partition {number} of the inputs has no partition in changelog {}, which has {}: \
                 partitions were added to the inputs, and the state of keys that move to new partitions would be \
                 lost; repartitioning needs a migration of the state: `reset` the stage to compute it anew, or \
                 give the stage an application id of its own",
                changelog.topic, changelog.partitions
            )));
        }
        // Where there are cursors, the changelog has told.
        if let Some(configs) = &self.context.configs
            && let Some(number) = complete.iter().find(|number| **number >= configs.tokens())
        {
            return Err(Failure::new(format!(
                "stage {stage}: partition {number} of the config topics is assigned, which had {} partitions when this process \
                 started; {}",
                configs.tokens(),
                messages::configs_grown(&self.context.names)
            )));
        }
        self.pending = false;
        self.lost = None;
        self.assigned = complete.into_iter().collect();
        let now = host::now();
        let before = std::mem::take(&mut self.incomplete);
        for number in incomplete {
            names::incomplete_tasks(stage).increment(1);
            tracing::warn!(
                stage,
                partition = number,
                "not every input's partition of this number is assigned here: the task does not start"
            );
            self.incomplete.insert(number, before.get(&number).copied().unwrap_or(now));
        }
        tracing::info!(stage, partitions = ?self.assigned, "assigned");
        for (number, task) in &mut self.tasks {
            if task.ending {
                continue;
            }
            let mine = self.assigned.contains(number) || flawed!(TaskKeptWhenLost);
            task.ending = !mine;
            // A task that has just ended by itself hears nothing any more.
            let _ = task.controls.send(Control::Assigned { mine });
        }
        self.start_missing();
        Ok(())
    }

    /// Starts a task for every assigned number that has none.
    fn start_missing(&mut self) {
        if self.pending || self.stopping {
            return;
        }
        for number in &self.assigned {
            if self.tasks.contains_key(number) {
                continue;
            }
            names::task_begins(self.context.info.name, &self.context.names.inputs, *number);
            let (controls, receiver) = unbounded_channel();
            self.tasks.insert(*number, Handed { controls, ending: false });
            let (context, notices, number) = (self.context.clone(), self.notices.clone(), *number);
            let stage = self.context.info.name;
            let (extracts, told) = (context.info.extractor.is_some(), notices.clone());
            let ended = move |died: bool| {
                if died {
                    notices.failed(Failure::new(format!(
                        "stage {stage}: the task of partition {number} died of an error in Flechtwerk itself; please \
                         report it with the panic message above"
                    )));
                }
                let _ = notices.sender.send(Notice::Ended { stage: notices.stage, partition: number });
            };
            match extracts {
                false => host::spawn(&self.runtime, task::run(context, number, receiver, told), ended),
                true => host::spawn(&self.runtime, token::run(context, number, receiver, told), ended),
            }
        }
    }

    /// A task has ended, with its thread, producer and store.
    pub(super) fn ended(&mut self, partition: i32) {
        self.tasks.remove(&partition);
        self.running.remove(&partition);
        names::task_gone(self.context.info.name, &self.context.names.inputs, partition);
        if self.context.info.takes_timers() {
            names::timers_pending(self.context.info.name, partition).set(0.0);
        }
        self.start_missing();
        self.report_health();
    }

    pub(super) fn running(&mut self, partition: i32, running: bool) {
        if running {
            self.running.insert(partition);
        } else {
            self.running.remove(&partition);
        }
        self.report_health();
    }

    fn report_health(&self) {
        self.health.update(self.context.info.name, self.assigned.len(), self.running.len());
    }

    /// Looks for what only time tells.
    pub(super) fn tick(&mut self) -> Result<(), Failure> {
        self.check_inputs()?;
        let stage = self.context.info.name;
        if let Some((partition, place)) = self.context.watchdog.overdue(self.context.limits.max_batch_time) {
            let what = if self.context.info.extractor.is_some() { "token" } else { "partition" };
            return Err(Failure::new(format!(
                "stage {stage}: the function has not finished within max_batch_time ({}) for {what} {partition}, \
                 {place}; find what it waits for, or raise --max-batch-time",
                humantime::format_duration(self.context.limits.max_batch_time)
            )));
        }
        let limit = self.context.limits.broker_timeout.max(LEAST_REJOIN_LIMIT);
        if self.lost.is_some_and(|since| host::since(since) > limit) {
            return Err(Failure::new(format!(
                "stage {stage}: the session in group {} is lost, and no assignment has come within --broker-timeout \
                 ({}); see whether the brokers are up and can be reached, then start again",
                self.context.names.application_id,
                humantime::format_duration(limit)
            )));
        }
        if let Some((number, _)) =
            self.incomplete.iter().find(|(_, since)| host::since(**since) > INCOMPLETE_LIMIT)
        {
            return Err(incomplete::failure(&self.context, *number));
        }
        Ok(())
    }

    /// An input that the broker does not know for `broker_timeout` was deleted: without it the stage has nothing to do, and
    /// would look as if it were well.
    fn check_inputs(&mut self) -> Result<(), Failure> {
        let limit = self.context.limits.broker_timeout;
        if self.unknown.is_none_or(|since| host::since(since) < limit) {
            return Ok(());
        }
        // Nobody says when a topic is known again, so it is asked for.
        self.unknown = None;
        for topic in &self.context.names.leases {
            match self.context.inputs.topic_id(topic, DESCRIBE_LIMIT) {
                Ok(_) => {}
                Err(error) if error.is_unknown_topic() => {
                    return Err(Failure::new(format!(
                        "stage {}: input topic {topic} has not been there for --broker-timeout ({}); it was there when this \
                         process started, so somebody has deleted it; `check` says what to do",
                        self.context.info.name,
                        duration_text(limit)
                    )));
                }
                // Whether it is there is not known: another time.
                Err(_) => self.unknown = Some(host::now()),
            }
        }
        Ok(())
    }

    /// Stops all tasks: committing what was computed, or starting no further commit.
    pub(super) fn stop(&mut self, clean: bool) {
        self.stopping = true;
        self.tell_all(if clean { Control::Stop } else { Control::Halt });
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.tasks.is_empty()
    }

    fn tell_all(&self, control: Control) {
        for task in self.tasks.values() {
            let _ = task.controls.send(control);
        }
    }
}

/// S5.2: no redo, no new fence.
pub(super) fn instance_fenced(context: &StageContext, error: &BrokerError) -> Failure {
    let id = context.instance_id.as_deref().unwrap_or_default();
    Failure::new(format!(
        "stage {}: another process has joined the group under the same --instance-id {id} ({error}); give each \
         instance an id of its own",
        context.info.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S10.3f: whoever leases a partition that was not there when the configs were read would poll nothing for it.
    #[cfg(feature = "kafka")]
    #[test]
    fn a_token_beyond_the_configs_stops_the_stage() {
        use super::super::configs::Configs;
        use super::super::testing::{Cluster, context, limits};
        use crate::demo::{Described, POLL_BOTH};
        use crate::observe::Health;

        static STAGE: Described = Described(&POLL_BOTH);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut context = context(&STAGE, &Cluster::default(), limits());
        assert!(context.changelog.is_none(), "nothing else has a number to compare");
        context.configs = Some(Configs::of_none(&STAGE, &context.names, 2));
        let (sender, _notices) = std::sync::mpsc::channel();
        let notices = Notices { stage: 0, sender };
        let mut stage =
            StageInstance::new(Arc::new(context), notices, runtime.handle().clone(), Health::default());
        let leases = stage.context.names.leases.iter();
        let at = leases.map(|topic| TopicPartition { topic: topic.clone(), partition: 2 });
        let assigned = GroupEvent::Assigned(at.collect());
        let failure = stage.group(assigned).expect_err("a failure").message;
        for text in
            ["partition 2 of the config topics", "had 2 partitions", "start all instances of the stage again"]
        {
            assert!(failure.contains(text), "{text:?} in {failure}");
        }
        assert!(stage.is_stopped(), "no task began");
    }
}
