"""Shapes: a judge's text comes in, the answers in it go out in whatever wrapping, with notes on what was unusual.

Many models know the answer and miss the form: prose around it, a bare list, an id without its code, a number in quotes.
Asking again costs as much as the answer did. So an unambiguous text is read, and counted by its shape; an ambiguous one
is a fault. The first answer to seed 002 is not read here: its form is exact.
"""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.case.case import parse_output
from sidejudge.scoring.trace.span import Json

Shape: TypeAlias = Literal[
    "fence", "prose", "bare_list", "bare_object", "map", "wrapped", "no_code", "no_id", "tool_call", "quoted_boolean",
    "quoted_number", "decimal", "spelling", "python", "stream", "parts",
]  # fmt: skip
"""A departure from the requested form that can still be read."""
SHAPES: Final[Mapping[Shape, str]] = {
    "fence": "in a Markdown fence", "prose": "with prose around the JSON", "bare_list": "as a list without its object",
    "bare_object": "as one object without its list", "map": "as a map by id", "wrapped": "under another key",
    "no_code": "with ids without their code", "no_id": "without ids", "tool_call": "as the arguments of a tool call",
    "quoted_boolean": "with true and false in quotes", "quoted_number": "with numbers in quotes",
    "decimal": "with 4.0 for 4", "spelling": "with names in other letters", "python": "as Python writes it, not JSON",
    "stream": "as a stream that was not asked for", "parts": "with its message in parts",
}  # fmt: skip
"""A description of each shape."""
_DECODER: Final = json.JSONDecoder()
_OPENING: Final = re.compile(r"[\[{]")
_MOST_OPENINGS: Final = 40
"""Most places in prose that are tried as the beginning of JSON: each costs at most a scan of the rest."""
_MOST_PYTHON: Final = 100_000
"""Most characters of a text that is read as Python."""
_ANSWER: Final = "<answer>"
"""The name under which Python parses a text, and warns of its style: on standard error, once for each place."""
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_BOOLEANS: Final = {"true": True, "yes": True, "false": False, "no": False}
_EXPLAINS: Final = ("reason", "reasoning")


@dataclass(slots=True)
class ShapedItems:
    """Objects that may be answers, and the shapes in which they came. ``fault``: why there are none."""

    items: list[Mapping[str, object]] = field(default_factory=list)
    shapes: Counter[Shape] = field(default_factory=Counter)
    fault: str = ""


def items_of(text: str) -> ShapedItems:
    """The objects of a text that is JSON or holds JSON within prose."""
    parsed = parse_output(text)
    found = ShapedItems()
    if parsed.error is None:
        if parsed.fenced:
            found.shapes["fence"] += 1
        _open(parsed.value, found)
        return found
    found.fault = "not JSON" if text.strip() else "empty"
    for value in _in_prose(text):
        _open(value, found)
    if found.items:
        found.shapes["prose"] += 1
    elif (value := python_literal(text)) is not None:
        _open(value, found)
        found.shapes["python"] += bool(found.items)
    return found


def python_literal(text: str) -> Json:
    """The one object or list, as Python prints it, that a text consists of or holds in a fence or within prose.

    None for any other text, for a repeated key, and for values that JSON lacks.
    """
    opening = _OPENING.search(text)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if opening is None or end <= opening.start() or end - opening.start() > _MOST_PYTHON:
        return None
    _write_no_warnings()
    try:
        tree = ast.parse(text[opening.start() : end], _ANSWER, mode="eval")
        return _literal(tree.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _write_no_warnings() -> None:
    """Keep Python from warning of the style of answers: for the rest of the process, from the first one on."""
    warnings.filterwarnings("ignore", module=_ANSWER)


def _literal(node: ast.expr) -> Json:
    match node:
        case ast.Constant(value=bool() | str() | None as value):
            return value
        case ast.Constant(value=int() | float() as number) if math.isfinite(number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return -number
        case ast.Name(id="true" | "false" | "null" as word):  # JSON's words in a text with single quotes
            return {"true": True, "false": False, "null": None}[word]
        case ast.List(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            found: dict[str, Json] = {}
            for key, each in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found[key.value] = _literal(each)
            if len(found) == len(keys):
                return found
    raise ValueError("no value of JSON, or a key twice")


def _in_prose(text: str) -> Iterator[Json]:
    """The top-level objects and lists in a text, each strictly JSON."""
    at, looked = 0, 0
    while (opening := _OPENING.search(text, at)) is not None and looked < _MOST_OPENINGS:
        at, looked = opening.end(), looked + 1
        try:
            _, end = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        parsed = parse_output(text[opening.start() : end])  # again: the decoder takes NaN and doubled keys
        if parsed.error is None:
            yield parsed.value
            at = end


def _open(value: Json, found: ShapedItems, *, within: bool = False) -> None:
    """Add the objects that a value holds: in a list, also under ``answers``, in a map by id, or the value itself."""
    match value:
        case {"answers": list(items)}:
            found.items += [each for each in items if isinstance(each, dict)]
            found.fault = ""
        case {"answers": dict(items)} if listed := _by_name(items):
            _add(found, "map", listed)
        case {"answers": _}:
            found.fault = found.fault or "answers is not a list"
        case list(items) if any(isinstance(each, dict) for each in items):
            _add(found, "bare_list", [each for each in items if isinstance(each, dict)])
        case dict() if "metric" in value or "id" in value or any(key in value for key in _EXPLAINS):
            _add(found, "bare_object", [value])
        case dict() if (listed := _by_name(value)) and all(_is_answer(each) for each in value.values()):
            _add(found, "map", listed)
        case dict() if len(value) == 1 and not within:
            found.shapes["wrapped"] += 1
            _open(next(iter(value.values())), found, within=True)
        case dict():
            found.fault = found.fault or "answers is missing"
        case str() if not within and parse_output(value).error is None:  # JSON that was encoded twice
            found.shapes["wrapped"] += 1
            _open(parse_output(value).value, found, within=True)
        case _:
            found.fault = found.fault or "not a JSON object"


def _add(found: ShapedItems, shape: Shape, items: Sequence[Mapping[str, object]]) -> None:
    found.items += items
    found.shapes[shape] += 1
    found.fault = ""


def _by_name(value: Mapping[str, Json]) -> list[Mapping[str, object]]:
    return [{"id": name, **each} for name, each in value.items() if isinstance(each, dict)]


def _is_answer(value: Json) -> bool:
    return isinstance(value, dict) and ("metric" in value or any(key in value for key in _EXPLAINS))


def named(
    found: ShapedItems, ids: Sequence[str], metrics: Sequence[str], shown: Sequence[str]
) -> list[Mapping[str, object]]:
    """The objects by the ids of the questions, as far as it is clear which question each answers.

    An id is ``q1`` with a code that the material's writer could not know. If no object has the code, ``q1`` alone
    names the first question, and a metric that was asked once names its question. That guards less: an object whose
    explanation is word for word in the prompt (``shown``) may be a copy, and answers nothing. If objects have the
    code, later objects without it answer nothing either, but may take back an answer.
    """
    coded = {str(each["id"]): at for at, each in enumerate(found.items) if each.get("id") in ids}
    begin = max(coded.values()) + 1 if coded else 0
    numbers = {name.partition("-")[0]: name for name in ids}
    once = {metric: name for metric, name in zip(metrics, ids, strict=True) if metrics.count(metric) == 1}
    only = ids[0] if len(ids) == 1 and len(found.items) == begin + 1 else None
    listed = found.items[:begin]
    for each in found.items[begin:]:
        name, shape = _meant(each, numbers, once, only)
        if name is None or _copied(each, shown):
            listed.append(each)
        elif coded:
            listed += [{**found.items[coded[name]], **each, "id": name}] if name in coded else []
        else:
            found.shapes[shape] += 1
            listed.append({**each, "id": name})
    return listed


def _meant(
    item: Mapping[str, object], numbers: Mapping[str, str], once: Mapping[str, str], only: str | None
) -> tuple[str | None, Shape]:
    """The id of the question that an object without the code answers, if that is clear, and the object's shape.

    ``numbers`` are the ids by their numbers (``q1``), ``once`` by metrics; ``only`` is what an object without either
    answers.
    """
    own, metric = item.get("id"), item.get("metric")
    if isinstance(own, str):
        number = own.strip().lower()
        return numbers.get(f"q{number}" if number.isdecimal() else number), "no_code"
    if isinstance(own, int) and not isinstance(own, bool):
        return numbers.get(f"q{own}"), "no_code"
    if own is None and isinstance(metric, str):
        return once.get(metric), "no_id"
    return (only if own is None and metric is None else None), "no_id"


def _copied(item: Mapping[str, object], shown: Sequence[str]) -> bool:
    texts = [text for key in _EXPLAINS if isinstance(text := item.get(key), str)]
    return not texts or any(text in message for text in texts for message in shown)


def mended(value: object, schema: Mapping[str, Json], shapes: Counter[Shape]) -> object:
    """A value repaired where its schema leaves no doubt: quotes around true and numbers, 4.0 for 4, other letter case.

    A value that still breaks its schema is left as it is, for the reader to refuse.
    """
    match schema:
        case {"anyOf": list(variants)}:
            return _of_variants(value, [each for each in variants if isinstance(each, dict)], shapes)
        case {"type": "object", "properties": dict(properties)} if isinstance(value, Mapping):
            return {
                key: mended(each, known, shapes) if isinstance(known := properties.get(key), dict) else each
                for key, each in value.items()
            }
        case {"type": "array", "items": dict(items)} if isinstance(value, list):
            return [mended(each, items, shapes) for each in value]
        case {"type": "boolean"} if isinstance(value, str) and (meant := value.strip().lower()) in _BOOLEANS:
            shapes["quoted_boolean"] += 1
            return _BOOLEANS[meant]
        case {"type": "string", "enum": list(names)} if isinstance(value, str) and value not in names:
            return _spelt(value, [str(each) for each in names], shapes)
        case {"type": "integer" | "number" as kind}:
            return _number(value, shapes, whole=kind == "integer")
    return value


def _of_variants(value: object, variants: Sequence[Mapping[str, Json]], shapes: Counter[Shape]) -> object:
    """The value by the first of several schemas that it fits or can be repaired to fit."""
    for variant in variants:
        tried: Counter[Shape] = Counter()
        found = mended(value, variant, tried)
        if tried:
            shapes.update(tried)
            return found
    return value


def _spelt(value: str, names: Sequence[str], shapes: Counter[Shape]) -> str:
    alike = [name for name in names if name.casefold() == value.strip().casefold()]
    if len(alike) != 1:
        return value
    shapes["spelling"] += 1
    return alike[0]


def _number(value: object, shapes: Counter[Shape], *, whole: bool) -> object:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        shapes["quoted_number"] += 1
        value = float(value) if "." in value else int(value)
    if whole and isinstance(value, float) and value.is_integer():
        shapes["decimal"] += 1
        return int(value)
    return value
