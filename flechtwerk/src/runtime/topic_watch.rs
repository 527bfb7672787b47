//! Looks now and then whether the topics that are read are still those that they were. One that is deleted just has nothing
//! more to say, and one that was made anew goes on at an offset of the old one, and nobody else notices.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::context::{Cancel, repeat};
use super::error::Failure;
use super::host;
use crate::duration::duration_text;
use crate::port::Reader;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time limit of the question at the start.
const ASK_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of one later question: meanwhile nothing is read.
const LOOK_LIMIT: Duration = Duration::from_secs(1);

struct Watched {
    topic: Arc<str>,
    id: String,
    /// Since when the broker has not known it.
    unknown: Option<Instant>,
}

/// See the module.
pub(super) struct TopicWatch {
    reader: Arc<dyn Reader>,
    topics: Vec<Watched>,
    /// For how long a topic may be unknown: a broker may not know yet what others know.
    limit: Duration,
    /// What it means that one was made anew, and what to do about it.
    anew: String,
    /// Somebody else sees to topics that are gone.
    only_anew: bool,
    looked: Instant,
}

impl TopicWatch {
    /// Takes down what the topics are; `None`: cancelled.
    pub(super) fn begin(
        reader: &Arc<dyn Reader>,
        topics: &[Arc<str>],
        who: &str,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<Option<TopicWatch>, Failure> {
        let mut watched = Vec::with_capacity(topics.len());
        for topic in topics {
            let ask = || reader.topic_id(topic, ASK_LIMIT);
            let Some(id) = repeat(who, limit, &format!("ask for the id of {topic}"), cancel, ask)? else {
                return Ok(None);
            };
            watched.push(Watched { topic: topic.clone(), id, unknown: None });
        }
        let anew =
            "what is held of it is that of the old one; start again: it is read from its beginning then";
        let (reader, anew) = (reader.clone(), anew.to_owned());
        Ok(Some(TopicWatch { reader, topics: watched, limit, anew, only_anew: false, looked: host::now() }))
    }

    /// Watches one topic whose id is known.
    pub(super) fn of(
        reader: &Arc<dyn Reader>,
        topic: &Arc<str>,
        id: &str,
        limit: Duration,
        anew: String,
    ) -> TopicWatch {
        let topics = vec![Watched { topic: topic.clone(), id: id.to_owned(), unknown: None }];
        let reader = reader.clone();
        TopicWatch { reader, topics, limit, anew, only_anew: false, looked: host::now() }
    }

    /// Looks only whether a topic was made anew, and says this then, instead of what is true of topics that are read whole.
    pub(super) fn only_anew(self, anew: String) -> TopicWatch {
        TopicWatch { anew, only_anew: true, ..self }
    }

    /// Looks, if it is time to.
    pub(super) fn look(&mut self, who: &str) -> Result<(), Failure> {
        if host::since(self.looked) < INTERVAL.min(self.limit) {
            return Ok(());
        }
        self.looked = host::now();
        for Watched { topic, id, unknown } in &mut self.topics {
            match self.reader.topic_id(topic, LOOK_LIMIT) {
                Ok(now) if now == *id => *unknown = None,
                Ok(_) => {
                    return Err(Failure::new(format!(
                        "{who}: topic {topic} was deleted and made anew while it was read, and {}",
                        self.anew
                    )));
                }
                Err(error) if error.is_unknown_topic() && !self.only_anew => {
                    let since = *unknown.get_or_insert(self.looked);
                    if host::since(since) >= self.limit {
                        return Err(Failure::new(format!(
                            "{who}: topic {topic} has not been there for --broker-timeout ({}); it was there when this process \
                             started, so somebody has deleted it; `check` says what to do",
                            duration_text(self.limit)
                        )));
                    }
                }
                // Whether it is there is not known: another time.
                Err(_) => {}
            }
        }
        Ok(())
    }
}
