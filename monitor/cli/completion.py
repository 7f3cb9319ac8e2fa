"""``sidejudge completion``: what a shell needs to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .errors import CommandError

_HOW = {
    "bash": "# add to ~/.bashrc: source <(sidejudge completion bash)",
    "zsh": "# add to ~/.zshrc: source <(sidejudge completion zsh)",
    "fish": "# sidejudge completion fish > ~/.config/fish/completions/sidejudge.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL."""
    from . import main

    known = get_completion_class(shell)
    if known is None:
        raise CommandError(f"there is no completion for {shell}", f"choose from {', '.join(_HOW)}")
    try:
        script = known(main, {}, "sidejudge", "_SIDEJUDGE_COMPLETE").source()
    except RuntimeError as error:  # bash before 4.4
        raise CommandError(str(error), "use a newer shell") from None
    click.echo(f"{_HOW[shell]}\n{script}")
