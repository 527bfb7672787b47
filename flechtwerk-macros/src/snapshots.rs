//! Whole expansions, as a person would write them. `UPDATE_EXPECT=1 cargo test -p flechtwerk-macros` writes them anew.

use expect_test::{ExpectFile, expect_file};
use proc_macro2::TokenStream;

use crate::expand;

fn check(expanded: TokenStream, expected: ExpectFile) {
    let file = syn::parse2(expanded).unwrap_or_else(|error| panic!("the expansion does not parse: {error}"));
    expected.assert_eq(&prettyplease::unparse(&file));
}

fn tokens(source: &str) -> TokenStream {
    source.parse().unwrap_or_else(|error| panic!("the source is not Rust: {error}"))
}

#[test]
fn topic() {
    check(
        expand::topic(tokens(r#""words", key = Utf8, value = Json<u64>"#), tokens("pub struct Words;")),
        expect_file!["../snapshots/topic.rs"],
    );
}

#[test]
fn topic_with_mistakes() {
    check(
        expand::topic(tokens(r#""wor ds", key = Utf8, vale = Utf8"#), tokens("pub struct Words;")),
        expect_file!["../snapshots/topic_with_mistakes.rs"],
    );
}

#[test]
fn state() {
    check(
        expand::state(tokens("#[state(version = 2)] pub struct Count { n: u64 }")),
        expect_file!["../snapshots/state.rs"],
    );
}

#[test]
fn state_with_upgrades() {
    check(
        expand::state(tokens(
            "#[state(version = 3, upgrade_from(2 = CountV2, with = from_2), upgrade_from(1 = u64, with = old::from_1))]
            pub struct Count { n: u64 }",
        )),
        expect_file!["../snapshots/state_with_upgrades.rs"],
    );
}

#[test]
fn state_generic() {
    check(
        expand::state(tokens("pub struct Last<T> where T: Clone { value: T }")),
        expect_file!["../snapshots/state_generic.rs"],
    );
}

#[test]
fn input() {
    check(
        expand::input(tokens(
            "pub enum Trip { Profile(Record<Profiles>), #[cfg(feature = \"updates\")] Update(Record<Updates>) }",
        )),
        expect_file!["../snapshots/input.rs"],
    );
}

#[test]
fn input_with_mistakes() {
    check(
        expand::input(tokens("pub struct Trip { profile: Record<Profiles> }")),
        expect_file!["../snapshots/input_with_mistakes.rs"],
    );
}

#[test]
fn transformer() {
    check(
        expand::transformer(
            tokens("inputs = [Words], state = Count"),
            tokens(
                "/// Counts. \n #[cfg(feature = \"count\")] \n
                pub async fn count(word: Record<Words>, state: &mut State<Count>, out: &mut Out<Counts>) -> Result {
                    Ok(())
                }",
            ),
        ),
        expect_file!["../snapshots/transformer.rs"],
    );
}

#[test]
fn transformer_with_everything() {
    check(
        expand::transformer(
            tokens(
                r#"inputs = [Words, Lines], key = keys::by_value, name = "copy", application_id = "app",
                order = timestamp, start = latest, on_invalid = decide, dead_letters = Dead, crate = fw"#,
            ),
            tokens("async fn r#match(text: Text) -> fw::Result { Ok(()) }"),
        ),
        expect_file!["../snapshots/transformer_with_everything.rs"],
    );
}

#[test]
fn transformer_with_timers() {
    check(
        expand::transformer(
            tokens("inputs = [Words], on_timer = later::close"),
            tokens(
                "async fn count(word: Record<Words>, timers: &mut Timers, names: &Table<Names>) -> Result { Ok(()) }",
            ),
        ),
        expect_file!["../snapshots/transformer_with_timers.rs"],
    );
}

#[test]
fn transformer_with_mistakes() {
    check(
        expand::transformer(
            tokens("inputs = []"),
            tokens("pub(crate) fn count(word: Record<Words>) -> Result { body(word) }"),
        ),
        expect_file!["../snapshots/transformer_with_mistakes.rs"],
    );
}

#[test]
fn extractor() {
    check(
        expand::extractor(
            tokens(r#"config = Sources, state = Cursor, poll_interval = "30s", suspended = is_off, key = key_of"#),
            tokens(
                "pub async fn poll(src: &Record<Sources>, cursor: &mut State<Cursor>, out: &mut Out<Items>) -> Result<Next> {
                    Ok(Next::Idle)
                }",
            ),
        ),
        expect_file!["../snapshots/extractor.rs"],
    );
}

#[test]
fn extractor_without_config() {
    check(
        expand::extractor(
            tokens(r#"state = Cursor, poll_interval = "500ms", crate = fw"#),
            tokens("async fn poll(cursor: &mut State<Cursor>) -> fw::Result<Next> { Ok(Next::Again) }"),
        ),
        expect_file!["../snapshots/extractor_without_config.rs"],
    );
}

#[test]
fn extractor_with_mistakes() {
    check(
        expand::extractor(
            tokens("config = Sources, suspend = is_off"),
            tokens("pub async fn poll(src: Record<Sources>) -> Result<Next> { body(src) }"),
        ),
        expect_file!["../snapshots/extractor_with_mistakes.rs"],
    );
}

#[test]
fn pipeline() {
    check(
        expand::pipeline(tokens(r#"@flechtwerk pub DEMO = "demo": [count, #[cfg(feature = "other")] a::b]"#)),
        expect_file!["../snapshots/pipeline.rs"],
    );
}
