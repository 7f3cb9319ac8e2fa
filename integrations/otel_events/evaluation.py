"""Evaluation: each score of a verdict as an event ``gen_ai.evaluation.result``.

After OpenTelemetry's GenAI conventions of November 2026, in development:
https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md. The event stands at
the span that was judged, in its trace. The conventions have no attributes for the judge, the version and the inclusion
probability, without which scores cannot be compared; these are attributes of our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from sidejudge.scoring.lexical.label import label
from sidejudge.scoring.result.result import Failed, Judgement, Scored
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.score_name import composite_name, score_name
from sidejudge.scoring.verdict.verdict import Score, Verdict

from .judged import EvaluationSubject

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
    metrics = {c.metric.id: c.metric for c in (*rubric.criteria, *rubric.opt_in)}
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
    """What failed, without the details that make each failure another one: ``judge unavailable``, ``parse_error``."""
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
