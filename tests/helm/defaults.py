"""The defaults of ``values.yaml`` as a template, which puts each where values of an older release have no key.

``helm upgrade --reuse-values`` renders a new chart with the values of the old one alone: what came since is missing.
A key that may be ``null`` is left alone, for Helm deletes those from the values: missing is what somebody asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from tests.helm.values_reference import Key, keys

HEAD = "{{/* Generated from values.yaml by 'python -m tests.helm.generate'; do not edit. */}}\n"


def template(name: str, values: str, text: str) -> str:
    """The template: ``values`` is where the chart's values stand for it."""
    known = keys(text)
    lines = [f'{{{{- define "{name}" -}}}}', f"{{{{- $at := {values} -}}}}"]
    for path, default in _walk(yaml.safe_load(text), (), known):
        lines.append(_line(path, default))
    return HEAD + "\n".join([*lines, "{{- end -}}"]) + "\n"


def may_be_null(path: tuple[str, ...], known: dict[tuple[str, ...], Key]) -> bool:
    """Whether ``null`` is a value of this key."""
    wanted = known[path].hint.get("type") if path in known else None
    return "null" in wanted if isinstance(wanted, list) else False


def _walk(
    values: dict[str, Any], above: tuple[str, ...], known: dict[tuple[str, ...], Key]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Keys and their defaults; a map with keys of its own is followed by these, and is itself empty at first."""
    for name, default in values.items():
        path = (*above, name)
        if may_be_null(path, known):
            continue
        is_open = path in known and ("type" in known[path].hint or "$ref" in known[path].hint)
        if isinstance(default, dict) and default and not is_open:
            yield path, None
            yield from _walk(default, path, known)
        else:
            yield path, default


def _line(path: tuple[str, ...], default: Any) -> str:
    *above, name = path
    at = ".".join(("$at", *above))
    missing = f'kindIs "invalid" (index {at} {json.dumps(name)})'
    value = "(dict)" if default is None else _literal(default)
    return f"{{{{- if {missing} }}}}{{{{ $_ := set {at} {json.dumps(name)} {value} }}}}{{{{ end -}}}}"


def _literal(value: Any) -> str:
    """A value as an operand of Go's templates."""
    if isinstance(value, dict):
        return " ".join(["(dict", *(f"{json.dumps(name)} {_literal(inner)}" for name, inner in value.items())]) + ")"
    if isinstance(value, list):
        return " ".join(["(list", *map(_literal, value)]) + ")"
    return json.dumps(value)
