"""The lock files: resolves each dependency group of pyproject.toml into requirements/, pinned and hashed.

Rule: one version of a package in all files, for every supported Python and platform; no file names a host.
Must not know: how the files are installed (tools/environment.py).
Tests: tests/house/test_lock_files.py
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# In this order: each file is resolved under the constraints of those before it.
GROUPS = ("runtime", "bootstrap", "build", "test", "check")


def main(arguments: Sequence[str]) -> int:
    """`lock.py` keeps the pins that still fit; `lock.py --upgrade` takes the newest."""
    for place, group in enumerate(GROUPS):
        finished = subprocess.run([*compile_command(group, GROUPS[:place]), *arguments], cwd=ROOT)
        if finished.returncode != 0:
            return finished.returncode
    return 0


def compile_command(group: str, earlier_groups: Sequence[str]) -> list[str]:
    """The resolver's command line for one group."""
    uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    source = ["pyproject.toml"] if group == "runtime" else ["--group", group]
    constraints = [part for name in earlier_groups for part in ("--constraints", f"requirements/{name}.txt")]
    return [
        *(uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"),
        *("--no-emit-index-url", "--no-emit-find-links", "--custom-compile-command", "make lock"),
        *constraints,
        *source,
        *("--output-file", f"requirements/{group}.txt"),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
