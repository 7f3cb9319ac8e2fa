"""Context use: which pieces of context an output draws on, beside those that the expected outcome takes.

Pieces are the case's retrieved documents, else the turns of its transcript (rubrics §7).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.conversation import transcript_turns
from sidejudge.scoring.questions.benchmarks import PiecesNeeded, PiecesUsed
from sidejudge.scoring.questions.question import Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, own, together
from sidejudge.scoring.result.result import Failed, Judgement, Method, Scored, Unavailable

from .settle import settle

MAX_PIECES = 2000
"""Pieces of context that are distinguished."""
_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUse:
    """Numbers, from 0, of the pieces that were used and of those that were needed."""

    used: frozenset[int]
    needed: frozenset[int]
    of: str
    method: Method = Method.EXACT
    judgements: tuple[Judgement, ...] = ()

    @property
    def precision(self) -> float:
        """Needed pieces used over pieces used.

        >>> ContextUse(used=frozenset({0, 1}), needed=frozenset({0}), of="turns").precision
        0.5
        """
        return self._over(self.used)

    @property
    def recall(self) -> float:
        """Needed pieces used over pieces needed."""
        return self._over(self.needed)

    def _over(self, those: frozenset[int]) -> float:
        # Nothing used and nothing needed: 1; one of them only: 0 (rubrics §1.2).
        return len(self.used & self.needed) / len(those) if those else float(self.used == self.needed)


def contextual_precision(case: Case) -> Steps:
    """The share of the used context that was needed."""
    found = yield from _context_use(case)
    return _scored(found, found.precision, _of_used(found)) if isinstance(found, ContextUse) else found


def contextual_recall(case: Case) -> Steps:
    """The share of the needed context that the model used."""
    found = yield from _context_use(case)
    return _scored(found, found.recall, _of_needed(found)) if isinstance(found, ContextUse) else found


def contextual_relevancy(case: Case) -> Steps:
    """The average of precision and recall."""
    found = yield from _context_use(case)
    if not isinstance(found, ContextUse):
        return found
    return _scored(found, (found.precision + found.recall) / 2, together((_of_used(found), _of_needed(found)), ", "))


def _of_used(found: ContextUse) -> Reason:
    both = len(found.used & found.needed)
    return Reason("{n} of {all} {pieces} used were needed", n=both, all=len(found.used), pieces=own(found.of))


def _of_needed(found: ContextUse) -> Reason:
    both = len(found.used & found.needed)
    return Reason("{n} of {all} {pieces} needed were used", n=both, all=len(found.needed), pieces=own(found.of))


def _scored(found: ContextUse, value: float, reason: Reason) -> Scored:
    return Scored(
        value=value,
        method=found.method,
        reason=reason,
        details={"used": sorted(found.used)[:_SHOWN], "needed": sorted(found.needed)[:_SHOWN]},
        judgements=found.judgements,
    )


def _context_use(case: Case) -> Generator[tuple[Question, ...], Sequence[Reply], ContextUse | Unavailable | Failed]:
    if case.expected_outcome is None:
        return Unavailable(Reason("no expected_outcome"))
    if case.model_output is None:
        return Unavailable(Reason("no output: model_output is null"))
    of = "documents" if case.context else "turns"
    pieces = case.context or tuple(turn.text for turn in transcript_turns(case))
    if not pieces:
        return Unavailable(Reason("neither context nor transcript has a piece"))
    if len(pieces) > MAX_PIECES:
        return Unavailable(Reason("more than {most} pieces of context", most=MAX_PIECES))
    replies = yield PiecesUsed(pieces), PiecesNeeded(pieces)
    settled = settle(replies, lambda value: _marked(value, len(pieces)))
    if not isinstance(settled, tuple):
        return settled
    (used, needed), method, judgements = settled
    return ContextUse(used=used, needed=needed, of=of, method=method, judgements=judgements)


def _marked(value: object, count: int) -> frozenset[int]:
    if not isinstance(value, list | tuple) or len(value) != count or not all(isinstance(one, bool) for one in value):
        raise ValueError(f"expected {count} times true or false")
    return frozenset(at for at, one in enumerate(value) if one)
