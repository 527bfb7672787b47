//! Producers with and without transactions.

use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::describe_producers_request::TopicRequest;
use kafka_protocol::messages::describe_producers_response::ProducerState;
use kafka_protocol::messages::describe_transactions_response::TransactionState;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::write_txn_markers_request::{WritableTxnMarker, WritableTxnMarkerTopic};
use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, DescribeProducersRequest, DescribeTransactionsRequest,
    EndTxnRequest, InitProducerIdRequest, ProducerId, TxnOffsetCommitRequest, WriteTxnMarkersRequest,
};

use crate::{Answer, Batch, Client, Code, code, text, unique, wait_for};

/// A producer's identity, and the sequence number that each of its partitions expects.
#[derive(Clone, Debug)]
pub struct Producer {
    /// Empty: without transactions.
    pub transactional_id: String,
    /// Given by the broker.
    pub id: i64,
    /// Given by the broker.
    pub epoch: i16,
    sequences: std::collections::BTreeMap<(String, i32), i32>,
}

/// What to ask for a producer id with.
#[derive(Clone, Copy, Debug)]
pub struct Init {
    /// After which the broker aborts a transaction.
    pub timeout_ms: i32,
    /// The identity that the producer has had, if any.
    pub had: Option<(i64, i16)>,
}

impl Default for Init {
    fn default() -> Init {
        Init { timeout_ms: 60_000, had: None }
    }
}

impl Client {
    /// A producer id without transactions.
    #[track_caller]
    pub fn idempotent_producer(&mut self) -> Producer {
        let (id, epoch) = self.init_producer("", Init::default()).expect("a producer id");
        Producer { transactional_id: String::new(), id, epoch, sequences: Default::default() }
    }

    /// A transactional producer with a name of its own.
    #[track_caller]
    pub fn transactional_producer(&mut self) -> Producer {
        self.producer_named(&unique("tx"))
    }

    /// A transactional producer with this name; an older one of that name is fenced.
    #[track_caller]
    pub fn producer_named(&mut self, transactional_id: &str) -> Producer {
        self.producer_with(transactional_id, Init::default())
    }

    /// A transactional producer whose transactions the broker aborts after a while.
    #[track_caller]
    pub fn producer_with(&mut self, transactional_id: &str, init: Init) -> Producer {
        let (id, epoch) = self.init_when_ready(transactional_id, init).expect("a producer id");
        Producer { transactional_id: transactional_id.to_owned(), id, epoch, sequences: Default::default() }
    }

    /// Asks for a producer id, again and again while an earlier transaction completes.
    #[track_caller]
    pub fn init_when_ready(&mut self, transactional_id: &str, init: Init) -> Answer<(i64, i16)> {
        settled(|| self.init_producer(transactional_id, init))
    }

    /// Asks once for a producer id.
    #[track_caller]
    pub fn init_producer(&mut self, transactional_id: &str, init: Init) -> Answer<(i64, i16)> {
        let (id, epoch) = init.had.unwrap_or((-1, -1));
        let name = (!transactional_id.is_empty()).then(|| text(transactional_id).into());
        let request = InitProducerIdRequest::default()
            .with_transactional_id(name)
            .with_transaction_timeout_ms(init.timeout_ms)
            .with_producer_id(ProducerId(id))
            .with_producer_epoch(epoch);
        let answer = self.call(&request);
        code(answer.error_code).map(|()| (answer.producer_id.0, answer.producer_epoch))
    }

    /// What the coordinator knows about a transactional id.
    #[track_caller]
    pub fn describe_transaction(&mut self, transactional_id: &str) -> Answer<TransactionState> {
        let request = DescribeTransactionsRequest::default()
            .with_transactional_ids(vec![text(transactional_id).into()]);
        let state = self.call(&request).transaction_states.remove(0);
        code(state.error_code).map(|()| state)
    }

    /// The state's name of a transactional id.
    #[track_caller]
    pub fn transaction_state(&mut self, transactional_id: &str) -> String {
        let state = self.describe_transaction(transactional_id).expect("a transaction");
        state.transaction_state.as_str().to_owned()
    }

    /// The producers that a partition remembers.
    #[track_caller]
    pub fn describe_producers(&mut self, topic: &str, partition: i32) -> Answer<Vec<ProducerState>> {
        let topic =
            TopicRequest::default().with_name(text(topic).into()).with_partition_indexes(vec![partition]);
        let answer = self.call(&DescribeProducersRequest::default().with_topics(vec![topic]));
        let partition = answer.topics[0].partitions[0].clone();
        code(partition.error_code).map(|()| partition.active_producers)
    }
}

/// A marker that a tool writes into one partition, past the coordinator.
#[derive(Clone, Copy, Debug)]
pub struct ToolMarker {
    /// Whose transaction it ends.
    pub producer: (i64, i16),
    /// As the tool knows it from the producer's state.
    pub coordinator_epoch: i32,
    /// To commit it; such tools only abort.
    pub commit: bool,
}

impl ToolMarker {
    /// The request that writes it.
    pub fn request(&self, topic: &str, partition: i32) -> WriteTxnMarkersRequest {
        let topic = WritableTxnMarkerTopic::default()
            .with_name(text(topic).into())
            .with_partition_indexes(vec![partition]);
        let marker = WritableTxnMarker::default()
            .with_producer_id(ProducerId(self.producer.0))
            .with_producer_epoch(self.producer.1)
            .with_coordinator_epoch(self.coordinator_epoch)
            .with_transaction_result(self.commit)
            .with_topics(vec![topic]);
        WriteTxnMarkersRequest::default().with_markers(vec![marker])
    }

    /// Writes it, and gives what is said of that.
    #[track_caller]
    pub fn write(&self, client: &mut Client, topic: &str, partition: i32) -> Answer {
        let answer = client.call(&self.request(topic, partition));
        let marker = &answer.markers[0];
        assert_eq!(marker.producer_id.0, self.producer.0);
        let written = &marker.topics[0];
        assert_eq!((written.name.as_str(), written.partitions[0].partition_index), (topic, partition));
        code(written.partitions[0].error_code)
    }
}

impl Producer {
    /// One with this identity, wherever that comes from.
    pub fn with_identity(transactional_id: &str, id: i64, epoch: i16) -> Producer {
        Producer { transactional_id: transactional_id.to_owned(), id, epoch, sequences: Default::default() }
    }

    /// The sequence number for the next record of a partition.
    pub fn sequence(&self, topic: &str, partition: i32) -> i32 {
        self.sequences.get(&(topic.to_owned(), partition)).copied().unwrap_or(0)
    }

    /// Writes values with the next sequence numbers; a transactional producer's are part of its transaction.
    #[track_caller]
    pub fn send(&mut self, client: &mut Client, topic: &str, partition: i32, values: &[&str]) -> Answer<i64> {
        let batch = self.batch(topic, partition, values);
        let answer = client.produce_as(topic, partition, batch.encode(), self.transactional_id());
        code(answer.error_code)?;
        let next = self.sequence(topic, partition) + values.len() as i32;
        self.sequences.insert((topic.to_owned(), partition), next);
        Ok(answer.base_offset)
    }

    /// The batch that [`send`](Producer::send) would write.
    pub fn batch(&self, topic: &str, partition: i32, values: &[&str]) -> Batch {
        let batch = Batch::of(values).by(self.id, self.epoch, self.sequence(topic, partition));
        if self.transactional_id.is_empty() { batch } else { batch.transactional() }
    }

    fn transactional_id(&self) -> Option<&str> {
        (!self.transactional_id.is_empty()).then_some(self.transactional_id.as_str())
    }

    /// Makes a partition part of the transaction, waiting while an earlier transaction completes.
    #[track_caller]
    pub fn add(&self, client: &mut Client, topic: &str, partitions: &[i32]) -> Answer {
        settled(|| self.add_once(client, topic, partitions))
    }

    /// Asks once to make a partition part of the transaction; the first error of several.
    #[track_caller]
    pub fn add_once(&self, client: &mut Client, topic: &str, partitions: &[i32]) -> Answer {
        let topic = AddPartitionsToTxnTopic::default()
            .with_name(text(topic).into())
            .with_partitions(partitions.to_vec());
        let request = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(text(&self.transactional_id).into())
            .with_v3_and_below_producer_id(ProducerId(self.id))
            .with_v3_and_below_producer_epoch(self.epoch)
            .with_v3_and_below_topics(vec![topic]);
        let answer = client.call(&request);
        let mut results =
            answer.results_by_topic_v3_and_below.iter().flat_map(|topic| &topic.results_by_partition);
        results.try_for_each(|result| code(result.partition_error_code))
    }

    /// [`add`](Producer::add) and [`send`](Producer::send), neither of which may fail.
    #[track_caller]
    pub fn write(&mut self, client: &mut Client, topic: &str, partition: i32, values: &[&str]) -> i64 {
        self.add(client, topic, &[partition]).expect("the partition is part of the transaction");
        self.send(client, topic, partition, values).expect("the records are written")
    }

    /// Makes a group part of the transaction, waiting while an earlier transaction completes.
    #[track_caller]
    pub fn add_offsets(&self, client: &mut Client, group: &str) -> Answer {
        settled(|| {
            let request = AddOffsetsToTxnRequest::default()
                .with_transactional_id(text(&self.transactional_id).into())
                .with_producer_id(ProducerId(self.id))
                .with_producer_epoch(self.epoch)
                .with_group_id(text(group).into());
            code(client.call(&request).error_code)
        })
    }

    /// Commits one offset in the transaction, as no member of the group.
    #[track_caller]
    pub fn commit_offset(
        &self,
        client: &mut Client,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> Answer {
        let request = self.offset_commit(group, topic, partition, offset);
        code(client.call(&request).topics[0].partitions[0].error_code)
    }

    /// The request of [`commit_offset`](Producer::commit_offset), to which a member can be added.
    pub fn offset_commit(
        &self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> TxnOffsetCommitRequest {
        let one = TxnOffsetCommitRequestPartition::default()
            .with_partition_index(partition)
            .with_committed_offset(offset)
            .with_committed_leader_epoch(-1)
            .with_committed_metadata(Some(text("")));
        let topic =
            TxnOffsetCommitRequestTopic::default().with_name(text(topic).into()).with_partitions(vec![one]);
        TxnOffsetCommitRequest::default()
            .with_transactional_id(text(&self.transactional_id).into())
            .with_group_id(text(group).into())
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_generation_id(-1)
            .with_topics(vec![topic])
    }

    /// Ends the transaction, and waits until that is visible to others.
    #[track_caller]
    pub fn end(&self, client: &mut Client, commit: bool) -> Answer {
        self.end_once(client, commit)?;
        let wanted = if commit { "CompleteCommit" } else { "CompleteAbort" };
        wait_for("the transaction is complete", || {
            client.transaction_state(&self.transactional_id) == wanted
        });
        Ok(())
    }

    /// Asks to end the transaction, and waits for nothing but the answer.
    #[track_caller]
    pub fn end_once(&self, client: &mut Client, commit: bool) -> Answer {
        let request = EndTxnRequest::default()
            .with_transactional_id(text(&self.transactional_id).into())
            .with_producer_id(ProducerId(self.id))
            .with_producer_epoch(self.epoch)
            .with_committed(commit);
        code(client.call(&request).error_code)
    }

    /// Commits; must not fail.
    #[track_caller]
    pub fn commit(&self, client: &mut Client) {
        self.end(client, true).expect("a commit");
    }

    /// Aborts; must not fail.
    #[track_caller]
    pub fn abort(&self, client: &mut Client) {
        self.end(client, false).expect("an abort");
    }
}

/// Asks until the answer is not that another operation on the transaction is under way.
#[track_caller]
pub fn settled<T>(mut ask: impl FnMut() -> Answer<T>) -> Answer<T> {
    let mut answer = Err(Code::ConcurrentTransactions);
    wait_for("an earlier transaction is complete", || {
        answer = ask();
        !matches!(answer, Err(Code::ConcurrentTransactions))
    });
    answer
}
