"""The identity file: which broker of which cluster this folder is, and the members the cluster was formed
with.

The one rule: a broker is cluster id + directory uuid; the uuid is drawn once per folder and never changes,
so a wiped folder is a new member. The file is JSON for humans, replaced in one step, with a CRC-32C against
bit rot.
It must not draw the uuid itself. Tests: tests/storage/test_identity.py
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import google_crc32c

from tidings.storage.errors import FormatTooNew, NotAFolderOfOurs
from tidings.storage.files import Files, read_whole, write_whole
from tidings.storage.recovery import GROUPS_FOLDER, WAL_FOLDER

IDENTITY_NAME = "identity"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this folder belongs to. `cluster_id` is empty until the cluster is formed or joined."""

    cluster_id: str
    broker_id: int
    directory_uuid: str  # 32 hexadecimal digits
    seeds: tuple[str, ...] = ()  # host:port of the peers the broker was started with
    members: Mapping[int, int] | None = None  # broker id -> member, of the brokers that formed the cluster

    @property
    def member(self) -> int:
        """The number by which Raft knows this folder: the first eight bytes of its uuid, never 0."""
        return int(self.directory_uuid[:16], 16) or 1

    @property
    def salt(self) -> bytes:
        """What makes this folder's write-ahead log frames unlike those of any other."""
        return bytes.fromhex(self.directory_uuid)


def write_identity(files: Files, folder: str, identity: Identity) -> None:
    """Replace the folder's identity; durable when this returns."""
    fields = {
        "format_version": FORMAT_VERSION,
        "cluster_id": identity.cluster_id,
        "broker_id": identity.broker_id,
        "directory_uuid": identity.directory_uuid,
        "seeds": list(identity.seeds),
        "members": {str(broker): member for broker, member in (identity.members or {}).items()},
    }
    line = json.dumps(fields, sort_keys=True).encode()
    content = line + b"\n" + b"%08x\n" % google_crc32c.value(line)
    write_whole(files, f"{folder}/{IDENTITY_NAME}", content)


def read_identity(files: Files, folder: str) -> Identity | None:
    """The folder's identity, None in a blank folder. Raises NotAFolderOfOurs where nobody can say whose the
    logs are."""
    path = f"{folder}/{IDENTITY_NAME}"
    try:
        content = read_whole(files, path)
    except FileNotFoundError:
        if files.names(f"{folder}/{WAL_FOLDER}") or files.names(f"{folder}/{GROUPS_FOLDER}"):
            raise NotAFolderOfOurs(f"{path} is missing, though there are logs in {folder}") from None
        return None
    line, _, rest = content.partition(b"\n")
    if rest != b"%08x\n" % google_crc32c.value(line):
        raise NotAFolderOfOurs(f"{path} is damaged; without it this folder's votes and logs belong to nobody")
    files.sync_folder(folder)  # after a kill, the name of what was read may not be durable yet
    fields = json.loads(line)
    if fields["format_version"] > FORMAT_VERSION:
        raise FormatTooNew(path, fields["format_version"], FORMAT_VERSION)
    return Identity(
        cluster_id=fields["cluster_id"],
        broker_id=fields["broker_id"],
        directory_uuid=fields["directory_uuid"],
        seeds=tuple(fields["seeds"]),
        members={int(broker): member for broker, member in fields["members"].items()},
    )
