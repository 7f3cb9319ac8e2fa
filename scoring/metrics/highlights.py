"""Highlights of a summary: which of the reference's the model captured, and which of its own are correct."""

from __future__ import annotations

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.text import normalise
from sidejudge.scoring.questions.question import Steps
from sidejudge.scoring.questions.text import CorrectHighlight, SameHighlight
from sidejudge.scoring.result.reason import Reason, quoted
from sidejudge.scoring.result.result import Scored, Unavailable

from .pairing import Pairing, pair_up
from .settle import settle, truth
from .structure import shown
from .summary import MAX_FACTS, known_texts, named_first, summaries


def highlight_recall(case: Case) -> Steps:
    """Share of the reference's highlights that the model has, matched one to one, as many as can be."""
    both = summaries(case, highlights="array")
    if isinstance(both, Unavailable):
        return both
    wanted, found = both[0].highlights, both[1].highlights
    if not wanted or not found:
        return Scored(
            value=float(not wanted and not found),
            reason=Reason("{n} expected, {given} given", n=len(wanted), given=len(found)),
        )
    paired = yield from pair_up(wanted, found, SameHighlight, "highlights")
    if not isinstance(paired, Pairing):
        return paired
    missed = list(paired.missed)
    matched = len(wanted) - len(missed)
    return Scored(
        value=matched / len(wanted),
        method=paired.method,
        reason=Reason("{n} of {all} highlights", n=matched, all=len(wanted))
        + (Reason("; missed: {first}", first=quoted(str(shown(missed)[0]))) if missed else ""),
        details={"missed": shown(missed)},
        judgements=paired.judgements,
    )


def highlight_correctness(case: Case) -> Steps:
    """Share of the model's highlights that nothing contradicts and whose figures and names stand somewhere."""
    both = summaries(case, highlights="array")
    if isinstance(both, Unavailable):
        return both
    found, known = both[1].highlights, known_texts(both[0])
    if not found:
        return Scored(value=float(not both[0].highlights), reason=Reason("the model gave no highlight"))
    open_ones = tuple(dict.fromkeys(one for one in found if normalise(one) not in known))
    if not open_ones:
        return Scored(value=1.0, reason=Reason("all {n} stand in the reference", n=len(found)))
    if len(open_ones) > MAX_FACTS:
        return Unavailable(Reason("more than {most} highlights to look up", most=MAX_FACTS))
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
        reason=Reason("{n} of {all} highlights", n=len(found) - len(wrong), all=len(found))
        + (named_first("; wrong: ", wrong, replies, values) if wrong else ""),
        details={"wrong": shown(wrong)},
        judgements=judgements,
    )
