//! Reads all settings out of their layers, reporting every wrong one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::Figment;
use figment::value::Value;

use super::doubts::Doubts;
use super::layers::{Layer, Layers, ReadFile, layers};
use super::values::{Address, Bytes, LogFilter, Namespace, Setting, text};
use super::{Given, Librdkafka, Sasl, SaslMechanism, Secret, SecurityProtocol, Settings, Source, Tls};
use super::{keys, librdkafka, validate};
use crate::naming::Known;
use crate::resource::Said;
use crate::startup::Problem;

/// What was read, and what is worth saying about it.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What could not be read has its default here.
    pub(crate) settings: Settings,
    /// Nothing wrong, but likely not meant.
    pub(crate) warnings: Vec<String>,
    /// What names are made of, as far as it was read.
    pub(crate) known: Known,
    /// Somebody said where state is kept.
    pub(crate) store_given: bool,
}

/// Reads, checks and completes the settings; with everything that is wrong with them.
pub(crate) fn read(given: &Given) -> (Loaded, Vec<Problem>) {
    read_with(given, &|path| std::fs::read_to_string(path))
}

/// The same with a settings file from anywhere.
pub(super) fn read_with(given: &Given, read_file: ReadFile<'_>) -> (Loaded, Vec<Problem>) {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let Layers { layers, resources, doubts } = layers(given, read_file, &mut problems, &mut warnings);
    let figment = layers.iter().fold(Figment::new(), Figment::merge);
    let mut reader = Reader { figment, layers, problems, doubts };
    let settings = Settings { resources, ..reader.settings() };
    validate::check(&settings, &reader.given(), &mut reader.problems);
    let store_given = reader.source("store") != Source::Default;
    let known = Known { namespace: reader.sure("namespace"), topics: reader.sure("topic") };
    (Loaded { settings, warnings, known, store_given }, reader.problems)
}

pub(super) struct Reader {
    figment: Figment,
    layers: Vec<Layer>,
    pub(super) problems: Vec<Problem>,
    doubts: Doubts,
}

impl Reader {
    fn settings(&mut self) -> Settings {
        let default = Settings::default();
        let tls = self.tls();
        let sasl = self.sasl();
        let inferred = match (&sasl, &tls) {
            (Some(_), _) => SecurityProtocol::SaslTls,
            (None, tls) if *tls != Tls::default() => SecurityProtocol::Tls,
            _ => SecurityProtocol::Plaintext,
        };
        Settings {
            bootstrap_servers: self.get("bootstrap_servers", default.bootstrap_servers),
            security_protocol: self.get("security_protocol", inferred),
            sasl,
            tls,
            stage: self.get("stage", default.stage),
            namespace: self.find::<Namespace>("namespace").map_or(default.namespace, |namespace| namespace.0),
            topic: self.pairs("topic").into_iter().map(|(name, (value, _))| (name, value)).collect(),
            create_outputs: self.get("create_outputs", default.create_outputs),
            instance_id: self.find("instance_id"),
            stay_in_group: self.get("stay_in_group", default.stay_in_group),
            store: self.get("store", default.store),
            state_dir: self.find::<String>("state_dir").map_or(default.state_dir, PathBuf::from),
            max_poll_records: self.get("max_poll_records", default.max_poll_records),
            max_batch_bytes: self.get("max_batch_bytes", Bytes(default.max_batch_bytes)).0,
            max_batch_time: self.time("max_batch_time", default.max_batch_time),
            commit_interval: self.get("commit_interval", default.commit_interval),
            max_concurrent_polls: self.get("max_concurrent_polls", default.max_concurrent_polls),
            connect_timeout: self.time("connect_timeout", default.connect_timeout),
            broker_timeout: self.time("broker_timeout", default.broker_timeout),
            revoke_timeout: self.time("revoke_timeout", default.revoke_timeout),
            session_timeout: self.time("session_timeout", default.session_timeout),
            heartbeat_interval: self.time("heartbeat_interval", default.heartbeat_interval),
            transaction_timeout: self.time("transaction_timeout", default.transaction_timeout),
            shutdown_timeout: self.time("shutdown_timeout", default.shutdown_timeout),
            metrics_listen: self.find::<Address>("metrics_listen").map(|address| address.0),
            log_format: self.get("log_format", default.log_format),
            log: self.find::<LogFilter>("log").map(|filter| filter.0),
            librdkafka: self.librdkafka(),
            schema_registry: self.schema_registry(),
            register_schemas: self.get("register_schemas", default.register_schemas),
            resources: Said::default(),
        }
    }

    /// The strongest layer that says something about `key`.
    pub(super) fn source(&self, key: &str) -> Source {
        let found = self.layers.iter().rev().find(|layer| layer.dict.contains_key(key));
        found.map_or(Source::Default, |layer| layer.source.clone())
    }

    fn place(&self, key: &str) -> String {
        self.source(key).place(key)
    }

    /// False where a setting has its default and something else may have been meant.
    fn sure(&self, key: &str) -> bool {
        // The mappings of a stronger place leave those of the file.
        let file_counts = key == "topic" || self.source(key) == Source::Default;
        !self.doubts.about(key, file_counts)
    }

    /// Where each setting came from, and which were understood.
    pub(super) fn given(&self) -> validate::Places {
        let sources = keys::KEYS.iter().map(|key| (key.name, self.source(key.name))).collect();
        let sure = keys::KEYS.iter().map(|key| key.name).filter(|key| self.sure(key)).collect();
        validate::Places { sources, sure }
    }

    pub(super) fn find<T: Setting>(&mut self, key: &str) -> Option<T> {
        debug_assert!(keys::find(key).is_some_and(|key| !key.secret), "{key}");
        let value = self.figment.find_value(key).ok()?;
        let read = T::read(&value);
        if read.is_none() {
            self.doubts.add(key);
            let shown = text(&value).map_or_else(|| "that".to_owned(), |text| format!("{text:?}"));
            self.problems.push(Problem {
                what: format!("{shown} is no value for `{key}`"),
                place: self.place(key),
                why: String::new(),
                mend: format!("set it to {}", T::ALLOWED),
            });
        }
        read
    }

    fn get<T: Setting>(&mut self, key: &str, default: T) -> T {
        self.find(key).unwrap_or(default)
    }

    /// A time that must be above zero.
    fn time(&mut self, key: &str, default: Duration) -> Duration {
        let time = self.get(key, default);
        if time < Duration::from_millis(1) {
            self.doubts.add(key);
            self.problems.push(Problem {
                what: format!("`{key}` is below 1ms"),
                place: self.place(key),
                why: String::new(),
                mend: format!("set it to {}", Duration::ALLOWED),
            });
            return default;
        }
        time
    }

    /// The entries of `topic` or `kafka`, each with its source.
    fn pairs(&mut self, key: &str) -> BTreeMap<String, (String, Source)> {
        let mut pairs = BTreeMap::new();
        for layer in &self.layers {
            // Any other form was made a dictionary, or reported, when the layer was read.
            let Some(Value::Dict(_, dict)) = layer.dict.get(key) else { continue };
            for (name, value) in dict {
                match text(value) {
                    Some(value) => drop(pairs.insert(name.clone(), (value, layer.source.clone()))),
                    None => {
                        self.doubts.add(key);
                        self.problems.push(Problem {
                            what: format!(
                                "`{name}` of `{key}` is neither text nor a number nor true or false"
                            ),
                            place: layer.source.place(key),
                            why: String::new(),
                            mend: format!("write {name} = \"..\" in the table [{key}]"),
                        });
                    }
                }
            }
        }
        pairs
    }

    fn librdkafka(&mut self) -> Librdkafka {
        let mut accepted = BTreeMap::new();
        for (name, (value, source)) in self.pairs("kafka") {
            let before = self.problems.len();
            librdkafka::check(&name, &value, &source, &mut self.problems);
            if self.problems.len() == before {
                accepted.insert(name, value);
            }
        }
        Librdkafka::new(accepted)
    }

    fn tls(&mut self) -> Tls {
        let (ca, cert, key) = (self.file("tls_ca"), self.file("tls_cert"), self.file("tls_key"));
        Tls { ca, cert, key, key_password: self.secret("tls_key_password") }
    }

    /// A file that can be read.
    pub(super) fn file(&mut self, key: &str) -> Option<PathBuf> {
        let path = self.find::<String>(key).map(PathBuf::from);
        path.filter(|path| self.readable(key, path))
    }

    fn sasl(&mut self) -> Option<Sasl> {
        let mechanism = self.find::<SaslMechanism>("sasl_mechanism");
        let username = self.find::<String>("sasl_username");
        let password = self.secret("sasl_password");
        let asked =
            self.source("sasl_mechanism") != Source::Default || username.is_some() || password.is_some();
        if !asked {
            return None;
        }
        Some(Sasl {
            // SCRAM never shows the password to the other side; PLAIN has to be asked for.
            mechanism: mechanism.unwrap_or(SaslMechanism::ScramSha512),
            // What is missing is told with everything else that does not fit together.
            username: username.unwrap_or_default(),
            password: password.unwrap_or_else(|| Secret::new("")),
        })
    }

    /// A secret from the file that `{key}_file` names, or from the environment. A file named by a flag is stronger
    /// than the variable, one named by the settings file is weaker.
    pub(super) fn secret(&mut self, key: &str) -> Option<Secret> {
        let file_key = format!("{key}_file");
        let environment = self.layers.iter().find(|layer| layer.source == Source::Environment);
        let in_environment =
            environment.and_then(|layer| layer.dict.get(key)).and_then(text).map(Secret::new);
        let file_source = self.source(&file_key);
        if in_environment.is_some() && file_source == Source::Environment {
            self.problems.push(Problem {
                what: format!("both {} and {} are set", keys::variable(key), keys::variable(&file_key)),
                place: "the environment".into(),
                why: "it can't be told which one is meant".into(),
                mend: "remove one of them".into(),
            });
        }
        if in_environment.is_some() && file_source != Source::Flags {
            return in_environment;
        }
        let path = PathBuf::from(self.find::<String>(&file_key)?);
        if !self.readable(&file_key, &path) {
            return None;
        }
        let content = std::fs::read_to_string(&path).unwrap_or_default();
        let secret = content.trim_end_matches(['\n', '\r']);
        if secret.is_empty() {
            self.doubts.add(&file_key);
            self.problems.push(Problem {
                what: format!("the file {} holds no text", path.display()),
                place: self.place(&file_key),
                why: String::new(),
                mend: "write the secret into it, and nothing else".into(),
            });
            return None;
        }
        Some(Secret::new(secret))
    }

    fn readable(&mut self, key: &str, path: &Path) -> bool {
        match std::fs::File::open(path).and_then(|file| file.metadata()) {
            Ok(metadata) if metadata.is_file() || !metadata.is_dir() => true,
            other => {
                let reason =
                    other.err().map_or_else(|| "it is a folder".to_owned(), |error| error.to_string());
                self.doubts.add(key);
                self.problems.push(Problem {
                    what: format!("the file {} can't be read: {reason}", path.display()),
                    place: self.place(key),
                    why: String::new(),
                    mend: "name a readable file".into(),
                });
                false
            }
        }
    }
}
