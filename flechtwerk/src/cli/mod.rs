//! The pipeline's command line: what [`main!`](crate::main) runs.
//!
//! Reads arguments, environment and file, runs the one command that was asked for, and turns every outcome into an
//! exit status (S6.3): 0 for a clean end, 1 for a failure while running, 2 for wrong usage or a failed check.

mod args;
mod asked;
mod dev;
mod handover;
mod memory;
mod output;
mod reset;
mod signals;
mod topics;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use self::args::{Cli, Command};
use self::asked::{Asked, Format};
use self::handover::KafkaBackend;
pub(crate) use self::handover::{Backend, Connected, Launch, LaunchStage};
use self::output::{Output, count};
use self::signals::Signals;
use crate::Pipeline;
use crate::chosen::{infos, loops};
use crate::glue::AnyResource;
use crate::naming::list;
use crate::observe::{Health, MetricsServer, Restores, logging};
use crate::port::Cluster;
use crate::resource::{self, Pool};
use crate::settings::{Given, LogFormat, Settings, read};
use crate::startup::{
    Asker, Chosen, Problem, Program, Ready, ReadySchemas, ReadyStage, check, check_schemas, choose, create,
};
use crate::text_table::table;
use crate::topology::Topology;

/// Everything went well.
const CLEAN: u8 = 0;
/// Failed while running.
const FAILED: u8 = 1;
/// Wrong usage, or a startup check failed.
const REFUSED: u8 = 2;

/// Runs the command line of a pipeline: arguments and environment are those of the process.
pub(crate) fn run(pipeline: &Pipeline) -> ExitCode {
    let environment: Vec<_> = std::env::vars_os().collect();
    let terminal = output::terminal();
    let colour = terminal && output::colourful(&environment);
    let call =
        Call { arguments: std::env::args_os().collect(), environment, width: None, signals: Signals::listen };
    let (out, err) = (&mut std::io::stdout(), &mut std::io::stderr());
    ExitCode::from(main_with(
        pipeline,
        call,
        &KafkaBackend { pipeline: pipeline.name },
        &mut Output { out, err, terminal, colour },
    ))
}

/// How the process was called.
struct Call {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// Columns of the help; by default the terminal's.
    width: Option<usize>,
    /// Begins to listen to signals.
    signals: fn() -> Signals,
}

/// The whole of it, with everything from outside handed in.
fn main_with(pipeline: &Pipeline, call: Call, backend: &dyn Backend, output: &mut Output<'_>) -> u8 {
    #[cfg(feature = "crash-points")]
    let call = match crate::crash::arm(call.environment) {
        Ok(environment) => Call { environment, ..call },
        Err(problem) => {
            output.problems("1 problem with the crash points", &[problem]);
            return REFUSED;
        }
    };
    #[cfg(feature = "flaws")]
    let call = Call { environment: crate::flaws::take(call.environment), ..call };
    let program = call
        .arguments
        .first()
        .map_or_else(|| pipeline.name.to_owned(), |name| name.to_string_lossy().into_owned());
    let matches = match command(pipeline, call.width).try_get_matches_from(&call.arguments) {
        Ok(matches) => matches,
        Err(error) => return usage(&error, output),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, output),
    };
    // Before anything else is done. Commands that end by themselves are ended by a signal as any program is.
    let signals = match &cli.command {
        None | Some(Command::Run(_)) => (call.signals)(),
        Some(_) => Signals::default(),
    };
    let program = Program { name: program, flags: cli.repeated(), stages: cli.stages() };
    let given = Given {
        flags: cli.flags(),
        environment: call.environment,
        config: cli.config().cloned(),
        resources: pipeline.resources.iter().map(|entry| entry.listed.info.name).collect(),
        own_cluster: cli.dev().dev,
    };
    let (read, mut problems) = read(&given);
    let asked = Asked::read(&cli, &mut problems);
    let stages = choose(pipeline.name, &infos(pipeline.stages), &read.settings, read.known);
    let stages = stages.unwrap_or_else(|more| {
        problems.extend(more);
        Vec::new()
    });
    if !problems.is_empty() {
        if matches!(asked, Asked::Run(_) | Asked::Check) {
            problems.extend(resource::check(&resources(pipeline, &stages), &read.settings.resources));
        }
        output.problems(&format!("{} with the settings", count(problems.len(), "problem")), &problems);
        return REFUSED;
    }
    let (mut settings, warnings) = (read.settings, read.warnings);
    let dev = match asked {
        Asked::Run(Some(dev)) => Some(dev::start(dev, &stages, &mut settings, read.store_given)),
        _ => None,
    };
    let dev = match dev.transpose() {
        Ok(dev) => dev,
        Err(problem) => {
            output.problems("1 problem with the development broker", &[problem]);
            return REFUSED;
        }
    };
    if let Some(broker) = &dev {
        output.complain(&format!(
            "development broker at {}, for any Kafka client: for development only, everything in it is gone at the end\n",
            broker.address
        ));
    }
    let session = Session { pipeline, program, settings, stages, warnings, backend, signals };
    let status = session.perform(asked, output);
    // It ends with the process, which is now. If it ended before the last of the clients, what they say of it would come after the
    // error that matters.
    std::mem::forget(dev);
    status
}

/// The grammar, with the pipeline's name and stages in it.
fn command(pipeline: &Pipeline, width: Option<usize>) -> clap::Command {
    let names: Vec<&str> = infos(pipeline.stages).iter().map(|stage| stage.name).collect();
    let stages = if names.len() == 1 { "stage" } else { "stages" };
    let about = format!("The pipeline `{}`: {stages} {}", pipeline.name, list(&names));
    let command = negative_numbers(Cli::command().name(pipeline.name).about(about));
    match width {
        Some(width) => command.term_width(width),
        None => command.max_term_width(120),
    }
}

/// Lets `--max-poll-records -1` be a value, though a wrong one, and not a flag that nobody knows.
fn negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(negative_numbers)
}

fn usage(error: &clap::Error, output: &mut Output<'_>) -> u8 {
    let rendered = error.render();
    if error.use_stderr() {
        let text = if output.colour { rendered.ansi().to_string() } else { rendered.to_string() };
        output.complain(&text);
        REFUSED
    } else {
        output.answer(&rendered.to_string());
        CLEAN
    }
}

/// One call, its settings read.
struct Session<'a> {
    pipeline: &'a Pipeline,
    program: Program,
    settings: Settings,
    stages: Vec<Chosen>,
    warnings: Vec<String>,
    backend: &'a dyn Backend,
    signals: Signals,
}

/// An answer to print and what is wrong all the same, or what kept from it.
type Answer = Result<(String, Vec<Problem>), Vec<Problem>>;

impl Session<'_> {
    fn perform(self, asked: Asked, output: &mut Output<'_>) -> u8 {
        let answer = match asked {
            Asked::Run(_) => return self.run(output),
            Asked::Topology(format) => Ok((self.topology(format), Vec::new())),
            other => {
                logging::start(&self.settings, "warn", output.colour, None);
                self.warn();
                self.ask(other)
            }
        };
        let (text, problems) = answer.unwrap_or_else(|problems| (String::new(), problems));
        output.answer(&text);
        if problems.is_empty() {
            return CLEAN;
        }
        output.problems(&self.heading(problems.len()), &problems);
        REFUSED
    }

    fn heading(&self, problems: usize) -> String {
        format!(
            "{} with the pipeline `{}` on {}",
            count(problems, "problem"),
            self.pipeline.name,
            self.settings.bootstrap_servers
        )
    }

    fn warn(&self) {
        for warning in self.warnings.iter().chain(&loops(&self.stages)) {
            tracing::warn!("{warning}");
        }
    }

    fn topology(&self, format: Format) -> String {
        let topology = Topology::new(self.pipeline.name, &self.stages);
        match format {
            Format::Text => topology.text(),
            Format::Mermaid => topology.mermaid(),
            Format::Dot => topology.dot(),
            Format::Json => topology.json(),
        }
    }

    /// The commands that need a cluster and end by themselves.
    fn ask(&self, asked: Asked) -> Answer {
        let connected = match &asked {
            Asked::Check => self.connect()?,
            _ => self.backend.connect(&self.settings).map_err(|problem| vec![problem])?,
        };
        let asker = Asker::new(connected.cluster(), &self.settings);
        match asked {
            Asked::Check => {
                let (ready, schemas) = self.check(connected.cluster())?;
                let rows = ready.stages.iter().map(|stage| {
                    let names = &stage.names;
                    let changelog = match (&names.changelog, &stage.changelog_id) {
                        (None, _) => "-".to_owned(),
                        (Some(name), Some(_)) => name.to_string(),
                        (Some(name), None) => format!("{name} (made by `run`)"),
                    };
                    vec![
                        names.stage.to_owned(),
                        names.group().to_string(),
                        stage.partitions.to_string(),
                        changelog,
                    ]
                });
                let found = table(&["STAGE", "GROUP", "TASKS", "CHANGELOG"], rows);
                let missing = schemas.iter().flat_map(ReadySchemas::missing);
                let missing = missing.map(|subject| format!("schema of {subject}: registered by `run`\n"));
                let missing: String = missing.collect();
                Ok((format!("{found}\n{missing}all checks passed\n"), Vec::new()))
            }
            Asked::Create(args) => topics::create(args, &self.stages, &self.settings, &asker, &self.program),
            Asked::Reset(args) => Ok((reset::reset(args, &self.stages, &asker, &self.program)?, Vec::new())),
            Asked::Run(_) | Asked::Topology(_) => Ok((String::new(), Vec::new())),
        }
    }

    fn run(self, output: &mut Output<'_>) -> u8 {
        let restores = Restores::new(output.terminal && self.settings.log_format == LogFormat::Text);
        logging::start(&self.settings, "info", output.colour, Some(&restores));
        self.warn();
        let prepared = self.prepare(restores);
        if self.signals.asked() {
            if let Ok((launch, _)) = prepared {
                launch.pool.close(|| false);
            }
            tracing::info!(pipeline = self.pipeline.name, "stopped before it had started");
            return CLEAN;
        }
        let (launch, connected) = match prepared {
            Ok(ready) => ready,
            Err(problems) => {
                let heading = self.heading(problems.len());
                match self.settings.log_format {
                    LogFormat::Text => output.problems(&heading, &problems),
                    LogFormat::Json => log_problems(&problems),
                }
                return REFUSED;
            }
        };
        tracing::info!(pipeline = self.pipeline.name, stages = self.stages.len(), "starting");
        let health = launch.health.clone();
        let ended = connected.run(launch);
        health.stopped();
        match ended {
            Ok(()) => {
                tracing::info!(pipeline = self.pipeline.name, "stopped");
                CLEAN
            }
            Err(error) => {
                // The one line that must not depend on what is logged, except where only programs read it.
                match self.settings.log_format {
                    LogFormat::Text => output.complain(&format!("error: {error}\n")),
                    LogFormat::Json => tracing::error!(pipeline = self.pipeline.name, "{error}"),
                }
                FAILED
            }
        }
    }

    /// Everything that must have succeeded before a group is joined.
    fn prepare(&self, restores: Restores) -> Result<(Launch, Box<dyn Connected>), Vec<Problem>> {
        let health = Health::new(self.stages.iter().map(|stage| stage.info.name));
        if let Some(address) = &self.settings.metrics_listen {
            let address = MetricsServer::start(address, health.clone());
            let address = address.map_err(|problem| self.misfits_and(problem))?;
            tracing::info!(%address, "serving /metrics, /live and /ready");
        }
        let connected = self.connect()?;
        let cluster = connected.cluster();
        let (ready, schemas) = self.check(cluster)?;
        let ready = create(ready, &self.stages, &self.settings, cluster, &self.program)?;
        let schemas = schemas.map(ReadySchemas::put_in_force).transpose()?;
        let stages = ready.stages.into_iter().filter_map(|stage| self.launch(stage)).collect();
        // Last, so that nothing has to be closed because something else fails.
        let pool = Pool::make(&self.resources(), &self.settings.resources)?;
        let (settings, signals) = (self.settings.clone(), self.signals.clone());
        Ok((Launch { settings, stages, pool, schemas, health, restores, signals }, connected))
    }

    fn resources(&self) -> Vec<&'static dyn AnyResource> {
        resources(self.pipeline, &self.stages)
    }

    fn connect(&self) -> Result<Box<dyn Connected>, Vec<Problem>> {
        self.backend.connect(&self.settings).map_err(|problem| self.misfits_and(problem))
    }

    /// What keeps the cluster from being looked at keeps nobody from looking at the settings of resources.
    fn misfits_and(&self, problem: Problem) -> Vec<Problem> {
        let mut problems = resource::check(&self.resources(), &self.settings.resources);
        problems.push(problem);
        problems
    }

    /// All checks that change nothing: the settings of resources, the schema registry, and the cluster.
    fn check(&self, cluster: &dyn Cluster) -> Result<(Ready, Option<ReadySchemas>), Vec<Problem>> {
        let mut problems = resource::check(&self.resources(), &self.settings.resources);
        let schemas = check_schemas(&self.stages, &self.settings, &self.program);
        let ready = check(&self.stages, &self.settings, cluster, &self.program);
        match (ready, schemas) {
            (Ok(ready), Ok(schemas)) if problems.is_empty() => {
                for warning in &ready.warnings {
                    tracing::warn!("{warning}");
                }
                Ok((ready, schemas))
            }
            (ready, schemas) => {
                problems.extend(ready.err().into_iter().flatten());
                problems.extend(schemas.err().into_iter().flatten());
                Err(problems)
            }
        }
    }

    fn launch(&self, ready: ReadyStage) -> Option<LaunchStage> {
        let ReadyStage { names, partitions, table_partitions, changelog_id } = ready;
        let stage = *self.pipeline.stages.iter().find(|stage| stage.info().name == names.stage)?;
        Some(LaunchStage { stage, names, partitions, table_partitions, changelog_id })
    }
}

/// The resources that these stages need.
fn resources(pipeline: &Pipeline, stages: &[Chosen]) -> Vec<&'static dyn AnyResource> {
    let stages: Vec<_> = stages.iter().map(|chosen| chosen.info).collect();
    resource::choose(pipeline.resources, &stages)
}

fn log_problems(problems: &[Problem]) {
    for Problem { what, place, why, mend } in problems {
        tracing::error!(place, why, mend, "{what}");
    }
}

#[cfg(test)]
mod tests;
