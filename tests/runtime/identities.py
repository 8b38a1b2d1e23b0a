"""Identity files that this version would not write.

The one rule: the checksum is right, so that only what was changed is in question. It must not know who reads
them.
"""

from __future__ import annotations

import json
from pathlib import Path

import google_crc32c

from tidings.storage.identity import IDENTITY_NAME


def make_newer(folder: Path, *, format_version: int) -> None:
    """Have the folder's identity be of this format version."""
    path = folder / IDENTITY_NAME
    fields = json.loads(path.read_bytes().splitlines()[0])
    line = json.dumps({**fields, "format_version": format_version}).encode()
    path.write_bytes(line + b"\n" + b"%08x\n" % google_crc32c.value(line))
