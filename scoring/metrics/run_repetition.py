"""Repetition in a run: equal calls made again, two calls in turns, one tool over and over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from scoring.case.case import Case
from scoring.lexical.label import label
from scoring.metrics.metric import Metric
from scoring.result.bands import at_least
from scoring.result.result import NotApplicable, Result, Scored, Unavailable
from scoring.trace.tool_answers import canonical

from .run_ending import SOURCE
from .run_steps import CallStep, run_steps, signs

STREAK: Final = 8
"""Calls of one tool in a row, beyond which each further one counts, where nothing is known of the service's habit."""
_TURNS: Final = 4
"""Calls of two kinds in turns (a b a b) from which on they count as an alternation."""


def _no_repetition(case: Case) -> Result:
    calls = case.once(run_steps).calls
    if calls is None:
        return Unavailable("which tools were called is not known: contents were not captured")
    if len(calls) < 2:
        return NotApplicable("fewer than two tools were called")
    found = dict((*_streaks(calls), *_alternations(calls), *_repeats(calls)))
    if not found:
        return Scored(value=1.0)
    marked = [(calls[index].span_id, found[index]) for index in sorted(found)]
    return Scored(
        value=max(0.0, 1.0 - len(found) / max(4, len(calls))),
        reason=f"{len(found)} of {len(calls)} tool calls repeat: " + ", ".join(dict.fromkeys(s for _, s in marked[:3])),
        details={**signs(marked), "calls": len(calls)},
    )


def _repeats(calls: Sequence[CallStep]) -> Iterator[tuple[int, str]]:
    """Calls that were made before with equal arguments and brought nothing new: polling that sees a change is none."""
    seen: dict[tuple[str, str], set[str]] = {}
    for index, step in enumerate(calls):
        outcome = "failed" if step.failure is not None else canonical(step.call.result)[:20_000]
        before = seen.get(step.key)
        if before is not None and outcome in before:
            yield index, f"{label(step.call.name)}: equal call again"
        seen.setdefault(step.key, set()).add(outcome)


def _alternations(calls: Sequence[CallStep]) -> Iterator[tuple[int, str]]:
    """The calls of an alternation beyond its first two."""
    length = 2
    for index in range(2, len(calls)):
        same = calls[index].key == calls[index - 2].key and calls[index].key != calls[index - 1].key
        length = length + 1 if same else 2
        if length >= _TURNS:
            yield index, f"{label(calls[index - 1].call.name)} and {label(calls[index].call.name)} in turns"


def _streaks(calls: Sequence[CallStep]) -> Iterator[tuple[int, str]]:
    length = 1
    for index in range(1, len(calls)):
        length = length + 1 if calls[index].call.name == calls[index - 1].call.name else 1
        if length > STREAK:
            yield index, f"{label(calls[index].call.name)}: more than {STREAK} calls in a row"


no_repetition = Metric(
    id="no_repetition",
    title="No repetition",
    meaning="How free the run is of equal calls without a new result, of two in turns, of one tool over and over.",
    formula=f"1 − repeating calls / max(4, calls); in a row: from the {STREAK + 1}th call of one tool on",
    source=SOURCE,
    measure=_no_repetition,
    bands=at_least(good=1.0, acceptable=0.7),
    undefined="contents were not captured; not applicable below two calls",
)
