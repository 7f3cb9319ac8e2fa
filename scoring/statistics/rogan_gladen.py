"""Rogan–Gladen: the pass rate that people would have found, from the judge's pass rate and the judge's errors.

With the judge's pass rate p of n verdicts, its true-positive rate s of the m₁ that people pass, and its true-negative
rate t of the m₀ that people fail::

    corrected = (p + t − 1) / (s + t − 1), held within [0, 1]

Undefined where s + t − 1 <= 0: such a judge guesses. The interval is that of Lang and Reiczigel, for which
s and t are estimates too: with p' = (np + z²/2)/(n + z²), s' = (m₁s + 1)/(m₁ + 2), t' = (m₀t + 1)/(m₀ + 2), c' the
corrected rate of these (not held within [0, 1]), and v = x'(1 − x')/size, sizes n + z², m₁ + 2 and m₀ + 2::

    c' + 2z²·(c'·v(s') − (1 − c')·v(t'))  ±  z·sqrt(v(p') + c'²·v(s') + (1 − c')²·v(t')) / (s' + t' − 1)

It assumes that the labelled were drawn without regard to the judge's verdicts, and that its errors on them are its
errors on all; and it treats the labelled as another sample than the n.

Sources: Rogan and Gladen 1978, doi:10.1093/oxfordjournals.aje.a112510; Lang and Reiczigel 2014,
doi:10.1016/j.prevetmed.2013.09.015.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sidejudge.scoring.result.result import Unavailable

from .interval import Z_95_TWO_SIDED


@dataclass(frozen=True, slots=True)
class Corrected:
    """A pass rate corrected for the judge's errors, with its two-sided 95 % interval; all in [0, 1]."""

    rate: float
    lower: float
    upper: float


def rogan_gladen(
    rate: float, n: float, true_positive: tuple[float, float], true_negative: tuple[float, float]
) -> Corrected | Unavailable:
    """The corrected rate; ``true_positive`` and ``true_negative`` are (right, of so many).

    ``n`` and the numbers may be effective sizes. Raises ``ValueError`` for counts or rates that cannot be.
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
