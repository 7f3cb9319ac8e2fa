"""The part of JSON Schema that scenarios may use for a tool's argument; everything else is refused when read.

Numbers are strict (rubrics §1.8): ``2.0`` is no ``integer``, ``true`` is no number, and a ``const`` 2 is not 2.0.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from scoring.metrics.structure import kind
from scoring.trace.span import Json

from .pattern import Pattern, PatternError, compile_pattern

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
KEYWORDS = (
    "type", "enum", "const", "properties", "required", "items", "minimum", "maximum", "minLength", "maxLength",
    "pattern",
)  # fmt: skip
_MAX_DEPTH = 50

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema that was read without problems.

    As in the standard, keywords for one type say nothing of values of another.
    """

    types: tuple[str, ...] = ()
    enum: tuple[Json, ...] | None = None
    properties: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    items: Schema | None = None
    minimum: float = -math.inf
    maximum: float = math.inf
    min_length: int = 0
    max_length: float = math.inf
    pattern: Pattern | None = None

    def violations(self, value: Json, path: str = "value") -> Iterator[str]:
        """What the value breaks, with the path of each breach; nothing when it conforms."""
        if self.types and not any(_is_of(value, wanted) for wanted in self.types):
            yield f"{path} is {kind(value)}, expected {' or '.join(self.types)}"
        if self.enum is not None and not any(json_equal(value, allowed) for allowed in self.enum):
            yield f"{path} is none of the allowed values"
        if isinstance(value, str):
            yield from self._of_string(value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            if not self.minimum <= value <= self.maximum:
                yield f"{path} is not between {self.minimum:g} and {self.maximum:g}"
        elif isinstance(value, dict):
            yield from self._of_object(value, path)
        elif isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                yield from self.items.violations(item, f"{path}[{index}]")

    def _of_object(self, value: Mapping[str, Json], path: str) -> Iterator[str]:
        yield from (f"{path}.{name} is missing" for name in self.required if name not in value)
        for name, schema in self.properties.items():
            if name in value:
                yield from schema.violations(value[name], f"{path}.{name}")

    def _of_string(self, value: str, path: str) -> Iterator[str]:
        if not self.min_length <= len(value) <= self.max_length:
            yield f"{path} has {len(value)} characters"
        if self.pattern is not None and not self.pattern.search(value):
            yield f"{path} does not match {self.pattern.source}"


def parse_schema(data: Json, path: str, problems: list[str], depth: int = 0) -> Schema:
    """Read a schema; every fault is added to ``problems`` as ``path: what is wrong``."""
    if not isinstance(data, dict) or depth > _MAX_DEPTH:
        problems.append(
            f"{path}: a JSON Schema must be an object" if depth <= _MAX_DEPTH else f"{path}: nested too deep"
        )
        return Schema()
    for key in data:
        if key not in KEYWORDS:
            near = difflib.get_close_matches(key, KEYWORDS, 1)
            problems.append(f"{path}.{key[:60]}: not supported" + (f"; did you mean {near[0]}?" if near else ""))
    read = _Reader(data, path, problems)
    enum = read.of_kind("enum", list)
    if "const" in data:
        enum = [data["const"]] if enum is None or any(json_equal(data["const"], one) for one in enum) else []
    properties = read.of_kind("properties", dict) or {}
    return Schema(
        types=read.types(),
        enum=None if enum is None else tuple(enum),
        properties={
            name: parse_schema(inner, f"{path}.properties.{name}", problems, depth + 1)
            for name, inner in properties.items()
        },
        required=read.names("required"),
        items=parse_schema(data["items"], f"{path}.items", problems, depth + 1) if "items" in data else None,
        minimum=read.number("minimum", -math.inf),
        maximum=read.number("maximum", math.inf),
        min_length=int(read.number("minLength", 0, whole=True)),
        max_length=read.number("maxLength", math.inf, whole=True),
        pattern=read.pattern("pattern"),
    )


def json_equal(found: Json, wanted: Json) -> bool:
    """Equality of JSON values with strict types: where an integer is asked for, neither ``2.0`` nor ``true`` is one."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and found.keys() == wanted.keys() and all(
            json_equal(found[key], wanted[key]) for key in wanted
        )  # fmt: skip
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(json_equal, found, wanted))
    if isinstance(wanted, float):
        return kind(found) == "number" and found == wanted
    return type(found) is type(wanted) and found == wanted


def _is_of(value: Json, wanted: str) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) if wanted == "integer" else kind(value) == wanted


@dataclass(frozen=True, slots=True)
class _Reader:
    data: Mapping[str, Json]
    path: str
    problems: list[str]

    def fault(self, key: str, message: str) -> None:
        self.problems.append(f"{self.path}.{key}: {message}")

    def of_kind(self, key: str, wanted: type[T]) -> T | None:
        value = self.data.get(key)
        if key in self.data and not isinstance(value, wanted):
            self.fault(key, "must be a list" if wanted is list else "must be an object")
        return value if isinstance(value, wanted) else None

    def types(self) -> tuple[str, ...]:
        value = self.data.get("type", [])
        listed = value if isinstance(value, list) else [value]
        for one in listed:
            if one not in TYPES:
                self.fault("type", f"must be one of {', '.join(TYPES)}")
        return tuple(one for one in listed if isinstance(one, str))

    def names(self, key: str) -> tuple[str, ...]:
        listed: list[Json] = self.of_kind(key, list) or []
        if not all(isinstance(one, str) for one in listed):
            self.fault(key, "must be a list of strings")
        return tuple(one for one in listed if isinstance(one, str))

    def number(self, key: str, default: float, *, whole: bool = False) -> float:
        value = self.data.get(key, default)
        fits = kind(value) == "number" and not (whole and (not isinstance(value, int) or value < 0))
        if key in self.data and not fits:
            self.fault(key, "must be a whole number of at least 0" if whole else "must be a number")
        return value if isinstance(value, int | float) and (fits or key not in self.data) else default

    def pattern(self, key: str) -> Pattern | None:
        value = self.data.get(key)
        if key not in self.data:
            return None
        if not isinstance(value, str):
            self.fault(key, "must be a string")
            return None
        try:
            return compile_pattern(value)
        except PatternError as error:
            self.fault(key, str(error))
            return None
