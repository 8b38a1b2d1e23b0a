"""A broker's process as the supervisor sees it: it locks its folder, says that it is ready, ends when asked.

Run as a script; `--code` makes it end at once with that code, `--silent` never say ready, `--stubborn` ignore
SIGTERM. FAKE_BROKER holds more of such flags. Those of a real broker are taken and mean nothing.
"""

import argparse
import json
import os
import select
import shlex
import signal
import sys
from pathlib import Path

from tidings.config.exits import Exit
from tidings.storage.errors import FolderLocked
from tidings.storage.lock import lock_folder


def main() -> int:
    arguments = parse()
    stopped_reader, stopped_writer = os.pipe()
    if arguments.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os.write(stopped_writer, b"."))
    if arguments.code is not None:
        return int(arguments.code)
    arguments.data.mkdir(parents=True, exist_ok=True)
    try:
        lock = lock_folder(str(arguments.data))
    except FolderLocked:
        return Exit.FOLDER_LOCKED
    if not arguments.silent and arguments.ready_fd is not None:
        line = json.dumps({"event": "ready", "id": arguments.id, "pid": os.getpid()})
        os.write(arguments.ready_fd, line.encode() + b"\n")
    ends = [stopped_reader] + ([arguments.parent_fd] if arguments.parent_fd is not None else [])
    select.select(ends, [], [])
    lock.release()
    return Exit.OK


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--id", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--parent-fd", type=int)
    parser.add_argument("--code", type=int)
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--stubborn", action="store_true")
    known, _ = parser.parse_known_args([*sys.argv[1:], *shlex.split(os.environ.get("FAKE_BROKER", ""))])
    return known


if __name__ == "__main__":
    sys.exit(main())
