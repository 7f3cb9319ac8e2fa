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
    """One verdict on ``case_id``. ``identity`` (trace, else case) and ``rubric`` tell what a ``revision`` replaces.

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


def read_verdict(said: object) -> VerdictLine:
    """The verdict of a parsed line (formats §2); ``VerdictLineError`` for anything else.

    ``case_id``, ``rubric``, ``state``, ``composite`` and ``scores`` are required.
    """
    if not isinstance(said, Mapping):
        raise VerdictLineError("is not an object")
    state = _state(said.get("state"))
    composite = number(said, "composite_norm" if said.get("composite_norm") is not None else "composite")
    if (composite is not None) != (state in _WITH_COMPOSITE):
        raise VerdictLineError(f"composite: is {shown(said.get('composite'))} where state is {state.value}")
    if composite is not None and not 0 <= composite <= 1 and said.get("rubric") != "agent":
        raise VerdictLineError(f"composite: is {composite:g}, outside [0, 1]")
    probability = number(said, "sampling_probability", default=1.0)
    if probability is None or not 1e-15 <= probability <= 1:
        raise VerdictLineError("sampling_probability: must be a number above 0 and at most 1")
    cost = number(said, "cost_usd")
    if cost is not None and cost < 0:
        raise VerdictLineError(f"cost_usd: is {cost:g}, below 0")
    revision = said.get("revision", 1)
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 1:
        raise VerdictLineError("revision: must be a whole number from 1")
    rubric = text(said, "rubric")
    return VerdictLine(
        identity=said["trace_id"] if isinstance(said.get("trace_id"), str) else text(said, "case_id"),
        rubric=rubric,
        rubric_version=label(str(said.get("rubric_version") or rubric)),
        revision=revision,
        run=said["run"] if isinstance(said.get("run"), int) else None,
        state=state,
        composite=composite,
        pass_mark=number(said, "pass_mark"),
        blockers=frozenset(each for each in sequence(said, "blockers", default=()) if isinstance(each, str)),
        scores={name: _score(name, line) for name, line in scores(said).items()},
        weight=1.0 / probability,
        cost_usd=cost,
        case_id=said["case_id"] if isinstance(said.get("case_id"), str) else None,
        passed=truth(said, "passed"),
    )


def _score(name: str, said: Mapping[str, object]) -> ScoreLine:
    status = said.get("status")
    if status not in _STATUSES:
        raise VerdictLineError(f"scores.{label(name)}.status: is {shown(status)}, not one of {', '.join(_STATUSES)}")
    value = number(said, "value")
    if (value is not None) != (status == Scored.status):
        raise VerdictLineError(f"scores.{label(name)}.value: is {shown(said.get('value'))} where status is {status}")
    details, reason, rating = said.get("details"), said.get("reason"), said.get("rating")
    return ScoreLine(
        status=str(status),
        value=value,
        raw=number(details, "raw") if isinstance(details, Mapping) else None,
        reason=label(reason, MAX_REASON) if isinstance(reason, str) else "",
        rating=rating if isinstance(rating, str) else None,
    )


def _state(said: object) -> State:
    if isinstance(said, str) and said in set(State):
        return State(said)
    raise VerdictLineError(f"state: is {shown(said)}, not one of {', '.join(State)}")
