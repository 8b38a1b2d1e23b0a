"""Secret: the file by which brokers of one cluster know each other, 32 random bytes in hexadecimal.

Rule: nobody but its owner may read it, and a file that others can read or that holds too little is refused.
Must not know: how the secret is used (node/handshake.py). Tests: tests/runtime/test_secret.py
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from pathlib import Path

SECRET_BYTES = 32
_FILE_BYTES_MAX = 4096
_OTHERS = stat.S_IROTH | stat.S_IWOTH


class SecretError(Exception):
    """The secret file cannot be used; `hint` says what to do."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


def make_secret(path: Path) -> None:
    """Writes a new secret, readable by its owner only. A file that is there already is never touched."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Written beside and linked into place: who starts at the same moment finds a whole secret or none.
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(secrets.token_hex(SECRET_BYTES).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(fresh, path)
    finally:
        fresh.unlink()


def read_secret(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_FILE_BYTES_MAX)
    except OSError as error:
        hint = "copy the secret file of another broker of the cluster, or make one: tidings secret FILE"
        raise SecretError(f"the secret file {path} cannot be read: {error.strerror}", hint) from error
    if sys.platform != "win32" and mode & _OTHERS:
        raise SecretError(f"everybody on this machine can read the secret file {path}", f"chmod 600 {path}")
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) < SECRET_BYTES:
        problem = f"the secret file {path} does not hold {SECRET_BYTES} bytes in hexadecimal"
        raise SecretError(problem, "make a new one for all brokers: tidings secret FILE")
    return secret
