//! For Markdown.

use super::{Topology, identifier};

impl Topology {
    /// A flowchart: topics are stadiums, transformers boxes, extractors slanted ones, changelogs cylinders; tables are dashed.
    pub(crate) fn mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n");
        for topic in &self.topics {
            text += &format!("    {}([\"{}\"])\n", identifier("topic", &topic.name), quoted(&topic.name));
        }
        for stage in &self.stages {
            let node = identifier("stage", &stage.name);
            let (open, close) = if stage.poll_interval.is_some() { ("[/", "/]") } else { ("[", "]") };
            let label = format!("<b>{}</b><br/>{}", quoted(&stage.name), quoted(&stage.group));
            text += &format!("    {node}{open}\"{label}\"{close}\n");
            let arrow = if stage.poll_interval.is_some() { "-. config .->" } else { "-->" };
            for topic in &stage.inputs {
                text += &format!("    {} {arrow} {node}\n", identifier("topic", topic));
            }
            for topic in &stage.tables {
                text += &format!("    {} -. \"table\" .-> {node}\n", identifier("topic", topic));
            }
            if let Some((what, name)) = stage.kept() {
                let changelog = identifier("changelog", name);
                text += &format!("    {changelog}[(\"{}\")]\n", quoted(name));
                text += &format!("    {node} <-. \"{}\" .-> {changelog}\n", quoted(&what));
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
