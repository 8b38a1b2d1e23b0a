"""`tidings completion SHELL`: prints the lines that teach a shell to complete our commands.

Rule: click writes them; here stands only how to use them. Must not know: any command.
Tests: tests/cli/test_completion.py
"""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion of a shell.

    \b
    bash:  tidings completion bash >> ~/.bashrc
    zsh:   tidings completion zsh >> ~/.zshrc
    fish:  tidings completion fish > ~/.config/fish/completions/tidings.fish
    """
    from click.shell_completion import get_completion_class

    from tidings.cli.main import COMPLETION_VARIABLE

    group = context.find_root().command
    of_shell = get_completion_class(shell)
    assert of_shell is not None, shell
    click.echo(of_shell(group, {}, "tidings", COMPLETION_VARIABLE).source())
