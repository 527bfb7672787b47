//! Looks now and then whether the topics that are read are still those that they were. One that is deleted just has nothing
//! more to say, one that was made anew goes on at an offset of the old one, and of one that got more partitions those are not read,
//! and nobody else notices.

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

/// How many partitions the topics have, all of them.
#[derive(Clone)]
pub(super) struct Count {
    pub(super) partitions: i32,
    /// What it means that there are more, and what to do about it.
    pub(super) grown: String,
}

impl Count {
    /// Partitions are only ever added: a broker that tells of fewer does not know all of them yet.
    fn check(&self, who: &str, topic: &str, now: i32) -> Result<(), Failure> {
        let Count { partitions, grown } = self;
        match now > *partitions {
            true => Err(Failure::new(format!(
                "{who}: topic {topic} has {now} partitions now, and had {partitions} when this process started; {grown}"
            ))),
            false => Ok(()),
        }
    }
}

/// See the module.
pub(super) struct TopicWatch {
    reader: Arc<dyn Reader>,
    topics: Vec<Watched>,
    /// For how long a topic may be unknown: a broker may not know yet what others know.
    limit: Duration,
    /// What it means that one was made anew, and what to do about it.
    anew: String,
    count: Option<Count>,
    /// Somebody else sees to topics that are gone.
    only_anew: bool,
    looked: Instant,
}

impl TopicWatch {
    /// Takes down what the topics are, and sees whether they have as many partitions as they had, if that matters; `None`: cancelled.
    pub(super) fn begin(
        reader: &Arc<dyn Reader>,
        topics: &[Arc<str>],
        count: Option<Count>,
        who: &str,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<Option<TopicWatch>, Failure> {
        let mut watched = Vec::with_capacity(topics.len());
        for topic in topics {
            let ask = || reader.topic(topic, ASK_LIMIT);
            let Some(now) = repeat(who, limit, &format!("ask for the id of {topic}"), cancel, ask)? else {
                return Ok(None);
            };
            count.as_ref().map_or(Ok(()), |count| count.check(who, topic, now.partitions))?;
            watched.push(Watched { topic: topic.clone(), id: now.id, unknown: None });
        }
        let anew =
            "what is held of it is that of the old one; start again: it is read from its beginning then";
        let (reader, anew) = (reader.clone(), anew.to_owned());
        Ok(Some(TopicWatch {
            reader,
            topics: watched,
            limit,
            anew,
            count,
            only_anew: false,
            looked: host::now(),
        }))
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
        TopicWatch { reader, topics, limit, anew, count: None, only_anew: false, looked: host::now() }
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
            match self.reader.topic(topic, LOOK_LIMIT) {
                Ok(now) if now.id == *id => {
                    *unknown = None;
                    self.count.as_ref().map_or(Ok(()), |count| count.check(who, topic, now.partitions))?;
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::testing::{Cluster, limits};

    fn begin(cluster: &Cluster, partitions: i32, limit: Duration) -> Result<TopicWatch, Failure> {
        let reader: Arc<dyn Reader> = Arc::new(cluster.clone());
        let count = Count { partitions, grown: "start again".into() };
        let topics = ["items".into()];
        TopicWatch::begin(&reader, &topics, Some(count), "table items", limit, &Cancel::default())
            .map(|watch| watch.expect("nobody cancels"))
    }

    /// S9.1f: at the first look as at any later one.
    #[test]
    fn more_partitions_than_there_were_are_an_error_and_fewer_are_a_broker_that_lags() {
        let cluster = Cluster::default();
        let has = |partitions| cluster.inside().partitions = partitions;
        has(3);
        let failure = begin(&cluster, 2, limits().broker_timeout).err().expect("a failure");
        let expected =
            "table items: topic items has 3 partitions now, and had 2 when this process started; start again";
        assert_eq!(failure.message, expected);
        for (partitions, expected) in [(3, Ok(())), (4, Err(expected)), (2, Ok(()))] {
            has(3);
            // No time between two looks.
            let mut watch = begin(&cluster, 3, Duration::ZERO).expect("as many as there were");
            has(partitions);
            let looked = watch.look("table items").map_err(|failure| failure.message);
            let expected =
                expected.map_err(|text: &str| text.replace("has 3", "has 4").replace("had 2", "had 3"));
            assert_eq!(looked, expected);
        }
    }
}
