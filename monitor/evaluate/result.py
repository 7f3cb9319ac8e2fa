"""Job and result: the state of one closed trace while it is evaluated, how it ended, and which verdicts are new."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from sidejudge.integrations.otlp.wire.tracestate import probability, threshold
from sidejudge.monitor.config.evaluators import Priority
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Decision
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.run_steps import acts
from sidejudge.scoring.result.result import Failed
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Completion, SpanKind
from sidejudge.scoring.verdict.documents import SamplingDocument, TraceDocument
from sidejudge.scoring.verdict.verdict import State, Verdict

from .evaluator import Evaluation

log = logging.getLogger("sidejudge.pipeline")

_ALL: Final = 1 << 62
"""More parts than a trace has."""


@dataclass(slots=True, kw_only=True)
class EvaluationJob:
    """The work on one trace. ``reason`` is why it ends unjudged; ``before`` is its stored earlier result.

    ``chunks`` counts the stored chunks that were read; of a session it is the number of the last turn. ``turn`` is the
    turn that the trace adds to its session.
    """

    closing: Closing
    chunks: int = 0
    details: TraceDocument = field(default_factory=TraceDocument)
    before: TraceDocument | None = None
    service: str | None = None
    scenario: str | None = None
    last_span_ns: int | None = None
    priority: Priority = "normal"
    decision: Decision | None = None
    evaluation: Evaluation | None = None
    reason: EndReason | None = None
    turn: SessionTurn | None = None
    lookups: tuple[tuple[bytes, bytes | None], ...] = ()

    @property
    def trace_id(self) -> bytes:
        return self.closing.trace_id

    @property
    def waits(self) -> bool:
        """Whether a backend has questions to answer."""
        return self.evaluation is not None and bool(self.evaluation.open)

    def draw(self, share: float) -> float:
        """The third sampling pass, for the rubrics that need the judge.

        Args:
            share: the share in [0, 1] of such traces that the budget can pay for.

        Returns:
            The share at which the trace is drawn: that of its first draw, however often late spans reopen it.
        """
        sampling = (self.before or {}).get("sampling") or {}
        earlier = sampling.get("judged_share")
        share = min(1.0, max(0.0, share if earlier is None else float(earlier)))
        if self.evaluation is not None and self.decision is not None:
            self.evaluation.draw(self.decision.thinned(share))
            self.details["sampling"] = {**self.sampled, "judged_share": share}
        return share

    @property
    def sampled(self) -> SamplingDocument:
        """How the trace was drawn, for its details."""
        decision = self.decision
        if decision is None:
            return {}
        sampling: SamplingDocument = {
            "probability": decision.probability,
            "selection": decision.selection,
            "rule": decision.rule,
        }
        if self.closing.thinned or self.drawn_before:
            sampling["load_rate"] = probability(max(self.closing.origin.threshold, self.drawn_before))
        return sampling if decision.upstream == 1.0 else {**sampling, "upstream": decision.upstream}

    @property
    def drawn_before(self) -> int:
        """The sampling threshold under load at which an earlier revision was drawn; 0 for none.

        The assembler knows it too, but not after a restart.
        """
        load_rate = ((self.before or {}).get("sampling") or {}).get("load_rate")
        return 0 if load_rate is None else threshold(min(1.0, max(0.0, load_rate)))


def give_up(job: EvaluationJob, reason: EndReason) -> None:
    """End a trace without reading it. An existing verdict stays."""
    job.chunks = _ALL
    job.reason = EndReason.LATE if job.closing.revision > 1 else reason
    if reason is EndReason.CRASHED:
        log.error(
            "gave up a trace: the process ended again and again while judging it",
            extra={"trace_id": job.trace_id.hex()},
        )


def fail(job: EvaluationJob, error: Exception) -> None:
    """Log an exception of our own; the trace ends with the reason *error*."""
    log.error("could not judge a trace", extra={"trace_id": job.trace_id.hex()}, exc_info=error)
    job.reason, job.evaluation = EndReason.ERROR, None
    job.details["error"] = f"{type(error).__name__}: {error}"


REPORTED: Final = "reported"
"""Key of others' scores that came with a run's spans, in the details of its result. Langfuse lacks them when spans are
read again.
"""
_NOT_SUBSTANCE = ("created_at", "revision", "judge")


class SessionIdentity(NamedTuple):
    """Identifies a session. Session ids are the applications' own, so two services may use the same one."""

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
    ``chunks`` is how many stored chunks were judged, ``ended_ns`` when, and ``last_span_ns`` when its last span ended
    by the sender's clock, ``came_ns`` when that came by the own one, in ns since the epoch. ``scenario`` names the
    scenario that it was compared with. ``turn`` is the turn that it adds to a session that was drawn; ``session`` marks
    the result of a session, whose key is ``trace_id``. ``lookups`` are the references it was compared with: the name of
    each key, and a digest of the value, or None. ``root_span_id`` is the span that was judged as a whole.
    ``verdicts_json`` are the verdicts as JSON objects, in the same order, made once and off the event loop.
    ``place_ns`` is when the revised result was reached, where that may be long ago: the revision takes its place in
    time and changes no current window.
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
    came_ns: int | None = None
    turn: SessionTurn | None = None
    session: bool = False
    lookups: tuple[tuple[bytes, bytes | None], ...] = ()
    root_span_id: str | None = None
    verdicts_json: tuple[Mapping[str, object], ...] = ()
    place_ns: int | None = None

    @property
    def erased(self) -> TraceResult:
        """The result of a trace that was forgotten while it was judged: that it ended, and nothing else."""
        return replace(
            self, reason=EndReason.DELETED, details={}, verdicts=(), changed=(), withdrawn=(), turn=None, lookups=(),
            verdicts_json=(),
        )  # fmt: skip

    @property
    def lag_s(self) -> float | None:
        """How long after its last span came the trace was judged, in s; None where that does not concern the present.

        Both are by the own clock: a sender's may be wrong, and old traces may be sent again.
        """
        if not self.changed or self.came_ns is None or self.place_ns is not None:
            return None
        return (self.ended_ns - self.came_ns) / 1e9


def reason_of(case: Case, verdicts: Sequence[Verdict]) -> EndReason:
    """The one reason of a trace that was judged: scored if any rubric reached a verdict, else why none did."""
    if any(verdict.state is not State.INCOMPLETE for verdict in verdicts):
        return EndReason.SCORED
    if not case.complete:
        return EndReason.INCOMPLETE
    if not case.content_captured:
        return EndReason.NO_CONTENT if acts(case) or _has_steps(case) else EndReason.NOT_A_RUN
    if any(isinstance(score.result, Failed) for verdict in verdicts for score in verdict.scores):
        return EndReason.JUDGE_FAILED
    return EndReason.UNAVAILABLE


def _has_steps(case: Case) -> bool:
    """Whether a client that sends contents made a span of it: a decorated function, which may be a whole run."""
    return case.trace is not None and any(span.kind is SpanKind.CHAIN for span in case.trace.spans)


def revise(
    verdicts: Iterable[Verdict], before: Iterable[Mapping[str, object]]
) -> tuple[tuple[Verdict, ...], tuple[Verdict, ...]]:
    """Number verdicts by comparing them with the stored ones.

    Args:
        verdicts: of this result.
        before: the stored verdicts as JSON objects.

    Returns:
        All verdicts, and the new or changed ones. An equal verdict keeps its revision and its date; a changed one is
        revision n + 1.
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


def records(
    verdicts: Iterable[Verdict], changed: Iterable[Verdict], before: Iterable[Mapping[str, object]]
) -> tuple[Mapping[str, object], ...]:
    """Verdicts as JSON objects; one that is not changed keeps what judging it cost, and the names of its calls.

    Its answers came out of the cache this time, for nothing. Whoever was sent the verdict has what was paid.

    Args:
        verdicts: of this result, as ``revise`` numbered them.
        changed: those of them that are new or changed.
        before: the stored verdicts as JSON objects.
    """
    new = {verdict.rubric for verdict in changed}
    stored_by_rubric = {str(stored["rubric"]): stored for stored in before}
    return tuple(
        [
            verdict.to_json()
            if verdict.rubric in new
            else _as_paid(verdict.to_json(), stored_by_rubric[verdict.rubric])
            for verdict in verdicts
        ]
    )


def _as_paid(verdict: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, object]:
    scores = zip(verdict["scores"], stored["scores"], strict=True)  # equal ones, but for what they cost
    return {
        **verdict, "judge": stored.get("judge"),
        "scores": [{**score, "judge": paid["judge"]} if "judge" in paid else score for score, paid in scores],
    }  # fmt: skip


def _substance(verdict: Mapping[str, object]) -> dict[str, object]:
    """A verdict without its dates, numbers and what judging it cost, as it reads back from the store.

    The cost of a judge's call is no judgement, nor is whether an answer came out of the cache. What the judged run cost
    is part of it: files of verdicts have it from the verdict alone.
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
