//! What a call asks for, its own flags read. They are read here and not by the grammar, so that a wrong one is told
//! in one report with all other mistakes of the call.

use std::ops::RangeInclusive;

use super::args::{Cli, Command, DevArgs, TopicsCommand};
use super::dev::Dev;
use super::reset::To;
use crate::settings::{flag, is_connection};
use crate::startup::Problem;

/// One command and what it needs besides the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// With the development broker, where that is wanted.
    Run(Option<Dev>),
    Check,
    Topology(Format),
    Create(Create),
    Reset(Reset),
}

/// How a topology is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Mermaid,
    Dot,
    Json,
}

/// `topics create`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Create {
    pub(super) partitions: Option<i32>,
    pub(super) replication_factor: Option<i16>,
}

/// `reset`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reset {
    pub(super) to: To,
    pub(super) replication_factor: Option<i16>,
    pub(super) execute: bool,
}

impl Asked {
    /// Reads the command; what is wrong is added to the problems, and read as if it had not been said.
    pub(super) fn read(cli: &Cli, problems: &mut Vec<Problem>) -> Asked {
        let mut read = Read { problems };
        let dev = cli.dev();
        let runs = matches!(cli.command, None | Some(Command::Run(_)));
        if !runs && (dev.dev || dev.dev_partitions.is_some()) {
            read.problems.push(Problem {
                what: "the development broker lives as long as a run, and this is another command".into(),
                place: "flag --dev".into(),
                why: String::new(),
                mend: "leave it out, or start a broker that stays: flechtwerk-dev-broker".into(),
            });
        }
        match &cli.command {
            None | Some(Command::Run(_)) => Asked::Run(read.dev(&dev, cli)),
            Some(Command::Check(_)) => Asked::Check,
            Some(Command::Topology(args)) => {
                let format =
                    read.value("format", args.format.as_deref(), "text, mermaid, dot or json", |text| {
                        match text {
                            "text" => Some(Format::Text),
                            "mermaid" => Some(Format::Mermaid),
                            "dot" => Some(Format::Dot),
                            "json" => Some(Format::Json),
                            _ => None,
                        }
                    });
                Asked::Topology(format.unwrap_or(Format::Text))
            }
            Some(Command::Topics(TopicsCommand::Create(args))) => Asked::Create(Create {
                partitions: read.number("partitions", args.partitions.as_deref(), 1..=i32::MAX),
                replication_factor: read.replicas(args.replication_factor.as_deref()),
            }),
            Some(Command::Reset(args)) => {
                let allowed = "`beginning` or a time in UTC such as 2026-01-31T12:00:00Z";
                Asked::Reset(Reset {
                    to: read.value("to", args.to.as_deref(), allowed, To::parse).unwrap_or(To::Beginning),
                    replication_factor: read.replicas(args.replication_factor.as_deref()),
                    execute: args.execute,
                })
            }
        }
    }
}

struct Read<'a> {
    problems: &'a mut Vec<Problem>,
}

impl Read<'_> {
    fn value<T>(
        &mut self,
        flag: &str,
        text: Option<&str>,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = text?;
        let value = parse(text.trim());
        if value.is_none() {
            self.problems.push(Problem {
                what: format!("{text:?} is no value for `{flag}`"),
                place: format!("flag --{flag}"),
                why: String::new(),
                mend: format!("set it to {allowed}"),
            });
        }
        value
    }

    fn number<T>(&mut self, flag: &str, text: Option<&str>, range: RangeInclusive<T>) -> Option<T>
    where
        T: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        let allowed = format!("a number from {} to {}", range.start(), range.end());
        self.value(flag, text, &allowed, |text| text.parse().ok().filter(|number| range.contains(number)))
    }

    fn dev(&mut self, args: &DevArgs, cli: &Cli) -> Option<Dev> {
        let partitions = self.number("dev-partitions", args.dev_partitions.as_deref(), 1..=1000);
        if !args.dev {
            if args.dev_partitions.is_some() {
                self.problems.push(Problem {
                    what: "there is no development broker to create topics on".into(),
                    place: "flag --dev-partitions".into(),
                    why: String::new(),
                    mend: "add --dev, or use `topics create --partitions N` for another cluster".into(),
                });
            }
            return None;
        }
        // What the environment or the file says of a cluster is weaker than this flag; other flags are not.
        let named: Vec<String> =
            cli.flags().keys().filter(|key| is_connection(key)).map(|key| flag(key)).collect();
        if !named.is_empty() {
            let named = named.join(", ");
            self.problems.push(Problem {
                what: format!("two clusters are named: the one of {named}, and the development broker"),
                place: format!("flags --dev, {named}"),
                why: String::new(),
                mend: "leave out one of them".into(),
            });
        }
        Some(Dev { partitions: partitions.unwrap_or(Dev::PARTITIONS) })
    }

    fn replicas(&mut self, text: Option<&str>) -> Option<i16> {
        self.number("replication-factor", text, 1..=i16::MAX)
    }
}
