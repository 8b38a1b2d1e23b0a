"""The entry point of the program, as `tidings` and as `python -m tidings`.

Rule: Ctrl-C ends the program quietly from its first moment on, and most of a short command's time is its
imports; so they happen in here. Must not know: any command. Tests: tests/cli/test_main.py
"""

import sys
from typing import NoReturn

_INTERRUPTED = 130  # config/exits.py is an import that may be interrupted


def main() -> NoReturn:
    try:
        from tidings.cli.main import main as command_line

        command_line()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
