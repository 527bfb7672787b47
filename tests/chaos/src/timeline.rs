//! The picture of a run: faults by class, owners of the tasks, commits and lag, over one axis of time. As SVG, for the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flechtwerk_checkers::Stamp;
use serde_json::Value;

use crate::journal::Entry;

const LEFT: f64 = 90.0;
const WIDTH: f64 = 1100.0;
const LANE: f64 = 14.0;
/// Colours of instances; more than that repeat.
const COLOURS: [&str; 10] = [
    "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7", "#9c755f", "#86bcb6",
    "#bab0ac",
];

/// Time, lag, and number of transactions so far.
pub type Point = (f64, Option<f64>, u64);

/// What the picture is made of, read from a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Seconds of all.
    pub length: f64,
    /// Times and lengths of faults, by class.
    pub faults: BTreeMap<&'static str, Vec<(f64, f64)>>,
    /// Since when which instance has a task, by stage and partition.
    pub owners: BTreeMap<(String, u64), Vec<(f64, u64)>>,
    /// How far the tasks were, by stage and partition.
    pub positions: BTreeMap<(String, u64), Vec<Point>>,
}

impl Timeline {
    /// From the journal's lines.
    pub fn new(entries: &[Entry]) -> Timeline {
        let mut timeline = Timeline::default();
        for entry in entries {
            let at = entry.at.as_secs_f64();
            timeline.length = timeline.length.max(at);
            let length = entry.data["length"].as_f64().unwrap_or(0.0);
            let class = match entry.event.as_str() {
                "kill" if !entry.data["disk"].is_null() => "S disk",
                "kill" => "K kill",
                "arm" => "K crash point",
                "stop" => "Z stop",
                "broker_kill" => "B broker",
                "rebalance" => "R rebalance",
                "network" => "N network",
                "owner" => {
                    timeline.owner(&entry.data);
                    continue;
                }
                "positions" => {
                    timeline.position(at, &entry.data);
                    continue;
                }
                _ => continue,
            };
            timeline.faults.entry(class).or_default().push((at, length));
        }
        for owners in timeline.owners.values_mut() {
            owners.sort_by(|one, other| one.0.total_cmp(&other.0));
        }
        timeline
    }

    fn owner(&mut self, data: &Value) {
        let (Some(stage), Some(partition)) = (data["stage"].as_str(), data["partition"].as_u64()) else {
            return;
        };
        if let (Some(since), Some(slot)) = (data["since"].as_f64(), data["slot"].as_u64()) {
            self.owners.entry((stage.to_owned(), partition)).or_default().push((since, slot));
        }
    }

    fn position(&mut self, at: f64, data: &Value) {
        let (Some(stage), Some(lags), Some(stamps)) =
            (data["stage"].as_str(), data["lag"].as_array(), data["stamp"].as_array())
        else {
            return;
        };
        let partitions = data["partition"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        for ((partition, lag), stamp) in partitions.zip(lags).zip(stamps) {
            let counter = stamp.as_str().and_then(Stamp::parse).map_or(0, |stamp| stamp.counter);
            let of_task = self.positions.entry((stage.to_owned(), partition)).or_default();
            of_task.push((at, lag.as_f64(), counter));
        }
    }

    /// The picture. `names`: of the instances.
    pub fn svg(&self, names: &[String]) -> String {
        let mut picture = Picture { length: self.length.max(1.0), y: 4.0, body: String::new() };
        picture.head("faults");
        for (class, faults) in &self.faults {
            picture.lane(class);
            for (at, length) in faults {
                let width = (picture.x(at + length) - picture.x(*at)).max(1.5);
                let colour = if *class == "B broker" { "#b30000" } else { "#e15759" };
                picture.rectangle(*at, width, colour, 0.75, &format!("{class} at {at:.1} s"));
            }
            picture.next(LANE);
        }
        picture.head("owners");
        for ((stage, partition), owners) in &self.owners {
            picture.lane(&format!("{stage} {partition}"));
            for (index, (since, slot)) in owners.iter().enumerate() {
                let until = owners.get(index + 1).map_or(self.length, |next| next.0);
                let width = (picture.x(until) - picture.x(*since)).max(0.5);
                let name = names.get(*slot as usize).map_or("?", String::as_str);
                picture.rectangle(*since, width, COLOURS[*slot as usize % COLOURS.len()], 1.0, name);
            }
            picture.next(LANE);
        }
        let commits = |points: &[Point]| -> Vec<(f64, f64)> {
            let pairs = points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
            pairs
                .map(|pair| (pair[1].0, pair[1].2.saturating_sub(pair[0].2) as f64 / (pair[1].0 - pair[0].0)))
                .collect()
        };
        let lags = |points: &[Point]| -> Vec<(f64, f64)> {
            points.iter().filter_map(|(at, lag, _)| Some((*at, (*lag)?))).collect()
        };
        picture.curves("commits a second", &self.positions, commits);
        picture.curves("lag in records", &self.positions, lags);
        picture.axis();
        picture.end()
    }
}

struct Picture {
    length: f64,
    y: f64,
    body: String,
}

impl Picture {
    fn x(&self, at: f64) -> f64 {
        LEFT + at / self.length * (WIDTH - LEFT - 10.0)
    }

    fn next(&mut self, height: f64) {
        self.y += height;
    }

    // Writing to a string can't fail.
    fn head(&mut self, text: &str) {
        self.y += 20.0;
        let _ = writeln!(self.body, r#"<text x="2" y="{:.1}" class="h">{text}</text>"#, self.y);
        self.y += 6.0;
    }

    fn lane(&mut self, name: &str) {
        let _ = writeln!(self.body, r#"<text x="2" y="{:.1}">{}</text>"#, self.y + 10.0, escape(name));
        let _ = writeln!(
            self.body,
            r#"<line x1="{LEFT}" x2="{:.1}" y1="{:.1}" y2="{:.1}" class="l"/>"#,
            WIDTH - 10.0,
            self.y + 6.0,
            self.y + 6.0
        );
    }

    fn rectangle(&mut self, at: f64, width: f64, colour: &str, opacity: f64, title: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{:.1}" y="{:.1}" width="{width:.1}" height="{:.1}" fill="{colour}" opacity="{opacity}"><title>{}</title></rect>"#,
            self.x(at),
            self.y + 1.0,
            LANE - 3.0,
            escape(title),
        );
    }

    fn curves<T>(
        &mut self,
        head: &str,
        all: &BTreeMap<(String, u64), T>,
        points: impl Fn(&[Point]) -> Vec<(f64, f64)>,
    ) where
        T: AsRef<[Point]>,
    {
        const HEIGHT: f64 = 22.0;
        self.head(head);
        for ((stage, partition), of_task) in all {
            let points = points(of_task.as_ref());
            let top = points.iter().map(|point| point.1).fold(0.0, f64::max);
            self.lane(&format!("{stage} {partition}: {top:.0}"));
            let line: Vec<String> = points
                .iter()
                .map(|(at, value)| {
                    let y = self.y + HEIGHT - 4.0 - value / top.max(1.0) * (HEIGHT - 6.0);
                    format!("{:.1},{y:.1}", self.x(*at))
                })
                .collect();
            let _ = writeln!(self.body, r#"<polyline points="{}"/>"#, line.join(" "));
            self.next(HEIGHT);
        }
    }

    fn axis(&mut self) {
        self.y += 16.0;
        for tick in 0..=10 {
            let at = self.length * f64::from(tick) / 10.0;
            let _ = writeln!(
                self.body,
                r#"<text x="{:.1}" y="{:.1}">{at:.0} s</text>"#,
                self.x(at) - 8.0,
                self.y
            );
        }
        self.y += 8.0;
    }

    fn end(self) -> String {
        let style = "text{font:10px sans-serif;fill:#333}.h{font-weight:bold}.l{stroke:#ddd}\
                     polyline{fill:none;stroke:#4e79a7;stroke-width:1}";
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {:.0}\" xmlns=\"http://www.w3.org/2000/svg\"><style>{style}</style>\n{}</svg>\n",
            self.y, self.body
        )
    }
}

/// Text in HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn entry(at: u64, event: &str, data: Value) -> Entry {
        Entry { at: Duration::from_secs(at), event: event.into(), data }
    }

    fn entries() -> Vec<Entry> {
        let owner = |partition: u64, slot: u64, since: f64| json!({"stage": "tally", "partition": partition, "slot": slot, "since": since});
        let positions = |lag: u64, stamp: &str| json!({"stage": "tally", "partition": [3], "lag": [lag], "offset": [4], "stamp": [stamp]});
        vec![
            entry(1, "kill", json!({"slot": "i0", "disk": null})),
            entry(2, "kill", json!({"slot": "i0", "disk": "deleted"})),
            entry(3, "stop", json!({"slot": "i1", "length": 4.0})),
            entry(4, "positions", positions(9, "a:2:-")),
            entry(6, "positions", positions(1, "a:12:-")),
            entry(9, "owner", owner(3, 1, 5.0)),
            entry(9, "owner", owner(3, 0, 0.5)),
            entry(10, "outcome", json!({})),
        ]
    }

    #[test]
    fn the_journal_becomes_lanes() {
        let timeline = Timeline::new(&entries());
        assert_eq!(timeline.length, 10.0);
        assert_eq!(timeline.faults["K kill"], [(1.0, 0.0)]);
        assert_eq!(timeline.faults["S disk"], [(2.0, 0.0)]);
        assert_eq!(timeline.faults["Z stop"], [(3.0, 4.0)]);
        let task = ("tally".to_owned(), 3);
        assert_eq!(timeline.owners[&task], [(0.5, 0), (5.0, 1)]);
        assert_eq!(timeline.positions[&task], [(4.0, Some(9.0), 2), (6.0, Some(1.0), 12)]);
    }

    #[test]
    fn the_picture_shows_each_of_them() {
        let names = ["i0".to_owned(), "i<1>".to_owned()];
        let svg = Timeline::new(&entries()).svg(&names);
        for text in
            ["K kill", "S disk", "Z stop", "tally 3", "<title>i0</title>", "i&lt;1&gt;", "polyline", "10 s"]
        {
            assert!(svg.contains(text), "{text} in {svg}");
        }
        // Five commits a second, nine records behind.
        assert!(svg.contains("tally 3: 5<") && svg.contains("tally 3: 9<"), "{svg}");
    }

    #[test]
    fn a_run_in_which_nothing_happened_has_a_picture() {
        assert!(Timeline::new(&[]).svg(&[]).starts_with("<svg"));
    }
}
