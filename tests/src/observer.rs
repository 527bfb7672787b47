//! Reads a topic as a user's consumer would, in the background, from its beginning.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::message::Headers;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use crate::{Kafka, wait_for};

/// One record, as seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it lies.
    pub partition: i32,
    /// Where it lies.
    pub offset: i64,
    /// Milliseconds since the epoch; -1 for none.
    pub timestamp: i64,
    /// `None`: null.
    pub key: Option<Vec<u8>>,
    /// `None`: null.
    pub value: Option<Vec<u8>>,
    /// Name and value, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Seen {
    /// The key as text.
    pub fn key_text(&self) -> String {
        text(self.key.as_deref())
    }

    /// The value as text.
    pub fn value_text(&self) -> String {
        text(self.value.as_deref())
    }

    /// The value of the first header of this name, as text.
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(one, _)| one == name).map(|(_, value)| text(value.as_deref()))
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    bytes.map_or("null".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// Reads until it is dropped.
pub struct Observer {
    seen: Arc<Mutex<Vec<Seen>>>,
    quit: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Observer {
    /// Reads all partitions of a topic from the beginning, `read_committed`.
    pub fn start(kafka: &Kafka, topic: &str) -> Observer {
        Observer::start_with(kafka, topic, "read_committed")
    }

    /// The same with an isolation level.
    pub fn start_with(kafka: &Kafka, topic: &str, isolation: &str) -> Observer {
        let consumer = kafka.consumer(isolation);
        let mut list = TopicPartitionList::new();
        for partition in 0..kafka.partitions(topic) {
            list.add_partition_offset(topic, partition, Offset::Beginning).expect("an offset");
        }
        assert!(list.count() > 0, "there is no topic {topic}");
        consumer.assign(&list).expect("assign");
        let (seen, quit) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (to, stop) = (seen.clone(), quit.clone());
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                match consumer.poll(Duration::from_millis(50)) {
                    Some(Ok(message)) => {
                        let record = Seen {
                            partition: message.partition(),
                            offset: message.offset(),
                            timestamp: message.timestamp().to_millis().unwrap_or(-1),
                            key: message.key().map(<[u8]>::to_vec),
                            value: message.payload().map(<[u8]>::to_vec),
                            headers: message
                                .headers()
                                .map(|headers| {
                                    headers
                                        .iter()
                                        .map(|header| {
                                            (header.key.to_owned(), header.value.map(<[u8]>::to_vec))
                                        })
                                        .collect()
                                })
                                .unwrap_or_default(),
                        };
                        to.lock().expect("the observer's records").push(record);
                    }
                    Some(Err(KafkaError::PartitionEOF(_))) | None => {}
                    // A broker that is restarted on purpose comes back.
                    Some(Err(error)) => eprintln!("observer: {error}"),
                }
            }
        });
        Observer { seen, quit, thread: Some(thread) }
    }

    /// What was seen so far, in order per partition.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("the observer's records").clone()
    }

    /// Number of records seen so far.
    pub fn count(&self) -> usize {
        self.seen.lock().expect("the observer's records").len()
    }

    /// Waits until at least `count` records were seen, and gives them.
    #[track_caller]
    pub fn wait(&self, count: usize) -> Vec<Seen> {
        wait_for(&format!("{count} records"), || self.count() >= count);
        self.seen()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.quit.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
