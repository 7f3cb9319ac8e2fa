"""Remarks: what is reported of the lines of a run, in their order, whichever process judged them.

Gaps: why verdicts are incomplete, each reason once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sidejudge.monitor.config.warnings import only_judged
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import JsonRecord

from .resume import Duplicates

_IGNORED = 50
"""Names of fields that are reported as ignored; names come from the file."""


class Remarks(Protocol):
    """What a run has to report of its lines."""

    def complain(self, message: str) -> None: ...
    def ignored(self, name: str, number: int) -> None: ...
    def case(self, case_id: str, number: int) -> None: ...


@dataclass(slots=True)
class ReportedRemarks:
    """Reports each message to ``write``; a field that is ignored once, and the first case id that stands twice."""

    write: Callable[[str], None]
    _ignored: set[str] = field(default_factory=set)
    _duplicates: Duplicates = field(default_factory=Duplicates)

    @property
    def repeated(self) -> int:
        """How many lines repeat a case id."""
        return self._duplicates.count

    def complain(self, message: str) -> None:
        """Report a message as it is."""
        self.write(message)

    def ignored(self, name: str, number: int) -> None:
        """Report a field that no case has, the first time that it occurs."""
        if name not in self._ignored and len(self._ignored) < _IGNORED:
            self._ignored.add(name)
            self.write(f"line {number}: {name}: is no field of a case and is ignored, here and further on")

    def case(self, case_id: str, number: int) -> None:
        """Take note of the id of a case."""
        first = self._duplicates.first_line(case_id, number)
        if first is not None and self._duplicates.count == 1:
            self.write(
                f"warning: line {number}: case_id: {case_id[:100]!r} stands on line {first} already; both are judged, "
                "but their verdicts have the same name (further ones are only counted)"
            )


@dataclass(slots=True)
class RecordedRemarks:
    """Keeps the remarks of a few lines for the process that reports them."""

    kept: list[tuple[str, str, int]] = field(default_factory=list)

    def complain(self, message: str) -> None:
        self.kept.append(("complain", message, 0))

    def ignored(self, name: str, number: int) -> None:
        self.kept.append(("ignored", name, number))

    def case(self, case_id: str, number: int) -> None:
        self.kept.append(("case", case_id, number))

    def replay(self, remarks: Remarks) -> None:
        """Make the same remarks again, in their order."""
        for kind, text, number in self.kept:
            if kind == "complain":
                remarks.complain(text)
            elif kind == "ignored":
                remarks.ignored(text, number)
            else:
                remarks.case(text, number)


_MOST_KNOWN = 500
"""Different gaps that are counted, the first that come: a reason may quote the case, and memory stays constant."""
_MOST_TOLD = 10
_REASON = 300


_JUDGE_WANTED, _EMBEDDINGS_WANTED = "needs a judge", "needs embeddings"
"""The lexical evaluator's answer to a question for another evaluator."""


@dataclass(slots=True)
class Gaps:
    """Takes verdicts as JSON. ``count`` is how many were incomplete; ``most`` bounds the different gaps."""

    count: int = 0
    most: float = _MOST_KNOWN
    _times: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, verdict: JsonRecord) -> None:
        """Count what is missing in a verdict that neither passed nor failed; others are not looked at."""
        if verdict.get("passed") is not None:
            return
        self.count += 1
        for score in verdict.get("scores", ()):
            if score["status"] in ("unavailable", "error") and _matters(str(verdict["rubric"]), str(score["metric"])):
                gap = (str(verdict["rubric"]), str(score["metric"]), str(score["reason"]))
                self._note(gap, 1)

    def merge(self, later: Gaps) -> None:
        """Count as if the verdicts that another one took had come after one's own; it must have kept all its gaps."""
        self.count += later.count
        for gap, times in later._times.items():
            self._note(gap, times)

    def _note(self, gap: tuple[str, str, str], times: int) -> None:
        if gap in self._times or len(self._times) < self.most:
            self._times[gap] += times

    def reported(self) -> Iterator[str]:
        """A line for each reason, the most frequent first, and one of remedy where another evaluator would help."""
        metrics: dict[tuple[str, str, int], list[str]] = {}
        for (rubric, metric, reason), times in self._times.most_common():
            metrics.setdefault((rubric, reason, times), []).append(metric)
        for (rubric, reason, times), names in list(metrics.items())[:_MOST_TOLD]:
            often = "" if times == 1 else f" ({times} times)"
            yield f"{rubric}: {', '.join(names)}: {label(reason, _REASON)}{often}"
        if len(metrics) > _MOST_TOLD:
            yield f"… and {len(metrics) - _MOST_TOLD} more reasons"
        if any(_JUDGE_WANTED in reason and _only_judged(rubric, name) for rubric, name, reason in self._times):
            without = ", ".join(name for name in RUBRICS if not only_judged(name))
            yield f"remedy: configure a judge (evaluators.judge); rubrics that need none (--rubric NAME) are {without}"
        if any(_EMBEDDINGS_WANTED in reason for _, _, reason in self._times):
            yield "remedy: configure embeddings (evaluators.embedding)"


def _only_judged(rubric: str, metric: str) -> bool:
    """Whether only a judge can evaluate a metric; of a declared rubric the reason alone shows it."""
    return rubric not in RUBRICS or metric in only_judged(rubric)


def _matters(rubric: str, metric: str) -> bool:
    """Whether a verdict can be incomplete for want of this metric: one that is only shown is no reason."""
    criteria = RUBRICS[rubric].criteria if rubric in RUBRICS else ()
    return all(c.weight or c.blocker or c.prerequisite for c in criteria if c.metric.id == metric)
