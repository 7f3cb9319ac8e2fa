"""Judge scale: thresholds on people's pass rate come in, those on the judge's that mean the same go out.

Windows, sequences and change detectors follow the judge's verdicts. People's pass rate is surely below a threshold T
where the judge's is below, with the errors on labelled verdicts (``rogan_gladen``, ``ppi``)::

    rogan_gladen    T·s + (1 − T)·(1 − t) − z·sqrt(T²·v(s) + (1 − T)²·v(t))       s, t: right of what people pass, fail
    ppi             T − offset − z·sqrt(v(offset))

z is that of one side at 95 %: what labels leave open is decided in favour of the service. Results are rounded down to
0.01, so that few labels more change nothing, and held within [0, 1].
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.statistics.interval import Z_95_ONE_SIDED
from sidejudge.scoring.statistics.ppi import LEAST_LABELS, LabelSums, offset
from sidejudge.scoring.status.status import Thresholds

Correction: TypeAlias = Literal["none", "rogan_gladen", "ppi"]


def judge_scale(bounds: Thresholds, labels: LabelSums | None, correction: Correction) -> Thresholds | Unavailable:
    """The thresholds for the judge's pass rate, or why labels do not determine them."""
    if correction == "none":
        return bounds
    if labels is None or labels.size < LEAST_LABELS - 1e-9:
        known = 0.0 if labels is None else labels.size
        return Unavailable(f"labels count as {known:.3g}, and {LEAST_LABELS} are needed")
    if correction == "ppi":
        found = offset(labels)
        if isinstance(found, Unavailable):
            return found
        more, variance = found
        less = more + Z_95_ONE_SIDED * math.sqrt(variance)
        return _thresholds(bounds.warning - less, bounds.critical - less)
    (right_1, m_1), (right_0, m_0) = labels.true_positive, labels.true_negative
    if m_1 < 1 or m_0 < 1:
        return Unavailable(f"people {'passed' if m_1 < 1 else 'failed'} nothing, so half of the errors are unknown")
    s, t = (right_1 + 1) / (m_1 + 2), (right_0 + 1) / (m_0 + 2)
    if s + t <= 1:
        return Unavailable("the judge does not distinguish what people pass from what they fail")
    v_s, v_t = s * (1 - s) / (m_1 + 2), t * (1 - t) / (m_0 + 2)

    def on_judge(level: float) -> float:
        margin = Z_95_ONE_SIDED * math.sqrt(level**2 * v_s + (1 - level) ** 2 * v_t)
        return level * s + (1 - level) * (1 - t) - margin

    return _thresholds(on_judge(bounds.warning), on_judge(bounds.critical))


def _thresholds(warning: float, critical: float) -> Thresholds:
    warning, critical = (min(1.0, max(0.0, math.floor(100 * each + 1e-9) / 100)) for each in (warning, critical))
    return Thresholds(warning=warning, critical=min(critical, warning))
