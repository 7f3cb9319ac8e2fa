"""Outlined: a run that does not fit a judge's context in, its outline with the steps that matter most in full out.

For questions about a conversation, a transcript or calls of tools. What else they show stands whole, or is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.metrics.trajectory_selection import outline, requests_of, select
from sidejudge.scoring.metrics.trajectory_steps import MOST_STEPS
from sidejudge.scoring.rubrics.trajectory_signs import trajectory

from .parts import part

RUN: Final = ("transcript", "conversation", "tools")
"""The parts of a case in whose place an outline can stand: they show what happened in the run."""
LEAST: Final = 1_000
"""Tokens below which an outline shows too little of a run to judge by."""
_FOR_LINES: Final = 4
"""Of so many parts of the tokens one may go to the lines of the steps, the rest to steps in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A run in part. ``shown`` of ``steps`` stand in full, which is ``share`` of the tokens of all of them."""

    text: str
    shown: int
    steps: int
    share: float

    @property
    def extent(self) -> str:
        """What was shown, in words."""
        return f"an outline of the run with {self.shown} of {self.steps} steps in full, {self.share:.0%} of its tokens"


def run_parts(case: Case, names: Sequence[str]) -> tuple[str, ...]:
    """The named parts that an outline can replace; none where the case has no steps to outline."""
    given = tuple(name for name in names if name in RUN and part(case, name) is not None)
    too_many = case.trace is not None and len(case.trace.spans) > MOST_STEPS
    return given if given and not too_many and case.once(trajectory).steps else ()


def outlined(case: Case, tokens: int) -> Outline:
    """The run in at most so many tokens."""
    run = case.once(trajectory)
    for_lines = tokens // _FOR_LINES
    chosen = select(run, tokens - min(for_lines, estimate(outline(run, for_lines))))
    lines = outline(run, for_lines, chosen)
    full = "".join(f"\n\n{text}" for _, text in requests_of(run, chosen, tokens))
    share = sum(run[number].tokens for number in chosen) / max(1, run.tokens)
    return Outline(text=lines + full, shown=len(chosen), steps=len(run.steps), share=share)
