"""Aggregates of a run of ``answer``, by the names of seed 002 §1 and §3.3, accumulated sample by sample.

Means, rates and percentiles weigh each sample by the inverse of the probability with which its case was drawn; counts
and totals are of the samples themselves. Sums are exact; p50 and p95 are exact too, for which the latencies are kept
with their weights: at most 32 bytes a sample on arrival, and about 40 more for one of the two while it is sorted (160
where the weights differ). A figure covers the samples that have its fields (``known`` counts those), and is
*unavailable* with a reason when none has.

A sample is the part of one verdict of ``answer`` that these need, read from the verdict's JSON. ``timed_out`` and the
two token counts are read from the verdict's ``answer``, else from the details of the metric that shows them.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.result import Failed, Unavailable
from sidejudge.scoring.statistics.descriptive import p50, p95
from sidejudge.scoring.statistics.sums import ExactSum
from sidejudge.scoring.trace.jsontext import mapping

from .tally import Mean
from .verdict_line import VerdictLine, VerdictLineError, number, read_verdict, scores

METRICS = (
    "accuracy_score", "faithfulness_score", "latency_e2e_ms", "latency_model_ms", "total_tokens",
    "token_efficiency_ratio",
)  # fmt: skip
_GRADES = METRICS[:2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One judged answer; ``None`` means unknown. ``sample_score`` is the composite, in [0, 1]; latencies are in ms.

    ``weight`` is the inverse of the probability with which the case was drawn. ``ungraded`` is why an existing answer
    has no grade; ``None`` when it has one.
    """

    weight: float
    sample_score: float | None
    passed: bool | None
    accuracy_score: float | None = None
    faithfulness_score: float | None = None
    ungraded: str | None
    latency_e2e_ms: float | None = None
    latency_model_ms: float | None = None
    timed_out: bool = False
    input_tokens: float | None = None
    output_tokens: float | None = None
    total_tokens: float | None = None
    token_efficiency_ratio: float | None = None


def read_sample(verdict: Mapping[str, object]) -> Sample:
    """The sample of a verdict; ``VerdictLineError`` names an invalid field."""
    lines = scores(verdict)
    values = {name: number(lines.get(name, {}), "value", least=0, name=f"scores.{name}.value") for name in METRICS}
    for name in _GRADES:
        if values[name] not in (None, 0, 1, 2):
            raise VerdictLineError(f"scores.{name}.value: is not 0, 1 or 2")
    stands = _decided(verdict)
    latency, tokens = (mapping(lines.get(name, {}).get("details")) for name in ("latency_e2e_ms", "total_tokens"))
    stated = {**latency, **tokens, **mapping(verdict.get("answer"))}
    return Sample(
        weight=stands.weight,
        sample_score=stands.composite,
        passed=stands.passed,
        ungraded=_ungraded(lines),
        timed_out=stated.get("timed_out") is True,
        input_tokens=number(stated, "input_tokens", least=0),
        output_tokens=number(stated, "output_tokens", least=0),
        **values,
    )


def sample_of_any(verdict: Mapping[str, object]) -> Sample:
    """The sample of a verdict by any other rubric: composite and decision, and whether an evaluator failed."""
    line = _decided(verdict)
    failed = next(((name, each) for name, each in line.scores.items() if each.status == Failed.status), None)
    return Sample(
        weight=line.weight, sample_score=line.composite, passed=line.passed,
        ungraded=None if failed is None else f"{failed[0]} failed: {label(failed[1].reason or 'no reason', 200)}",
    )  # fmt: skip


def _decided(verdict: Mapping[str, object]) -> VerdictLine:
    if "passed" not in verdict:
        raise VerdictLineError("passed: is missing")
    return read_verdict(verdict)


def _ungraded(lines: Mapping[str, Mapping[str, object]]) -> str | None:
    for name in _GRADES:
        line = lines.get(name, {})
        if line.get("value") is None and line.get("status") != "not_applicable":
            return f"{name} {line.get('status') or 'is absent'}: {label(str(line.get('reason') or 'no reason'), 200)}"
    return None


Figure: TypeAlias = float | int | Unavailable

_MEANS = ("sample_score", "accuracy_score", "faithfulness_score", "token_efficiency_ratio")
_TOTALS = ("input_tokens", "output_tokens", "total_tokens")
_LATENCIES = ("latency_e2e_ms", "latency_model_ms")
FIELDS = (*_MEANS, *_LATENCIES, *_TOTALS)
"""The fields of a sample that may be unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """The aggregates of one run. ``figures`` are by name, in the order of the seed; ``known`` counts samples by field.

    ``n == passed + failed + incomplete``. ``evaluator_errors`` counts samples without a grade, ``evaluator_error`` is
    why the first of them has none. Latencies are in ms, rates and scores in [0, 1], grades in [0, 2].
    """

    n: int
    passed: int
    failed: int
    incomplete: int
    evaluator_errors: int
    evaluator_error: str | None
    timed_out: int
    known: Mapping[str, int]
    figures: Mapping[str, Figure]

    def to_json(self) -> dict[str, object]:
        """Counts and figures; a figure that cannot be computed is null, with its reason under ``unavailable``."""
        return {
            "n": self.n, "passed": self.passed, "failed": self.failed, "incomplete": self.incomplete,
            "evaluator_errors": self.evaluator_errors, "timed_out": self.timed_out, "known": dict(self.known),
            **{name: None if isinstance(value, Unavailable) else value for name, value in self.figures.items()},
            "unavailable": {n: value.reason for n, value in self.figures.items() if isinstance(value, Unavailable)},
        }  # fmt: skip


@dataclass(slots=True)
class Accumulator:
    """Takes in samples; ``aggregates`` returns the figures so far."""

    _n: int = 0
    _ungraded: int = 0
    _why: str | None = None
    _timed_out: int = 0
    _passed: Counter[bool | None] = field(default_factory=Counter)
    _means: dict[str, Mean] = field(default_factory=lambda: defaultdict(Mean))
    _totals: dict[str, ExactSum] = field(default_factory=lambda: defaultdict(ExactSum))
    _latencies: dict[str, tuple[array[float], array[float]]] = field(
        default_factory=lambda: {name: (array("d"), array("d")) for name in _LATENCIES}
    )

    def add(self, sample: Sample) -> None:
        """Take in one sample."""
        self._n += 1
        self._passed[sample.passed] += 1
        self._timed_out += sample.timed_out
        if sample.ungraded is not None:
            self._ungraded += 1
            self._why = self._why or sample.ungraded
        self._mean("ungraded", sample.ungraded is not None, sample)
        self._mean("undecided", sample.passed is None, sample)
        if sample.passed is not None:
            self._mean("passed", sample.passed, sample)
        if sample.accuracy_score is not None:
            self._mean("full_credit", sample.accuracy_score == 2, sample)
        if sample.faithfulness_score is not None:
            self._mean("unfaithful", sample.faithfulness_score == 0, sample)
        for name in (*_MEANS, *_TOTALS):
            if (value := getattr(sample, name)) is not None:
                self._mean(name, value, sample)
                if name in _TOTALS:
                    self._totals[name].add(value)
        for name, (values, weights) in self._latencies.items():
            if (value := getattr(sample, name)) is not None:
                values.append(value)
                weights.append(sample.weight)

    def aggregates(self) -> Aggregates:
        """The aggregates of all samples so far."""
        figures: dict[str, Figure] = {
            "accuracy_mean": self._figure("accuracy_score"),
            "accuracy_full_credit_rate": self._figure("full_credit", "no sample has an accuracy_score"),
            "faithfulness_mean": self._figure("faithfulness_score"),
            "faithfulness_failure_rate": self._figure("unfaithful", "no sample has a faithfulness_score"),
        }
        for name, (values, weights) in self._latencies.items():
            for quantile, of in (("p50", p50), ("p95", p95)):
                figure = of(values, weights)
                figures[f"{name.removesuffix('_ms')}_{quantile}_ms"] = _none(name) if figure is None else figure
        figures["total_input_tokens"] = self._total("input_tokens")
        figures["total_output_tokens"] = self._total("output_tokens")
        figures["total_tokens"] = self._total("total_tokens")
        figures["token_efficiency_ratio_mean"] = self._figure("token_efficiency_ratio")
        figures["tokens_per_correct_answer"] = self._tokens_per_correct_answer(figures["total_tokens"])
        figures["aggregate_score"] = self._figure("sample_score")
        figures["pass_rate"] = self._figure("passed", "no sample passes or fails: all are incomplete")
        figures["evaluator_error_rate"] = self._figure("ungraded", "there is no sample")
        figures["incomplete_rate"] = self._figure("undecided", "there is no sample")
        known = {name: self._means[name].n for name in (*_MEANS, *_TOTALS)}
        known |= {name: len(values) for name, (values, _) in self._latencies.items()}
        return Aggregates(
            n=self._n, passed=self._passed[True], failed=self._passed[False], incomplete=self._passed[None],
            evaluator_errors=self._ungraded, evaluator_error=self._why, timed_out=self._timed_out,
            known={name: known[name] for name in FIELDS}, figures=figures,
        )  # fmt: skip

    def _mean(self, name: str, value: float, sample: Sample) -> None:
        self._means[name].add(float(value), sample.weight)

    def _figure(self, name: str, otherwise: str = "") -> Figure:
        mean = self._means[name].unrounded
        return mean if mean is not None else Unavailable(otherwise) if otherwise else _none(name)

    def _total(self, name: str) -> Figure:
        if not self._means[name].n:
            return _none(name)
        value = self._totals[name].value
        return int(value) if value.is_integer() else value

    def _tokens_per_correct_answer(self, total: Figure) -> Figure:
        """Tokens of all for each answer of full credit, both weighed; all tokens where there is none."""
        if isinstance(total, Unavailable):
            return total
        correct = self._means["full_credit"]
        if not correct.n:
            return _none("accuracy_score")
        return self._means["total_tokens"].total / correct.total if correct.total else float(total)


def _none(name: str) -> Unavailable:
    return Unavailable(f"no sample has a {name}")
