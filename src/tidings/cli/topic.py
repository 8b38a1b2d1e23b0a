"""`tidings topic`: create, list, describe, configure, grow and remove topics.

Rule: what can surprise is said before it hurts: an even number of replicas, keys that move.
Must not know: the protocol. Tests: tests/cli/test_topic.py
"""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

import click

from tidings.cli.doors import Doors, cluster_errors, json_option, kafka_option
from tidings.cli.failure import Failure
from tidings.cli.output import say, say_json, styled, table, warn
from tidings.config.exits import Exit

if TYPE_CHECKING:
    from tidings.kafka.admin import Setting

CLUSTER_DEFAULT = -1
INTERNAL_PREFIX = "__"


# What other programs call these, and somebody will type.
ALIASES = {"list": "ls", "delete": "rm", "remove": "rm", "alter": "config", "show": "describe"}


class AliasedGroup(click.Group):
    """A group whose commands can be called by another program's names too."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, ALIASES.get(cmd_name, cmd_name))


@click.group(cls=AliasedGroup)
def topic() -> None:
    """Create, list, describe, configure, grow and remove topics."""


@topic.command()
@click.argument("name")
@click.option(
    "--partitions",
    type=click.IntRange(1),
    help="How many logs the topic has; order is kept in each.  [default: the cluster's, usually 1]",
)
@click.option(
    "--replication",
    type=click.IntRange(1),
    help="On how many brokers each partition is kept.  [default: the cluster's, usually 3]",
)
@click.option(
    "--config",
    "settings",
    metavar="K=V",
    multiple=True,
    help="A setting such as retention.ms=3600000. May be repeated.",
)
@json_option
@kafka_option
@click.pass_obj
def create(
    doors: Doors,
    name: str,
    partitions: int | None,
    replication: int | None,
    settings: tuple[str, ...],
    as_json: bool,
    kafka: str,
) -> None:
    """Create the topic NAME."""
    value_by_setting = dict(_assignment(text, "--config ") for text in settings)
    if replication is not None and replication % 2 == 0:
        survives = replication // 2 - 1
        loss = (
            "stop when one of their brokers is lost" if survives == 0 else f"survive the loss of {survives}"
        )
        warn(f"{replication} replicas {loss}, as {replication - 1} do: an odd number is better")
    with cluster_errors(kafka, f"topic {name} was not created"):
        doors.topics(kafka).create(
            name,
            partitions=partitions or CLUSTER_DEFAULT,
            replication=replication or CLUSTER_DEFAULT,
            settings=value_by_setting,
        )
    if as_json:
        say_json({"topic": name, "created": True})
    else:
        say(f"created {name}")


@topic.command()
@click.option("--all", "with_internal", is_flag=True, help="Also topics that the cluster keeps for itself.")
@json_option
@kafka_option
@click.pass_obj
def ls(doors: Doors, with_internal: bool, as_json: bool, kafka: str) -> None:
    """List the topics."""
    with cluster_errors(kafka, "the topics could not be listed"):
        partitions = doors.topics(kafka).partitions()
    listed: list[dict[str, object]] = []
    for name, group in groupby(partitions, key=lambda each: each.topic):
        of_topic = list(group)
        if with_internal or not name.startswith(INTERNAL_PREFIX):
            replication = max(len(each.replicas) for each in of_topic)
            listed.append({"topic": name, "partitions": len(of_topic), "replication": replication})
    if as_json:
        say_json({"topics": listed})
    elif listed:
        rows = [[str(value) for value in each.values()] for each in listed]
        say("\n".join(table(["topic", "partitions", "replication"], rows)))


@topic.command()
@click.argument("name")
@json_option
@kafka_option
@click.pass_obj
def describe(doors: Doors, name: str, as_json: bool, kafka: str) -> None:
    """Show the partitions and settings of the topic NAME."""
    with cluster_errors(kafka, f"topic {name} could not be described"):
        admin = doors.topics(kafka)
        partitions = admin.partitions(name)
        end_by_partition = admin.ends(partitions)
        settings = admin.settings(name)
    if as_json:
        rows_of_json: list[dict[str, object]] = []
        for each in partitions:
            end = end_by_partition.get(each)
            rows_of_json.append(
                {
                    "partition": each.number,
                    "leader": each.leader,
                    "leader_epoch": end.leader_epoch if end else None,
                    "replicas": list(each.replicas),
                    "in_sync": list(each.in_sync),
                    "behind": list(each.behind),
                    "end": end.offset if end else None,
                }
            )
        say_json({"topic": name, "partitions": rows_of_json, **_settings_json(settings)})
        return
    rows: list[list[str]] = []
    for each in partitions:
        end = end_by_partition.get(each)
        leader = "none" if each.leader < 0 else str(each.leader)
        rows.append(
            [
                str(each.number),
                leader,
                _ids(each.replicas),
                _ids(each.behind),
                str(end.offset) if end else "?",
            ]
        )
    replication = max((len(each.replicas) for each in partitions), default=0)
    say(styled(name, bold=True) + f"  partitions {len(partitions)}  replication {replication}")
    say("\n".join(table(["partition", "leader", "replicas", "behind", "end"], rows)))
    say()
    _print_settings(settings)


@topic.command()
@click.argument("name")
@click.argument("assignments", metavar="[K=V]...", nargs=-1)
@click.option("--remove", metavar="K", multiple=True, help="Back to the default. May be repeated.")
@json_option
@kafka_option
@click.pass_obj
def config(
    doors: Doors,
    name: str,
    assignments: tuple[str, ...],
    remove: tuple[str, ...],
    as_json: bool,
    kafka: str,
) -> None:
    """Show the settings of the topic NAME, or change those that are given.

    Example: tidings topic config greetings retention.ms=3600000
    """
    changed = dict(_assignment(text, "") for text in assignments)
    with cluster_errors(
        kafka, f"the settings of topic {name} could not be {_read_or_changed(changed, remove)}"
    ):
        admin = doors.topics(kafka)
        if changed or remove:
            admin.change_settings(name, changed, remove)
        settings = admin.settings(name)
    if as_json:
        say_json({"topic": name, **_settings_json(settings)})
    elif changed or remove:
        say(f"changed {name}")
    else:
        _print_settings(settings)


def _read_or_changed(changed: dict[str, str], removed: tuple[str, ...]) -> str:
    return "changed" if changed or removed else "read"


def _settings_json(settings: list[Setting]) -> dict[str, object]:
    return {
        "settings": {each.name: each.value for each in settings if not each.is_default},
        "defaults": {each.name: each.value for each in settings if each.is_default},
    }


def _print_settings(settings: list[Setting]) -> None:
    """The topic's own first."""
    for each in sorted(settings, key=lambda setting: setting.is_default):
        say(f"{each.name} = {each.value}" + ("  (default)" if each.is_default else ""))


@topic.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@kafka_option
@click.pass_obj
def rm(doors: Doors, names: tuple[str, ...], yes: bool, as_json: bool, kafka: str) -> None:
    """Remove topics with all their messages.

    Asks first on a terminal.
    """
    if not yes and sys.stdin.isatty():
        click.confirm(f"Remove {', '.join(names)} with all messages?", abort=True, err=True)
    with cluster_errors(kafka, "not every topic was removed"):
        admin = doors.topics(kafka)
        for name in names:
            with cluster_errors(kafka, f"topic {name} was not removed"):
                admin.remove(name)
            if as_json:
                say_json({"topic": name, "removed": True})
            else:
                say(f"removed {name}")


@topic.command("add-partitions")
@click.argument("name")
@click.argument("count", metavar="N", type=click.IntRange(1), required=False)
@click.option("--partitions", type=click.IntRange(1), help="The same as N.")
@json_option
@kafka_option
@click.pass_obj
def add_partitions(
    doors: Doors, name: str, count: int | None, partitions: int | None, as_json: bool, kafka: str
) -> None:
    """Give the topic NAME more partitions: N is how many there are afterwards.

    Keys move: from now on a key may be stored in another partition than before, so that order is not kept
    between its old messages and its new ones.
    """
    if (count is None) == (partitions is None):
        hint = f"tidings topic add-partitions {name} 6"
        raise Failure("say once how many partitions there are afterwards", hint=hint, code=Exit.USAGE)
    grown = count or partitions
    assert grown is not None
    with cluster_errors(kafka, f"topic {name} keeps its partitions"):
        doors.topics(kafka).grow(name, grown)
    if as_json:
        say_json({"topic": name, "partitions": grown})
    else:
        say(f"{name} has {grown} partitions")
    warn(f"keys move: order is not kept between old and new messages of a key in {name}")


def _assignment(text: str, flag: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        hint = f"{flag}retention.ms=3600000"
        raise Failure(f"{flag}{text}: expected K=V", hint=hint, code=Exit.USAGE)
    return name, value


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
