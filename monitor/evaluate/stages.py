"""Trials: closed traces on their way to their endings.

``open`` and ``end`` are the two halves of judging that need no waiting: they run in a worker thread, for several traces
in step. Between them lies whatever asking others takes; a trace that needs nobody's answer goes straight through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from integrations.dialects import lift
from integrations.otlp.wire.kept import decode_kept
from monitor.evaluate.references.lookup import References
from monitor.ingest.assembler import Closing
from monitor.ingest.outcomes import Reason
from monitor.ingest.sampler import Decision
from monitor.route.router import Excluded, Router
from monitor.sessions.turns import SessionTurns
from scoring.case.case import Case
from scoring.case.extract import extract
from scoring.trace.instant import written
from scoring.trace.trace import Trace
from scoring.verdict.verdict import State, Verdict

from .batching import in_step
from .evaluation import Evaluation
from .evaluator import Evaluator
from .job import EvaluationJob, fail
from .result import TraceResult, reason_of, revise


class Archive(Protocol):
    """What judging reads of a trace: its kept parts, and what was said of it before."""

    def chunks_and_stories(self, trace_ids: Iterable[bytes]) -> list[tuple[list[bytes], dict[str, Any] | None]]:
        """Of each of these: the kept parts in order of arrival, and what was told when it ended, with its ``verdicts``.

        The latter is None where a trace has not ended yet.
        """

    def turns(self, key: bytes) -> list[tuple[int, dict[str, Any]]]:
        """The turns of a session, numbered in order of writing."""

    def holds_judged(self, trace_id: bytes) -> bool:
        """Whether parts that were judged when it ended are still held."""


class Drawing(Protocol):
    """What decides whether a whole trace is judged, and knows how likely that was: a sampler."""

    def decide(self, case: Case, admission: int, trace_id: bytes, trace_states: Iterable[str] = ()) -> Decision: ...
    def thinned_upstream(self, trace_id: bytes, trace_states: Iterable[str]) -> bool: ...


def _go_on() -> None:
    """Nothing is in more of a hurry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationStages:
    """Opens and ends trials: reading, drawing, routing, and what becomes of the verdicts. Safe in any one thread.

    ``conversations`` is None where sessions are not judged, ``references`` where they are in the traces alone.
    ``give_way`` is called wherever judging may pause for what is in more of a hurry.
    """

    archive: Archive
    sampler: Drawing
    router: Router
    evaluator: Evaluator
    reference_keys: Sequence[str]
    conversations: SessionTurns | None = None
    references: References | None = None
    give_way: Callable[[], None] = _go_on

    def open(self, closing: Closing) -> EvaluationJob:
        """Everything between a closed trace and the first question to somebody who has to be waited for."""
        return self.open_all([closing])[0]

    def open_all(self, closings: Iterable[Closing]) -> list[EvaluationJob]:
        """Open several, each of another trace."""
        trials = [EvaluationJob(closing=closing, service=closing.origin.service) for closing in closings]
        self.give_way()
        read = self.archive.chunks_and_stories([trial.trace_id for trial in trials])
        in_step([self._opening(trial, *of_it) for trial, of_it in zip(trials, read, strict=True)])
        return trials

    def end(self, trial: EvaluationJob, now_ns: int) -> TraceResult:
        """The ending of a trial at which nothing is open, without committing anything."""
        return self._ending(trial, self._reached(trial, now_ns), now_ns)

    def end_all(self, trials: Sequence[EvaluationJob], clock_ns: Callable[[], int]) -> list[TraceResult]:
        """End several."""
        reached = [(trial, now_ns := clock_ns(), self._reached(trial, now_ns)) for trial in trials]
        return [self._ending(trial, verdicts, now_ns) for trial, now_ns, verdicts in reached]

    def _reached(self, trial: EvaluationJob, now_ns: int) -> tuple[Verdict, ...]:
        self.give_way()
        try:
            if trial.hearing is not None:
                return self._verdicts(trial, trial.hearing, now_ns)
        except Exception as error:  # noqa: BLE001  # a bug must cost one trace its verdict, not the monitor its life
            fail(trial, error)
        return ()

    def _ending(self, trial: EvaluationJob, verdicts: tuple[Verdict, ...], now_ns: int) -> TraceResult:
        before = trial.before["verdicts"] if trial.before and trial.reason is not Reason.LATE else []
        current, changed = revise(verdicts, before)
        return TraceResult(
            trace_id=trial.trace_id,
            service=trial.service,
            reason=trial.reason or Reason.ERROR,
            completion=trial.closing.completion,
            revision=trial.closing.revision,
            chunks=trial.chunks,
            ended_ns=now_ns,
            story=trial.story,
            verdicts=current,
            changed=changed,
            withdrawn=tuple({str(said["rubric"]) for said in before} - {verdict.rubric for verdict in current}),
            scenario=trial.scenario,
            last_span_ns=trial.last_span_ns,
            turn=trial.turn,
            session=trial.closing.session,
            lookups=trial.lookups if trial.hearing is not None else (),  # what is not judged needs none
            root_span_id=trial.hearing.case.root_span_id if trial.hearing is not None else None,
            said=tuple(verdict.to_json() for verdict in current),
        )

    def _opening(self, trial: EvaluationJob, payloads: list[bytes], before: dict[str, Any] | None) -> Iterator[None]:
        self.give_way()
        closing = trial.closing
        trial.chunks, trial.before = len(payloads), before
        try:
            if closing.session:
                self._hear_session(trial)
            elif trial.before is not None and not self.archive.holds_judged(closing.trace_id):
                # What came is a fragment of a trace that was judged when it was whole: that stands.
                trial.reason = Reason.LATE
            else:
                yield from self._hear(trial, payloads)
        except Exception as error:  # noqa: BLE001  # as above
            fail(trial, error)

    def _hear(self, trial: EvaluationJob, payloads: Sequence[bytes]) -> Iterator[None]:
        closing = trial.closing
        kept = decode_kept(payloads)
        yield
        spans = []
        for raw in kept.spans:
            self.give_way()
            spans.append(lift(raw))
        if not spans:
            trial.story = {"spans": 0, "damaged_chunks": kept.damaged}
            trial.reason = Reason.UNDECODABLE
            return
        yield
        trace = Trace.of(closing.trace_id.hex(), spans, closing.completion)
        trial.story = _assembled(trace, kept.damaged)
        yield
        self.give_way()
        case = extract(trace, reference_keys=self.reference_keys)
        yield
        if self.references is not None:
            found = self.references.find(case)
            if found.value is not case.expected_outcome:
                case = replace(case, expected_outcome=found.value)
            trial.lookups = found.lookups
            trial.story["reference"] = found.where
        trial.story |= _identity(case)
        trial.service = case.service or trial.service
        trial.last_span_ns = trace.end_ns

        states = [span.trace_state for span in trace.spans]
        decision = self.sampler.decide(case, trial.closing.origin.threshold, trial.trace_id, states)
        trial.decision = decision
        trial.story["sampling"] = trial.sampled
        if self.conversations is not None:
            trial.turn = self.conversations.turn(
                case,
                started_ns=trace.start_ns,
                ended_ns=trial.last_span_ns,
                thinned=self.sampler.thinned_upstream(trial.trace_id, states),
                before=trial.before,
            )
        if decision.probability is None:
            trial.reason = Reason.SAMPLED_OUT
            return
        yield
        self._refer(trial, case, self.router, decision.probability)

    def _hear_session(self, trial: EvaluationJob) -> None:
        stored = self.archive.turns(trial.trace_id)
        if self.conversations is None or not stored:
            trial.reason = Reason.LATE
            return
        trial.chunks = max(number for number, _ in stored)
        case, decision, traces = self.conversations.case(
            trial.trace_id, [turn for _, turn in stored], trial.closing.completion
        )
        trial.story = {"kind": "session", "turns": len(traces), "traces": traces, **_identity(case)}
        trial.service, trial.decision = case.service, decision
        trial.story["sampling"] = trial.sampled
        if decision.kept:
            self._refer(trial, case, self.conversations.router, case.sampling_probability)
        else:
            trial.reason = Reason.SAMPLED_OUT

    def _refer(self, trial: EvaluationJob, case: Case, router: Router, probability: float) -> None:
        """Put a case that was drawn with this probability before the rubrics that its route names."""
        route = router.route(case)
        if isinstance(route, Excluded):
            trial.story["excluded"] = route.reason
            trial.reason = Reason.EXCLUDED
            return
        if route is None:
            trial.reason = Reason.NO_RUBRIC
            return
        trial.story |= {"route": route.name, "rubrics": list(route.rubrics), "scenario": route.scenario_name}
        trial.scenario, trial.priority = route.scenario_name, route.priority
        scenario = case.scenario if route.scenario is None else route.scenario
        case = case.drawn(probability, scenario)
        self.give_way()
        trial.hearing = self.evaluator.open(case, route.rubrics)

    def _verdicts(self, trial: EvaluationJob, hearing: Evaluation, now_ns: int) -> tuple[Verdict, ...]:
        selection = trial.decision.selection if trial.decision is not None else "random"
        verdicts = hearing.verdicts(created_at=written(now_ns), selection=selection)
        if hearing.dropped:
            trial.story["sampling"] = {**_told(trial.story.get("sampling")), "over_budget": list(hearing.dropped)}
        told = any(verdict.state is not State.INCOMPLETE for verdict in verdicts)
        trial.reason = Reason.OVER_BUDGET if hearing.dropped and not told else reason_of(hearing.case, verdicts)
        return verdicts


def _told(sampling: object) -> dict[str, object]:
    return dict(sampling) if isinstance(sampling, dict) else {}


def _assembled(trace: Trace, damaged: int) -> dict[str, object]:
    return {
        "spans": len(trace.spans),
        "damaged_chunks": damaged,
        "dialects": sorted({span.dialect for span in trace.spans}),
        "complete": trace.complete,
        "missing_parents": len(trace.missing_parents),
        "first_ns": trace.start_ns,
        "last_ns": trace.end_ns,
    }


def _identity(case: Case) -> dict[str, object]:
    """What a reader of the story needs to recognise the trace, and nothing of its contents."""
    return {
        "name": case.name,
        "environment": case.environment,
        "session_id": case.session_id,
        "content_captured": case.content_captured,
        "answered": case.model_output not in (None, ""),
        "agents": len(case.agents_called or ()),
        "tools": len(case.tools_used or ()),
        "capture_switch": case.capture_switch,
    }
