"""Feedback, where each client writes it."""

from __future__ import annotations

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.raw import RawEvent, RawSpan
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.case.feedback import negative
from sidejudge.scoring.trace.trace import Trace


def stated(attributes=None, events=(), **scope):
    raw = RawSpan(
        trace_id="a" * 32, span_id="b" * 16, parent_id=None, name="step", start_ns=1, end_ns=2,
        attributes=attributes or {}, events=tuple(events), **scope,
    )  # fmt: skip
    span = normalise(raw)
    return negative(extract(Trace.of(raw.trace_id, [span], "root_ended")).metadata), span


HUMAN = {"evaluations.0.evaluation.name": "helpful", "evaluations.0.evaluation.annotator_kind": "HUMAN"}
OF_TRACE = {"trace." + key: value for key, value in {**HUMAN, "evaluations.0.evaluation.label": "bad"}.items()}


@pytest.mark.parametrize(
    ("attributes", "scope"),
    [
        ({"langfuse.trace.metadata.feedback": "negative", "langfuse.observation.type": "span"}, "langfuse-sdk"),
        ({"langfuse.observation.metadata.user_feedback": "0", "langfuse.observation.type": "span"}, "langfuse-sdk"),
        ({"metadata": '{"feedback": {"score": 0}}', "openinference.span.kind": "CHAIN"}, "openinference"),
        ({"traceloop.association.properties.feedback": "thumbs_down"}, "opentelemetry.instrumentation.openai"),
        ({"langsmith.metadata.feedback": "bad"}, "langsmith"),
        ({"ai.telemetry.metadata.feedback": False, "ai.operationId": "ai.generateText"}, "ai"),
        ({"user.feedback": -1}, "shop"),
        ({"feedback": "👎", "gen_ai.operation.name": "chat"}, "shop"),
        ({**HUMAN, "evaluations.0.evaluation.score": 0.0, "openinference.span.kind": "LLM"}, "openinference"),
        (OF_TRACE, "openinference"),
        ({"logfire.feedback.name": "thumbs", "thumbs": "down", "logfire.span_type": "annotation"}, "logfire"),
    ],
)  # fmt: skip
def test_a_complaint_is_understood(attributes, scope):
    assert stated(attributes, scope_name=scope)[0] is True


def test_an_evaluation_event_that_speaks_of_feedback_is_one():
    event = {"gen_ai.evaluation.name": "user_feedback", "gen_ai.evaluation.score.value": 0.0}
    complaint, span = stated(events=[RawEvent(name="gen_ai.evaluation.result", time_ns=1, attributes=event)])
    assert complaint is True
    assert span.provenance["feedback"] == "gen_ai.evaluation.score.value"
    judged = {**event, "gen_ai.evaluation.name": "relevance"}
    assert stated(events=[RawEvent(name="gen_ai.evaluation.result", time_ns=1, attributes=judged)])[0] is None


def test_what_a_model_scored_is_no_feedback():
    model = {**HUMAN, "evaluations.0.evaluation.annotator_kind": "LLM", "evaluations.0.evaluation.score": 0.0}
    assert stated(model)[0] is None


def test_metadata_goes_before_what_stands_elsewhere():
    both = {"metadata": '{"feedback": 1}', "user.feedback": 0, "openinference.span.kind": "CHAIN"}
    assert stated(both)[0] is False
