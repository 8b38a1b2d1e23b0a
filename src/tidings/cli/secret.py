"""`tidings secret FILE`: makes the file by which the brokers of one cluster know each other.

Rule: a file that is there is never overwritten. Must not know: how the secret is used. Tests:
tests/cli/test_secret.py
"""

from pathlib import Path

import click

from tidings.cli.failure import Failure
from tidings.cli.output import say


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def secret(file: Path) -> None:
    """Make a new secret in FILE, to be copied to every broker of a cluster.

    `tidings up` makes one by itself.
    """
    from tidings.runtime.secret import make_secret

    if not file.absolute().parent.is_dir():
        raise Failure(
            f"{file} cannot be written", f"there is no folder {file.parent}", f"mkdir -p {file.parent}"
        )
    try:
        make_secret(file)
    except OSError as error:
        if file.exists():
            raise Failure(f"{file} exists already, and is left as it is") from error
        raise Failure(f"{file} cannot be written", str(error.strerror)) from error
    say(f"wrote {file}: give it to every broker of the cluster by --secret-file, and to nobody else")
