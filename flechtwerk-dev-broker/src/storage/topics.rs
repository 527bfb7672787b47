//! The file that lists the topics: a few lines of text, rewritten by rename with each change.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::files::replace;
use super::{StorageError, TopicMeta};

/// Topics by name.
type Topics = BTreeMap<String, TopicMeta>;

/// The cluster id, the highest leader epoch and the topics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TopicsFile {
    /// Nowhere if nothing is kept.
    path: Option<PathBuf>,
    fsync: bool,
    pub(crate) cluster_id: String,
    /// As high as that of any partition, ever.
    pub(crate) leader_epoch: i32,
    /// Where nodes listened last, by id.
    pub(crate) ports: BTreeMap<i32, u16>,
    pub(crate) topics: Topics,
}

impl TopicsFile {
    /// Topics that are not kept anywhere.
    pub(crate) fn in_memory(cluster_id: String) -> Self {
        Self {
            path: None,
            fsync: false,
            cluster_id,
            leader_epoch: 0,
            ports: BTreeMap::new(),
            topics: Topics::new(),
        }
    }

    /// Reads the file, or writes a new one with this cluster id.
    pub(crate) fn open(path: PathBuf, fsync: bool, new_cluster_id: String) -> Result<Self, StorageError> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let new = Self { path: Some(path), fsync, ..Self::in_memory(new_cluster_id) };
                new.save()?;
                return Ok(new);
            }
            Err(error) => return Err(StorageError::io("read", &path)(error)),
        };
        let text = std::str::from_utf8(&bytes)
            .map_err(|error| StorageError::damaged(&path, error.valid_up_to() as u64, "it is no text"))?;
        let read = parse(text)
            .map_err(|(position, reason)| StorageError::damaged(&path, position as u64, reason))?;
        Ok(Self { path: Some(path), fsync, ..read })
    }

    /// Keeps a leader epoch, if it is the highest; after an error nothing has changed.
    pub(crate) fn keep_leader_epoch(&mut self, epoch: i32) -> Result<(), StorageError> {
        if epoch <= self.leader_epoch {
            return Ok(());
        }
        let changed = Self { leader_epoch: epoch, ..self.clone() };
        changed.save()?;
        *self = changed;
        Ok(())
    }

    /// Keeps where nodes listen; after an error nothing has changed.
    pub(crate) fn keep_ports(&mut self, ports: BTreeMap<i32, u16>) -> Result<(), StorageError> {
        if ports != self.ports {
            let changed = Self { ports, ..self.clone() };
            changed.save()?;
            *self = changed;
        }
        Ok(())
    }

    /// Keeps a topic; after an error nothing has changed.
    pub(crate) fn put(&mut self, topic: TopicMeta) -> Result<(), StorageError> {
        let name = topic.name.clone();
        let before = self.topics.insert(name.clone(), topic);
        self.save().inspect_err(|_| {
            match before {
                Some(before) => self.topics.insert(name, before),
                None => self.topics.remove(&name),
            };
        })
    }

    /// Forgets a topic; after an error nothing has changed.
    pub(crate) fn remove(&mut self, name: &str) -> Result<Option<TopicMeta>, StorageError> {
        let Some(removed) = self.topics.remove(name) else { return Ok(None) };
        match self.save() {
            Ok(()) => Ok(Some(removed)),
            Err(error) => {
                self.topics.insert(name.to_owned(), removed);
                Err(error)
            }
        }
    }

    /// The folder that the file lies in.
    pub(crate) fn folder(&self) -> &Path {
        self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new("."))
    }

    fn save(&self) -> Result<(), StorageError> {
        let Some(path) = &self.path else { return Ok(()) };
        let text = write(self);
        replace(path, std::iter::once(text.as_bytes()), self.fsync).map(|_| ())
    }
}

fn write(file: &TopicsFile) -> String {
    let mut text = format!("cluster {}\nepoch {}\n", escape(&file.cluster_id), file.leader_epoch);
    for (id, port) in &file.ports {
        // Writing to a String can't fail.
        let _ = writeln!(text, "port {id} {port}");
    }
    for topic in file.topics.values() {
        let _ = writeln!(text, "topic {} {} {}", topic.id, topic.partitions, escape(&topic.name));
        for (name, value) in &topic.configs {
            let _ = writeln!(text, "config {} {}", escape(name), escape(value));
        }
    }
    let crc = crc32c::crc32c(text.as_bytes());
    let _ = writeln!(text, "end {crc:08x}");
    text
}

/// The text's content, or where it is wrong.
fn parse(text: &str) -> Result<TopicsFile, (usize, &'static str)> {
    let end = text.rfind("end ").ok_or((text.len(), "the last line is missing"))?;
    let (body, last) = text.split_at_checked(end).ok_or((end, "the last line is missing"))?;
    if last != format!("end {:08x}\n", crc32c::crc32c(body.as_bytes())) {
        return Err((end, "the CRC is wrong"));
    }
    let mut cluster_id = None;
    let mut leader_epoch = 0;
    let mut ports = BTreeMap::new();
    let mut topics = Topics::new();
    let mut current: Option<TopicMeta> = None;
    let mut position = 0;
    for line in body.split_inclusive('\n') {
        let wrong = (position, "the line can't be read");
        position += line.len();
        let (word, rest) = line.trim_end_matches('\n').split_once(' ').ok_or(wrong)?;
        match word {
            "cluster" => cluster_id = Some(unescape(rest).ok_or(wrong)?),
            "epoch" => leader_epoch = rest.parse().map_err(|_| wrong)?,
            "port" => {
                let (id, port) = rest.split_once(' ').ok_or(wrong)?;
                let parsed = id.parse().ok().zip(port.parse().ok());
                let (id, port): (i32, u16) = parsed.ok_or(wrong)?;
                ports.insert(id, port);
            }
            "topic" => {
                topics.extend(current.take().map(|topic| (topic.name.clone(), topic)));
                current = Some(parse_topic(rest).ok_or(wrong)?);
            }
            "config" => {
                let (name, value) = rest.split_once(' ').ok_or(wrong)?;
                let pair = unescape(name).zip(unescape(value)).ok_or(wrong)?;
                current.as_mut().ok_or(wrong)?.configs.push(pair);
            }
            _ => return Err(wrong),
        }
    }
    topics.extend(current.map(|topic| (topic.name.clone(), topic)));
    let cluster_id = cluster_id.ok_or((0, "the cluster id is missing"))?;
    Ok(TopicsFile { leader_epoch, ports, topics, ..TopicsFile::in_memory(cluster_id) })
}

fn parse_topic(rest: &str) -> Option<TopicMeta> {
    let mut words = rest.splitn(3, ' ');
    let id = Uuid::parse_str(words.next()?).ok()?;
    let partitions = words.next()?.parse().ok()?;
    Some(TopicMeta { id, partitions, name: unescape(words.next()?)?, configs: Vec::new() })
}

/// Spaces, ends of lines and backslashes are written as escapes, so that a line can be split at its spaces.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            ' ' => escaped.push_str("\\s"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next()? {
                '\\' => '\\',
                'n' => '\n',
                's' => ' ',
                _ => return None,
            },
            letter => letter,
        });
    }
    Some(plain)
}
