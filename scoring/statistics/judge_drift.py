"""Judge drift: answers to the same prompts before and now come in, the measures that moved go out.

A prompt that is the same to the last byte excludes the application as a cause. Each measure is tested twice. Did its
answers move in one direction (``paired``: McNemar's test for a yes or no, signed ranks for numbers, Bowker's for
categories)? And do more of them differ than before, since a judge that mixes up its answers moves in no direction? The
number that differ without a cause is learned from earlier rounds (``quiet``); at first it is six of forty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

from .paired import changed_more, signed_ranks, symmetry

LEAST: Final = 10
"""Fewest prompts for a conclusion."""
_WITHOUT_CAUSE: Final = (6.0, 40.0)
"""(differing answers, answers) that are assumed when a judge is asked again, before anything is known of it."""
Answered: TypeAlias = float | str
"""A number, a yes as 1, or the name of a category."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDrift:
    """One measure of the judge's answers to ``n`` prompts: ``higher`` and ``lower`` than before, ``changed`` in all.

    Categories are neither higher nor lower; a slightly higher grade does not count as ``changed``. ``p`` comes from the
    stronger of both tests, doubled because there are two; at ``error`` or below the judge moved. ``error`` is this
    look's share of the promised chance of a false alarm.
    """

    metric: str
    n: int
    higher: int
    lower: int
    p: float
    error: float
    changed: int = 0

    @property
    def moved(self) -> bool | None:
        """Whether chance cannot explain it; None for too few prompts."""
        return None if self.n < LEAST else self.p <= self.error

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return asdict(self)


def drifts(
    pairs: Iterable[tuple[Mapping[str, Answered], Mapping[str, Answered]]],
    error: float,
    *,
    far: Mapping[str, float] | None = None,
    quiet: Mapping[str, tuple[float, float]] | None = None,
) -> list[JudgeDrift]:
    """The measures' drifts, the surest movement first.

    Args:
        pairs: measures before and now, one pair for each prompt.
        error: chance of a false alarm of this look, shared by all measures (Bonferroni).
        far: by measure, the least difference of two numbers that makes them different answers; other numeric measures
            are only tested for a direction. Categories need none.
        quiet: by measure, how many answers differed (first) of how many (second) while nothing had happened.
    """
    found: dict[str, list[tuple[Answered, Answered]]] = {}
    for before, now in pairs:
        for metric in before.keys() & now.keys():
            found.setdefault(metric, []).append((before[metric], now[metric]))
    listed = [
        _drift(metric, each, error / len(found), (far or {}).get(metric), (quiet or {}).get(metric, (0.0, 0.0)))
        for metric, each in found.items()
    ]
    return sorted(listed, key=lambda each: (each.p, each.metric))


def _drift(
    metric: str, pairs: list[tuple[Answered, Answered]], error: float, far: float | None, quiet: tuple[float, float]
) -> JudgeDrift:
    differences = [y - x for x, y in pairs if isinstance(x, int | float) and isinstance(y, int | float)]
    named = [(x, y) for x, y in pairs if isinstance(x, str) and isinstance(y, str)]
    changed = sum(x != y for x, y in named)
    p = symmetry(named) if named else signed_ranks(differences)
    if named or far is not None:
        changed += sum(abs(each) > (far or 0.0) for each in differences)
        without_cause = (quiet[0] + _WITHOUT_CAUSE[0], quiet[1] + _WITHOUT_CAUSE[1])
        p = min(1.0, 2 * min(p, changed_more(changed, len(pairs), without_cause)))
    return JudgeDrift(
        metric=metric, n=len(pairs), higher=sum(each > 0 for each in differences),
        lower=sum(each < 0 for each in differences), p=p, error=error, changed=changed,
    )  # fmt: skip
