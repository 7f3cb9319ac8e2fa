"""Highlights of a summary: which of the reference's the model captured, and which of its own are correct."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .assignment import maximum_matching
from .case import Case
from .effects import Answer, NoAnswer, Reply, Steps
from .questions.text import CorrectHighlight, SameHighlight
from .result import Failed, Judgement, Method, Scored, Unavailable
from .settle import settle, truth
from .structure import shown
from .summary import MAX_FACTS, known_texts, summaries, why
from .text import normalise

MAX_PAIRS = 2500
"""Pairs of highlights that are compared: fifty on either side. A summary has some five."""


def highlight_recall(case: Case) -> Steps:
    """Share of the reference's highlights that the model has, matched one to one, as many as can be."""
    both = summaries(case, highlights="array")
    if isinstance(both, Unavailable):
        return both
    wanted, found = both[0].highlights, both[1].highlights
    if not wanted or not found:
        return Scored(value=float(not wanted and not found), reason=f"{len(wanted)} expected, {len(found)} given")
    missed, spare = _equal(wanted, found)
    if not missed or not spare:
        return _recall(wanted, missed, Method.EXACT)
    if len(missed) * len(spare) > MAX_PAIRS:
        return Unavailable(f"more than {MAX_PAIRS} pairs of highlights to compare")
    questions = [SameHighlight(one, other) for one in missed for other in spare]
    replies = yield tuple(questions)
    answered = [reply for reply in replies if isinstance(reply, Answer)]
    settled = settle(answered, truth)
    if not isinstance(settled, tuple):
        return settled
    _, method, judgements = settled
    certain = _largest(len(missed), replies, open_ones=False)
    if len(certain) < len(_largest(len(missed), replies, open_ones=True)):
        # A pair that nobody could judge would matter.
        refused = settle([reply for reply in replies if isinstance(reply, NoAnswer)], truth)
        return refused if isinstance(refused, Unavailable | Failed) else Unavailable("a pair was not judged")
    left = [one for at, one in enumerate(missed) if at not in certain]
    return _recall(wanted, left, method, judgements)


def _equal(wanted: Sequence[str], found: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is left on either side once equal texts are matched.

    That costs no match: what says the same as one of two equal texts says the same as the other.
    """
    by_text = Counter(map(normalise, wanted)) & Counter(map(normalise, found))
    return _without(wanted, by_text.copy()), _without(found, by_text.copy())


def _without(highlights: Sequence[str], matched: Counter[str]) -> list[str]:
    left: list[str] = []
    for one in highlights:
        if matched[normalise(one)] > 0:
            matched[normalise(one)] -= 1
        else:
            left.append(one)
    return left


def _largest(wanted: int, replies: Sequence[Reply], *, open_ones: bool) -> dict[int, int]:
    """A largest matching of pairs that hold; with ``open_ones``, as if those without an answer held too."""
    across = len(replies) // wanted
    holds = [reply.value is True if isinstance(reply, Answer) else open_ones for reply in replies]
    return maximum_matching([[j for j in range(across) if holds[i * across + j]] for i in range(wanted)])


def _recall(wanted: Sequence[str], missed: list[str], method: Method, judgements: tuple[Judgement, ...] = ()) -> Scored:
    matched = len(wanted) - len(missed)
    return Scored(
        value=matched / len(wanted),
        method=method,
        reason=f"{matched} of {len(wanted)} highlights" + (f"; missed: {shown(missed)[0]}" if missed else ""),
        details={"missed": shown(missed)},
        judgements=judgements,
    )


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
    values, method, judgements = settled
    refuted = {one for one, held in zip(open_ones, values, strict=True) if not held}
    wrong = [one for one in found if one in refuted]
    return Scored(
        value=(len(found) - len(wrong)) / len(found),
        method=method,
        reason=f"{len(found) - len(wrong)} of {len(found)} highlights"
        + (f"; wrong: {shown(wrong)[0]} ({why(replies, values)})" if wrong else ""),
        details={"wrong": shown(wrong)},
        judgements=judgements,
    )
