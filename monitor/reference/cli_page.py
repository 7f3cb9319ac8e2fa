"""cli.md: every command with its options, from the declarations of the command line."""

from __future__ import annotations

from collections.abc import Iterator

import click

from sidejudge.monitor.cli import GROUPS, main

from .markdown import table

_HEAD = """# Commands

Generated from the declarations; do not edit (`make reference`). [Exit codes](exit-codes.md) are in one table.

`--debug` before or after a command shows the traceback of an error. `SIDEJUDGE_URL` is the monitor's
address for commands that ask one, `SIDEJUDGE_API_TOKEN` the token for it,
`SIDEJUDGE_CONTENTS_TOKEN` the one in the link that `serve` prints, where that monitor's store cannot be read from here.
"""


def cli_page() -> str:
    """The page as Markdown."""
    lines = [_HEAD]
    for title, group in GROUPS.items():
        rows = ((f"[`{name}`](#{name})", line) for name, (_, line) in group.items())
        lines += [f"**{title}**", "", *table(("command", "what it does"), rows), ""]
    lines.pop()
    for path, command in every_command():
        lines += ["", *_command(command, path)]
    return "\n".join(lines) + "\n"


def every_command(
    group: click.Group = main, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it; a group comes before those that are in it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield (*above, name), command
            if isinstance(command, click.Group):
                yield from every_command(command, (*above, name))


def _command(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    yield f"{'#' * (len(path) + 1)} {' '.join(path)}"
    yield ""
    context = click.Context(command, info_name=" ".join(("sidejudge", *path)))
    yield f"`{' '.join(command.get_usage(context).removeprefix('Usage: ').split())}`"
    for paragraph in (command.help or "").strip().split("\n\n"):
        yield ""
        yield " ".join(paragraph.split())
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        yield ""
        yield from table(("option", "meaning"), (_option(option, context) for option in options))


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    record = option.get_help_record(context)
    names, meaning = record if record is not None else (", ".join(option.opts), "")
    return f"`{names}`", " ".join(meaning.split())
