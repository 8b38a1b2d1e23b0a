"""`tidings status`: brokers, controller, leaders, and replicas that are behind.

Rule: what the cluster says through the Kafka protocol, and no more: it works on any. A broker that holds
replicas but does not answer, or is not named any more, is shown as down.
Must not know: the protocol. Tests: tests/cli/test_status.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tidings.cli.doors import Doors, cluster_errors, json_option, kafka_option
from tidings.cli.output import say, say_json, styled, table, warn
from tidings.config.exits import Exit

if TYPE_CHECKING:
    from tidings.kafka.admin import ClusterView, End, Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    """What is shown of a broker."""

    broker_id: int
    kafka: str
    rack: str
    is_up: bool
    leaders: int
    replicas: int


@click.command()
@json_option
@kafka_option
@click.pass_obj
def status(doors: Doors, as_json: bool, kafka: str) -> int:
    """Show brokers, controller, leaders and replicas that are behind.

    With --json also every partition with its leader epoch. The exit code is 1 where a broker is down or a
    partition has no leader.
    """
    with cluster_errors(kafka, "the cluster does not say how it is"):
        questions = doors.cluster(kafka)
        view = questions.cluster()
        ends = questions.ends(view.partitions) if as_json else {}
    rows = broker_rows(view)
    if as_json:
        say_json(_as_json(view, rows, ends))
    else:
        _print(view, rows)
    troubles = list(_troubles(view, rows))
    if troubles:
        warn(", ".join(troubles))
    return Exit.FAILED if troubles else Exit.OK


def _troubles(view: ClusterView, rows: list[BrokerRow]) -> Iterator[str]:
    """What somebody should look after, in words."""
    down = [row.broker_id for row in rows if not row.is_up]
    if down:
        yield f"{'broker' if len(down) == 1 else 'brokers'} {', '.join(map(str, down))} down"
    headless = sum(1 for each in view.partitions if each.leader < 0)
    if headless:
        yield f"{_many(headless, 'partition')} without a leader"


def broker_rows(view: ClusterView) -> list[BrokerRow]:
    """A row per broker that is known of, living or not, by id."""
    named = {each.broker_id: each for each in view.brokers}
    leaders = Counter(each.leader for each in view.partitions)
    replicas = Counter(replica for each in view.partitions for replica in each.replicas)
    return [
        BrokerRow(
            broker_id=broker_id,
            kafka=named[broker_id].kafka if broker_id in named else "",
            rack=named[broker_id].rack if broker_id in named else "",
            is_up=broker_id in named and named[broker_id].is_up,
            leaders=leaders[broker_id],
            replicas=replicas[broker_id],
        )
        for broker_id in sorted({*named, *replicas})
    ]


def _print(view: ClusterView, rows: list[BrokerRow]) -> None:
    topics = len({each.topic for each in view.partitions})
    controller = "no controller" if view.controller < 0 else f"controller {view.controller}"
    say(styled(f"cluster {view.cluster_id}", bold=True) + f"  {controller}")
    say(f"{_many(topics, 'topic')}, {_many(len(view.partitions), 'partition')}")
    say()
    cells = [
        [
            str(row.broker_id),
            row.kafka or "?",
            row.rack,
            "up" if row.is_up else "DOWN",
            str(row.leaders),
            str(row.replicas),
        ]
        for row in rows
    ]
    lines = table(["broker", "kafka", "rack", "state", "leaders", "replicas"], cells)
    say(lines[0])
    for line, row in zip(lines[1:], rows, strict=True):
        say(line if row.is_up else styled(line, fg="red"))
    say()
    troubled = [each for each in view.partitions if each.behind or each.leader < 0]
    if not troubled:
        say(styled("all replicas are in sync", fg="green"))
        return
    say(styled(f"{_many(len(troubled), 'partition')} without all replicas in sync:", fg="yellow"))
    cells = [
        [
            each.topic,
            str(each.number),
            "none" if each.leader < 0 else str(each.leader),
            ",".join(map(str, each.behind)),
        ]
        for each in troubled
    ]
    say("\n".join(table(["topic", "partition", "leader", "behind"], cells)))


def _as_json(
    view: ClusterView, rows: list[BrokerRow], end_by_partition: dict[Partition, End]
) -> dict[str, object]:
    partitions: list[dict[str, object]] = []
    for each in view.partitions:
        end = end_by_partition.get(each)
        partitions.append(
            {
                "topic": each.topic,
                "partition": each.number,
                "leader": each.leader,
                "leader_epoch": end.leader_epoch if end else None,
                "replicas": list(each.replicas),
                "in_sync": list(each.in_sync),
                "behind": list(each.behind),
                "end": end.offset if end else None,
            }
        )
    return {
        "cluster_id": view.cluster_id,
        "controller": view.controller,
        "brokers": [
            {
                "id": row.broker_id,
                "kafka": row.kafka,
                "rack": row.rack,
                "up": row.is_up,
                "leaders": row.leaders,
                "replicas": row.replicas,
            }
            for row in rows
        ],
        "partitions": partitions,
        "partitions_behind": sum(1 for each in view.partitions if each.behind),
        "partitions_without_leader": sum(1 for each in view.partitions if each.leader < 0),
    }


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
