"""A line of a verdict file, as what is computed over a run reads it: checked, and without what a run does not need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scoring.lexical.label import MAX_REASON, label
from scoring.result.result import Failed, NotApplicable, Scored, Unavailable
from scoring.verdict.verdict import State

from .verdict_fields import VerdictLineError, number, scores, sequence, shown, text, truth

_STATUSES = (Scored.status, NotApplicable.status, Unavailable.status, Failed.status)
_WITH_COMPOSITE = (State.VALID, State.PARTIAL, State.DISQUALIFIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLine:
    """One metric's score: ``value`` is None unless ``status`` is ``scored``; ``raw`` is what a binary was made of.

    ``rating`` is the band that the value lies in, None where the metric has none.
    """

    status: str
    value: float | None
    raw: float | None
    reason: str
    rating: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """One verdict on ``case_id``. ``identity`` (trace, else case) and ``rubric`` identify what a ``revision`` replaces.

    ``run`` numbers the runs of a batch that judged each case several times, None where it was one. ``composite`` is in
    [0, 1] whatever the rubric's scale, None when invalid or incomplete. ``weight`` is the inverse of the inclusion
    probability. ``cost_usd`` is what the judged call cost, None where unknown. ``passed`` is None when incomplete.
    """

    identity: str
    rubric: str
    rubric_version: str
    revision: int
    run: int | None
    state: State
    composite: float | None
    pass_mark: float | None
    blockers: frozenset[str]
    scores: Mapping[str, ScoreLine]
    weight: float
    cost_usd: float | None
    case_id: str | None = None
    passed: bool | None = None


def read_verdict(stated: object) -> VerdictLine:
    """The verdict of a parsed line (formats §2); ``VerdictLineError`` for anything else.

    ``case_id``, ``rubric``, ``state``, ``composite`` and ``scores`` are required.
    """
    if not isinstance(stated, Mapping):
        raise VerdictLineError("is not an object")
    state = _state(stated.get("state"))
    composite = number(stated, "composite_norm" if stated.get("composite_norm") is not None else "composite")
    if (composite is not None) != (state in _WITH_COMPOSITE):
        raise VerdictLineError(f"composite: is {shown(stated.get('composite'))} where state is {state.value}")
    if composite is not None and not 0 <= composite <= 1 and stated.get("rubric") != "agent":
        raise VerdictLineError(f"composite: is {composite:g}, outside [0, 1]")
    probability = number(stated, "sampling_probability", default=1.0)
    if probability is None or not 1e-15 <= probability <= 1:
        raise VerdictLineError("sampling_probability: must be a number above 0 and at most 1")
    cost = number(stated, "cost_usd")
    if cost is not None and cost < 0:
        raise VerdictLineError(f"cost_usd: is {cost:g}, below 0")
    revision = stated.get("revision", 1)
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 1:
        raise VerdictLineError("revision: must be a whole number from 1")
    rubric = text(stated, "rubric")
    return VerdictLine(
        identity=stated["trace_id"] if isinstance(stated.get("trace_id"), str) else text(stated, "case_id"),
        rubric=rubric,
        rubric_version=label(str(stated.get("rubric_version") or rubric)),
        revision=revision,
        run=stated["run"] if isinstance(stated.get("run"), int) else None,
        state=state,
        composite=composite,
        pass_mark=number(stated, "pass_mark"),
        blockers=frozenset(each for each in sequence(stated, "blockers", default=()) if isinstance(each, str)),
        scores={name: _score(name, line) for name, line in scores(stated).items()},
        weight=1.0 / probability,
        cost_usd=cost,
        case_id=stated["case_id"] if isinstance(stated.get("case_id"), str) else None,
        passed=truth(stated, "passed"),
    )


def _score(name: str, stated: Mapping[str, object]) -> ScoreLine:
    status = stated.get("status")
    if status not in _STATUSES:
        raise VerdictLineError(f"scores.{label(name)}.status: is {shown(status)}, not one of {', '.join(_STATUSES)}")
    value = number(stated, "value")
    if (value is not None) != (status == Scored.status):
        raise VerdictLineError(f"scores.{label(name)}.value: is {shown(stated.get('value'))} where status is {status}")
    details, reason, rating = stated.get("details"), stated.get("reason"), stated.get("rating")
    return ScoreLine(
        status=str(status),
        value=value,
        raw=number(details, "raw") if isinstance(details, Mapping) else None,
        reason=label(reason, MAX_REASON) if isinstance(reason, str) else "",
        rating=rating if isinstance(rating, str) else None,
    )


def _state(stated: object) -> State:
    if isinstance(stated, str) and stated in set(State):
        return State(stated)
    raise VerdictLineError(f"state: is {shown(stated)}, not one of {', '.join(State)}")
