//! The three places that settings come from, brought into one form.
//!
//! Everything in a layer is text or a list of texts, except numbers and booleans of the file: guessing at types
//! would make the namespace `007` a 7. The settings with names of their own, `topic` and `kafka`, become
//! dictionaries in every layer, so that each entry is overridden for itself.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};

use super::doubts::Doubts;
use super::keys::{self, KEYS, PREFIX};
use super::resources::Resources;
use super::values::text;
use crate::naming::mapped_twice;
use crate::nearest::nearest;
use crate::resource::Said;
use crate::startup::Problem;

/// What the binary was given, before anything is read. Not to be shown: the environment holds secrets.
#[derive(Clone, Default)]
pub(crate) struct Given {
    /// The flags that were named, by setting.
    pub(crate) flags: Dict,
    /// The whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The file, by flag.
    pub(crate) config: Option<PathBuf>,
    /// The pipeline's resources, whose settings are of their own kind.
    pub(crate) resources: Vec<&'static str>,
    /// The program brings its own cluster: how to reach another one does not matter.
    pub(crate) own_cluster: bool,
}

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nothing was said about it.
    Default,
    File(PathBuf),
    Environment,
    Flags,
}

impl Source {
    /// The place of one setting, for messages.
    pub(super) fn place(&self, key: &str) -> String {
        match self {
            Source::Default => format!("default of `{key}`"),
            Source::File(path) => format!("`{key}` in {}", path.display()),
            Source::Environment => format!("environment variable {}", keys::variable(key)),
            Source::Flags => format!("flag {}", keys::flag(key)),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("the defaults"),
            Source::File(path) => write!(f, "the file {}", path.display()),
            Source::Environment => f.write_str("the environment"),
            Source::Flags => f.write_str("the command line"),
        }
    }
}

/// Reads the settings file.
pub(super) type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<String>;

/// One place's settings.
pub(super) struct Layer {
    pub(super) source: Source,
    pub(super) dict: Dict,
}

impl Provider for &Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.source.to_string())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
}

/// What was said about settings.
pub(super) struct Layers {
    /// The weakest first.
    pub(super) layers: Vec<Layer>,
    pub(super) resources: Said,
    /// What was said and not understood.
    pub(super) doubts: Doubts,
}

/// Reads all layers. Variables `FLECHTWERK_TEST_..` belong to test runs and are none of ours.
pub(super) fn layers(
    given: &Given,
    read_file: ReadFile<'_>,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
) -> Layers {
    let (mut resources, mut doubts) = (Resources::new(&given.resources), Doubts::default());
    let mut environment = environment(&given.environment, &mut resources, problems, warnings, &mut doubts);
    let config = match environment.remove("config") {
        Some(path) if given.config.is_none() => text(&path).map(PathBuf::from),
        _ => given.config.clone(),
    };
    let mut layers = Vec::new();
    if let Some(path) = config
        && let Some(dict) = file(&path, read_file, &mut resources, problems, &mut doubts)
    {
        layers.push(Layer { source: Source::File(path), dict });
    }
    layers.push(Layer { source: Source::Environment, dict: environment });
    layers.push(Layer { source: Source::Flags, dict: given.flags.clone() });
    for layer in &mut layers {
        for key in ["topic", "kafka"] {
            pairs(key, layer, problems, &mut doubts);
        }
    }
    if given.own_cluster {
        leave_out_connection(&mut layers, warnings);
    }
    let resources = resources.read(problems);
    Layers { layers, resources, doubts }
}

/// Flags that say so were refused; what the environment and the file say is meant for other calls.
fn leave_out_connection(layers: &mut [Layer], warnings: &mut Vec<String>) {
    let mut unused = Vec::new();
    for Layer { source, dict } in layers {
        let connection = dict.keys().filter(|key| keys::is_connection(key));
        let connection: Vec<String> = connection.cloned().collect();
        for key in connection {
            dict.remove(&key);
            unused.push(source.place(&key));
        }
    }
    if !unused.is_empty() {
        warnings.push(format!(
            "not used, since --dev runs on a broker of its own: {}; without --dev the pipeline runs on that cluster",
            unused.join(", ")
        ));
    }
}

fn environment(
    all: &[(OsString, OsString)],
    resources: &mut Resources,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<String>,
    doubts: &mut Doubts,
) -> Dict {
    let mut dict = Dict::new();
    let mut kafka = Dict::new();
    for (name, value) in all {
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let key = rest.to_ascii_lowercase();
        let Some(value) = value.to_str() else {
            problems.push(Problem {
                what: format!("the value of {PREFIX}{rest} is not UTF-8"),
                place: format!("environment variable {PREFIX}{rest}"),
                why: String::new(),
                mend: "set it to UTF-8 text".into(),
            });
            match key.as_str() {
                "config" => {
                    doubts.add_file();
                    resources.unread();
                }
                key if key.starts_with("resources_") => resources.unread(),
                key => doubts.add(key),
            }
            continue;
        };
        // Set to nothing is how many tools leave a variable out.
        if value.is_empty() {
            continue;
        }
        if let Some(name) = key.strip_prefix("kafka_") {
            kafka.insert(name.replace('_', "."), Value::from(value));
        } else if key == "config" || (key != "kafka" && keys::find(&key).is_some()) {
            dict.insert(key, Value::from(value));
        } else if key.starts_with("resources_") && resources.variable(&key, value) {
            // Taken.
        } else if !key.starts_with("test_") {
            // No error: orchestrators put variables of their own making here, such as FLECHTWERK_SERVICE_HOST.
            let near = match key.starts_with("resources_") {
                true => resources.names(),
                false => nearest(&key, KEYS.iter().map(|key| key.name))
                    .map(|near| format!("; did you mean {}?", keys::variable(near))),
            };
            let near = near.unwrap_or_default();
            warnings
                .push(format!("environment variable {PREFIX}{rest} names no setting and is ignored{near}"));
        }
    }
    if !kafka.is_empty() {
        dict.insert("kafka".into(), kafka.into());
    }
    dict
}

fn file(
    path: &Path,
    read_file: ReadFile<'_>,
    resources: &mut Resources,
    problems: &mut Vec<Problem>,
    doubts: &mut Doubts,
) -> Option<Dict> {
    resources.file_is(path);
    let mut trouble = |what: String, mend: &str| {
        doubts.add_file();
        problems.push(Problem {
            what,
            place: format!("file {}", path.display()),
            why: "it was named by --config or FLECHTWERK_CONFIG".into(),
            mend: mend.into(),
        });
    };
    let content = match read_file(path) {
        Ok(content) => content,
        Err(error) => {
            trouble(format!("the settings file can't be read: {error}"), "name a readable TOML file");
            resources.unread();
            return None;
        }
    };
    let mut dict = match Toml::string(&content).data() {
        Ok(mut profiles) => profiles.remove(&Profile::Default).unwrap_or_default(),
        Err(error) => {
            trouble(
                format!("the settings file is no TOML: {}", without_excerpt(&error.to_string())),
                "mend that line",
            );
            resources.unread();
            return None;
        }
    };
    for key in ["topic", "kafka"] {
        if let Some(Value::Dict(_, nested)) = dict.get_mut(key) {
            *nested = flat(std::mem::take(nested));
        }
    }
    if let Some(tables) = dict.remove("resources") {
        resources.file(tables, path, problems);
    }
    check_keys(&dict, path, problems, doubts);
    Some(dict)
}

/// A parser's message without the lines of the file that it shows: they may hold a secret.
fn without_excerpt(message: &str) -> String {
    let mut kept = String::new();
    for line in message.lines().filter(|line| !line.contains('|') && !line.trim().is_empty()) {
        kept += if kept.is_empty() { "" } else { ": " };
        kept += line.trim();
    }
    kept
}

fn check_keys(dict: &Dict, path: &Path, problems: &mut Vec<Problem>, doubts: &mut Doubts) {
    for key in dict.keys() {
        let place = format!("`{key}` in {}", path.display());
        match keys::find(key) {
            Some(found) if found.secret => {
                doubts.add(key);
                problems.push(Problem {
                    what: format!("`{key}` has no place in the settings file"),
                    place,
                    why: "settings files are copied, shown and checked in; secrets must not be".into(),
                    mend: format!(
                        "put it into a file of its own, named by `{key}_file`, or set {}",
                        keys::variable(key)
                    ),
                });
            }
            Some(_) => {}
            None => {
                let near = nearest(key, KEYS.iter().filter(|key| !key.secret).map(|key| key.name));
                doubts.add(near.unwrap_or(key));
                problems.push(Problem {
                    what: format!("there is no setting `{key}`"),
                    place,
                    why: "a misspelt setting would have no effect".into(),
                    mend: match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "remove it; settings of librdkafka go into the table [kafka]".into(),
                    },
                });
            }
        }
    }
}

/// `socket.keepalive.enable = true` is a table in a table in TOML; here it is one name again.
fn flat(nested: Dict) -> Dict {
    let mut result = Dict::new();
    for (name, value) in nested {
        match value {
            Value::Dict(_, inner) => {
                result.extend(flat(inner).into_iter().map(|(rest, value)| (format!("{name}.{rest}"), value)));
            }
            value => {
                result.insert(name, value);
            }
        }
    }
    result
}

/// Makes a dictionary of `name=value` texts.
fn pairs(key: &str, layer: &mut Layer, problems: &mut Vec<Problem>, doubts: &mut Doubts) {
    let listed = match layer.dict.get(key) {
        None | Some(Value::Dict(..)) => return,
        Some(Value::Array(_, parts)) => parts.iter().filter_map(text).collect::<Vec<_>>(),
        // Values of librdkafka may have commas, names of topics may not.
        Some(single) => text(single).iter().flat_map(|text| text.split(',')).map(str::to_owned).collect(),
    };
    let mut dict = Dict::new();
    for pair in listed {
        match pair.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
                let (name, value) = (name.trim(), value.trim());
                match dict.get(name).and_then(text) {
                    Some(other) if other != value => {
                        doubts.add(key);
                        problems.push(twice(key, name, [&other, value], layer.source.place(key)));
                        // Nothing is judged by a value that may not be meant.
                        if key == "kafka" {
                            dict.remove(name);
                        }
                    }
                    _ => drop(dict.insert(name.to_owned(), Value::from(value))),
                }
            }
            // The text is not shown: it may be a secret that lost its name.
            _ => {
                doubts.add(key);
                let (form, mend) = match key {
                    "topic" => {
                        ("NAME=TOPIC", "write --topic words=prod.words, with the name in the code first")
                    }
                    _ => ("NAME=VALUE", "write -X socket.keepalive.enable=true"),
                };
                problems.push(Problem {
                    what: format!("an entry of `{key}` is not of the form {form}"),
                    place: layer.source.place(key),
                    why: String::new(),
                    mend: mend.into(),
                });
            }
        }
    }
    layer.dict.insert(key.to_owned(), dict.into());
}

/// One place that says two things about one name.
fn twice(key: &str, name: &str, values: [&str; 2], place: String) -> Problem {
    match key {
        "topic" => mapped_twice(name, values, place),
        // The values are not shown: they may be secrets.
        _ => Problem {
            what: format!("`{name}` is set twice"),
            place,
            why: "it can't be told which one is meant".into(),
            mend: "keep one of the two".into(),
        },
    }
}
