//! `reset`: lets stages begin anew (S11.1).
//!
//! The order is what makes it safe to cut short at any point: the mark is committed first and cleared last, and no
//! stage starts while it stands. Repeating does everything again, which is the same as doing it once.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::asked::Reset;
use crate::port::{Committed, OffsetCommit, Stability, TopicDescription, TopicPartition};
use crate::startup::{Asker, Chosen, Problem, Program, committed_of, make, new_changelog};
use crate::task::RESETTING;
use crate::text_table::table;

/// Where a stage begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// At the oldest record there is.
    Beginning,
    /// At the first record of this time or later, in milliseconds since the epoch.
    Time(i64),
}

impl To {
    pub(super) fn parse(text: &str) -> Option<To> {
        if text == "beginning" {
            return Some(To::Beginning);
        }
        let time = humantime::parse_rfc3339_weak(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(time.as_millis()).ok().map(To::Time)
    }

    /// The time, if it has not come yet.
    fn ahead(self, now: SystemTime) -> Option<SystemTime> {
        self.time().filter(|time| *time > now)
    }

    fn time(self) -> Option<SystemTime> {
        match self {
            To::Beginning => None,
            To::Time(millis) => Some(UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).ok()?)),
        }
    }
}

/// What a reset of one stage will do.
struct Plan<'a> {
    stage: &'a Chosen,
    partitions: i32,
    /// As committed now, and the offset to commit.
    moves: Vec<(Committed, i64)>,
    changelog: Option<(Arc<str>, Option<TopicDescription>)>,
}

/// Shows what it would do, or does it and shows what it did.
pub(super) fn reset(
    args: Reset,
    stages: &[Chosen],
    asker: &Asker<'_>,
    program: &Program,
) -> Result<String, Vec<Problem>> {
    asker.answers().map_err(|problem| vec![problem])?;
    let topics = asker.topics(stages).map_err(|problem| vec![problem])?;
    let (mut plans, mut problems) = (Vec::new(), Vec::new());
    for stage in stages {
        match plan(stage, args.to, &topics, asker) {
            Ok(plan) => plans.push(plan),
            Err(more) => problems.extend(more),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut text = plans.iter().map(shown).collect::<Vec<_>>().join("\n");
    if let Some(time) = args.to.ahead(SystemTime::now()) {
        text += &format!(
            "\nwarning: {} lies ahead, so no record is that late yet: NEW is the end of each partition, and all\n\
             records there are now will be skipped\n",
            humantime::format_rfc3339_seconds(time)
        );
    }
    if args.execute {
        for plan in &plans {
            perform(plan, args.replication_factor, asker)
                .map_err(|problem| vec![cut_short(problem, plan, args, program)])?;
        }
        text += "\ndone; outputs that the stages have written before are still in their topics\n";
    } else {
        text += "\nnothing was changed; add --execute to do it\n";
    }
    Ok(text)
}

fn plan<'a>(
    stage: &'a Chosen,
    to: To,
    topics: &std::collections::BTreeMap<Arc<str>, TopicDescription>,
    asker: &Asker<'_>,
) -> Result<Plan<'a>, Vec<Problem>> {
    let names = &stage.names;
    let place = format!("stage `{}`, group `{}`", names.stage, names.group());
    nobody_home(stage, &place, asker).map_err(|problem| vec![problem])?;
    let counts: Vec<Option<i32>> =
        names.inputs.iter().map(|topic| topics.get(topic).map(|found| found.partitions)).collect();
    let partitions = match counts.as_slice() {
        // An extractor without config topics has one token.
        [] => 1,
        [Some(first), rest @ ..] if rest.iter().all(|count| *count == Some(*first)) => *first,
        _ => {
            return Err(vec![Problem {
                what: "the inputs don't all exist with one number of partitions".into(),
                place,
                why: "the changelog is made anew with as many".into(),
                mend: "mend what `check` says about them first".into(),
            }]);
        }
    };
    // Stable offsets: what a dead owner's transaction may still commit is waited for, or it would undo the reset.
    let committed = committed_of(asker, names, Stability::Stable, |topic| match topics.contains_key(topic) {
        true => partitions,
        // Only the changelog of an extractor may be missing here: there is nothing to mark.
        false => 0,
    })
    .map_err(|problem| vec![problem])?;
    let mut moves = Vec::new();
    for committed in committed {
        let offset = match stage.info.extractor {
            // A lease, which is no position.
            Some(_) => 0,
            None => new_offset(to, &committed.at, asker).map_err(|problem| vec![problem])?,
        };
        moves.push((committed, offset));
    }
    let changelog = names.changelog.clone().map(|name| {
        let found = topics.get(&name).cloned();
        (name, found)
    });
    Ok(Plan { stage, partitions, moves, changelog })
}

fn nobody_home(stage: &Chosen, place: &str, asker: &Asker<'_>) -> Result<(), Problem> {
    match asker.ask(|cluster, left| cluster.group_members(stage.names.group(), left)) {
        Ok(0) => Ok(()),
        Ok(members) => Err(Problem {
            what: format!("the group still has {}", super::output::count(members, "member")),
            place: place.to_owned(),
            why: "a running instance would go on from its own positions and state".into(),
            mend: "stop all instances of the stage; one that died leaves the group after its session timeout"
                .into(),
        }),
        Err(error) => Err(asker.failed(format!("the group can't be described: {error}"), place.to_owned())),
    }
}

fn new_offset(to: To, at: &TopicPartition, asker: &Asker<'_>) -> Result<i64, Problem> {
    let offset = asker.ask(|cluster, left| match to {
        To::Beginning => cluster.watermarks(at, left).map(|marks| marks.low),
        To::Time(millis) => cluster.offset_for_time(at, millis, left),
    });
    offset.map_err(|error| asker.failed(format!("the offset can't be found: {error}"), at.to_string()))
}

fn perform(plan: &Plan<'_>, replication_factor: Option<i16>, asker: &Asker<'_>) -> Result<(), Problem> {
    let names = &plan.stage.names;
    let offsets = |metadata: &str| {
        let moved = plan.moves.iter().map(|(committed, offset)| OffsetCommit {
            at: committed.at.clone(),
            offset: *offset,
            metadata: metadata.to_owned(),
        });
        moved.collect::<Vec<_>>()
    };
    asker.commit(names.group(), &offsets(RESETTING))?;
    if let Some((changelog, found)) = &plan.changelog {
        if found.is_some() {
            let deleted =
                asker.ask(|cluster, left| cluster.delete_topics(std::slice::from_ref(changelog), left));
            deleted.map_err(|error| {
                asker.failed(
                    format!("the changelog can't be deleted: {error}"),
                    format!("topic `{changelog}`"),
                )
            })?;
        }
        let replicas = replication_factor.map_or(-1, i32::from);
        let made = make(&[new_changelog(changelog, plan.partitions, replicas)], asker);
        made.map_err(|mut problems| problems.remove(0))?;
    }
    asker.commit(names.group(), &offsets(""))
}

fn cut_short(problem: Problem, plan: &Plan<'_>, args: Reset, program: &Program) -> Problem {
    let mut again = format!("reset --stage {} --execute", plan.stage.names.stage);
    if let Some(time) = args.to.time() {
        again += &format!(" --to {}", humantime::format_rfc3339_millis(time));
    }
    if let Some(replicas) = args.replication_factor {
        again += &format!(" --replication-factor {replicas}");
    }
    Problem {
        why: "the reset was cut short: the stage will not start before it is repeated".into(),
        mend: format!("{}; then repeat\n{}", problem.mend, program.command(&again)),
        ..problem
    }
}

fn shown(plan: &Plan<'_>) -> String {
    let names = &plan.stage.names;
    let mut text = format!("stage {}, group {}\n", names.stage, names.group());
    let rows = plan.moves.iter().map(|(committed, offset)| {
        let now = committed.offset.map_or_else(|| "none".to_owned(), |offset| offset.to_string());
        vec![committed.at.topic.to_string(), committed.at.partition.to_string(), now, offset.to_string()]
    });
    text += &table(&["INPUT", "PARTITION", "COMMITTED", "NEW"], rows);
    text += &match &plan.changelog {
        None => "no state\n".to_owned(),
        Some((name, None)) => format!("changelog {name}: to be made with {} partitions\n", plan.partitions),
        Some((name, Some(_))) => {
            format!(
                "changelog {name}: to be deleted with all state, and made anew with {} partitions\n",
                plan.partitions
            )
        }
    };
    text
}
