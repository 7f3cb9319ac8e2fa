"""Calibration: people's labels compared with our verdicts on the same cases, metric by metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TypeAlias

from sidejudge.scoring.runs.label_line import PASS, LabelLine, LabelLineError, LabelValue, Subject, our_value
from sidejudge.scoring.runs.tally import MAX_NAMES
from sidejudge.scoring.runs.verdict_line import VerdictLine
from sidejudge.scoring.statistics.ppi import label_sums
from sidejudge.scoring.statistics.sums import FirstFew, OfParts

from .calibrated import Calibrated, PassSums, calibrated

Labels: TypeAlias = Mapping[tuple[Subject, str], Mapping[tuple[str, str], tuple[int, LabelLine]]]
"""By subject and rubric, then by metric and labeller; with the place of each, for the last counts."""


@dataclass(slots=True)
class LabelPairs(OfParts):
    """One metric of one rubric: pairs of (people's, our) values, and how many labels met a verdict without a value."""

    categorical: bool
    pairs: Counter[tuple[LabelValue, LabelValue]] = field(default_factory=Counter)
    undecided: int = 0

    def add(self, given: LabelValue, stated: LabelValue | None) -> None:
        """Count a label and our value of the same metric; None where the verdict has none."""
        if stated is None:
            self.undecided += 1
        else:
            self.pairs[given, stated] += 1


@dataclass(slots=True)
class CalibrationSums(OfParts):
    """Sums over verdicts and labels: by rubric and metric, by rubric, and which labels have met a verdict."""

    compared: dict[tuple[str, str], LabelPairs] = field(default_factory=dict)
    passes: dict[str, PassSums] = field(default_factory=dict)
    met: set[tuple[Subject, str, str, str]] = field(default_factory=set)
    labelled: dict[str, Counter[tuple[bool, bool, float]]] = field(default_factory=dict)
    """By rubric, verdicts with a label: (person passes, we pass, weight). Of several labels the last counts."""
    taught: int = 0
    """Labels that may have been shown to the judge as examples: they cannot measure it."""
    again: int = 0
    """Verdicts of runs after the first, which are left out: each case counts once."""
    versions: dict[str, FirstFew[str]] = field(default_factory=dict)
    """By rubric, the versions of the verdicts."""
    judges: dict[str, FirstFew[str]] = field(default_factory=dict)
    """By rubric, the judges that reached verdicts alone."""

    def add(self, line: VerdictLine, labels: Labels) -> None:
        """Take a verdict."""
        if line.again:
            self.again += 1
            return
        self.versions.setdefault(line.rubric, FirstFew(MAX_NAMES)).keep(line.rubric_version)
        if line.judge is not None:
            self.judges.setdefault(line.rubric, FirstFew(MAX_NAMES)).keep(line.judge)
        if line.passed is not None:
            self.count_pass(line.rubric, passed=line.passed, weight=line.weight)
        taken: list[tuple[int, LabelLine]] = []
        for subject in (("case_id", line.case_id), ("trace_id", line.identity)):
            if subject[1] is not None:
                taken += labels.get(((subject[0], subject[1]), line.rubric), {}).values()
        met: dict[tuple[str, str], LabelLine] = {}
        for _, given in sorted(taken, key=itemgetter(0)):  # some name the case, and others the trace
            met.pop((given.metric, given.by), None)
            met[given.metric, given.by] = given
            self.met.add((given.subject, given.rubric, given.metric, given.by))
        if line.taught:
            self.taught += len(met)
            return
        for given in met.values():
            self.compare(given, our_value(line, given))
        of_pass = [given for given in met.values() if given.metric == PASS]
        if of_pass and line.passed is not None:
            self.count_label(of_pass[-1], passed=line.passed, weight=line.weight)

    def count_label(self, given: LabelLine, *, passed: bool, weight: float) -> None:
        """Count a verdict that has this label."""
        self.labelled.setdefault(given.rubric, Counter())[given.stated == 1, passed, weight] += 1

    def count_pass(self, rubric: str, *, passed: bool, weight: float) -> None:
        """Count whether a verdict passed."""
        self.passes.setdefault(rubric, PassSums()).add(passed=passed, weight=weight)

    def compare(self, given: LabelLine, stated: LabelValue | None) -> None:
        """Compare a label with our value of the same metric."""
        self.met.add((given.subject, given.rubric, given.metric, given.by))
        compared = LabelPairs(isinstance(given.stated, str))
        self.compared.setdefault((given.rubric, given.metric), compared).add(given.stated, stated)


class CalibrationPart:
    """Counts one part of the verdicts."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self.sums = CalibrationSums()

    def add(self, line: VerdictLine, /) -> None:
        """Take a verdict."""
        self.sums.add(line, self._labels)


class Calibration:
    """Takes every label first, then the verdicts one by one: labels are held in memory, verdicts are not.

    ``replaced`` counts labels that the same person gave again (the last counts), ``met`` those that met a verdict.
    """

    def __init__(self) -> None:
        self._labels: dict[tuple[Subject, str], dict[tuple[str, str], tuple[int, LabelLine]]] = {}
        self._sums = CalibrationSums()
        self.labels = 0
        self.replaced = 0

    @property
    def unmet(self) -> int:
        """Labels on cases without a verdict of their rubric."""
        return self.labels - len(self._sums.met)

    @property
    def taught(self) -> int:
        """Labels on cases that serve as examples, for verdicts whose judge was shown examples from labels."""
        return self._sums.taught

    @property
    def again(self) -> int:
        """Verdicts of runs after the first, which are left out."""
        return self._sums.again

    def mixed(self) -> Iterator[str]:
        """Why a rubric's figures mix judges: its verdicts come from several versions, or from several judges."""
        for rubric in sorted({rubric for rubric, _ in self._sums.compared}):
            for what, known in (("versions", self._sums.versions), ("judges", self._sums.judges)):
                if len(names := known.get(rubric, ())) > 1:
                    yield f"verdicts of several {what} of {rubric} are put together: {', '.join(sorted(names))}"

    def part(self) -> CalibrationPart:
        """A new part, to count some of the verdicts against the labels taken so far."""
        return CalibrationPart(self._labels)

    def merge(self, sums: CalibrationSums, /) -> None:
        """Add the counts that a part has made of the verdicts that follow."""
        self._sums.merge(sums)

    def take(self, given: LabelLine) -> None:
        """Take a label; ``LabelLineError`` when it is a category where earlier labels were numbers, or the reverse."""
        categorical = isinstance(given.stated, str)
        known = self._sums.compared.setdefault((given.rubric, given.metric), LabelPairs(categorical))
        if known.categorical != categorical:
            before = "categories" if known.categorical else "numbers"
            raise LabelLineError(f"label: the labels of this metric before it are {before}")
        if given.verdict is not None and isinstance(given.verdict, str) != categorical:
            raise LabelLineError("verdict: is not of the kind of its label")
        of_subject = self._labels.setdefault((given.subject, given.rubric), {})
        again = of_subject.pop((given.metric, given.by), None) is not None
        self.replaced += again
        self.labels += not again
        # At the end: the last of several people's counts for their verdict.
        of_subject[given.metric, given.by] = self.labels + self.replaced, given

    def add(self, line: VerdictLine, /) -> None:
        """Take a verdict: count it, and compare it with the labels of its trace and of its case."""
        self._sums.add(line, self._labels)

    def add_stated(self) -> None:
        """Compare every label with the verdict that its own line states; several on one case state the same one."""
        for of_subject in self._labels.values():
            for _, given in of_subject.values():
                self._sums.compare(given, given.verdict)
            of_pass = [each for _, each in of_subject.values() if each.metric == PASS and each.verdict is not None]
            for given in of_pass[-1:]:
                self._sums.count_pass(given.rubric, passed=given.verdict == 1, weight=1.0)
                self._sums.count_label(given, passed=given.verdict == 1, weight=1.0)

    def report(self) -> list[Calibrated]:
        """The calibrated figures by rubric and metric, in the order of their first labels."""
        return [
            calibrated(
                rubric=rubric, metric=metric, pairs=compared.pairs, undecided=compared.undecided,
                passes=self._sums.passes.get(rubric, PassSums()) if metric == PASS else None,
                labels=label_sums(self._sums.labelled.get(rubric, Counter()).elements()) if metric == PASS else None,
            )
            for (rubric, metric), compared in self._sums.compared.items()
        ]  # fmt: skip
