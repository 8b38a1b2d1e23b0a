"""Limits: what the operating system lets this process hold open.

Rule: the soft limit is a default for programs that use select(); we do not, so it goes up to what the hard
one allows. Must not know: who needs the files. Tests: tests/runtime/test_limits.py
"""

from __future__ import annotations

import sys

# Connections, segments and indexes of the largest broker the options allow, several times over. An
# unbounded limit is not asked for: some systems promise it and then refuse.
OPEN_FILES_WANTED = 1 << 18


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
