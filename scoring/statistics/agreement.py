"""Agreement of two raters (here people and the judge) who sort the same items into categories.

With n pairs, p the shares of the confusion table, r and c its row and column sums, and agreement weights w (1 on the
diagonal; 0 elsewhere, except on ordinal scales)::

    observed = Σ w·p        by chance = Σ w·r·c        kappa = (observed − by chance) / (1 − by chance)
    AC1: by chance = Σ q·(1 − q) / (K − 1),  q = (r + c) / 2,  K categories
    weights of an ordinal scale: 1 − (|x − y| / range) ** power, power 1 (linear) or 2 (quadratic)

Kappa falls when nearly everything is in one category, even if raters agree well; AC1 does not, so both are reported.

Sources: Cohen 1960, doi:10.1177/001316446002000104; Cohen 1968 (weighted), doi:10.1037/h0026256; large-sample standard
error: Fleiss, Cohen and Everitt 1969, doi:10.1037/h0028106; AC1: Gwet 2008, doi:10.1348/000711006X126600.

>>> table = Confusion(((20, 5), (10, 15)))
>>> round(cohen_kappa(table).value, 4)
0.4

*Scale error*: grades and the right ones come in; the bias of the grades and their use of the scale go out. With the
right grades x and the given grades y, for n pairs::

    bias = mean(y − x)                      compression = 1 − Σ (x − x̄)(y − ȳ) / Σ (x − x̄)²

Bias above 0 is lenience. Compression is 0 where grades differ as much as they should, 1 where they are all equal (a
judge that always gives the middle), and above 1 where better things get worse grades. It is 1 minus the slope of the
regression line; its error is White's, because the spread of y varies (White 1980, doi:10.2307/1912934). Intervals are
the value ± 1.96 standard errors, which holds for large samples of independent pairs.

>>> always_the_middle = [(0.0, 0.5), (0.5, 0.5), (1.0, 0.5)]
>>> compression(always_the_middle).value, bias(always_the_middle).value
(1.0, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sidejudge.scoring.result.result import Unavailable

from .interval import Z_95_TWO_SIDED, student

Weights = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of pairs: rows by the first rater's value (people), columns by the second's (ours)."""

    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.counts)
        if any(len(row) != size or any(count < 0 for count in row) for row in self.counts):
            raise ValueError("a confusion table is square, and holds counts from 0")

    @property
    def n(self) -> int:
        """Pairs in all."""
        return sum(map(sum, self.counts))

    @property
    def agreeing(self) -> int:
        """Pairs on the diagonal."""
        return sum(row[i] for i, row in enumerate(self.counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kappa:
    """``value`` in [-1, 1] with its two-sided 95 % interval; ``standard_error`` is None where it is undefined."""

    value: float
    lower: float
    upper: float
    standard_error: float | None


def ordinal_weights(values: Sequence[float], power: int) -> Weights:
    """Agreement weights of the values of an ordinal scale, by their distance; ``ValueError`` when all are equal."""
    span = max(values) - min(values)
    if span <= 0:
        raise ValueError("a scale has at least two values")
    return [[1 - (abs(x - y) / span) ** power for y in values] for x in values]


def cohen_kappa(table: Confusion, weights: Weights | None = None) -> Kappa | Unavailable:
    """Cohen's kappa, weighted where ``weights`` are given, with its interval.

    Undefined without pairs, and where both raters put everything into one category. The interval is the value ± 1.96
    standard errors, within [-1, 1]. Where that error is 0 (nothing disagrees, or one rater never varies) it would
    claim certainty; the interval is then that of the table with 1/2 added to each cell, and holds the value.
    """
    if table.n == 0:
        return Unavailable("there are no pairs")
    found = _kappa(table.counts, weights)
    if found is None:
        return Unavailable("both raters put everything into one category, so chance alone explains it")
    value, error = found
    middle, margin = value, error
    if error < 1e-9:
        added = _kappa([[count + 0.5 for count in row] for row in table.counts], weights)
        middle, margin = found if added is None else added
    value = min(1.0, max(-1.0, value))
    return Kappa(
        value=value,
        lower=max(-1.0, min(value, middle - Z_95_TWO_SIDED * margin)),
        upper=min(1.0, max(value, middle + Z_95_TWO_SIDED * margin)),
        standard_error=error if error >= 1e-9 else None,
    )


def gwet_ac1(table: Confusion) -> float | Unavailable:
    """Gwet's AC1, in [-1, 1]; undefined without pairs, and with fewer than two categories."""
    n, size = table.n, len(table.counts)
    if n == 0:
        return Unavailable("there are no pairs")
    if size < 2:
        return Unavailable("there is only one category")
    shares = [(sum(row) + sum(column)) / (2 * n) for row, column in _margins(table.counts)]
    chance = math.fsum(q * (1 - q) for q in shares) / (size - 1)
    return (table.agreeing / n - chance) / (1 - chance)


def _margins(counts: Sequence[Sequence[float]]) -> list[tuple[Sequence[float], Sequence[float]]]:
    return list(zip(counts, zip(*counts, strict=True), strict=True))


def _kappa(counts: Sequence[Sequence[float]], weights: Weights | None) -> tuple[float, float] | None:
    """The value and its standard error (Fleiss, Cohen and Everitt 1969, eq. 9 and 13)."""
    size = range(len(counts))
    n = math.fsum(map(math.fsum, counts))
    w = weights or [[float(i == j) for j in size] for i in size]
    r, c = zip(*((math.fsum(row) / n, math.fsum(column) / n) for row, column in _margins(counts)), strict=True)
    observed = math.fsum(w[i][j] * counts[i][j] / n for i in size for j in size)
    chance = math.fsum(w[i][j] * r[i] * c[j] for i in size for j in size)
    if 1 - chance < 1e-12:
        return None
    kappa = (observed - chance) / (1 - chance)
    of_row = [math.fsum(w[i][j] * c[j] for j in size) for i in size]
    of_column = [math.fsum(w[i][j] * r[i] for i in size) for j in size]
    squares = math.fsum(
        counts[i][j] / n * (w[i][j] - (of_row[i] + of_column[j]) * (1 - kappa)) ** 2 for i in size for j in size
    )
    variance = (squares - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    return kappa, math.sqrt(max(0.0, variance))


Pairs: TypeAlias = Sequence[tuple[float, float]]
"""(right, given), in the unit of the scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleError:
    """``value`` from ``n`` pairs with its two-sided 95 % interval, in the unit of the pairs (compression has none)."""

    value: float
    lower: float
    upper: float
    n: int


def bias(pairs: Pairs) -> ScaleError | Unavailable:
    """The mean distance of the given grades above the right ones; undefined for fewer than two pairs."""
    n = len(pairs)
    if n < 2:
        return Unavailable("fewer than two grades")
    differences = [given - right for right, given in pairs]
    mean = math.fsum(differences) / n
    variance = math.fsum((each - mean) ** 2 for each in differences) / (n - 1)
    return _around(mean, math.sqrt(variance / n), n, free=n - 1)


def compression(pairs: Pairs) -> ScaleError | Unavailable:
    """How much less the given grades differ than they should; undefined where the right ones are all equal."""
    n = len(pairs)
    middle_x, middle_y = (math.fsum(each) / n for each in zip(*pairs, strict=True)) if pairs else (0.0, 0.0)
    spread = math.fsum((x - middle_x) ** 2 for x, _ in pairs)
    if n < 3 or spread < 1e-12:
        return Unavailable("no two grades that should differ, of three or more")
    slope = math.fsum((x - middle_x) * (y - middle_y) for x, y in pairs) / spread
    left = [(x - middle_x) * (y - middle_y - slope * (x - middle_x)) for x, y in pairs]
    return _around(1 - slope, math.sqrt(math.fsum(each * each for each in left)) / spread, n, free=n - 2)


def _around(value: float, error: float, n: int, *, free: int) -> ScaleError:
    margin = student(Z_95_TWO_SIDED, free) * error
    return ScaleError(value=value, lower=value - margin, upper=value + margin, n=n)
