"""A shell learns to complete our commands."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Command
from tidings.cli.main import COMPLETION_VARIABLE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_code(tidings: Command, shell: str) -> None:
    ended = tidings("completion", shell)

    assert ended.code == 0
    assert f"{COMPLETION_VARIABLE}={shell}_complete" in ended.out


def test_another_shell_is_refused(tidings: Command) -> None:
    assert tidings("completion", "dos").code == 2


def test_commands_are_completed_when_the_shell_asks() -> None:
    asked = {COMPLETION_VARIABLE: "bash_complete", "COMP_WORDS": "tidings topic cre", "COMP_CWORD": "2"}

    finished = subprocess.run(
        [sys.executable, "-m", "tidings"], env=os.environ | asked, capture_output=True, text=True
    )

    assert finished.stdout.split() == ["plain,create"]
