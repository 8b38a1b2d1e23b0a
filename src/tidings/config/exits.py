"""Exits: the codes with which our processes end, the same for every command.

Rule: a number means one thing for ever; scripts, systemd units and our own supervisor rely on it.
Must not know: who exits, or why. Tests: tests/config/test_exits.py
"""

from enum import IntEnum


class Exit(IntEnum):
    """What the code of a process that ended says. Codes above 128 are the shell's: ended by a signal."""

    OK = 0
    FAILED = 1  # what was asked did not succeed; the last lines say why
    USAGE = 2  # the command line is wrong
    CONFIG = 3  # an option is unknown, wrong or contradicts another
    FOLDER_LOCKED = 4  # another process holds the data folder
    FORMAT_TOO_NEW = 5  # the data folder was written by a newer version
    IDENTITY = 6  # the broker is not who its cluster knows under this id: a wiped disk, or another cluster
    DISK_FAILED = 7  # a write or fsync failed: nothing that is not safe was answered
    PORT_IN_USE = 8  # a port to listen on is taken
    UNREACHABLE = 9  # no broker answers at the given address
    INTERRUPTED = 130  # Ctrl-C, as shells count it


LASTING = frozenset({Exit.USAGE, Exit.CONFIG, Exit.FORMAT_TOO_NEW, Exit.IDENTITY, Exit.DISK_FAILED})
"""Codes after which starting the same process again cannot help."""
