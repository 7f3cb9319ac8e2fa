"""Promises: every name that SUPPORT.md promises to keep, one to a line, pinned in ``docs/reference/promises``.

A pinned name that is not provided any more breaks a promise: it needs an alias. ``make reference`` adds new names and
never removes one, so that a promise ends by hand, in a commit that says so.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from sidejudge.integrations.prometheus.families import FAMILIES
from sidejudge.monitor.api.verdict_schemas import SCHEMAS
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.rubric import all_criteria
from sidejudge.scoring.verdict.score import composite_name, pass_name, score_name, state_name

from .config_page import SchemaField, schema_fields
from .interface_pages import every_command, openapi

EXIT_CODES: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "exit-codes.md"
_FRONT: Final = ("sidejudge", "sidejudge.langfuse", "sidejudge.testing")


def api() -> Iterator[str]:
    """Fields of the bodies and parameters of the HTTP API."""
    document = openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            place = f"{method.upper()} {path}"
            yield place
            for each in operation.get("parameters", ()):
                yield f"{place} parameter {each['name']}{' (required)' if each.get('required') else ''}"
            for code, answer in operation["responses"].items():
                for content in answer.get("content", {}).values():
                    for field in schema_fields(content.get("schema", {}), document):
                        yield from _typed(f"{place} {code} ", field)


def _typed(where: str, field: SchemaField) -> Iterator[str]:
    yield f"{where}{field.path}: {field.type}"
    yield from (f"{where}{field.path} = {value}" for value in field.values)


def python() -> Iterator[str]:
    """Names of the front door; callables with their parameters, required ones marked."""
    for module in _FRONT:
        for name in import_module(module).__all__:
            yield from _called(f"{module}.{name}", getattr(import_module(module), name))


def _called(name: str, found: object) -> Iterator[str]:
    yield name
    if inspect.isclass(found):
        there = {*dir(found), *(each for base in found.__mro__ for each in inspect.get_annotations(base))}
        yield from (f"{name} attribute {each}" for each in there if not each.startswith("_"))
    if not callable(found) or (inspect.isclass(found) and issubclass(found, Exception)):
        return
    parameters = inspect.signature(found).parameters.values()
    for each in parameters:
        yield f"{name} parameter {each.name} ({each.kind.description})"
    needed = [each.name for each in parameters if each.default is each.empty and each.kind not in _ANY_NUMBER]
    yield f"{name} requires {', '.join(needed) or 'nothing'}"


_ANY_NUMBER: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def scores() -> Iterator[str]:
    """Names of scores in Langfuse. They never change, not even with an alias."""
    for rubric in RUBRICS.values():
        yield from (composite_name(rubric.id), pass_name(rubric.id), state_name(rubric.id))
        for criterion in all_criteria(rubric):
            yield score_name(rubric.id, criterion.metric)


def metrics() -> Iterator[str]:
    """Metric families with their kind and labels."""
    for family in FAMILIES:
        yield f"{family.name} ({family.kind})"
        yield from (f"{family.name} label {label}" for label in family.labels)


def configuration() -> Iterator[str]:
    """Keys of the configuration."""
    schema = SCHEMAS["configuration"]()
    yield from (field.path for field in schema_fields(schema, schema))


def configuration_values() -> Iterator[str]:
    """The configuration keys' types, and the values of keys with few choices."""
    schema = SCHEMAS["configuration"]()
    for field in schema_fields(schema, schema):
        yield from _typed("", field)


def commands() -> Iterator[str]:
    """Commands with their arguments, options, the values that these take, and exit codes."""
    rows = [line for line in EXIT_CODES.read_text("utf-8").splitlines() if line.startswith("| ")]
    yield from (f"exit codes {' '.join(row.split())}" for row in rows[1:])
    for path, command in every_command():
        yield from _command(command, " ".join(path))


def _command(command: click.Command, name: str) -> Iterator[str]:
    yield name
    for each in command.params:
        words = [*each.opts, *each.secondary_opts] if isinstance(each, click.Option) else [f"argument {each.name}"]
        yield from (f"{name} {word}" for word in words)
        if isinstance(each, click.Option) and each.is_flag:
            yield f"{name} {words[0]} takes no value"
        if isinstance(each.type, click.Choice):
            yield from (f"{name} {words[0]} = {value}" for value in each.type.choices)
    needed = [each.opts[0] for each in command.params if each.required]
    yield f"{name} requires {', '.join(needed) or 'nothing'}"


def files() -> Iterator[str]:
    """Fields of cases, scenarios and verdicts in files, and the columns of Parquet files."""
    for kind in ("case", "scenario", "verdict"):
        schema = SCHEMAS[kind]()
        for field in schema_fields(schema, schema):
            yield from _typed(f"{kind} ", field)
    rows = import_module("sidejudge.integrations.history.rows")  # it imports pyarrow, an extra
    for kind, columns in rows.SCHEMAS.items():
        yield from (f"parquet {kind} {column.name}: {column.type}" for column in columns)


KINDS: Mapping[str, Callable[[], Iterator[str]]] = {
    "api": api, "commands": commands, "configuration": configuration, "configuration-values": configuration_values,
    "files": files, "metrics": metrics, "python": python, "scores": scores,
}  # fmt: skip
"""The promised names, by the file that pins them."""


def broken(pinned: str, provided: set[str]) -> list[str]:
    """The pinned lines of a file that are not provided any more, in order."""
    return [line for line in pinned.splitlines() if line not in provided]


def pins(pinned: str, provided: set[str]) -> str:
    """A file's text: what was pinned, with what is new."""
    return "\n".join(sorted({*pinned.splitlines(), *provided})) + "\n"
