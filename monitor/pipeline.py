"""Pipeline: closed traces → verdicts. The sentence of the README as code, one line a stage.

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
from scoring.span import Completion
from scoring.trace import Trace
from scoring.verdict import Verdict

from .ending import Ending, reason_of, revise
from .evaluator import Evaluator
from .ledger import Reason
from .router import Excluded, Router
from .sampler import Sampler

log = logging.getLogger("sidejudge.pipeline")

BATCH = 32
"""Traces judged in one visit to the worker thread: enough to spread its cost, few enough to keep the order fair."""


class TraceStore(Protocol):
    """What the pipeline needs of the store."""

    def chunks(self, trace_id: str) -> list[bytes]:
        """The kept parts of a trace, in order of arrival."""

    def verdicts_of(self, trace_id: str) -> list[dict[str, object]] | None:
        """What was said of a trace that has ended before; None when it has not."""

    async def end(self, ending: Ending) -> None:
        """Commit an ending: reason, story and verdicts in one transaction."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What judging a trace came to, before it is compared with what was said before."""

    reason: Reason
    story: Mapping[str, object]
    case: Case | None = None
    verdicts: tuple[Verdict, ...] = ()


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
            outcome = self._judge(trace_id, completion, now_ns)
        except Exception as error:  # a bug must cost one trace its verdict, not the monitor its life
            log.exception("could not judge a trace", extra={"trace_id": trace_id})
            outcome = _Outcome(Reason.ERROR, {"error": f"{type(error).__name__}: {error}"})
        before = self.store.verdicts_of(trace_id)
        current, changed = revise(outcome.verdicts, before or ())
        case = outcome.case
        return Ending(
            trace_id=trace_id,
            service=(case and case.service) or "unknown",
            reason=outcome.reason,
            completion=completion,
            story={**outcome.story, "completion": completion, "reason": outcome.reason.value},
            verdicts=current,
            changed=changed,
            revised=before is not None,
            case=case,
            ended_ns=now_ns,
        )

    def _judge(self, trace_id: str, completion: Completion, now_ns: int) -> _Outcome:
        trace, about = self._trace(trace_id, completion)
        if trace is None:
            return _Outcome(Reason.UNDECODABLE, about)
        case = extract(trace, reference_keys=self.reference_keys)
        story = {**about, **_identity(case)}

        decision = self.sampler.decide(trace_id, [span.trace_state for span in trace.spans], case)
        story["sampling"] = {
            "probability": decision.probability,
            "selection": decision.selection,
            "rule": decision.rule,
        }
        case = replace(case, sampling_probability=decision.probability)
        if not decision.kept:
            return _Outcome(Reason.SAMPLED_OUT, story, case)

        route = self.router.route(case)
        if isinstance(route, Excluded):
            return _Outcome(Reason.EXCLUDED, {**story, "excluded": route.reason}, case)
        if route is None:
            return _Outcome(Reason.NO_RUBRIC, story, case)
        story |= {"route": route.name, "rubrics": list(route.rubrics)}
        case = replace(case, scenario=route.scenario if route.scenario is not None else case.scenario)

        at = datetime.fromtimestamp(now_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        verdicts = self.evaluator.evaluate(case, route.rubrics, created_at=at, selection=decision.selection)
        return _Outcome(reason_of(case, verdicts), story, case, verdicts)

    def _trace(self, trace_id: str, completion: Completion) -> tuple[Trace | None, dict[str, object]]:
        raws, damaged = [], 0
        for payload in self.store.chunks(trace_id):
            try:
                raws.extend(decode_spans(payload))
            except UndecodableError:
                damaged += 1
        if not raws:
            return None, {"spans": 0, "damaged_chunks": damaged}
        trace = Trace.of(trace_id, [lift(raw) for raw in raws], completion)
        return trace, {
            "spans": len(trace.spans),
            "damaged_chunks": damaged,
            "dialects": sorted({span.dialect for span in trace.spans}),
            "complete": trace.complete,
            "missing_parents": len(trace.missing_parents),
        }


def _identity(case: Case) -> dict[str, object]:
    """What a reader of the story needs to recognise the trace, and nothing of its contents."""
    return {
        "name": case.name,
        "service": case.service,
        "environment": case.environment,
        "session_id": case.session_id,
        "content_captured": case.content_captured,
        "capture_switch": case.capture_switch,
    }
