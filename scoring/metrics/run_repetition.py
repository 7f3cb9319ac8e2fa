"""Repetition in a run: repeated equal calls, and two alternating calls.

Different calls of one tool are no repetition, however many: an agent whose only tool is a shell calls nothing else.
``within_usual`` measures how many in a row are usual for a service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.grounds import cut_at
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, ReasonPart, part, together
from sidejudge.scoring.result.result import NotApplicable, Result, Scored, Unavailable, at_least
from sidejudge.scoring.trace.tool_spans import canonical

from .run_ending import UNKNOWN_CALLS, run_metric
from .run_steps import CallStep, Key, key_of, run_steps, signs

STREAK: Final = 8
"""Most equal calls in a row without a sign; each further one counts, and the row is a loop if none brings anything new.
"""
LEAST: Final = 0.05
"""The lowest value of a run that repeats without being a loop."""
_TURNS: Final = 4
"""Fewest alternating calls of two kinds (a b a b) that count as an alternation."""
_TOO_FEW: Final = NotApplicable(Reason("fewer than two tools were called"))


@run_metric(
    formula=f"1 − repeating calls / max(4, calls), {LEAST} at the least; 0 for a loop: more than {STREAK} equal calls "
    "one after the other, alone or in turns, that bring nothing new. In a row: from the "
    f"{STREAK + 1}th equal call on. Calls of one tool that differ are no repetition",
    bands=at_least(good=1.0, acceptable=0.7),
    undefined="contents were not captured; not applicable below two calls",
)
def no_repetition(case: Case) -> Result:
    """How free the run is of equal calls without a new result, of two in turns, of one over and over."""
    calls = case.once(run_steps).calls
    if calls is None:
        return UNKNOWN_CALLS
    if len(calls) < 2:
        return _TOO_FEW
    repeats = dict(_repeats(case, calls))
    found = dict((*_streaks(calls), *_alternations(calls), *repeats.items()))
    if not found:
        return Scored(value=1.0)
    if (most := case.once(cut_at)) is not None and any(_lacks_a_part(calls[index], most) for index in found):
        why = "texts are cut off at {most} characters: whether calls are equal is not known"
        return Unavailable(Reason(why, most=most))
    marked = [(calls[index].span_id, found[index]) for index in sorted(found)]
    loop = _longest_stretch(repeats) > STREAK
    return Scored(
        value=0.0 if loop else max(LEAST, 1.0 - len(found) / max(4, len(calls))),
        reason=Reason(
            "{n} of {all} tool calls repeat: {signs}",
            n=len(found),
            all=len(calls),
            signs=together(dict.fromkeys(sign for _, sign in marked[:3]), ", "),
        ),
        details={**signs(marked), "calls": len(calls)},
    )


def _lacks_a_part(step: CallStep, most: int) -> bool:
    """Whether the arguments, by which calls differ, or the result are a text of the length at which texts are cut."""
    return any(isinstance(text, str) and len(text) == most for text in (step.call.arguments, step.call.result))


def _repeats(case: Case, calls: Sequence[CallStep]) -> Iterator[tuple[int, Reason]]:
    """Calls that repeat an earlier one with equal arguments and brought nothing new, then or later.

    Polling that sees a change in the end is no repetition, nor are parallel equal calls, which one turn requested.
    """
    seen: dict[Key, dict[str, tuple[CallStep, int]]] = {}
    waiting: dict[Key, list[int]] = {}
    times: Counter[Key] = Counter()
    for index, step in enumerate(calls):
        if step.call.arguments is None and step.call.result is None:
            continue  # contents may not have been captured: the name alone makes no two calls equal
        outcomes = seen.setdefault(step.key, {})
        outcome = "failed" if step.failure is not None else canonical(step.call.result)[:20_000]
        time = times[step.key]
        times[step.key] += 1
        before, earlier = outcomes.setdefault(outcome, (step, time))
        if before is step:
            waiting[step.key] = []
        elif not step.is_beside(before) and not _in_one_turn(case.once(_turns).get(step.key, ()), earlier, time):
            waiting[step.key].append(index)
    for indices in waiting.values():
        yield from ((index, Reason("{tool}: equal call again", tool=_tool(calls[index]))) for index in indices)


def _turns(case: Case) -> Mapping[Key, Sequence[int]]:
    """By call, the run's model calls that requested it, in order."""
    found: dict[Key, list[int]] = {}
    for turn, span in enumerate(case.once(run_steps).models):
        for message in span.output_messages:
            for call in message.tool_calls:
                found.setdefault(key_of(call), []).append(turn)
    return found


def _in_one_turn(turns: Sequence[int], earlier: int, later: int) -> bool:
    """Whether a model requested both calls in one message, without either's result."""
    return later < len(turns) and turns[earlier] == turns[later]


def _longest_stretch(repeats: Collection[int]) -> int:
    """The longest row of consecutive repeats."""
    longest = length = 0
    for index in sorted(repeats):
        length = length + 1 if index - 1 in repeats else 1
        longest = max(longest, length)
    return longest


def _alternations(calls: Sequence[CallStep]) -> Iterator[tuple[int, Reason]]:
    """The calls of an alternation beyond its first two."""
    length = 2
    for index in range(2, len(calls)):
        step, before, beside = calls[index], calls[index - 1], calls[index - 2]
        same = step.key == beside.key != before.key and not (step.is_beside(before) or before.is_beside(beside))
        same = same and step.call.arguments is not None
        length = length + 1 if same else 2
        if length >= _TURNS:
            yield index, Reason("{a} and {b} in turns", a=_tool(calls[index - 1]), b=_tool(calls[index]))


def _streaks(calls: Sequence[CallStep]) -> Iterator[tuple[int, Reason]]:
    """The calls in a row of equal ones beyond ``STREAK``, whatever they bring: a polling agent can wait between."""
    length = 1
    for index, (before, step) in enumerate(pairwise(calls), 1):
        equal = step.key == before.key and step.call.arguments is not None
        length = (length if step.is_beside(before) else length + 1) if equal else 1
        if length > STREAK:
            yield index, Reason("{tool}: more than {most} equal calls in a row", tool=_tool(step), most=STREAK)


def _tool(step: CallStep) -> ReasonPart:
    return part(label(step.call.name))
