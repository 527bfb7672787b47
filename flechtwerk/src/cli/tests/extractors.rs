//! The commands over extractors: topics that are made, and cursors that are reset.

use super::*;
use crate::startup::testing::EXTRACT;

fn call(backend: &Fake, arguments: &str) -> Ended {
    call_of(&EXTRACT, backend, arguments, &[])
}

#[test]
fn config_topics_are_made_compacted_and_the_changelog_of_one_token_with_one_partition() {
    let backend = Fake::new(FakeCluster::default());
    let ended = call(&backend, "topics create --partitions 4 --replication-factor 3");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert_eq!(
        backend.cluster.changes(),
        [
            "create alerts x4 r3 delete",
            "create counts x4 r3 compact",
            "create words x4 r3 compact",
            "create demo-poll-changelog x4 r3 compact",
            "create demo-tick-changelog x1 r3 compact",
        ]
    );
    assert_eq!(call(&backend, "check").status, CLEAN);
}

#[test]
fn a_reset_forgets_cursors_and_leaves_the_leases_at_zero() {
    let cluster = FakeCluster::default()
        .topic("words", 2)
        .records("words", 0, &[1_000, 2_000])
        .topic("counts", 2)
        .topic("alerts", 1)
        .changelog("demo-poll-changelog", 2)
        .changelog("demo-tick-changelog", 1)
        .committed("demo-poll", "words", 0, 0, "a:7:x");
    let backend = Fake::new(cluster);
    let ended =
        call(&backend, "reset --stage poll --to 1970-01-01T00:00:02Z --replication-factor 2 --execute");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert_eq!(
        backend.cluster.changes(),
        [
            r#"commit demo-poll words/0 0 "resetting""#,
            r#"commit demo-poll words/1 0 "resetting""#,
            "delete demo-poll-changelog",
            "create demo-poll-changelog x2 r2 compact",
            r#"commit demo-poll words/0 0 """#,
            r#"commit demo-poll words/1 0 """#,
        ]
    );
    let ended = call(&backend, "reset --stage tick --replication-factor 2 --execute");
    assert_eq!(ended.status, CLEAN, "{}", ended.err);
    assert!(ended.out.contains("demo-tick-changelog: to be deleted with all state"), "{}", ended.out);
    assert_eq!(call(&backend, "check").status, CLEAN);
}
