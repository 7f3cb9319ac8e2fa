"""Whether what tools returned shows in anything that the run did after it."""

from __future__ import annotations

from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.result_use import LaterWords
from sidejudge.scoring.result.bands import at_least
from sidejudge.scoring.result.reason import Reason
from sidejudge.scoring.result.result import Method, NotApplicable, Result, Scored, Unavailable

from .run_ending import SOURCE
from .run_steps import CallStep, RunSteps, run_steps, signs

MOST_CHARACTERS: Final = 100_000
"""Characters of results and outputs that are searched for one run: some milliseconds of work."""


def _results_used(case: Case) -> Result:
    steps = case.once(run_steps)
    if steps.calls is None:
        return Unavailable(Reason("which tools were called is not known: contents were not captured"))
    if not any(_brings_a_result(step) for step in steps.calls):
        return NotApplicable(Reason("no tool returned a result that is in the trace"))
    if case.model_output is None:
        return Unavailable(Reason("the output is not known"))
    if _size(steps) > MOST_CHARACTERS:
        return NotApplicable(
            Reason("the run holds more than {most} characters, which are not searched", most=MOST_CHARACTERS)
        )
    found, settled = _unused(case, steps)
    if not settled:
        return NotApplicable(Reason("no result holds anything distinctive to look for"))
    return Scored(
        value=1.0 - len(found) / settled,
        method=Method.LEXICAL,
        reason=Reason("of {n} of {all} results nothing occurs in what follows", n=len(found), all=settled)
        if found
        else "",
        details=signs(found),
    )


def _unused(case: Case, steps: RunSteps) -> tuple[list[tuple[str | None, str]], int]:
    """The results that nothing later draws on, and how many results were checked. From the end backwards."""
    later = LaterWords(case.input)
    later.add(case.model_output)
    spoken = sorted(steps.models, key=lambda span: span.end_ns)
    found: list[tuple[str | None, str]] = []
    settled = 0
    for step in reversed(steps.calls or ()):
        while spoken and spoken[-1].end_ns >= step.end_ns:
            later.add(spoken.pop().output)
        borne_out = later.bear_out(step.call, result=_brings_a_result(step))
        if borne_out is not None:
            settled += 1
            if not borne_out:
                found.append((step.span_id, f"{label(step.call.name)}: nothing of its result occurs in what follows"))
    return found[::-1], settled


def _brings_a_result(step: CallStep) -> bool:
    return step.failure is None and step.call.result not in (None, "", [], {})


def _size(steps: RunSteps) -> int:
    """About how many characters would be read; structured values count by what they hold as text."""
    held = [*(step.call.result for step in steps.calls or ()), *(span.output for span in steps.models)]
    return sum(len(value) if isinstance(value, str) else len(repr(value)) for value in held if value is not None)


results_used = Metric(
    id="results_used",
    title="Results used",
    meaning="The share of tool results of which something occurs in what follows. An estimate by words and numbers.",
    formula="1 − unused / results that hold a number or a word that neither the input nor the call's arguments have",
    source=SOURCE,
    measure=_results_used,
    bands=at_least(good=0.9, acceptable=0.5),
    methods=(Method.LEXICAL,),
    undefined="contents were not captured; not applicable where no result holds anything distinctive",
)
