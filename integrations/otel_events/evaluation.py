"""Evaluation: each score of a verdict as an event ``gen_ai.evaluation.result``, and the subject that it names.

After OpenTelemetry's GenAI conventions of November 2026, in development:
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md. The event stands at
the span that was judged, in its trace. The conventions have no attributes for the judge, the version and the inclusion
probability, without which scores cannot be compared; these are attributes of our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.result.result import Failed, Judgement, Scored
from sidejudge.scoring.trace.loop_guard import own_trace_id
from sidejudge.scoring.verdict.rubric import Rubric, all_criteria
from sidejudge.scoring.verdict.score import composite_name, score_name
from sidejudge.scoring.verdict.verdict import Score, Verdict

_TRACE_HEX, _SPAN_HEX = 32, 16
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSubject:
    """A trace, or a session, which has no trace id. ``root_span_id`` stands for the trace as a whole."""

    case_id: str
    trace_id: str | None = None
    root_span_id: str | None = None
    session_id: str | None = None
    service: str | None = None
    environment: str | None = None

    @property
    def context(self) -> SpanContext:
        """Where it stands, as OpenTelemetry refers to it; invalid where its ids are none of OpenTelemetry's."""
        trace_id, span_id = _id(self.trace_id, _TRACE_HEX), _id(self.root_span_id, _SPAN_HEX)
        if not trace_id or not span_id:
            return INVALID_SPAN_CONTEXT
        return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    @property
    def own_trace_id(self) -> str:
        """The id of the own trace about it, in hex."""
        return own_trace_id(self.trace_id or self.case_id)

    @property
    def subject(self) -> dict[str, str]:
        """The judged object: a trace or a session."""
        stated = {"judged_trace_id": self.trace_id, "judged_session_id": self.session_id}
        return {key: label(value, 200) for key, value in stated.items() if value}

    @property
    def attributes(self) -> dict[str, str]:
        """The link as attributes, for readers that do not follow links."""
        stated = {
            "sidejudge.judged.trace_id": self.trace_id,
            "sidejudge.judged.case_id": None if self.case_id == self.trace_id else self.case_id,
            "sidejudge.judged.session_id": self.session_id,
            "sidejudge.judged.service": self.service,
            "sidejudge.judged.environment": self.environment,
        }
        return {key: label(value, 200) for key, value in stated.items() if value}


def _id(stated: str | None, length: int) -> int:
    """An id as a number; 0 where it is none."""
    return int(stated, 16) if stated is not None and len(stated) == length and _HEX.issuperset(stated) else 0


EVENT: Final = "gen_ai.evaluation.result"
MAX_EXPLANATION: Final = 1000
"""Characters of an explanation: a reason may quote a trace."""
Attributes: TypeAlias = Mapping[str, str | float | int | bool | list[str]]


def report(
    logger: Logger, judged: EvaluationSubject, verdict: Verdict, rubric: Rubric, *, at_ns: int, own_trace_id: str | None
) -> int:
    """Write the events of one verdict and return how many; ``own_trace_id`` is the trace of its judging, if any."""
    context = set_span_in_context(NonRecordingSpan(judged.context), Context())
    common = {**judged.attributes, **_of(verdict)}
    if own_trace_id is not None:
        common["sidejudge.evaluation.trace_id"] = own_trace_id
    reported = 0
    for attributes in evaluations(verdict, rubric):
        logger.emit(
            timestamp=at_ns,
            observed_timestamp=at_ns,
            context=context,
            severity_number=SeverityNumber.INFO,
            attributes={**attributes, **common},
            event_name=EVENT,
        )
        reported += 1
    return reported


def evaluations(verdict: Verdict, rubric: Rubric) -> Iterator[Attributes]:
    """One set of attributes a score: the composite with pass or fail, then each metric that has a value or failed.

    A result that is not applicable or unavailable is no evaluation and has no event.
    """
    if verdict.composite is not None or verdict.passed is not None:
        yield {
            "gen_ai.evaluation.name": composite_name(rubric.id),
            **({} if verdict.composite is None else {"gen_ai.evaluation.score.value": float(verdict.composite)}),
            **({} if verdict.passed is None else {"gen_ai.evaluation.score.label": _PASSED[verdict.passed]}),
            **_explained(verdict.reason),
        }
    metrics = {c.metric.id: c.metric for c in all_criteria(rubric)}
    for score in verdict.scores:
        if score.metric in metrics:
            found = _metric(score)
            if found:
                yield {"gen_ai.evaluation.name": score_name(rubric.id, metrics[score.metric]), **found}


_PASSED: Final = {True: "pass", False: "fail"}


def _metric(score: Score) -> Attributes:
    result = score.result
    if isinstance(result, Failed):
        return {"error.type": _kind(result.reason), **_explained(result.reason)}
    if not isinstance(result, Scored):
        return {}
    return {
        "gen_ai.evaluation.score.value": float(result.value),
        **({} if score.rating is None else {"gen_ai.evaluation.score.label": score.rating}),
        **_explained(result.reason),
        "sidejudge.method": result.method.value,
        **_judge(result.judgements),
    }


def _kind(reason: str) -> str:
    """The kind of a failure without its details: ``judge unavailable``, ``parse_error``."""
    return label(reason.partition(":")[0])


def _explained(reason: str) -> Attributes:
    return {"gen_ai.evaluation.explanation": label(reason, MAX_EXPLANATION)} if reason else {}


def _judge(judgements: tuple[Judgement, ...]) -> Attributes:
    if not judgements:
        return {}
    flags = list(dict.fromkeys(flag for judgement in judgements for flag in judgement.flags))
    return {
        "sidejudge.judge.model": judgements[0].model,
        "sidejudge.judge.prompt_version": judgements[0].prompt_version,
        **({"sidejudge.judge.flags": flags} if flags else {}),
    }


def _of(verdict: Verdict) -> dict[str, str | float | int]:
    return {
        "sidejudge.rubric": verdict.rubric,
        "sidejudge.rubric_version": verdict.rubric_version,
        "sidejudge.state": verdict.state.value,
        "sidejudge.coverage": verdict.coverage,
        "sidejudge.revision": verdict.revision,
        "sidejudge.selection": verdict.selection,
        "sidejudge.sampling_probability": verdict.sampling_probability,
    }
