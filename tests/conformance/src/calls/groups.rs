//! Consumer groups: their members and their offsets.

use kafka_protocol::messages::describe_groups_response::DescribedGroup;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest, JoinGroupResponse,
    LeaveGroupRequest, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest,
};

use crate::{Answer, Client, Code, code, text};

/// A member of a group on a connection of its own, because a join and a sync can wait.
#[derive(Debug)]
pub struct Member {
    /// Its connection.
    pub client: Client,
    /// The group.
    pub group: String,
    /// Empty before the first answer.
    pub id: String,
    /// Of a static member.
    pub instance: Option<String>,
    /// -1 before the first join.
    pub generation: i32,
    /// Whether it makes the assignments.
    pub leads: bool,
    /// Names of assignment protocols, the preferred first.
    pub protocols: Vec<String>,
    /// After which a silent member is expelled.
    pub session_ms: i32,
    /// How long a rebalance waits for the members.
    pub rebalance_ms: i32,
}

impl Member {
    /// One that has not joined yet.
    pub fn new(client: Client, group: &str) -> Member {
        Member {
            client,
            group: group.to_owned(),
            id: String::new(),
            instance: None,
            generation: -1,
            leads: false,
            protocols: vec!["range".to_owned()],
            session_ms: 30_000,
            rebalance_ms: 30_000,
        }
    }

    /// With a name that outlives its process.
    pub fn fixed(mut self, instance: &str) -> Member {
        self.instance = Some(instance.to_owned());
        self
    }

    /// Expelled after a second of silence, the shortest that brokers under test allow.
    pub fn short_session(mut self) -> Member {
        self.session_ms = 1_000;
        self
    }

    /// With these protocols.
    pub fn with_protocols(mut self, protocols: &[&str]) -> Member {
        self.protocols = protocols.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// The request to join.
    pub fn join_request(&self) -> JoinGroupRequest {
        let protocol = |name: &String| {
            let metadata = format!("metadata of {}", self.instance.as_deref().unwrap_or(name));
            JoinGroupRequestProtocol::default()
                .with_name(text(name))
                .with_metadata(metadata.into_bytes().into())
        };
        JoinGroupRequest::default()
            .with_group_id(text(&self.group).into())
            .with_session_timeout_ms(self.session_ms)
            .with_rebalance_timeout_ms(self.rebalance_ms)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_protocol_type(text("consumer"))
            .with_protocols(self.protocols.iter().map(protocol).collect())
    }

    /// Asks to join and waits for the answer; a member without an id gets one and asks again.
    #[track_caller]
    pub fn join(&mut self) -> Answer<JoinGroupResponse> {
        self.start_join();
        self.finish_join()
    }

    /// Asks to join, with an id of its own, and does not wait.
    #[track_caller]
    pub fn start_join(&mut self) {
        if self.id.is_empty() && self.instance.is_none() {
            let answer = self.client.call(&self.join_request());
            assert_eq!(code(answer.error_code), Err(Code::MemberIdRequired), "the first join");
            self.id = answer.member_id.as_str().to_owned();
        }
        let request = self.join_request();
        self.client.send(&request);
    }

    /// Waits for the answer to a join.
    #[track_caller]
    pub fn finish_join(&mut self) -> Answer<JoinGroupResponse> {
        let answer = self.client.receive::<JoinGroupRequest>();
        code(answer.error_code)?;
        self.id = answer.member_id.as_str().to_owned();
        self.generation = answer.generation_id;
        self.leads = answer.leader == answer.member_id;
        Ok(answer)
    }

    /// The request for the assignment; the leader's has everybody's: member ids and bytes.
    pub fn sync_request(&self, assignments: &[(&str, &str)]) -> SyncGroupRequest {
        let one = |(member, assignment): &(&str, &str)| {
            SyncGroupRequestAssignment::default()
                .with_member_id(text(member))
                .with_assignment(assignment.as_bytes().to_vec().into())
        };
        SyncGroupRequest::default()
            .with_group_id(text(&self.group).into())
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text))
            .with_assignments(assignments.iter().map(one).collect())
    }

    /// Asks for the assignment and waits for it.
    #[track_caller]
    pub fn sync(&mut self, assignments: &[(&str, &str)]) -> Answer<String> {
        self.start_sync(assignments);
        self.finish_sync()
    }

    /// Asks for the assignment and does not wait.
    #[track_caller]
    pub fn start_sync(&mut self, assignments: &[(&str, &str)]) {
        let request = self.sync_request(assignments);
        self.client.send(&request);
    }

    /// Waits for the assignment.
    #[track_caller]
    pub fn finish_sync(&mut self) -> Answer<String> {
        let answer = self.client.receive::<SyncGroupRequest>();
        code(answer.error_code).map(|()| String::from_utf8_lossy(&answer.assignment).into_owned())
    }

    /// Joins a group of which it is the only member, and assigns `all` to itself.
    #[track_caller]
    pub fn join_alone(&mut self) {
        self.join().expect("a join");
        assert!(self.leads, "the only member leads");
        let id = self.id.clone();
        assert_eq!(self.sync(&[(&id, "all")]), Ok("all".to_owned()));
    }

    /// One heartbeat.
    #[track_caller]
    pub fn heartbeat(&mut self) -> Answer {
        let request = HeartbeatRequest::default()
            .with_group_id(text(&self.group).into())
            .with_generation_id(self.generation)
            .with_member_id(text(&self.id))
            .with_group_instance_id(self.instance.as_deref().map(text));
        code(self.client.call(&request).error_code)
    }

    /// Leaves by its member id.
    #[track_caller]
    pub fn leave(&mut self) -> Answer {
        let (group, id) = (text(&self.group), text(&self.id));
        let request = LeaveGroupRequest::default().with_group_id(group.into());
        let identity = MemberIdentity::default().with_member_id(id.clone());
        let by_list = self.client.version::<LeaveGroupRequest>() >= 3;
        let request = if by_list { request.with_members(vec![identity]) } else { request.with_member_id(id) };
        let answer = self.client.call(&request);
        code(answer.error_code)?;
        answer.members.iter().try_for_each(|member| code(member.error_code))
    }

    /// Commits one offset as this member.
    #[track_caller]
    pub fn commit(&mut self, topic: &str, partition: i32, offset: i64) -> Answer {
        let request = offset_commit(&self.group, topic, &[(partition, offset, "")])
            .with_member_id(text(&self.id))
            .with_generation_id_or_member_epoch(self.generation)
            .with_group_instance_id(self.instance.as_deref().map(text));
        code(self.client.call(&request).topics[0].partitions[0].error_code)
    }
}

/// A request to commit partitions, offsets and metadata, as no member.
pub fn offset_commit(group: &str, topic: &str, offsets: &[(i32, i64, &str)]) -> OffsetCommitRequest {
    let one = |(partition, offset, metadata): &(i32, i64, &str)| {
        OffsetCommitRequestPartition::default()
            .with_partition_index(*partition)
            .with_committed_offset(*offset)
            .with_committed_leader_epoch(-1)
            .with_committed_metadata(Some(text(metadata)))
    };
    let topic = OffsetCommitRequestTopic::default()
        .with_name(text(topic).into())
        .with_partitions(offsets.iter().map(one).collect());
    OffsetCommitRequest::default()
        .with_group_id(text(group).into())
        .with_generation_id_or_member_epoch(-1)
        .with_retention_time_ms(-1)
        .with_topics(vec![topic])
}

impl Client {
    /// Commits one offset, as no member.
    #[track_caller]
    pub fn commit_offset(&mut self, group: &str, topic: &str, partition: i32, offset: i64) -> Answer {
        let answer = self.call(&offset_commit(group, topic, &[(partition, offset, "")]));
        code(answer.topics[0].partitions[0].error_code)
    }

    /// The committed offset of a partition, -1 where there is none.
    #[track_caller]
    pub fn committed(&mut self, group: &str, topic: &str, partition: i32) -> i64 {
        self.fetch_offset(group, topic, partition, false).expect("a committed offset").0
    }

    /// The committed offset and metadata of a partition.
    #[track_caller]
    pub fn fetch_offset(
        &mut self,
        group: &str,
        topic: &str,
        partition: i32,
        stable: bool,
    ) -> Answer<(i64, String)> {
        let topic = OffsetFetchRequestTopic::default()
            .with_name(text(topic).into())
            .with_partition_indexes(vec![partition]);
        let request = OffsetFetchRequest::default()
            .with_group_id(text(group).into())
            .with_require_stable(stable)
            .with_topics(Some(vec![topic]));
        let answer = self.call(&request);
        code(answer.error_code)?;
        let one = &answer.topics[0].partitions[0];
        let metadata = one.metadata.as_ref().map(|metadata| metadata.as_str().to_owned());
        code(one.error_code).map(|()| (one.committed_offset, metadata.unwrap_or_default()))
    }

    /// What the coordinator knows about a group.
    #[track_caller]
    pub fn describe_group(&mut self, group: &str) -> DescribedGroup {
        self.call(&DescribeGroupsRequest::default().with_groups(vec![text(group).into()])).groups.remove(0)
    }

    /// The state's name of a group.
    #[track_caller]
    pub fn group_state(&mut self, group: &str) -> String {
        self.describe_group(group).group_state.as_str().to_owned()
    }

    /// Deletes a group.
    #[track_caller]
    pub fn delete_group(&mut self, group: &str) -> Answer {
        let request = DeleteGroupsRequest::default().with_groups_names(vec![text(group).into()]);
        code(self.call(&request).results[0].error_code)
    }
}
