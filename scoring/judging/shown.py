"""Shown: the parts of one case as a prompt shows them, each fenced and measured once.

Where a run does not fit a judge's context, questions about a conversation, transcript or tool calls show an outline of
it, with the most important steps in full. Their other parts are shown whole, or the question is not asked.
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
    """One case. Parts that it lacks or that are ``left_out`` are marked as not given.

    ``in_place`` holds texts that replace parts, each with our note on what it is.
    """

    def __init__(
        self, case: Case, left_out: Collection[str] = (), in_place: Mapping[str, tuple[str, str]] | None = None
    ) -> None:
        self._case, self._left_out, self._in_place = case, left_out, in_place or {}
        self._fenced: dict[str, str | None] = {}
        self._tokens: dict[str, int] = {}

    def fenced(self, name: str) -> str | None:
        """The part as data; None when the case lacks it."""
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
        """The part as the continuation of a template's line."""
        fenced = self.fenced(name)
        return NOT_GIVEN if fenced is None else f"\n{fenced}"

    def tokens(self, name: str) -> int:
        """Tokens of the part under its name."""
        if name not in self._tokens:
            self._tokens[name] = estimate(self.titled(name))
        return self._tokens[name]


RUN: Final = ("transcript", "conversation", "tools")
"""The parts of a case that an outline can replace: they show what happened in the run."""
LEAST: Final = 1_000
"""Tokens below which an outline shows too little of a run to judge by."""
_FOR_LINES: Final = 4
"""One of this many parts of the tokens goes to one-line steps at most, the rest to steps in full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Part of a run. ``shown`` of ``steps`` are in full; they hold ``share`` of the tokens of all steps."""

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
