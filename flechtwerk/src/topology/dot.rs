//! For Graphviz.

use super::{Topology, identifier};

impl Topology {
    /// A directed graph: topics are ellipses, transformers boxes, extractors slanted ones, changelogs cylinders; tables are
    /// dashed.
    pub(crate) fn dot(&self) -> String {
        let mut text = format!(
            "digraph {} {{\n    rankdir=LR;\n    node [fontname=\"sans-serif\"];\n",
            quoted(&self.pipeline)
        );
        for topic in &self.topics {
            text += &format!(
                "    {} [label={}, shape=ellipse];\n",
                identifier("topic", &topic.name),
                quoted(&topic.name)
            );
        }
        for stage in &self.stages {
            let node = identifier("stage", &stage.name);
            let label = format!("{}\n{}", stage.name, stage.group);
            let (shape, edge) = match stage.poll_interval {
                None => ("box", ""),
                Some(_) => ("parallelogram", " [label=config, style=dashed]"),
            };
            text += &format!("    {node} [label={}, shape={shape}];\n", quoted(&label));
            for topic in &stage.inputs {
                text += &format!("    {} -> {node}{edge};\n", identifier("topic", topic));
            }
            for topic in &stage.tables {
                let table = identifier("topic", topic);
                text += &format!("    {table} -> {node} [label=\"table\", style=dashed];\n");
            }
            if let Some((what, name)) = stage.kept() {
                let changelog = identifier("changelog", name);
                text += &format!("    {changelog} [label={}, shape=cylinder];\n", quoted(name));
                let label = quoted(&what);
                text += &format!("    {node} -> {changelog} [label={label}, dir=both, style=dashed];\n");
            }
            for topic in &stage.outputs {
                text += &format!("    {node} -> {};\n", identifier("topic", topic));
            }
            if let Some(topic) = &stage.dead_letters {
                let topic = identifier("topic", topic);
                text += &format!("    {node} -> {topic} [label=\"invalid\", style=dashed];\n");
            }
        }
        text += "}\n";
        text
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
