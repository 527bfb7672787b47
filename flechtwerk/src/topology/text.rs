//! For people, in a terminal.

use super::{Stage, Topology};
use crate::text_table::table;

impl Topology {
    /// Each stage with what it reads, keeps and writes; then the topics.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("pipeline {}\n", self.pipeline);
        for (index, stage) in self.stages.iter().enumerate() {
            let last = index + 1 == self.stages.len();
            let (branch, trunk) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            text += &format!("{branch}{}\n", stage.name);
            let lines = lines(stage);
            for (index, line) in lines.iter().enumerate() {
                let branch = if index + 1 == lines.len() { "└─ " } else { "├─ " };
                text += &format!("{trunk}{branch}{line}\n");
            }
        }
        let rows = self.topics.iter().map(|topic| {
            let declared = if topic.name == topic.declared {
                String::new()
            } else {
                format!("mapped from {}", topic.declared)
            };
            vec![
                topic.name.clone(),
                topic.key.clone(),
                topic.value.clone(),
                topic.type_path.clone(),
                declared,
            ]
        });
        text += "\n";
        text += &table(&["TOPIC", "KEY", "VALUE", "TYPE", ""], rows);
        for note in &self.notes {
            text += &format!("\nnote: {note}\n");
        }
        text
    }
}

fn lines(stage: &Stage) -> Vec<String> {
    let reads = |topic: &String| match stage.start {
        None => format!("config  {topic}"),
        Some("earliest") => format!("reads   {topic}"),
        Some(start) => format!("reads   {topic}, at first from the {start}"),
    };
    let mut lines: Vec<String> = stage.inputs.iter().map(reads).collect();
    if let Some(interval) = &stage.poll_interval {
        lines.push(format!("polls   every {interval}"));
    }
    if stage.inputs.len() > 1 && stage.order == Some("timestamp") {
        lines.push("order   by timestamp".into());
    }
    lines.extend(stage.tables.iter().map(|topic| format!("table   {topic}")));
    lines.extend(stage.resources.iter().map(|resource| format!("takes   {resource}")));
    if let Some(state) = &stage.state {
        lines.push(format!("keeps   {} (version {}) in {}", state.type_name, state.version, state.changelog));
    }
    if let Some(timers) = &stage.timers {
        lines.push(format!("timers  in {}", timers.changelog));
    }
    lines.extend(stage.outputs.iter().map(|topic| format!("writes  {topic}")));
    lines.extend(stage.dead_letters.iter().map(|topic| format!("invalid {topic}")));
    lines.push(format!("group   {}", stage.group));
    lines
}
