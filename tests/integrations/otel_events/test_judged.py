"""Judged: ids of OpenTelemetry's become a link, others are told as text, and nothing that a trace says is unbounded."""

from __future__ import annotations

import pytest

from sidejudge.integrations.otel_events.evaluation import EvaluationSubject


def test_a_trace_with_its_root_span_can_be_linked():
    context = EvaluationSubject(case_id="c", trace_id="0" * 31 + "a", root_span_id="0" * 15 + "b").context
    assert (context.is_valid, context.trace_id, context.span_id, context.is_remote) == (True, 10, 11, True)


@pytest.mark.parametrize(
    ("trace_id", "span_id"),
    [
        (None, None), ("a" * 32, None), (None, "b" * 16), ("a" * 31, "b" * 16), ("A" * 32, "b" * 16),
        ("0" * 32, "b" * 16), ("a" * 32, "0" * 16), ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "b" * 16),
        ("+" + "a" * 31, "b" * 16), ("a" * 32, "１" * 16),
    ],
)  # fmt: skip
def test_whatever_else_has_no_place_in_a_trace(trace_id, span_id):
    assert not EvaluationSubject(case_id="c", trace_id=trace_id, root_span_id=span_id).context.is_valid


def test_attributes_name_what_is_known_and_are_bounded():
    assert EvaluationSubject(case_id="t" * 3, trace_id="t" * 3).attributes == {"sidejudge.judged.trace_id": "ttt"}
    reported = EvaluationSubject(case_id="k" * 999, session_id="s\ud800", service="shop", environment="").attributes
    assert len(reported["sidejudge.judged.case_id"]) <= 201
    assert reported["sidejudge.judged.session_id"] == "s?"
    assert "sidejudge.judged.environment" not in reported
