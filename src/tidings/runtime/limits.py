"""Limits: what the operating system lets this process hold open.

Rule: the soft limit is a default for programs that use select(); we do not, so it goes up to what the hard
one allows. Must not know: who needs the files. Tests: tests/runtime/test_limits.py
"""

from __future__ import annotations

import sys

# Connections, segments and indexes of the largest broker the options allow, several times over. An
# unbounded limit is not asked for: some systems promise it and then refuse.
OPEN_FILES_WANTED = 1 << 18

# Open segment files of each of the two threads that use them: a file that has to make room is synced first,
# so they should hold all that is written to. An active partition has two, its segment and the index.
_SEGMENT_FILES_PART = 8
_SEGMENT_FILES_MIN = 512


def raise_open_files() -> int:
    """Raises the soft limit of open files as far as it goes, and returns it; 0 where there is none to
    raise.
    """
    if sys.platform == "win32":
        return 0
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_WANTED if hard == resource.RLIM_INFINITY else min(OPEN_FILES_WANTED, hard)
    while wanted > soft:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            wanted //= 2
        else:
            return wanted
    return soft


def open_files_max() -> int:
    """The soft limit as it is; 0 where there is none."""
    if sys.platform == "win32":
        return 0
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OPEN_FILES_WANTED if soft == resource.RLIM_INFINITY else soft


def segment_files_max(files_max: int) -> int:
    """How many segment files one thread may hold open, where the process may hold so many files."""
    return max(_SEGMENT_FILES_MIN, min(files_max, OPEN_FILES_WANTED) // _SEGMENT_FILES_PART)
