"""Two judges, or two wordings of a prompt, on the same labelled cases: their agreement with people and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from sidejudge.scoring.runs.label_line import PASS, LabelLine, LabelValue, Subject, our_value
from sidejudge.scoring.runs.verdict_line import VerdictLine
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED, student
from sidejudge.scoring.statistics.paired import signed_ranks, symmetry

from .judge_report import GoldenAnswer

LEAST: Final = 10
"""Fewest cases judged by both for a difference to be stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedJudges:
    """One metric. ``n`` labels met a value of both; ``missing`` counts labels without a value of A and of B.

    For categories and passes ``a`` and ``b`` are shares of right answers, for numbers mean distances from the label.
    ``difference`` is B minus A with its 95 % interval, ``p`` the chance of a difference this large if both are alike.
    All four are None below ``LEAST`` cases.
    """

    rubric: str
    metric: str
    unit: str
    n: int
    missing: tuple[int, int]
    a: float | None
    b: float | None
    difference: float | None
    lower: float | None
    upper: float | None
    p: float | None

    @property
    def better(self) -> str:
        """``A``, ``B``, or a statement that the cases do not show which."""
        if self.lower is None or self.upper is None or self.p is None:
            return "not told apart"
        # The interval of shares is approximate, and of ten cases it leaves out 0 more often than 5 %; p is exact.
        if self.lower <= 0 <= self.upper or self.p > 0.05:
            return "not told apart"
        higher = self.lower > 0
        return "B" if higher == (self.unit == "right") else "A"

    def to_json(self) -> dict[str, object]:
        stated = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**stated, "missing": list(self.missing), "better": self.better}


@dataclass(slots=True)
class JudgedCases:
    """The values of one judge on labelled cases, taken verdict by verdict, and what judging them cost."""

    labels: Mapping[tuple[Subject, str], Sequence[tuple[int, LabelLine]]]
    values: dict[tuple[Subject, str, str], LabelValue] = field(default_factory=dict)
    usd: float = 0.0
    cases: int = 0
    unpriced: int = 0
    taught: set[tuple[Subject, str]] = field(default_factory=set)
    """Subjects by rubric that may have been shown to the judge as examples: they measure neither judge."""
    replaced: set[tuple[Subject, str, str]] = field(default_factory=set)
    """Labels that name the case where a later one names the trace, or the reverse: each case counts once."""
    again: int = 0
    """Verdicts of runs after the first, which are left out."""

    def part(self) -> JudgedCases:
        """An empty part, for the same labels."""
        return JudgedCases(self.labels)

    @property
    def sums(self) -> JudgedCases:
        """The sums of this part."""
        return self

    def merge(self, later: JudgedCases, /) -> None:
        """Add the sums that a part has taken from the verdicts that follow."""
        self.values |= later.values
        self.usd += later.usd
        self.cases += later.cases
        self.unpriced += later.unpriced
        self.taught |= later.taught
        self.replaced |= later.replaced
        self.again += later.again

    def add(self, line: VerdictLine, /) -> None:
        """Take a verdict; the cost of one without a label is not counted."""
        if line.again:
            self.again += 1
            return
        met: dict[str, tuple[int, LabelLine]] = {}
        for subject in (("case_id", line.case_id), ("trace_id", line.identity)):
            if subject[1] is None:
                continue
            for place, given in self.labels.get(((subject[0], subject[1]), line.rubric), ()):
                if line.taught:
                    self.taught.add((given.subject, line.rubric))
                if (value := our_value(line, given)) is not None:
                    self.values[given.subject, line.rubric, given.metric] = value
                if given.metric in met:
                    earlier = min(met[given.metric], (place, given), key=itemgetter(0))[1]
                    self.replaced.add((earlier.subject, line.rubric, given.metric))
                met[given.metric] = place, given
        if met:
            self.cases += 1
            self.usd += line.judging_usd or 0.0
            self.unpriced += line.judging_usd is None


def grouped(labels: Iterable[LabelLine]) -> dict[tuple[Subject, str], list[tuple[int, LabelLine]]]:
    """Labels by their subject, each with its place; of several for one metric the last counts."""
    found: dict[tuple[Subject, str], dict[str, tuple[int, LabelLine]]] = {}
    for place, given in enumerate(labels):
        found.setdefault((given.subject, given.rubric), {})[given.metric] = place, given
    return {key: list(metrics.values()) for key, metrics in found.items()}


def compare(a: JudgedCases, b: JudgedCases) -> Iterator[PairedJudges]:
    """Compare both judges with the labels, metric by metric; both must have been made for the same labels."""
    by_metric: dict[tuple[str, str], list[LabelLine]] = {}
    for listed in a.labels.values():
        for _, given in listed:
            by_metric.setdefault((given.rubric, given.metric), []).append(given)
    taught, replaced = a.taught | b.taught, a.replaced | b.replaced
    for (rubric, metric), of_metric in by_metric.items():
        pairs, missing = [], [0, 0]
        for given in of_metric:
            key = given.subject, rubric, metric
            if (given.subject, rubric) in taught or key in replaced:
                continue
            values = a.values.get(key), b.values.get(key)
            missing[0] += values[0] is None
            missing[1] += values[1] is None
            if values[0] is not None and values[1] is not None:
                pairs.append((given.stated, values[0], values[1]))
        numeric = metric != PASS and any(
            isinstance(each, float) and each not in (0.0, 1.0) for row in pairs for each in row
        )
        compared = _distances(pairs) if numeric else _right(pairs)
        unit = "distance" if numeric else "right"
        yield PairedJudges(
            rubric=rubric, metric=metric, unit=unit, n=len(pairs), missing=(missing[0], missing[1]), **compared
        )


def compare_answers(a: Iterable[GoldenAnswer], b: Iterable[GoldenAnswer]) -> Iterator[PairedJudges]:
    """Compare both judges' answers to the same labelled examples (``RUBRIC.CASE.METRIC``), metric by metric."""
    by_metric: dict[str, dict[str, list[bool | None]]] = {}
    for place, answers in enumerate((a, b)):
        for one in answers:
            row = by_metric.setdefault(one.question.metric, {}).setdefault(one.question.name, [None, None])
            row[place] = one.right
    for name, rows in by_metric.items():
        rubric, _, metric = name.rpartition(".")
        pairs: list[tuple[LabelValue, LabelValue, LabelValue]] = [
            (1.0, float(one), float(other)) for one, other in rows.values() if one is not None and other is not None
        ]
        none = [sum(row[place] is None for row in rows.values()) for place in (0, 1)]
        yield PairedJudges(
            rubric=rubric, metric=metric, unit="right", n=len(pairs), missing=(none[0], none[1]), **_right(pairs)
        )


def _right(pairs: Sequence[tuple[LabelValue, LabelValue, LabelValue]]) -> dict[str, float | None]:
    """Shares of right answers, and their difference with Agresti and Min's interval for paired shares."""
    n = len(pairs)
    right = [(_same(label, a), _same(label, b)) for label, a, b in pairs]
    only_a, only_b = sum(a and not b for a, b in right), sum(b and not a for a, b in right)
    if n < LEAST:
        return _nothing()
    more, less, whole = only_b + 0.5, only_a + 0.5, n + 2
    middle = (more - less) / whole
    half = Z_95_TWO_SIDED * math.sqrt(more + less - (more - less) ** 2 / whole) / whole
    return {
        "a": sum(a for a, _ in right) / n, "b": sum(b for _, b in right) / n, "difference": (only_b - only_a) / n,
        "lower": max(-1.0, middle - half), "upper": min(1.0, middle + half), "p": symmetry(right),
    }  # fmt: skip


def _same(label: LabelValue, value: LabelValue) -> bool:
    return label == value or (isinstance(label, float) and isinstance(value, float) and abs(label - value) < 1e-9)


def _distances(pairs: Sequence[tuple[LabelValue, LabelValue, LabelValue]]) -> dict[str, float | None]:
    """Mean distances from the labels, and their difference with an interval by its standard error."""
    n = len(pairs)
    if n < LEAST:
        return _nothing()
    # In decimals, as they are written: 0.8 is as far from 0.6 as 0.4 is.
    of_a = [round(abs(float(a) - float(label)), 9) for label, a, _ in pairs]
    of_b = [round(abs(float(b) - float(label)), 9) for label, _, b in pairs]
    differences = [b - a for a, b in zip(of_a, of_b, strict=True)]
    mean = math.fsum(differences) / n
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in differences) / (n - 1) / n)
    margin = student(Z_95_TWO_SIDED, n - 1) * spread
    return {
        "a": math.fsum(of_a) / n, "b": math.fsum(of_b) / n, "difference": mean, "lower": mean - margin,
        "upper": mean + margin, "p": signed_ranks(differences),
    }  # fmt: skip


def _nothing() -> dict[str, float | None]:
    return dict.fromkeys(("a", "b", "difference", "lower", "upper", "p"))
