"""A line of a verdict file, as what is computed over a run reads it: checked, and without what a run does not need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sidejudge.scoring.lexical.label import MAX_REASON, label
from sidejudge.scoring.result.result import Failed, NotApplicable, Scored, Unavailable
from sidejudge.scoring.verdict.verdict import State

from .verdict_fields import VerdictLineError, number, scores, sequence, shown, text, truth

_STATUSES = (Scored.status, NotApplicable.status, Unavailable.status, Failed.status)
_WITH_COMPOSITE = (State.VALID, State.PARTIAL)
_WITHOUT_COMPOSITE = (State.INVALID, State.INCOMPLETE)
"""A disqualified verdict has one where enough was scored."""


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


def read_verdict(fields: object) -> VerdictLine:
    """The verdict of a parsed line (formats §2); ``VerdictLineError`` for anything else.

    ``case_id``, ``rubric``, ``state``, ``composite`` and ``scores`` are required.
    """
    if not isinstance(fields, Mapping):
        raise VerdictLineError("is not an object")
    state = _state(fields.get("state"))
    composite = number(fields, "composite_norm" if fields.get("composite_norm") is not None else "composite")
    if state in (_WITH_COMPOSITE if composite is None else _WITHOUT_COMPOSITE):
        raise VerdictLineError(f"composite: is {shown(fields.get('composite'))} where state is {state.value}")
    if composite is not None and not 0 <= composite <= 1 and fields.get("rubric") != "agent":
        raise VerdictLineError(f"composite: is {composite:g}, outside [0, 1]")
    probability = number(fields, "sampling_probability", default=1.0)
    if probability is None or not 1e-15 <= probability <= 1:
        raise VerdictLineError("sampling_probability: must be a number above 0 and at most 1")
    cost = number(fields, "cost_usd")
    if cost is not None and cost < 0:
        raise VerdictLineError(f"cost_usd: is {cost:g}, below 0")
    revision = fields.get("revision", 1)
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 1:
        raise VerdictLineError("revision: must be a whole number from 1")
    rubric = text(fields, "rubric")
    return VerdictLine(
        identity=fields["trace_id"] if isinstance(fields.get("trace_id"), str) else text(fields, "case_id"),
        rubric=rubric,
        rubric_version=label(str(fields.get("rubric_version") or rubric)),
        revision=revision,
        run=fields["run"] if isinstance(fields.get("run"), int) else None,
        state=state,
        composite=composite,
        pass_mark=number(fields, "pass_mark"),
        blockers=frozenset(each for each in sequence(fields, "blockers", default=()) if isinstance(each, str)),
        scores={name: _score(name, line) for name, line in scores(fields).items()},
        weight=1.0 / probability,
        cost_usd=cost,
        case_id=fields["case_id"] if isinstance(fields.get("case_id"), str) else None,
        passed=truth(fields, "passed"),
    )


def _score(name: str, fields: Mapping[str, object]) -> ScoreLine:
    status = fields.get("status")
    if status not in _STATUSES:
        raise VerdictLineError(f"scores.{label(name)}.status: is {shown(status)}, not one of {', '.join(_STATUSES)}")
    value = number(fields, "value")
    if (value is not None) != (status == Scored.status):
        raise VerdictLineError(f"scores.{label(name)}.value: is {shown(fields.get('value'))} where status is {status}")
    details, reason, rating = fields.get("details"), fields.get("reason"), fields.get("rating")
    return ScoreLine(
        status=str(status),
        value=value,
        raw=number(details, "raw") if isinstance(details, Mapping) else None,
        reason=label(reason, MAX_REASON) if isinstance(reason, str) else "",
        rating=rating if isinstance(rating, str) else None,
    )


def _state(value: object) -> State:
    if isinstance(value, str) and value in set(State):
        return State(value)
    raise VerdictLineError(f"state: is {shown(value)}, not one of {', '.join(State)}")
