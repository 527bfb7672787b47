"""Python's confluent-kafka against the broker of FLECHTWERK_TEST_BROKERS: transactions, offsets in transactions, groups.

Called by scripts/dev-broker-clients.
"""

import os
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

SERVERS = os.environ["FLECHTWERK_TEST_BROKERS"]
PATIENCE = 60


def done(what):
    print(f"ok: {what}", file=sys.stderr)


def consumer(group, **settings):
    return Consumer(
        {
            "bootstrap.servers": SERVERS,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def producer(transactional_id):
    made = Producer({"bootstrap.servers": SERVERS, "transactional.id": transactional_id, "linger.ms": 5})
    made.init_transactions(PATIENCE)
    return made


def write(to, topic, values):
    for value in values:
        to.produce(topic, value=value.encode(), partition=0)
    assert to.flush(PATIENCE) == 0


def all_values(topic, **settings):
    """What is in partition 0, from its start to its end."""
    reader = consumer("all", **settings)
    reader.assign([TopicPartition(topic, 0, 0)])
    values, deadline = [], time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        message = reader.poll(1)
        if message is None:
            continue
        if message.error() is None:
            values.append(message.value().decode())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            reader.close()
            return values
        else:
            raise KafkaException(message.error())
    raise AssertionError(f"{topic} does not end")


def topics(admin):
    for future in admin.create_topics([NewTopic("input", 1), NewTopic("output", 2, config={"retention.ms": "60000"})]).values():
        future.result(PATIENCE)
    described = admin.list_topics(timeout=PATIENCE).topics
    assert len(described["output"].partitions) == 2
    resource = ConfigResource(ConfigResource.Type.TOPIC, "output")
    config = admin.describe_configs([resource])[resource].result(PATIENCE)
    assert config["retention.ms"].value == "60000"
    done("topics and their settings")


def commit_and_abort():
    one = producer("one")
    one.begin_transaction()
    write(one, "output", ["a", "b"])
    assert all_values("output") == []
    assert all_values("output", isolation_level="read_uncommitted") == ["a", "b"]
    one.commit_transaction(PATIENCE)
    one.begin_transaction()
    write(one, "output", ["lost"] * 10)
    one.abort_transaction(PATIENCE)
    one.begin_transaction()
    write(one, "output", ["c"])
    one.commit_transaction(PATIENCE)
    assert all_values("output") == ["a", "b", "c"]
    assert len(all_values("output", isolation_level="read_uncommitted")) == 13
    done("commit, abort and read_committed")


def fencing():
    old = producer("twice")
    old.begin_transaction()
    write(old, "output", ["never"])
    new = producer("twice")
    try:
        old.commit_transaction(PATIENCE)
        raise AssertionError("the old producer committed")
    except KafkaException as error:
        assert error.args[0].code() == KafkaError._FENCED, error
        assert error.args[0].fatal()
    new.begin_transaction()
    write(new, "output", ["d"])
    new.commit_transaction(PATIENCE)
    assert all_values("output") == ["a", "b", "c", "d"]
    done("fencing")


def offsets_in_transactions():
    plain = Producer({"bootstrap.servers": SERVERS, "compression.type": "zstd"})
    write(plain, "input", [str(number) for number in range(1000)])
    worker = producer("worker")

    def work(commit, most):
        """Moves records in one transaction; the offset committed before."""
        member = consumer("workers", session_timeout_ms=6000)
        member.subscribe(["input"])
        moved = 0
        deadline = time.monotonic() + PATIENCE
        worker.begin_transaction()
        while moved < most:
            assert time.monotonic() < deadline, moved
            message = member.poll(1)
            if message is None or message.error() is not None:
                continue
            worker.produce("output", value=message.value(), partition=1)
            moved += 1
            last = message.offset()
        at = [TopicPartition("input", 0, last + 1)]
        worker.send_offsets_to_transaction(at, member.consumer_group_metadata(), PATIENCE)
        if commit:
            worker.commit_transaction(PATIENCE)
        else:
            worker.abort_transaction(PATIENCE)
        committed = member.committed([TopicPartition("input", 0)], PATIENCE)[0].offset
        metadata = member.consumer_group_metadata()
        member.close()
        return committed, metadata

    assert work(commit=True, most=300)[0] == 300
    assert work(commit=False, most=200)[0] == 300
    committed, left = work(commit=True, most=700)
    assert committed == 1000
    # A member that has left can't commit any more.
    worker.begin_transaction()
    try:
        worker.send_offsets_to_transaction([TopicPartition("input", 0, 1)], left, PATIENCE)
        raise AssertionError("a member that left has committed")
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID, error
        assert error.args[0].txn_requires_abort()
    worker.abort_transaction(PATIENCE)

    reader = consumer("check")
    reader.assign([TopicPartition("output", 1, 0)])
    values, ended, deadline = [], False, time.monotonic() + PATIENCE
    while not ended:
        assert time.monotonic() < deadline, len(values)
        message = reader.poll(1)
        if message is not None:
            ended = message.error() is not None
            if not ended:
                values.append(int(message.value()))
    reader.close()
    assert values == list(range(1000))
    done("offsets in transactions")


def group(admin):
    for future in admin.create_topics([NewTopic("shared", 4)]).values():
        future.result(PATIENCE)
    members = []
    for strategy in ["range", "cooperative-sticky"]:
        members = [consumer(f"group-{strategy}", partition_assignment_strategy=strategy) for _ in range(2)]
        for member in members:
            member.subscribe(["shared"])
        wait_for_shares(members, [2, 2])
        members.pop().close()
        wait_for_shares(members, [4])
        described = admin.describe_consumer_groups([f"group-{strategy}"])[f"group-{strategy}"].result(PATIENCE)
        assert described.state.name == "STABLE" and len(described.members) == 1, described
        assert len(described.members[0].assignment.topic_partitions) == 4
        members.pop().close()
        done(f"a group that shares, {strategy}")


def wait_for_shares(members, wanted):
    deadline = time.monotonic() + PATIENCE
    while [len(member.assignment()) for member in members] != wanted:
        assert time.monotonic() < deadline, [len(member.assignment()) for member in members]
        for member in members:
            member.poll(0.05)


def main():
    admin = AdminClient({"bootstrap.servers": SERVERS})
    topics(admin)
    commit_and_abort()
    fencing()
    offsets_in_transactions()
    group(admin)


main()
