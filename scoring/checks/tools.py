"""Checks of tools: which were called, in which order, with which arguments, and what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, part, together
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json, ToolCall

from .check import CaseTest, Check, CheckError, Subject, keys, texts, whole
from .documents import schema
from .spending import limited

_UNKNOWN: Final = Unavailable(Reason("the tool calls are not known"))
_INCOMPLETE: Final = Unavailable(Reason("the trace is incomplete: what was not seen may have been called"))
_NONE: Final = NotApplicable(Reason("none of these tools was called"))
_NO_ARGUMENTS: Final = Unavailable(Reason("the arguments of a call are not known: there are none, or they are no JSON"))
_SHOWN: Final = 5
_OF_TEXT: Final = frozenset({"type", "enum", "const", "pattern", "minLength", "maxLength", "format"})
"""Keywords of a JSON Schema that may be of a text."""


def _names(case: Case) -> list[str] | None:
    return None if case.tools_used is None else [call.name for call in case.tools_used]


def _called(value: Json) -> CaseTest:
    wanted = texts(value)

    def test(case: Case) -> Result:
        names = _names(case)
        if names is None:
            return _UNKNOWN
        missing = [name for name in wanted if name not in names]
        if missing and not case.complete:
            return _INCOMPLETE
        stated = _listed(Reason("not called: "), missing) if missing else _listed(Reason("called: "), wanted)
        return Scored(value=float(not missing), reason=stated)

    return test


def _f1(value: Json) -> CaseTest:
    wanted = set(texts(value))

    def test(case: Case) -> Result:
        names = _names(case)
        if names is None:
            return _UNKNOWN
        if not case.complete:
            return _INCOMPLETE
        made = set(names)
        shared = len(made & wanted)
        faults = [_listed(Reason("not called: "), sorted(wanted - made))] if wanted - made else []
        faults += [_listed(Reason("not expected: "), sorted(made - wanted))] if made - wanted else []
        return Scored(value=2 * shared / (len(made) + len(wanted)), reason=together(faults))

    return test


def _sequence(value: Json) -> CaseTest:
    given = {"order": value} if isinstance(value, list | str) else keys(value, ("order", "exact"))
    order, exact = texts(given.get("order")), given.get("exact", False)
    if not isinstance(exact, bool):
        raise CheckError("must be true or false", "exact")

    def test(case: Case) -> Result:
        names = _names(case)
        if names is None:
            return _UNKNOWN
        rest = iter(names)
        met = 0
        for name in order:
            if name not in rest:  # takes from the iterator up to where it stands
                break
            met += 1
        holds = tuple(names) == order if exact else met == len(order)
        if not holds and not case.complete:
            return _INCOMPLETE
        if holds:
            return Scored(value=1.0)
        if met == len(order):
            return Scored(value=0.0, reason=Reason("other tools were called as well"))
        stated = Reason("{tool} does not come after what stands before it", tool=part(label(order[met])))
        return Scored(value=0.0, reason=stated)

    return test


def _args(value: Json) -> CaseTest:
    if not isinstance(value, dict) or not value:
        raise CheckError("must be a map from names of tools to JSON Schemas")
    faults = {name: schema(each, name, mark=part) for name, each in value.items()}
    of_text = {name for name, each in value.items() if isinstance(each, dict) and _is_of_text(each)}

    def wrong(calls: Sequence[ToolCall]) -> Iterator[tuple[Reason, Json]]:
        for call in calls:
            given = call.arguments
            if call.name not in of_text:
                given = decoded(given)  # some clients record the JSON text that the model wrote
            if (fault := faults[call.name](given)) is not None:
                known = call.name in of_text or not isinstance(given, str)
                yield Reason("{tool}: {fault}", tool=part(label(call.name)), fault=fault), given if known else None

    def test(case: Case) -> Result:
        if case.tools_used is None:
            return _UNKNOWN
        calls = [call for call in case.tools_used if call.name in faults]
        if not calls:
            return _NONE if case.complete else _INCOMPLETE
        found = list(wrong(calls))
        if any(given is None for _, given in found):
            return _NO_ARGUMENTS
        return Scored(value=1 - len(found) / len(calls), reason=together([fault for fault, _ in found[:_SHOWN]]))

    return test


def _is_of_text(declared: Mapping[str, Json]) -> bool:
    """Whether a tool takes a text by its schema, such as a query, rather than an object."""
    return declared.get("type", "string") == "string" and not _OF_TEXT.isdisjoint(declared)


def _max_errors(value: Json) -> CaseTest:
    most = whole(value)

    def test(case: Case) -> Result:
        if case.tools_used is None:
            return _UNKNOWN
        failed = sum(call.error is not None for call in case.tools_used)
        if failed <= most and not case.complete:
            return Unavailable(Reason("the trace is incomplete: more calls may have failed"))
        return limited(
            failed, most, _UNKNOWN, lambda n: Reason("{n:.0f} tool calls failed, at most {most:.0f}", n=n, most=most)
        )

    return test


def _listed(words: Reason, names: Sequence[str]) -> Reason:
    return words + together((part(label(name)) for name in names[:_SHOWN]), ", ")


_check = partial(Check, subject=Subject.CASE)
_MISSED: Final = "the tool calls are not known, or the trace is incomplete and the missing part could decide"

CHECKS: Final = (
    _check("tool-called", "Tool called", "this tool was called (of several: all of them)", "a name, or several",
           _called, undefined=_MISSED),
    _check("tool-call-f1", "F1 of the tools called", "F1 of the set of tools called against this set",
           "names", _f1, undefined="the tool calls are not known, or the trace is incomplete", graded=True),
    _check("tool-sequence", "Order of tools", "these tools were called in this order, others between them or not; with "
           "`exact: true` these calls and no others", "names, or {order, exact}", _sequence,
           undefined=_MISSED),
    _check("tool-args", "Arguments of tools", "the share of calls of these tools whose arguments meet their schema",
           "a map from names of tools to JSON Schemas", _args,
           undefined="the tool calls are not known, or the arguments of one that its schema refuses are missing, or no "
           "JSON where the schema is of no text; not applicable where none of the tools was called", graded=True),
    _check("max-tool-errors", "Failed tool calls", "at most so many tool calls failed", "a whole number", _max_errors,
           undefined=_MISSED),
)  # fmt: skip
"""The checks of tools."""
