"""Agreement metrics: how far verdicts agree with people's, and the pass ratio that people would have found."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.scoring.runs.calibrated import Calibrated, ErrorRate
from sidejudge.scoring.statistics.agreement import Kappa
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.service_status import ServiceStatus

from . import families as f
from .collect import Series

_RATES = {
    "raw_agreement": f.AGREEMENT_RAW,
    "true_positive_rate": f.AGREEMENT_TRUE_POSITIVE,
    "true_negative_rate": f.AGREEMENT_TRUE_NEGATIVE,
}


def agreement_gauges(agreement: AgreementSnapshot) -> Iterator[Series]:
    """The figures that labels give; what is not defined has no series. Rubrics and metrics are the configuration's."""
    for found in agreement.measured:
        yield from _figures(found)
    for reason, count in agreement.passed_over.items():
        yield f.LABELS_PASSED_OVER, (reason,), count
    for rubric, count in agreement.corrections.items():
        yield f.LABELS_CORRECTIONS, (rubric,), count
    for rubric, count in agreement.corrected_passes.items():
        yield f.LABELS_CORRECTED_PASSES, (rubric,), count
    if agreement.read_s is not None:
        yield f.LABELS_READ, (), agreement.read_s


def corrected_gauges(who: tuple[str, str, str], service: ServiceStatus) -> Iterator[Series]:
    """The corrected pass ratio of one window, where labels determine it."""
    if service.corrected is not None:
        yield f.PASS_CORRECTED_RATIO, who, service.corrected.rate
        yield f.PASS_CORRECTED_LOWER_RATIO, who, service.corrected.lower
        yield f.PASS_CORRECTED_UPPER_RATIO, who, service.corrected.upper
    if service.rectified is not None:
        yield f.PASS_RECTIFIED_RATIO, who, service.rectified.rate
        yield f.PASS_RECTIFIED_LOWER_RATIO, who, service.rectified.lower
        yield f.PASS_RECTIFIED_UPPER_RATIO, who, service.rectified.upper


def _figures(found: Calibrated) -> Iterator[Series]:
    of = (found.rubric, found.metric)
    yield f.AGREEMENT_PAIRS, of, found.n
    for name, family in _RATES.items():
        rate = found.figures.get(name)
        if isinstance(rate, ErrorRate):
            yield family, of, rate.value
    kappa, ac1 = found.figures["kappa"], found.figures["ac1"]
    if isinstance(kappa, Kappa):
        yield f.AGREEMENT_KAPPA, of, kappa.value
        yield f.AGREEMENT_KAPPA_LOWER, of, kappa.lower
        yield f.AGREEMENT_KAPPA_UPPER, of, kappa.upper
    if isinstance(ac1, float):
        yield f.AGREEMENT_AC1, of, ac1
