//! Every Rust block of the book, README.md and ARCHITECTURE.md as a doctest: `cargo test --doc -p flechtwerk-docs`.
//! The sibling `pages.rs` checks what is not Rust: commands, links and the table of contents.
// The pages are written for mdBook and for a reader of the repository: their links lead to files.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::bare_urls)]

macro_rules! pages {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(#[doc = include_str!($path)] pub mod $name {})+

        /// The pages whose Rust blocks are compiled, seen from here; `pages.rs` checks that none is forgotten.
        pub const PAGES: &[&str] = &[$($path),+];
    };
}

pages! {
    readme = "../README.md",
    architecture = "../ARCHITECTURE.md",
    introduction = "src/introduction.md",
    first_pipeline = "src/first-pipeline.md",
    topics_and_codecs = "src/topics-and-codecs.md",
    schema_registries = "src/schema-registries.md",
    state = "src/state.md",
    timers = "src/timers.md",
    extractors = "src/extractors.md",
    tables = "src/tables.md",
    resources = "src/resources.md",
    exactly_once = "src/exactly-once.md",
    invalid_records = "src/invalid-records.md",
    running = "src/running.md",
    runbook = "src/runbook.md",
    testing = "src/testing.md",
    errors = "src/errors.md",
    managed_clusters = "src/managed-clusters.md",
    semantics = "src/semantics.md",
    attributes = "src/attributes.md",
    settings = "src/settings.md",
    metrics = "src/metrics.md",
}
