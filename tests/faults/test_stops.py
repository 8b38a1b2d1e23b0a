"""Processes that are stopped and go on later, believing that no time has passed."""

from __future__ import annotations

from pathlib import Path

from tests.clients import wire
from tests.faults import asking
from tests.faults.cluster import running_cluster
from tests.faults.replicas import disagreements
from tests.faults.traffic import running_traffic

PARTITIONS = 3


def test_a_leader_that_was_stopped_fences_itself_when_it_goes_on(tmp_path: Path) -> None:
    with running_cluster(tmp_path) as cluster:
        cluster.create_topic("events", partitions=PARTITIONS)
        with running_traffic(cluster.bootstrap, "events", PARTITIONS) as traffic:
            leader = cluster.leader("events")
            other = next(number for number in cluster.brokers if number != leader)
            with wire.Connection(cluster.brokers[leader].kafka) as late:
                cluster.stop(leader)
                value = traffic.ledger.sent("late", 0, 0)
                late.send(wire.PRODUCE, 7, wire.produce_body("events", wire.batch([value])))
                late.send(asking.LIST_OFFSETS, 1, asking.list_end_body("events"))
                cluster.wait_for_leaders("events", asked=other, partitions=PARTITIONS, without=[leader])
                traffic.wait_for_progress()
                end_offset = traffic.ledger.end_acknowledged(0)

                cluster.resume(leader)

                assert wire.produced(late.answer()).error in asking.RETRIABLE
                listed = asking.listed(late.answer())
                assert listed.error in asking.RETRIABLE or listed.offset >= end_offset, (listed, end_offset)
            cluster.wait_for_leaders("events", asked=leader, partitions=PARTITIONS)
            traffic.wait_for_progress()
            traffic.settle()
        for number in cluster.brokers:
            assert cluster.terminate(number) == 0
        assert disagreements({number: broker.data for number, broker in cluster.brokers.items()}) == []
