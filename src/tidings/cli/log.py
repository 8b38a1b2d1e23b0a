"""`tidings log`: what a stopped broker's folder holds, whether it is intact, and what becomes of what is not.

Rule: `ls` and `verify` change nothing; `salvage` says first what is lost, and asks.
Must not know: files and formats (storage), or which logs may be decided about (node/salvage.py). Tests:
tests/cli/test_log.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from tidings.cli.doors import json_option
from tidings.cli.failure import Failure
from tidings.cli.output import say, say_json, styled, table
from tidings.config.exits import Exit

if TYPE_CHECKING:
    from tidings.cli.log_folder import LogFolder
    from tidings.storage.verify import Finding

_FINDINGS_SHOWN_MAX = 10  # per group: a file that is gone is a finding for each of its entries

F = TypeVar("F", bound=Callable[..., object])


def data_option(command: F) -> F:
    return click.option(
        "--data",
        type=click.Path(path_type=Path),
        required=True,
        metavar="DIR",
        help="The folder of a broker that is not running.",
    )(command)


def group_option(command: F) -> F:
    return click.option(
        "--group",
        "asked",
        type=click.IntRange(0),
        multiple=True,
        metavar="N",
        help="Only this group; may be repeated.  [default: all]",
    )(command)


@click.group()
def log() -> None:
    """Look into the folder of a stopped broker, and salvage what is damaged.

    Each partition's log is a group with a number of its own; group 0 is the cluster's metadata.
    """


@log.command()
@data_option
@json_option
def ls(data: Path, as_json: bool) -> None:
    """List the logs of a broker's folder, and what is wrong with them.

    A log ends with its newest entry, shown as INDEX/TERM. Of two brokers, the one with the larger term, and
    within a term the larger index, has the newer log.
    """
    from tidings.cli.log_folder import open_folder

    with open_folder(data) as folder:
        rows = [_row(folder, group) for group in folder.groups(())]
        if as_json:
            say_json({**_folder_json(folder), "groups": [asdict(row) for row in rows]})
        else:
            _print_list(folder, rows)


@log.command()
@data_option
@group_option
@json_option
def verify(data: Path, asked: tuple[int, ...], as_json: bool) -> int:
    """Read everything in a broker's folder, and say what is not what was written.

    The exit code is 0 where all is intact, else 1.
    """
    from tidings.cli.log_folder import Progress, open_folder
    from tidings.storage.verify import verify_groups

    with open_folder(data) as folder:
        groups = folder.groups(asked)
        progress = Progress(folder.size_bytes(groups))
        found: dict[int, list[Finding]] = {group: [] for group in groups}
        for finding in verify_groups(
            folder.files, folder.path, folder.recovered, groups=groups, on_read=progress.took
        ):
            assert finding.group is not None, finding
            found[finding.group].append(finding)
        progress.end()
        is_intact = not any(found.values()) and folder.recovered.damage is None
        if as_json:
            say_json({**_folder_json(folder), "intact": is_intact, "groups": _findings_json(folder, found)})
        else:
            _print_findings(folder, found)
    return Exit.OK if is_intact else Exit.FAILED


@log.command()
@data_option
@group_option
@click.option(
    "--lost",
    type=click.IntRange(0),
    multiple=True,
    metavar="ID",
    help="A broker that is gone for good, disk and all; may be repeated.",
)
@click.option("--yes", is_flag=True, help="Do it without asking.")
@json_option
def salvage(data: Path, asked: tuple[int, ...], lost: tuple[int, ...], yes: bool, as_json: bool) -> None:
    """Let go on what no other broker can mend, without what is lost of it.

    It reads all logs concerned, says what is kept and what is lost, and asks before it changes anything.

    \b
    Two things are salvaged:
    - A damaged log of which this broker holds the only replica. Everything up to the damage is kept,
      everything behind it is dropped, readable or not.
    - With --lost: a log that so many of its voters had for good that the others are no majority. This
      broker goes on with what it has, as the only voter. Writes that were acknowledged may be lost, namely
      those that only the lost brokers had: nobody can tell how many.

    Salvage a log on one of the surviving brokers only, the one whose log is the newest (`tidings log ls`
    shows it), and never start a lost broker again on its old folder. Copy the folder before.
    """
    from tidings.cli.log_folder import open_folder
    from tidings.cli.log_salvage import carry_out, make_plan, plan_json, print_plan

    with open_folder(data) as folder:
        plan = make_plan(folder, asked, lost)
        if not as_json:
            print_plan(folder, plan)
        if not plan.rewrites and not plan.orphans:
            if as_json:
                say_json({**plan_json(folder, plan), "done": False})
            return
        if not yes:
            _ask()
        carry_out(folder, plan)
        if as_json:
            say_json({**plan_json(folder, plan), "done": True})
        else:
            say(styled("done.", fg="green") + " The broker can be started.")


def _ask() -> None:
    if not sys.stdin.isatty():
        why = "what is dropped is gone for good, so somebody has to say yes"
        hint = "run it on a terminal, or add --yes"
        raise Failure("nothing was changed: there is nobody to ask", why, hint, code=Exit.USAGE)
    if not click.confirm("This cannot be undone. Go on?", err=True):
        raise Failure("nothing was changed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An end of a log: its last entry, and the offset behind it."""

    index: int
    term: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """What `ls` shows of a group; programs get the same under the same names."""

    group: int
    log: str
    voters: tuple[int | None, ...] | None  # broker ids; None: a disk that was replaced, or all are unknown
    log_start: int
    checkpoint: Place | None
    end: Place
    tail_entries: int
    tail_bytes: int
    segments: int
    segment_bytes: int
    term: int
    damaged: str | None
    doubtful: bool

    @property
    def state(self) -> str:
        if self.damaged is not None:
            return "damaged"
        return "in doubt" if self.doubtful else "intact"


def _row(folder: LogFolder, group: int) -> LogRow:
    recovered = folder.recovered.groups[group]
    checkpoint, start, tail = recovered.checkpoint, recovered.start, recovered.tail
    membership = folder.holdings.membership(group)
    segments = checkpoint.segments if checkpoint is not None else ()
    saved = Place(index=start.index, term=start.term, offset=start.offset)
    end = Place(index=tail[-1].index, term=tail[-1].term, offset=tail[-1].next_offset) if tail else saved
    return LogRow(
        group=group,
        log=folder.holdings.title(group),
        voters=tuple(map(folder.holdings.broker_of, membership.voters)) if membership else None,
        log_start=max(start.log_start_offset, recovered.log_start.offset),
        checkpoint=saved if checkpoint is not None else None,
        end=end,
        tail_entries=len(tail),
        tail_bytes=sum(len(entry.payload) for entry in tail),
        segments=len(segments),
        segment_bytes=sum(segment.log_bytes for segment in segments),
        term=recovered.hard.term,
        damaged=recovered.damaged,
        doubtful=recovered.doubtful,
    )


def _folder_json(folder: LogFolder) -> dict[str, object]:
    return {
        "folder": folder.path,
        "broker": folder.identity.broker_id,
        "cluster_id": folder.identity.cluster_id,
        "write_ahead_log": {
            "bytes": sum(file.file_bytes for file in folder.recovered.wal.older),
            "damaged": folder.recovered.damage,
            "torn": folder.recovered.torn,
        },
    }


def _print_head(folder: LogFolder) -> None:
    from tidings.cli.log_folder import size_text

    identity, recovered = folder.identity, folder.recovered
    cluster = f"cluster {identity.cluster_id}" if identity.cluster_id else "no cluster yet"
    wal_bytes = sum(file.file_bytes for file in recovered.wal.older)
    say(
        styled(f"broker {identity.broker_id}", bold=True)
        + f"  {cluster}  write-ahead log of {size_text(wal_bytes)}"
    )
    if recovered.damage is not None:
        say(styled(f"the write-ahead log is damaged: {recovered.damage}", fg="red"))
    if recovered.torn is not None:
        say(f"the last write was cut off: {recovered.torn}; the broker asks the others what it may have held")


def _print_list(folder: LogFolder, rows: list[LogRow]) -> None:
    from tidings.cli.log_folder import size_text

    _print_head(folder)
    header = ["group", "log", "voters", "start", "checkpoint", "end", "newest", "segments", "tail", "state"]
    cells = [
        [
            str(row.group),
            row.log,
            _voters_text(row.voters),
            str(row.log_start),
            str(row.checkpoint.offset) if row.checkpoint is not None else "-",
            str(row.end.offset),
            f"{row.end.index}/{row.end.term}",
            size_text(row.segment_bytes),
            f"{row.tail_entries} entries",
            row.state,
        ]
        for row in rows
    ]
    if cells:
        say("\n".join(table(header, cells)))
    for row in rows:
        if row.damaged is not None:
            say(styled(f"{row.log} (group {row.group}): ", fg="red") + row.damaged)


def _voters_text(voters: tuple[int | None, ...] | None) -> str:
    return "?" if voters is None else ",".join("?" if voter is None else str(voter) for voter in voters)


def _findings_json(folder: LogFolder, found: dict[int, list[Finding]]) -> list[dict[str, object]]:
    return [
        {
            "group": group,
            "log": folder.holdings.title(group),
            "intact": not findings,
            "finding_count": len(findings),
            "findings": [
                {"index": finding.index, "problem": finding.problem}
                for finding in findings[:_FINDINGS_SHOWN_MAX]
            ],
        }
        for group, findings in found.items()
    ]


def _print_findings(folder: LogFolder, found: dict[int, list[Finding]]) -> None:
    _print_head(folder)
    intact = sum(1 for findings in found.values() if not findings)
    for group, findings in found.items():
        if not findings:
            continue
        say(styled(f"{folder.holdings.title(group)} (group {group}): damaged", fg="red"))
        for finding in findings[:_FINDINGS_SHOWN_MAX]:
            where = f"entry {finding.index}: " if finding.index is not None else ""
            say(f"  {where}{finding.problem}")
        if len(findings) > _FINDINGS_SHOWN_MAX:
            say(f"  and {len(findings) - _FINDINGS_SHOWN_MAX} more")
    colour = "green" if intact == len(found) else "yellow"
    say(styled(f"{intact} of {len(found)} logs intact", fg=colour))
