//! How many kills left a transaction open behind. A run with too few of them says little: the markers in the logs tell.
//!
//! A kill has left a transaction of a task open if the next marker of that task aborts: the next owner's fence, or the
//! coordinator, ended what the killed instance could not.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::fleet::{Kill, Life};
use crate::raw::End;

/// A task: the stage's name and the partition.
pub type Task = (String, i32);

/// When a task began to run in a life of an instance, as the logs tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Began {
    /// When.
    pub at: SystemTime,
    /// Which task.
    pub task: Task,
    /// In which life.
    pub life: usize,
}

/// Reads the logs of all lives.
pub fn began(lives: &[Life]) -> Vec<Began> {
    let mut found: Vec<Began> =
        lives.iter().enumerate().flat_map(|(life, one)| of_log(life, &one.log)).collect();
    found.sort_by_key(|one| one.at);
    found
}

fn of_log(life: usize, path: &Path) -> Vec<Began> {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .filter(|line| line.contains("task is running"))
        .filter_map(|line| line_of(life, line))
        .collect()
}

fn line_of(life: usize, line: &str) -> Option<Began> {
    let line: Value = serde_json::from_str(line).ok()?;
    let at = humantime::parse_rfc3339(line["timestamp"].as_str()?).ok()?;
    let task = (line["stage"].as_str()?.to_owned(), i32::try_from(line["partition"].as_i64()?).ok()?);
    Some(Began { at, task, life })
}

/// The kills that left a transaction open: how many. `ends`: the markers of each task's output, in their order.
pub fn count(kills: &[Kill], began: &[Began], ends: &BTreeMap<Task, Vec<End>>) -> usize {
    kills.iter().filter(|kill| has_left_open(kill, began, ends)).count()
}

fn has_left_open(kill: &Kill, began: &[Began], ends: &BTreeMap<Task, Vec<End>>) -> bool {
    // The last life in which each task began before the kill.
    let mut owners: BTreeMap<&Task, usize> = BTreeMap::new();
    for one in began.iter().take_while(|one| one.at <= kill.at) {
        owners.insert(&one.task, one.life);
    }
    let at = kill.at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as i64;
    owners.iter().filter(|(_, life)| **life == kill.life).any(|(task, _)| {
        let ends = ends.get(*task).map_or(&[][..], Vec::as_slice);
        let next = ends.partition_point(|end| end.time < at);
        ends.get(next).is_some_and(|end| !end.commit)
    })
}

#[cfg(test)]
mod tests {
    use flechtwerk_checkers::Producer;

    use super::*;

    fn time(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn end(millis: i64, commit: bool) -> End {
        End { time: millis, producer: Producer { id: 1, epoch: 0 }, commit }
    }

    #[test]
    fn a_kill_counts_if_the_next_marker_of_one_of_its_tasks_aborts() {
        let task = |partition| ("tally".to_owned(), partition);
        let began = [
            Began { at: time(10), task: task(0), life: 0 },
            Began { at: time(10), task: task(1), life: 1 },
            Began { at: time(300), task: task(0), life: 1 },
        ];
        let ends = BTreeMap::from([
            (task(0), vec![end(50, true), end(150, false), end(400, true)]),
            (task(1), vec![end(60, false), end(160, true)]),
        ]);
        let kill = |at, life| Kill { at: time(at), life };
        assert_eq!(count(&[kill(100, 0)], &began, &ends), 1);
        assert_eq!(count(&[kill(20, 0)], &began, &ends), 0, "it had just committed");
        assert_eq!(count(&[kill(100, 1)], &began, &ends), 0, "its own task's next marker commits");
        assert_eq!(count(&[kill(350, 1)], &began, &ends), 0, "the abort was before");
        assert_eq!(count(&[kill(100, 7)], &began, &ends), 0, "it had no task");
    }

    #[test]
    fn lines_of_the_log_are_read() {
        let line = r#"{"timestamp":"2026-01-02T03:04:05.678901Z","level":"INFO","message":"task is running","stage":"tally","partition":3}"#;
        let one = line_of(4, line).expect("a line");
        assert_eq!((one.task, one.life), (("tally".to_owned(), 3), 4));
        assert_eq!(line_of(4, "task is running, as text"), None);
    }
}
