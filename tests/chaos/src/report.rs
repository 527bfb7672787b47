//! The report of a run: one HTML file without anything from elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flechtwerk_checkers::Check;

use crate::growth::Verdict;
use crate::journal::Entry;
use crate::outcome::{Outcome, replay};
use crate::run::Options;
use crate::timeline::{Timeline, escape};

/// The invariants with what each was looked at by.
const CHECKS: [(Check, &str); 9] = [
    (Check::Tiling, "the transactions of a task form one chain, and their intervals join"),
    (Check::Whole, "outputs, changelog and positions of an interval are all committed or all aborted"),
    (Check::Outputs, "the outputs are what a sequential model gives"),
    (Check::State, "store, changelog and model are equal"),
    (Check::Canaries, "nothing aborted was seen, or is in a store"),
    (Check::Hanging, "no transaction is open"),
    (Check::Observer, "the observer saw no value go back, twice or out of order"),
    (Check::Anomalies, "no lost, duplicate, aborted or dirty read"),
    (Check::Liveness, "everything was processed, and nobody waited for ever"),
];
/// Violations that are written out.
const SHOWN: usize = 200;

/// The whole page.
pub fn html(options: &Options, outcome: &Outcome, names: &[String], entries: &[Entry]) -> String {
    let good = outcome.holds() && outcome.counts();
    let mut body = String::new();
    // Writing to a string can't fail.
    let _ = writeln!(
        body,
        "<h1>Chaos: seed {}</h1><p class=\"{}\">{}</p>",
        options.seed,
        if good { "good" } else { "bad" },
        if outcome.violations.is_empty() { "every invariant held" } else { "an invariant was violated" },
    );
    for one in outcome.grown() {
        let _ = writeln!(body, "<p class=\"bad\">{} of {} grows</p>", one.what, escape(&one.who));
    }
    if !outcome.counts() {
        body.push_str("<p class=\"bad\">The run does not count, since it says too little:</p><ul>");
        for lack in &outcome.lacks {
            let _ = writeln!(body, "<li>{}</li>", escape(lack));
        }
        body.push_str("</ul>");
    }
    let _ = writeln!(body, "<p>Again: <code>{}</code></p>", escape(&replay(options)));
    body.push_str(
        "<h2>Invariants</h2><table><tr><th></th><th>what</th><th>looked at</th><th>violations</th></tr>",
    );
    for (check, what) in CHECKS {
        let count = outcome.violations.iter().filter(|one| one.check == check).count();
        let class = if count == 0 { "good" } else { "bad" };
        let _ = writeln!(
            body,
            "<tr><td>{}</td><td>{what}</td><td>{}</td><td class=\"{class}\">{count}</td></tr>",
            check.number(),
            looked_at(check, outcome),
        );
    }
    body.push_str("</table>");
    if !outcome.violations.is_empty() {
        body.push_str("<h2>Violations</h2><pre>");
        for violation in outcome.violations.iter().take(SHOWN) {
            let _ = writeln!(body, "{}", escape(&violation.to_string()));
        }
        body.push_str("</pre>");
    }
    body.push_str("<h2>Timeline</h2>");
    body.push_str(&Timeline::new(entries).svg(names));
    body.push_str(&tables(outcome));
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Chaos, seed {}</title><style>{STYLE}</style>\n{body}</html>\n",
        options.seed
    )
}

const STYLE: &str = "body{font:14px sans-serif;margin:2em;max-width:1200px}table{border-collapse:collapse}\
td,th{border:1px solid #ccc;padding:2px 8px;text-align:left}.good{color:#27762a}.bad{color:#b30000;font-weight:bold}\
pre{background:#f6f6f6;padding:1em;overflow:auto}svg{width:100%}";

fn looked_at(check: Check, outcome: &Outcome) -> String {
    let figures = &outcome.figures;
    match check {
        Check::Tiling => format!("{} transactions, {} owners", figures.transactions, figures.owners),
        Check::Whole => format!("{} outputs, {} changes", figures.outputs, figures.changes),
        Check::Outputs => format!("{} inputs, {} outputs", figures.inputs, figures.outputs),
        Check::State => format!("{} keys, {} stores on disk", figures.keys, figures.stores),
        Check::Canaries => {
            format!("{} aborted outputs, {} aborted inputs", figures.aborted_outputs, figures.canaries)
        }
        Check::Hanging => format!("{} abort markers", figures.aborts),
        Check::Observer | Check::Anomalies => format!("{} records read", figures.observed),
        Check::Liveness => {
            format!("all was processed {:.0} s after the last fault", outcome.caught_up)
        }
    }
}

fn tables(outcome: &Outcome) -> String {
    let mut text = String::new();
    let mut table = |head: &str, rows: &BTreeMap<String, usize>| {
        if !rows.is_empty() {
            let _ = write!(text, "<h2>{head}</h2><table>");
            for (name, count) in rows {
                let _ = writeln!(text, "<tr><td>{}</td><td>{count}</td></tr>", escape(name));
            }
            text.push_str("</table>");
        }
    };
    table("What was done", &outcome.done);
    table("Deaths at crash points", &outcome.crashes);
    let (open, kills) = outcome.left_open;
    let _ = writeln!(
        text,
        "<p>{open} of {kills} kills left a transaction open. {} instances ended by themselves and were started again. {:.0} s, \
         {:.0} s of them with faults.</p>",
        outcome.ended_alone, outcome.took, outcome.faults_took,
    );
    if !outcome.growth.is_empty() {
        text.push_str(
            "<h2>Growth</h2><p>Of processes that lived for long; by the line that fits best, with its standard error. It grows if \
             that is more than four standard errors, and more than a twentieth of the level an hour.</p>\
             <table><tr><th>instance</th><th>minutes</th><th>what</th><th>first</th><th>last</th><th>an hour</th>\
             <th>give or take</th><th>steps taken out</th><th></th></tr>",
        );
        for one in &outcome.growth {
            let _ = writeln!(
                text,
                "<tr><td>{}</td><td>{:.0}</td><td>{}</td><td>{:.0}</td><td>{:.0}</td><td>{:+.1}</td><td>{:.1}</td>\
                 <td>{}</td><td class=\"{}\">{}</td></tr>",
                escape(&one.who),
                one.minutes,
                one.what,
                one.first,
                one.last,
                one.per_hour,
                one.noise,
                one.steps,
                if one.verdict == Verdict::Grows { "bad" } else { "good" },
                one.said(),
            );
        }
        text.push_str("</table>");
    }
    text
}

#[cfg(test)]
mod tests {
    use flechtwerk_checkers::Violation;

    use super::*;
    use crate::growth::Growth;
    use crate::tier::Name;

    fn page(outcome: &Outcome) -> String {
        let options = Options {
            tier: Name::Dev.tier(),
            seed: 77,
            out: "/out".into(),
            pipeline: "/pipeline".into(),
            broken: Vec::new(),
        };
        html(&options, outcome, &["i0".to_owned()], &[])
    }

    #[test]
    fn a_good_run_says_so_and_how_to_play_it_again() {
        let growth = Growth {
            who: "i0".into(),
            minutes: 12.0,
            what: "memory in KiB",
            first: 1.0,
            last: 2.0,
            per_hour: 5.0,
            noise: 2.0,
            steps: 1,
            verdict: Verdict::Short,
        };
        let outcome = Outcome {
            done: BTreeMap::from([("kill".to_owned(), 4)]),
            left_open: (2, 4),
            growth: vec![growth],
            ..Outcome::default()
        };
        let page = page(&outcome);
        for text in [
            "every invariant held",
            "SEED=77",
            "<svg",
            "<td>kill</td><td>4</td>",
            "2 of 4 kills",
            "memory in KiB",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("does not count") && !page.contains("class=\"bad\""));
        assert!((1..=9).all(|number| page.contains(&format!("<td>I{number}</td>"))));
    }

    #[test]
    fn a_bad_one_names_what_was_violated() {
        let violation = Violation::new(Check::Tiling, "fork", "a<b");
        let lacks = vec!["rebalances: 1 of 9".to_owned()];
        let page = page(&Outcome { violations: vec![violation], lacks, ..Outcome::default() });
        assert!(page.contains("an invariant was violated") && page.contains("does not count"));
        assert!(page.contains("<li>rebalances: 1 of 9</li>"));
        assert!(page.contains("I1 fork: a&lt;b") && page.contains("<td class=\"bad\">1</td>"));
    }
}
