"""Pipeline: closed traces → verdicts. The sentence of the README as one function, one line a stage.

A trace leaves in one transaction with its reason and its verdicts. Whatever happens before that leaves it open in the
store, and a restart takes it up again: nothing is lost, nothing is judged twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

from integrations.otlp.decode import UndecodableError, decode_spans
from scoring.extract import extract

from integrations.dialects import lift
from scoring.case import Case
from scoring.result import Failed
from scoring.span import Completion
from scoring.trace import Trace
from scoring.verdict import State, Verdict

from .evaluator import Evaluator
from .ledger import Reason
from .router import Excluded, Router
from .sampler import Decision, Sampler

log = logging.getLogger("sidejudge.pipeline")

BATCH = 32
"""Traces judged in one visit to the worker thread: enough to spread its cost, few enough to keep the order fair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a trace ended: its one reason, its verdicts (new and unchanged), and the story that explains it.

    ``changed`` are the verdicts that are new or differ from what was said before; only they leave the house again.
    """

    trace_id: str
    service: str
    reason: Reason
    completion: Completion
    story: Mapping[str, object]
    verdicts: tuple[Verdict, ...] = ()
    changed: tuple[Verdict, ...] = ()
    case: Case | None = None
    revised: bool = False
    ended_ns: int = 0


class TraceStore(Protocol):
    """What the pipeline needs of the store."""

    def chunks(self, trace_id: str) -> list[bytes]: ...
    def verdicts_of(self, trace_id: str) -> list[dict[str, object]]: ...
    def is_finished(self, trace_id: str) -> bool: ...
    async def end(self, ending: Ending) -> None: ...


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """Judges due traces in a worker thread, ends each in the store, then tells the listeners.

    ``listeners`` hear of every ending after its commit, in the event loop: metrics, windows, ledger, sinks.
    """

    store: TraceStore
    sampler: Sampler
    router: Router
    evaluator: Evaluator
    clock_ns: Callable[[], int]
    reference_keys: Sequence[str]
    listeners: list[Callable[[Ending], None]] = field(default_factory=list)
    waiting: deque[tuple[str, Completion]] = field(default_factory=deque)

    async def drain(self) -> None:
        """Judge and end everything that waits."""
        while self.waiting:
            batch = [self.waiting.popleft() for _ in range(min(BATCH, len(self.waiting)))]
            try:
                endings = await asyncio.to_thread(lambda due=batch: [self.judge(*each) for each in due])
                await asyncio.gather(*(self.store.end(ending) for ending in endings))
            except BaseException:
                self.waiting.extendleft(reversed(batch))  # not ended: they stay open, here and in the store
                raise
            for ending in endings:
                for listener in self.listeners:
                    listener(ending)

    def judge(self, trace_id: str, completion: Completion) -> Ending:
        """Everything between a closed trace and its ending, without committing anything."""
        now_ns = self.clock_ns()
        try:
            return self._judge(trace_id, completion, now_ns)
        except Exception as error:  # a bug must cost one trace its verdict, not the monitor its life
            log.exception("could not judge a trace", extra={"trace_id": trace_id})
            story = {"error": f"{type(error).__name__}: {error}"}
            return self._ending(trace_id, completion, now_ns, Reason.ERROR, story, None)

    def _judge(self, trace_id: str, completion: Completion, now_ns: int) -> Ending:
        case, states, about = self._read(trace_id, completion)
        if case is None:
            return self._ending(trace_id, completion, now_ns, Reason.UNDECODABLE, about, None)

        decision = self.sampler.decide(trace_id, states, case)
        case = replace(case, sampling_probability=decision.probability)
        story: dict[str, object] = {**about, "sampling": _told(decision)}
        if not decision.kept:
            return self._ending(trace_id, completion, now_ns, Reason.SAMPLED_OUT, story, case)

        route = self.router.route(case)
        if isinstance(route, Excluded):
            return self._ending(
                trace_id, completion, now_ns, Reason.EXCLUDED, {**story, "excluded": route.reason}, case
            )
        if route is None:
            return self._ending(trace_id, completion, now_ns, Reason.NO_RUBRIC, story, case)

        case = replace(case, scenario=route.scenario if route.scenario is not None else case.scenario)
        story |= {"route": route.name, "rubrics": list(route.rubrics)}
        verdicts = self.evaluator.evaluate(case, route.rubrics, created_at=_iso(now_ns), selection=decision.selection)
        return self._ending(trace_id, completion, now_ns, reason_of(case, verdicts), story, case, verdicts)

    def _read(self, trace_id: str, completion: Completion) -> tuple[Case | None, list[str], dict[str, object]]:
        raws, damaged = [], 0
        for payload in self.store.chunks(trace_id):
            try:
                raws.extend(decode_spans(payload))
            except UndecodableError:
                damaged += 1
        about: dict[str, object] = {"spans": len(raws), "damaged_chunks": damaged}
        if not raws:
            return None, [], about
        trace = Trace.of(trace_id, [lift(raw) for raw in raws], completion)
        about |= {
            "spans": len(trace.spans),
            "dialects": sorted({span.dialect for span in trace.spans}),
            "complete": trace.complete,
            "missing_parents": len(trace.missing_parents),
        }
        return extract(trace, reference_keys=self.reference_keys), [s.trace_state for s in trace.spans], about

    def _ending(
        self,
        trace_id: str,
        completion: Completion,
        now_ns: int,
        reason: Reason,
        story: Mapping[str, object],
        case: Case | None,
        verdicts: tuple[Verdict, ...] = (),
    ) -> Ending:
        revised = self.store.is_finished(trace_id)
        before = {str(said["rubric"]): said for said in self.store.verdicts_of(trace_id)} if revised else {}
        current, changed = [], []
        for verdict in verdicts:
            said = before.get(verdict.rubric)
            if said is None:
                changed.append(verdict)
            elif _substance(said) != _substance(verdict.to_json()):
                verdict = replace(verdict, revision=int(str(said["revision"])) + 1)  # noqa: PLW2901 - the next revision of it
                changed.append(verdict)
            else:
                verdict = replace(  # noqa: PLW2901 - it stands as it was said
                    verdict, revision=int(str(said["revision"])), created_at=str(said["created_at"])
                )
            current.append(verdict)
        return Ending(
            trace_id=trace_id,
            service=(case.service if case else None) or "unknown",
            reason=reason,
            completion=completion,
            story={
                **story,
                "completion": completion,
                "reason": reason.value,
                "name": case.name if case else None,
                "environment": case.environment if case else None,
                "content_captured": case.content_captured if case else None,
                "capture_switch": case.capture_switch if case else None,
            },
            verdicts=tuple(current),
            changed=tuple(changed),
            case=case,
            revised=revised,
            ended_ns=now_ns,
        )


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


def _substance(verdict: Mapping[str, object]) -> dict[str, object]:
    """A verdict without what differs between two sayings of the same thing."""
    return {key: value for key, value in verdict.items() if key not in ("created_at", "revision")}


def _told(decision: Decision) -> dict[str, object]:
    return {
        "kept": decision.kept,
        "probability": decision.probability,
        "selection": decision.selection,
        "rule": decision.rule,
    }


def _iso(now_ns: int) -> str:
    return datetime.fromtimestamp(now_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
