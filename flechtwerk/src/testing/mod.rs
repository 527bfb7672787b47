//! Runs a whole pipeline in memory, for tests: no Kafka, no threads, no waiting, always the same result.
//!
//! A stage alone needs none of this: it is a function, and a test calls it. Where stages work together, or a test wants
//! to see partitions and stored states, a [`Driver`] stands in for the cluster:
//!
//! ```
//! use flechtwerk::prelude::*;
//! use flechtwerk::testing::Driver;
//!
//! #[topic("words", key = Utf8, value = Utf8)]
//! pub struct Words;
//! #[topic("counts", key = Utf8, value = Json<u64>)]
//! pub struct Counts;
//! #[topic("round-numbers", key = Utf8, value = Json<u64>)]
//! pub struct RoundNumbers;
//!
//! #[transformer(inputs = [Words], state = u64)]
//! pub async fn count(word: Record<Words>, state: &mut State<u64>, out: &mut Out<Counts>) -> flechtwerk::Result {
//!     let count = state.get_or_insert_default();
//!     *count += 1;
//!     out.send(word.key, *count);
//!     Ok(())
//! }
//!
//! #[transformer(inputs = [Counts])]
//! pub async fn select(count: Record<Counts>, out: &mut Out<RoundNumbers>) -> flechtwerk::Result {
//!     if count.value % 10 == 0 {
//!         out.send(count.key, count.value);
//!     }
//!     Ok(())
//! }
//!
//! flechtwerk::pipeline!(pub DEMO = "demo": [count, select]);
//!
//! let mut driver = Driver::new(&DEMO);
//! for _ in 0..25 {
//!     driver.send::<Words>("a".into(), String::new());
//! }
//! driver.run_blocking()?;
//! assert_eq!(driver.state::<u64>("count", "a"), Some(25));
//! let round: Vec<_> = driver.read::<RoundNumbers>().into_iter().map(|record| record.value).collect();
//! assert_eq!(round, [10, 20]);
//! # Ok::<(), flechtwerk::testing::Failed>(())
//! ```

mod failed;
mod grouping;
mod polling;
mod tables;
mod timers;
mod topics;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;

use crate::codec;
use crate::compact::CompactBytes;
use crate::glue::{AnyStage, Env, Outputs, StateChange};
use crate::out::{Out, OutRecord};
use crate::pipeline::Pipeline;
use crate::record::Record;
use crate::resource::Resource;
use crate::state::{self, StateValue};
use crate::topic::{Key, Topic, Value};

pub use failed::Failed;
use tables::Tables;
use timers::Timed;
use topics::Topics;

/// Rounds after which [`Driver::run`] believes that the pipeline feeds itself for ever.
const TOO_MANY_ROUNDS: usize = 100_000;

/// A pipeline and all its topics, in memory.
///
/// Topics have three partitions unless [`partitions`](Driver::partitions) says otherwise. Keyed records lie where Kafka's
/// Java client would put them, those without a key in each partition in turn.
///
/// Where the real runtime may order things in several ways, the driver always takes the same one; a test should rely on
/// no more than the runtime promises: order within a key, none across keys.
pub struct Driver {
    stages: Vec<Stage>,
    topics: Topics,
    tables: Tables,
    /// Resources that were given, and the tables as they are now.
    env: Env,
    resources: Vec<&'static str>,
    /// The wall clock.
    now: i64,
}

struct Stage {
    stage: &'static dyn AnyStage,
    /// For each input and partition, the offset of the next record.
    positions: Vec<Vec<usize>>,
    /// For each partition, the states by key, as they would be stored.
    states: Vec<BTreeMap<Bytes, CompactBytes>>,
    /// For each partition, the timers.
    timed: Vec<Timed>,
}

impl Driver {
    /// A pipeline whose topics are empty.
    pub fn new(pipeline: &Pipeline) -> Self {
        let stage = |stage: &&'static dyn AnyStage| Stage {
            stage: *stage,
            positions: vec![],
            states: vec![],
            timed: vec![],
        };
        let mut driver = Driver {
            stages: pipeline.stages.iter().map(stage).collect(),
            topics: Topics::new(0),
            tables: Tables::default(),
            env: Env::default(),
            resources: vec![],
            now: 0,
        };
        driver.set_partitions(3);
        driver
    }

    /// Sets how many partitions all topics have. All topics are empty after this.
    ///
    /// # Panics
    ///
    /// If there is not at least one.
    #[track_caller]
    pub fn partitions(mut self, partitions: i32) -> Self {
        assert!(partitions > 0, "a topic has at least one partition");
        self.set_partitions(partitions);
        self
    }

    /// Gives the pipeline a resource, in the place of what its function would make.
    ///
    /// ```
    /// use flechtwerk::prelude::*;
    /// use flechtwerk::testing::Driver;
    ///
    /// #[topic("words", key = Utf8, value = Utf8)]
    /// pub struct Words;
    /// #[topic("greetings", key = Utf8, value = Utf8)]
    /// pub struct Greetings;
    ///
    /// pub struct Greeting(String);
    ///
    /// #[resource]
    /// pub async fn greeting() -> flechtwerk::Result<Greeting> {
    ///     Err("not in a test".into())
    /// }
    ///
    /// #[transformer(inputs = [Words])]
    /// pub async fn greet(word: Record<Words>, with: &Res<Greeting>, out: &mut Out<Greetings>) -> flechtwerk::Result {
    ///     out.send(word.key, format!("{}, {}", with.0, word.value));
    ///     Ok(())
    /// }
    ///
    /// flechtwerk::pipeline!(pub DEMO = "demo": [greet], resources = [greeting]);
    ///
    /// let mut driver = Driver::new(&DEMO).resource(Greeting("hello".into()));
    /// driver.send::<Words>("a".into(), "Ann".into());
    /// driver.run_blocking()?;
    /// assert_eq!(driver.read::<Greetings>()[0].value, "hello, Ann");
    /// # Ok::<(), flechtwerk::testing::Failed>(())
    /// ```
    pub fn resource<R: Resource>(mut self, resource: R) -> Self {
        self.env.put(Arc::new(resource));
        self.resources.push(R::NEED.id);
        self
    }

    fn set_partitions(&mut self, partitions: i32) {
        self.topics = Topics::new(partitions);
        self.tables = Tables::of(self.stages.iter().map(|stage| stage.stage.info()), partitions);
        for stage in &mut self.stages {
            stage.positions = vec![vec![0; partitions as usize]; stage.stage.info().inputs.len()];
            stage.states = vec![BTreeMap::new(); partitions as usize];
            stage.timed = (0..partitions).map(|_| Timed::default()).collect();
        }
    }

    /// Appends a record to a topic. Its timestamp is the number of records sent so before, in milliseconds.
    ///
    /// # Panics
    ///
    /// If it can't be encoded.
    #[track_caller]
    pub fn send<T: Topic>(&mut self, key: Key<T>, value: Value<T>) {
        self.send_record(OutRecord::<T>::new(key, value));
    }

    /// Appends a record with headers, a timestamp or a partition of its own.
    ///
    /// # Panics
    ///
    /// If it can't be encoded, or its partition does not exist.
    #[track_caller]
    pub fn send_record<T: Topic>(&mut self, record: OutRecord<T>) {
        let mut out = Out::<T>::default();
        let timestamp = record.timestamp.unwrap_or_else(|| self.topics.tick());
        out.send_record(record.timestamp(timestamp));
        if let Err((_, error)) = out.check() {
            panic!("a record for topic \"{}\" can't be encoded: {error}", T::NAME);
        }
        let mut outputs = Outputs::default();
        out.drain(&mut outputs);
        if let Err(fault) = self.topics.append(&outputs, &[T::NAME]) {
            panic!("{fault}");
        }
    }

    /// Appends a record with a null value, which deletes its key in a [`Table`](crate::Table). (A stage that reads such a topic
    /// itself has a `Nullable` value, and gets a `None`.)
    ///
    /// # Panics
    ///
    /// If the key can't be encoded.
    #[track_caller]
    pub fn delete<T: Topic>(&mut self, key: &Key<T>) {
        let mut bytes = vec![];
        if let Err(error) = codec::encode_key::<T>(key, &mut bytes) {
            panic!("a key for topic \"{}\" can't be encoded: {error}", T::NAME);
        }
        self.topics.push(T::NAME, Some(bytes.into()), None);
    }

    /// Appends a record of any bytes to a topic: what its codecs refuse, for a test of `on_invalid`. `None` is null. It lies
    /// where its key's bytes send it, and has the next timestamp.
    pub fn send_raw<T: Topic>(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        let (key, value) = (key.map(Bytes::copy_from_slice), value.map(Bytes::copy_from_slice));
        self.topics.push(T::NAME, key, value);
    }

    /// Runs all transformers until none has anything left to read, and no timer is due. The outputs of one are the inputs of
    /// others.
    ///
    /// Tables are read before each round: a stage sees what was sent to their topics before.
    ///
    /// After a failure nothing of the failed round counts, as if the process had crashed; running again repeats it.
    pub async fn run(&mut self) -> Result<(), Failed> {
        for stage in self.stages.iter().filter(|stage| stage.stage.info().extractor.is_none()) {
            self.has_resources(stage)?;
        }
        for _ in 0..TOO_MANY_ROUNDS {
            let mut idle = true;
            for stage in &mut self.stages {
                for partition in 0..self.topics.partitions() {
                    self.tables.read(&self.topics, &mut self.env)?;
                    idle &= !stage.run(partition, &mut self.topics, &self.env, self.now).await?;
                }
            }
            if idle {
                return Ok(());
            }
        }
        Err(Failed::endless(TOO_MANY_ROUNDS))
    }

    /// Everything that the stage takes by `&Res` was given to the driver.
    fn has_resources(&self, stage: &Stage) -> Result<(), Failed> {
        let info = stage.stage.info();
        let missing = info.resources().find(|need| !self.resources.contains(&need.id));
        missing.map_or(Ok(()), |need| Err(Failed::missing(info, need)))
    }

    /// [`run`](Driver::run), for tests that are not async.
    pub fn run_blocking(&mut self) -> Result<(), Failed> {
        block_on(self.run())
    }

    /// The records of a topic that were not read by this before, by partition and offset.
    ///
    /// # Panics
    ///
    /// If one can't be decoded.
    #[track_caller]
    pub fn read<T: Topic>(&mut self) -> Vec<Record<T>> {
        let records = self.topics.unread(T::NAME);
        records.iter().map(decode).collect()
    }

    /// All records of a topic, by partition and offset.
    ///
    /// # Panics
    ///
    /// If one can't be decoded.
    #[track_caller]
    pub fn records<T: Topic>(&self) -> Vec<Record<T>> {
        self.topics.all(T::NAME).map(decode).collect()
    }

    /// The state that a stage keeps for a state key, which is the bytes of the record's key unless the stage names a
    /// `key` function. If several partitions have one (only a `key` function can do that), it is that of the first.
    ///
    /// # Panics
    ///
    /// If there is no such stage, or its state is not an `S`.
    #[track_caller]
    pub fn state<S: StateValue>(&self, stage: &str, key: impl AsRef<[u8]>) -> Option<S> {
        let stored = self.stage(stage).states.iter().find_map(|states| states.get(key.as_ref()))?;
        Some(decode_state(stage, stored))
    }

    /// Stores a state for a state key, as if the stage had kept it: an old one, of the version that its type says, for a
    /// test of an upgrade. It lies in the partition of a record that has these bytes as its key.
    ///
    /// # Panics
    ///
    /// If there is no such stage, or the state can't be written.
    #[track_caller]
    pub fn set_state<S: StateValue>(&mut self, stage: &str, key: impl AsRef<[u8]>, state: &S) {
        let partition = self.topics.partition_of(key.as_ref());
        let mut stored = vec![];
        if let Err(error) = state::encode(state, &mut stored) {
            panic!("a state of stage `{stage}` can't be written: {error}");
        }
        let index = self.stages.iter().position(|one| one.stage.info().name == stage);
        let Some(index) = index else { panic!("the pipeline has no stage `{stage}`") };
        let states = &mut self.stages[index].states[partition as usize];
        states.insert(Bytes::copy_from_slice(key.as_ref()), stored.into());
    }

    /// All states that a stage keeps: partition, state key and state.
    ///
    /// # Panics
    ///
    /// If there is no such stage, or its state is not an `S`.
    #[track_caller]
    pub fn states<S: StateValue>(&self, stage: &str) -> Vec<(i32, Bytes, S)> {
        let mut all = vec![];
        for (partition, states) in self.stage(stage).states.iter().enumerate() {
            for (key, stored) in states {
                all.push((partition as i32, key.clone(), decode_state(stage, stored)));
            }
        }
        all
    }

    #[track_caller]
    fn stage(&self, name: &str) -> &Stage {
        match self.stages.iter().find(|stage| stage.stage.info().name == name) {
            Some(stage) => stage,
            None => panic!("the pipeline has no stage `{name}`"),
        }
    }
}

impl Stage {
    /// Runs what is waiting in one partition of all inputs, and timers that are due; false if there is nothing.
    async fn run(
        &mut self,
        partition: i32,
        topics: &mut Topics,
        env: &Env,
        now: i64,
    ) -> Result<bool, Failed> {
        let info = self.stage.info();
        if info.extractor.is_some() {
            return Ok(false);
        }
        let place = partition as usize;
        let mut records = vec![];
        let inputs = if self.timed[place].is_behind() { &[] } else { info.inputs };
        for (input, topic) in inputs.iter().enumerate() {
            records.extend(topics.from(topic.name, partition, self.positions[input][place]).map(|record| {
                let mut record = record.clone();
                record.input = input as u16;
                record
            }));
        }
        let times = self.timed[place].times(info, &records, now);
        let mut counts = vec![0; info.inputs.len()];
        records.iter().for_each(|record| counts[usize::from(record.input)] += 1);
        let mut round = grouping::round(self.stage, records, &self.states[place])
            .map_err(|(record, trouble)| Failed::at(info, &record, trouble))?;
        self.timed[place].join(&mut round, times);
        if round.buckets.is_empty() {
            return Ok(false);
        }
        for bucket in round.buckets.iter_mut().filter(|bucket| bucket.records.is_empty()) {
            bucket.state = self.states[place].get(bucket.key()).cloned();
        }
        let mut outputs = Outputs::default();
        let end = self.stage.round(&mut round, &mut outputs, env, usize::MAX).await;
        // With this budget there is only one other end than a failure.
        end.map_err(|failure| Failed::of_round(info, &round.records, failure))?;
        let names: Vec<_> = info.outputs().map(|topic| topic.name).collect();
        topics.append(&outputs, &names).map_err(|fault| Failed::output(info, fault))?;
        self.timed[place].done(&mut round);
        for bucket in round.buckets {
            let key = Bytes::copy_from_slice(bucket.key());
            match bucket.change {
                StateChange::Unchanged => {}
                StateChange::Set(state) => drop(self.states[place].insert(key, state)),
                StateChange::Deleted => drop(self.states[place].remove(&key)),
            }
        }
        for (input, count) in counts.into_iter().enumerate() {
            self.positions[input][place] += count;
        }
        Ok(true)
    }
}

#[track_caller]
fn decode<T: Topic>(raw: &crate::glue::RawRecord) -> Record<T> {
    match Record::decode(raw) {
        Ok(record) => record,
        Err((_, error)) => {
            panic!("{}/{} offset {} can't be decoded: {error}", T::NAME, raw.partition, raw.offset)
        }
    }
}

#[track_caller]
fn decode_state<S: StateValue>(stage: &str, stored: &[u8]) -> S {
    match state::decode(stored) {
        Ok(state) => state,
        Err((_, error)) => panic!("the state of stage `{stage}` is no `{}`: {error}", S::NAME),
    }
}

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Thread(std::thread::Thread);

    impl Wake for Thread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Thread(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
