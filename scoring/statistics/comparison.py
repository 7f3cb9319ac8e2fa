"""Comparison: the difference of two pass rates or two means, with an interval that holds at any look.

Verdicts come in on two sides: before and after a deployment, or versions A and B. With weights w = 1/probability::

    difference = Σ s·(mean after − mean before)                 s: a stratum's share, the mean of its two shares
    variance v = m / (m − 1) · Σ z²                             z: what one cluster of m adds to the difference, centred
    half width = sqrt((I + r) · log((I + r) / (r · error²))) / I           I = 1 / v

*Strata* (a route, a model, a language) keep a change of the mix from looking like a change of quality: only equal
strata are compared. *Clusters* (a session, a user) count as one draw each, also if on both sides. The half width is
Robbins' normal mixture in information time: the estimate at information I is to the end I·difference as a Brownian
motion is to its time, so that the chance that the true difference is *ever* outside is ``error``, whenever and however
often one looks. A fixed-look interval has no such promise: looked at daily, it finds a non-existent change within
weeks. The price is an interval 1.6 times as wide where it is tightest. The promise is that of large samples; ``r``
keeps it wide where they are small, and the variance counts four more draws on each side (Agresti and Coull), of the
largest weight: without them a side of which only the often kept failures were drawn yet would be *worse*. A draw is as
many verdicts as say what one says: the design effect of each side, by the sizes of its own clusters.

Sources: Robbins 1970, doi:10.1214/aoms/1177696786; Howard et al. 2021, doi:10.1214/20-AOS1991; Waudby-Smith et al.
2024 (asymptotic confidence sequences), doi:10.1214/24-AOS2408; information time: Jennison and Turnbull 1997,
doi:10.1080/01621459.1997.10473654; direct standardisation and linearised cluster variance: Särndal, Swensson and
Wretman 1992, §5.

>>> before = [Compared(after=False, value=float(i % 10 > 0)) for i in range(400)]
>>> after = [Compared(after=True, value=float(i % 10 > 3)) for i in range(400)]
>>> found = difference([*before, *after])
>>> round(found.difference, 3), found.upper < 0
(-0.3, True)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sidejudge.scoring.result.result import Unavailable

from .estimate import check_weight
from .interval import Z_95_TWO_SIDED

LEAST = 5
"""Fewest clusters on each side: with fewer, a variance is worth nothing."""
_MATTERS = 0.05
"""The difference of pass rates at which the interval is tightest."""
_OF_DEVIATION = 1 / 6
"""The same for other values, as a share of their standard deviation: 0.05 of a pass rate of 0.9."""
_DESIGN = 0.1
"""The share of the error that is spent on taking a side without heavy weights for one that was sampled otherwise."""
_BEYOND = 1e150
"""Values from here on have no variance that a number could hold."""
_ADDED = 4.0
"""Values of the prior variance that are added to each side of each stratum (Agresti and Coull's four)."""


class Compared(NamedTuple):
    """One value on one side: 1.0 for passed, 0.0 for failed, or a metric's value.

    ``weight`` is the inverse of the inclusion probability. Values that share a ``cluster`` belong together, those with
    none are each their own. Only values with equal ``stratum`` are compared.
    """

    after: bool
    value: float
    weight: float = 1.0
    cluster: str | None = None
    stratum: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side: ``mean`` over the strata of both sides, by their common shares; ``raw_mean`` over all values."""

    n: int
    clusters: int
    mean: float
    raw_mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """After minus before, in the unit of the values; the interval holds at all looks at once with 1 − ``error``.

    ``strata`` is the number of compared strata, ``compared`` their share of the weight, in (0, 1]: strata of only one
    side are left out. ``standard_error`` is for one look; None for quantiles.
    """

    before: ComparedSide
    after: ComparedSide
    difference: float
    lower: float
    upper: float
    error: float
    standard_error: float | None
    strata: int
    compared: float

    def is_worse(self, *, higher_is_better: bool = True) -> bool:
        """Whether *after* is convincingly worse."""
        return self.upper < 0 if higher_is_better else self.lower > 0


def difference(
    values: Iterable[Compared], *, error: float = 0.05, pass_rates: bool = True, matters: float | None = None
) -> Difference | Unavailable:
    """The difference of the two sides.

    Args:
        values: Both sides, in any order.
        error: The chance in (0, 1) that the interval is ever wrong.
        pass_rates: The values are 0 and 1. For other values the standard deviation gives the scale.
        matters: The difference at which the interval is tightest, in the unit of the values.

    Returns:
        The difference, or why there is none: a side is empty or too small, the sides share no stratum, all values of a
        side are equal, or some are too large.

    Raises:
        ValueError: For an error outside (0, 1), a non-positive weight, or a non-finite value.
    """
    if not 0 < error < 1 or (matters is not None and not 0 < matters < math.inf):
        raise ValueError(f"an error lies in (0, 1) and what matters is above 0, got {error} and {matters}")
    rows = _checked(values)
    if any(abs(row.value) >= _BEYOND for row in rows):
        return Unavailable(f"values of {_BEYOND:g} and more cannot be compared")
    cells = _cells(rows)
    shared = sorted(stratum for stratum, after in cells if not after and (stratum, True) in cells)
    totals = {side: math.fsum(c.weight for (_, after), c in cells.items() if after is side) for side in (False, True)}
    for side, name in ((False, "before"), (True, "after")):
        if not totals[side]:
            return Unavailable(f"there is nothing on the side {name}")
    if not shared:
        return Unavailable("the two sides have no stratum in common")
    shares = {h: sum(cells[h, side].weight / totals[side] for side in (False, True)) / 2 for h in shared}
    compared = math.fsum(shares.values())
    shares = {h: share / compared for h, share in shares.items()}
    used = [row for row in rows if row.stratum in shares]
    clusters = {side: len(set(_clusters(used, after=side))) for side in (False, True)}
    if min(clusters.values()) < LEAST:
        counted = f"{clusters[False]} before and {clusters[True]} after"
        return Unavailable(f"each side needs {LEAST} verdicts or clusters that can be compared; there are {counted}")
    prior = 0.25 if pass_rates else _variance(used)
    if not prior or (not pass_rates and len({(row.after, row.value) for row in used}) == 2):
        return Unavailable("the values of each side are all equal, so nothing shows how much they vary")
    spread = _robust(used, cells, shares) + _added(
        cells, shares, prior, _heaviest(used, clusters, error), _designs(used, cells, prior)
    )
    aim = matters or (_MATTERS if pass_rates else _OF_DEVIATION * math.sqrt(prior))
    half = anytime_half_width(spread, error=error, aim=aim)
    means = {side: math.fsum(shares[h] * cells[h, side].mean for h in shared) for side in (False, True)}
    between = means[True] - means[False]
    low, high = (-1.0, 1.0) if pass_rates else (-math.inf, math.inf)
    before, after = (
        ComparedSide(
            n=sum(row.after is side for row in rows), clusters=clusters[side], mean=means[side],
            raw_mean=math.fsum(c.weight * c.mean for (_, s), c in cells.items() if s is side) / totals[side],
        )
        for side in (False, True)
    )  # fmt: skip
    return Difference(
        before=before, after=after, difference=between, lower=max(low, between - half), upper=min(high, between + half),
        error=error, standard_error=math.sqrt(spread), strata=len(shared), compared=compared,
    )  # fmt: skip


def _checked(values: Iterable[Compared]) -> list[Compared]:
    rows = list(values)
    for row in rows:
        check_weight(row.weight)
        if not math.isfinite(row.value):
            raise ValueError(f"a value that is compared must be finite, got {row.value!r}")
    return rows


def anytime_half_width(variance: float, *, error: float, aim: float) -> float:
    """The half width that holds at any look, for an estimate with this variance; tightest where it finds ``aim``.

    ``aim`` and the square root of ``variance`` are in one unit, above 0.
    """
    # In units of the aim, so that nothing overflows. With a fixed look the aim is found at information z².
    information = aim * aim / variance
    mixing = Z_95_TWO_SIDED**2 / (-2 * math.log(error) + math.log1p(-2 * math.log(error)))
    held = information + mixing
    return aim * math.sqrt(held * (math.log(held / mixing) - 2 * math.log(error))) / information


class _Cell(NamedTuple):
    """One side of one stratum: Σw, the mean and its squared deviations Σw·(x − mean)² / Σw."""

    weight: float
    mean: float
    variance: float


def _cells(rows: Sequence[Compared]) -> dict[tuple[str, bool], _Cell]:
    by: dict[tuple[str, bool], list[Compared]] = {}
    for row in rows:
        by.setdefault((row.stratum, row.after), []).append(row)
    return {key: _cell(held) for key, held in by.items()}


def _cell(rows: Sequence[Compared]) -> _Cell:
    weight = math.fsum(row.weight for row in rows)
    mean = math.fsum(row.value * (row.weight / weight) for row in rows)
    spread = math.fsum((row.weight / weight) * (row.value - mean) ** 2 for row in rows)
    return _Cell(weight, mean, spread)


def _clusters(rows: Iterable[Compared], *, after: bool) -> Iterable[object]:
    return (place if row.cluster is None else row.cluster for place, row in enumerate(rows) if row.after is after)


def _variance(rows: Sequence[Compared]) -> float:
    """The variance of both sides' values, each about its own mean."""
    cells = [_cell([row for row in rows if row.after is side]) for side in (False, True)]
    return sum(cell.variance for cell in cells) / 2


def _robust(rows: Sequence[Compared], cells: Mapping[tuple[str, bool], _Cell], shares: Mapping[str, float]) -> float:
    """The linearised variance by clusters."""
    moved: dict[object, list[float]] = {}
    for place, row in enumerate(rows):
        cell = cells[row.stratum, row.after]
        part = shares[row.stratum] * (row.weight / cell.weight) * (row.value - cell.mean)
        moved.setdefault(place if row.cluster is None else row.cluster, []).append(part if row.after else -part)
    return math.fsum(math.fsum(parts) ** 2 for parts in moved.values()) * len(moved) / (len(moved) - 1)


def _heaviest(rows: Sequence[Compared], draws: Mapping[bool, int], error: float) -> Mapping[bool, float]:
    """The largest weight allowed for a verdict of each side.

    Where failures are kept more often than the rest, a small side may lack the few heavy verdicts that stand for most
    of it. Heavier ones of the other side count, unless chance does not explain that so many draws, which are clusters,
    hold none.
    """
    weights = {side: [row.weight for row in rows if row.after is side] for side in (False, True)}
    heaviest: dict[bool, float] = {}
    for side, own in weights.items():
        others = weights[not side]
        lighter = sum(weight <= max(own) for weight in others) / len(others)
        heaviest[side] = max(own + others) if lighter ** draws[side] > error * _DESIGN else max(own)
    return heaviest


def _designs(rows: Sequence[Compared], cells: Mapping[tuple[str, bool], _Cell], prior: float) -> Mapping[bool, float]:
    """Each side's design effect, from its own clusters' sizes and from the agreement within both sides' clusters.

    Where only one side has clusters of several, the other is as many draws as it has values. One cluster more is taken
    to agree wholly, with the prior variance: a few that hardly vary show little of how far clusters agree.
    """
    held: dict[tuple[bool, object], list[Compared]] = {}
    for place, row in enumerate(rows):
        held.setdefault((row.after, place if row.cluster is None else row.cluster), []).append(row)
    of = {False: [0.0, 0.0], True: [0.0, 0.0]}
    together = whole = 0.0
    for (side, _), cluster in held.items():
        squared, own = math.fsum(row.weight for row in cluster) ** 2, math.fsum(row.weight**2 for row in cluster)
        of[side][0] += squared
        of[side][1] += own
        parts = [row.weight * (row.value - cells[row.stratum, row.after].mean) for row in cluster]
        apart = math.fsum(part * part for part in parts)
        together += math.fsum(parts) ** 2 - apart
        whole += (squared / own - 1) * apart
    sizes = {side: squared / own for side, (squared, own) in of.items()}
    largest, each = max(sizes.values()), math.fsum(own for _, own in of.values()) / len(rows)
    unseen = prior * each * largest * (largest - 1)
    agree = min(1.0, max(0.0, (together + unseen) / (whole + unseen))) if unseen else 1.0
    return {side: 1 + agree * (size - 1) for side, size in sizes.items()}


def _added(
    cells: Mapping[tuple[str, bool], _Cell],
    shares: Mapping[str, float],
    prior: float,
    heaviest: Mapping[bool, float],
    designs: Mapping[bool, float],
) -> float:
    """The variance of the values added to each side of each stratum, because an absence of failures proves little.

    They have the largest weight: by Kish's effective size, verdicts of small weight alone would count in full. Of
    clusters that agree, as many values as the design effect of their side say as much as one.
    """
    sizes = (
        (shares.get(stratum, 0.0), cell.weight / heaviest[side] / designs[side])
        for (stratum, side), cell in cells.items()
    )
    return math.fsum(share * share * _ADDED * prior / (size * (size + _ADDED)) for share, size in sizes)
