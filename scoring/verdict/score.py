"""Score: one metric's line in a verdict, and the calls to judges made for it.

Where verdicts are written back a score has a name (Langfuse: 1–35 characters of ``[a-z0-9_.-]``). A metric's is
``<rubric>_<metric>``, the composite's ``<rubric>_score``, the pass's ``<rubric>_pass``, the state's ``<rubric>_state``.
A longer name uses the metric's ``short`` form instead, which is part of its declaration and never changes.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from sidejudge.scoring.lexical.shown_text import MAX_REASON
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.result.reason import cut, reason_fields
from sidejudge.scoring.result.result import Judgement, Result, Scored
from sidejudge.scoring.trace.record import record


@record(frozen=True, slots=True, kw_only=False)
class Score:
    """One metric's line in a verdict. ``judgements`` are all calls to judges for it, useful or not."""

    metric: str
    weight: float
    result: Result
    rating: str | None
    judgements: tuple[Judgement, ...] = ()
    _stated: Mapping[str, object] | None = field(default=None, init=False, repr=False, compare=False)

    def to_json(self) -> Mapping[str, object]:
        """The line in the documented format. Cached, because verdicts may share a score; do not change it."""
        if self._stated is None:
            object.__setattr__(self, "_stated", stated := self._as_json())
            return stated
        return self._stated

    def _as_json(self) -> dict[str, object]:
        result = self.result
        scored = result if isinstance(result, Scored) else None
        reason = cut(result.reason, MAX_REASON) if result.reason else ""
        stated: dict[str, object] = {
            "metric": self.metric,
            "value": scored.value if scored else None,
            "weight": self.weight,
            "rating": self.rating,
            "status": result.status,
            "method": scored.method._value_ if scored else None,  # ``value`` is a property, and takes 4 times as long
            **reason_fields(reason),
            "details": dict(scored.details) if scored else {},
        }
        requested = self.requested
        if requested:
            stated["judge"] = _judged(requested)
        return stated

    @property
    def requested(self) -> tuple[Judgement, ...]:
        """The judge requests behind the value; without a value, those made in vain."""
        return self.result.judgements if isinstance(self.result, Scored) else self.judgements


def judgements_of(scores: Sequence[Score]) -> tuple[Judgement, ...]:
    """Calls to judges without repeats: those behind values first, then those without a value."""
    found: list[Judgement] = []
    others: list[Judgement] = []
    for score in scores:
        if isinstance(score.result, Scored) and score.result.judgements:
            found += score.result.judgements
        if score.judgements:
            others += score.judgements
    return tuple(dict.fromkeys(found + others)) if found or others else ()


def requested_of_judges(scores: Sequence[Score]) -> dict[str, object]:
    """The judge's part in a verdict. Calls and tokens count whole calls, each once; the cost is a share."""
    judgements = judgements_of(scores)
    if not judgements:
        return dict(_NOBODY)
    calls = _calls(judgements)
    shares: defaultdict[str, float] = defaultdict(float)
    for score in scores:
        for call in _calls((*score.requested, *score.judgements)):  # requests without an answer are paid as well
            shares[call.call] += call.share
    return {
        "model": judgements[0].model,
        "prompt_version": judgements[0].prompt_version,
        "cost_usd": math.fsum([call.cost_usd * min(1.0, shares[call.call]) for call in calls]),
        "calls": sum([call.requests for call in calls]),
        "input_tokens": sum([call.input_tokens for call in calls]),
        "output_tokens": sum([call.output_tokens for call in calls]),
        "call_ids": [call.call for call in calls],
    }


_NOBODY: Final[Mapping[str, object]] = {
    "model": None, "prompt_version": None, "cost_usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0,
}  # fmt: skip


def _judged(judgements: Sequence[Judgement]) -> dict[str, object]:
    """The judge of a score and the score's share of its calls' cost."""
    reported: dict[str, object] = {
        "model": judgements[0].model,
        "prompt_version": judgements[0].prompt_version,
        "cost_usd": math.fsum([call.cost_usd * call.share for call in _calls(judgements)]),
        "cached": not _calls(judgements),
        "flags": list(dict.fromkeys(flag for judgement in judgements for flag in judgement.flags)),
        "call_ids": [call.call for call in _calls(judgements)],
    }
    if panels := [judgement for judgement in judgements if judgement.votes]:
        reported["votes"] = [dict(judgement.votes) for judgement in panels]
        reported["dissent"] = math.fsum(judgement.dissent for judgement in panels) / len(panels)
    return reported


def _calls(judgements: Iterable[Judgement]) -> Sequence[Judgement]:
    """One judgement of each call; an answer from the cache is no call and costs nothing."""
    return tuple({judgement.call: judgement for judgement in judgements if judgement.call}.values())


MAX_SCORE_NAME = 35
_ALLOWED = re.compile(r"[a-z0-9_.-]{1,35}")


def score_name(rubric: str, metric: Metric) -> str:
    """The name of a metric's score under a rubric; ``ValueError`` names what its declaration lacks.

    >>> from sidejudge.scoring.rubrics.answer import accuracy_score
    >>> score_name("answer", accuracy_score)
    'answer_accuracy_score'
    """
    full = f"{rubric}_{metric.id}"
    if len(full) <= MAX_SCORE_NAME:
        return _checked(full)
    if metric.short is None:
        raise ValueError(
            f"{full} has {len(full)} characters, {MAX_SCORE_NAME} are allowed: give the metric {metric.id!r} a "
            f"short= of at most {MAX_SCORE_NAME - len(rubric) - 1} characters"
        )
    return _checked(f"{rubric}_{metric.short}")


def composite_name(rubric: str) -> str:
    """The name of a rubric's composite."""
    return _checked(f"{rubric}_score")


def pass_name(rubric: str) -> str:
    """The name of a rubric's pass, a truth value."""
    return _checked(f"{rubric}_pass")


def state_name(rubric: str) -> str:
    """The name of the state of a rubric's verdict, a category."""
    return _checked(f"{rubric}_state")


def _checked(name: str) -> str:
    if _ALLOWED.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no score name: 1 to {MAX_SCORE_NAME} characters of a-z, 0-9, '_', '.' and '-'")
    return name
