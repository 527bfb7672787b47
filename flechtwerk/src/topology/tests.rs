//! Snapshots of each rendering; `UPDATE_EXPECT=1 cargo test` writes them anew.

use std::collections::BTreeMap;

use expect_test::expect;

use super::*;
use crate::chosen::choose;
use crate::demo::{AGAIN, COUNT, ENRICH, JUDGE, LOOKUP, MERGE, POLL, REMIND, SESSIONS, TICK};
use crate::naming::Mapping;

fn topology() -> Topology {
    let topics = BTreeMap::from([("alerts".to_owned(), "prod.alerts".to_owned())]);
    let mapping = Mapping::of("prod-", &topics);
    Topology::new("demo", &choose("demo", &[&COUNT, &ENRICH, &MERGE], &[], mapping).unwrap())
}

#[test]
fn text() {
    expect![[r#"
        pipeline demo
        ├─ count
        │  ├─ reads   words
        │  ├─ keeps   Count (version 1) in prod-demo-count-changelog
        │  ├─ writes  counts
        │  └─ group   prod-demo-count
        ├─ enrich
        │  ├─ reads   words
        │  ├─ writes  prod.alerts
        │  └─ group   prod-demo-enrich
        └─ merge
           ├─ reads   words
           ├─ reads   counts
           ├─ keeps   Count (version 1) in prod-demo-merge-changelog
           ├─ writes  prod.alerts
           └─ group   prod-demo-merge

        TOPIC        KEY   VALUE      TYPE
        counts       Utf8  Json<u64>  demo::Counts
        prod.alerts  Utf8  Json<u64>  demo::Alerts  mapped from alerts
        words        Utf8  Json<u64>  demo::Words
    "#]]
    .assert_eq(&topology().text());
}

#[test]
fn mermaid() {
    expect![[r#"
        flowchart LR
            topic_counts(["counts"])
            topic_prod_2e_alerts(["prod.alerts"])
            topic_words(["words"])
            stage_count["<b>count</b><br/>prod-demo-count"]
            topic_words --> stage_count
            changelog_prod_2d_demo_2d_count_2d_changelog[("prod-demo-count-changelog")]
            stage_count <-. "Count" .-> changelog_prod_2d_demo_2d_count_2d_changelog
            stage_count --> topic_counts
            stage_enrich["<b>enrich</b><br/>prod-demo-enrich"]
            topic_words --> stage_enrich
            stage_enrich --> topic_prod_2e_alerts
            stage_merge["<b>merge</b><br/>prod-demo-merge"]
            topic_words --> stage_merge
            topic_counts --> stage_merge
            changelog_prod_2d_demo_2d_merge_2d_changelog[("prod-demo-merge-changelog")]
            stage_merge <-. "Count" .-> changelog_prod_2d_demo_2d_merge_2d_changelog
            stage_merge --> topic_prod_2e_alerts
    "#]]
    .assert_eq(&topology().mermaid());
}

#[test]
fn dot() {
    expect![[r#"
        digraph "demo" {
            rankdir=LR;
            node [fontname="sans-serif"];
            topic_counts [label="counts", shape=ellipse];
            topic_prod_2e_alerts [label="prod.alerts", shape=ellipse];
            topic_words [label="words", shape=ellipse];
            stage_count [label="count\nprod-demo-count", shape=box];
            topic_words -> stage_count;
            changelog_prod_2d_demo_2d_count_2d_changelog [label="prod-demo-count-changelog", shape=cylinder];
            stage_count -> changelog_prod_2d_demo_2d_count_2d_changelog [label="Count", dir=both, style=dashed];
            stage_count -> topic_counts;
            stage_enrich [label="enrich\nprod-demo-enrich", shape=box];
            topic_words -> stage_enrich;
            stage_enrich -> topic_prod_2e_alerts;
            stage_merge [label="merge\nprod-demo-merge", shape=box];
            topic_words -> stage_merge;
            topic_counts -> stage_merge;
            changelog_prod_2d_demo_2d_merge_2d_changelog [label="prod-demo-merge-changelog", shape=cylinder];
            stage_merge -> changelog_prod_2d_demo_2d_merge_2d_changelog [label="Count", dir=both, style=dashed];
            stage_merge -> topic_prod_2e_alerts;
        }
    "#]].assert_eq(&topology().dot());
}

#[test]
fn json() {
    expect![[r#"
        {
          "pipeline": "demo",
          "stages": [
            {
              "name": "count",
              "function": "count",
              "application_id": "prod-demo-count",
              "group": "prod-demo-count",
              "kind": "transformer",
              "inputs": [
                "words"
              ],
              "outputs": [
                "counts"
              ],
              "tables": [],
              "resources": [],
              "dead_letters": null,
              "state": {
                "type": "Count",
                "version": 1,
                "changelog": "prod-demo-count-changelog"
              },
              "start": "earliest",
              "order": "inputs"
            },
            {
              "name": "enrich",
              "function": "enrich",
              "application_id": "prod-demo-enrich",
              "group": "prod-demo-enrich",
              "kind": "transformer",
              "inputs": [
                "words"
              ],
              "outputs": [
                "prod.alerts"
              ],
              "tables": [],
              "resources": [],
              "dead_letters": null,
              "state": null,
              "start": "earliest",
              "order": "inputs"
            },
            {
              "name": "merge",
              "function": "merge",
              "application_id": "prod-demo-merge",
              "group": "prod-demo-merge",
              "kind": "transformer",
              "inputs": [
                "words",
                "counts"
              ],
              "outputs": [
                "prod.alerts"
              ],
              "tables": [],
              "resources": [],
              "dead_letters": null,
              "state": {
                "type": "Count",
                "version": 1,
                "changelog": "prod-demo-merge-changelog"
              },
              "start": "earliest",
              "order": "inputs"
            }
          ],
          "topics": [
            {
              "name": "counts",
              "declared": "counts",
              "type": "demo::Counts",
              "key": "Utf8",
              "value": "Json<u64>"
            },
            {
              "name": "prod.alerts",
              "declared": "alerts",
              "type": "demo::Alerts",
              "key": "Utf8",
              "value": "Json<u64>"
            },
            {
              "name": "words",
              "declared": "words",
              "type": "demo::Words",
              "key": "Utf8",
              "value": "Json<u64>"
            }
          ]
        }
    "#]]
    .assert_eq(&topology().json());
}

#[test]
fn dead_letters_are_shown_apart() {
    let topic = BTreeMap::from([("dead".to_owned(), "prod.dead".to_owned())]);
    let mapping = Mapping::of("", &topic);
    let topology = Topology::new("demo", &choose("demo", &[&JUDGE], &[], mapping).unwrap());
    expect![[r#"
        pipeline demo
        └─ judge
           ├─ reads   words
           ├─ writes  alerts
           ├─ invalid prod.dead
           └─ group   demo-judge

        TOPIC      KEY   VALUE      TYPE
        alerts     Utf8  Json<u64>  demo::Alerts
        prod.dead  Utf8  Json<u64>  demo::Dead    mapped from dead
        words      Utf8  Json<u64>  demo::Words
    "#]]
    .assert_eq(&topology.text());
    expect![[r#"
        flowchart LR
            topic_alerts(["alerts"])
            topic_prod_2e_dead(["prod.dead"])
            topic_words(["words"])
            stage_judge["<b>judge</b><br/>demo-judge"]
            topic_words --> stage_judge
            stage_judge --> topic_alerts
            stage_judge -. "invalid" .-> topic_prod_2e_dead
    "#]]
    .assert_eq(&topology.mermaid());
    let dot = topology.dot();
    assert!(dot.contains(r#"stage_judge -> topic_prod_2e_dead [label="invalid", style=dashed];"#), "{dot}");
    let json: serde_json::Value = serde_json::from_str(&topology.json()).unwrap();
    assert_eq!(json["stages"][0]["dead_letters"], "prod.dead");
    assert_eq!(json["stages"][0]["outputs"], serde_json::json!(["alerts"]));
}

#[test]
fn timers() {
    let unmapped = BTreeMap::new();
    let mapping = Mapping::of("", &unmapped);
    let topology = Topology::new("demo", &choose("demo", &[&REMIND, &SESSIONS], &[], mapping).unwrap());
    expect![[r#"
        pipeline demo
        ├─ remind
        │  ├─ reads   words
        │  ├─ timers  in demo-remind-changelog
        │  ├─ writes  alerts
        │  └─ group   demo-remind
        └─ sessions
           ├─ reads   words
           ├─ keeps   Count (version 1) in demo-sessions-changelog
           ├─ timers  in demo-sessions-changelog
           ├─ writes  alerts
           └─ group   demo-sessions

        TOPIC   KEY   VALUE      TYPE
        alerts  Utf8  Json<u64>  demo::Alerts
        words   Utf8  Json<u64>  demo::Words
    "#]]
    .assert_eq(&topology.text());
    expect![[r#"
        flowchart LR
            topic_alerts(["alerts"])
            topic_words(["words"])
            stage_remind["<b>remind</b><br/>demo-remind"]
            topic_words --> stage_remind
            changelog_demo_2d_remind_2d_changelog[("demo-remind-changelog")]
            stage_remind <-. "timers" .-> changelog_demo_2d_remind_2d_changelog
            stage_remind --> topic_alerts
            stage_sessions["<b>sessions</b><br/>demo-sessions"]
            topic_words --> stage_sessions
            changelog_demo_2d_sessions_2d_changelog[("demo-sessions-changelog")]
            stage_sessions <-. "Count, timers" .-> changelog_demo_2d_sessions_2d_changelog
            stage_sessions --> topic_alerts
    "#]]
    .assert_eq(&topology.mermaid());
    let dot = topology.dot();
    for (stage, label) in [("remind", "timers"), ("sessions", "Count, timers")] {
        let line = format!(
            r#"stage_{stage} -> changelog_demo_2d_{stage}_2d_changelog [label="{label}", dir=both, style=dashed];"#
        );
        assert!(dot.contains(&line), "{line} in {dot}");
    }
    let json: serde_json::Value = serde_json::from_str(&topology.json()).unwrap();
    let stages = &json["stages"];
    assert_eq!(stages[0]["timers"], serde_json::json!({"changelog": "demo-remind-changelog"}));
    assert_eq!(stages[0]["state"], serde_json::Value::Null);
    assert_eq!(stages[1]["timers"]["changelog"], stages[1]["state"]["changelog"]);
}

#[test]
fn extractors() {
    let unmapped = BTreeMap::new();
    let mapping = Mapping::of("", &unmapped);
    let topology = Topology::new("demo", &choose("demo", &[&POLL, &TICK], &[], mapping).unwrap());
    expect![[r#"
        pipeline demo
        ├─ poll
        │  ├─ config  words
        │  ├─ polls   every 90s
        │  ├─ keeps   Count (version 1) in demo-poll-changelog
        │  ├─ writes  alerts
        │  └─ group   demo-poll
        └─ tick
           ├─ polls   every 90s
           ├─ keeps   Count (version 1) in demo-tick-changelog
           ├─ writes  alerts
           └─ group   demo-tick

        TOPIC   KEY   VALUE      TYPE
        alerts  Utf8  Json<u64>  demo::Alerts
        words   Utf8  Json<u64>  demo::Words
    "#]]
    .assert_eq(&topology.text());
    expect![[r#"
        flowchart LR
            topic_alerts(["alerts"])
            topic_words(["words"])
            stage_poll[/"<b>poll</b><br/>demo-poll"/]
            topic_words -. config .-> stage_poll
            changelog_demo_2d_poll_2d_changelog[("demo-poll-changelog")]
            stage_poll <-. "Count" .-> changelog_demo_2d_poll_2d_changelog
            stage_poll --> topic_alerts
            stage_tick[/"<b>tick</b><br/>demo-tick"/]
            changelog_demo_2d_tick_2d_changelog[("demo-tick-changelog")]
            stage_tick <-. "Count" .-> changelog_demo_2d_tick_2d_changelog
            stage_tick --> topic_alerts
    "#]]
    .assert_eq(&topology.mermaid());
    expect![[r#"
        digraph "demo" {
            rankdir=LR;
            node [fontname="sans-serif"];
            topic_alerts [label="alerts", shape=ellipse];
            topic_words [label="words", shape=ellipse];
            stage_poll [label="poll\ndemo-poll", shape=parallelogram];
            topic_words -> stage_poll [label=config, style=dashed];
            changelog_demo_2d_poll_2d_changelog [label="demo-poll-changelog", shape=cylinder];
            stage_poll -> changelog_demo_2d_poll_2d_changelog [label="Count", dir=both, style=dashed];
            stage_poll -> topic_alerts;
            stage_tick [label="tick\ndemo-tick", shape=parallelogram];
            changelog_demo_2d_tick_2d_changelog [label="demo-tick-changelog", shape=cylinder];
            stage_tick -> changelog_demo_2d_tick_2d_changelog [label="Count", dir=both, style=dashed];
            stage_tick -> topic_alerts;
        }
    "#]]
    .assert_eq(&topology.dot());
    let json: serde_json::Value = serde_json::from_str(&topology.json()).unwrap();
    expect![[r#"
        {
          "application_id": "demo-tick",
          "dead_letters": null,
          "function": "tick",
          "group": "demo-tick",
          "inputs": [],
          "kind": "extractor",
          "name": "tick",
          "outputs": [
            "alerts"
          ],
          "poll_interval": "90s",
          "resources": [],
          "state": {
            "changelog": "demo-tick-changelog",
            "type": "Count",
            "version": 1
          },
          "tables": []
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&json["stages"][1]).unwrap());
}

#[test]
fn identifiers_keep_names_apart() {
    let names = ["a.b", "a_b", "a-b", "a.b.", "a_2e_b", "ab"];
    let mut made: Vec<String> = names.iter().map(|name| identifier("t", name)).collect();
    made.sort();
    made.dedup();
    assert_eq!(made.len(), names.len());
    assert!(made.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')));
}

#[test]
fn type_names_are_escaped_where_they_are_markup() {
    let mut topology = topology();
    topology.stages[0].state.as_mut().unwrap().type_name = "Window<\"x\">".into();
    assert!(topology.mermaid().contains("Window&lt;&quot;x&quot;&gt;"));
    assert!(topology.dot().contains(r#""Window<\"x\">""#));
}

#[test]
fn tables_and_resources_show() {
    let unmapped = BTreeMap::new();
    let mapping = Mapping::of("", &unmapped);
    let stages = choose("demo", &[&LOOKUP], &[], mapping).unwrap();
    let topology = Topology::new("demo", &stages);
    expect![[r#"
        pipeline demo
        └─ lookup
           ├─ reads   words
           ├─ table   items
           ├─ takes   Http
           ├─ writes  alerts
           └─ group   demo-lookup

        TOPIC   KEY   VALUE      TYPE
        alerts  Utf8  Json<u64>  demo::Alerts
        items   Utf8  Json<u64>  demo::Items
        words   Utf8  Json<u64>  demo::Words
    "#]]
    .assert_eq(&topology.text());
    expect![[r#"
        flowchart LR
            topic_alerts(["alerts"])
            topic_items(["items"])
            topic_words(["words"])
            stage_lookup["<b>lookup</b><br/>demo-lookup"]
            topic_words --> stage_lookup
            topic_items -. "table" .-> stage_lookup
            stage_lookup --> topic_alerts
    "#]]
    .assert_eq(&topology.mermaid());
    expect![[r#"
        digraph "demo" {
            rankdir=LR;
            node [fontname="sans-serif"];
            topic_alerts [label="alerts", shape=ellipse];
            topic_items [label="items", shape=ellipse];
            topic_words [label="words", shape=ellipse];
            stage_lookup [label="lookup\ndemo-lookup", shape=box];
            topic_words -> stage_lookup;
            topic_items -> stage_lookup [label="table", style=dashed];
            stage_lookup -> topic_alerts;
        }
    "#]]
    .assert_eq(&topology.dot());
}

#[test]
fn a_stage_that_writes_its_own_input_is_noted() {
    let unmapped = BTreeMap::new();
    let mapping = Mapping::of("", &unmapped);
    let topology = Topology::new("demo", &choose("demo", &[&AGAIN], &[], mapping).unwrap());
    assert!(
        topology.text().contains("\nnote: stage `again` writes its own input `words`"),
        "{}",
        topology.text()
    );
    assert!(topology.json().contains("stage `again` writes its own input"), "{}", topology.json());
}
