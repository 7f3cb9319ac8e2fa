"""A line of a verdict file, as what is computed over a run reads it: checked, and without what a run does not need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scoring.label import MAX_REASON, label
from scoring.result import Failed, NotApplicable, Scored, Unavailable
from scoring.verdict import State

_STATUSES = (Scored.status, NotApplicable.status, Unavailable.status, Failed.status)
_WITH_COMPOSITE = (State.VALID, State.PARTIAL, State.DISQUALIFIED)
_LARGEST = 1e15


class VerdictLineError(Exception):
    """A line that is no verdict: the message names the field and what is wrong with it."""


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
    composite = _number(said, "composite_norm" if said.get("composite_norm") is not None else "composite")
    if (composite is not None) != (state in _WITH_COMPOSITE):
        raise VerdictLineError(f"composite: is {_shown(said.get('composite'))} where state is {state.value}")
    if composite is not None and not 0 <= composite <= 1 and said.get("rubric") != "agent":
        raise VerdictLineError(f"composite: is {composite:g}, outside [0, 1]")
    probability = _number(said, "sampling_probability", default=1.0)
    if probability is None or not 1e-15 <= probability <= 1:
        raise VerdictLineError("sampling_probability: must be a number above 0 and at most 1")
    cost = _number(said, "cost_usd")
    if cost is not None and cost < 0:
        raise VerdictLineError(f"cost_usd: is {cost:g}, below 0")
    revision = said.get("revision", 1)
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 1:
        raise VerdictLineError("revision: must be a whole number from 1")
    rubric = _text(said, "rubric")
    return VerdictLine(
        identity=said["trace_id"] if isinstance(said.get("trace_id"), str) else _text(said, "case_id"),
        rubric=rubric,
        rubric_version=label(str(said.get("rubric_version") or rubric)),
        revision=revision,
        run=said["run"] if isinstance(said.get("run"), int) else None,
        state=state,
        composite=composite,
        pass_mark=_number(said, "pass_mark"),
        blockers=frozenset(each for each in _list(said, "blockers", default=()) if isinstance(each, str)),
        scores=dict(_score(each) for each in _list(said, "scores")),
        weight=1.0 / probability,
        cost_usd=cost,
        case_id=said["case_id"] if isinstance(said.get("case_id"), str) else None,
        passed=said["passed"] if isinstance(said.get("passed"), bool) else None,
    )


def _score(said: object) -> tuple[str, ScoreLine]:
    if not isinstance(said, Mapping) or not isinstance(said.get("metric"), str):
        raise VerdictLineError("scores: each must be an object with a metric")
    name, status = said["metric"], said.get("status")
    if status not in _STATUSES:
        raise VerdictLineError(f"scores.{label(name)}.status: is {_shown(status)}, not one of {', '.join(_STATUSES)}")
    value = _number(said, "value")
    if (value is not None) != (status == Scored.status):
        raise VerdictLineError(f"scores.{label(name)}.value: is {_shown(said.get('value'))} where status is {status}")
    details, reason = said.get("details"), said.get("reason")
    return name, ScoreLine(
        status=status,
        value=value,
        raw=_number(details, "raw") if isinstance(details, Mapping) else None,
        reason=label(reason, MAX_REASON) if isinstance(reason, str) else "",
        rating=said["rating"] if isinstance(said.get("rating"), str) else None,
    )


def _state(said: object) -> State:
    if isinstance(said, str) and said in set(State):
        return State(said)
    raise VerdictLineError(f"state: is {_shown(said)}, not one of {', '.join(State)}")


def _text(said: Mapping[str, object], field: str) -> str:
    value = said.get(field)
    if not isinstance(value, str) or not value:
        raise VerdictLineError(f"{field}: is missing" if field not in said else f"{field}: must be text")
    return value


def _list(said: Mapping[str, object], field: str, default: Sequence[object] | None = None) -> Sequence[object]:
    value = said.get(field, default)
    if not isinstance(value, list | tuple):
        raise VerdictLineError(f"{field}: is missing" if field not in said else f"{field}: must be a list")
    return value


def _number(said: Mapping[str, object], field: str, default: float | None = None) -> float | None:
    value = said.get(field, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        raise VerdictLineError(f"{field}: is {_shown(value)}, not a number that can be averaged")
    return float(value)


def _shown(value: object) -> str:
    return "missing" if value is None else label(repr(value))
