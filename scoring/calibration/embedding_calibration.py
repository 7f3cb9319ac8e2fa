"""Embedding calibration: cosines of pairs that people labelled same or different in, the model's thresholds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from sidejudge.scoring.evaluators.embedding import SAME_ENTITY, SAME_STATEMENT, states
from sidejudge.scoring.questions.question import NoAnswer
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED, wilson

PairKind: TypeAlias = Literal["statement", "entity"]
KINDS: Final[tuple[PairKind, ...]] = get_args(PairKind)
OF_THE_SEED: Final[dict[PairKind, float]] = {"statement": SAME_STATEMENT, "entity": SAME_ENTITY}
LEAST: Final = 10
"""Pairs of each sort, same and different, below which nothing is fitted."""
_ALIKE: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningPair:
    """Two names or statements, and whether people call them the same."""

    kind: PairKind
    one: str
    other: str
    same: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """How well a threshold separates: the shares of same pairs at or above it, and of different ones below it.

    ``balanced`` is the mean of both; the bounds are its 95 % interval, from those of the shares.
    """

    threshold: float
    same: float
    different: float
    balanced: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedThreshold:
    """The threshold of one kind. ``expected`` is its balanced accuracy on pairs that it was not fitted to.

    The expectation is found by leaving out one pair at a time. ``excluded`` pairs are settled by figures or denials, or
    left to a judge, whatever their cosine.
    """

    kind: PairKind
    n_same: int
    n_different: int
    excluded: int
    fitted: Separation | Unavailable
    expected: float | None
    seed: Separation | Unavailable


def fit(kind: PairKind, pairs: Sequence[tuple[MeaningPair, float]]) -> FittedThreshold:
    """The threshold that separates the pairs of a kind best, by balanced accuracy.

    Args:
        kind: names or statements.
        pairs: each with the cosine of its two texts.
    """
    mine = [(pair, cosine) for pair, cosine in pairs if pair.kind == kind]
    cosines = [(cosine, pair.same) for pair, cosine in mine if kind == "entity" or _by_cosine(pair)]
    same = sum(stated for _, stated in cosines)
    different = len(cosines) - same
    few = Unavailable(f"{same} same and {different} different pairs; {LEAST} of each are needed")
    enough = min(same, different) >= LEAST
    return FittedThreshold(
        kind=kind, n_same=same, n_different=different, excluded=len(mine) - len(cosines),
        fitted=_separation(cosines, _best(cosines)) if enough else few,
        expected=_left_out(cosines) if enough else None,
        seed=_separation(cosines, OF_THE_SEED[kind]) if enough else few,
    )  # fmt: skip


def _by_cosine(pair: MeaningPair) -> bool:
    """Whether the cosine decides: neither figures nor denials do."""
    reply = states(pair.one, pair.other, _ALIKE, -1.0, more_is_less=True)
    return not isinstance(reply, NoAnswer) and reply.value is True


def _best(cosines: Sequence[tuple[float, bool]]) -> float:
    """The threshold with the highest balanced accuracy; of several, the middle of the widest gap between two pairs."""
    ordered = sorted(cosines)
    same = sum(stated for _, stated in ordered)
    different = len(ordered) - same
    found: tuple[float, float, float] | None = None
    above, below = same, 0
    for place, (cosine, stated) in enumerate(ordered[:-1]):
        above -= stated
        below += not stated
        gap = ordered[place + 1][0] - cosine
        if gap > 0:
            candidate = (above / same + below / different, gap, cosine + gap / 2)
            found = candidate if found is None or candidate[:2] > found[:2] else found
    return round(found[2], 3) if found is not None else ordered[0][0]


def _separation(cosines: Sequence[tuple[float, bool]], threshold: float) -> Separation:
    above = [cosine >= threshold for cosine, stated in cosines if stated]
    below = [cosine < threshold for cosine, stated in cosines if not stated]
    bounds = [wilson(sum(hits), len(hits), Z_95_TWO_SIDED) for hits in (above, below)]
    shares = [sum(hits) / len(hits) for hits in (above, below)]
    return Separation(
        threshold=threshold, same=shares[0], different=shares[1], balanced=sum(shares) / 2,
        lower=sum(each.lower for each in bounds if each) / 2, upper=sum(each.upper for each in bounds if each) / 2,
    )  # fmt: skip


def _left_out(cosines: Sequence[tuple[float, bool]]) -> float:
    """Balanced accuracy over the pairs, each judged by the threshold fitted to all others."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for place, (cosine, stated) in enumerate(cosines):
        threshold = _best([*cosines[:place], *cosines[place + 1 :]])
        hits[stated].append((cosine >= threshold) is stated)
    return sum(sum(each) / len(each) for each in hits.values()) / 2
