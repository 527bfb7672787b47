//! Something that is no pipeline.

pub const DEMO: &str = "demo";

flechtwerk::main!(DEMO);
