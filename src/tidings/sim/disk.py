"""A machine's disk: the shared write-ahead log, per group segments with their checkpoint, and how long all
takes.

Its one rule: durable is what a finished fsync covers; a crash keeps some prefix of the rest.
It must not know why something is written. Tests: tests/sim/test_disk.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from tidings.raft.entries import Entry, EntryKind, StartState
from tidings.raft.outbox import Flush
from tidings.sim.clock import Agenda
from tidings.sim.flush_log import FlushLog, GroupImage, RecoveredGroup, without_group
from tidings.sim.swarm import DiskKnobs

_CALM_FSYNC_US = 500
_CALM_JOB_US_MAX = 1_000
_FAILED_READ_SHARE = 0.02

Job = Callable[[], None]


class Disk:
    """One machine's. Jobs and fsyncs end as events; each calls back unless the machine crashed meanwhile."""

    def __init__(self, agenda: Agenda, random: Random, knobs: DiskKnobs) -> None:
        self.images: dict[int, GroupImage] = {}
        self.is_healed = False
        self.log = FlushLog()
        self._agenda = agenda
        self._random = random
        self._knobs = knobs
        self._pending: deque[Flush] = deque()
        self._syncing_count = 0
        self._jobs: dict[int, deque[Job]] = {}  # per group, in order: what each changes on disk
        self._jobs_end_us: dict[int, int] = {}
        self._life = 0  # counts crashes: what was asked for in an older life calls nobody back

    @property
    def is_idle(self) -> bool:
        return not self._pending

    # -- the write-ahead log

    def write(self, flush: Flush, done: Callable[[Flush], None]) -> None:
        """Write a flush behind the others; `done` follows when an fsync covers it."""
        self._pending.append(flush)
        if not self._syncing_count:
            self._sync(done)

    def _sync(self, done: Callable[[Flush], None]) -> None:
        self._syncing_count = min(len(self._pending), self._knobs.flushes_per_sync_max)
        self._agenda.after(self._fsync_us(), self._synced, (self._life, done))

    def _fsync_us(self) -> int:
        knobs, random = self._knobs, self._random.random
        if self.is_healed:
            return _CALM_FSYNC_US
        if knobs.slow_share and random() < knobs.slow_share:
            return int(random() * knobs.slow_us_max)
        return int(random() * knobs.fsync_us_max)

    def _synced(self, asked: tuple[int, Callable[[Flush], None]]) -> None:
        life, done = asked
        if life != self._life:
            return
        flushes = [self._pending.popleft() for _ in range(self._syncing_count)]
        self._syncing_count = 0
        for flush in flushes:
            self._keep(flush)
        for flush in flushes:
            done(flush)
        if self._pending and not self._syncing_count:
            self._sync(done)

    def _keep(self, flush: Flush) -> None:
        self.log.append(flush)
        for group, entry in flush.entries:
            image = self.images.get(group)
            if image is not None and entry.kind != EntryKind.START:
                image.note_durable(entry)

    # -- the groups' files

    def add_group(self, group: int, start: StartState) -> None:
        self.images[group] = GroupImage(checkpoint=start, log_start=start, durable_last=start.index)

    def remove_group(self, group: int) -> None:
        """Its files go; its terms and votes stay."""
        self.images.pop(group, None)
        self._jobs.pop(group, None)
        self.log.remove_group(group)
        self._pending = deque(without_group(flush, group) for flush in self._pending)

    def settle(self, group: int) -> None:
        """The group neither doubts nor lacks anything any more."""
        self.images[group].is_in_doubt = self.images[group].is_damaged = False

    def read(self, group: int, first_index: int, bytes_max: int, then: Callable[[list[Entry]], None]) -> None:
        """Read entries back from the segments; none if that fails or they are no longer there."""
        life = self._life

        def read(_: object) -> None:
            image = self.images.get(group)
            if life != self._life or image is None:
                return
            fails = not self.is_healed and self._random.random() < _FAILED_READ_SHARE
            then([] if fails else image.entries_from(first_index, bytes_max))

        self._agenda.after(int(self._random.random() * self._knobs.fsync_us_max), read)

    def write_segments(self, group: int, entries: list[Entry], then: Job) -> None:
        image = self.images[group]
        self._do(group, lambda: image.segments.extend(entries), then)

    def save_checkpoint(self, group: int, start: StartState, then: Job) -> None:
        """Sync the segments, replace the checkpoint, drop what lies before the log start, cut the log."""
        image = self.images[group]

        def change() -> None:
            image.replace_checkpoint(start)
            self.log.cut(self.images)

        self._do(group, change, then)

    def reset(self, group: int, start: StartState, marker: Entry | None, then: Job) -> None:
        """Replace all that the group has by a start state."""
        image = self.images[group]

        def change() -> None:
            image.checkpoint = image.log_start = start
            image.segments = []
            image.start_marker = marker
            image.is_in_doubt |= image.is_damaged  # it has a log again, but not yet all that it promised
            image.is_damaged = False
            self.log.find_durable(group, image)

        self._do(group, change, then)

    def _do(self, group: int, change: Job, then: Job) -> None:
        """Let something change in a group's files, after what was asked for before; `then` follows."""
        jobs = self._jobs.setdefault(group, deque())
        jobs.append(change)
        duration_us = int(
            self._random.random() * (_CALM_JOB_US_MAX if self.is_healed else self._knobs.job_us_max)
        )
        end_us = max(self._agenda.now_us, self._jobs_end_us.get(group, 0)) + duration_us
        self._jobs_end_us[group] = end_us
        self._agenda.at(end_us, self._job_done, (self._life, group, self.images[group], then))

    def _job_done(self, asked: tuple[int, int, GroupImage, Job]) -> None:
        life, group, image, then = asked
        if life == self._life and self.images.get(group) is image:
            self._jobs[group].popleft()()
            then()

    # -- faults and recovery

    def crash(self, *, keeps_writes: bool, may_tear: bool) -> None:
        """The machine stops. A killed process leaves what it wrote; a power cut keeps a prefix, perhaps
        torn."""
        random = self._random.random
        written = [self._pending.popleft() for _ in range(self._syncing_count)]
        kept_count = len(written) if keeps_writes else int(random() * (len(written) + 1))
        for flush in written[:kept_count]:
            self._keep(flush)
        is_torn = may_tear and kept_count < len(written) and random() < self._knobs.torn_share
        for jobs in self._jobs.values():
            for _ in range(int(random() * (len(jobs) + 1))):
                jobs.popleft()()
        self._jobs.clear()
        self._jobs_end_us.clear()
        self._pending.clear()
        self._syncing_count = 0
        self._life += 1
        for group, image in self.images.items():
            del image.segments[max(0, image.checkpoint.index - image.log_start.index) :]
            image.is_in_doubt |= is_torn
            self._settle_log(group, image)

    def lose_last_flush(self) -> bool:
        """The last flush rots away although it was synced; whether there was one. Recovery finds it torn."""
        if not len(self.log):
            return False
        self.log.lose_last()
        for group, image in self.images.items():
            image.is_in_doubt = True
            self._settle_log(group, image)
        return True

    def _settle_log(self, group: int, image: GroupImage) -> None:
        self.log.drop_other_logs(group, image)
        self.log.find_durable(group, image)

    def recover(self) -> dict[int, RecoveredGroup]:
        return {group: self.log.recover(group, image) for group, image in self.images.items()}
