//! For Markdown.

use super::{Topology, identifier};

impl Topology {
    /// A flowchart: topics are stadiums, stages boxes, changelogs cylinders; tables are dashed.
    pub(crate) fn mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for topic in &self.topics {
            text += &format!("    {}([\"{}\"])\n", identifier("topic", &topic.name), quoted(&topic.name));
        }
        for stage in &self.stages {
            let node = identifier("stage", &stage.name);
            text += &format!("    {node}[\"<b>{}</b><br/>{}\"]\n", quoted(&stage.name), quoted(&stage.group));
            for topic in &stage.inputs {
                text += &format!("    {} --> {node}\n", identifier("topic", topic));
            }
            for topic in &stage.tables {
                text += &format!("    {} -. \"table\" .-> {node}\n", identifier("topic", topic));
            }
            if let Some(state) = &stage.state {
                let changelog = identifier("changelog", &state.changelog);
                text += &format!("    {changelog}[(\"{}\")]\n", quoted(&state.changelog));
                text += &format!("    {node} <-. \"{}\" .-> {changelog}\n", quoted(&state.type_name));
            }
            for topic in &stage.outputs {
                text += &format!("    {node} --> {}\n", identifier("topic", topic));
            }
            if let Some(topic) = &stage.dead_letters {
                text += &format!("    {node} -. \"invalid\" .-> {}\n", identifier("topic", topic));
            }
        }
        text
    }
}

/// As text inside a node; Mermaid reads it as HTML.
fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
