"""Agreement snapshot: the agreement of verdicts with people's, and the pass rate that people would find, at one moment.

Metrics, API and status page show the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sidejudge.scoring.calibration.calibrated import Calibrated
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.runs.label_line import PASS
from sidejudge.scoring.statistics.ppi import LabelSums, rectified, rogan_gladen

from .service_status import ServiceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationQueueSnapshot:
    """A queue of verdicts in doubt. ``reason`` is why nothing can be added now, empty when it can.

    ``put``: items added since start, by reason. ``left_out``: items skipped in the last hour because its limit was
    reached.
    """

    name: str
    reason: str
    put: Mapping[str, int]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementSnapshot:
    """The source of labels, and their agreement with our verdicts.

    ``reason`` is why they cannot be read now, empty when they can; ``read_s`` is when they were last read, in s since
    the epoch, None for never. ``passed_over`` counts labels that are left out of agreement, by reason. ``corrections``
    counts answers that people corrected, by rubric; ``corrected_passes`` those among them that we had passed.
    ``elsewhere`` are labels that another monitor of the fleet has read, in place of this one's.
    """

    source: str
    reason: str = ""
    read_s: float | None = None
    measured: Sequence[Calibrated] = ()
    passed_over: Mapping[str, int] = field(default_factory=dict)
    corrections: Mapping[str, int] = field(default_factory=dict)
    corrected_passes: Mapping[str, int] = field(default_factory=dict)
    queue: AnnotationQueueSnapshot | None = None
    elsewhere: Mapping[str, LabelSums] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, LabelSums]:
        """One label of people for each labelled verdict, by rubric."""
        if self.elsewhere:
            return {**self.elsewhere}
        return {each.rubric: each.labels for each in self.measured if each.metric == PASS and each.labels is not None}


def corrected(statuses: Iterable[ServiceStatus], agreement: AgreementSnapshot | None) -> list[ServiceStatus]:
    """The statuses, each with the pass rate that people would find, where labels determine it.

    By Rogan and Gladen, and by prediction-powered inference. The judge's errors are those on all labels of the rubric,
    for any service; the intervals are two-sided, 95 %. Rubrics without labels are left as they are.
    """
    labels = {} if agreement is None else agreement.labels
    return [_corrected(each, labels.get(each.rubric)) for each in statuses]


def _corrected(status: ServiceStatus, labels: LabelSums | None) -> ServiceStatus:
    reported = status.estimate
    if labels is None or reported is None:
        return status
    ratio, size = reported.pass_ratio, reported.effective_n
    by_errors = rogan_gladen(ratio, size, labels.true_positive, labels.true_negative)
    by_offset = rectified(ratio, size, labels)
    return replace(
        status,
        corrected=None if isinstance(by_errors, Unavailable) else by_errors,
        rectified=None if isinstance(by_offset, Unavailable) else by_offset,
    )
