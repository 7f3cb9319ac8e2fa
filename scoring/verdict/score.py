"""Score: one metric's line in a verdict, and what judges were asked for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final

from scoring.lexical.label import MAX_REASON, label
from scoring.result.result import Judgement, Result, Scored
from scoring.trace.record import record


@record(frozen=True, slots=True, kw_only=True)
class Score:
    """One metric's line in a verdict. ``judgements`` is what judges were asked for it: of use or not, it was paid."""

    metric: str
    weight: float
    result: Result
    rating: str | None
    judgements: tuple[Judgement, ...] = ()
    _said: Mapping[str, object] | None = field(default=None, init=False, repr=False, compare=False)

    def to_json(self) -> Mapping[str, object]:
        """The line as the format page says. Made once, for a score may stand in many verdicts; not to be changed."""
        if self._said is None:
            object.__setattr__(self, "_said", said := self._as_json())
            return said
        return self._said

    def _as_json(self) -> dict[str, object]:
        result = self.result
        scored = result if isinstance(result, Scored) else None
        said: dict[str, object] = {
            "metric": self.metric,
            "value": scored.value if scored else None,
            "weight": self.weight,
            "rating": self.rating,
            "status": result.status,
            "method": scored.method.value if scored else None,
            "reason": label(result.reason, MAX_REASON),
            "details": dict(scored.details) if scored else {},
        }
        if judged := scored.judgements if scored else self.judgements:
            said["judge"] = _judged(judged)
        return said


def judgements_of(scores: Sequence[Score]) -> tuple[Judgement, ...]:
    """What judges were asked: that which the values rest on first, then what came to nothing; each once."""
    found: list[Judgement] = []
    for score in scores:
        if isinstance(score.result, Scored) and score.result.judgements:
            found += score.result.judgements
    for score in scores:
        if score.judgements:
            found += score.judgements
    return tuple(dict.fromkeys(found)) if found else ()


def asked_of_judges(judgements: Sequence[Judgement]) -> dict[str, object]:
    """What judging a verdict took. One call may answer several metrics, and is paid once."""
    if not judgements:
        return dict(_NOBODY)
    calls = _calls(judgements)
    return {
        "model": judgements[0].model,
        "prompt_version": judgements[0].prompt_version,
        "cost_usd": math.fsum([call.cost_usd for call in calls]),
        "calls": sum([call.requests for call in calls]),
        "input_tokens": sum([call.input_tokens for call in calls]),
        "output_tokens": sum([call.output_tokens for call in calls]),
    }


_NOBODY: Final[Mapping[str, object]] = {
    "model": None, "prompt_version": None, "cost_usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0,
}  # fmt: skip


def _judged(judgements: Sequence[Judgement]) -> dict[str, object]:
    """Who judged a score, and at what cost: that of the whole calls, which other scores may share."""
    return {
        "model": judgements[0].model,
        "prompt_version": judgements[0].prompt_version,
        "cost_usd": math.fsum(call.cost_usd for call in _calls(judgements)),
        "cached": not _calls(judgements),
        "flags": list(dict.fromkeys(flag for judgement in judgements for flag in judgement.flags)),
    }


def _calls(judgements: Iterable[Judgement]) -> Sequence[Judgement]:
    """One judgement of each call; an answer out of the cache is no call and costs nothing."""
    return tuple({judgement.call: judgement for judgement in judgements if judgement.call}.values())
