"""The configuration shown: every value in force with its origin, and the JSON Schema of all settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from pydantic import BaseModel, SecretStr
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from sidejudge.scoring.lexical.shown_text import struck
from sidejudge.scoring.trace.span import Json

from .load import Loaded
from .match import MatchSection
from .model import Config
from .section import meanings
from .units import Address, Duration, size_text

_USER = re.compile(r"://[^/?#]*@")
_QUERY = re.compile(r"\?[^#\s]*")


class _Value(NamedTuple):
    """One value in force, and whether it was set."""

    key: str
    path: tuple[str, ...]
    text: str
    given: bool


def summary(loaded: Loaded) -> list[tuple[str, str, str]]:
    """(key, value, origin) of every value in force, in the order of the declaration. Secrets are struck."""
    return [(each.key, each.text, loaded.origin(each.path)) for each in _values(loaded.config, ())]


def in_force(config: Config) -> list[tuple[str, str, bool]]:
    """(key, value, whether it was given) of the same values, for callers that have only the configuration."""
    return [(each.key, each.text, each.given) for each in _values(config, ())]


def _values(section: BaseModel, at: tuple[str, ...]) -> Iterator[_Value]:
    for name in type(section).model_fields:
        path, value = (*at, name), getattr(section, name)
        given = name in section.model_fields_set
        key = ".".join(path)
        if name in ("routes", "rules", "references", "notify", "metrics") and _are_sections(value):
            yield from (_Value(f"{key}[{index}]", path, _item(item), given) for index, item in enumerate(value))
        elif isinstance(value, BaseModel):
            if type(value).model_fields:
                yield from _values(value, path)
        elif isinstance(value, dict) and value and all(isinstance(v, BaseModel) for v in value.values()):
            for inner, override in value.items():
                # A rubric has a dozen keys, and most leave most of them alone.
                yield from (each for each in _values(override, (*path, inner)) if each.given)
        else:
            is_size = name.endswith("_bytes") and value is not None
            yield _Value(key, path, size_text(value) if is_size else _text(value), given)


def _are_sections(value: object) -> TypeGuard[tuple[BaseModel, ...]]:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], BaseModel)


def _item(item: BaseModel) -> str:
    """A rule, a route, a reference or a receiver in one line."""
    parts = []
    for name in type(item).model_fields:
        value = getattr(item, name)
        if name == "match":
            parts.append(value.describe())
        elif isinstance(value, BaseModel):
            parts.append(f"{name}: {_item(value)}")
        elif value not in (None, {}, ()):
            parts.append(f"{name}: {_text(value)}")
    return "; ".join(parts)


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, SecretStr):
        return "set, not shown"
    if isinstance(value, dict):
        return ", ".join(value) or "-"
    if isinstance(value, tuple) and value and isinstance(value[0], dict):
        return ", ".join(str(each.get("id", each.get("name"))) for each in value)
    if isinstance(value, tuple):
        return ", ".join(map(_text, value)) or "-"
    return f"{value:g}" if isinstance(value, float) else _without_credentials(str(value))


def _without_credentials(text: str) -> str:
    """An address without user, password, query, and anything that looks like a key."""
    if "://" not in text:
        return text
    return struck(_QUERY.sub("?…", _USER.sub("://…@", text)))


class _AsWritten(GenerateJsonSchema):
    """With what keys mean, and defaults as an operator would write them: ``10m``, not a number of nanoseconds."""

    def encode_default(self, dft: object) -> object:
        return str(dft) if isinstance(dft, Address | Duration) else super().encode_default(dft)

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        section: type[BaseModel] = schema["cls"]
        for key, text in meanings(section).items():
            found["properties"][key]["description"] = text
        return found


def json_schema() -> dict[str, Json]:
    """JSON Schema (draft 2020-12) of the configuration file."""
    schema = Config.model_json_schema(schema_generator=_AsWritten)
    match = schema["$defs"][MatchSection.__name__]
    # The short form of the metadata condition, which the model gathers before it validates.
    match["patternProperties"] = {r"^metadata\..+": {"type": ["string", "number", "boolean"]}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "sidejudge configuration"}
