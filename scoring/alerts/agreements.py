"""Agreements: how far verdicts agree with people's, kept up as labels come in one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sidejudge.scoring.calibration.calibrated import Calibrated, calibrated
from sidejudge.scoring.runs.label_line import PASS, LabelValue
from sidejudge.scoring.statistics.agreement import Kappa
from sidejudge.scoring.statistics.ppi import label_sums
from sidejudge.scoring.trace.span import JsonRecord

from .condition import Agreement

MAX_PAIRS = 2000
"""Most pairs kept for one metric of a rubric: the latest, so that a judge that changed is not excused by its past."""
MAX_RUBRICS = 100


class _Pair(NamedTuple):
    people: LabelValue
    ours: LabelValue | None
    at_ns: int


@dataclass(slots=True)
class _Known:
    version: str
    metrics: dict[str, dict[tuple[str, str], _Pair]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)


class Agreements:
    """Pairs of a person's label and our value, by rubric and metric (``pass`` is the verdict itself).

    A pair is identified by its subject (a trace or a case) and by who labelled it. Recording it again, with a label
    that is not older or a revised verdict, replaces it. A new version of a rubric starts without pairs, for it is
    another judge. No clock.
    """

    def __init__(self) -> None:
        self._rubrics: dict[str, _Known] = {}

    def record(
        self,
        *,
        rubric: str,
        version: str,
        subject: str,
        by: str,
        people: LabelValue | bool,
        ours: LabelValue | bool | None,
        metric: str = PASS,
        weight: float = 1.0,
        at_ns: int = 0,
    ) -> bool:
        """Record one pair and return whether it is kept; ``ours`` is None where we came to no value.

        ``weight`` is the inverse of the probability with which the subject was drawn to be judged. ``at_ns`` is the
        time of the label, ns since the epoch: labels are read again in any order, and a person's latest one counts.

        A pair is not kept where it mixes numbers with categories, or where there are ``MAX_RUBRICS`` rubrics already.
        """
        known = self._rubrics.get(rubric)
        if known is None and len(self._rubrics) >= MAX_RUBRICS:
            return False
        if known is None or known.version != version:
            known = self._rubrics[rubric] = _Known(version)
        pairs = known.metrics.setdefault(metric, {})
        people, ours = _stated(people), None if ours is None else _stated(ours)
        kinds = {isinstance(each, str) for each in (people, ours, _first(pairs)) if each is not None}
        if len(kinds) > 1:
            return False
        pair = _Pair(people, ours, at_ns)
        pairs[subject, by] = max(pair, pairs.pop((subject, by), pair), key=lambda each: each.at_ns)
        if metric == PASS:
            known.weights[subject] = weight
            if len(known.weights) > 2 * MAX_PAIRS:
                known.weights = {each: known.weights[each] for each, _ in pairs}
        if len(pairs) > MAX_PAIRS:
            del pairs[min(pairs, key=lambda each: pairs[each].at_ns)]
        return True

    def forget(self, rubric: str) -> None:
        """Drop all pairs of a rubric."""
        self._rubrics.pop(rubric, None)

    def knows(self, *, rubric: str, subject: str, by: str, metric: str = PASS) -> bool:
        """Whether there is such a pair."""
        known = self._rubrics.get(rubric)
        return known is not None and (subject, by) in known.metrics.get(metric, ())

    def drop(self, *, rubric: str, subject: str, by: str, metric: str = PASS, at_ns: int | None = None) -> None:
        """Drop a pair, if there is one; with ``at_ns`` only where its label is no later than that."""
        known = self._rubrics.get(rubric)
        pairs = {} if known is None else known.metrics.get(metric, {})
        held = pairs.get((subject, by))
        if held is not None and (at_ns is None or held.at_ns <= at_ns):
            del pairs[subject, by]

    def __call__(self) -> list[Agreement]:
        """Cohen's kappa of the passes of each rubric that has enough pairs, in the order of their first pairs."""
        reported = []
        for found in self.report():
            kappa = found.figures["kappa"]
            if found.metric == PASS and isinstance(kappa, Kappa):
                reported.append(Agreement(rubric=found.rubric, kappa=kappa.value, upper=kappa.upper, n=found.n))
        return reported

    def report(self) -> list[Calibrated]:
        """All figures that the pairs allow, by rubric and metric in the order of their first pairs."""
        return [
            _calibrated(rubric, metric, pairs, known.weights)
            for rubric, known in self._rubrics.items()
            for metric, pairs in known.metrics.items()
            if pairs
        ]

    def rubrics(self) -> list[str]:
        """The rubrics that have pairs."""
        return list(self._rubrics)

    def to_json(self, rubric: str) -> dict[str, object]:
        """The stored pairs of a rubric, as JSON."""
        known = self._rubrics[rubric]
        return {
            "version": known.version,
            "metrics": {
                metric: [[subject, by, *pair] for (subject, by), pair in pairs.items()]
                for metric, pairs in known.metrics.items()
            },
            "weights": {subject: weight for subject, weight in known.weights.items() if weight != 1.0},
        }

    def restore(self, rubric: str, record: JsonRecord) -> None:
        """Record again what ``to_json`` wrote."""
        for metric, pairs in record["metrics"].items():
            for subject, by, people, ours, *at_ns in pairs:  # an older version kept no time
                self.record(
                    rubric=rubric, version=record["version"], subject=subject, by=by, people=people, ours=ours,
                    metric=metric, weight=float(record.get("weights", {}).get(subject, 1.0)), at_ns=sum(at_ns),
                )  # fmt: skip


def _stated(value: LabelValue | bool) -> LabelValue:  # noqa: FBT001  # a label or a value, not a switch
    return value if isinstance(value, str) else float(value)


def _first(pairs: Mapping[tuple[str, str], _Pair]) -> LabelValue | None:
    return next(iter(pairs.values())).people if pairs else None


def _calibrated(
    rubric: str, metric: str, stated: Mapping[tuple[str, str], _Pair], weights: Mapping[str, float]
) -> Calibrated:
    pairs: Counter[tuple[LabelValue, LabelValue]] = Counter()
    latest: dict[str, tuple[bool, bool, float]] = {}
    undecided = 0
    for (subject, _), (people, ours, _) in sorted(stated.items(), key=lambda each: each[1].at_ns):
        if ours is None:
            undecided += 1
        else:
            pairs[people, ours] += 1
            latest[subject] = (people == 1.0, ours == 1.0, weights.get(subject, 1.0))
    labels = label_sums(latest.values()) if metric == PASS else None
    return calibrated(rubric=rubric, metric=metric, pairs=pairs, undecided=undecided, passes=None, labels=labels)
