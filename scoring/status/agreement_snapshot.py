"""Agreement snapshot: the agreement of verdicts with people's, and the pass rate that people would find, at one moment.

Metrics, API and status page show the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from sidejudge.scoring.calibration.calibrated import Calibrated
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.runs.label_line import PASS
from sidejudge.scoring.statistics.ppi import LabelSums, rectified, rogan_gladen

from .service_status import ServiceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationQueueSnapshot:
    """A queue of verdicts in doubt. What was left out was so in the last hour, because its limit was reached."""

    name: str
    reason: Annotated[str, "why nothing is put in now; empty when something may be"]
    put: Annotated[Mapping[str, int], "what was put in since start, by why it is in doubt"]
    left_out: Annotated[int, "what was not of late, for the hour's number was reached"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementSnapshot:
    """The source of labels, and their agreement with our verdicts. ``read_s`` is in s since the epoch.

    ``elsewhere`` are labels that another monitor of the fleet has read, in place of this one's.
    """

    source: Annotated[str, "where people's labels are read"]
    reason: Annotated[str, "why they cannot be read now; empty when they can"] = ""
    read_s: Annotated[float | None, "until when they have been read; null: never"] = None
    measured: Annotated[
        Sequence[Calibrated],
        "by rubric and metric (`pass`: the verdict), as `sidejudge calibrate --format json` prints it",
    ] = ()
    passed_over: Annotated[
        Mapping[str, int], "labels of the time last read that are no evidence of agreement, by why"
    ] = field(default_factory=dict)
    corrections: Annotated[Mapping[str, int], "answers with a verdict that people corrected, by rubric"] = field(
        default_factory=dict
    )
    corrected_passes: Annotated[Mapping[str, int], "those of them that we had passed"] = field(default_factory=dict)
    queue: Annotated[AnnotationQueueSnapshot | None, "null: no verdict is put before people"] = None
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
