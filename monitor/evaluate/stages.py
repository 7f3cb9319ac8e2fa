"""Stages: a closed trace comes in, a result goes out, in two halves that never wait.

``open`` reads, draws, routes and starts the evaluation; ``end`` takes the verdicts. Both run in the default thread pool
of the event loop, for several traces in step. Between them the judge queue asks slow backends where a trace needs one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from msgspec import structs, to_builtins

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.kept import decode_kept
from sidejudge.monitor.evaluate.references.lookup import References
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Decision
from sidejudge.monitor.route.router import Excluded, NotARun, Router
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.conversation import question_of
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.case.grounds import text_or_json
from sidejudge.scoring.case.run_figures import run_figures
from sidejudge.scoring.lexical.shown_text import label_of
from sidejudge.scoring.metrics.run_effort import run_effort
from sidejudge.scoring.metrics.run_tools import calls_by_tool
from sidejudge.scoring.rubrics import run_health
from sidejudge.scoring.trace.reported import ReportedScore, read_reported
from sidejudge.scoring.trace.span import Completion, JsonRecord
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.trace.trace import Trace
from sidejudge.scoring.verdict.documents import TraceDocument
from sidejudge.scoring.verdict.redacted import Redact, redacted_verdict
from sidejudge.scoring.verdict.verdict import State, Verdict

from .baselines import EFFORT, Baselines
from .evaluator import Evaluation, Evaluator
from .result import (
    REPORTED,
    EvaluationJob,
    SessionIdentity,
    SessionTurn,
    TraceResult,
    fail,
    give_up,
    reason_of,
    records,
    revise,
)

MOST_CALLS: Final = 200
"""Tool calls of a run whose names stay in the details of its result."""
BEGINNING: Final = 200
"""Characters of a trace's input, and of its output, that stay in its details (seed 004)."""
FIGURES: Final = "figures"
"""The key of a run's time, tokens and cost in a result's details."""
TOOLS: Final = "tool_calls"
"""Key of a run's tool calls in the details of a result: by tool how many there were, and how many failed."""
_OVER = object()


class Archive(Protocol):
    """The reads of judging: a trace's stored chunks and stored result."""

    def chunks_and_stories(self, trace_ids: Iterable[bytes]) -> list[tuple[list[bytes], TraceDocument | None]]:
        """For each trace: its chunks in order of arrival, and its stored result with its ``verdicts``.

        The result is None for a trace that has not ended yet.
        """

    def turns(self, key: bytes) -> list[tuple[int, JsonRecord]]:
        """The turns of a session, numbered in order of writing."""

    def holds_judged(self, trace_id: bytes) -> bool:
        """Whether chunks that were judged when the trace ended are still stored."""


class Drawing(Protocol):
    """Decides whether a whole trace is judged, and with which probability: a sampler."""

    def decide(self, case: Case, admission: int, trace_id: bytes, trace_states: Iterable[str] = ()) -> Decision: ...


class Conversations(Protocol):
    """The part of sessions that traces and sessions pass through, where sessions are judged."""

    @property
    def router(self) -> Router: ...
    def draw(self, identity: SessionIdentity) -> Decision: ...
    def turn(
        self, case: Case, *, started_ns: int, ended_ns: int, thinned: bool, before: TraceDocument | None
    ) -> SessionTurn | None: ...
    def case(
        self, key: bytes, stored: Sequence[JsonRecord], completion: Completion
    ) -> tuple[Case, Decision, list[str]]: ...


def _go_on() -> None:
    """The default of ``give_way``: no pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationStages:
    """Opens and ends evaluation jobs. Safe in any one thread.

    ``conversations`` is None where sessions are not judged, ``references`` where references come from the traces alone.
    ``baselines`` is None where the usual effort of a service is not learned. ``cluster`` names the clusters of traces:
    ``session``, ``user``, ``metadata.KEY`` or ``none``. ``slices`` are the dimensions that explain alerts on a pass
    ratio: ``version``, ``prompt``, ``model``, ``name``, ``metadata.KEY``. ``redact`` redacts the reasons and details of
    verdicts, which quote contents; None: nothing is replaced. ``quotes`` redacts the beginnings of a judged trace's
    input and output, by which people recognise it, for its details; None: they hold none. ``former_draw`` returns what
    a trace must have reached before the start (``FormerDraw.threshold``). ``give_way`` is called wherever judging may
    pause for a waiting request.
    """

    archive: Archive
    sampler: Drawing
    router: Router
    evaluator: Evaluator
    reference_keys: Sequence[str]
    conversations: Conversations | None = None
    references: References | None = None
    baselines: Baselines | None = None
    redact: Redact | None = None
    quotes: Redact | None = None
    former_draw: Callable[[int, int], int] | None = None
    cluster: str = "session"
    slices: Sequence[str] = ()
    give_way: Callable[[], None] = _go_on

    def open(self, closing: Closing) -> EvaluationJob:
        """Run everything between a closed trace and the first question to a slow backend."""
        return self.open_all([closing])[0]

    def open_all(self, closings: Iterable[Closing]) -> list[EvaluationJob]:
        """Open several, each of another trace."""
        jobs = [EvaluationJob(closing=closing, service=closing.origin.service) for closing in closings]
        self.give_way()
        judged = [job for job in jobs if job.closing.give_up is None]
        read = self.archive.chunks_and_stories([job.trace_id for job in judged])
        in_step([self._opening(job, *of_it) for job, of_it in zip(judged, read, strict=True)])
        for job in jobs:
            if job.closing.give_up is not None:
                give_up(job, job.closing.give_up)
        return jobs

    def end(self, job: EvaluationJob, now_ns: int) -> TraceResult:
        """The result of a job without open questions. Nothing is committed."""
        return self._result(job, self._verdicts_or_none(job, now_ns), now_ns)

    def end_all(self, jobs: Sequence[EvaluationJob], clock_ns: Callable[[], int]) -> list[TraceResult]:
        """End several."""
        decided = [(job, now_ns := clock_ns(), self._verdicts_or_none(job, now_ns)) for job in jobs]
        return [self._result(job, verdicts, now_ns) for job, now_ns, verdicts in decided]

    def _verdicts_or_none(self, job: EvaluationJob, now_ns: int) -> tuple[Verdict, ...]:
        self.give_way()
        try:
            if job.evaluation is not None:
                return self._verdicts(job, job.evaluation, now_ns)
        except Exception as error:  # noqa: BLE001  # a bug costs one trace its verdict and must not end the monitor
            fail(job, error)
        return ()

    def _result(self, job: EvaluationJob, verdicts: tuple[Verdict, ...], now_ns: int) -> TraceResult:
        before = job.before["verdicts"] if job.before and job.reason is not EndReason.LATE else []
        current, changed = revise(verdicts, before)
        if self.redact is not None and "error" in job.details:
            job.details["error"] = self.redact(job.details["error"])
        return TraceResult(
            trace_id=job.trace_id,
            service=job.service,
            reason=job.reason or EndReason.ERROR,
            completion=job.closing.completion,
            revision=job.closing.revision,
            chunks=job.chunks,
            ended_ns=now_ns,
            details=job.details,
            verdicts=current,
            changed=changed,
            withdrawn=tuple({str(stored["rubric"]) for stored in before} - {verdict.rubric for verdict in current}),
            scenario=job.scenario,
            last_span_ns=job.last_span_ns,
            came_ns=job.closing.last_ns or None,
            turn=job.turn,
            session=job.closing.session,
            lookups=job.lookups if job.evaluation is not None else (),  # an unjudged trace needs none
            root_span_id=job.evaluation.case.root_span_id if job.evaluation is not None else None,
            verdicts_json=records(current, changed, before),
        )

    def _opening(self, job: EvaluationJob, payloads: list[bytes], before: TraceDocument | None) -> Iterator[None]:
        self.give_way()
        closing = job.closing
        job.chunks, job.before = len(payloads), before
        try:
            if closing.session:
                self._open_session(job)
            elif job.before is not None and not self.archive.holds_judged(closing.trace_id):
                # These spans are a fragment of a trace that was judged when it was whole: that result stands.
                job.reason = EndReason.LATE
            else:
                yield from self._open_trace(job, payloads)
        except Exception as error:  # noqa: BLE001  # as above
            fail(job, error)

    def _open_trace(self, job: EvaluationJob, payloads: Sequence[bytes]) -> Iterator[None]:
        closing = job.closing
        kept = decode_kept(payloads)
        yield
        spans = []
        for raw in kept.spans:
            self.give_way()
            spans.append(normalise(raw))
        if not spans:
            job.details = {"spans": 0, "damaged_chunks": kept.damaged}
            job.reason = EndReason.UNDECODABLE if payloads else EndReason.DELETED
            return
        yield
        trace = Trace.of(closing.trace_id.hex(), spans, closing.completion)
        job.details = _assembled(trace, kept.damaged)
        if closing.left_out:
            job.details["left_out"] = closing.left_out
        yield
        self.give_way()
        case = extract(trace, reference_keys=self.reference_keys)
        yield
        if self.references is not None and self.references.elsewhere:
            found = self.references.find(case)
            if found.value is not case.expected_outcome:
                case = replace(case, expected_outcome=found.value)
            job.lookups = found.lookups
            job.details["reference"] = found.where
        job.details |= _identity(case, self.slices) | {"cluster": cluster_of(case, self.cluster)}
        job.service = case.service or job.service
        job.last_span_ns = trace.end_ns

        states = [span.trace_state for span in trace.spans]
        admission = max(closing.origin.threshold, job.drawn_before)
        if self.former_draw is not None:
            admission = max(admission, self.former_draw(trace.start_ns, closing.opened_ns))
        decision = self.sampler.decide(case, admission, job.trace_id, states)
        job.decision = decision
        job.details["sampling"] = job.sampled
        if self.conversations is not None:
            job.turn = self.conversations.turn(
                case,
                started_ns=trace.start_ns,
                ended_ns=job.last_span_ns,
                thinned=closing.thinned or decision.thinned_upstream,
                before=job.before,
            )
        if decision.probability is None:
            job.reason = EndReason.SAMPLED_OUT
            return
        yield
        self._evaluate(job, case, self.router, decision.probability)

    def _open_session(self, job: EvaluationJob) -> None:
        stored = self.archive.turns(job.trace_id)
        if self.conversations is None or not stored:
            job.reason = EndReason.LATE
            return
        job.chunks = max(number for number, _ in stored)
        case, decision, traces = self.conversations.case(
            job.trace_id, [turn for _, turn in stored], job.closing.completion
        )
        job.details = {
            "kind": "session",
            "turns": len(traces),
            "traces": traces,
            **_identity(case, self.slices),
            "cluster": None,
        }
        job.service, job.decision = case.service, decision
        job.details["sampling"] = job.sampled
        if decision.kept:
            self._evaluate(job, case, self.conversations.router, case.sampling_probability)
        else:
            job.reason = EndReason.SAMPLED_OUT

    def _evaluate(self, job: EvaluationJob, case: Case, router: Router, probability: float) -> None:
        """Start the evaluation of a case that was drawn with this probability by the rubrics of its route."""
        route = router.route(case)
        if isinstance(route, Excluded):
            job.details["excluded"] = route.reason
            job.reason = EndReason.EXCLUDED
            return
        if route is None or isinstance(route, NotARun):
            job.reason = EndReason.NO_RUBRIC if route is None else EndReason.NOT_A_RUN
            job.details["routes"] = router.unmatched(case)
            return
        if case.tools_used is not None and case.complete and len(case.tools_used) <= MOST_CALLS:
            job.details["calls"] = [call.name for call in case.tools_used if not call.handoff]
            job.details["agents_called"] = list(case.agents_called or ())
        job.details |= {"route": route.name, "rubrics": list(route.rubrics), "scenario": route.scenario_name}
        if self.quotes is not None:
            _quote(job.details, case, self.quotes)
        if not job.closing.session:
            case = self._with_reported(job, case, route.rubrics)
        job.scenario, job.priority = route.scenario_name, route.priority
        scenario = case.scenario if route.scenario is None else route.scenario
        if not job.closing.session and (figures := run_figures(case)) is not None:
            job.details[FIGURES] = {"values": figures.values, "models": figures.models, "version": figures.version}
        usual = None
        if self.baselines is not None and run_health.RUBRIC.id in route.rubrics and not job.closing.session:
            usual = self.baselines.usual(case.service, case.environment)
            if case.complete:
                job.details[EFFORT] = dict(case.once(run_effort))
            if tools := case.once(calls_by_tool):
                job.details[TOOLS] = tools
        case = case.drawn(probability, scenario, usual=usual, budget=route.budget)
        self.give_way()
        job.evaluation = self.evaluator.open(case, route.rubrics)

    def _with_reported(self, job: EvaluationJob, case: Case, rubrics: Sequence[str]) -> Case:
        """The case with others' scores: from Langfuse, and from spans that have been dropped since."""
        before = job.before.get(REPORTED, ()) if job.before is not None else ()
        follows = self.references is not None and self.references.follows
        if not (case.reported or before or follows):
            return case
        names = self.evaluator.reported(rubrics)
        given = (*read_reported(before), *case.reported)
        came = {(each.name, each.by, each.span_id, each.at_ns): each for each in given if each.name in names}
        if came:
            job.details[REPORTED] = [to_builtins(self._quoted(each)) for each in came.values()]
        there: tuple[ReportedScore, ...] = ()
        if self.references is not None:
            there, lookups = self.references.scores(case, sorted(names))
            job.lookups = (*job.lookups, *lookups)
        return replace(case, reported=(*came.values(), *there))

    def _quoted(self, score: ReportedScore) -> ReportedScore:
        """A score as it stays with the details: its explanation is content."""
        if score.explanation is None:
            return score
        return structs.replace(score, explanation=self.quotes(score.explanation)[:BEGINNING] if self.quotes else None)

    def _verdicts(self, job: EvaluationJob, evaluation: Evaluation, now_ns: int) -> tuple[Verdict, ...]:
        selection = job.decision.selection if job.decision is not None else "random"
        verdicts = evaluation.verdicts(created_at=iso_time(now_ns), selection=selection)
        if self.redact is not None:
            verdicts = tuple([redacted_verdict(each, self.redact) for each in verdicts])
        if evaluation.dropped:
            job.details["sampling"] = {**job.details.get("sampling", {}), "over_budget": list(evaluation.dropped)}
        decided = any(verdict.state is not State.INCOMPLETE for verdict in verdicts)
        job.reason = (
            EndReason.OVER_BUDGET if evaluation.dropped and not decided else reason_of(evaluation.case, verdicts)
        )
        return verdicts


def _quote(details: TraceDocument, case: Case, redacted: Callable[[str], str]) -> None:
    most = 4 * BEGINNING  # what is replaced may begin before the end and go on behind it
    if question := redacted(question_of(case)[:most])[:BEGINNING]:
        details["input_beginning"] = question
    if case.model_output not in (None, ""):
        details["output_beginning"] = redacted(text_or_json(case.model_output)[:most])[:BEGINNING]


def _assembled(trace: Trace, damaged: int) -> TraceDocument:
    return {
        "spans": len(trace.spans),
        "damaged_chunks": damaged,
        "dialects": sorted({span.dialect for span in trace.spans}),
        "complete": trace.complete,
        "missing_parents": len(trace.missing_parents),
        "first_ns": trace.start_ns,
        "last_ns": trace.end_ns,
    }


def user_digest(user_id: str) -> str:
    """A user as the store remembers one: traces of a known user can be found, and the user's id cannot be read."""
    return hashlib.sha256(user_id.encode(errors="replace")).hexdigest()[:32]


def cluster_of(case: Case, cluster: str) -> str | None:
    """The cluster of the case as a digest: its verdicts may pass and fail together."""
    if cluster == "session":
        found: object = case.session_id
    elif cluster == "user":
        found = case.user_id
    else:
        found = case.metadata.get(cluster.removeprefix("metadata.")) if cluster != "none" else None
    return None if found in (None, "") else user_digest(str(found))[:16]


def _release(case: Case) -> str | None:
    """The version of the application: of the first span that names one."""
    found = next((span.release for span in case.trace.spans if span.release), None) if case.trace is not None else None
    return None if found is None else label_of(found)


def _prompt(case: Case) -> str | None:
    """The versions of the prompts that the trace was made with, with their names where these are known."""
    spans = case.trace.spans if case.trace is not None else ()
    stated = [{**span.trace_metadata, **span.metadata} for span in spans] or [{**case.metadata}]
    found = {
        f"{each['prompt_name']}:{each['prompt_version']}" if each.get("prompt_name") else str(each["prompt_version"])
        for each in stated
        if each.get("prompt_version") is not None
    }
    return label_of(", ".join(sorted(found))) if found else None


def _slices(case: Case, wanted: Sequence[str], known: Mapping[str, str | None]) -> dict[str, str]:
    """The values that the trace states for the wanted dimensions, cut to a label's length: work is bounded."""
    found = ((by, known[by] if by in known else _metadata(case, by.removeprefix("metadata."))) for by in wanted)
    return {by: label_of(value) for by, value in found if value}


def _metadata(case: Case, key: str) -> str | None:
    value = case.metadata.get(key)
    return str(value) if isinstance(value, str | int) else None


def _identity(case: Case, slices: Sequence[str]) -> TraceDocument:
    """The fields by which a reader recognises the trace, without contents."""
    release, prompt = _release(case), _prompt(case)
    return {
        "name": case.name,
        "environment": case.environment,
        "session_id": case.session_id,
        "user": None if case.user_id is None else user_digest(case.user_id),
        "release": release,
        "prompt": prompt,
        "content_captured": case.content_captured,
        "answered": case.model_output not in (None, ""),
        "agents": len(case.agents_called or ()),
        "tools": len(case.tools_used or ()),
        "capture_switch": case.capture_switch,
        "model": case.model,
        "slices": _slices(case, slices, {"version": release, "prompt": prompt, "model": case.model, "name": case.name}),
    }


def in_step(walks: Iterable[Iterator[None]]) -> None:
    """Run every walk to its end. A walk yields after each stage; it resumes when the others have done theirs.

    The code and data of one stage fit into a processor's caches; those of a whole evaluation do not. Stage by stage,
    judging takes a fifth less time. An exception of one walk ends all of them and is raised.
    """
    left = list(walks)
    while left:
        left = [walk for walk in left if next(walk, _OVER) is not _OVER]
