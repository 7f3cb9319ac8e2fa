"""Pieces of context by their words: which of them a text draws on, as far as words and amounts show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.claims import stems, words_of
from sidejudge.scoring.lexical.facts import numbers
from sidejudge.scoring.lexical.lexicon import AGENT_WORDS, CUSTOMER_WORDS, STOPWORDS

from .stated import sentences

BUDGET = 1_000_000
"""Places that tracing one text may visit."""
_SHARED = 2
_SHARE = 0.5
"""A statement draws on a place with which it shares two words or figures at least, and half of its own."""
_WINDOW = 2
"""Sentences of a document that are one place: a statement may join two."""
_LIGHT = STOPWORDS | AGENT_WORDS | CUSTOMER_WORDS


class TooMuchError(SidejudgeError, ValueError):
    """Tracing would cost more than ``BUDGET``."""


class Pieces:
    """Pieces, indexed once to find which of them statements draw on."""

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

        ``TooMuchError`` when it would cost too much.

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
