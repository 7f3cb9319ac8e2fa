"""api.md: every path of the HTTP API with its parameters and responses, from the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from sidejudge.monitor.api.access import AccessRules
from sidejudge.monitor.api.routes import create_app
from sidejudge.monitor.api.view import MonitorView
from sidejudge.scoring.trace.span import JsonRecord

from .config_page import schema_fields
from .markdown import table

_HEAD = """# HTTP API

Generated from the OpenAPI document; do not edit (`make reference`). A running monitor serves it at
`/openapi.json`, and as a page with all fields at `/docs`.

In a field's path `[]` are the elements of a list and `{}` the values of a map. Fields keep their names
(`docs/reference/promises/api.txt` pins them); new ones come with any release.

Everything is read-only JSON. Times are UTC; an instant in nanoseconds since the epoch ends in `_ns`. An error has
`error` and `remedy`. A parameter that a path does not have, or that is given twice, is refused. Without
`api.auth` whoever reaches the port may ask; contents are shown to callers on the same machine
([secure it](../how-to/secure.md)).
"""
_FORMER = "the former name of "
"""What the meaning of a field begins with that is an alias: its own fields are those of the other."""


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
    lines = [_HEAD]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += _operation(f"{method.upper()} {path}", operation, document)
    return "\n".join(lines)


def _operation(title: str, operation: JsonRecord, document: JsonRecord) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{' '.join((operation.get('description') or operation.get('summary') or '').split()).replace('``', '`')}\n"
    parameters = operation.get("parameters", ())
    if parameters:
        yield from table(("parameter", "in", "meaning"), map(_parameter, parameters))
        yield ""
    answers = (f"`{code}` {answer.get('description', '')}".strip() for code, answer in operation["responses"].items())
    yield f"Answers: {'; '.join(answers)}\n"
    body = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = list(schema_fields(body, document))
    former = tuple(f"{each.path}{mark}" for each in fields if each.meaning.startswith(_FORMER) for mark in ".[")
    fields = [each for each in fields if not each.path.startswith(former)]
    if fields:
        rows = ((f"`{each.path}`", each.type, each.meaning.replace("``", "`")) for each in fields)
        yield from table(("field of the body", "type", "meaning"), rows)
        yield ""


def _parameter(parameter: JsonRecord) -> tuple[str, str, str]:
    schema = parameter.get("schema", {})
    stated = parameter.get("description") or schema.get("description") or ""
    choices = schema.get("enum") or next((each["enum"] for each in schema.get("anyOf", ()) if "enum" in each), ())
    meaning = "; ".join(each for each in (" ".join(stated.split()), " · ".join(f"`{c}`" for c in choices)) if each)
    required = ", required" if parameter.get("required") else ""
    return f"`{parameter['name']}`", f"{parameter['in']}{required}", meaning.replace("``", "`")
