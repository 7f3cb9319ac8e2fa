"""Scores that others reported for a run, as the value of a metric, with their evaluators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.feedback import negative
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.reason import Reason, own, part, quoted, together
from sidejudge.scoring.result.result import Method, Result, Scored, Unavailable
from sidejudge.scoring.trace.reported import WRONG_VALUES, ReportedScore

_SHOWN: Final = 5
"""Most evaluators that a reason names, and most explanations that it quotes."""
_QUOTED: Final = 200
_FIGURE: Final = re.compile(r"[0-9]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedMeasure:
    """The mean of the latest score of each evaluator on each step.

    ``by``: globs for the evaluators that count, () for all. ``passes``: labels that count as the upper of the
    ``bounds``, others as the lower; without any, the words for good and bad of users' feedback count. A number outside
    the bounds is no value.
    """

    name: str
    by: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, 1.0)

    def __call__(self, case: Case) -> Result:
        latest: dict[tuple[str, str | None], ReportedScore] = {}
        for score in sorted(case.reported, key=lambda each: each.at_ns):
            if score.name == self.name and (not self.by or any(fnmatchcase(whose(score), glob) for glob in self.by)):
                latest[whose(score), score.span_id] = score
        if not latest:
            return Unavailable(Reason("nobody reported {name}", name=part(self.name)))
        read = [(score, self._read(score)) for score in latest.values()]
        values = [(score, value) for score, value in read if isinstance(value, float)]
        if not values:
            return Unavailable(next(value for _, value in read if isinstance(value, Reason)))
        mean = sum(value for _, value in values) / len(values)
        return Scored(
            value=mean,
            method=Method.REPORTED,
            reason=_stated([score for score, _ in values]),
            details={"by": list(dict.fromkeys(whose(score) for score, _ in values))[:_SHOWN], "reported": len(values)},
        )

    def _read(self, score: ReportedScore) -> float | Reason:
        """The value of a score, or why it has none."""
        by = part(whose(score))
        if score.invalid is not None:
            what = own(score.invalid) if score.invalid in WRONG_VALUES else quoted(label(score.invalid))
            return Reason("{by} reported no value: {what}", by=by, what=what)
        if self.passes:
            if score.label is None:
                return Reason("{by} reported no label", by=by)
            return self.bounds[score.label in self.passes]
        if score.value is None and score.label is None:
            return Reason("{by} reported neither a value nor a label", by=by)
        if score.value is None:
            bad = None if _FIGURE.search(score.label or "") else negative({"feedback": score.label})
            if bad is None:
                stated = quoted(label(score.label or ""))
                return Reason(
                    "{by} reported the label {label} alone; passes: names those that pass", by=by, label=stated
                )
            return self.bounds[not bad]
        low, high = self.bounds
        if not low <= score.value <= high:
            span = own(f"{low:g} to {high:g}")
            return Reason("{by} reported {value:g}, outside of {span}", by=by, value=score.value, span=span)
        return score.value


def whose(score: ReportedScore) -> str:
    """The evaluator that a score names, and the way it arrived: ``ragas (telemetry)``."""
    return f"{label(score.by)} ({score.via})" if score.by else f"unnamed ({score.via})"


def _stated(scores: Sequence[ReportedScore]) -> Reason:
    names = dict.fromkeys(whose(score) for score in scores)
    found = Reason("reported by {names}", names=together((part(name) for name in list(names)[:_SHOWN]), ", "))
    texts = list(dict.fromkeys(score.explanation for score in scores if score.explanation))[:_SHOWN]
    if not texts:
        return found
    return Reason("{by}: {why}", by=found, why=together((quoted(label(text, _QUOTED)) for text in texts), "; "))
