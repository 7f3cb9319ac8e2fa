"""Structure check: whether the output has exactly the keys and kinds of the expected outcome (seed 000; rubrics §2).

Shape is compared, content is not: the number of items in a list is free, and so are the keys of the two maps that
hold data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from .bands import must_be_one
from .case import Case, ParsedOutput, parse_output
from .metric import Metric
from .result import Result, Scored, Unavailable
from .span import Json

_SHOWN = 5
_SHOWN_IDS = 50
_EXACT = 1 << 53
_FREE_MAPS = ("$.summary.call_extracted_info", "$.emotion")
"""Maps whose keys are data: extracted fields, and emotion → percentage."""
_NULLABLE = "$.sentiment[].label"
"""The only place where null may stand for a string: missing labels have their own counter."""


@dataclass(frozen=True, slots=True)
class Structure:
    """Outcome of the check: the first differences with their paths, none when the structure is right."""

    differences: tuple[str, ...]
    fenced: bool = False

    @property
    def matches(self) -> bool:
        return not self.differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Items of an output by id: ``by_id`` the first of each expected id, and the ids of what was ignored."""

    by_id: dict[object, dict[str, Json]] = field(default_factory=dict)
    unknown: tuple[object, ...] = ()
    repeated: tuple[object, ...] = ()


def check(output: ParsedOutput, expected: Json) -> Structure:
    """Compare the shape of an output with that of the expected outcome.

    >>> check(ParsedOutput({"a": 1, "c": []}), {"a": 2.5, "b": "x"}).differences
    ('$.b: missing', '$.c: not expected')
    """
    if output.error is not None:
        return Structure((f"$: {output.error}",), output.fenced)
    return Structure(tuple(islice(_differences(output.value, expected, "$", "$"), _SHOWN)), output.fenced)


def reference(case: Case) -> Json | Unavailable:
    """The expected outcome as JSON; text must parse. Unavailable when there is none."""
    if case.expected_outcome is None:
        return Unavailable("no expected_outcome")
    parsed = parse_output(case.expected_outcome)
    return Unavailable(f"expected_outcome is {parsed.error}") if parsed.error else parsed.value


def items(value: Json, key: str) -> list[Json]:
    """The list that stands under ``key`` of an object; empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def match_by_id(found: Sequence[Json], id_key: str, wanted: Sequence[object]) -> Matched:
    """Items by their id, never by position; an unknown id and a second item with the same id are ignored, and told."""
    expected = set(map(strict_key, wanted))
    by_id: dict[object, dict[str, Json]] = {}
    unknown: list[object] = []
    repeated: list[object] = []
    for item in found:
        if not isinstance(item, dict):
            continue
        key = strict_key(item.get(id_key))
        if key not in expected:
            unknown.append(item.get(id_key))
        elif key in by_id:
            repeated.append(item.get(id_key))
        else:
            by_id[key] = item
    return Matched(by_id=by_id, unknown=tuple(unknown), repeated=tuple(repeated))


def strict_key(value: object) -> object:
    """A hashable form of an id in which ``1``, ``"1"`` and ``true`` differ."""
    return (kind(value), value if isinstance(value, str | int | float | None) else repr(value))


def shown(ids: Iterable[object]) -> list[str | int | float]:
    """Ids as a verdict shows them: few, short, and writable, whatever an output calls its items."""
    return [_label(one) for one in islice(ids, _SHOWN_IDS)]


def _label(value: object) -> str | int | float:
    if isinstance(value, str):
        return _short(value)
    if isinstance(value, int | float) and kind(value) == "number" and abs(value) < _EXACT:
        return value
    return kind(value)


def kind(value: object) -> str:
    """The JSON kind of a value; NaN and infinities are of none."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "number"
        case float():
            return "number" if math.isfinite(value) else "not JSON"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "not JSON"


def _differences(found: Json, expected: Json, path: str, pattern: str) -> Iterator[str]:
    if pattern in _FREE_MAPS and isinstance(expected, dict):
        yield from _free_map(found, path, pattern)
    elif kind(found) != kind(expected) or kind(found) == "not JSON":
        if not (found is None and pattern == _NULLABLE):
            yield f"{path}: {kind(found)}, expected {kind(expected)}"
    elif isinstance(found, dict) and isinstance(expected, dict):
        yield from (f"{path}.{key}: missing" for key in expected if key not in found)
        yield from (f"{path}.{_short(key)}: not expected" for key in found if key not in expected)
        for key in expected:
            if key in found:
                yield from _differences(found[key], expected[key], f"{path}.{key}", f"{pattern}.{key}")
    elif isinstance(found, list) and isinstance(expected, list):
        yield from _item_differences(found, expected, path, f"{pattern}[]")


def _item_differences(found: list[Json], expected: list[Json], path: str, pattern: str) -> Iterator[str]:
    """Every item must have the shape of one of the expected items; an empty expected list says nothing of shape."""
    shapes = list({_shape(item): item for item in expected}.values())
    for index, item in enumerate(found):
        told = [list(islice(_differences(item, shape, f"{path}[{index}]", pattern), _SHOWN)) for shape in shapes]
        if told and all(told):
            yield from min(told, key=len)


def _shape(value: Json) -> object:
    """A hashable outline of a value: equal outlines, equal shape."""
    if isinstance(value, dict):
        return frozenset((key, _shape(item)) for key, item in value.items())
    if isinstance(value, list):
        return ("array", frozenset(map(_shape, value)))
    return kind(value)


def _free_map(found: Json, path: str, pattern: str) -> Iterator[str]:
    if not isinstance(found, dict):
        yield f"{path}: {kind(found)}, expected object"
    elif pattern == "$.emotion":
        for key, value in found.items():
            if kind(value) != "number" or not isinstance(value, int | float) or value < 0:
                yield f"{path}.{_short(key)}: expected a number >= 0"


def _short(key: str) -> str:
    return (key if len(key) <= 60 else key[:60] + "…").encode(errors="replace").decode()


def _measure(case: Case) -> Result:
    expected = reference(case)
    if isinstance(expected, Unavailable):
        return expected
    outcome = check(case.output, expected)
    details: dict[str, object] = {"differences": list(outcome.differences)}
    if outcome.fenced:
        details["fenced"] = True
    return Scored(value=float(outcome.matches), reason="; ".join(outcome.differences[:3]), details=details)


response_structure_compliance = Metric(
    id="response_structure_compliance",
    title="Response Structure Compliance",
    meaning="Whether the output has exactly the keys and JSON kinds of the expected outcome; 1 or 0.",
    formula="1 if structure matches expected_outcome exactly; 0 if any key is missing, renamed, or extra",
    source="seed 000, Prerequisite of every task; rubrics §2",
    measure=_measure,
    bands=must_be_one(),
    undefined="there is no expected outcome",
)
