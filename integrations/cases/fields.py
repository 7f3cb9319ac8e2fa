"""The fields of a case: how each is read, and its JSON Schema.

Nothing is guessed or converted. A field that the format does not know is an error when it looks like a misspelt one
(``expected_outcom``): what depends on it would silently be unavailable. Any other unknown field is left alone.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias, TypeGuard

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.trace.reported import LONGEST_NAME, LONGEST_TEXT, MOST_REPORTED, ReportedScore, number
from sidejudge.scoring.trace.span import Json, ToolCall

from .names import OTHER_NAMES

_NEAR = 0.82
_TOOL_FIELDS = ("name", "arguments", "result", "error", "call_id", "handoff")
_TURN_FIELDS = ("speaker", "text", "at")
_HANDOFF = "after"
_TOLERATED = frozenset(("dialects", "provenance", "spans", "remarks"))
"""Fields that ``inspect`` adds for people."""
_Read: TypeAlias = Callable[[Json, str], object]


class FieldError(SidejudgeError, ValueError):
    """A field that violates the format: its path, what is wrong, and a remedy."""

    def __init__(self, field: str, message: str, remedy: str) -> None:
        self.field, self.message, self.remedy = field, message, remedy
        super().__init__(message)


def field_errors(fields: Mapping[str, Json]) -> Iterator[FieldError]:
    """Each of these fields of a case that violates the format; unknown names are left out."""
    for name, value in fields.items():
        read = _READERS.get(name)
        if read is not None and (value is not None or name in _NULL_IS_A_VALUE):
            try:
                read(value, name)
            except FieldError as error:
                yield error


def case_of(data: Mapping[str, Json]) -> Case:
    """The case with these fields; ``FieldError`` names the first that violates the format."""
    fields: dict[str, object] = {}
    for name, value in data.items():
        read = _READERS.get(name)
        if read is not None and (value is not None or name in _NULL_IS_A_VALUE):
            fields[name] = read(value, name)
    handoffs = fields.pop("handoffs", ())
    if handoffs:
        fields["tools_used"] = _in_order(fields.get("tools_used"), handoffs)  # type: ignore[arg-type]  # as read
    for required in ("case_id", "model_output"):
        if required not in fields:
            unknown_fields(data)  # a misspelt name explains it better
            others = ", ".join(OTHER_NAMES[required])
            raise FieldError(required, "is missing", f"every case needs {required} (also read as {others})")
    return Case(**fields)  # type: ignore[arg-type]  # each reader returns its field's type


def unknown_fields(data: Mapping[str, Json]) -> tuple[str, ...]:
    """Names that the format does not know; ``FieldError`` for one that looks like a misspelt field."""
    return _unknown_names(data, _READERS, "")


def _unknown_names(data: Mapping[str, Json], known: Iterable[str], path: str) -> tuple[str, ...]:
    unknown = []
    for name in data:
        if name not in known and name not in _TOLERATED:
            near = near_field(name, known)
            if near is not None and near not in data:
                raise FieldError(f"{path}{name[:80]}", "unknown field", f"did you mean {near}?")
            unknown.append(f"{path}{name[:80]}")
    return tuple(unknown)


@lru_cache(maxsize=1024)
def _nearest(name: str, known: tuple[str, ...]) -> str | None:
    return next(iter(difflib.get_close_matches(name, known, 1, _NEAR)), None)


def near_field(name: str, known: Iterable[str]) -> str | None:
    """The field that a name looks like a misspelling of; ``None`` when it looks like none."""
    return _nearest(name[:80], tuple(known))


def _any(value: Json, _: str) -> Json:
    return value


def _outputs(value: Json, field: str) -> tuple[Json, ...]:
    return tuple(_list(value, field))


def _text(value: Json, field: str) -> str:
    if isinstance(value, str):
        return value
    raise FieldError(field, f"is {_kind(value)}, not text", "put it in quotation marks, or leave it out")


def _identifier(value: Json, field: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise FieldError(
        field, "is empty" if isinstance(value, str) else f"is {_kind(value)}, not text", 'give an id such as "call-17"'
    )


def _boolean(value: Json, field: str) -> bool:
    if isinstance(value, bool):
        return value
    raise FieldError(field, f"is {_kind(value)}", "write true or false")


def _number(value: Json, field: str) -> float:
    if _is_number(value) and math.isfinite(value) and value >= 0:
        return value
    raise FieldError(
        field, f"is {_kind(value)}" if not _is_number(value) else "is negative", "write a number of at least 0"
    )


def _whole(value: Json, field: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise FieldError(field, "is not a whole number of at least 0", "write it without quotation marks or decimals")


def _probability(value: Json, field: str) -> float:
    if _is_number(value) and 0 < value <= 1:
        return value
    raise FieldError(field, "is not a number above 0 and at most 1", "write the chance with which the case was drawn")


def _object(value: Json, field: str) -> dict[str, Json]:
    if isinstance(value, dict):
        return value
    raise FieldError(field, f"is {_kind(value)}", "write an object")


def _texts(value: Json, field: str) -> tuple[str, ...]:
    return tuple(_text(one, f"{field}[{index}]") for index, one in enumerate(_list(value, field)))


def _list(value: Json, field: str) -> list[Json]:
    if isinstance(value, list):
        return value
    raise FieldError(field, f"is {_kind(value)}", "write a list")


def _transcript(value: Json, field: str) -> str | tuple[Utterance, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise FieldError(field, f"is {_kind(value)}", "write text, or a list of {speaker, text, at}")
    return tuple(_turn(turn, f"{field}[{index}]") for index, turn in enumerate(value))


def _turn(value: Json, path: str) -> Utterance:
    turn = _object(value, path)
    _unknown_names(turn, _TURN_FIELDS, f"{path}.")
    if "text" not in turn:
        raise FieldError(f"{path}.text", "is missing", "every turn needs a text")
    speaker, at = turn.get("speaker"), turn.get("at")
    return Utterance(
        _text(turn["text"], f"{path}.text"),
        None if speaker is None else _text(speaker, f"{path}.speaker"),
        None if at is None else _text(at, f"{path}.at"),
    )


def _scenario(value: Json, field: str) -> Json:
    if isinstance(value, str | dict):
        return value
    raise FieldError(field, f"is {_kind(value)}", "write a scenario's name, or the scenario as an object")


def _tools(value: Json, field: str) -> tuple[ToolCall, ...]:
    return tuple(_tool(one, f"{field}[{index}]") for index, one in enumerate(_list(value, field)))


def _tool(value: Json, path: str) -> ToolCall:
    if isinstance(value, str):
        if value.lstrip()[:1] in {"{", "["}:  # a column of a table holds JSON as text
            raise FieldError(path, "is JSON within a text", "write the call as an object, without quotation marks")
        return ToolCall(name=_identifier(value, path))
    if not isinstance(value, dict):
        raise FieldError(path, f"is {_kind(value)}", "write the tool's name, or an object with it")
    _unknown_names(value, _TOOL_FIELDS, f"{path}.")
    error, call_id, handoff = value.get("error"), value.get("call_id"), value.get("handoff")
    return ToolCall(
        name=_identifier(value.get("name"), f"{path}.name"),
        arguments=value.get("arguments"),
        result=value.get("result"),
        error=None if error is None else _text(error, f"{path}.error"),
        call_id=None if call_id is None else _text(call_id, f"{path}.call_id"),
        handoff=False if handoff is None else _boolean(handoff, f"{path}.handoff"),
    )


def _handoffs(value: Json, field: str) -> tuple[tuple[int, ToolCall], ...]:
    """Hand-offs that stand apart from the tool calls, each with the number of tool calls before it."""
    found = []
    for index, one in enumerate(_list(value, field)):
        path = f"{field}[{index}]"
        handoff = _object(one, path)
        after = _whole(handoff.get(_HANDOFF, 0), f"{path}.{_HANDOFF}")
        call = _tool({**{key: each for key, each in handoff.items() if key != _HANDOFF}, "handoff": True}, path)
        found.append((after, call))
    return tuple(found)


def _reported(value: Json, field: str) -> tuple[ReportedScore, ...]:
    found = []
    for index, one in enumerate(_list(value, field)[:MOST_REPORTED]):
        path = f"{field}[{index}]"
        given = _object(one, path)
        stated, invalid = number(given.get("value"))
        texts = {
            name: label(_text(given[name], f"{path}.{name}"), LONGEST_TEXT if name == "explanation" else LONGEST_NAME)
            for name in REPORTED
            if name != "value" and given.get(name) is not None
        }
        if "name" not in texts:
            raise FieldError(f"{path}.name", "is missing", "name what was judged")
        found.append(
            ReportedScore(
                name=texts["name"], value=stated, label=texts.get("label"), explanation=texts.get("explanation"),
                by=texts.get("by"), via=texts.get("via", "case"), span_id=texts.get("span_id"), at_ns=index,
                invalid=texts.get("invalid", invalid),
            )
        )  # fmt: skip
    return tuple(found)


REPORTED: Final = ("name", "value", "label", "explanation", "by", "via", "span_id", "invalid")
"""The fields of a reported score in a case. The scores themselves stand in the order of their times."""


def _in_order(calls: tuple[ToolCall, ...] | None, handoffs: tuple[tuple[int, ToolCall], ...]) -> tuple[ToolCall, ...]:
    """All calls, each hand-off after the number of tool calls that it names."""
    plain = calls or ()
    places = sorted(
        [*((at, 1, call) for at, call in enumerate(plain)), *((after, 0, call) for after, call in handoffs)],
        key=lambda place: place[:2],
    )
    return tuple(call for _, _, call in places)


def _completion(value: Json, field: str) -> str:
    allowed = ("root_ended", "pseudo_root", "idle", "deadline", "pressure", "shutdown", "torn", "batch")
    if isinstance(value, str) and value in allowed:
        return value
    raise FieldError(field, "is not a reason for closing a trace", f"write one of {', '.join(allowed)}")


def _is_number(value: Json) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Json) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")


_READERS: dict[str, _Read] = {
    "case_id": _identifier,
    "model_output": _any,
    "repeats": _outputs,
    "task": _text,
    "input": _any,
    "transcript": _transcript,
    "expected_outcome": _any,
    "config": _object,
    "scenario": _scenario,
    "agents_called": _texts,
    "tools_used": _tools,
    "handoffs": _handoffs,
    "context": _texts,
    "system_prompt": _text,
    "latency_e2e_ms": _number,
    "latency_model_ms": _number,
    "timed_out": _boolean,
    "input_tokens": _whole,
    "output_tokens": _whole,
    "cost_usd": _number,
    "model": _text,
    "tags": _texts,
    "metadata": _object,
    "evaluation_criteria_override": _text,
    "session_id": _text,
    "user_id": _text,
    "service": _text,
    "environment": _text,
    "sampling_probability": _probability,
    "trace_id": _text,
    "root_span_id": _text,
    "error": _text,
    "name": _text,
    "complete": _boolean,
    "completion": _completion,
    "content_captured": _boolean,
    "capture_switch": _text,
    "reported": _reported,
}
TEXT_FIELDS: Final = frozenset(name for name, read in _READERS.items() if read in (_text, _identifier))
"""Fields that hold one text."""
_NULL_IS_A_VALUE = frozenset(("case_id", "model_output"))
"""Elsewhere null means absent."""
_TEXTS: dict[str, object] = {"type": "array", "items": {"type": "string"}}
_NAME: dict[str, object] = {"type": "string", "pattern": r"\S"}
_TOOL = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*[^\s{\[]"},
        {
            "type": "object", "required": ["name"],
            "properties": {
                "name": _NAME, "error": {"type": ["string", "null"]}, "call_id": {"type": ["string", "null"]},
                "handoff": {"type": ["boolean", "null"]},
            },
        },
    ]
}  # fmt: skip
_REPORTED = {
    "type": "object", "required": ["name"],
    "properties": {
        "name": _NAME, "value": {"type": ["number", "boolean", "null"]}, "label": {"type": ["string", "null"]},
        "explanation": {"type": ["string", "null"]}, "by": {"type": ["string", "null"]},
    },
}  # fmt: skip
_TURN = {
    "type": "object", "required": ["text"],
    "properties": {
        "text": {"type": "string"}, "speaker": {"type": ["string", "null"]}, "at": {"type": ["string", "null"]},
    },
}  # fmt: skip
_SCHEMAS: Mapping[_Read, dict[str, object]] = {
    _identifier: _NAME,
    _any: {},
    _outputs: {"type": "array"},
    _text: {"type": "string"},
    _transcript: {"anyOf": [{"type": "string"}, {"type": "array", "items": _TURN}]},
    _object: {"type": "object"},
    _scenario: {"type": ["string", "object"]},
    _texts: _TEXTS,
    _tools: {"type": "array", "items": _TOOL},
    _reported: {"type": "array", "maxItems": MOST_REPORTED, "items": _REPORTED},
    _handoffs: {"type": "array", "items": {"type": "object"}},
    _number: {"type": "number", "minimum": 0},
    _whole: {"type": "integer", "minimum": 0},
    _boolean: {"type": "boolean"},
    _probability: {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    _completion: {"type": "string"},
}


def case_schema() -> dict[str, object]:
    """JSON Schema (draft 2020-12) of one line of a file of cases, under our field names and other tools' names."""
    properties: dict[str, object] = {}
    for name, read in _READERS.items():
        schema = _SCHEMAS[read]
        nullable = schema if name in _NULL_IS_A_VALUE or not schema else {"anyOf": [schema, {"type": "null"}]}
        properties[name] = nullable
        for other in OTHER_NAMES.get(name, ()):
            properties[other] = {"description": f"read as {name}, where that is missing"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sidejudge case",
        "type": "object",
        "properties": properties,
        "anyOf": [{"required": [name]} for name in ("model_output", *OTHER_NAMES["model_output"])],
    }
