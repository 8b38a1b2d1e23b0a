"""The store of a group that keeps no segments: its whole past is in the state of its checkpoint.

The one rule: the same calls as SegmentStore where both make sense, so that an owner checkpoints all groups
alike. Used by the background thread. Tests: tests/storage/test_state_store.py
"""

from __future__ import annotations

from tidings.raft.entries import StartState
from tidings.storage.checkpoint import Checkpoint, LogStart, write_checkpoint
from tidings.storage.errors import disk_error
from tidings.storage.files import Files


class StateStore:
    """The checkpoint of one group; the log starts where the checkpoint stands."""

    def __init__(self, files: Files, folder: str, *, group: int, checkpoint: Checkpoint | None) -> None:
        self._files = files
        self._folder = folder
        self._group = group
        self._reset_sequence = checkpoint.reset_sequence if checkpoint else 0

    def checkpoint(self, start: StartState, title: str) -> None:
        """Make `start` what recovery begins from; durable when this returns."""
        checkpoint = Checkpoint(
            group=self._group,
            start=start,
            log_start=LogStart(index=start.index, term=start.term, offset=start.offset),
            reset_sequence=self._reset_sequence,
            title=title,
        )
        try:
            self._files.make_folder(self._folder)
            write_checkpoint(self._files, self._folder, checkpoint)
        except OSError as error:
            raise disk_error(error, f"writing the checkpoint of {self._folder}") from error

    def reset(self, start: StartState, title: str, *, wal_sequence: int) -> None:
        """The same for a state that came from the leader. `wal_sequence` is that of the durable flush with
        the start mark: entries before the mark are of the old log."""
        self._reset_sequence = wal_sequence
        self.checkpoint(start, title)
