//! The picture of a run: faults by class, owners of the tasks, commits and lag, over one axis of time. As SVG, for the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flechtwerk_checkers::Stamp;
use serde_json::Value;

use crate::journal::Entry;

/// The phase in which no instance runs any more.
const STOPPED: &str = "stopped";
const LEFT: f64 = 150.0;
const WIDTH: f64 = 1100.0;
const RIGHT: f64 = 24.0;
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
    /// Memory in MiB, by the name of the instance.
    pub memory: BTreeMap<String, Vec<(f64, f64)>>,
    /// Where the run enters another phase.
    pub phases: Vec<(f64, &'static str)>,
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
                "sample" => {
                    let kib = entry.data["memory"].as_f64();
                    if let (Some(slot), Some(kib)) = (entry.data["slot"].as_str(), kib) {
                        timeline.memory.entry(slot.to_owned()).or_default().push((at, kib / 1024.0));
                    }
                    continue;
                }
                "faults_over" | "caught_up" | "stopped" => {
                    let phases =
                        [("faults_over", "faults over"), ("caught_up", "caught up"), (STOPPED, STOPPED)];
                    timeline
                        .phases
                        .extend(phases.into_iter().filter(|one| one.0 == entry.event).map(|one| (at, one.1)));
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
        picture.legend(names);
        picture.head("faults");
        for (class, faults) in &self.faults {
            picture.lane(class, LANE / 2.0 - 0.5);
            for (at, length) in faults {
                let width = (picture.x(at + length) - picture.x(*at)).max(1.5);
                let colour = if *class == "B broker" { "#b30000" } else { "#e15759" };
                picture.rectangle(*at, width, colour, 0.75, &format!("{class} at {at:.1} s"));
            }
            picture.next(LANE);
        }
        picture.head("owners");
        let end = self.phases.iter().find(|one| one.1 == STOPPED).map_or(self.length, |one| one.0);
        for ((stage, partition), owners) in &self.owners {
            picture.lane(&format!("{stage} {partition}"), LANE / 2.0 - 0.5);
            for (index, (since, slot)) in owners.iter().enumerate() {
                let until = owners.get(index + 1).map_or(end, |next| next.0);
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
        let tasks =
            || self.positions.iter().map(|((stage, number), points)| (format!("{stage} {number}"), points));
        picture.curves("commits a second", tasks().map(|(name, points)| (name, commits(points))));
        picture.curves("lag in records", tasks().map(|(name, points)| (name, lags(points))));
        let memory = self.memory.iter().map(|(name, points)| (name.clone(), points.clone()));
        picture.curves("memory in MiB", memory);
        picture.phases(&self.phases);
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
        LEFT + at / self.length * (WIDTH - LEFT - RIGHT)
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

    /// Which colour is whose.
    fn legend(&mut self, names: &[String]) {
        self.y += 10.0;
        for (index, name) in names.iter().enumerate() {
            let (x, colour) = (LEFT + 60.0 * index as f64, COLOURS[index % COLOURS.len()]);
            let _ = writeln!(
                self.body,
                r#"<rect x="{x:.1}" y="{:.1}" width="10" height="10" fill="{colour}"/><text x="{:.1}" y="{:.1}">{}</text>"#,
                self.y - 9.0,
                x + 14.0,
                self.y,
                escape(name),
            );
        }
    }

    /// A name, and a line in the lane at this height.
    fn lane(&mut self, name: &str, line: f64) {
        let _ = writeln!(self.body, r#"<text x="2" y="{:.1}">{}</text>"#, self.y + line + 4.0, escape(name));
        let _ = writeln!(
            self.body,
            r#"<line x1="{LEFT}" x2="{:.1}" y1="{:.1}" y2="{:.1}" class="l"/>"#,
            WIDTH - RIGHT,
            self.y + line,
            self.y + line
        );
    }

    /// Lines from the top to the bottom.
    fn phases(&mut self, phases: &[(f64, &'static str)]) {
        for (at, name) in phases {
            let _ = writeln!(
                self.body,
                r#"<line x1="{0:.1}" x2="{0:.1}" y1="20" y2="{1:.1}" class="p"><title>{name} at {at:.0} s</title></line>"#,
                self.x(*at),
                self.y,
            );
        }
        let told: Vec<String> = phases.iter().map(|(at, name)| format!("{name} at {at:.0} s")).collect();
        self.y += 14.0;
        let _ = writeln!(self.body, r#"<text x="{LEFT}" y="{:.1}">{}</text>"#, self.y, told.join(", "));
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

    /// One above the other, each by its own measure from zero to its most.
    fn curves(&mut self, head: &str, all: impl Iterator<Item = (String, Vec<(f64, f64)>)>) {
        const HEIGHT: f64 = 22.0;
        self.head(head);
        for (name, points) in all {
            let top = points.iter().map(|point| point.1).fold(0.0, f64::max);
            self.lane(&format!("{name}, at most {top:.0}"), HEIGHT - 4.0);
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
        let step = round_step(self.length);
        let mut at = 0.0;
        while at <= self.length {
            let _ = writeln!(
                self.body,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{at} s</text>"#,
                self.x(at),
                self.y
            );
            at += step;
        }
        self.y += 8.0;
    }

    fn end(self) -> String {
        let style = "text{font:10px sans-serif;fill:#333}.h{font-weight:bold}.l{stroke:#ddd}\
                     .p{stroke:#999;stroke-dasharray:3}polyline{fill:none;stroke:#4e79a7;stroke-width:1}";
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {:.0}\" xmlns=\"http://www.w3.org/2000/svg\"><style>{style}</style>\n{}</svg>\n",
            self.y, self.body
        )
    }
}

/// Between two times on the axis: ten of them at most.
fn round_step(length: f64) -> f64 {
    let steps = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0];
    steps.into_iter().find(|step| length / step <= 10.0).unwrap_or(14_400.0)
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
            entry(7, "sample", json!({"slot": "i0", "memory": 51_200})),
            entry(8, "sample", json!({"slot": "i0", "memory": 102_400})),
            entry(9, "stopped", json!({})),
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
        assert_eq!(timeline.memory["i0"], [(7.0, 50.0), (8.0, 100.0)]);
        assert_eq!(timeline.phases, [(9.0, STOPPED)]);
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
        assert!(svg.contains("tally 3, at most 5<") && svg.contains("tally 3, at most 9<"), "{svg}");
        assert!(svg.contains("i0, at most 100<") && svg.contains("stopped at 9 s"), "{svg}");
        // The last owner has it until the instances end, not until the checks do: from 5 to 9 of 10 seconds.
        let width = (WIDTH - LEFT - RIGHT) * 0.4;
        assert!(svg.contains(&format!("width=\"{width:.1}\"")), "{svg}");
    }

    #[test]
    fn a_run_in_which_nothing_happened_has_a_picture() {
        assert!(Timeline::new(&[]).svg(&[]).starts_with("<svg"));
    }
}
