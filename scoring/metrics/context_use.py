"""Context use: the pieces of context that an output draws on, compared with those that the expected outcome draws on.

The pieces are the case's retrieved documents, else the turns of its transcript (rubrics §7). Shared words and amounts
show which pieces a text draws on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.conversation import transcript_turns
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.claims import stems, words_of
from sidejudge.scoring.lexical.facts import numbers
from sidejudge.scoring.lexical.lexicon import AGENT_WORDS, CUSTOMER_WORDS, STOPWORDS
from sidejudge.scoring.questions.kinds import PiecesNeeded, PiecesUsed
from sidejudge.scoring.questions.question import Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, own, together
from sidejudge.scoring.result.result import Judgement, Method, Scored

from .correctness import both_sides
from .settle import settled, unavailable
from .stated import sentences

MAX_PIECES = 2000
"""Most pieces of context that are distinguished."""
_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUse:
    """Numbers, from 0, of the used and of the needed pieces."""

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
    return _scored(found, found.precision, _of_used(found))


def contextual_recall(case: Case) -> Steps:
    """The share of the needed context that the model used."""
    found = yield from _context_use(case)
    return _scored(found, found.recall, _of_needed(found))


def contextual_relevancy(case: Case) -> Steps:
    """The average of precision and recall."""
    found = yield from _context_use(case)
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


def _context_use(case: Case) -> Generator[tuple[Question, ...], Sequence[Reply], ContextUse]:
    both_sides(case)
    of = "documents" if case.context else "turns"
    pieces = case.context or tuple(turn.text for turn in transcript_turns(case))
    if not pieces:
        raise unavailable(Reason("neither context nor transcript has a piece"))
    if len(pieces) > MAX_PIECES:
        raise unavailable(Reason("more than {most} pieces of context", most=MAX_PIECES))
    replies = yield PiecesUsed(pieces), PiecesNeeded(pieces)
    (used, needed), method, judgements = settled(replies, lambda value: _marked(value, len(pieces)))
    return ContextUse(used=used, needed=needed, of=of, method=method, judgements=judgements)


def _marked(value: object, count: int) -> frozenset[int]:
    if not isinstance(value, list | tuple) or len(value) != count or not all(isinstance(one, bool) for one in value):
        raise ValueError(f"expected {count} times true or false")
    return frozenset(at for at, one in enumerate(value) if one)


BUDGET = 1_000_000
"""Most places that tracing one text may visit."""
_SHARED = 2
_SHARE = 0.5
"""A statement draws on a place with which it shares at least two words or figures, and this share of its own."""
_WINDOW = 2
"""Sentences of a document that form one place: a statement may join two."""
_LIGHT = STOPWORDS | AGENT_WORDS | CUSTOMER_WORDS


class TooMuchError(SidejudgeError, ValueError):
    """Tracing would cost more than ``BUDGET``."""


class Pieces:
    """Pieces, indexed once to find the ones that statements draw on."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._where: dict[str, list[int]] = {}
        self._piece_of: list[int] = []
        for at, piece in enumerate(pieces):
            parts = [_units(sentence) for sentence in sentences(piece)]
            for start in range(max(1, len(parts) - _WINDOW + 1)):
                self._add(at, frozenset().union(*parts[start : start + _WINDOW]))

    def _add(self, piece: int, units: frozenset[str]) -> None:
        place = len(self._piece_of)
        self._piece_of.append(piece)
        for unit in units:
            self._where.setdefault(unit, []).append(place)

    def drawn_on(self, statements: Iterable[str]) -> frozenset[int] | None:
        """Numbers of the pieces; None when words cannot decide: too few statements can be traced to any piece.

        ``TooMuchError`` when it would take too much work.

        >>> pieces = Pieces(["I see the duplicate charge of $49.", "The weather is fine."])
        >>> sorted(pieces.drawn_on(["Duplicate charge confirmed"]))
        [0]
        """
        found: set[int] = set()
        traced = reported = cost = 0
        for statement in statements:
            units = _units(statement)
            if len(units) < _SHARED:
                continue
            reported += 1
            cost += sum(len(self._where.get(unit, ())) for unit in units)
            if cost > BUDGET:
                raise TooMuchError(f"tracing this would cost more than {BUDGET} steps")
            shared = Counter(place for unit in units for place in self._where.get(unit, ()))
            enough = max(_SHARED, _SHARE * len(units))
            places = [place for place, count in shared.items() if count >= enough]
            found.update(self._piece_of[place] for place in places)
            traced += bool(places)
        return frozenset(found) if 2 * traced >= reported > 0 else None


def _units(text: str) -> frozenset[str]:
    """Stems of content words, and figures."""
    words = [word for word in words_of(text) if word not in _LIGHT and not word.isdigit() and len(word) > 1]
    return frozenset(stems(words)) | {f"#{value}" for number in numbers(text) for value in number.values}
