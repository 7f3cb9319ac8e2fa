"""CEL: a condition over a typed view of the case. It terminates, and is type-checked before anything starts.

The library is Google's own (``cel_expr_python``): it checks types with the position of a mistake, matches patterns with
RE2 and stops an expression after a fixed number of iterations. Measured on the same condition over two tool calls: 6 µs
of evaluation against 82 µs of ``common_expression_language``, which checks no types before it runs and has no limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from typing import Any, Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.checks.check import library
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, own, quoted
from sidejudge.scoring.result.result import Failed, Method, Result, Scored, Unavailable
from sidejudge.scoring.trace.span import Json, Span, ToolCall

MAX_EXPRESSION: Final = 4000
"""Most characters of an expression."""
MAX_TEXT: Final = 1_000_000
"""Most characters of a text that an expression may read."""
MAX_JOINED: Final = 20_000_000
"""Most characters that an expression may join with ``+`` inside loops: the library keeps each result until the end."""
_MOST_ROUNDS: Final = 1_000_000
_TEXT: Final = re.compile(
    r"""\b[bB]?[rR][bB]?(?:"{3}(?s:.)*?"{3}|'{3}(?s:.)*?'{3}|"[^"\n]*"|'[^'\n]*')"""
    r"""|"{3}(?s:[^\\]|\\.)*?"{3}|'{3}(?s:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|//[^\n]*"""
)
"""A literal text, raw or not, or a comment: words in it are no names."""
_FIELD: Final = re.compile(r"(?<=[\w)\]}])(?<!\bin)[ \t]*\.[ \t]*\??[ \t]*\w+")
"""A field or method of the preceding value; a dot at the beginning of an operand precedes a name."""
_LOOP: Final = re.compile(r"\.\s*(?:map|filter|all|exists|exists_one|existsOne|transformList|transformMap)\s*\(")
_UNDECLARED: Final = re.compile(r"undeclared reference to '([^']*)'")
_MISSING: Final = re.compile(r"missing ('[^']*')")
_QUOTED: Final = re.compile(r"(?:at: |input |at )'([^']*)'")
_INSTEAD: Final = {"=": "==", "and": "&&", "or": "||", "not": "!", "is": "==", "&": "&&", "|": "||", "<>": "!="}
"""Operators of other languages with CEL's equivalent."""
_PLACE: Final = re.compile(r"<input>:(\d+):(\d+): ([^\n]*)")


@dataclass(frozen=True, slots=True)
class Variable:
    """A name of the view: its CEL type, its contents, and how it is read; ``read`` returns None where it is unknown.

    A variable that needs the ``whole`` trace is unknown in an incomplete one: what was not seen may have happened.
    """

    type: str
    meaning: str
    read: Callable[[Case], object]
    whole: bool = False


def _tool(call: ToolCall) -> dict[str, object]:
    return {
        "name": call.name, "arguments": call.arguments, "result": call.result, "error": call.error or "",
        "handoff": call.handoff,
    }  # fmt: skip


def _span(span: Span) -> dict[str, object]:
    return {
        "name": span.name, "kind": span.kind.value,
        "seconds": (span.end_ns - span.start_ns) / 1e9,
        "model": span.model or "", "agent": span.agent or "", "input": span.input, "output": span.output,
        "error": span.error or "", "finish_reason": span.finish_reason or "",
    }  # fmt: skip


def _tokens(case: Case) -> dict[str, int] | None:
    if case.input_tokens is None or case.output_tokens is None:
        return None
    return {"input": case.input_tokens, "output": case.output_tokens, "total": case.input_tokens + case.output_tokens}


def _errors(case: Case) -> list[str]:
    """The error messages of steps and tools."""
    spans = case.trace.spans if case.trace is not None else ()
    found = [span.error for span in spans if span.error] or ([case.error] if case.error else [])
    return found + [call.error for call in case.tools_used or () if call.error and call.error not in found]


def _text(value: Json) -> str | None:
    return None if value is None else text_or_json(value)


def _listed(values: tuple[object, ...] | None) -> list[object] | None:
    return None if values is None else list(values)


VIEW: Final[Mapping[str, Variable]] = {
    "input": Variable("string", "what was asked, as text (JSON where it is no text)", lambda case: _text(case.input)),
    "output": Variable("string", "what was answered, as text", lambda case: _text(case.model_output)),
    "output_json": Variable(
        "dyn", "the answer decoded; not known where it is not JSON",
        lambda case: None if case.output.error is not None else case.output.value,
    ),
    "expected": Variable("dyn", "the expected outcome, decoded where it is JSON", lambda case: case.expected_content),
    "context": Variable("list(string)", "what was retrieved", lambda case: _listed(case.context), whole=True),
    "transcript": Variable("string", "the transcript, a line a turn", lambda case: case.transcript_text),
    "metadata": Variable("map(string, dyn)", "the trace's metadata", lambda case: dict(case.metadata)),
    "tags": Variable("list(string)", "the trace's tags", lambda case: list(case.tags)),
    "tools": Variable(
        "list(map(string, dyn))", "tool calls in order: name, arguments, result, error ('' without), handoff",
        lambda case: None if case.tools_used is None else [_tool(call) for call in case.tools_used], whole=True,
    ),
    "agents": Variable(
        "list(string)", "names of the agents that ran, one entry a run", lambda case: _listed(case.agents_called),
        whole=True,
    ),
    "spans": Variable(
        "list(map(string, dyn))",
        "the trace's steps: name, kind, seconds, model, agent, input, output, error ('' without), finish_reason",
        lambda case: None if case.trace is None else [_span(span) for span in case.trace.spans], whole=True,
    ),
    "tokens": Variable("map(string, int)", "tokens of all model calls: input, output, total", _tokens),
    "cost_usd": Variable("double", "US dollars that the case cost", lambda case: case.cost_usd),
    "duration": Variable(
        "duration", "from the first to the last moment",
        lambda case: None if case.latency_e2e_ms is None else timedelta(milliseconds=case.latency_e2e_ms),
    ),
    "errors": Variable("list(string)", "error messages of steps and tools", _errors, whole=True),
    "service": Variable("string", "the service ('' without)", lambda case: case.service or ""),
    "environment": Variable("string", "the environment ('' without)", lambda case: case.environment or ""),
    "session": Variable("string", "the session's id ('' without)", lambda case: case.session_id or ""),
}  # fmt: skip
"""The view of a case, by name."""


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled condition. ``kind`` is the CEL type of its value: BOOL, INT, UINT, DOUBLE, or DYN for unknown."""

    source: str
    kind: str
    measure: Callable[[Case], Result]


class CelError(SidejudgeError, ValueError):
    """The expression is invalid; the message has line and column."""


def compile_cel(source: str) -> Program:
    """The function of a condition. ``CelError`` where it does not parse, uses an unknown name, or mixes types."""
    if not source.strip() or len(source) > MAX_EXPRESSION:
        raise CelError(f"must be an expression of 1 to {MAX_EXPRESSION} characters")
    try:
        compiled = _environment().compile(source)
    except RuntimeError as error:
        raise CelError(_cause(str(error))) from None
    kind = str(compiled.return_type().name())
    if kind not in ("BOOL", "INT", "UINT", "DOUBLE", "DYN"):
        raise CelError(f"gives a {kind.lower()}; a condition gives a bool, a measure a number")
    stated = _TEXT.sub("''", source)
    used = set(re.findall(r"\w+", _FIELD.sub("", stated)))
    names = tuple(name for name in VIEW if name in used)
    evaluate, view = compiled.eval, _view(names)
    joins, loops = stated.count("+"), len(_LOOP.findall(stated))

    def measure(case: Case) -> Result:
        found = (_joined_too_much(case, names, joins, loops) if joins and loops else None) or case.once(view)
        if isinstance(found, Unavailable | Failed):
            return found
        try:
            value = evaluate(found).value()
        except RuntimeError as error:
            return _failed(str(error))
        if value is True:
            return _HOLDS
        if value is False:
            return _FAILS
        if isinstance(value, int | float):
            return Scored(value=float(value))
        return _failed(_cause(str(value))) if value is not None else Failed(Reason("CEL: the value is null"))

    return Program(source=source, kind=kind, measure=measure)


def _joined_too_much(case: Case, names: tuple[str, ...], joins: int, loops: int) -> Unavailable | None:
    """Why a case is too large for an expression with this many ``+`` and (possibly nested) loops."""
    characters, longest = 0, 1
    left: list[object] = [VIEW[name].read(case) for name in names]
    while left:
        value = left.pop()
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, Mapping | list | tuple):
            longest = max(longest, len(value))
            left += [*value, *value.values()] if isinstance(value, Mapping) else value
    if joins * characters * min(_MOST_ROUNDS, longest**loops) <= MAX_JOINED:
        return None
    return Unavailable(Reason("it joins more than {most} characters in loops", most=MAX_JOINED))


_HOLDS: Final = Scored(value=1.0)
_FAILS: Final = Scored(value=0.0, method=Method.EXACT, reason=Reason("the condition does not hold"))


@cache
def _environment() -> Any:
    cel = library("cel_expr_python.cel", "cel", "cel")
    types = cel.Type
    named = {
        "string": types.STRING, "dyn": types.DYN, "double": types.DOUBLE, "duration": types.DURATION,
        "list(string)": types.List(types.STRING), "map(string, dyn)": types.Map(types.STRING, types.DYN),
        "map(string, int)": types.Map(types.STRING, types.INT),
        "list(map(string, dyn))": types.List(types.Map(types.STRING, types.DYN)),
    }  # fmt: skip
    return cel.NewEnv(variables={name: named[variable.type] for name, variable in VIEW.items()})


@cache
def _view(names: tuple[str, ...]) -> Callable[[Case], object]:
    """The function from a case to these names' values for the library; conditions over the same names share it."""
    activation = _environment().Activation
    variables = [(name, VIEW[name]) for name in names]

    def view(case: Case) -> object:
        values: dict[str, object] = {}
        for name, variable in variables:
            if variable.whole and not case.complete:
                return Unavailable(Reason("the trace is incomplete, so {name} are not all known", name=own(name)))
            value = variable.read(case)
            if value is None:
                return Unavailable(Reason("{name} is not known", name=own(name)))
            if isinstance(value, str) and len(value) > MAX_TEXT:
                return Unavailable(Reason("{name} is longer than {most} characters", name=own(name), most=MAX_TEXT))
            values[name] = value
        try:
            return activation(values)
        except (RuntimeError, TypeError, ValueError, OverflowError) as error:
            return Failed(Reason("CEL cannot hold the case: {kind}", kind=own(type(error).__name__)))

    return view


def _failed(cause: str) -> Failed:
    return Failed(Reason("CEL: {cause}", cause=quoted(label(cause, 200))))


def _cause(stated: str) -> str:
    """The first error with its place."""
    found = _PLACE.search(stated)
    if found is None:
        return stated.replace("\n", " ")
    return f"line {found[1]}, column {found[2]}: {_with_remedy(found[3])}"


def _with_remedy(message: str) -> str:
    """The library's message, with what to write instead where that is known."""
    undeclared = _UNDECLARED.match(message)
    if undeclared is not None:
        near = get_close_matches(undeclared[1], VIEW, n=1)
        meant = f"did you mean {near[0]}?" if near else f"valid here: {', '.join(VIEW)}"
        return f"there is no name {label(undeclared[1], 40)!r}; {meant}"
    if message.startswith("Syntax error"):
        return _syntax(message)
    if "google.protobuf.Duration" in message:
        return f"{message}; a duration is compared with duration('3s')"
    return message


def _syntax(message: str) -> str:
    """Where the parser stopped, and CEL's equivalent; the parser's own message lists every token that it accepts."""
    if "<EOF>" in message and "expecting <EOF>" not in message:
        missing = _MISSING.search(message)
        return f"Syntax error: {missing[1] if missing else 'something'} is missing at the end"
    found = _QUOTED.search(message)
    if found is None:
        return message
    word = found[1].strip()
    instead = _INSTEAD.get(word.lower())
    return f"Syntax error at {label(word, 40)!r}{f': write {instead}' if instead else ''}"
