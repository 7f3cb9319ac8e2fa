"""Verdict: what a rubric says of a case, once all its results are in (rubrics §1.4–1.6).

A blocker that could not be checked, whatever its effect would be, leaves its mark: the verdict is at best *partial*,
and its reason names the check. Only a blocker that was checked, or does not apply, lets a verdict be *valid*.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Literal, TypeAlias

from .bands import Blocker, Effect
from .case import Case
from .label import MAX_REASON, label
from .record import record
from .result import Failed, Judgement, NotApplicable, Result, Scored, Unavailable
from .rubric import Criterion, Rubric

Selection: TypeAlias = Literal["random", "forced"]
"""Drawn by the base rate, or kept only because a rule on its content demanded it."""

_DIGITS = 12
_GAPS = (Unavailable, Failed)


class State(StrEnum):
    """``valid`` and ``partial`` carry a composite and may pass; ``incomplete`` neither passes nor fails.

    ``partial``: some weight was not scored, or a blocker could not be checked.
    """

    VALID = "valid"
    PARTIAL = "partial"
    DISQUALIFIED = "disqualified"
    INVALID = "invalid"
    INCOMPLETE = "incomplete"


@record(frozen=True, slots=True, kw_only=True)
class Score:
    """One metric's line in a verdict. ``judgements`` is what judges were asked for it: of use or not, it was paid."""

    metric: str
    weight: float
    result: Result
    rating: str | None
    judgements: tuple[Judgement, ...] = ()

    def to_json(self) -> dict[str, object]:
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


def _judged(judgements: Sequence[Judgement]) -> dict[str, object]:
    """Who judged a score, and at what cost: that of the whole calls, which other scores may share."""
    return {
        "model": judgements[0].model,
        "prompt_version": judgements[0].prompt_version,
        "cost_usd": math.fsum(call.cost_usd for call in _calls(judgements)),
        "cached": not _calls(judgements),
        "flags": list(dict.fromkeys(flag for judgement in judgements for flag in judgement.flags)),
    }


def _asked_of_judges(judgements: Sequence[Judgement]) -> dict[str, object]:
    """What judging a verdict took. One call may answer several metrics, and is paid once."""
    calls = _calls(judgements) if judgements else ()
    return {
        "model": judgements[0].model if judgements else None,
        "prompt_version": judgements[0].prompt_version if judgements else None,
        "cost_usd": math.fsum([call.cost_usd for call in calls]),
        "calls": sum([call.requests for call in calls]),
        "input_tokens": sum([call.input_tokens for call in calls]),
        "output_tokens": sum([call.output_tokens for call in calls]),
    }


def _calls(judgements: Iterable[Judgement]) -> Sequence[Judgement]:
    """One judgement of each call; an answer out of the cache is no call and costs nothing."""
    return tuple({judgement.call: judgement for judgement in judgements if judgement.call}.values())


@record(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One case under one rubric. ``composite`` is None when invalid or incomplete, ``passed`` is None when incomplete.

    ``coverage`` is the scored share of the applicable weight, in [0, 1]. ``sampling_probability`` is the chance that
    the case was drawn at all; an estimate weighs the verdict by its inverse. ``revision`` counts re-scores from 1.
    ``cost_usd`` is what the judged call cost, not its judgement.
    """

    case_id: str
    rubric: str
    rubric_version: str
    composite: float | None
    composite_norm: float | None
    coverage: float
    state: State
    passed: bool | None
    rating: str | None
    blockers: tuple[str, ...]
    pass_mark: float | None
    scores: tuple[Score, ...]
    sampling_probability: float
    created_at: str
    reason: str = ""
    task: str | None = None
    trace_id: str | None = None
    service: str | None = None
    environment: str | None = None
    session_id: str | None = None
    selection: Selection = "random"
    revision: int = 1
    cost_usd: float | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """What judges were asked on its behalf: those that its values rest on first, then what came to nothing."""
        results = [score.result for score in self.scores]
        scored = [judged for result in results if isinstance(result, Scored) for judged in result.judgements]
        asked = [judged for score in self.scores for judged in score.judgements]
        return tuple(dict.fromkeys(scored + asked))

    def to_json(self) -> dict[str, object]:
        """The verdict as the format page says, ready for a JSON line."""
        return {
            "case_id": self.case_id, "trace_id": self.trace_id, "task": self.task,
            "rubric": self.rubric, "rubric_version": self.rubric_version,
            "composite": self.composite, "composite_norm": self.composite_norm, "coverage": self.coverage,
            "state": self.state.value, "passed": self.passed, "rating": self.rating,
            "blockers": list(self.blockers), "pass_mark": self.pass_mark, "reason": self.reason,
            "scores": [score.to_json() for score in self.scores],
            "judge": _asked_of_judges(self.judgements),
            "service": self.service, "environment": self.environment, "session_id": self.session_id,
            "selection": self.selection, "revision": self.revision,
            "sampling_probability": self.sampling_probability, "cost_usd": self.cost_usd,
            "created_at": self.created_at,
            **self.extra,
        }  # fmt: skip


def reach_verdict(
    rubric: Rubric,
    case: Case,
    results: Mapping[str, Result],
    *,
    created_at: str,
    judgements: Mapping[str, tuple[Judgement, ...]] | None = None,
    selection: Selection = "random",
    revision: int = 1,
) -> Verdict:
    """Weigh, rate and block. ``results`` holds one result for each of the rubric's metrics.

    ``judgements`` is what judges were asked for each, also where its result says nothing of it.

    Order of the results is irrelevant; a better value never lowers the composite; a metric without a value lowers
    coverage (or, when not applicable, gives its weight to the others) and never the score.
    """
    unmet = [c.metric.id for c in rubric.prerequisites if _value(results, c) not in (None, 1.0)]
    if unmet:
        results = _after_prerequisites(rubric, results, unmet[0])
    paid = judgements or {}
    scores = tuple([
        Score(
            metric=(metric := criterion.metric.id),
            weight=criterion.weight,
            result=(result := results[metric]),
            rating=_rated(criterion, result.value) if isinstance(result, Scored) else None,
            judgements=paid.get(metric, ()),
        )
        for criterion in rubric.criteria
    ])  # fmt: skip
    hits = [(c.metric.id, blocker.effect) for c, blocker in rubric.blocking if _blocks(c, blocker, results)]
    invalid = bool(unmet) or any(effect is Effect.INVALID for _, effect in hits)

    coverage, weighed = _weigh(rubric, results)
    unknown = [c.metric.id for c in rubric.prerequisites if _missing(results, c)]
    unchecked = [c.metric.id for c, _ in rubric.blocking if _missing(results, c)]
    known = weighed is not None and coverage >= rubric.min_coverage - 1e-9 and not unknown
    composite = round(weighed * rubric.scale, _DIGITS) if weighed is not None and known and not invalid else None
    passed = False if invalid or hits else _passed(rubric, composite, results)
    if invalid:
        state = State.INVALID
    elif composite is None or passed is None:
        state, composite, passed = State.INCOMPLETE, None, None
    elif hits:
        state = State.DISQUALIFIED
    else:
        # A blocker that could not be checked leaves a mark, though it may have no weight.
        state = State.VALID if coverage >= 1.0 - 1e-9 and not unchecked else State.PARTIAL
    return Verdict(
        case_id=case.case_id,
        rubric=rubric.id,
        rubric_version=rubric.version,
        composite=composite,
        composite_norm=None if composite is None else composite / rubric.scale,
        coverage=coverage,
        state=state,
        passed=passed,
        rating=_rating(rubric, state, composite),
        blockers=tuple(unmet) + tuple(metric for metric, _ in hits),
        pass_mark=rubric.pass_mark,
        scores=scores,
        sampling_probability=case.sampling_probability,
        created_at=created_at,
        reason=label(
            _reason(
                state,
                scores,
                unmet + [metric for metric, _ in hits],
                unknown + unchecked,
                failed=passed is False,
            ),
            MAX_REASON,
        ),
        task=case.task,
        trace_id=case.trace_id,
        service=case.service,
        environment=case.environment,
        session_id=case.session_id,
        selection=selection,
        revision=revision,
        cost_usd=case.cost_usd,
        extra=rubric.detail(case, composite, results) if rubric.detail else {},
    )


def _value(results: Mapping[str, Result], criterion: Criterion) -> float | None:
    result = results[criterion.metric.id]
    return result.value if isinstance(result, Scored) else None


def _missing(results: Mapping[str, Result], criterion: Criterion) -> bool:
    return isinstance(results[criterion.metric.id], _GAPS)


def _after_prerequisites(rubric: Rubric, results: Mapping[str, Result], unmet: str) -> dict[str, Result]:
    """An unmet prerequisite makes every other metric of the rubric not applicable (rubrics §2)."""
    kept = {c.metric.id for c in rubric.prerequisites}
    why = NotApplicable(f"{unmet} is 0")
    return {name: result if name in kept else why for name, result in results.items()}


def _blocks(criterion: Criterion, blocker: Blocker, results: Mapping[str, Result]) -> bool:
    value = _value(results, criterion)
    return value is not None and blocker.blocks(value)


def _rated(criterion: Criterion, value: float) -> str | None:
    if criterion.blocker is not None and criterion.blocker.blocks(value):
        return "blocker"
    bands = criterion.metric.bands
    return bands.rating(value) if bands else None


def _weigh(rubric: Rubric, results: Mapping[str, Result]) -> tuple[float, float | None]:
    """Coverage (scored share of the applicable weight) and the renormalised weighted mean, None without any part.

    Both are rounded to 12 decimals: sums of decimal fractions come out as on paper (0.882, not 0.8820000000000001).
    """
    applicable = [c for c in rubric.weighed if not isinstance(results[c.metric.id], NotApplicable)]
    parts = [(c.weight, c.component(value)) for c in applicable if (value := _value(results, c)) is not None]
    if not parts:
        return 0.0, None
    total = math.fsum([c.weight for c in applicable])
    scored = math.fsum([weight for weight, _ in parts])
    return round(scored / total, _DIGITS), round(math.fsum([weight * part for weight, part in parts]) / scored, _DIGITS)


def _passed(rubric: Rubric, composite: float | None, results: Mapping[str, Result]) -> bool | None:
    """The pass mark, then the rubric's own conditions; None when there is no composite, or they cannot be told."""
    if composite is None:
        return None
    if rubric.pass_mark is not None and round(composite, 9) < rubric.pass_mark:
        return False
    return rubric.passes(composite, results) if rubric.passes else True


def _rating(rubric: Rubric, state: State, composite: float | None) -> str | None:
    if state in (State.INVALID, State.DISQUALIFIED):
        return "blocker"
    if composite is None or rubric.bands is None:
        return None
    return rubric.bands.rating(composite)


def _reason(state: State, scores: tuple[Score, ...], blocking: list[str], unchecked: list[str], *, failed: bool) -> str:
    """One line for people: why there is no composite, why it does not count, or what keeps the case from passing."""
    if state in (State.INVALID, State.DISQUALIFIED):
        return "; ".join(f"{s.metric}: {s.result.reason or s.rating}" for s in scores if s.metric in blocking)
    told = [_worst(scores)] if failed else []
    if state in (State.INCOMPLETE, State.PARTIAL):
        gaps = [s for s in scores if isinstance(s.result, _GAPS)]
        # What has neither weight nor a check to make is told only when nothing else is missing: it decided the pass.
        named = [s for s in gaps if s.weight or s.metric in unchecked] or gaps
        told += [f"{s.metric} {s.result.status}: {s.result.reason}" for s in named]
    return "; ".join(told)


def _worst(scores: tuple[Score, ...]) -> str:
    """What is rated a failure, with its reason; where no single metric is, all of them together were too little."""
    failures = [
        f"{s.metric}: {s.result.reason or f'{s.result.value:g}'}"
        for s in scores
        if s.rating == "fail" and isinstance(s.result, Scored)
    ]
    return "; ".join(failures) or "no metric fails, but together they are below the pass mark"
