"""Banner: what `tidings up` says when the cluster takes writes, to people in lines, to programs in one.

Rule: a printed line works as pasted into another shell of this folder. Must not know: how brokers are run.
Tests: tests/cli/test_banner.py
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tidings import __version__
from tidings.cli.doors import DEFAULT_KAFKA
from tidings.cli.output import styled
from tidings.runtime.supervisor import Running


def ready_line(running: Sequence[Running], *, seconds: float) -> dict[str, object]:
    brokers = [
        {
            "id": each.plan.broker_id,
            "pid": each.pid,
            "kafka": each.plan.kafka,
            "peer": each.plan.peer,
            "data": str(each.plan.data),
            "argv": list(each.plan.argv),
        }
        for each in running
    ]
    return {"event": "ready", "kafka": _bootstrap(running), "brokers": brokers, "seconds": seconds}


def banner(running: Sequence[Running], folder: Path, *, is_kept: bool, seconds: float) -> str:
    many = "1 broker is" if len(running) == 1 else f"{len(running)} brokers are"
    kept = "kept between runs" if is_kept else "removed at the end"
    first = running[0].plan.kafka
    server = "" if first == DEFAULT_KAFKA else f" --kafka {first}"
    program = program_name(sys.argv[0])
    lines = [
        styled(f"Tidings {__version__}: {many} ready after {seconds:.2f} s", bold=True),
        "",
        f"  Kafka    {_bootstrap(running)}",
        f"  data     {folder} ({kept})",
        f"  publish  {styled(f'{program} pub greetings hello{server}', fg='green')}",
        f"  read     {styled(f'{program} sub greetings --from earliest{server}', fg='green')}",
        "",
        "Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def program_name(called: str) -> str:
    """How to call this program again, knowing how it was called."""
    if Path(called).stem != "tidings":
        return f"{shlex.quote(sys.executable)} -m tidings"
    on_path = shutil.which("tidings")
    if on_path and Path(on_path).resolve() == Path(called).resolve():
        return "tidings"
    return shlex.quote(called)


def _bootstrap(running: Sequence[Running]) -> str:
    return ",".join(each.plan.kafka for each in running)
