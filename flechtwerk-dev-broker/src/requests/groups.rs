//! FindCoordinator, JoinGroup, SyncGroup, Heartbeat and LeaveGroup: membership.

use bytes::Bytes;
use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{
    BrokerId, FindCoordinatorRequest, FindCoordinatorResponse, HeartbeatRequest, HeartbeatResponse,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};

use super::text::{maybe, text};
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::coordinator::group::{
    JoinProtocol, JoinRequest, JoinResponse, LeavingMember, SyncRequest, SyncResponse,
};
use crate::coordinator::{Answer, Effects};
use crate::fault::Subject;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

impl Serve for FindCoordinatorRequest {
    type Answer = FindCoordinatorResponse;

    fn subject(&self) -> Subject {
        let key = match self.coordinator_keys.as_slice() {
            [] => Some(self.key.to_string()),
            [key] => Some(key.to_string()),
            _ => None,
        };
        match self.key_type {
            TRANSACTION => Subject { transactional_id: key, group_id: None },
            _ => Subject { transactional_id: None, group_id: key },
        }
    }

    fn refuse(&self, version: i16, error: ErrorCode) -> FindCoordinatorResponse {
        let keys = if version >= 4 { self.coordinator_keys.clone() } else { vec![self.key.clone()] };
        let all = keys.into_iter().map(|key| nowhere(error).with_key(key));
        found(version, all.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<FindCoordinatorResponse> {
        let version = context.version();
        if self.key_type != GROUP && self.key_type != TRANSACTION {
            return Outcome::Answer(self.refuse(version, ErrorCode::INVALID_REQUEST));
        }
        let keys = if version >= 4 { self.coordinator_keys } else { vec![self.key] };
        let all = context.with(|state| {
            let all = keys.into_iter().map(|key| match state.nodes.coordinator(&key) {
                Some(node) => Coordinator::default()
                    .with_node_id(BrokerId(node.id))
                    .with_host(text(node.host.clone()))
                    .with_port(i32::from(node.port))
                    .with_key(key),
                None => nowhere(ErrorCode::COORDINATOR_NOT_AVAILABLE).with_key(key),
            });
            all.collect()
        });
        Outcome::Answer(found(version, all))
    }
}

fn nowhere(error: ErrorCode) -> Coordinator {
    Coordinator::default()
        .with_node_id(BrokerId(-1))
        .with_port(-1)
        .with_error_code(error.code())
        .with_error_message(Some(text(error.to_string())))
}

/// Versions below 4 ask for one coordinator and have it at the top.
fn found(version: i16, all: Vec<Coordinator>) -> FindCoordinatorResponse {
    if version >= 4 {
        return FindCoordinatorResponse::default().with_coordinators(all);
    }
    let one = all.into_iter().next().unwrap_or_default();
    FindCoordinatorResponse::default()
        .with_error_code(one.error_code)
        .with_error_message(one.error_message)
        .with_node_id(one.node_id)
        .with_host(one.host)
        .with_port(one.port)
}

impl Serve for JoinGroupRequest {
    type Answer = JoinGroupResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> JoinGroupResponse {
        JoinGroupResponse::default()
            .with_error_code(error.code())
            .with_generation_id(-1)
            .with_protocol_name(Some(text("")))
            .with_member_id(self.member_id.clone())
    }

    async fn serve(self, context: &Context) -> Outcome<JoinGroupResponse> {
        let version = context.version();
        let request = JoinRequest {
            group: self.group_id.to_string(),
            member_id: self.member_id.to_string(),
            instance_id: maybe(self.group_instance_id.as_ref()),
            client_id: context.header.client_id.clone().unwrap_or_default(),
            client_host: format!("/{}", context.peer.ip()),
            session_timeout: self.session_timeout_ms,
            rebalance_timeout: if version >= 1 { self.rebalance_timeout_ms } else { -1 },
            protocol_type: self.protocol_type.to_string(),
            protocols: self
                .protocols
                .iter()
                .map(|protocol| JoinProtocol {
                    name: protocol.name.to_string(),
                    metadata: protocol.metadata.clone(),
                })
                .collect(),
            member_id_required: version >= 4,
            knows_skip_assignment: version >= 9,
        };
        let waiting = context.with(|state| {
            context.coordinates(state, &request.group)?;
            let now = state.now();
            let (ticket, waiting) = state.ticket();
            let mut effects = Effects::new();
            state.coordinators.groups.join(now, ticket, request, &mut effects);
            state.settle(effects);
            Ok(waiting)
        });
        match waiting {
            Err(error) => Outcome::Answer(self.refuse(version, error)),
            Ok(waiting) => match waiting.await {
                Ok(Answer::Join { response, .. }) => Outcome::Answer(joined(response)),
                _ => Outcome::Close("the group lost the request"),
            },
        }
    }
}

fn joined(response: JoinResponse) -> JoinGroupResponse {
    let members = response.members.into_iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(text(member.member_id))
            .with_group_instance_id(member.instance_id.map(text))
            .with_metadata(member.metadata)
    });
    JoinGroupResponse::default()
        .with_error_code(response.error.code())
        .with_generation_id(response.generation)
        .with_protocol_name(Some(text(response.protocol.unwrap_or_default())))
        .with_leader(text(response.leader))
        .with_member_id(text(response.member_id))
        .with_members(members.collect())
}

impl Serve for SyncGroupRequest {
    type Answer = SyncGroupResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> SyncGroupResponse {
        SyncGroupResponse::default().with_error_code(error.code()).with_assignment(Bytes::new())
    }

    async fn serve(self, context: &Context) -> Outcome<SyncGroupResponse> {
        let request = SyncRequest {
            group: self.group_id.to_string(),
            generation: self.generation_id,
            member_id: self.member_id.to_string(),
            instance_id: maybe(self.group_instance_id.as_ref()),
            protocol_type: None,
            protocol: None,
            assignments: self
                .assignments
                .iter()
                .map(|assignment| (assignment.member_id.to_string(), assignment.assignment.clone()))
                .collect(),
        };
        let waiting = context.with(|state| {
            context.coordinates(state, &request.group)?;
            let now = state.now();
            let (ticket, waiting) = state.ticket();
            let mut effects = Effects::new();
            state.coordinators.groups.sync(now, ticket, request, &mut effects);
            state.settle(effects);
            Ok(waiting)
        });
        match waiting {
            Err(error) => Outcome::Answer(self.refuse(context.version(), error)),
            Ok(waiting) => match waiting.await {
                Ok(Answer::Sync { response: SyncResponse { error, assignment, .. }, .. }) => Outcome::Answer(
                    SyncGroupResponse::default().with_error_code(error.code()).with_assignment(assignment),
                ),
                _ => Outcome::Close("the group lost the request"),
            },
        }
    }
}

impl Serve for HeartbeatRequest {
    type Answer = HeartbeatResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> HeartbeatResponse {
        HeartbeatResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<HeartbeatResponse> {
        let code = context.with(|state| {
            if let Err(error) = context.coordinates(state, &self.group_id) {
                return error.code();
            }
            let now = state.now();
            let instance_id = maybe(self.group_instance_id.as_ref());
            let groups = &mut state.coordinators.groups;
            groups
                .heartbeat(now, &self.group_id, &self.member_id, instance_id.as_deref(), self.generation_id)
                .code()
        });
        Outcome::Answer(HeartbeatResponse::default().with_error_code(code))
    }
}

impl Serve for LeaveGroupRequest {
    type Answer = LeaveGroupResponse;

    fn subject(&self) -> Subject {
        Subject { transactional_id: None, group_id: Some(self.group_id.to_string()) }
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> LeaveGroupResponse {
        LeaveGroupResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<LeaveGroupResponse> {
        let version = context.version();
        let leaving: Vec<LeavingMember> = if version < 3 {
            vec![LeavingMember { member_id: self.member_id.to_string(), instance_id: None }]
        } else {
            self.members
                .iter()
                .map(|member| LeavingMember {
                    member_id: member.member_id.to_string(),
                    instance_id: maybe(member.group_instance_id.as_ref()),
                })
                .collect()
        };
        let left = context.with(|state| {
            context.coordinates(state, &self.group_id)?;
            let now = state.now();
            let mut effects = Effects::new();
            let left = state.coordinators.groups.leave(now, &self.group_id, &leaving, &mut effects);
            state.settle(effects);
            left.map_err(|error| ErrorCode::new(error.code()))
        });
        let codes = match left {
            Ok(codes) => codes,
            Err(error) => return Outcome::Answer(self.refuse(version, error)),
        };
        if version < 3 {
            let code = codes.first().map_or(0, |code| code.code());
            return Outcome::Answer(LeaveGroupResponse::default().with_error_code(code));
        }
        let members = leaving.into_iter().zip(codes).map(|(member, code)| {
            MemberResponse::default()
                .with_member_id(text(member.member_id))
                .with_group_instance_id(member.instance_id.map(text))
                .with_error_code(code.code())
        });
        Outcome::Answer(LeaveGroupResponse::default().with_members(members.collect()))
    }
}
