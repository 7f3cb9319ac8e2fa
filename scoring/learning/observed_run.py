"""Observed run: what learning looks at of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sidejudge.scoring.case.asked import asked_words
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.value_origin import searchable
from sidejudge.scoring.trace.jsontext import decoded
from sidejudge.scoring.trace.span import Json


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call: the tool, its arguments by name, and its result as text."""

    tool: str
    arguments: Mapping[str, Json]
    result: str


@dataclass(frozen=True, kw_only=True)
class ObservedRun:
    """One run. ``good`` is None where that is unknown; ``group`` is the task or the name of it.

    ``names_only`` says that arguments and results of its calls are not known. ``requested`` is its input as text,
    ``asked`` the words of it;
    ``tokens`` and ``seconds`` are None where they are not known.
    """

    case_id: str
    group: str
    calls: tuple[ObservedCall, ...]
    agents: tuple[str, ...] | None
    requested: str
    asked: frozenset[str] = frozenset()
    good: bool | None = None
    tokens: int | None = None
    seconds: float | None = None
    names_only: bool = False

    @cached_property
    def called(self) -> tuple[str, ...]:
        """The tools in order of their calls."""
        return tuple(call.tool for call in self.calls)

    @cached_property
    def tools(self) -> frozenset[str]:
        """The tools that were called."""
        return frozenset(self.called)


def observe_run(case: Case, *, group: str, good: bool | None, names_only: bool = False) -> ObservedRun | None:
    """A case as learning sees it; None where it is not known which tools were called, or the trace was cut short."""
    if case.tools_used is None or not case.complete:
        return None
    calls = []
    for call in case.tools_used:
        if not call.handoff:
            arguments = decoded(call.arguments)
            calls.append(
                ObservedCall(call.name, arguments if isinstance(arguments, dict) else {}, searchable(call.result))
            )
    known = case.input_tokens is not None and case.output_tokens is not None
    return ObservedRun(
        case_id=case.case_id,
        group=group,
        calls=tuple(calls),
        agents=case.agents_called,
        requested=searchable(case.input) + searchable(case.transcript_text),
        asked=asked_words(case),
        good=good,
        tokens=(case.input_tokens or 0) + (case.output_tokens or 0) if known else None,
        seconds=None if case.latency_e2e_ms is None else case.latency_e2e_ms / 1000,
        names_only=names_only,
    )
