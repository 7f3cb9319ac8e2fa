"""Records judge calls as own traces, and results as events.

It observes requests to models and listens to results, all in the event loop, and only writes into memory. A judging
begins with the first request to a model that is made for a case, and ends with the result of its trace: all verdicts of
one result have one root. A cached answer has no request below it; a verdict without a judge has no trace.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from sidejudge.integrations.otel_events.evaluation import EvaluationSubject, report
from sidejudge.integrations.otel_events.own_trace import Call, OwnTrace
from sidejudge.integrations.otel_events.providers import Telemetry
from sidejudge.integrations.provider.attempt import JudgeAttempt, JudgeObserver
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.questions.kinds import AskDeclared
from sidejudge.scoring.questions.question import Question
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict

log = logging.getLogger("sidejudge.otel")

MOST_OPEN: Final = 10_000
"""Judgings that are under way or wait; beyond it the oldest is closed without its verdicts."""
_CALL_OFF: Final = {"sidejudge.outcome": "not_ended"}


class Recorder(JudgeObserver):
    """``traces`` and ``events`` decide what is recorded."""

    def __init__(
        self,
        telemetry: Telemetry,
        *,
        rubrics: Mapping[str, Rubric],
        traces: bool,
        events: bool,
        clock_ns: Callable[[], int],
    ) -> None:
        self._telemetry, self._rubrics, self._clock_ns = telemetry, rubrics, clock_ns
        self._traces, self._events = traces, events
        self._open: dict[str, OwnTrace] = {}
        self._prompt: ContextVar[tuple[str, int] | None] = ContextVar("sidejudge_prompt", default=None)
        self._subject: ContextVar[tuple[EvaluationSubject, int] | None] = ContextVar("sidejudge_subject", default=None)

    def judging(self, case: Case) -> None:
        judged = EvaluationSubject(
            case_id=case.case_id, trace_id=case.trace_id, root_span_id=case.root_span_id,
            session_id=case.session_id, service=case.service, environment=case.environment,
        )  # fmt: skip
        self._subject.set((judged, self._clock_ns()))

    def asking(self, questions: Sequence[Question]) -> None:
        self._prompt.set(_prompt(questions))

    def attempted(self, attempt: JudgeAttempt) -> None:
        subject = self._subject.get()
        if subject is None or not self._traces:
            return
        end_ns = self._clock_ns()
        call = Call(
            model=attempt.model, start_ns=end_ns - max(0, int(attempt.duration_s * 1e9)), end_ns=end_ns,
            usage=attempt.usage, failure=attempt.failure, completion=attempt.completion, prompt=self._prompt.get(),
        )  # fmt: skip
        with _harmless():
            self._own(*subject).add(call)

    def ended(self, result: TraceResult) -> None:
        """A trace, or a session, has ended, and that is on disk."""
        with _harmless():
            self._report(result)

    def _report(self, result: TraceResult) -> None:
        own = self._open.pop(result.trace_id.hex(), None)
        judged = next((verdict for verdict in result.changed if verdict.judgements), None)
        if own is None and self._traces and judged is not None:
            # The cache answered everything; scores name the trace all the same.
            own = OwnTrace(self._telemetry, _subject(judged, result), self._clock_ns())
        if own is not None:
            own.end(self._clock_ns(), {"sidejudge.outcome": result.reason.value, **_verdicts(result)})
        if not self._events:
            return
        for verdict in result.changed:
            report(
                self._telemetry.logger, _subject(verdict, result), verdict, self._rubrics[verdict.rubric],
                at_ns=result.ended_ns, own_trace_id=own.trace_id if own is not None else None,
            )  # fmt: skip

    def close(self) -> None:
        """End the open traces: they are judged and recorded again after the next start."""
        for own in self._open.values():
            own.end(self._clock_ns(), _CALL_OFF)
        self._open.clear()

    def _own(self, judged: EvaluationSubject, start_ns: int) -> OwnTrace:
        key = judged.trace_id or judged.case_id
        if key not in self._open:
            if len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open))).end(self._clock_ns(), _CALL_OFF)
            self._open[key] = OwnTrace(self._telemetry, judged, start_ns)
        return self._open[key]


def _subject(verdict: Verdict, result: TraceResult) -> EvaluationSubject:
    return EvaluationSubject(
        case_id=verdict.case_id, trace_id=verdict.trace_id, root_span_id=result.root_span_id,
        session_id=verdict.session_id, service=verdict.service, environment=verdict.environment,
    )  # fmt: skip


def _prompt(questions: Sequence[Question]) -> tuple[str, int] | None:
    """Name and version of the prompt that all questions were read from; None where that is not one."""
    prompts = {question.prompt if isinstance(question, AskDeclared) else "" for question in questions}
    name, _, version = prompts.pop().rpartition(" v") if len(prompts) == 1 else ("", "", "")
    return (name, int(version)) if name and version.isdecimal() else None


@contextmanager
def _harmless() -> Iterator[None]:
    """A fault of the recorder loses its records, and never affects judging."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # its text may quote a trace
        log.error("own telemetry was not written", extra={"cause": type(error).__name__})  # noqa: TRY400  # likewise


def _verdicts(result: TraceResult) -> dict[str, str]:
    """The results, rubric by rubric."""
    return {f"sidejudge.verdict.{verdict.rubric}": verdict.state.value for verdict in result.verdicts}
