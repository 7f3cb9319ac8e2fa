"""Shown: the parts of one case as a prompt shows them, each fenced and measured once.

Of a run that does not fit a judge's context, an outline, with the steps that matter most in full: for questions about a
conversation, a transcript or calls of tools. What else they show stands whole, or is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.metrics.trajectory_selection import outline, requests_of, select
from sidejudge.scoring.metrics.trajectory_steps import MOST_STEPS
from sidejudge.scoring.rubrics.trajectory_signs import trajectory

from .layout import fence
from .parts import part

NOT_GIVEN = "(not given)"


class PromptMaterial:
    """One case. What it lacks, and what is ``left_out``, is marked as not given.

    ``in_place`` are texts in place of parts, each with a note of ours on what it is.
    """

    def __init__(
        self, case: Case, left_out: Collection[str] = (), in_place: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self._case, self._left_out, self._in_place = case, left_out, in_place or {}
        self._fenced: dict[str, str | None] = {}
        self._tokens: dict[str, int] = {}

    def fenced(self, name: str) -> str | None:
        """The part as data; None when the case does not have it."""
        if name not in self._fenced:
            found = None if name in self._left_out else part(self._case, name)
            self._fenced[name] = None if found is None else fence(name, found)
        return self._fenced[name]

    def titled(self, name: str) -> str:
        """The part under its name."""
        if name in self._in_place:
            note, text = self._in_place[name]
            return f"{name} ({note})" + (f":\n{fence(name, text)}" if text else "")
        fenced = self.fenced(name)
        return f"{name}: {NOT_GIVEN}" if fenced is None else f"{name}:\n{fenced}"

    def in_line(self, name: str) -> str:
        """The part where a line of a template goes on with it."""
        fenced = self.fenced(name)
        return NOT_GIVEN if fenced is None else f"\n{fenced}"

    def tokens(self, name: str) -> int:
        """Tokens of the part under its name."""
        if name not in self._tokens:
            self._tokens[name] = estimate(self.titled(name))
        return self._tokens[name]


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
