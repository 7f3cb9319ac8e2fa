"""API page: the OpenAPI document as a readable page that loads nothing from anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .card import card
from .html import escape, frame


def api_page(document: Mapping[str, Any]) -> str:
    """Every path of an OpenAPI 3 document with its parameters and answers, and the models, as HTML."""
    paths = "".join(
        _operation(path, method, operation)
        for path, methods in document.get("paths", {}).items()
        for method, operation in methods.items()
    )
    models = "".join(
        card(escape(name), name, _fields(schema), note=_prose(schema.get("description", "")))
        for name, schema in document.get("components", {}).get("schemas", {}).items()
    )
    info = document["info"]
    body = (
        f'<header><h1>{escape(info["title"])} API</h1><span class="pill">{escape(info["version"])}</span>'
        '<span class="soft"><a href="/openapi.json">openapi.json</a></span></header>'
        f'{paths}<h2 class="part">Models</h2>{models}'
    )
    return frame(f"{info['title']} API", body, here="/docs")


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    parameters = "".join(
        _line(each["name"], _type(each.get("schema", {})) + (", required" if each.get("required") else ""), each)
        for each in operation.get("parameters", ())
    )
    answers = "".join(_line(code, _contents(answer), answer) for code, answer in operation["responses"].items())
    link = f'<a href="{escape(path)}">{escape(path)}</a>' if "{" not in path and method == "get" else escape(path)
    text = operation.get("description") or operation.get("summary", "")
    name = escape(f"{method}{path}")
    return (
        f'<section class="card" aria-labelledby="{name}"><div class="head">'
        f'<h2 class="id" id="{name}">{escape(method.upper())} {link}</h2>'
        f'<span class="soft">{_prose(text)}</span></div><div class="scroll"><table class="plain"><tbody>{parameters}'
        f"{answers}</tbody></table></div></section>"
    )


def _line(name: str, kind: str, described: Mapping[str, Any]) -> str:
    return f'<tr><td class="id">{escape(name)}<td>{kind}<td>{_prose(described.get("description", ""))}</tr>'


def _prose(text: str) -> str:
    """Text in which backticks mark code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, limit=1000))


def _contents(answer: Mapping[str, Any]) -> str:
    return "<br>".join(
        f"{escape(kind)} {_type(content.get('schema', {}))}" for kind, content in answer.get("content", {}).items()
    )


def _fields(schema: Mapping[str, Any]) -> str:
    if "properties" not in schema:
        return f'<div class="empty"><pre>{escape(json.dumps(schema.get("enum", schema)), limit=2000)}</pre></div>'
    rows = "".join(_line(name, _type(field), field) for name, field in schema["properties"].items())
    return f'<div class="scroll"><table class="plain"><tbody>{rows}</tbody></table></div>'


def _type(schema: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words, with a link where it names a model."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(_type(each) for each in schema[key])
    if "enum" in schema:
        return escape(", ".join(map(str, schema["enum"])))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"map to {_type(schema['additionalProperties'])}"
    bounds = (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("pattern", "matches"))
    limits = "".join(f", {escape(sign)} {escape(schema[key])}" for key, sign in bounds if key in schema)
    return escape(schema.get("format") or kind) + limits
