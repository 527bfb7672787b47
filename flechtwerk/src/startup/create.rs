//! Makes what the checks found missing, after all of them have passed.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use super::{Asker, Chosen, INTERRUPTED, Problem, Program, Ready, check};
use crate::port::{Cluster, NewTopic};
use crate::settings::Settings;

/// How long a new topic may take until every broker knows it.
const VISIBLE: Duration = Duration::from_secs(30);
/// Until the next look.
const AGAIN: Duration = Duration::from_millis(50);

/// A changelog to make: compacted, with exactly the inputs' count (S7.3).
pub(crate) fn new_changelog(name: &Arc<str>, partitions: i32, replication_factor: i32) -> NewTopic {
    let config = [("cleanup.policy".to_owned(), "compact".to_owned())].into();
    NewTopic { name: name.clone(), partitions, replication_factor, config }
}

/// A topic of a table or of configs to make: compacted, so that each key's last record stays.
pub(crate) fn new_table(name: &Arc<str>, partitions: i32, replication_factor: i32) -> NewTopic {
    new_changelog(name, partitions, replication_factor)
}

/// Any other topic to make; -1 stands for the cluster's default.
pub(crate) fn new_topic(name: &Arc<str>, partitions: i32, replication_factor: i32) -> NewTopic {
    NewTopic { name: name.clone(), partitions, replication_factor, config: Default::default() }
}

/// Creates what is missing and checks again: what another instance made at the same moment must hold as well.
pub(crate) fn create(
    ready: Ready,
    stages: &[Chosen],
    settings: &Settings,
    cluster: &dyn Cluster,
    program: &Program,
) -> Result<Ready, Vec<Problem>> {
    if ready.missing.is_empty() {
        return Ok(ready);
    }
    let asker = Asker::new(cluster, settings);
    make(&ready.missing, &asker)?;
    let until = Instant::now() + VISIBLE;
    loop {
        let ready = check(stages, settings, cluster, program)?;
        let Some(topic) = ready.missing.first() else { return Ok(ready) };
        // Another broker has answered, which does not know the topic yet. Without its id a stage would run without a
        // changelog, and lose its state.
        if Instant::now() >= until || INTERRUPTED.load(SeqCst) {
            return Err(vec![Problem {
                what: format!("topic `{}` was created and is not visible", topic.name),
                place: format!("cluster {}", asker.address()),
                why: "some broker of the cluster does not know it yet".into(),
                mend: "start again, or see whether somebody deletes it".into(),
            }]);
        }
        std::thread::sleep(AGAIN);
    }
}

/// Creates topics; those that exist are left as they are.
pub(crate) fn make(topics: &[NewTopic], asker: &Asker<'_>) -> Result<(), Vec<Problem>> {
    for topic in topics {
        tracing::info!(topic = %topic.name, partitions = topic.partitions, "creating topic");
    }
    let failed = |name: &str, error| {
        Problem {
        what: format!("topic `{name}` can't be created: {error}"),
        place: format!("cluster {}", asker.address()),
        why: String::new(),
        mend: "see the permissions of this user and the number of brokers, or have the topic made by whoever may".into(),
    }
    };
    match asker.ask(|cluster, left| cluster.create_topics(topics, left)) {
        Err(error) => Err(topics.iter().map(|topic| failed(&topic.name, error.clone())).collect()),
        Ok(results) => {
            let failures = results
                .into_iter()
                .filter_map(|(name, result)| result.err().map(|error| failed(&name, error)));
            let failures: Vec<Problem> = failures.collect();
            if failures.is_empty() { Ok(()) } else { Err(failures) }
        }
    }
}
