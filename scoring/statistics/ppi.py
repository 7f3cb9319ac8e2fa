"""Prediction-powered inference: the pass rate that people would find, from all verdicts and some labels.

With the judge's pass rate p of N verdicts, and of n labelled ones people's passes Y and the judge's f::

    corrected = Ȳ + λ·(p − f̄)         V = Var(Y − λ·f) / n  +  λ²·p·(1 − p) / N         bounds = corrected ± z·√V

λ = Cov(Y, f) / ((1 + n/N)·Var f), clipped to [0, 1], is the weight at which V is least (power tuning, PPI++): 0 for a
judge that only guesses, so that the verdicts never make the bounds wider than the labels alone.

Both samples must come from the same traffic: ``prediction_powered`` is for labels of the verdicts themselves. Where the
judge's rates on both differ by more than ``MOST_APART`` standard errors, they do not, and nothing is estimated. For a
window of the last hour a month's labels come from other traffic, and tuned weights would pull the hour towards the
month. There λ = 1 (``rectified``, the method without tuning): labels measure only the judge's error, Y − f, and not
this hour.

For the bounds, half a label is added to each of the four cells (people, judge) and z²/2 verdicts to each side of the N,
as Agresti and Coull do: otherwise the bounds cover too little with few labels or rates near 1.

Weights: ``size`` is the effective number of the N verdicts; labels weigh the inverse of their inclusion probability,
and n is their Kish number. Several labels of one trace must be counted as one by the caller.

Sources: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023, "Prediction-powered inference", Science 382:669–674,
doi:10.1126/science.adi6000; Angelopoulos, Duchi and Zrnic 2023, "PPI++", arXiv:2311.01453, §6.

*Rogan–Gladen*: the pass rate that people would have found, from the judge's pass rate and the judge's errors. With the
judge's pass rate p of n verdicts, its true-positive rate s of the m₁ that people pass, and its true-negative rate t of
the m₀ that people fail::

    corrected = (p + t − 1) / (s + t − 1), held within [0, 1]

Undefined where s + t − 1 <= 0: such a judge guesses. The interval is that of Lang and Reiczigel, for which
s and t are estimates too: with p' = (np + z²/2)/(n + z²), s' = (m₁s + 1)/(m₁ + 2), t' = (m₀t + 1)/(m₀ + 2), c' the
corrected rate of these (not held within [0, 1]), and v = x'(1 − x')/size, sizes n + z², m₁ + 2 and m₀ + 2::

    c' + 2z²·(c'·v(s') − (1 − c')·v(t'))  ±  z·sqrt(v(p') + c'²·v(s') + (1 − c')²·v(t')) / (s' + t' − 1)

It assumes that the labelled cases were drawn without regard to the judge's verdicts, and that its errors on them are
the same as on all; and it treats the labelled cases as a separate sample from the n.

Sources: Rogan and Gladen 1978, doi:10.1093/oxfordjournals.aje.a112510; Lang and Reiczigel 2014,
doi:10.1016/j.prevetmed.2013.09.015.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sidejudge.scoring.result.result import Unavailable

from .estimate import check_weight
from .interval import Z_95_TWO_SIDED, wilson

LEAST_LABELS: Final = 30
"""Fewest labels, by their effective number, for correct bounds."""
MOST_APART: Final = 3.0
"""Most standard errors between the judge's rates on both samples; chance exceeds it one time in 370."""
_ADDED: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSums:
    """Labelled verdicts: Σw by (person passes, judge passes), Σw², how many, and how many the judge fails.

    ``both`` passed under both, ``people_only`` by people alone, ``judge_only`` by the judge alone, ``neither`` failed
    under both.
    """

    both: float = 0.0
    people_only: float = 0.0
    judge_only: float = 0.0
    neither: float = 0.0
    squared: float = 0.0
    n: int = 0
    failures: int = 0

    @property
    def weight(self) -> float:
        """Σw."""
        return self.both + self.people_only + self.judge_only + self.neither

    @property
    def true_positive(self) -> tuple[float, float]:
        """Cases that people passed: how many the judge passed, and how many there are (effective sizes)."""
        return self.both * self._each, (self.both + self.people_only) * self._each

    @property
    def true_negative(self) -> tuple[float, float]:
        """Cases that people failed: how many the judge failed, and how many there are (effective sizes)."""
        return self.neither * self._each, (self.neither + self.judge_only) * self._each

    @property
    def _each(self) -> float:
        return self.weight / self.squared if self.squared else 0.0

    @property
    def failed_weight(self) -> float:
        """Σw of the cases that the judge fails."""
        return self.people_only + self.neither

    @property
    def size(self) -> float:
        """Kish's effective number of labels; 0 without any."""
        return self.weight**2 / self.squared if self.squared else 0.0


def label_sums(labels: Iterable[tuple[bool, bool, float]]) -> LabelSums:
    """The sums over (person passes, judge passes, weight)."""
    cells = {(True, True): 0.0, (True, False): 0.0, (False, True): 0.0, (False, False): 0.0}
    squared, n, failures = 0.0, 0, 0
    for people, judge, weight in labels:
        check_weight(weight)
        cells[people, judge] += weight
        squared += weight * weight
        n += 1
        failures += not judge
    return LabelSums(
        both=cells[True, True], people_only=cells[True, False], judge_only=cells[False, True],
        neither=cells[False, False], squared=squared, n=n, failures=failures,
    )  # fmt: skip


def prediction_powered(rate: float, size: float, labels: LabelSums) -> Corrected | Unavailable:
    """The corrected rate with its bounds; ``rate`` of ``size`` effective verdicts is the judge's.

    Raises ``ValueError`` for an impossible rate or size.
    """
    if not (0 <= rate <= 1 and 0 <= size < math.inf):
        raise ValueError(f"no rate of so many: {rate} of {size}")
    n, z = labels.size, Z_95_TWO_SIDED
    if size == 0:
        return Unavailable("there are no verdicts that passed or failed")
    if n < LEAST_LABELS - 1e-9:
        return Unavailable(f"labels count as {n:.3g}, and {LEAST_LABELS} are needed")
    cells = [share / labels.weight for share in (labels.both, labels.people_only, labels.judge_only, labels.neither)]
    judge = cells[0] + cells[2]
    added = [(share * n + _ADDED) / (n + 4 * _ADDED) for share in cells]
    passing, more = added[0] + added[2], z * z
    wider = (rate * size + more / 2) / (size + more)
    apart = math.sqrt(passing * (1 - passing) / n + wider * (1 - wider) / size)
    if abs(judge - rate) > MOST_APART * apart:
        return Unavailable(
            f"the judge passes {judge:.3f} of the labelled and {rate:.3f} here: labels are of other traffic"
        )
    tuned = _tuned(cells, n, rate, size)
    found = min(1.0, max(0.0, cells[0] + cells[1] + tuned * (rate - judge)))
    tuned = _tuned(added, n, wider, size)
    middle = added[0] + added[1] + tuned * (wider - passing)
    agreed = added[0] * (1 - tuned) ** 2 + added[1] + added[2] * tuned**2
    spread = max(0.0, agreed - (added[0] + added[1] - tuned * passing) ** 2) / n
    margin = z * math.sqrt(spread + tuned**2 * wider * (1 - wider) / (size + more))
    return Corrected(found, max(0.0, min(found, middle - margin)), min(1.0, max(found, middle + margin)))


def offset(labels: LabelSums) -> tuple[float, float] | Unavailable:
    """The difference of people's pass rate and the judge's, and its variance."""
    n = labels.size
    if n < LEAST_LABELS - 1e-9:
        return Unavailable(f"labels count as {n:.3g}, and {LEAST_LABELS} are needed")
    up, down = labels.people_only / labels.weight, labels.judge_only / labels.weight
    more, less = ((share * n + _ADDED) / (n + 4 * _ADDED) for share in (up, down))
    return up - down, (more + less - (more - less) ** 2) / n


def rectified(rate: float, size: float, labels: LabelSums) -> Corrected | Unavailable:
    """The corrected rate of a window, with its bounds: λ = 1.

    The distances of the window's bounds (Wilson) and of the offset's are joined (MOVER, Zou and Donner 2008,
    doi:10.1002/sim.3095).
    """
    found = offset(labels)
    z = Z_95_TWO_SIDED
    bounds = wilson(rate * size, size, z)
    if isinstance(found, Unavailable) or bounds is None:
        return found if isinstance(found, Unavailable) else Unavailable("there are no verdicts that passed or failed")
    more, variance = found
    margin = z * z * variance
    return Corrected(
        min(1.0, max(0.0, rate + more)),
        min(1.0, max(0.0, rate + more - math.sqrt((rate - min(bounds.lower, rate)) ** 2 + margin))),
        max(0.0, min(1.0, rate + more + math.sqrt((max(bounds.upper, rate) - rate) ** 2 + margin))),
    )


def _tuned(cells: list[float], n: float, rate: float, size: float) -> float:
    """λ from the four shares; f varies as in both samples together."""
    people, judge = cells[0] + cells[1], cells[0] + cells[2]
    pooled = (n * judge + size * rate) / (n + size)
    varies = pooled * (1 - pooled)
    if varies <= 0:
        return 0.0
    return min(1.0, max(0.0, (cells[0] - people * judge) / (varies * (1 + n / size))))


@dataclass(frozen=True, slots=True)
class Corrected:
    """A pass rate corrected for the judge's errors, with its two-sided 95 % interval; all in [0, 1]."""

    rate: float
    lower: float
    upper: float


def rogan_gladen(
    rate: float, n: float, true_positive: tuple[float, float], true_negative: tuple[float, float]
) -> Corrected | Unavailable:
    """The corrected rate; ``true_positive`` and ``true_negative`` are (right, all).

    ``n`` and the numbers may be effective sizes. Raises ``ValueError`` for impossible counts or rates.
    """
    (right_1, m_1), (right_0, m_0) = true_positive, true_negative
    if not (0 <= rate <= 1 and 0 <= n < math.inf and 0 <= right_1 <= m_1 and 0 <= right_0 <= m_0):
        raise ValueError(f"no rate and counts: {rate} of {n}, {true_positive}, {true_negative}")
    if n == 0:
        return Unavailable("there are no verdicts that passed or failed")
    if m_1 == 0 or m_0 == 0:
        return Unavailable(f"people {'passed' if m_1 == 0 else 'failed'} nothing, so half of the errors are unknown")
    s, t = right_1 / m_1, right_0 / m_0
    if right_1 * m_0 + right_0 * m_1 <= m_1 * m_0:  # s + t - 1 <= 0, in whole numbers
        return Unavailable(f"true-positive rate {s:.3f} + true-negative rate {t:.3f} - 1 is not above 0")
    z = Z_95_TWO_SIDED
    corrected = min(1.0, max(0.0, (rate + t - 1) / (s + t - 1)))
    p_, s_, t_ = (n * rate + z * z / 2) / (n + z * z), (right_1 + 1) / (m_1 + 2), (right_0 + 1) / (m_0 + 2)
    power = s_ + t_ - 1
    if power <= 0:  # so near to none that its sign is not known
        return Corrected(corrected, 0.0, 1.0)
    c_ = (p_ + t_ - 1) / power
    v_p, v_s, v_t = p_ * (1 - p_) / (n + z * z), s_ * (1 - s_) / (m_1 + 2), t_ * (1 - t_) / (m_0 + 2)
    middle = c_ + 2 * z * z * (c_ * v_s - (1 - c_) * v_t)
    margin = z * math.sqrt(v_p + c_ * c_ * v_s + (1 - c_) ** 2 * v_t) / power
    return Corrected(corrected, max(0.0, min(corrected, middle - margin)), min(1.0, max(corrected, middle + margin)))
