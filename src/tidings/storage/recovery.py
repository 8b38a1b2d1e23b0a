"""Recovery: what every group of a folder is at start, from the checkpoints and the write-ahead log alone.

The one rule: nothing is changed here, but what was read is made durable before anything rests on it. Each
group is intact up to its last promised entry, or doubtful (a torn tail was cut), or damaged with a sentence
why; damage of a group's files concerns that group only.
It must not read history: older rows and payloads are checked when they are read, or by verify.py.
Tests: tests/storage/test_recovery.py, tests/storage/test_crashes.py
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.raft.entries import Entry, EntryKind, HardState, Membership, StartState
from tidings.storage.checkpoint import Checkpoint, LogStart, read_checkpoint
from tidings.storage.errors import Damaged, DiskFailed
from tidings.storage.files import Files
from tidings.storage.segment_check import check_segments
from tidings.storage.wal_format import HeldFile, LastEntry, Mark, WalStart
from tidings.storage.wal_reader import WalReader, WalSummary
from tidings.storage.wal_tails import NO_CHECKPOINT, CheckpointedAt, GroupTail, WalTails

WAL_FOLDER = "wal"
GROUPS_FOLDER = "groups"
_NOTHING = StartState(index=0, term=0, offset=0, membership=Membership(voters=()))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredGroup:
    """One group at start. Without a checkpoint (a young group) the owner knows its first membership."""

    group: int
    checkpoint: Checkpoint | None
    hard: HardState
    tail: list[Entry]  # behind the checkpoint, without a hole
    damaged: str | None
    vote_lost: bool  # damaged, and in addition it may have voted in a term it does not remember
    doubtful: bool

    @property
    def start(self) -> StartState:
        return self.checkpoint.start if self.checkpoint else _NOTHING

    @property
    def log_start(self) -> LogStart:
        return self.checkpoint.log_start if self.checkpoint else LogStart(index=0, term=0, offset=0)

    @property
    def first_index(self) -> int:
        """The lowest index that can be read."""
        return self.log_start.index + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A folder at start."""

    groups: dict[int, RecoveredGroup]
    wal: WalStart  # for WalWriter.open
    torn: str | None  # why all groups are doubtful, if they are
    damage: str | None  # what is wrong with the write-ahead log, if it is

    def oldest_files(self) -> dict[int, int]:
        """group -> the oldest file of the write-ahead log with entries that its checkpoint does not cover."""
        oldest: dict[int, int] = {}
        for file in self.wal.older:
            for group, index in file.last_index.items():
                if group in self.groups and index > self.groups[group].start.index:
                    oldest.setdefault(group, file.number)
        return oldest


def group_folder(folder: str, group: int) -> str:
    return f"{folder}/{GROUPS_FOLDER}/{group}"


def recover(files: Files, folder: str, *, salt: bytes) -> Recovered:
    """Read the checkpoints, then the write-ahead log. Raises FormatTooNew, or DiskFailed."""
    try:
        return _recover(files, folder, salt)
    except OSError as error:
        raise DiskFailed(f"reading {folder} failed: {error}") from error


def _recover(files: Files, folder: str, salt: bytes) -> Recovered:
    checkpoints, damaged = _read_checkpoints(files, folder)
    tails = WalTails(
        {
            **dict.fromkeys(damaged, NO_CHECKPOINT),
            **{group: _stands_at(checkpoint) for group, checkpoint in checkpoints.items()},
        }
    )
    summary = WalReader(files, f"{folder}/{WAL_FOLDER}", salt=salt, tails=tails).read()
    for group in sorted(tails.resting):
        # After a kill a checkpoint may have been read whose name is not durable yet. A name that was lost
        # later would bring back the one before, whose entries may be cut from the log by then. (Where no
        # entry that it covers is left in the log, the name was durable before they were cut.)
        files.sync_folder(group_folder(folder, group))
    groups: dict[int, RecoveredGroup] = {}
    for group, tail in sorted(tails.groups.items()):
        groups[group] = _judge(
            group, checkpoints.get(group), tail, damaged.get(group), is_torn=bool(summary.torn)
        )
    return Recovered(
        groups=groups,
        wal=_wal_start(summary, tails.files, groups, tails.groups),
        torn=summary.torn,
        damage=summary.damage,
    )


def _read_checkpoints(files: Files, folder: str) -> tuple[dict[int, Checkpoint], dict[int, str]]:
    """The checkpoints that can be read, and what is wrong with the groups' own files."""
    checkpoints: dict[int, Checkpoint] = {}
    damaged: dict[int, str] = {}
    for name in files.names(f"{folder}/{GROUPS_FOLDER}"):
        if not name.isdigit():
            continue
        group = int(name)
        path = group_folder(folder, group)
        try:
            checkpoint = read_checkpoint(files, path)
            if checkpoint is None:
                continue  # young, with all of it in the write-ahead log; or unknown, and left alone
            if checkpoint.group != group:
                raise Damaged("the checkpoint is of another group", folder=path, group=checkpoint.group)
            checkpoints[group] = checkpoint
            check_segments(files, path, checkpoint)
        except Damaged as error:
            damaged[group] = str(error)
    return checkpoints, damaged


def _stands_at(checkpoint: Checkpoint) -> CheckpointedAt:
    return CheckpointedAt(
        index=checkpoint.start.index, term=checkpoint.start.term, reset_sequence=checkpoint.reset_sequence
    )


def _judge(
    group: int, checkpoint: Checkpoint | None, tail: GroupTail, damaged: str | None, *, is_torn: bool
) -> RecoveredGroup:
    problem = damaged or tail.problem()
    is_alone = problem is not None and never_had_others(checkpoint, tail.longest())
    vote_lost = tail.lost_vote is not None or Mark.VOTE_LOST in tail.marks
    return RecoveredGroup(
        group=group,
        checkpoint=checkpoint,
        hard=tail.hard,
        tail=tail.longest() if is_alone else tail.tail,
        damaged=problem,
        vote_lost=vote_lost,
        # A vote that is not remembered is in doubt like one that a torn tail may have held.
        doubtful=is_torn or vote_lost or Mark.DOUBTFUL in tail.marks,
    )


def never_had_others(checkpoint: Checkpoint | None, tail: list[Entry]) -> bool:
    """Whether the log says of no other voter. Of a young group the owner knows the first ones."""
    memberships = [Membership.decode(entry.payload) for entry in tail if entry.kind == EntryKind.MEMBERSHIP]
    if checkpoint is None:
        return not memberships
    return all(len(one.voters) == 1 for one in (checkpoint.start.membership, *memberships))


def _wal_start(
    summary: WalSummary,
    older: list[HeldFile],
    groups: dict[int, RecoveredGroup],
    tails: dict[int, GroupTail],
) -> WalStart:
    """What the writer goes on with: the verdict on every group stands in the first flush it writes."""
    return WalStart(
        file_number=summary.next_file_number,
        sequence=summary.next_sequence,
        previous_crc=summary.previous_crc,
        is_new_chain=summary.damage is not None,
        older=older,
        hard_states={group: tail.hard for group, tail in tails.items()},
        marks={group: _marks(recovered) for group, recovered in groups.items()},
        last={group: _last(recovered, tails[group]) for group, recovered in groups.items()},
        seal_file=summary.seal_file,
        seal_position=summary.seal_position,
    )


def _marks(recovered: RecoveredGroup) -> Mark:
    marks = Mark.NONE
    if recovered.doubtful:
        marks |= Mark.DOUBTFUL
    if recovered.damaged is not None:
        marks |= Mark.DAMAGED
    if recovered.vote_lost:
        marks |= Mark.VOTE_LOST
    return marks


def _last(recovered: RecoveredGroup, tail: GroupTail) -> LastEntry:
    if recovered.damaged is not None:
        return LastEntry(tail.last_index, tail.last_term)
    if recovered.tail:
        return LastEntry(recovered.tail[-1].index, recovered.tail[-1].term)
    return LastEntry(recovered.start.index, recovered.start.term)
