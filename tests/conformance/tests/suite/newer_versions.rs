//! What newer versions of a request can say, beyond those that the project's own client library speaks. A broker need not have
//! them; where it advertises one, it keeps its rules.

use flechtwerk_conformance::*;
use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::*;

/// A connection, if the broker has this version of an API.
fn with_version(key: i16, version: i16) -> Option<Client> {
    let client = Broker::get().client();
    let has = client.versions().get(&key).is_some_and(|(low, high)| (*low..=*high).contains(&version));
    has.then_some(client)
}

/// Two static members in a stable group.
fn stable(client: &Client, group: &str) -> (Member, Member) {
    let mut first = Member::new(client.another(), group).fixed("one");
    first.join_alone();
    let mut second = Member::new(client.another(), group).fixed("two");
    second.start_join();
    wait_for("the rebalance begins", || first.heartbeat() == Err(Code::RebalanceInProgress));
    first.join().expect("a join");
    second.finish_join().expect("a join");
    let ids = (first.id.clone(), second.id.clone());
    first.sync(&[(&ids.0, "a"), (&ids.1, "b")]).expect("a sync");
    second.sync(&[]).expect("a sync");
    (first, second)
}

fn leave(client: &mut Client, group: &str, members: &[(&str, Option<&str>)]) -> Vec<MemberResponse> {
    let one = |(id, instance): &(&str, Option<&str>)| {
        MemberIdentity::default().with_member_id(text(id)).with_group_instance_id(instance.map(text))
    };
    let request = LeaveGroupRequest::default()
        .with_group_id(text(group).into())
        .with_members(members.iter().map(one).collect());
    let answer = client.call_at(3, &request);
    assert_eq!(answer.error_code, 0);
    answer.members
}

#[test]
fn a_static_member_is_removed_by_its_instance_alone() {
    let Some(mut client) = with_version(13, 3) else { return };
    let group = unique("group");
    let (mut first, mut second) = stable(&client, &group);
    let left = leave(&mut client, &group, &[("", Some("two"))]);
    assert_eq!(code(left[0].error_code), Ok(()));
    assert_eq!(second.heartbeat(), Err(Code::UnknownMemberId));
    assert_eq!(first.heartbeat(), Err(Code::RebalanceInProgress));
}

#[test]
fn several_members_leave_at_once_and_fail_one_by_one() {
    let Some(mut client) = with_version(13, 3) else { return };
    let group = unique("group");
    let (first, second) = stable(&client, &group);
    let left = leave(
        &mut client,
        &group,
        &[
            (&first.id, None),
            ("nobody", None),
            ("", Some("three")),
            (&first.id, Some("two")),
            (&second.id, Some("two")),
        ],
    );
    let codes: Vec<Answer> = left.iter().map(|one| code(one.error_code)).collect();
    assert_eq!(
        codes,
        [Ok(()), Err(Code::UnknownMemberId), Err(Code::UnknownMemberId), Err(Code::FencedInstanceId), Ok(()),]
    );
    assert_eq!(client.group_state(&group), "Empty");
}

#[test]
fn coordinators_of_several_names_are_found_at_once() {
    let Some(mut client) = with_version(10, 4) else { return };
    let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text("a"), text("b")]);
    let answer = client.call_at(4, &request);
    let mut names: Vec<&str> = answer.coordinators.iter().map(|one| one.key.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    assert!(answer.coordinators.iter().all(|one| one.error_code == 0 && one.port > 0));
}

#[test]
fn groups_are_listed_by_type() {
    let Some(mut client) = with_version(16, 5) else { return };
    let (topic, active, idle) = (client.topic(1), unique("active"), unique("idle"));
    Member::new(client.another(), &active).join_alone();
    assert_eq!(client.commit_offset(&idle, &topic, 0, 1), Ok(()));
    let mut listed = |kind: &str| {
        let answer = client.call_at(5, &ListGroupsRequest::default().with_types_filter(vec![text(kind)]));
        let names = [&active, &idle];
        names.map(|name| answer.groups.iter().find(|one| one.group_id.as_str() == name).cloned())
    };
    let [one, other] =
        listed("classic").map(|found| found.map(|group| group.group_type.as_str().to_lowercase()));
    assert_eq!((one.as_deref(), other.as_deref()), (Some("classic"), Some("classic")));
    assert_eq!(listed("consumer"), [None, None]);
}

#[test]
fn young_transactions_are_left_out_where_old_ones_are_asked_for() {
    let Some(mut client) = with_version(66, 1) else { return };
    let topic = client.topic(1);
    let mut producer = client.transactional_producer();
    producer.write(&mut client, &topic, 0, &["a"]);
    let mut listed = |duration: i64| {
        let answer = client.call_at(1, &ListTransactionsRequest::default().with_duration_filter(duration));
        answer.transaction_states.iter().any(|one| one.transactional_id.as_str() == producer.transactional_id)
    };
    assert!(listed(-1));
    assert!(!listed(3_600_000));
}

#[test]
fn a_created_topic_answers_with_its_settings() {
    let Some(mut client) = with_version(19, 5) else { return };
    let topic: CreatableTopic = calls::topics::new_topic(&unique("topic"), 1)
        .with_configs(calls::topics::settings(&[("cleanup.policy", "compact")]));
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
    let answer = client.call_at(5, &request);
    assert_eq!(answer.topics[0].error_code, 0);
    let configs = answer.topics[0].configs.clone().expect("settings");
    let policy = configs.iter().find(|one| one.name.as_str() == "cleanup.policy").expect("the policy");
    assert_eq!(policy.value.as_ref().map(|value| value.as_str()), Some("compact"));
    assert_eq!(policy.config_source, 1);
}

#[test]
fn a_setting_names_where_its_values_come_from() {
    let Some(mut client) = with_version(32, 1) else { return };
    let topic = client.topic_with(1, &[("retention.ms", "1234")]);
    let resource = DescribeConfigsResource::default()
        .with_resource_type(calls::topics::TOPIC)
        .with_resource_name(text(&topic))
        .with_configuration_keys(Some(vec![text("retention.ms")]));
    let request =
        DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true);
    let answer = client.call(&request);
    let config = &answer.results[0].configs[0];
    let first = config.synonyms.first().expect("a synonym");
    assert_eq!((first.name.as_str(), first.source), ("retention.ms", 1));
    assert_eq!(first.value.as_ref().map(|value| value.as_str()), Some("1234"));
}

#[test]
fn a_record_that_is_refused_is_named() {
    let Some(mut client) = with_version(0, 8) else { return };
    let topic = client.topic_with(1, &[("cleanup.policy", "compact")]);
    let record = |key: Option<&str>| Record {
        key: key.map(|key| key.as_bytes().to_vec()),
        value: Some(b"v".to_vec()),
        ..Record::default()
    };
    let batch = Batch::records(vec![record(Some("a")), record(None), record(Some("b"))]);
    let answer = client.produce_as(&topic, 0, batch.encode(), None);
    assert_eq!(code(answer.error_code), Err(Code::InvalidRecord));
    let refused: Vec<i32> = answer.record_errors.iter().map(|one| one.batch_index).collect();
    assert_eq!(refused, [1]);
    assert_eq!(client.end(&topic, 0), 0);
}

#[test]
fn the_oldest_metadata_name_all_topics_where_the_list_is_empty() {
    let Some(mut client) = with_version(3, 0) else { return };
    let topic = client.topic(1);
    let answer = client.call_at(0, &MetadataRequest::default().with_topics(Some(Vec::new())));
    assert!(answer.topics.iter().any(|one| one.name.as_ref().is_some_and(|name| name.as_str() == topic)));
}

#[test]
fn a_topic_is_not_created_by_asking_for_it() {
    use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
    let Some(mut client) = with_version(3, 4) else { return };
    let name = unique("nowhere");
    let topic = MetadataRequestTopic::default().with_name(Some(text(&name).into()));
    let request =
        MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true);
    for _ in 0..2 {
        let answer = client.call_at(4, &request);
        assert_eq!(code(answer.topics[0].error_code), Err(Code::UnknownTopicOrPartition));
    }
}

#[test]
fn operations_that_nobody_asked_for_are_not_listed() {
    let Some(mut client) = with_version(15, 3) else { return };
    let group = unique("group");
    Member::new(client.another(), &group).join_alone();
    assert_eq!(client.describe_group(&group).authorized_operations, i32::MIN);
    let topic = client.topic(1);
    assert_eq!(client.describe_topic(&topic).topic_authorized_operations, i32::MIN);
}
