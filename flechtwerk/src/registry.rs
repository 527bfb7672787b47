//! A client of schema registries that have the interface of Confluent's: Confluent's own, Apicurio's, Karapace, Redpanda's.
//! It is asked at the start, and later only for schemas that come up in records, so it may block.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::codec::schema::RegisteredSchema;
use crate::resource::Secret;

/// Longest time for one answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest answer, in bytes: far more than any schema has.
const LONGEST: u64 = 16 << 20;
/// Most schemas that one may refer to, directly or not.
const REFERENCES: usize = 100;
/// The registry's media type.
const MEDIA: &str = "application/vnd.schemaregistry.v1+json";
/// Longest text of an answer that is quoted.
const QUOTED: usize = 500;

/// Who we are to a registry.
pub(crate) enum Credentials {
    Nobody,
    Basic { username: String, password: Secret<String> },
    Token(Secret<String>),
}

/// Why there is no answer, or not the one that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// Nothing came back.
    #[error("no answer from {url}: {why}")]
    Silent { url: String, why: String },
    /// The registry says that it can't now.
    #[error("{url} answers {status}: {text}")]
    Busy { url: String, status: u16, text: String },
    /// It won't.
    #[error("{url} answers {status}: {text}")]
    Refused { url: String, status: u16, text: String },
    /// Something else than a registry answers.
    #[error("{url} does not answer as a schema registry does: {why}")]
    Stranger { url: String, why: String },
}

impl Fault {
    /// The same question may be answered later.
    pub(crate) fn passes(&self) -> bool {
        matches!(self, Fault::Silent { .. } | Fault::Busy { .. })
    }

    /// The registry does not know who asks, or what they may.
    pub(crate) fn is_about_rights(&self) -> bool {
        matches!(self, Fault::Refused { status: 401 | 403, .. })
    }
}

/// A version of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) id: u32,
    pub(crate) version: u32,
    pub(crate) schema: RegisteredSchema,
}

/// See the module.
pub(crate) struct Registry {
    /// Without a slash at the end.
    urls: Vec<String>,
    /// The one that answered last.
    last: AtomicUsize,
    agent: ureq::Agent,
    authorization: Option<Secret<String>>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({})", self.urls.join(","))
    }
}

/// A question: method, path and body.
struct Question {
    path: String,
    body: Option<Value>,
}

/// An answer of status 200, or the code of a thing that is not there.
enum Answer {
    Found(Vec<u8>),
    Absent,
}

#[derive(Deserialize)]
struct Id {
    id: u32,
}

#[derive(Deserialize)]
struct Wrong {
    error_code: u32,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Reference {
    subject: String,
    version: u32,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    id: u32,
    #[serde(default)]
    version: u32,
    schema: String,
    #[serde(default, rename = "schemaType")]
    kind: Option<String>,
    #[serde(default)]
    references: Option<Vec<Reference>>,
}

#[derive(Deserialize)]
struct Compatible {
    is_compatible: bool,
    #[serde(default)]
    messages: Option<Vec<String>>,
    #[serde(default)]
    reason: Option<String>,
}

impl Registry {
    /// A client; `ca` is a file of certificates to trust instead of the system's. An error says what is wrong with these.
    pub(crate) fn new(urls: &[String], credentials: &Credentials, ca: Option<&Path>) -> Result<Self, String> {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(ANSWER))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("flechtwerk/", env!("CARGO_PKG_VERSION")));
        let config = with_tls(config, ca)?;
        let authorization = match credentials {
            Credentials::Nobody => None,
            Credentials::Basic { username, password } => {
                let pair = format!("{username}:{}", password.expose());
                Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
            }
            Credentials::Token(token) => Some(format!("Bearer {}", token.expose())),
        };
        Ok(Registry {
            urls: urls.iter().map(|url| url.trim_end_matches('/').to_owned()).collect(),
            last: AtomicUsize::new(0),
            agent: config.build().new_agent(),
            authorization: authorization.map(Secret::new),
        })
    }

    /// The id of a schema in a subject, if it is there.
    pub(crate) fn look_up(&self, subject: &str, kind: &str, text: &str) -> Result<Option<u32>, Fault> {
        let path = format!("/subjects/{}", escaped(subject));
        match self.ask(&Question { path, body: Some(body(kind, text)) })? {
            Answer::Found(bytes) => self.read::<Id>(&bytes).map(|found| Some(found.id)),
            Answer::Absent => Ok(None),
        }
    }

    /// The last version of a subject, if there is any.
    pub(crate) fn latest(&self, subject: &str) -> Result<Option<Version>, Fault> {
        let path = format!("/subjects/{}/versions/latest", escaped(subject));
        let Answer::Found(bytes) = self.ask(&Question { path, body: None })? else { return Ok(None) };
        let written: Written = self.read(&bytes)?;
        let (id, version) = (written.id, written.version);
        Ok(Some(Version { id, version, schema: self.with_references(written)? }))
    }

    /// Whether the rules of a subject let a schema be its next version; what they say if not.
    pub(crate) fn compatible(
        &self,
        subject: &str,
        kind: &str,
        text: &str,
    ) -> Result<Result<(), String>, Fault> {
        let path = format!("/compatibility/subjects/{}/versions/latest?verbose=true", escaped(subject));
        let Answer::Found(bytes) = self.ask(&Question { path, body: Some(body(kind, text)) })? else {
            return Ok(Ok(()));
        };
        let said: Compatible = self.read(&bytes)?;
        if said.is_compatible {
            return Ok(Ok(()));
        }
        let reasons = said.messages.unwrap_or_default().into_iter().chain(said.reason);
        Ok(Err(short(&reasons.collect::<Vec<_>>().join("; "))))
    }

    /// Makes a schema the next version of a subject, unless it is one of its versions already; its id.
    pub(crate) fn register(&self, subject: &str, kind: &str, text: &str) -> Result<u32, Fault> {
        let path = format!("/subjects/{}/versions", escaped(subject));
        match self.ask(&Question { path, body: Some(body(kind, text)) })? {
            Answer::Found(bytes) => self.read::<Id>(&bytes).map(|made| made.id),
            Answer::Absent => Err(self.stranger("it finds no place for a new version")),
        }
    }

    /// The schema of an id, if there is one.
    pub(crate) fn schema(&self, id: u32) -> Result<Option<RegisteredSchema>, Fault> {
        match self.ask(&Question { path: format!("/schemas/ids/{id}"), body: None })? {
            Answer::Found(bytes) => self.with_references(self.read(&bytes)?).map(Some),
            Answer::Absent => Ok(None),
        }
    }

    fn with_references(&self, written: Written) -> Result<RegisteredSchema, Fault> {
        let mut wanted = written.references.unwrap_or_default();
        let (mut seen, mut references) = (Vec::new(), Vec::new());
        while let Some(Reference { subject, version }) = wanted.pop() {
            let path = format!("/subjects/{}/versions/{version}", escaped(&subject));
            if seen.contains(&path) {
                continue;
            }
            if seen.len() == REFERENCES {
                return Err(self.stranger("a schema refers to more than 100 others"));
            }
            let Answer::Found(bytes) = self.ask(&Question { path: path.clone(), body: None })? else {
                let why = format!("a schema refers to version {version} of {subject}, which is not there");
                return Err(self.stranger(&why));
            };
            let referred: Written = self.read(&bytes)?;
            seen.push(path);
            references.push(referred.schema);
            wanted.extend(referred.references.unwrap_or_default());
        }
        Ok(RegisteredSchema { kind: written.kind, text: written.schema, references })
    }

    /// Asks the one that answered last, and the others where it does not.
    fn ask(&self, question: &Question) -> Result<Answer, Fault> {
        let (first, count) = (self.last.load(Ordering::Relaxed), self.urls.len());
        let mut result = Err(self.stranger("none is named"));
        for n in 0..count {
            let index = (first + n) % count;
            result = self.ask_one(&self.urls[index], question);
            if !result.as_ref().is_err_and(Fault::passes) {
                self.last.store(index, Ordering::Relaxed);
                break;
            }
        }
        result
    }

    fn ask_one(&self, url: &str, question: &Question) -> Result<Answer, Fault> {
        let address = format!("{url}{}", question.path);
        let secret = self.authorization.as_ref().map(|value| value.expose().as_str());
        let sent = match &question.body {
            None => {
                let asked = self.agent.get(&address).header("accept", MEDIA);
                secret.into_iter().fold(asked, |asked, value| asked.header("authorization", value)).call()
            }
            Some(body) => {
                let asked = self.agent.post(&address).header("accept", MEDIA).header("content-type", MEDIA);
                let asked =
                    secret.into_iter().fold(asked, |asked, value| asked.header("authorization", value));
                asked.send(body.to_string())
            }
        };
        let silent = |error| match error {
            // It will be as long another time.
            ureq::Error::BodyExceedsLimit(_) => Fault::Stranger {
                url: url.to_owned(),
                why: format!("its answer is longer than {LONGEST} bytes"),
            },
            error => Fault::Silent { url: url.to_owned(), why: error.to_string() },
        };
        let mut answer = sent.map_err(silent)?;
        let status = answer.status().as_u16();
        let bytes = answer.body_mut().with_config().limit(LONGEST).read_to_vec().map_err(silent)?;
        if status == 200 {
            return Ok(Answer::Found(bytes));
        }
        let wrong: Option<Wrong> = serde_json::from_slice(&bytes).ok();
        let url = url.to_owned();
        let text = match &wrong {
            Some(wrong) => format!("{} (error {})", short(&wrong.message), wrong.error_code),
            None => "without saying why".to_owned(),
        };
        Err(match (status, wrong) {
            // A subject, version or schema that is not there; elsewhere the path itself is not.
            (404, Some(wrong)) if (40401..=40403).contains(&wrong.error_code) => return Ok(Answer::Absent),
            (404, _) => Fault::Stranger { url, why: format!("nothing is at {}", question.path) },
            (408 | 429 | 500.., _) => Fault::Busy { url, status, text },
            (300..400, _) => Fault::Stranger {
                url,
                why: format!("it leads elsewhere (status {status}), which is not followed"),
            },
            _ => Fault::Refused { url, status, text },
        })
    }

    fn read<'a, T: Deserialize<'a>>(&self, bytes: &'a [u8]) -> Result<T, Fault> {
        serde_json::from_slice(bytes)
            .map_err(|error| self.stranger(&format!("its answer is no such JSON: {error}")))
    }

    fn stranger(&self, why: &str) -> Fault {
        let url = self.urls.get(self.last.load(Ordering::Relaxed)).cloned().unwrap_or_default();
        Fault::Stranger { url, why: why.to_owned() }
    }
}

fn body(kind: &str, text: &str) -> Value {
    match kind {
        // Some registries know no other, and no name for it.
        "AVRO" => json!({ "schema": text }),
        kind => json!({ "schema": text, "schemaType": kind }),
    }
}

/// As a part of a path.
fn escaped(part: &str) -> String {
    let mut path = String::new();
    for byte in part.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => path.push(byte.into()),
            _ => path += &format!("%{byte:02X}"),
        }
    }
    path
}

/// The beginning of a text that comes from outside, on one line.
fn short(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(QUOTED).collect();
    if line.len() < text.len() { format!("{line}..") } else { line }
}

type Config = ureq::config::ConfigBuilder<ureq::typestate::AgentScope>;

#[cfg(feature = "tls")]
fn with_tls(config: Config, ca: Option<&Path>) -> Result<Config, String> {
    use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

    let roots = match ca {
        None => RootCerts::PlatformVerifier,
        Some(path) => {
            let pem =
                std::fs::read(path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
            let certificates: Result<Vec<_>, _> = parse_pem(&pem)
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
                    Ok(_) => None,
                    Err(error) => Some(Err(error)),
                })
                .collect();
            match certificates {
                Ok(certificates) if !certificates.is_empty() => RootCerts::from(certificates),
                _ => return Err(format!("{} holds no certificates in PEM", path.display())),
            }
        }
    };
    Ok(config.tls_config(TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(roots).build()))
}

/// The settings refuse https where it is not compiled in.
#[cfg(not(feature = "tls"))]
fn with_tls(config: Config, _: Option<&Path>) -> Result<Config, String> {
    Ok(config)
}

#[cfg(test)]
pub(crate) mod tests;
