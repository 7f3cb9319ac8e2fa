"""A line of a verdict file for figures over a run: checked, and reduced to what these need.

Scorecard, calibration and gates read the same lines. Each takes different fields, but all agree on what a number is.
Fields are read strictly; errors name the field. Where late spans changed a verdict, the line of its last revision
counts (formats §2).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.lexical.shown_text import MAX_REASON, label
from sidejudge.scoring.metrics.judge_metrics import FULL_SCORE
from sidejudge.scoring.questions.teaching import SHOWN, teaches
from sidejudge.scoring.result.result import Failed, NotApplicable, Scored, Unavailable
from sidejudge.scoring.verdict.review_reason import COST_UNKNOWN
from sidejudge.scoring.verdict.verdict import State

LARGEST = 1e15
"""The largest latency, number of tokens or composite; sums of such values are exact and finite."""


class VerdictLineError(SidejudgeError, ValueError):
    """The line is no verdict; the message names the field and its fault."""


def number(
    fields: Mapping[str, object], field: str, *, default: float | None = None, least: float = -LARGEST, name: str = ""
) -> float | None:
    """A number, None where it is absent; whole numbers count as numbers, truth values do not.

    ``name`` is the field's name in an error, if it differs from the key.
    """
    value = fields.get(field, default)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= LARGEST:
        wanted = "a number that can be averaged" if least < 0 else f"a number from {least:g} on that can be averaged"
        raise VerdictLineError(f"{name or field}: is {shown(value)}, not {wanted}")
    return float(value)


def text(fields: Mapping[str, object], field: str, fault: type[SidejudgeError] = VerdictLineError) -> str:
    """A non-empty text, else a ``fault``."""
    value = fields.get(field)
    if not isinstance(value, str) or not value:
        raise fault(f"{field}: is missing" if field not in fields else f"{field}: must be text")
    return value


def sequence(fields: Mapping[str, object], field: str, default: Sequence[object] | None = None) -> Sequence[object]:
    """A list."""
    value = fields.get(field, default)
    if not isinstance(value, list | tuple):
        raise VerdictLineError(f"{field}: is missing" if field not in fields else f"{field}: must be a list")
    return value


def truth(fields: Mapping[str, object], field: str) -> bool | None:
    """True, false, or None for any other value."""
    value = fields.get(field)
    if value is not None and not isinstance(value, bool):
        raise VerdictLineError(f"{field}: is {shown(value)}, neither true, false nor null")
    return value


def scores(fields: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """The lines of the metrics, by their ids."""
    found: dict[str, Mapping[str, object]] = {}
    for line in sequence(fields, "scores"):
        if not isinstance(line, Mapping) or not isinstance(line.get("metric"), str):
            raise VerdictLineError("scores: each must be an object with a metric")
        if line["metric"] in found:
            raise VerdictLineError(f"scores: {label(line['metric'])} stands twice")
        found[line["metric"]] = line
    return found


def shown(value: object) -> str:
    """A value in a message: short, and harmless."""
    return "missing" if value is None else label(repr(value))


_STATUSES = (Scored.status, NotApplicable.status, Unavailable.status, Failed.status)
_WITH_COMPOSITE = (State.VALID, State.PARTIAL)
_WITHOUT_COMPOSITE = (State.INVALID, State.INCOMPLETE)
"""States of a verdict without a composite; a disqualified one has a composite where enough was scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLine:
    """One metric's score: ``value`` is None unless ``status`` is ``scored``; ``raw`` is the number behind a binary.

    ``rating`` is the value's band, None where the metric has no bands.
    """

    status: str
    value: float | None
    raw: float | None
    reason: str
    rating: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """One verdict on ``case_id``. ``identity`` (trace, else case) and ``rubric`` identify what a ``revision`` replaces.

    ``run`` numbers the runs of a batch that judged each case several times, None for a single run. ``composite`` is in
    [0, 1] whatever the rubric's scale, None when invalid or incomplete. ``weight`` is the inverse of the inclusion
    probability. ``cost_usd`` is the cost of the judged call, ``judging_usd`` that of its judgement, None where unknown.
    ``passed`` is None when incomplete. ``judge`` is the one that answered, None where none or several did, as in a
    cascade. ``taught``: its judge was shown examples from labels, perhaps of this case, so that it measures nothing.
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
    judging_usd: float | None = None
    judge: str | None = None
    case_id: str | None = None
    passed: bool | None = None
    taught: bool = False

    @property
    def again(self) -> bool:
        """Whether it judges its case once more, in a run after the first: that makes no second case of it."""
        return self.run is not None and self.run > 1


def read_verdict(fields: object) -> VerdictLine:
    """The verdict of a parsed line (formats §2); ``VerdictLineError`` for anything else.

    ``case_id``, ``rubric``, ``state``, ``composite`` and ``scores`` are required.
    """
    if not isinstance(fields, Mapping):
        raise VerdictLineError("is not an object")
    state = _state(fields.get("state"))
    normed = fields.get("composite_norm") is not None
    composite = number(fields, "composite_norm" if normed else "composite")
    if composite is not None and not normed and fields.get("rubric") == "agent":
        composite /= FULL_SCORE
    if state in (_WITH_COMPOSITE if composite is None else _WITHOUT_COMPOSITE):
        raise VerdictLineError(f"composite: is {shown(fields.get('composite'))} where state is {state.value}")
    if composite is not None and not 0 <= composite <= 1:
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
    rubric, listed = text(fields, "rubric"), scores(fields)
    identity = fields["trace_id"] if isinstance(fields.get("trace_id"), str) else text(fields, "case_id")
    case_id = fields["case_id"] if isinstance(fields.get("case_id"), str) else None
    shows_labels = any(isinstance(of := line.get("details"), Mapping) and of.get(SHOWN) for line in listed.values())
    judges = [of for line in listed.values() if isinstance(of := line.get("judge"), Mapping)]
    models = {model for each in judges if isinstance(model := each.get("model"), str)}
    return VerdictLine(
        identity=identity,
        rubric=rubric,
        rubric_version=label(str(fields.get("rubric_version") or rubric)),
        revision=revision,
        run=fields["run"] if isinstance(fields.get("run"), int) else None,
        state=state,
        composite=composite,
        pass_mark=number(fields, "pass_mark"),
        blockers=frozenset(each for each in sequence(fields, "blockers", default=()) if isinstance(each, str)),
        scores={name: _score(name, line) for name, line in listed.items()},
        weight=1.0 / probability,
        cost_usd=cost,
        judging_usd=_judging_usd(fields, judges),
        judge=label(models.pop()) if len(models) == 1 and fields.get("cascade") is None else None,
        case_id=case_id,
        passed=_passed(fields, state),
        taught=shows_labels and any(map(teaches, filter(None, (identity, case_id)))),
    )


def _judging_usd(fields: Mapping[str, object], judges: Iterable[Mapping[str, object]]) -> float | None:
    """What its judges cost; None where the verdict does not state it, or a price was not known."""
    judge = fields.get("judge")
    if not isinstance(judge, Mapping) or any(COST_UNKNOWN in sequence(each, "flags", ()) for each in judges):
        return None
    return number(judge, "cost_usd", least=0.0, name="judge.cost_usd")


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


def _passed(fields: Mapping[str, object], state: State) -> bool | None:
    """Whether it passed; None also where that is not stated."""
    passed = truth(fields, "passed")
    fits = {State.INCOMPLETE: passed is None, State.INVALID: passed is False, State.DISQUALIFIED: passed is False}
    if "passed" in fields and not fits.get(state, passed is not None):
        raise VerdictLineError(f"passed: is {json.dumps(passed)} where state is {state.value}")
    reached, mark = number(fields, "composite"), number(fields, "pass_mark")
    if passed and reached is not None and mark is not None and round(reached, 9) < round(mark, 9):
        raise VerdictLineError(f"passed: is true where composite is {reached:g}, below pass_mark {mark:g}")
    return passed


class Revisions:
    """Reads every line once, then decides which are valid: lines that no later revision replaces.

    It keeps only the revised verdicts, which are few.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}

    def add(self, line: VerdictLine) -> None:
        if line.revision > 1:
            key = (line.identity, line.rubric)
            self._last[key] = max(line.revision, self._last.get(key, 1))

    def merge(self, other: Revisions) -> None:
        """Add the lines that another has read."""
        for key, revision in other._last.items():
            self._last[key] = max(revision, self._last.get(key, 1))

    def stands(self, line: VerdictLine) -> bool:
        """Whether no later revision of this verdict was read."""
        return line.revision >= self._last.get((line.identity, line.rubric), 1)
