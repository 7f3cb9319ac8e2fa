"""Result: how a trace ended, and which of its verdicts are new or changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Completion
from sidejudge.scoring.verdict.documents import TraceDocument
from sidejudge.scoring.verdict.verdict import State, Verdict

REPORTED: Final = "reported"
"""Key of others' scores that came with a run's spans, in the details of its result. Langfuse lacks them when spans are
read again.
"""
_NOT_SUBSTANCE = ("created_at", "revision", "cost_usd", "judge")


class SessionIdentity(NamedTuple):
    """Whose session it is. Ids are the application's own, so two services may use the same one."""

    service: str | None
    environment: str | None
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn:
    """A turn on its way to the store. ``former`` is the session that an earlier revision of its trace belonged to."""

    identity: SessionIdentity
    text: str
    former: bytes | None = None


@record(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """How a trace ended: its one reason, its verdicts, and the details that explain them.

    ``changed`` are the verdicts that are new or differ from the stored ones; only they are delivered again.
    ``withdrawn`` are rubric ids of the stored revision that this one lacks.
    ``revision`` counts the results of the trace from 1: late spans reopen it, and the outcomes count it once.
    ``chunks`` is how many stored chunks were judged, ``ended_ns`` when, and ``last_span_ns`` when its last span ended,
    in ns since the epoch. ``scenario`` names the scenario that it was compared with. ``turn`` is the turn that it adds
    to a session that was drawn; ``session`` marks the result of a session, whose key is ``trace_id``.
    ``lookups`` are the references it was compared with: the name of each key, and a digest of the value, or None.
    ``root_span_id`` is the span that was judged as a whole. ``verdicts_json`` are the verdicts as JSON objects, in
    the same order, made once and off the event loop. ``place_ns`` is when the revised result was reached, where
    that may be long ago: the revision takes its place in time and changes no current window.
    """

    trace_id: bytes
    service: str | None
    reason: EndReason
    completion: Completion
    revision: int
    chunks: int
    ended_ns: int
    details: TraceDocument
    verdicts: tuple[Verdict, ...] = ()
    changed: tuple[Verdict, ...] = ()
    withdrawn: tuple[str, ...] = ()
    scenario: str | None = None
    last_span_ns: int | None = None
    turn: SessionTurn | None = None
    session: bool = False
    lookups: tuple[tuple[bytes, bytes | None], ...] = ()
    root_span_id: str | None = None
    verdicts_json: tuple[Mapping[str, object], ...] = ()
    place_ns: int | None = None

    @property
    def lag_s(self) -> float | None:
        """How long after its last span the trace was judged, in s; None where that does not concern the present."""
        if not self.changed or self.last_span_ns is None or self.place_ns is not None:
            return None
        return (self.ended_ns - self.last_span_ns) / 1e9


def reason_of(case: Case, verdicts: Sequence[Verdict]) -> EndReason:
    """The one reason of a trace that was judged: scored if any rubric reached a verdict, else why none did."""
    if any(verdict.state is not State.INCOMPLETE for verdict in verdicts):
        return EndReason.SCORED
    if not case.complete:
        return EndReason.INCOMPLETE
    if not case.content_captured:
        return EndReason.NO_CONTENT
    if any(isinstance(score.result, Failed) for verdict in verdicts for score in verdict.scores):
        return EndReason.JUDGE_FAILED
    return EndReason.UNAVAILABLE


def revise(
    verdicts: Iterable[Verdict], before: Iterable[Mapping[str, object]]
) -> tuple[tuple[Verdict, ...], tuple[Verdict, ...]]:
    """Number verdicts by comparing them with the stored ones.

    Args:
        verdicts: of this result.
        before: the stored verdicts as JSON objects.

    Returns: All verdicts, and the new or changed ones. An equal verdict keeps its revision and its date; a changed one
        is revision n + 1.
    """
    stored_by_rubric = {str(stored["rubric"]): stored for stored in before}
    current: list[Verdict] = []
    changed: list[Verdict] = []
    for verdict in verdicts:
        stored = stored_by_rubric.get(verdict.rubric)
        if stored is None:
            numbered = verdict
        elif _substance(stored) == _substance(verdict.to_json()):
            current.append(
                replace(verdict, revision=int(str(stored["revision"])), created_at=str(stored["created_at"]))
            )
            continue
        else:
            numbered = replace(verdict, revision=int(str(stored["revision"])) + 1)
        current.append(numbered)
        changed.append(numbered)
    return tuple(current), tuple(changed)


def _substance(verdict: Mapping[str, object]) -> dict[str, object]:
    """A verdict without its dates, numbers and costs, as it reads back from the store.

    The cost of a call is no judgement, nor is whether an answer came out of the cache.
    The round trip through JSON makes tuples lists, as they are in the stored verdict.
    """
    kept = {key: value for key, value in verdict.items() if key not in _NOT_SUBSTANCE}
    read: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    for score in read.get("scores", []):
        if score["status"] == "scored":
            judge = score.get("judge", {})
            for paid in ("cost_usd", "cached", "call_ids"):
                judge.pop(paid, None)
        else:
            score.pop("judge", None)  # requests without an answer
    return read
