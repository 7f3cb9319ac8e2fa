"""Calibration: labels that people gave, met with our verdicts on the same cases, metric by metric."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .calibrated import Calibrated, PassSums, calibrated
from .label_line import PASS, LabelLine, LabelLineError, Said, Subject
from .verdict_line import VerdictLine


@dataclass(slots=True)
class _Compared:
    """One metric of one rubric: pairs of (people, we), and how many labels met a verdict without a value."""

    categorical: bool
    pairs: Counter[tuple[Said, Said]] = field(default_factory=Counter)
    undecided: int = 0


class Calibration:
    """Takes every label first, then the verdicts one by one: labels are held in memory, verdicts are not.

    ``replaced`` counts labels that the same person gave again (the last counts), ``met`` those that met a verdict.
    """

    def __init__(self) -> None:
        self._labels: dict[tuple[Subject, str], dict[tuple[str, str], LabelLine]] = {}
        self._compared: dict[tuple[str, str], _Compared] = {}
        self._passes: dict[str, PassSums] = {}
        self._met: set[tuple[Subject, str, str, str]] = set()
        self.labels = 0
        self.replaced = 0

    @property
    def unmet(self) -> int:
        """Labels on cases without a verdict of their rubric."""
        return self.labels - len(self._met)

    def take(self, given: LabelLine) -> None:
        """Take a label; ``LabelLineError`` when it is a category where those before it were numbers, or the reverse."""
        categorical = isinstance(given.stated, str)
        known = self._compared.setdefault((given.rubric, given.metric), _Compared(categorical))
        if known.categorical != categorical:
            before = "categories" if known.categorical else "numbers"
            raise LabelLineError(f"label: the labels of this metric before it are {before}")
        if given.verdict is not None and isinstance(given.verdict, str) != categorical:
            raise LabelLineError("verdict: is not of the kind of its label")
        of_subject = self._labels.setdefault((given.subject, given.rubric), {})
        self.replaced += (given.metric, given.by) in of_subject
        self.labels += (given.metric, given.by) not in of_subject
        of_subject[given.metric, given.by] = given

    def add(self, line: VerdictLine, /) -> None:
        """Take a verdict: count it, and compare it with the labels of its trace and of its case."""
        if line.passed is not None:
            self._passes.setdefault(line.rubric, PassSums()).add(passed=line.passed, weight=line.weight)
        met: dict[tuple[str, str], LabelLine] = {}
        for subject in (("case_id", line.case_id), ("trace_id", line.identity)):
            if subject[1] is not None:
                met |= self._labels.get(((subject[0], subject[1]), line.rubric), {})
        for given in met.values():
            self._compare(given, _stated(line, given))

    def add_stated(self) -> None:
        """Compare every label with the verdict that its own line states."""
        for of_subject in self._labels.values():
            for given in of_subject.values():
                if given.metric == PASS and given.verdict is not None:
                    self._passes.setdefault(given.rubric, PassSums()).add(passed=given.verdict == 1, weight=1.0)
                self._compare(given, given.verdict)

    def report(self) -> list[Calibrated]:
        """What it comes to, by rubric and metric in the order of their first labels."""
        return [
            calibrated(
                rubric=rubric, metric=metric, pairs=compared.pairs, undecided=compared.undecided,
                passes=self._passes.get(rubric, PassSums()) if metric == PASS else None,
            )
            for (rubric, metric), compared in self._compared.items()
        ]  # fmt: skip

    def _compare(self, given: LabelLine, stated: Said | None) -> None:
        self._met.add((given.subject, given.rubric, given.metric, given.by))
        compared = self._compared[given.rubric, given.metric]
        if stated is None:
            compared.undecided += 1
        else:
            compared.pairs[given.stated, stated] += 1


def _stated(line: VerdictLine, given: LabelLine) -> Said | None:
    if given.metric == PASS:
        return None if line.passed is None else float(line.passed)
    score = line.scores.get(given.metric)
    if score is None:
        return None
    return score.rating if isinstance(given.stated, str) else score.value
