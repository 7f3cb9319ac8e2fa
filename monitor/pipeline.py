"""Pipeline: closed traces → verdicts. The sentence of the README as code, one line a stage.

A trace leaves in one transaction with its reason and its verdicts. Whatever happens before that leaves it open in the
store, and a restart takes it up again: nothing is lost, nothing is judged twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from integrations.dialects import lift
from integrations.otlp.decode import UndecodableError, decode_spans
from scoring.case import Case
from scoring.extract import extract
from scoring.trace import Trace
from scoring.verdict import Verdict

from .assembler import Closing
from .ending import Ending, reason_of, revise
from .evaluator import Evaluator
from .instant import written
from .ledger import Reason
from .router import Excluded, Router
from .sampler import Sampler

log = logging.getLogger("sidejudge.pipeline")

BATCH = 32
"""Traces judged in one visit to the worker thread: enough to spread its cost, few enough to keep the order fair."""


class Archive(Protocol):
    """What the pipeline reads of a trace: its kept parts, and what was said of it before."""

    def chunks(self, trace_id: bytes) -> list[bytes]:
        """The kept parts in order of arrival."""

    def story(self, trace_id: bytes) -> dict[str, Any] | None:
        """What was told when it ended, with its ``verdicts``; None when it has not ended yet."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What judging a trace came to, before it is compared with what was said before."""

    reason: Reason
    story: Mapping[str, object]
    service: str | None = None
    scenario: str | None = None
    last_span_ns: int | None = None
    verdicts: tuple[Verdict, ...] = ()


@dataclass(slots=True, kw_only=True)
class Pipeline:
    """Judges closed traces in a worker thread, commits each ending, then tells the listeners.

    ``commit`` returns once the ending is on disk. ``listeners`` hear of it after that, in the event loop: ledger,
    metrics, windows, sinks.
    """

    archive: Archive
    commit: Callable[[Ending], Awaitable[None]]
    sampler: Sampler
    router: Router
    evaluator: Evaluator
    clock_ns: Callable[[], int]
    reference_keys: Sequence[str]
    listeners: list[Callable[[Ending], None]] = field(default_factory=list)
    waiting: deque[Closing] = field(default_factory=deque)

    async def drain(self) -> None:
        """Judge and end everything that waits."""
        while self.waiting:
            batch = self._next_batch()
            try:
                endings = await asyncio.to_thread(self._judge_all, batch)
                refusals = await asyncio.gather(*(self.commit(ending) for ending in endings), return_exceptions=True)
            except BaseException:
                self.waiting.extendleft(reversed(batch))  # not ended: they stay open, here and in the store
                raise
            # A store may take some and refuse others: what it took is told now, for a retry would find nothing new.
            refused = [closing for closing, error in zip(batch, refusals, strict=True) if error is not None]
            self.waiting.extendleft(reversed(refused))
            for ending, error in zip(endings, refusals, strict=True):
                if error is None:
                    for listener in self.listeners:
                        listener(ending)
            for error in refusals:
                if error is not None:
                    raise error

    def _next_batch(self) -> list[Closing]:
        """The first that wait, each trace once: a revision is compared with what was said, so that must be on disk."""
        batch: dict[bytes, Closing] = {}
        while self.waiting and len(batch) < BATCH and self.waiting[0].trace_id not in batch:
            closing = self.waiting.popleft()
            batch[closing.trace_id] = closing
        return list(batch.values())

    def _judge_all(self, batch: Sequence[Closing]) -> list[Ending]:
        return [self.judge(closing) for closing in batch]

    def judge(self, closing: Closing) -> Ending:
        """Everything between a closed trace and its ending, without committing anything."""
        now_ns = self.clock_ns()
        payloads = self.archive.chunks(closing.trace_id)
        try:
            outcome = self._judge(closing, payloads, now_ns)
        except Exception as error:  # a bug must cost one trace its verdict, not the monitor its life
            log.exception("could not judge a trace", extra={"trace_id": closing.trace_id.hex()})
            outcome = _Outcome(Reason.ERROR, {"error": f"{type(error).__name__}: {error}"})
        told = self.archive.story(closing.trace_id)
        before = told["verdicts"] if told else []
        current, changed = revise(outcome.verdicts, before)
        return Ending(
            trace_id=closing.trace_id,
            service=outcome.service or closing.origin.service,
            reason=outcome.reason,
            completion=closing.completion,
            revision=closing.revision,
            chunks=len(payloads),
            ended_ns=now_ns,
            story=outcome.story,
            verdicts=current,
            changed=changed,
            withdrawn=tuple({str(said["rubric"]) for said in before} - {verdict.rubric for verdict in current}),
            scenario=outcome.scenario,
            last_span_ns=outcome.last_span_ns,
        )

    def _judge(self, closing: Closing, payloads: Sequence[bytes], now_ns: int) -> _Outcome:
        trace, about = _assembled(closing, payloads)
        if trace is None:
            return _Outcome(Reason.UNDECODABLE, about)
        case = extract(trace, reference_keys=self.reference_keys)
        story = {**about, **_identity(case)}
        ended = partial(_Outcome, story=story, service=case.service, last_span_ns=max(s.end_ns for s in trace.spans))

        states = [span.trace_state for span in trace.spans]
        decision = self.sampler.decide(case, closing.origin.threshold, closing.trace_id, states)
        story["sampling"] = {
            "probability": decision.probability,
            "selection": decision.selection,
            "rule": decision.rule,
        }
        if decision.probability is None:
            return ended(Reason.SAMPLED_OUT)
        case = replace(case, sampling_probability=decision.probability)

        route = self.router.route(case)
        if isinstance(route, Excluded):
            story["excluded"] = route.reason
            return ended(Reason.EXCLUDED)
        if route is None:
            return ended(Reason.NO_RUBRIC)
        story |= {"route": route.name, "rubrics": list(route.rubrics), "scenario": route.scenario_name}
        case = replace(case, scenario=route.scenario) if route.scenario is not None else case

        verdicts = self.evaluator.evaluate(
            case, route.rubrics, created_at=written(now_ns), selection=decision.selection
        )
        return ended(reason_of(case, verdicts), scenario=route.scenario_name, verdicts=verdicts)


def _assembled(closing: Closing, payloads: Sequence[bytes]) -> tuple[Trace | None, dict[str, object]]:
    raws, damaged = [], 0
    for payload in payloads:
        try:
            raws.extend(decode_spans(payload))
        except UndecodableError:
            damaged += 1
    if not raws:
        return None, {"spans": 0, "damaged_chunks": damaged}
    trace = Trace.of(closing.trace_id.hex(), [lift(raw) for raw in raws], closing.completion)
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
        "environment": case.environment,
        "session_id": case.session_id,
        "content_captured": case.content_captured,
        "capture_switch": case.capture_switch,
    }
