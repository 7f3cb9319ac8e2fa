"""Selection: the steps of a long run that are shown in full within a budget of tokens, and the outline of all steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from sidejudge.scoring.lexical.token_estimate import characters, estimate
from sidejudge.scoring.trace.span import SpanKind

from .trajectory_steps import Trajectory, TrajectoryStep

_BY_SIGNS: Final = 0.85
"""Share of the tokens for steps chosen by their own signs, before the steps that they rest on are added."""
_LONG: Final = 0.25
"""Least multiple of the average step's length for a long step, which needs more signs to be shown."""
INSTRUCTIONS: Final = 2_500
"""Approximate tokens of one request's instructions, task and schema."""
_FOR_THE_END: Final = 8
"""One of this many parts of a run's tokens goes to its last steps, which show what it achieved."""
PLAIN: Final = 2.5
"""Least weight of a sign that shows a step of any length before others."""
_MOST_OF_ONE: Final = 0.25
"""Largest share of the tokens for one step."""
_GROUND: Final = 0.05
"""Largest share of the tokens for a step that others rest on."""
_BASE: Final[Mapping[SpanKind, float]] = {SpanKind.LLM: 1.0, SpanKind.AGENT: 0.3}
"""The worth of a step without any sign, by kind: models decide, tools obey."""
_REST: Final = 0.1
"""The same for all other kinds."""
_NEAR: Final = 1
"""Steps before and after a shown one whose lines stay in a folded outline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A run's tokens for the judge: a share of its own, from ``least`` to ``most``, ``request`` in one request."""

    share: float = 0.10
    least: int = 20_000
    most: int = 200_000
    request: int = 20_000

    def tokens(self, run: Trajectory) -> int:
        """Tokens of prompts for this run, all requests together."""
        return max(self.least, min(self.most, int(self.share * run.recorded)))

    def outline_tokens(self, run: Trajectory) -> int:
        """Tokens that the outline may take in each request."""
        return min(self.request // 3, self.tokens(run) // 8)

    def shown_tokens(self, run: Trajectory) -> int:
        """Tokens of steps in full in one request, besides the outline and the questions."""
        return self.request - self.outline_tokens(run) - INSTRUCTIONS

    def for_steps(self, run: Trajectory, outline: int) -> int:
        """Tokens that remain for steps in full, where each request repeats an outline of this many tokens.

        One request is spent on the run's achievement, and one on the choice of further steps.
        """
        each, shown = outline + INSTRUCTIONS, self.shown_tokens(run)
        left = self.tokens(run) - 2 * each - min(shown, self.tokens(run) // _FOR_THE_END)
        return max(0, left - max(1, -(-left // (each + shown))) * each)

    def for_end(self, run: Trajectory) -> int:
        """Tokens of the last steps in full, which show what the run achieved."""
        return min(self.shown_tokens(run), self.tokens(run) // _FOR_THE_END)


def select(run: Trajectory, tokens: int, *, first: Sequence[int] = ()) -> tuple[int, ...]:
    """The numbers of the steps to show in full within this many tokens, in order.

    Args:
        run: the steps with their signs.
        tokens: their budget together.
        first: numbers of steps that come first, the most wanted first.
    """
    chosen: dict[int, None] = {}
    left = tokens
    unit = max(1.0, _LONG * run.tokens / max(1, len(run.steps)))

    def take(step: TrajectoryStep, most: float) -> bool:
        nonlocal left
        if step.number in chosen or step.tokens > min(left, most):
            return False
        chosen[step.number] = None
        left -= step.tokens
        return True

    for number in first:
        if number in run:
            take(run[number], tokens)
    ordered = sorted(run.steps, key=lambda step: (-_worth(step, unit), step.number))
    kept_back = (1 - _BY_SIGNS) * left
    plain = [step for step in run.steps if max(step.signs.values(), default=0.0) >= PLAIN]
    for step in (*sorted(plain, key=lambda step: (-_telling(step), step.number)), *ordered):
        if left - step.tokens >= kept_back:
            take(step, _MOST_OF_ONE * tokens)
    for number in list(chosen):
        for ground in run[number].rests_on:
            take(run[ground], _GROUND * tokens)
    for step in ordered:
        take(step, tokens)
    return tuple(sorted(chosen))


def _worth(step: TrajectoryStep, unit: float) -> float:
    """The worth of a step relative to its length, in units of this many tokens."""
    return _telling(step) / (1 + step.tokens / unit)


def _telling(step: TrajectoryStep) -> float:
    signs = sorted(step.signs.values(), reverse=True)
    return math.fsum(weight * 0.5**rank for rank, weight in enumerate(signs)) + _BASE.get(step.span.kind, _REST)


def outline(run: Trajectory, tokens: int, near: Collection[int] = ()) -> str:
    """A line for each step; where these exceed the tokens, steps without a sign are summarised by their number.

    Args:
        run: the steps.
        tokens: the budget of the outline.
        near: numbers of steps whose surrounding lines stay.
    """
    lines = [step.line() for step in run.steps]
    if sum(map(estimate, lines)) + len(lines) <= tokens:
        return "\n".join(lines)
    kept = {number + by for number in near for by in range(-_NEAR, _NEAR + 1)}
    telling = sorted(
        (step for step in run.steps if step.signs or step.number in kept),
        key=lambda step: (step.number not in kept, -max(step.signs.values(), default=0.0), step.number),
    )
    whole: set[int] = set()
    left = tokens // 2  # folded stretches take the rest, a line between two that are kept
    for step in telling:
        needed = estimate(lines[step.number - 1])
        if needed > left:
            break
        whole.add(step.number)
        left -= needed
    return "\n".join(_folded(run.steps, lines, whole))


def _folded(steps: Sequence[TrajectoryStep], lines: Sequence[str], whole: Collection[int]) -> Iterator[str]:
    for is_whole, group in groupby(steps, key=lambda step: step.number in whole):
        found = list(group)
        if is_whole or len(found) == 1:
            yield from (lines[step.number - 1] for step in found)
            continue
        kinds: dict[str, int] = {}
        for step in found:
            kinds[step.span.kind.value] = kinds.get(step.span.kind.value, 0) + 1
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        yield f"{found[0].number}-{found[-1].number}: {counts}"


def requests_of(run: Trajectory, shown: Sequence[int], tokens: int) -> tuple[tuple[tuple[int, ...], str], ...]:
    """The shown steps divided into texts of at most this many tokens: the numbers in each, and the text.

    A step that is longer than one text is divided among several; nothing of it is left out.
    """
    groups: list[tuple[tuple[int, ...], str]] = []
    numbers: list[int] = []
    texts: list[str] = []
    left = tokens
    for number in shown:
        step = run[number]
        parts = [step.full()] if step.tokens <= tokens else list(_parts(step, tokens))
        for text in parts:
            needed = estimate(text)
            if texts and needed > left:
                groups.append((tuple(numbers), "\n\n".join(texts)))
                numbers, texts, left = [], [], tokens
            if not numbers or numbers[-1] != number:
                numbers.append(number)
            texts.append(text)
            left -= needed
    return (*groups, *(((tuple(numbers), "\n\n".join(texts)),) if texts else ()))


def _parts(step: TrajectoryStep, tokens: int) -> Iterator[str]:
    """A long step in parts, each under its heading."""
    text = "\n".join(step.body())
    pieces: list[str] = []
    at, most = 0, characters(tokens - 32)
    while at < len(text):
        end = len(text)
        while end - at > most or estimate(text[at:end]) > tokens - 32:
            end = at + max(1, (end - at) * 2 // 3)
        pieces.append(text[at:end])
        at = end
    for number, piece in enumerate(pieces, 1):
        yield f"=== step {step.number} · {step.who} · part {number} of {len(pieces)}\n{piece}"
