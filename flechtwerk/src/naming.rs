//! The names that a running pipeline uses in the cluster: application ids, groups, changelogs, transactional ids
//! and mapped topics (S2.2, S11.3), and the checks of names that mapping makes necessary again (S1.2).
//!
//! Every name in the cluster is made here and nowhere else, so that two places can't disagree about one.

use std::sync::Arc;

/// The names of one stage in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageNames {
    /// As in the pipeline, without namespace.
    pub(crate) stage: &'static str,
    /// Consumer group and prefix of everything else that belongs to the stage.
    pub(crate) application_id: Arc<str>,
    /// The input topics after mapping, in the order of [`StageInfo::inputs`].
    pub(crate) inputs: Vec<Arc<str>>,
    /// The output topics after mapping, in the order of [`StageInfo::outputs`].
    pub(crate) outputs: Vec<Arc<str>>,
    /// Where the stage keeps state.
    pub(crate) changelog: Option<Arc<str>>,
}

impl StageNames {
    /// The consumer group.
    pub(crate) fn group(&self) -> &Arc<str> {
        &self.application_id
    }

    /// The static transactional id of the task with this partition number.
    pub(crate) fn transactional_id(&self, partition: i32) -> String {
        format!("{}-{partition}", self.application_id)
    }
}
