//! The checks of schemas (S1.6): every schema that a stage writes is in the registry, or may be put there; and what a registry
//! holds of what a stage reads, its types can read. The ids are known from then on.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ask::repeat;
use super::{Chosen, Problem, Program};
use crate::codec::confluent::{connect, frame, learn};
use crate::codec::schema::{Of, OwnSchema, RegisteredSchema, SchemaInfo};
use crate::glue::{RecordPart, TopicInfo};
use crate::naming::list;
use crate::port::{BrokerError, ErrorKind, Schemas};
use crate::registry::{Fault, Registry};
use crate::settings::{SchemaRegistry, Settings};

/// How long a registry may say that it has no schema of an id: its copies may be behind each other.
const LATE: Duration = Duration::from_secs(3);

/// A part of a topic whose schema a registry holds.
struct Use {
    of: Of,
    schema: &'static SchemaInfo,
    /// The topic's name in the cluster.
    topic: Arc<str>,
    written_by: Vec<&'static str>,
    read_by: Vec<&'static str>,
}

impl Use {
    fn subject(&self) -> String {
        match self.of.part {
            RecordPart::Key => format!("{}-key", self.topic),
            RecordPart::Value => format!("{}-value", self.topic),
        }
    }

    fn place(&self) -> String {
        let mut stages = self.written_by.clone();
        stages.extend(self.read_by.iter().filter(|stage| !self.written_by.contains(*stage)));
        format!("the {}s of topic `{}`, stages {}", self.of.part.name(), self.topic, list(&stages))
    }

    fn type_name(&self) -> &'static str {
        (self.schema.type_name)()
    }
}

/// What the stages have to do with a registry, each part of a topic once.
fn uses(stages: &[Chosen]) -> Vec<Use> {
    let mut all: BTreeMap<(Arc<str>, bool), Use> = BTreeMap::new();
    for Chosen { info, names } in stages {
        let inputs = info.inputs.iter().copied().zip(&names.inputs);
        let tables = info.tables().map(|table| table.topic).zip(&names.tables);
        let read = inputs.chain(tables).map(|(topic, name)| (topic, name, false));
        let written = info.outputs().zip(&names.outputs).map(|(topic, name)| (topic, name, true));
        let read_and_written: Vec<(&'static TopicInfo, &Arc<str>, bool)> = read.chain(written).collect();
        for (topic, name, writes) in read_and_written {
            for (part, schema) in [RecordPart::Key, RecordPart::Value].into_iter().zip(topic.schemas) {
                let Some(schema) = schema else { continue };
                let of = Of { topic, part };
                let one = all.entry((name.clone(), part == RecordPart::Value)).or_insert_with(|| Use {
                    of,
                    schema,
                    topic: name.clone(),
                    written_by: Vec::new(),
                    read_by: Vec::new(),
                });
                if writes { &mut one.written_by } else { &mut one.read_by }.push(info.name);
            }
        }
    }
    all.into_values().collect()
}

/// What the checks have found: ready to be put in force.
pub(crate) struct ReadySchemas {
    registry: Arc<Registry>,
    fronts: Vec<(Of, Vec<u8>)>,
    seen: Vec<(u32, RegisteredSchema)>,
    missing: Vec<Missing>,
}

/// A schema that may be put into the registry.
struct Missing {
    of: Of,
    place: String,
    subject: String,
    kind: &'static str,
    own: OwnSchema,
}

/// Everything that is wrong; `None` where no topic has a schema, or where this process numbers them itself. Changes nothing.
pub(crate) fn check_schemas(
    stages: &[Chosen],
    settings: &Settings,
    program: &Program,
) -> Result<Option<ReadySchemas>, Vec<Problem>> {
    let uses = uses(stages);
    let Some(first) = uses.first() else { return Ok(None) };
    let access = match &settings.schema_registry {
        SchemaRegistry::InProcess => return Ok(None),
        SchemaRegistry::At(access) => access,
        SchemaRegistry::None => {
            return Err(vec![Problem {
                what: "no schema registry is named".into(),
                place: first.place(),
                why: format!(
                    "`{}` is written as the id of its schema and the value, and a registry gives the ids out",
                    first.type_name()
                ),
                mend: program.command("run --schema-registry http://HOST:8081"),
            }]);
        }
    };
    let registry = Registry::new(&access.urls, &access.credentials(), access.ca.as_deref());
    let registry = registry.map_err(|error| {
        vec![Problem {
            what: format!("no client of the schema registry can be made: {error}"),
            place: "setting `schema_registry_ca`".into(),
            why: String::new(),
            mend: "name a file with the certificates of the authorities to trust".into(),
        }]
    })?;
    let mut check = Check { registry: &registry, settings, program, seen: Vec::new(), problems: Vec::new() };
    let (mut fronts, mut missing) = (Vec::new(), Vec::new());
    for one in &uses {
        let found = check.one(one, &mut fronts, &mut missing);
        if let Err(fault) = found {
            check.problems.push(check.fault(one, &fault));
            // The others would say the same.
            break;
        }
    }
    let Check { seen, problems, .. } = check;
    match problems.is_empty() {
        true => Ok(Some(ReadySchemas { registry: Arc::new(registry), fronts, seen, missing })),
        false => Err(problems),
    }
}

struct Check<'a> {
    registry: &'a Registry,
    settings: &'a Settings,
    program: &'a Program,
    /// Schemas that need not be asked for again.
    seen: Vec<(u32, RegisteredSchema)>,
    problems: Vec<Problem>,
}

impl Check<'_> {
    /// Asks, and asks again while that may help.
    fn ask<T>(&self, call: impl Fn(&Registry) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut last = None;
        let answer = repeat(self.settings.connect_timeout, |_| {
            call(self.registry).map_err(|fault| {
                let error = broker_error(&fault);
                last = Some(fault);
                error
            })
        });
        answer.map_err(|error| last.unwrap_or(Fault::Silent { url: String::new(), why: error.text }))
    }

    fn one(
        &mut self,
        one: &Use,
        fronts: &mut Vec<(Of, Vec<u8>)>,
        missing: &mut Vec<Missing>,
    ) -> Result<(), Fault> {
        let subject = one.subject();
        let latest = self.ask(|registry| registry.latest(&subject))?;
        if !one.read_by.is_empty()
            && let Some(latest) = &latest
        {
            let id = latest.id;
            self.seen.push((id, latest.schema.clone()));
            if let Err(why) = (one.schema.readable)(&latest.schema) {
                self.problems.push(Problem {
                    what: format!(
                        "what is written by schema {id}, version {} of subject `{subject}`, can't be read as `{}`: {why}",
                        latest.version,
                        one.type_name()
                    ),
                    place: one.place(),
                    why: "the records that are written now would not decode".into(),
                    mend: "bring the type up to that schema: a field that it lacks needs a default, one of another type needs that type"
                        .into(),
                });
            }
        }
        if one.written_by.is_empty() {
            return Ok(());
        }
        let own = match (one.schema.own)(one.of.part) {
            Ok(own) => own,
            Err(error) => {
                self.problems.push(Problem {
                    what: format!("`{}` has no schema that can be written: {error}", one.type_name()),
                    place: one.place(),
                    why: String::new(),
                    mend: "mend what the message names".into(),
                });
                return Ok(());
            }
        };
        let kind = one.schema.kind;
        let same = latest.as_ref().filter(|latest| (one.schema.same)(&latest.schema));
        let id = match same {
            Some(latest) => Some(latest.id),
            None if latest.is_none() => None,
            None => self.ask(|registry| registry.look_up(&subject, kind, &own.text))?,
        };
        if let Some(id) = id {
            fronts.push((one.of, frame::front(id, &own.behind_id)));
            return Ok(());
        }
        if latest.is_some()
            && let Err(why) = self.ask(|registry| registry.compatible(&subject, kind, &own.text))?
        {
            self.problems.push(Problem {
                what: format!("the schema of `{}` can't be the next version of subject `{subject}`: {why}", one.type_name()),
                place: one.place(),
                why: "the subject's rules keep those who read it from records that they can't read".into(),
                mend: "change the type so that it fits: add fields with a default, remove only those that had one; or write to \
                       another topic"
                    .into(),
            });
            return Ok(());
        }
        if !self.settings.register_schemas {
            self.problems.push(Problem {
                what: match latest {
                    None => format!("subject `{subject}` has no schema"),
                    Some(_) => {
                        format!("the schema of `{}` is no version of subject `{subject}`", one.type_name())
                    }
                },
                place: one.place(),
                why: "what is written names its schema by the id that the registry gave it".into(),
                mend: format!(
                    "have it registered by whoever keeps the registry, or by this program:\n{}",
                    self.program.command("run --register-schemas")
                ),
            });
            return Ok(());
        }
        missing.push(Missing { of: one.of, place: one.place(), subject, kind, own });
        Ok(())
    }

    fn fault(&self, one: &Use, fault: &Fault) -> Problem {
        Problem {
            what: format!("the schema registry can't be asked: {fault}"),
            place: format!("setting `schema_registry`, for {}", one.place()),
            why: "what is written there names its schema by an id that the registry gives out".into(),
            mend: match fault {
                _ if fault.is_about_rights() => {
                    "see --schema-registry-username with --schema-registry-password-file, or \
                     --schema-registry-token-file, and what that user may do"
                        .into()
                }
                Fault::Stranger { .. } => {
                    "name the address under which /subjects is found with --schema-registry URL (for \
                     Apicurio's it ends in /apis/ccompat/v7)"
                        .into()
                }
                _ => "start the registry, or name another with --schema-registry URL".into(),
            },
        }
    }
}

impl ReadySchemas {
    /// What would be put into the registry: type, subject.
    pub(crate) fn missing(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().map(|missing| missing.subject.as_str())
    }

    /// Registers what is missing, and has the codecs use the ids from now on.
    pub(crate) fn put_in_force(self) -> Result<Arc<dyn Schemas>, Vec<Problem>> {
        let ReadySchemas { registry, mut fronts, seen, missing } = self;
        for Missing { of, place, subject, kind, own } in missing {
            match registry.register(&subject, kind, &own.text) {
                Ok(id) => {
                    tracing::info!(subject, id, "registered a schema");
                    fronts.push((of, frame::front(id, &own.behind_id)));
                }
                Err(fault) => {
                    return Err(vec![Problem {
                        what: format!(
                            "the schema can't be registered as a version of subject `{subject}`: {fault}"
                        ),
                        place,
                        why: String::new(),
                        mend: "see what the registry says, and what this user may do".into(),
                    }]);
                }
            }
        }
        connect(fronts);
        seen.into_iter().for_each(|(id, schema)| learn(id, Some(schema)));
        Ok(Arc::new(Fetching { registry, asked: Mutex::default() }))
    }
}

/// Asks a registry for schemas that come up in records.
struct Fetching {
    registry: Arc<Registry>,
    /// Since when the registry has none of an id.
    asked: Mutex<HashMap<u32, Instant>>,
}

impl Schemas for Fetching {
    fn fetch(&self, id: u32) -> Result<(), BrokerError> {
        let schema = self.registry.schema(id).map_err(|fault| broker_error(&fault))?;
        if schema.is_none() {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            if asked.entry(id).or_insert_with(Instant::now).elapsed() < LATE {
                return Err(BrokerError {
                    kind: ErrorKind::Retriable,
                    code: "unknown id".into(),
                    text: "the schema registry has no schema of this id yet".into(),
                    output: None,
                    size: None,
                });
            }
            asked.remove(&id);
            tracing::warn!(
                id,
                "the schema registry has no schema of this id: the records that name it are not valid"
            );
        }
        learn(id, schema);
        Ok(())
    }
}

/// In the words of what is repeated and what is not.
fn broker_error(fault: &Fault) -> BrokerError {
    BrokerError {
        kind: if fault.passes() { ErrorKind::Retriable } else { ErrorKind::Hopeless },
        code: "schema registry".into(),
        text: fault.to_string(),
        output: None,
        size: None,
    }
}

#[cfg(all(test, feature = "avro", feature = "protobuf"))]
mod tests;
