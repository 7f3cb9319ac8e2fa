"""api.md: every path of the HTTP API with its parameters and responses, from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from monitor.api.routes import MonitorView, create_app
from scoring.trace.span import JsonRecord

_HEAD = """# HTTP API

Generated from the OpenAPI document; do not edit (`make reference`). A running monitor serves it at
`/openapi.json`, and as a page with all fields at `/docs`.

Everything is read-only JSON. Times are UTC; an instant in nanoseconds since the epoch ends in `_ns`. An error has
`error` and `remedy`. A parameter that a path does not have is refused. Without `api.auth` whoever reaches the port may
ask; contents are shown to callers on the same machine ([secure it](../how-to/secure.md)).
"""


class _NoMonitor:
    """Stands where a monitor would: only the declarations of the paths are read."""

    def clock_ns(self) -> int:
        raise NotImplementedError


def api_page() -> str:
    """The page as Markdown."""
    document = create_app(cast("MonitorView", _NoMonitor())).openapi()
    lines = [_HEAD]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += _operation(f"{method.upper()} {path}", operation)
    return "\n".join(lines)


def _operation(title: str, operation: JsonRecord) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{' '.join((operation.get('description') or operation.get('summary') or '').split()).replace('``', '`')}\n"
    parameters = operation.get("parameters", ())
    if parameters:
        yield "| parameter | in | meaning |\n|---|---|---|"
        yield from (_parameter(each) for each in parameters)
        yield ""
    answers = (f"`{code}` {answer.get('description', '')}".strip() for code, answer in operation["responses"].items())
    yield f"Answers: {'; '.join(answers)}\n"


def _parameter(parameter: JsonRecord) -> str:
    schema = parameter.get("schema", {})
    stated = parameter.get("description") or schema.get("description") or ""
    choices = schema.get("enum") or next((each["enum"] for each in schema.get("anyOf", ()) if "enum" in each), ())
    meaning = "; ".join(each for each in (" ".join(stated.split()), " · ".join(f"`{c}`" for c in choices)) if each)
    required = ", required" if parameter.get("required") else ""
    return f"| `{parameter['name']}` | {parameter['in']}{required} | {meaning.replace('|', chr(92) + '|')} |"
