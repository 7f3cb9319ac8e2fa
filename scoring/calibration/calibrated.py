"""Calibrated: how far our verdicts agree with people's on one metric, and the pass rate corrected for our errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.runs.label_line import PASS, LabelValue
from sidejudge.scoring.statistics.agreement import (
    Confusion,
    Kappa,
    ScaleError,
    bias,
    cohen_kappa,
    compression,
    gwet_ac1,
    ordinal_weights,
)
from sidejudge.scoring.statistics.estimate import from_sums
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED, wilson
from sidejudge.scoring.statistics.ppi import Corrected, LabelSums, prediction_powered, rogan_gladen
from sidejudge.scoring.statistics.sums import ExactSum, OfParts

MAX_CATEGORIES = 20
"""With more distinct values than this they are measurements rather than categories, and chance agreement means
nothing.
"""
_BINARY = (0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRate:
    """``successes`` of ``n`` and their two-sided 95 % interval (Wilson); all of the rates in [0, 1]."""

    value: float
    lower: float
    upper: float
    n: float


Figure: TypeAlias = float | ErrorRate | Kappa | Corrected | ScaleError | Unavailable


@dataclass(slots=True)
class PassSums(OfParts):
    """Sums over verdicts that passed or failed: their number, their weights and the squares of these."""

    n: int = 0
    failures: int = 0
    weight: ExactSum = field(default_factory=ExactSum)
    failed_weight: ExactSum = field(default_factory=ExactSum)
    squared_weight: ExactSum = field(default_factory=ExactSum)

    def add(self, *, passed: bool, weight: float) -> None:
        """Count one verdict; ``weight`` is the inverse of its inclusion probability."""
        self.n += 1
        self.weight.add(weight)
        self.squared_weight.add(weight * weight)
        if not passed:
            self.failures += 1
            self.failed_weight.add(weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """One metric of one rubric (``pass`` is the verdict itself), from ``n`` pairs; ``undecided`` labels met no value.

    ``scale`` is ``binary``, ``ordinal`` (numbers) or ``nominal``. ``figures`` by name: ``raw_agreement``, ``kappa``,
    ``kappa_linear``, ``kappa_quadratic``, ``ac1``, ``true_positive_rate`` (the share that we pass of what people pass),
    ``true_negative_rate``; for numbers ``bias`` (ours above people's, in their unit) and ``compression``, which
    ``try-judge`` computes for judges too; for ``pass`` also ``pass_rate`` of all our verdicts, ``pass_rate_corrected``
    and ``pass_rate_ppi``. ``labels`` of ``pass``: one label a subject, weighed.
    """

    rubric: str
    metric: str
    n: int
    undecided: int
    scale: str
    categories: Sequence[LabelValue | bool]
    confusion: Confusion | Unavailable
    figures: Mapping[str, Figure]
    labels: LabelSums | None = None

    def to_json(self) -> dict[str, object]:
        """As JSON; an unknown figure is a null ``value`` with its ``reason``."""
        confusion: object = (
            {"value": None, "reason": self.confusion.reason}
            if isinstance(self.confusion, Unavailable)
            else {"rows": "people", "columns": "verdicts", "counts": self.confusion.counts}
        )
        return {
            "rubric": self.rubric, "metric": self.metric, "n": self.n, "undecided": self.undecided,
            "scale": self.scale, "categories": list(self.categories), "confusion": confusion,
            **{name: _json(figure) for name, figure in self.figures.items()},
        }  # fmt: skip


def calibrated(
    *,
    rubric: str,
    metric: str,
    pairs: Mapping[tuple[LabelValue, LabelValue], int],
    undecided: int,
    passes: PassSums | None,
    labels: LabelSums | None = None,
) -> Calibrated:
    """All figures of the pairs (people's label, our verdict) with their number.

    ``passes`` and ``labels`` (a label for each labelled verdict, which ``passes`` count too) only for ``pass``.
    """
    pairs = _in_decimals(pairs)
    n = sum(pairs.values())
    values = {stated for pair in pairs for stated in pair}
    numbers = sorted(each for each in values if isinstance(each, float))
    binary = metric == PASS or (bool(values) and values <= set(_BINARY))
    scale = "binary" if binary else "ordinal" if values and len(numbers) == len(values) else "nominal"
    found: Sequence[LabelValue] = _BINARY if binary else numbers if scale == "ordinal" else sorted(map(str, values))
    few = len(found) <= MAX_CATEGORIES
    table: Confusion | Unavailable = Unavailable(
        f"{len(found)} different values are no categories; label the metric's rating instead"
    )
    if few:
        table = Confusion(tuple(tuple(pairs.get((x, y), 0) for y in found) for x in found))
    figures: dict[str, Figure] = {
        "raw_agreement": error_rate(sum(count for (x, y), count in pairs.items() if x == y), n, "there are no pairs")
    }
    figures |= _chance_corrected(table, numbers if scale == "ordinal" else [])
    if scale == "ordinal":
        graded = [(x, y) for (x, y), count in pairs.items() if isinstance(x, float) and isinstance(y, float)
                  for _ in range(count)]  # fmt: skip
        figures |= {"bias": bias(graded), "compression": compression(graded)}
    if binary and isinstance(table, Confusion):
        figures |= _errors(table, passes, labels)
        if passes is not None:
            figures["pass_rate_ppi"] = _prediction_powered(passes, labels or LabelSums())
    shown: Sequence[LabelValue | bool] = (
        [each if isinstance(each, float) else label(each) for each in found] if few else []
    )
    return Calibrated(
        rubric=rubric, metric=metric, n=n, undecided=undecided, scale=scale, confusion=table, figures=figures,
        categories=[False, True] if metric == PASS else shown, labels=labels,
    )  # fmt: skip


def _in_decimals(pairs: Mapping[tuple[LabelValue, LabelValue], int]) -> Mapping[tuple[LabelValue, LabelValue], int]:
    """The pairs with numbers rounded to 9 decimals (rubrics §1.3): a value of 1 - 0.9 is the label 0.1."""
    found: Counter[tuple[LabelValue, LabelValue]] = Counter()
    for pair, count in pairs.items():
        x, y = (each if isinstance(each, str) else round(each, 9) for each in pair)
        found[x, y] += count
    return found


def _chance_corrected(table: Confusion | Unavailable, ordinal: Sequence[float]) -> dict[str, Figure]:
    if isinstance(table, Unavailable):
        return dict.fromkeys(("kappa", "kappa_linear", "kappa_quadratic", "ac1"), table)
    weighted: list[Figure] = [Unavailable("not a scale of three values or more")] * 2
    if len(ordinal) > 2:
        weighted = [cohen_kappa(table, ordinal_weights(ordinal, power)) for power in (1, 2)]
    return {
        "kappa": cohen_kappa(table), "kappa_linear": weighted[0], "kappa_quadratic": weighted[1],
        "ac1": gwet_ac1(table),
    }  # fmt: skip


def _errors(table: Confusion, passes: PassSums | None, labels: LabelSums | None) -> dict[str, Figure]:
    """Our errors on ``labels`` where these are weighed, else on all pairs."""
    (true_negative, false_positive), (false_negative, true_positive) = table.counts
    positives: tuple[float, float] = (true_positive, true_positive + false_negative)
    negatives: tuple[float, float] = (true_negative, true_negative + false_positive)
    if labels is not None and labels.n:
        positives, negatives = labels.true_positive, labels.true_negative
    figures: dict[str, Figure] = {
        "true_positive_rate": error_rate(*positives, "people passed nothing"),
        "true_negative_rate": error_rate(*negatives, "people failed nothing"),
    }
    if passes is None:
        return figures
    all_of_them = from_sums(
        n=passes.n, failures=passes.failures, weight=passes.weight.value, failed_weight=passes.failed_weight.value,
        squared_weight=passes.squared_weight.value,
    )  # fmt: skip
    if all_of_them is None:
        nothing = Unavailable("there are no verdicts that passed or failed")
        return figures | {"pass_rate": nothing, "pass_rate_corrected": nothing}
    ratio, size = all_of_them.pass_ratio, all_of_them.effective_n
    return figures | {
        "pass_rate": error_rate(min(size, size * ratio), size, ""),
        "pass_rate_corrected": rogan_gladen(ratio, size, positives, negatives),
    }


def _prediction_powered(passes: PassSums, labels: LabelSums) -> Figure:
    """The prediction-powered estimate: labelled verdicts as one sample, all others as another."""
    others = from_sums(
        n=passes.n - labels.n, failures=max(0, passes.failures - labels.failures),
        weight=passes.weight.value - labels.weight,
        failed_weight=passes.failed_weight.value - labels.failed_weight,
        squared_weight=passes.squared_weight.value - labels.squared,
    )  # fmt: skip
    if others is None:
        return Unavailable("every verdict is labelled: what people passed of them is the rate")
    return prediction_powered(others.pass_ratio, others.effective_n, labels)


def error_rate(successes: float, n: float, without: str) -> ErrorRate | Unavailable:
    """The rate with its interval; where there is nothing to count, unavailable with the reason ``without``."""
    bounds = wilson(successes, n, Z_95_TWO_SIDED)
    if bounds is None:
        return Unavailable(without)
    return ErrorRate(value=successes / n, lower=bounds.lower, upper=bounds.upper, n=n)


def _json(figure: Figure) -> dict[str, object]:
    if isinstance(figure, Unavailable):
        return {"value": None, "reason": figure.reason}
    if isinstance(figure, float):
        return {"value": figure}
    interval = {"value": figure.rate if isinstance(figure, Corrected) else figure.value}
    interval |= {"lower": figure.lower, "upper": figure.upper}
    return {**interval, "n": figure.n} if isinstance(figure, ErrorRate | ScaleError) else {**interval}
