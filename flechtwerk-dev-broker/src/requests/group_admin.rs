//! ListGroups, DescribeGroups and DeleteGroups.

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::describe_groups_response::{DescribedGroup as Described, DescribedGroupMember};
use kafka_protocol::messages::list_groups_response::ListedGroup as Listed;
use kafka_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse, GroupId,
    ListGroupsRequest, ListGroupsResponse,
};

use super::parts::Parts;
use super::repeated::once;
use super::text::{group_id, text};
use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::broker::state::State;
use crate::coordinator::Effects;
use crate::coordinator::group::{DescribedGroup, ListedGroup};
use crate::fault::Subject;

fn one_group(groups: &[GroupId]) -> Subject {
    match groups {
        [group] => Subject { transactional_id: None, group_id: Some(group.to_string()) },
        _ => Subject::default(),
    }
}

impl Serve for ListGroupsRequest {
    type Answer = ListGroupsResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn refuse(&self, _version: i16, error: ErrorCode) -> ListGroupsResponse {
        ListGroupsResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<ListGroupsResponse> {
        let names = |filter: &[kafka_protocol::protocol::StrBytes]| -> Vec<String> {
            filter.iter().map(|name| name.to_string()).collect()
        };
        let (states, types) = (names(&self.states_filter), names(&self.types_filter));
        let groups = context.with(|state| {
            let all = state.coordinators.groups.list(&states, &types);
            // Each node tells of the groups that it coordinates, so that a client that asks all has each group once.
            all.into_iter()
                .filter(|group| context.coordinates(state, &group.group).is_ok())
                .collect::<Vec<_>>()
        });
        let groups = groups.into_iter().map(|group| {
            Listed::default()
                .with_group_id(group_id(&group.group))
                .with_protocol_type(text(group.protocol_type))
                .with_group_state(text(group.state.name()))
                .with_group_type(text(ListedGroup::TYPE))
        });
        Outcome::Answer(ListGroupsResponse::default().with_groups(groups.collect()))
    }
}

impl Serve for DescribeGroupsRequest {
    type Answer = DescribeGroupsResponse;
    const ASKS_FOR_MUCH: bool = true;

    fn subject(&self) -> Subject {
        one_group(&self.groups)
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> DescribeGroupsResponse {
        let groups = self.groups.iter().map(|group| failed(group, error));
        DescribeGroupsResponse::default().with_groups(groups.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DescribeGroupsResponse> {
        let mut parts = Parts::new(context);
        let groups: Result<_, _> = context.with(|state| {
            let part = |group: &&GroupId| match context.coordinates(state, group) {
                Ok(()) => described(state, group),
                Err(error) => failed(group, error),
            };
            self.groups.iter().map(|group| parts.part(group, part)).collect()
        });
        groups.map(|groups| DescribeGroupsResponse::default().with_groups(groups)).into()
    }
}

fn failed(group: &GroupId, error: ErrorCode) -> Described {
    Described::default().with_group_id(group.clone()).with_error_code(error.code())
}

fn described(state: &State, group: &GroupId) -> Described {
    let found = state.coordinators.groups.describe(group).unwrap_or_else(|| DescribedGroup::dead(group));
    let members = found.members.into_iter().map(|member| {
        DescribedGroupMember::default()
            .with_member_id(text(member.member_id))
            .with_group_instance_id(member.instance_id.map(text))
            .with_client_id(text(member.client_id))
            .with_client_host(text(member.client_host))
            .with_member_metadata(member.metadata)
            .with_member_assignment(member.assignment)
    });
    Described::default()
        .with_group_id(group.clone())
        .with_group_state(text(found.state.name()))
        .with_protocol_type(text(found.protocol_type))
        .with_protocol_data(text(found.protocol))
        .with_members(members.collect())
}

impl Serve for DeleteGroupsRequest {
    type Answer = DeleteGroupsResponse;

    fn subject(&self) -> Subject {
        one_group(&self.groups_names)
    }

    fn refuse(&self, _version: i16, error: ErrorCode) -> DeleteGroupsResponse {
        let results = self.groups_names.iter().map(|group| {
            DeletableGroupResult::default().with_group_id(group.clone()).with_error_code(error.code())
        });
        DeleteGroupsResponse::default().with_results(results.collect())
    }

    async fn serve(self, context: &Context) -> Outcome<DeleteGroupsResponse> {
        let results = context.with(|state| {
            let results = once(&self.groups_names, |group| *group, |_, _| {}).into_iter().map(|group| {
                let code = match context.coordinates(state, group) {
                    Err(error) => error.code(),
                    Ok(()) => {
                        let mut effects = Effects::new();
                        let deleted = state.coordinators.groups.delete_group(group, &mut effects);
                        state.settle(effects);
                        deleted.code()
                    }
                };
                DeletableGroupResult::default().with_group_id(group.clone()).with_error_code(code)
            });
            results.collect()
        });
        Outcome::Answer(DeleteGroupsResponse::default().with_results(results))
    }
}
