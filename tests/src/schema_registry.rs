//! A schema registry that stands in for a real one where none is at hand: the part of Confluent's REST interface that
//! clients use, with faults on demand. Where `FLECHTWERK_TEST_SCHEMA_REGISTRY` names a real one, the same tests run on it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// How the registry behaves.
#[derive(Clone, Debug, Default)]
pub struct Conduct {
    /// Every request gets this status.
    pub status: Option<u16>,
    /// The only `authorization` that is let in.
    pub authorization: Option<String>,
    /// No subject takes another version.
    pub frozen: bool,
    /// Schemas are given out by id so often as absent, though they are there.
    pub behind: usize,
}

#[derive(Default)]
struct Inside {
    conduct: Conduct,
    /// Kind and text of each schema; the id is the index and [`FIRST`].
    schemas: Vec<(String, String)>,
    /// The ids of each subject's versions.
    subjects: BTreeMap<String, Vec<usize>>,
    requests: Vec<String>,
}

/// So that an id is no index by chance.
const FIRST: usize = 4000;

/// See the module. It ends with the process.
pub struct StandIn {
    /// Where it listens.
    pub url: String,
    inside: Arc<Mutex<Inside>>,
}

impl StandIn {
    /// One on a free port.
    pub fn start() -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("the address"));
        let inside: Arc<Mutex<Inside>> = Arc::default();
        let shared = inside.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        StandIn { url, inside }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on.
    pub fn conduct(&self, conduct: Conduct) {
        self.lock().conduct = conduct;
    }

    /// Registers a schema as a user would; its id.
    pub fn register(&self, subject: &str, kind: &str, text: &str) -> u32 {
        self.lock().register(subject, kind, text)
    }

    /// The requests so far whose line holds this.
    pub fn requests(&self, part: &str) -> usize {
        self.lock().requests.iter().filter(|line| line.contains(part)).count()
    }
}

/// One connection, which may bring several requests.
fn serve(stream: TcpStream, inside: &Mutex<Inside>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let (mut length, mut authorization) = (0, None);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().ok()?,
                "authorization" => authorization = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let (status, answer) = {
            let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
            inside.requests.push(line.trim().to_owned());
            inside.answer(&line, authorization, &body)
        };
        let text = answer.to_string();
        write!(writer, "HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{text}", text.len()).ok()?;
    }
}

impl Inside {
    fn answer(&mut self, line: &str, authorization: Option<String>, body: &[u8]) -> (u16, Value) {
        let wrong = |status: u16, code: u32| (status, json!({"error_code": code, "message": "no"}));
        if let Some(status) = self.conduct.status {
            return wrong(status, u32::from(status) * 100 + 1);
        }
        if self.conduct.authorization.is_some() && self.conduct.authorization != authorization {
            return wrong(401, 40101);
        }
        let mut words = line.split_whitespace();
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = body["schema"].as_str().unwrap_or_default();
        let kind = body["schemaType"].as_str().unwrap_or("AVRO");
        match (method, &parts[..]) {
            ("GET", ["schemas", "ids", id]) => {
                if self.conduct.behind > 0 {
                    self.conduct.behind -= 1;
                    return wrong(404, 40403);
                }
                let index = id.parse::<usize>().ok().and_then(|id| id.checked_sub(FIRST));
                match index.and_then(|index| self.schemas.get(index)) {
                    Some((kind, text)) => (200, json!({"schema": text, "schemaType": kind})),
                    None => wrong(404, 40403),
                }
            }
            ("GET", ["subjects", subject, "versions", "latest"]) => match self.subjects.get(*subject) {
                Some(ids) => {
                    let id = ids[ids.len() - 1];
                    let (kind, text) = &self.schemas[id - FIRST];
                    let version = ids.len();
                    (200, json!({"id": id, "version": version, "schema": text, "schemaType": kind}))
                }
                None => wrong(404, 40401),
            },
            ("POST", ["subjects", subject]) => {
                let Some(ids) = self.subjects.get(*subject) else { return wrong(404, 40401) };
                let found = ids.iter().find(|id| {
                    let schema = &self.schemas[**id - FIRST];
                    (schema.0.as_str(), schema.1.as_str()) == (kind, text)
                });
                found.map_or_else(|| wrong(404, 40403), |id| (200, json!({"id": id})))
            }
            ("POST", ["subjects", subject, "versions"]) => match self.conduct.frozen {
                true => wrong(409, 409),
                false => (200, json!({"id": self.register(subject, kind, text)})),
            },
            ("POST", ["compatibility", "subjects", ..]) => {
                (200, json!({"is_compatible": !self.conduct.frozen, "messages": ["it is frozen"]}))
            }
            _ => (404, json!({})),
        }
    }

    fn register(&mut self, subject: &str, kind: &str, text: &str) -> u32 {
        let schema = (kind.to_owned(), text.to_owned());
        let index = self.schemas.iter().position(|known| *known == schema);
        let index = index.unwrap_or_else(|| {
            self.schemas.push(schema);
            self.schemas.len() - 1
        });
        let ids = self.subjects.entry(subject.to_owned()).or_default();
        if !ids.contains(&(FIRST + index)) {
            ids.push(FIRST + index);
        }
        (FIRST + index) as u32
    }
}
