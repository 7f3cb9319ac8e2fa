"""cli.md and api.md: every command with its options, and every path of the HTTP API, from their declarations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

import click

from sidejudge.monitor.api.access import AccessRules
from sidejudge.monitor.api.routes import create_app
from sidejudge.monitor.api.view import MonitorView
from sidejudge.monitor.cli import GROUPS, main
from sidejudge.scoring.trace.span import JsonRecord

from .config_page import schema_fields
from .markdown import page, table


def cli_page() -> str:
    """The page as Markdown."""
    lines: list[str] = []
    for title, group in GROUPS.items():
        rows = ((f"[`{name}`](#{name})", line) for name, (_, line) in group.items())
        lines += [f"**{title}**", "", table(("command", "what it does"), rows), ""]
    lines.pop()
    for path, command in every_command():
        lines += ["", *_command(command, path)]
    return page("cli", commands="\n".join(lines))


def every_command(
    group: click.Group = main, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that call it; a group precedes its commands."""
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
        yield table(("option", "meaning"), (_option(option, context) for option in options))


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    record = option.get_help_record(context)
    names, meaning = record if record is not None else (", ".join(option.opts), "")
    return f"`{names}`", " ".join(meaning.split())


_FORMER = "the former name of "
"""Beginning of an alias field's meaning; its own fields are the other field's."""


class _NoMonitor:
    """Stands where a monitor would: only the declarations of the paths are read."""

    def clock_ns(self) -> int:
        raise NotImplementedError


def openapi() -> JsonRecord:
    """The OpenAPI document of the HTTP API."""
    return create_app(cast("MonitorView", _NoMonitor()), version="0", rules=AccessRules()).openapi()


def openapi_text() -> str:
    """The OpenAPI document as indented JSON."""
    return json.dumps(openapi(), indent=1, ensure_ascii=False) + "\n"


def api_page() -> str:
    """The page as Markdown."""
    document = openapi()
    lines: list[str] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += _operation(f"{method.upper()} {path}", operation, document)
    return page("api", paths="\n".join(lines))


def _operation(title: str, operation: JsonRecord, document: JsonRecord) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{' '.join((operation.get('description') or operation.get('summary') or '').split()).replace('``', '`')}\n"
    parameters = operation.get("parameters", ())
    if parameters:
        yield table(("parameter", "in", "meaning"), map(_parameter, parameters))
        yield ""
    answers = (f"`{code}` {answer.get('description', '')}".strip() for code, answer in operation["responses"].items())
    yield f"Answers: {'; '.join(answers)}\n"
    body = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = list(schema_fields(body, document))
    former = tuple(f"{each.path}{mark}" for each in fields if each.meaning.startswith(_FORMER) for mark in ".[")
    fields = [each for each in fields if not each.path.startswith(former)]
    if fields:
        rows = ((f"`{each.path}`", each.type, each.meaning.replace("``", "`")) for each in fields)
        yield table(("field of the body", "type", "meaning"), rows)
        yield ""


def _parameter(parameter: JsonRecord) -> tuple[str, str, str]:
    schema = parameter.get("schema", {})
    stated = parameter.get("description") or schema.get("description") or ""
    choices = schema.get("enum") or next((each["enum"] for each in schema.get("anyOf", ()) if "enum" in each), ())
    meaning = "; ".join(each for each in (" ".join(stated.split()), " · ".join(f"`{c}`" for c in choices)) if each)
    required = ", required" if parameter.get("required") else ""
    return f"`{parameter['name']}`", f"{parameter['in']}{required}", meaning.replace("``", "`")
