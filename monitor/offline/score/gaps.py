"""Gaps: why verdicts are incomplete, each reason once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from sidejudge.monitor.config.warnings import only_judged
from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import JsonRecord

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
