"""Log folder: a stopped broker's folder in the hands of `tidings log`.

Rule: nothing is read before the folder is locked, so that no broker runs on it meanwhile; what is wrong with
the folder itself ends the command with the code that a broker's start would end with.
Must not know: what is done with it. Tests: tests/cli/test_log.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidings.cli.failure import Failure, reason
from tidings.cli.output import remark
from tidings.config.exits import Exit
from tidings.node.salvage import Holdings, Owner
from tidings.runtime.cluster_folder import RECORD_NAME
from tidings.storage.errors import DiskFailed, FolderLocked, FormatTooNew, NotAFolderOfOurs, StorageError
from tidings.storage.files import Files, OsFiles
from tidings.storage.identity import Identity, read_identity
from tidings.storage.lock import lock_folder
from tidings.storage.recovery import Recovered, recover

_TERMINAL_PAUSE_S = 0.2
_LOG_PAUSE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFolder:
    """The folder as it was found. It is locked as long as the `with` block runs."""

    path: str
    files: Files
    identity: Identity
    recovered: Recovered
    holdings: Holdings

    def groups(self, asked: Sequence[int]) -> list[int]:
        """Those that were asked for, or all."""
        known = sorted(self.recovered.groups)
        missing = [group for group in asked if group not in known]
        if missing:
            hint = "`tidings log ls` lists the groups that it has"
            raise Failure(f"{self.path} has no group {missing[0]}", hint=hint, code=Exit.USAGE)
        return sorted(set(asked)) or known

    def size_bytes(self, groups: Sequence[int]) -> int:
        """What reading all of these groups comes to, as far as their checkpoints know."""
        checkpoints = [self.recovered.groups[group].checkpoint for group in groups]
        return sum(one.log_bytes for checkpoint in checkpoints if checkpoint for one in checkpoint.segments)


@contextmanager
def open_folder(data: Path) -> Iterator[LogFolder]:
    """Lock and read a broker's folder, and end the command where that, or anything in the block, fails."""
    path = str(data.absolute())
    if not data.is_dir():
        raise Failure(f"there is no folder {path}", hint="--data DIR names a broker's folder")
    try:
        lock = lock_folder(path)
        try:
            yield _read(path)
        finally:
            lock.release()
    except FolderLocked as error:
        hint = "stop the broker first: its log can only be looked into while it is not running"
        raise Failure(str(error), hint=hint, code=Exit.FOLDER_LOCKED) from error
    except FormatTooNew as error:
        raise Failure(str(error), hint="use the version that wrote it", code=Exit.FORMAT_TOO_NEW) from error
    except NotAFolderOfOurs as error:
        raise Failure(str(error), code=Exit.IDENTITY) from error
    except (DiskFailed, OSError) as error:
        raise Failure(f"{path} cannot be used", reason(error), code=Exit.DISK_FAILED) from error
    except StorageError as error:
        raise Failure(str(error)) from error


def _read(path: str) -> LogFolder:
    files = OsFiles()
    identity = read_identity(files, path)
    if identity is None:
        is_cluster = RECORD_NAME in files.names(path)
        hint = f"name a broker's folder in it, such as {path}/broker-1" if is_cluster else ""
        raise Failure(f"{path} is no broker's folder", "it has no identity file", hint, code=Exit.IDENTITY)
    recovered = recover(files, path, salt=identity.salt)
    owner = Owner(broker_id=identity.broker_id, member=identity.member, founders=dict(identity.members or {}))
    return LogFolder(
        path=path,
        files=files,
        identity=identity,
        recovered=recovered,
        holdings=Holdings(recovered.groups, owner),
    )


class Progress:
    """Says on stderr now and then how much is read, for who waits."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self._read_bytes = 0
        self._is_terminal = sys.stderr.isatty()
        self._pause_s = _TERMINAL_PAUSE_S if self._is_terminal else _LOG_PAUSE_S
        self._due_s = time.monotonic() + self._pause_s
        self._is_shown = False

    def took(self, read_bytes: int) -> None:
        self._read_bytes += read_bytes
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + self._pause_s
        line = f"read {size_text(self._read_bytes)} of {size_text(max(self._total_bytes, self._read_bytes))}"
        if self._is_terminal:
            self._is_shown = True
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
        else:
            remark(line)

    def end(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def size_text(size_bytes: int) -> str:
    """As people read sizes."""
    size = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size_bytes} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
