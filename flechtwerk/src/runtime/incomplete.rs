//! Why this instance is not given a task number for every input of a stage: the inputs have different numbers of partitions by
//! now (S5.5c), or members of the group subscribe to different topics (S2.1e).

use std::sync::Arc;
use std::time::Duration;

use super::context::StageContext;
use super::error::Failure;
use crate::naming::StageNames;
use crate::port::BrokerError;

/// How long the cluster is asked for each topic, and who else is in the group.
const ASK_LIMIT: Duration = Duration::from_secs(5);

/// What stops the process, since the number has lacked an input for too long.
pub(super) fn failure(context: &StageContext, number: i32) -> Failure {
    let names = &context.names;
    let counts: Result<Vec<i32>, BrokerError> =
        names.leases.iter().map(|topic| Ok(context.inputs.topic(topic, ASK_LIMIT)?.partitions)).collect();
    match counts {
        Ok(counts) if counts.windows(2).any(|two| two[0] != two[1]) => {
            unequal_partitions(names, number, &counts)
        }
        counts => {
            let members = context.group.subscriptions(ASK_LIMIT).unwrap_or_default();
            two_subscriptions(names, number, &members, counts.err())
        }
    }
}

/// S5.5c: the checks of the start have seen one number.
fn unequal_partitions(names: &StageNames, number: i32, counts: &[i32]) -> Failure {
    let each = |(topic, count): (&Arc<str>, &i32)| format!("`{topic}` has {count}");
    let each: Vec<String> = names.leases.iter().zip(counts).map(each).collect();
    Failure::new(format!(
        "stage {}: partition {number} is not assigned for every input since a minute, because partitions were added to some of \
         the inputs while this process ran: {}. All inputs of a stage must have the same number, since a task reads the \
         partition of one number of each; `check` says which of them to change, and how",
        names.stage,
        each.join(", ")
    ))
}

/// S2.1e: names both subscriptions, as far as the group tells them.
fn two_subscriptions(
    names: &StageNames,
    number: i32,
    members: &[(String, Vec<String>)],
    unasked: Option<BrokerError>,
) -> Failure {
    let mut ours: Vec<&str> = names.leases.iter().map(|topic| &**topic).collect();
    ours.sort_unstable();
    let others: Vec<String> = members
        .iter()
        .filter(|(_, topics)| *topics != ours)
        .map(|(member, topics)| format!("{member} subscribes to {}", topics.join(", ")))
        .collect();
    let group = &names.application_id;
    let (others, mend) = match others.is_empty() {
        true => (
            "another member subscribes to other topics".to_owned(),
            format!(
                "; kafka-consumer-groups.sh --bootstrap-server HOST:PORT --describe --group {group} --members --verbose \
                 shows the members"
            ),
        ),
        false => (others.join("; "), String::new()),
    };
    // Then it may be that as well.
    let unasked = unasked.map_or_else(String::new, |error| {
        format!("; whether all inputs still have the same number of partitions could not be asked: {error}")
    });
    Failure::new(format!(
        "stage {}: partition {number} is not assigned for every input since a minute. This instance subscribes to {}; in \
         the same group {group} {others}. Stop the instances with the other subscription{mend}{unasked}",
        names.stage,
        ours.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{Described, MERGE};
    use crate::port::ErrorKind;
    use crate::runtime::testing::{Cluster, context, error, limits};

    static MERGES: Described = Described(&MERGE);

    fn text(cluster: &Cluster) -> String {
        failure(&context(&MERGES, cluster, limits()), 1).message
    }

    #[test]
    fn both_subscriptions_are_named() {
        let cluster = Cluster::default();
        let alone = text(&cluster);
        assert!(alone.contains("another member subscribes to other topics. Stop the instances"), "{alone}");
        assert!(
            alone.ends_with("--describe --group demo-merge --members --verbose shows the members"),
            "{alone}"
        );
        let member = |name: &str, topics: &[&str]| {
            (name.to_owned(), topics.iter().map(|topic| (*topic).to_owned()).collect::<Vec<_>>())
        };
        let members =
            [member("demo at /10.0.0.1", &["counts", "words"]), member("old at /10.0.0.2", &["words"])];
        cluster.inside().members = members.into();
        let text = text(&cluster);
        assert!(
            text.contains(
                "This instance subscribes to counts, words; in the same group demo-merge old at /10.0.0.2 subscribes to words."
            ),
            "{text}"
        );
        assert!(text.ends_with("the other subscription"), "{text}");
    }

    /// S5.5c: nobody subscribes to anything else.
    #[test]
    fn inputs_with_different_numbers_of_partitions_are_named_with_them() {
        let cluster = Cluster::default();
        cluster.inside().partitions_of = [("words", 6), ("counts", 4)].into();
        let text = text(&cluster);
        assert!(text.contains("partition 1 is not assigned for every input since a minute"), "{text}");
        assert!(text.contains("`words` has 6, `counts` has 4"), "{text}");
        assert!(
            text.contains("All inputs of a stage must have the same number") && text.contains("`check`"),
            "{text}"
        );
        assert!(!text.contains("subscri"), "{text}");
    }

    #[test]
    fn numbers_of_partitions_that_can_not_be_asked_are_not_guessed() {
        let cluster = Cluster::default();
        cluster.inside().partitions_of = [("words", 6), ("counts", 4)].into();
        cluster.fail("topic_id", [error(ErrorKind::TimedOut)]);
        let text = text(&cluster);
        assert!(
            text.contains("another member subscribes") && text.contains("shows the members; whether all"),
            "{text}"
        );
        assert!(text.ends_with("could not be asked: as the test says (TimedOut)"), "{text}");
    }
}
