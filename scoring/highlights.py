"""Highlights of a summary: which of the reference's the model captured, and which of its own are correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from typing import TypeAlias

from .assignment import maximum_matching
from .case import Case
from .effects import Answer, Question, Reply, Steps
from .questions.text import CorrectHighlight, SameHighlight
from .result import Failed, Scored, Unavailable
from .settle import settle, truth
from .structure import shown
from .summary import MAX_FACTS, known_texts, summaries, why
from .text import normalise

MAX_PAIRS = 2500
"""Pairs of highlights that are compared: fifty on either side. A summary has some five."""

Pair: TypeAlias = tuple[int, int]


class _Pairing:
    """What is known of each pair (of the reference's, of the model's): equal, answered, or open."""

    def __init__(self, wanted: Sequence[str], found: Sequence[str]) -> None:
        self._wanted, self._found = wanted, found
        left, right = [normalise(one) for one in wanted], [normalise(one) for one in found]
        self._held = {
            (i, j): True if left[i] == right[j] else None for i in range(len(left)) for j in range(len(right))
        }
        self.replies: list[Reply] = []
        self.refused: list[Reply] = []

    def certain(self) -> dict[int, int]:
        """A largest matching of pairs that hold."""
        return self._largest(open_too=False)

    def possible(self) -> dict[int, int]:
        """A largest matching if every open pair held."""
        return self._largest(open_too=True)

    def questions(self, pairs: Sequence[Pair]) -> tuple[Question, ...]:
        return tuple(SameHighlight(self._wanted[i], self._found[j]) for i, j in pairs)

    def take(self, pairs: Sequence[Pair], replies: Sequence[Reply]) -> None:
        for pair, reply in zip(pairs, replies, strict=True):
            if isinstance(reply, Answer):
                self.replies.append(reply)
                self._held[pair] = truth(reply.value)
            else:
                self.refused.append(reply)

    def rounds(self) -> Iterator[list[Pair]]:
        """Open pairs: first of highlights that are not matched by their texts, then, should it matter, all others."""
        matched = self.certain()
        taken = set(matched.values())
        first = [pair for pair, held in self._held.items() if held is None and pair[0] not in matched]
        yield [pair for pair in first if pair[1] not in taken]
        asked = {pair for pair in first if pair[1] not in taken}
        yield [pair for pair, held in self._held.items() if held is None and pair not in asked]

    def _largest(self, *, open_too: bool) -> dict[int, int]:
        edges: list[list[int]] = [[] for _ in self._wanted]
        for (i, j), held in self._held.items():
            if held or (open_too and held is None):
                edges[i].append(j)
        return maximum_matching(edges)


def highlight_recall(case: Case) -> Steps:
    """Share of the reference's highlights that the model has, matched one to one, as many as can be."""
    both = summaries(case, highlights="array")
    if isinstance(both, Unavailable):
        return both
    wanted, found = both[0].highlights, both[1].highlights
    if not wanted or not found:
        return Scored(value=float(not wanted and not found), reason=f"{len(wanted)} expected, {len(found)} given")
    if not Counter(map(normalise, wanted)) - Counter(map(normalise, found)):
        return Scored(value=1.0, reason=f"all {len(wanted)} by text")
    if len(wanted) * len(found) > MAX_PAIRS:
        return Unavailable(f"more than {MAX_PAIRS} pairs of highlights to compare")
    pairing = _Pairing(wanted, found)
    unanswered = yield from _ask(pairing)
    if unanswered is not None:
        return unanswered
    settled = settle(pairing.replies, truth)
    if not isinstance(settled, tuple):
        return settled
    _, method, judgement = settled
    matched = pairing.certain()
    missed = [one for at, one in enumerate(wanted) if at not in matched]
    return Scored(
        value=len(matched) / len(wanted),
        method=method,
        reason=f"{len(matched)} of {len(wanted)} highlights" + (f"; missed: {shown(missed)[0]}" if missed else ""),
        details={"missed": shown(missed)},
        judgement=judgement,
    )


def _ask(pairing: _Pairing) -> Generator[tuple[Question, ...], Sequence[Reply], Unavailable | Failed | None]:
    """Ask while an open pair could change how many are matched; why that cannot be told, where it cannot."""
    for pairs in pairing.rounds():
        if len(pairing.certain()) == len(pairing.possible()):
            return None
        if pairs:
            replies = yield pairing.questions(pairs)
            try:
                pairing.take(pairs, replies)
            except ValueError as error:
                return Failed(f"parse_error: {error}")
    if len(pairing.certain()) == len(pairing.possible()):
        return None
    told = settle(pairing.refused, truth)
    return told if not isinstance(told, tuple) else None


def highlight_correctness(case: Case) -> Steps:
    """Share of the model's highlights that nothing contradicts and whose figures and names stand somewhere."""
    both = summaries(case, highlights="array")
    if isinstance(both, Unavailable):
        return both
    found, known = both[1].highlights, known_texts(both[0])
    if not found:
        return Scored(value=float(not both[0].highlights), reason="the model gave no highlight")
    open_ones = tuple(dict.fromkeys(one for one in found if normalise(one) not in known))
    if not open_ones:
        return Scored(value=1.0, reason=f"all {len(found)} stand in the reference")
    if len(open_ones) > MAX_FACTS:
        return Unavailable(f"more than {MAX_FACTS} highlights to look up")
    replies = yield tuple(map(CorrectHighlight, open_ones))
    settled = settle(replies, truth)
    if not isinstance(settled, tuple):
        return settled
    values, method, judgement = settled
    refuted = {one for one, held in zip(open_ones, values, strict=True) if not held}
    wrong = [one for one in found if one in refuted]
    return Scored(
        value=(len(found) - len(wrong)) / len(found),
        method=method,
        reason=f"{len(found) - len(wrong)} of {len(found)} highlights"
        + (f"; wrong: {shown(wrong)[0]} ({why(replies, values)})" if wrong else ""),
        details={"wrong": shown(wrong)},
        judgement=judgement,
    )
