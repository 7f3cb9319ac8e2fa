"""Ending: how a trace ended, and what of it is new compared with what was said before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from monitor.ingest.outcomes import Reason
from monitor.sessions.turns import SessionTurn
from scoring.case.case import Case
from scoring.result.result import Failed
from scoring.trace.record import record
from scoring.trace.span import Completion
from scoring.verdict.verdict import State, Verdict

_NOT_SUBSTANCE = ("created_at", "revision", "cost_usd", "judge")


@record(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """How a trace ended: its one reason, its verdicts, and the story that explains it.

    ``changed`` are the verdicts that are new or differ from what was said before; only they leave the house again.
    ``withdrawn`` are rubrics that an earlier revision spoke of and this one does not.
    ``revision`` counts the endings of the trace from 1: late spans open it again, and the ledger counts it once.
    ``chunks`` is how many of its parts were judged, ``ended_ns`` when, and ``last_span_ns`` when its last span ended,
    in ns since the epoch. ``scenario`` is the name of the one it was held against. ``turn`` is what the trace is to a
    session that was drawn; ``session`` says that this is the ending of a session, and ``trace_id`` its key.
    ``lookups`` are what references it was held against: a name of each key, and a digest of what was there, or None.
    ``root_span_id`` stands for what was judged as a whole. ``said`` are the verdicts as JSON objects, in their order:
    made once, where nobody waits for it. ``place_ns`` is when what it revises was reached, where that may be long ago:
    the revision takes its place in time, and is no news of the present.
    """

    trace_id: bytes
    service: str | None
    reason: Reason
    completion: Completion
    revision: int
    chunks: int
    ended_ns: int
    story: Mapping[str, object]
    verdicts: tuple[Verdict, ...] = ()
    changed: tuple[Verdict, ...] = ()
    withdrawn: tuple[str, ...] = ()
    scenario: str | None = None
    last_span_ns: int | None = None
    turn: SessionTurn | None = None
    session: bool = False
    lookups: tuple[tuple[bytes, bytes | None], ...] = ()
    root_span_id: str | None = None
    said: tuple[Mapping[str, object], ...] = ()
    place_ns: int | None = None


def reason_of(case: Case, verdicts: Sequence[Verdict]) -> Reason:
    """The one reason of a trace that rubrics were run on: scored if any rubric reached a verdict, else why none did."""
    if any(verdict.state is not State.INCOMPLETE for verdict in verdicts):
        return Reason.SCORED
    if not case.complete:
        return Reason.INCOMPLETE
    if not case.content_captured:
        return Reason.NO_CONTENT
    if any(isinstance(score.result, Failed) for verdict in verdicts for score in verdict.scores):
        return Reason.JUDGE_FAILED
    return Reason.UNAVAILABLE


def revise(
    verdicts: Iterable[Verdict], before: Iterable[Mapping[str, object]]
) -> tuple[tuple[Verdict, ...], tuple[Verdict, ...]]:
    """Number verdicts against what was said before: (all of them, those that are new or changed).

    A verdict whose substance is the same keeps its revision and its date; a changed one is revision n + 1.
    """
    said_before = {str(said["rubric"]): said for said in before}
    current: list[Verdict] = []
    changed: list[Verdict] = []
    for verdict in verdicts:
        said = said_before.get(verdict.rubric)
        if said is None:
            numbered = verdict
        elif _substance(said) == _substance(verdict.to_json()):
            current.append(replace(verdict, revision=int(str(said["revision"])), created_at=str(said["created_at"])))
            continue
        else:
            numbered = replace(verdict, revision=int(str(said["revision"])) + 1)
        current.append(numbered)
        changed.append(numbered)
    return tuple(current), tuple(changed)


def _substance(verdict: Mapping[str, object]) -> dict[str, object]:
    """A verdict without what differs between two sayings of the same thing, as it reads back once it was written.

    What the call cost is no judgement: late spans that only add to it change nothing that was judged. Nor is whether an
    answer was paid for or came out of the cache.
    What was said before has been through JSON, which knows neither tuples nor keys that are not text.
    """
    said = {key: value for key, value in verdict.items() if key not in _NOT_SUBSTANCE}
    read: dict[str, Any] = json.loads(json.dumps(said, default=str))
    for score in read.get("scores", []):
        if score["status"] == "scored":
            judge = score.get("judge", {})
            for paid in ("cost_usd", "cached"):
                judge.pop(paid, None)
        else:
            score.pop("judge", None)  # what was asked in vain
    return read
