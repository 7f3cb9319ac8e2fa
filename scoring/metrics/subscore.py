"""Sub-score: the weighted mean of several metrics, as a metric of its own."""

from __future__ import annotations

from collections.abc import Callable

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.question import PendingMetrics, Steps
from sidejudge.scoring.result.reason import Reason, own, together
from sidejudge.scoring.result.result import Failed, NotApplicable, Scored, Unavailable

from .metric import Metric
from .settle import carried, least_certain


def weighted(*parts: tuple[Metric, float]) -> Callable[[Case], Steps]:
    """The measure of a sub-score. It has a value when all its parts have; the inapplicable give their weight away.

    It asks what its parts ask: the same questions, which are answered once.
    """

    def measure(case: Case) -> Steps:
        evaluation = PendingMetrics({metric.id: metric.start(case) for metric, _ in parts})
        while requested := evaluation.questions:
            replies = yield requested
            evaluation.give(dict(zip(requested, replies, strict=True)))
        results = [(metric.id, weight, evaluation.results[metric.id]) for metric, weight in parts]
        missing = [(name, result) for name, _, result in results if isinstance(result, Unavailable | Failed)]
        if missing:
            why = together(
                Reason("{name} {status}: {why}", name=own(name), status=own(result.status), why=result.reason)
                for name, result in missing
            )
            return Failed(why) if any(isinstance(result, Failed) for _, result in missing) else Unavailable(why)
        scored = [(name, weight, result) for name, weight, result in results if isinstance(result, Scored)]
        if not scored:
            return NotApplicable(Reason("none of its parts applies"))
        return Scored(
            value=sum(weight * result.value for _, weight, result in scored) / sum(weight for _, weight, _ in scored),
            method=least_certain(result.method for _, _, result in scored),
            reason=together(
                (Reason("{name} {value:.3f}", name=own(name), value=result.value) for name, _, result in scored), ", "
            ),
            judgements=carried(result for _, _, result in scored),
        )

    return measure
