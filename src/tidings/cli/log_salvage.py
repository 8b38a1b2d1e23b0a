"""`tidings log salvage`: which logs are concerned, what is kept and what is lost of each, and doing it.

Rule: a log that the other brokers can mend is never touched.
Must not know: how logs are read or written. Tests: tests/cli/test_log.py
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidings.broker.cluster import METADATA_GROUP
from tidings.cli.failure import Failure
from tidings.cli.log_folder import LogFolder, Progress
from tidings.cli.output import say, styled
from tidings.config.exits import Exit
from tidings.node.salvage import Standing, rewrite_of, why_beyond_help
from tidings.storage.salvage import ORPHANS_FOLDER, Examined, Rewrite, examine, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done."""

    rewrites: tuple[Rewrite, ...]
    orphans: tuple[int, ...]
    standings: Mapping[int, Standing]  # of every log that was asked for
    lost: tuple[int, ...]


def make_plan(folder: LogFolder, asked: Sequence[int], lost: Sequence[int]) -> Plan:
    """Read what is concerned, and decide."""
    _check_lost(folder, lost)
    standings = {group: folder.holdings.standing(group, lost=lost) for group in folder.groups(asked)}
    for group in asked:
        _check_asked(folder, group, standings[group])
    groups = [
        group for group, standing in standings.items() if standing in (Standing.ALONE, Standing.MAJORITY_LOST)
    ]
    progress = Progress(folder.size_bytes(groups))
    examined = examine(
        folder.files,
        folder.path,
        folder.recovered,
        salt=folder.identity.salt,
        groups=groups,
        alone=[group for group in groups if standings[group] is Standing.ALONE],
        on_read=progress.took,
    )
    progress.end()
    chosen = [one for one in examined if standings[one.group] is not Standing.ALONE or not one.is_intact]
    for one in chosen:
        why = why_beyond_help(one)
        if why is not None:
            hint = "start this broker on an empty folder, or on a copy of this one from before"
            raise Failure(f"{folder.holdings.title(one.group)} cannot be salvaged", why, hint)
    metadata = next((one for one in chosen if one.group == METADATA_GROUP), None)
    now_ms = int(time.time() * 1000)
    orphans = folder.holdings.orphans(metadata)
    return Plan(
        rewrites=tuple(
            rewrite_of(one, folder.holdings, now_ms=now_ms) for one in chosen if one.group not in orphans
        ),
        orphans=tuple(group for group in orphans if not asked or group in asked),
        standings=standings,
        lost=tuple(sorted(set(lost))),
    )


def carry_out(folder: LogFolder, plan: Plan) -> None:
    rewrite(
        folder.files,
        folder.path,
        folder.recovered,
        plan.rewrites,
        salt=folder.identity.salt,
        orphans=plan.orphans,
    )


def print_plan(folder: LogFolder, plan: Plan) -> None:
    holdings = folder.holdings
    for one in plan.rewrites:
        _print_rewrite(folder, plan, one)
    for group in plan.orphans:
        say(
            styled(f"{holdings.title(group)} (group {group})", bold=True)
            + ": its topic is not known any more"
        )
        say(f"  its segments are moved to {folder.path}/{ORPHANS_FOLDER}/{group}")
    for group, standing in plan.standings.items():
        recovered = folder.recovered.groups[group]
        if recovered.damaged is not None and standing in (Standing.SHARED, Standing.UNKNOWN):
            say(f"{holdings.title(group)} (group {group}): damaged, but {standing.value}")
    if not plan.rewrites and not plan.orphans:
        say("There is nothing to salvage.")


def plan_json(folder: LogFolder, plan: Plan) -> dict[str, object]:
    return {
        "folder": folder.path,
        "broker": folder.identity.broker_id,
        "lost_brokers": list(plan.lost),
        "groups": [_rewrite_json(folder, plan, one) for one in plan.rewrites],
        "orphans": list(plan.orphans),
    }


def _check_lost(folder: LogFolder, lost: Sequence[int]) -> None:
    own = folder.identity.broker_id
    if own in lost:
        raise Failure(f"broker {own} is the one whose folder this is", code=Exit.USAGE)
    known = folder.holdings.brokers()
    for broker_id in lost:
        if broker_id not in known:
            names = ", ".join(map(str, known))
            raise Failure(f"there is no broker {broker_id}", f"the cluster has {names}", code=Exit.USAGE)


def _check_asked(folder: LogFolder, group: int, standing: Standing) -> None:
    if standing in (Standing.ALONE, Standing.MAJORITY_LOST):
        return
    hint = "--lost ID names each broker that is gone for good" if standing is Standing.SHARED else ""
    title = f"{folder.holdings.title(group)} (group {group})"
    raise Failure(f"{title} is not to be salvaged here", standing.value, hint)


def _print_rewrite(folder: LogFolder, plan: Plan, one: Rewrite) -> None:
    examined = one.examined
    is_majority_lost = plan.standings[examined.group] is Standing.MAJORITY_LOST
    what = "no majority of its voters is left" if is_majority_lost else "damaged, and nobody else has it"
    say(styled(f"{one.title} (group {examined.group})", bold=True) + f": {what}")
    for problem in examined.problems:
        say(styled(f"  {problem}", fg="red"))
    for segment in examined.scan.counted:
        say(f"  the index of segment {segment.view.stem} is made anew by counting its batches")
    say(f"  kept: {_kept_text(examined)}")
    say(f"  lost: {_lost_text(examined, is_majority_lost=is_majority_lost)}")
    others = _other_survivors(folder, plan, examined.group) if is_majority_lost else []
    if others:
        names = ", ".join(map(str, others))
        say(f"  also of broker {names}: go on only if its log is not newer than {_newest_text(examined)},")
        say("  and do not salvage it there")


def _kept_text(examined: Examined) -> str:
    entry = f"up to entry {_newest_text(examined)}"
    if examined.group == METADATA_GROUP:
        return entry
    first = max(examined.recovered.start.log_start_offset, examined.scan.log_start.offset)
    return f"{_offsets_text(first, examined.end.offset)}, {entry}"


def _lost_text(examined: Examined, *, is_majority_lost: bool) -> str:
    lost: list[str] = []
    if examined.lost_records:
        lost.append(_offsets_text(examined.end.offset, examined.known_offset))
    elif examined.lost_entries:
        lost.append(f"{examined.lost_entries} entries, up to entry {examined.known_end.index}")
    if is_majority_lost:
        lost.append("what only the lost brokers had, which nobody can tell")
    return ", and ".join(lost) or "nothing"


def _offsets_text(first: int, end: int) -> str:
    count = end - first
    if count <= 0:
        return "no records"
    return f"offsets {first} to {end - 1} ({count} {'record' if count == 1 else 'records'})"


def _newest_text(examined: Examined) -> str:
    return f"{examined.end.index}/{examined.end.term}"


def _other_survivors(folder: LogFolder, plan: Plan, group: int) -> list[int]:
    """Voters that are not lost: their logs may be newer than this one."""
    holdings = folder.holdings
    membership = holdings.membership(group)
    assert membership is not None, group
    gone = holdings.lost_voters(membership, plan.lost)
    brokers = [holdings.broker_of(member) for member in membership.voters if member not in gone]
    own = folder.identity.broker_id
    return sorted(broker for broker in brokers if broker is not None and broker != own)


def _rewrite_json(folder: LogFolder, plan: Plan, one: Rewrite) -> dict[str, object]:
    examined = one.examined
    is_majority_lost = plan.standings[examined.group] is Standing.MAJORITY_LOST
    end = examined.end
    return {
        "group": examined.group,
        "log": one.title,
        "why": "majority lost" if is_majority_lost else "damaged",
        "problems": list(examined.problems),
        "counted_segments": [segment.view.stem for segment in examined.scan.counted],
        "end": {"index": end.index, "term": end.term, "offset": end.offset},
        "lost_records": examined.lost_records,
        "lost_entries": examined.lost_entries,
        "lost_is_exact": not is_majority_lost and (examined.lost_records > 0 or not examined.lost_entries),
        "other_survivors": _other_survivors(folder, plan, examined.group) if is_majority_lost else [],
        "term": one.hard.term,
    }
