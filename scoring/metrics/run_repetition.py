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

from .run_effort import rows
from .run_ending import SOURCE
from .run_steps import CallStep, run_steps, signs

STREAK: Final = 8
"""Calls of one tool in a row, beyond which each further one counts, where nothing is known of the service's habit."""
LEAST_STREAK: Final = 4
"""The same where the service's habit is known, at the least: four in a row are nobody's loop."""
_TURNS: Final = 4
"""Calls of two kinds in turns (a b a b) from which on they count as an alternation."""


def _no_repetition(case: Case) -> Result:
    calls = case.once(run_steps).calls
    if calls is None:
        return Unavailable("which tools were called is not known: contents were not captured")
    if len(calls) < 2:
        return NotApplicable("fewer than two tools were called")
    found = dict((*_streaks(calls, _most_in_a_row(case)), *_alternations(calls), *_repeats(calls)))
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


def _most_in_a_row(case: Case) -> int:
    """How many calls of one tool in a row are usual for the service; ``STREAK`` where that is not known."""
    usual = None if case.usual is None else case.usual.limits.get("in_a_row")
    return STREAK if usual is None else max(LEAST_STREAK, int(usual))


def _streaks(calls: tuple[CallStep, ...], most: int) -> Iterator[tuple[int, str]]:
    for index, (step, length) in enumerate(rows(calls)):
        if length > most:
            yield index, f"{label(step.call.name)}: more than {most} calls in a row"


no_repetition = Metric(
    id="no_repetition",
    title="No repetition",
    meaning="How free the run is of equal calls without a new result, of two in turns, of one tool over and over.",
    formula=f"1 − repeating calls / max(4, calls); in a row: from the {STREAK + 1}th call of one tool "
    "on, or beyond the outer fence of what is usual for the service",
    source=SOURCE,
    measure=_no_repetition,
    bands=at_least(good=1.0, acceptable=0.7),
    undefined="contents were not captured; not applicable below two calls",
)
