"""Target: the part of a case that a check reads, named by ``on``. Several values are checked one by one.

``output`` (the default), ``input``, ``expected``, ``context``, ``tools``, ``agents``, ``transcript``, ``turns``,
``system_prompt``, ``metadata.KEY``, and ``spans.FIELD`` or ``spans[NAME].FIELD``. Below ``output``, ``input``,
``expected`` and ``metadata.KEY`` a path goes on into JSON: ``output.items.0.sku``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.conversation import turns
from sidejudge.scoring.case.grounds import headless
from sidejudge.scoring.result.reason import Reason, own, part
from sidejudge.scoring.result.result import NotApplicable, Unavailable
from sidejudge.scoring.trace.span import Json, Span

from .check import CheckError

Found: TypeAlias = "tuple[Json, ...] | NotApplicable | Unavailable"
Target: TypeAlias = Callable[[Case], Found]

_SPANS: Final = re.compile(r"spans(?:\[([^\]]{1,200})\])?\.(\w+)(?:\.(.+))?")
_SPAN_FIELDS: Final[Mapping[str, Callable[[Span], Json]]] = {
    "name": lambda span: span.name,
    "kind": lambda span: span.kind.value,
    "input": lambda span: span.input if span.input is not None else span.tool.arguments if span.tool else None,
    "output": lambda span: span.output if span.output is not None else span.tool.result if span.tool else None,
    "error": lambda span: span.error,
    "model": lambda span: span.model,
    "agent": lambda span: span.agent,
    "system_prompt": lambda span: span.system_prompt,
    "metadata": lambda span: dict(span.metadata),
}
_NO_OUTPUT: Final = Unavailable(Reason("the output is not known"))
_NO_SPANS: Final = Unavailable(Reason("the case does not come from a trace, so its spans are not known"))
_MISSING: Final = object()


def read_target(on: str) -> Target:
    """The function that finds a target's values; ``CheckError`` for one that does not exist."""
    if on == "output":
        return _output
    if on in _WHOLE:
        return _WHOLE[on]
    if found := _SPANS.fullmatch(on):
        return _of_spans(found[1], found[2], found[3])
    head, _, path = on.partition(".")
    if head == "metadata" and path:
        return _below("metadata", path.split("."))
    if head in ("output", "input", "expected") and path:
        return _below(head, path.split("."))
    names = ", ".join(("output", *_WHOLE, "metadata.KEY", "output.PATH", "spans.FIELD", "spans[NAME].FIELD"))
    raise CheckError(f"is not a target: {on!r}; valid here: {names}", "on")


def _output(case: Case) -> Found:
    value = None if headless(case) else case.model_output
    return _NO_OUTPUT if value is None else (value,)


def _one(name: str, value: Json) -> Found:
    return Unavailable(Reason("{name} is not known", name=own(name))) if value is None else (value,)


def _several(name: str, values: tuple[Json, ...] | None) -> Found:
    if values is None:
        return Unavailable(Reason("{name} is not known", name=own(name)))
    return values or NotApplicable(Reason("there is no {name}", name=own(name)))


def _of_turns(case: Case) -> Found:
    found = turns(case)
    return found if isinstance(found, Unavailable) else _several("turns", tuple(turn.text for turn in found))


def _names(case: Case) -> tuple[str, ...] | None:
    return None if case.tools_used is None else tuple([call.name for call in case.tools_used])


_WHOLE: Final[Mapping[str, Target]] = {
    "input": lambda case: _one("input", case.input),
    "expected": lambda case: _one("expected", case.expected_outcome),
    "system_prompt": lambda case: _one("system_prompt", case.system_prompt),
    "transcript": lambda case: _one("transcript", case.transcript_text),
    "context": lambda case: _several("context", case.context),
    "agents": lambda case: _several("agents", case.agents_called),
    "tools": lambda case: _several("tools", _names(case)),
    "turns": _of_turns,
}
_ROOTS: Final[Mapping[str, Callable[[Case], Json]]] = {
    "output": lambda case: case.output_content,
    "input": lambda case: case.input,
    "expected": lambda case: case.expected_content,
    "metadata": lambda case: case.metadata if isinstance(case.metadata, dict) else dict(case.metadata),
}


def _below(root: str, path: list[str]) -> Target:
    missing = Unavailable(Reason("{path} is not known", path=part(".".join([root, *path]))))

    def find(case: Case) -> Found:
        value = _at(_ROOTS[root](case), path)
        return missing if value is _MISSING or value is None else (value,)  # type: ignore[return-value]  # JSON, or the mark

    return find


def _at(value: Json, path: list[str]) -> object:
    """The value at a path; a key may itself contain points (``metadata.user.plan`` is also a key of that name)."""
    for depth, key in enumerate(path):
        if isinstance(value, dict):
            whole = ".".join(path[depth:])
            if whole in value:
                return value[whole]
            if key not in value:
                return _MISSING
            value = value[key]
        elif isinstance(value, list) and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return _MISSING
    return value


def _of_spans(name: str | None, field: str, path: str | None) -> Target:
    if field not in _SPAN_FIELDS:
        raise CheckError(f"is not a field of a span: {field!r}; valid here: {', '.join(_SPAN_FIELDS)}", "on")
    read, below = _SPAN_FIELDS[field], path.split(".") if path else []
    what = Reason("span named {name}", name=part(name)) if name else Reason("span")

    def values(spans: Sequence[Span]) -> Iterator[Json]:
        for span in spans:
            if name is None or span.name == name:
                value = _at(read(span), below)
                if value is not _MISSING and value is not None:
                    yield value  # type: ignore[misc]  # JSON: the mark is excluded

    def find(case: Case) -> Found:
        if case.trace is None:
            return _NO_SPANS
        return tuple(values(case.trace.spans)) or NotApplicable(
            Reason("there is no {span} with {field}", span=what, field=own(field))
        )

    return find
