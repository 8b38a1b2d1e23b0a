"""Main: the command `tidings`, its subcommands by name, and how it ends.

Rule: a subcommand's module is imported when the subcommand is called or asked for help, never before.
Must not know: what a subcommand does. Tests: tests/cli/test_main.py
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

import click

from tidings import __version__
from tidings.cli.doors import Doors
from tidings.cli.failure import Failure, show
from tidings.config.exits import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Lazy:
    """A subcommand that is not imported yet: where it is, and what the list of commands says of it."""

    module: str
    name: str
    summary: str


COMMANDS = {
    "up": Lazy(module="up", name="up", summary="Start a cluster on this machine."),
    "broker": Lazy(module="broker", name="broker", summary="Run one broker."),
    "topic": Lazy(module="topic", name="topic", summary="Create, list, configure and remove topics."),
    "status": Lazy(module="status", name="status", summary="Show brokers, leaders and replicas behind."),
    "pub": Lazy(module="pub", name="pub", summary="Publish messages to a topic."),
    "sub": Lazy(module="sub", name="sub", summary="Read messages of a topic."),
    "config": Lazy(module="config", name="config", summary="Show every option, its value and its reason."),
    "log": Lazy(module="log", name="log", summary="Look into a stopped broker's logs, and salvage them."),
    "secret": Lazy(module="secret", name="secret", summary="Make a secret file for a cluster's brokers."),
    "sim": Lazy(module="sim", name="sim", summary="Simulate clusters with faults, and replay what failed."),
    "completion": Lazy(module="completion", name="completion", summary="Print the completion of a shell."),
}

RARE = frozenset({"log", "sim", "completion"})  # listed apart

# By which a shell asks for completions; `tidings completion` prints the code that does.
COMPLETION_VARIABLE = "_TIDINGS_COMPLETE"

EPILOG = """\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong option, 4 data folder in use,
5 data of a newer version, 6 not this cluster's broker, 7 disk failed,
8 port in use, 9 no broker answers, 130 interrupted.
"""


class LazyGroup(click.Group):
    """A group that knows its commands by name and summary until one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = COMMANDS.get(cmd_name)
        if lazy is None:
            return None
        command = getattr(import_module(f"tidings.cli.{lazy.module}"), lazy.name)
        assert isinstance(command, click.Command), command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everyday = [(name, lazy.summary) for name, lazy in COMMANDS.items() if name not in RARE]
        rare = [(name, lazy.summary) for name, lazy in COMMANDS.items() if name in RARE]
        for title, rows in (("Commands", everyday), ("For rarer needs", rare)):
            with formatter.section(title):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else "tidings --help lists the commands"
            raise Failure(f"there is no command '{name}'", hint=hint, code=Exit.USAGE)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="tidings", message="%(prog)s %(version)s")
@click.pass_context
def tidings(context: click.Context) -> None:
    """Publish and subscribe on a replicated cluster that speaks Kafka's protocol."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: list[str], doors: Doors | None = None) -> int:
    """Runs a command line and returns its exit code; nothing but a mistake of ours leaves as an exception."""
    try:
        with tidings.make_context("tidings", arguments, obj=doors or Doors()) as context:
            outcome = tidings.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except Failure as failure:
        show(failure)
        return failure.code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "tidings"
        show(Failure(f"{path}: {error.format_message()}", hint=f"{path} --help"))
        return Exit.USAGE
    except click.ClickException as error:
        show(Failure(error.format_message()))
        return Exit.FAILED
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Who read us has seen enough (`| head`). Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    return outcome if isinstance(outcome, int) else Exit.OK


def main() -> NoReturn:
    if COMPLETION_VARIABLE in os.environ:
        tidings.main(prog_name="tidings", complete_var=COMPLETION_VARIABLE)
    sys.exit(run(sys.argv[1:]))
