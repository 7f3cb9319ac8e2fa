"""``sidejudge help``: a command, a key of the configuration, a page, or a search of the documentation.

``sidejudge completion`` and ``sidejudge schema``: the same for shells and editors.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

import click
from click.shell_completion import get_completion_class

from .errors import CommandError, ending

_ROW = re.compile(r"\| `[a-z]")
_CELL = re.compile(r"(?<!\\)\|")
_CELLS = 4
"""What the reference states of a key."""
_MOST = 8
"""Pages that a search lists."""


@click.command("help")
@click.argument("words", metavar="[COMMAND|KEY|PAGE|WORDS]", nargs=-1)
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> None:
    """Explain a COMMAND, a KEY of the configuration (alerts.window), show a PAGE (how-to/notify), or search for WORDS.

    The same pages are served by a running monitor at /help.
    """
    from sidejudge.monitor.cli import COMMANDS, main

    above = context.parent or context
    words = tuple(filter(None, map(str.strip, words)))
    if not words:
        click.echo(above.get_help())
        return
    command = main.get_command(above, words[0]) if len(words) == 1 and words[0] in COMMANDS else None
    if command is not None:
        click.echo(command.get_help(click.Context(command, info_name=words[0], parent=above)))
        return
    lines = [*_keys(words[0])] if len(words) == 1 else []
    lines = lines or [*_page(words[0])] if len(words) == 1 else lines
    for line in lines or (*_meant(words), *_found(" ".join(words))):
        click.echo(line)


def _keys(name: str) -> Iterator[str]:
    """A key, or all of a section, as the reference declares it: type, default, meaning, variable."""
    for key, kind, default, meaning, variable in _rows():
        if key == name or key.startswith(f"{name}."):
            yield f"{click.style(key, bold=True)}: {kind}, default {default}; {variable.strip('`')}"
            yield f"  {meaning}"


def _rows() -> Iterator[list[str]]:
    """Each key with its type, default, meaning and variable."""
    from sidejudge.dashboards.help.site import files

    for line in files()["docs/reference/configuration.md"].read_text(encoding="utf-8").splitlines():
        if _ROW.match(line):
            key, *cells = (cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip("|")))
            if len(cells) == _CELLS:  # fewer: a table of something else
                yield [key.strip("`"), *cells]


def _meant(words: tuple[str, ...]) -> Iterator[str]:
    """The key that a misspelt path of one (``sampling.rat``) is nearest to."""
    if len(words) == 1 and "." in words[0]:
        for key in difflib.get_close_matches(words[0], [key for key, *_ in _rows()], n=1, cutoff=0.8):
            yield f"there is no key {words[0]!r}; did you mean {key}?"


def _page(name: str) -> Iterator[str]:
    from sidejudge.dashboards.help.site import addresses, files

    path = addresses().get(name.removeprefix("/help").strip("/").removesuffix(".md"))
    if path is not None:
        yield files()[path].read_text(encoding="utf-8").rstrip()


def _found(words: str) -> Iterator[str]:
    from sidejudge.dashboards.help.search import search

    found = search(words, _MOST)
    if not found:
        raise CommandError(
            f"no page is about {words!r}", "'sidejudge help' lists the commands; other words may find one"
        )
    for each in found:
        yield f"{click.style(each.title, bold=True)}\n  {each.address.removeprefix('/help/') or 'README'}"
        if each.words:
            yield f"  {each.words}"
    yield "'sidejudge help PAGE' shows one"


_HOW = {
    "bash": "# add to ~/.bashrc: source <(sidejudge completion bash)",
    "zsh": "# add to ~/.zshrc: source <(sidejudge completion zsh)",
    "fish": "# sidejudge completion fish > ~/.config/fish/completions/sidejudge.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_HOW)))
def completion(shell: str) -> None:
    """Print the completion script of a SHELL."""
    from sidejudge.monitor.cli import main

    known = get_completion_class(shell)
    if known is None:
        raise CommandError(f"there is no completion for {shell}", f"choose from {', '.join(_HOW)}")
    with ending(RuntimeError, remedy="use a newer shell"):  # bash before 4.4
        script = known(main, {}, "sidejudge", "_SIDEJUDGE_COMPLETE").source()
    click.echo(f"{_HOW[shell]}\n{script}")


@click.command()
@click.option("--configuration", "what", flag_value="configuration", default=True, help="Of the configuration file.")
@click.option("--case", "what", flag_value="case", help="Of a line of cases, as 'score' reads them.")
@click.option("--scenario", "what", flag_value="scenario", help="Of one scenario.")
@click.option("--verdict", "what", flag_value="verdict", help="Of a line of verdicts, as 'score' writes them.")
def schema(what: str) -> None:
    """Print a JSON Schema, for editors, charts and other programs: of the configuration unless an option says else."""
    from sidejudge.monitor.api.verdict_schemas import schema_text

    click.echo(schema_text(what), nl=False)
