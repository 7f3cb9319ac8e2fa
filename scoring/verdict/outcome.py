"""Outcome: from a rubric's results to composite, state and pass, independent of the case (rubrics §1.4–1.6).

A blocker that hits decides, even where other results are missing: the verdict is *disqualified* or *invalid*, and only
its composite may be missing. With a blocker that could not be checked the verdict is at best *partial*, and its reason
names the check. Only a blocker that was checked, or does not apply, lets a verdict be *valid*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from sidejudge.scoring.lexical.amount import apart
from sidejudge.scoring.lexical.shown_text import MAX_REASON
from sidejudge.scoring.result.reason import Kind, Reason, ReasonPart, Value, own, together
from sidejudge.scoring.result.result import (
    Blocker,
    Effect,
    Failed,
    Judgement,
    NotApplicable,
    Result,
    Scored,
    Unavailable,
)
from sidejudge.scoring.trace.record import record

from .rubric import Criterion, Rubric
from .score import Score

_DIGITS = 12
_GAPS = (Unavailable, Failed)
_REMEMBERED: Final = 16
"""Most cached outcomes of a rubric; beyond it the cache starts anew."""


class State(StrEnum):
    """``valid`` and ``partial`` carry a composite and may pass; ``incomplete`` neither passes nor fails.

    ``partial``: some weight was not scored, or a blocker could not be checked. ``disqualified`` and ``invalid`` do not
    pass; the former has a composite where enough was scored.
    """

    VALID = "valid"
    PARTIAL = "partial"
    DISQUALIFIED = "disqualified"
    INVALID = "invalid"
    INCOMPLETE = "incomplete"


@record(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The part of a verdict that does not depend on the case, with the fields of ``Verdict``.

    ``results`` are those that count: an unmet prerequisite makes the others not applicable. ``violations``: the kinds
    of departure from a scenario that they show.
    """

    composite: float | None
    composite_norm: float | None
    coverage: float
    state: State
    passed: bool | None
    rating: str | None
    blockers: tuple[str, ...]
    scores: tuple[Score, ...]
    reason: Reason
    results: Mapping[str, Result]
    violations: tuple[str, ...]


class OutcomeMemo:
    """A cache of the latest outcomes, by rubric and results, for evaluating one case after another.

    A metric gives one identical object to all cases without anything for it to measure, and most cases of an
    application share that. So outcomes are cached by the identities of their results. The cache holds these results, so
    that no other object can have the same identities.
    """

    def __init__(self) -> None:
        self._by_rubric: dict[int, tuple[Rubric, dict[tuple[int, ...], Outcome]]] = {}

    def outcome(
        self, rubric: Rubric, results: Mapping[str, Result], judgements: Mapping[str, tuple[Judgement, ...]]
    ) -> Outcome:
        """As the function ``outcome``."""
        if judgements:
            return outcome(rubric, results, judgements)
        _, known = self._by_rubric.setdefault(id(rubric), (rubric, {}))
        key = tuple(map(id, map(results.__getitem__, rubric.metric_ids)))
        found = known.get(key)
        if found is None:
            found = outcome(rubric, results, judgements)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[key] = found
        return found


def outcome(rubric: Rubric, results: Mapping[str, Result], judgements: Mapping[str, tuple[Judgement, ...]]) -> Outcome:
    """Compute composite, ratings and blockers. ``results`` holds one result for each of the rubric's metrics."""
    unmet = [c.metric.id for c in rubric.prerequisites if _value(results, c) not in (None, 1.0)]
    if unmet:
        results = _after_prerequisites(rubric, results, unmet[0])
    scores = tuple([_score(criterion, results[criterion.metric.id], judgements) for criterion in rubric.criteria])
    hits = [(c.metric.id, blocker.effect) for c, blocker in rubric.blocking if _blocks(blocker, results[c.metric.id])]
    invalid = bool(unmet) or any(effect is Effect.INVALID for _, effect in hits)

    coverage, weighed = _weigh(rubric, results)
    unknown = [c.metric.id for c in rubric.prerequisites if _missing(results, c)]
    unchecked = [c.metric.id for c, _ in rubric.blocking if _missing(results, c)]
    known = weighed is not None and coverage >= rubric.min_coverage - 1e-9 and not unknown
    composite = round(weighed * rubric.scale, _DIGITS) if weighed is not None and known and not invalid else None
    passed = False if invalid or hits else _passed(rubric, composite, results)
    breached: tuple[str, ...] = ()
    if passed is None and not unknown and rubric.breached is not None:
        breached = rubric.breached(results)
    if invalid:
        state = State.INVALID
    elif hits or breached:
        state, passed = State.DISQUALIFIED, False  # proven, whatever is missing
    elif composite is None or passed is None:
        state, composite, passed = State.INCOMPLETE, None, None
    else:
        # A blocker that could not be checked leaves a mark, though it may have no weight.
        state = State.VALID if coverage >= 1.0 - 1e-9 and not unchecked else State.PARTIAL
    blockers = (*unmet, *(metric for metric, _ in hits), *breached)
    return Outcome(
        composite=composite,
        composite_norm=None if composite is None else composite / rubric.scale,
        coverage=coverage,
        state=state,
        passed=passed,
        rating=_rating(rubric, state, composite),
        blockers=blockers,
        scores=scores,
        reason=_reason(
            rubric, state, scores, blockers, unknown + unchecked, failed=passed is False, composite=composite
        ).cut(MAX_REASON),
        results=results,
        violations=rubric.violations(results) if rubric.violations is not None else (),
    )


def _value(results: Mapping[str, Result], criterion: Criterion) -> float | None:
    result = results[criterion.metric.id]
    return result.value if isinstance(result, Scored) else None


def _missing(results: Mapping[str, Result], criterion: Criterion) -> bool:
    return isinstance(results[criterion.metric.id], _GAPS)


def _after_prerequisites(rubric: Rubric, results: Mapping[str, Result], unmet: str) -> dict[str, Result]:
    """An unmet prerequisite makes every other metric of the rubric not applicable (rubrics §2)."""
    kept = {c.metric.id for c in rubric.prerequisites}
    why = NotApplicable(Reason("{metric} is 0", metric=own(unmet)))
    return {name: result if name in kept else why for name, result in results.items()}


def _blocks(blocker: Blocker, result: Result) -> bool:
    """Whether it hits: by the value or, without one, by its proven bounds."""
    if isinstance(result, NotApplicable):
        return False
    if isinstance(result, Scored):
        return blocker.blocks(result.value)
    return result.proven is not None and blocker.blocks_all(result.proven.at_least, result.proven.at_most)


def _score(criterion: Criterion, result: Result, judgements: Mapping[str, tuple[Judgement, ...]]) -> Score:
    metric, rating = criterion.metric, None
    if criterion.blocker is not None and _blocks(criterion.blocker, result):
        rating = "blocker"
    elif isinstance(result, Scored) and metric.bands is not None:
        rating = metric.bands.rating(result.value)
    return Score(metric.id, criterion.weight, result, rating, judgements.get(metric.id, ()) if judgements else ())


def _weigh(rubric: Rubric, results: Mapping[str, Result]) -> tuple[float, float | None]:
    """Coverage (scored share of the applicable weight) and the renormalised weighted mean, None without any part.

    Both are rounded to 12 decimals, so that sums of decimal fractions are as on paper (0.882, not 0.8820000000000001).
    """
    applicable: list[float] = []
    weights: list[float] = []
    parts: list[float] = []
    for criterion in rubric.weighed:
        result = results[criterion.metric.id]
        if not isinstance(result, NotApplicable):
            applicable.append(criterion.weight)
        if isinstance(result, Scored):
            weights.append(criterion.weight)
            parts.append(criterion.weight * criterion.component(result.value))
    if not parts:
        return 0.0, None
    scored = math.fsum(weights)
    return round(scored / math.fsum(applicable), _DIGITS), round(math.fsum(parts) / scored, _DIGITS)


def _passed(rubric: Rubric, composite: float | None, results: Mapping[str, Result]) -> bool | None:
    """The result by the pass mark, then by the rubric's own conditions; None without a composite or where unknown."""
    if composite is None:
        return None
    if not _reaches(rubric, composite):
        return False
    return rubric.passes(composite, results) if rubric.passes else True


def _reaches(rubric: Rubric, composite: float | None) -> bool:
    """Whether a composite is at the pass mark, or above it."""
    mark = rubric.pass_mark
    return composite is not None and (mark is None or round(composite, 9) >= round(mark, 9))


def _rating(rubric: Rubric, state: State, composite: float | None) -> str | None:
    if state in (State.INVALID, State.DISQUALIFIED):
        return "blocker"
    if composite is None or rubric.bands is None:
        return None
    return rubric.bands.rating(composite)


def _reason(
    rubric: Rubric,
    state: State,
    scores: Sequence[Score],
    blocking: Sequence[str],
    unchecked: Sequence[str],
    *,
    failed: bool,
    composite: float | None,
) -> Reason:
    """One line for people: why there is no composite, why it does not count, or why the case does not pass."""
    if state in (State.INVALID, State.DISQUALIFIED):
        return _listed([_named(s, s.result.reason or own(s.rating or "")) for s in scores if s.metric in blocking])
    lines = (_worst(scores) or [("", _shortfall(rubric, composite, scores))]) if failed else []
    if state in (State.INCOMPLETE, State.PARTIAL):
        gaps = [s for s in scores if isinstance(s.result, _GAPS)]
        # What has neither weight nor a check to make is named only when nothing else is missing: it decided the
        # pass.
        named = [s for s in gaps if s.weight or s.metric in unchecked] or gaps
        lines += [_named(s, s.result.reason, f" {s.result.status}") for s in named]
        if not lines and all(isinstance(s.result, NotApplicable) for s in scores):
            lines = [("not applicable: ", scores[0].result.reason)]
    return _listed(lines)


_Line: TypeAlias = tuple[str, Value]
"""Our words, and the part after them."""


def _listed(lines: Sequence[_Line]) -> Reason:
    values: list[Value] = []
    for words, why in lines:
        values += (own(f"; {words}" if values else words), why)
    return together(values, "")


def _named(score: Score, why: Value, status: str = "") -> _Line:
    return f"{score.metric}{status}: ", why


def _worst(scores: Sequence[Score]) -> list[_Line]:
    """The metrics rated a failure, with their reasons; empty where none is."""
    return [
        _named(s, s.result.reason or Reason("{value:g}", value=s.result.value))
        for s in scores
        if s.rating == "fail" and isinstance(s.result, Scored)
    ]


def _shortfall(rubric: Rubric, composite: float | None, scores: Sequence[Score]) -> Reason:
    """Why a case fails though no metric is rated a failure: the composite, the mark, and the largest losses."""
    if composite is None or rubric.pass_mark is None or _reaches(rubric, composite):
        return Reason("the composite is enough, but another condition of the rubric does not hold")
    lost = [
        (criterion.weight * (1.0 - criterion.component(score.result.value)), score)
        for criterion, score in zip(rubric.criteria, scores, strict=True)
        if criterion.weight and isinstance(score.result, Scored)
    ]
    _, most = max(lost, key=lambda each: each[0])
    reached, mark = (ReasonPart(Kind.NUMBER, text) for text in apart(composite, rubric.pass_mark))
    return Reason(
        "the composite of {composite} is below the pass mark of {mark}; most of it is lost by {metric}{value}",
        composite=reached, mark=mark, metric=own(most.metric),
        value=Reason(": {why}", why=most.result.reason) if most.result.reason else Reason(""),
    )  # fmt: skip
