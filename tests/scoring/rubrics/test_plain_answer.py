"""A plain answer: a whole trace without a source is judged by what applies to it, and what cites is judged for it."""

from __future__ import annotations

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.kinds import GradeDimension, GradeQuality, VerifyClaims
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import SpanKind, ToolCall
from tests.spans import span, trace

SPAN = span("a", None, SpanKind.AGENT)
TRACE = trace(SPAN, completion="root_ended")


def judged(rubric, **given):
    asked = []

    def answer(_case, question):
        asked.append(question)
        value = {"level": "good", "reason": "So."}
        if isinstance(question, GradeQuality):
            value = {
                **dict.fromkeys(("answer_quality", "factual_correctness", "completeness"), 0.9),
                "reasoning": "So.",
            }
        if isinstance(question, VerifyClaims):
            value = {"claims": [{"claim": "c", "importance": "major", "accurate": True}]}
        return Answer(value=value, method=Method.JUDGE)

    case = Case(**{"case_id": "c", "input": "Capital of France?", "model_output": "It is Paris.", "tools_used": (),
                   "trace": TRACE, **given})  # fmt: skip
    found = score(case, RUBRICS[rubric], answer=answer, created_at="2026-01-01T00:00:00Z").to_json()
    return found, {each["metric"]: each["status"] for each in found["scores"]}, asked


@pytest.mark.parametrize("given", [{}, {"trace": None, "context": ()}])
def test_a_plain_answer_is_judged_by_what_applies_to_it(given):
    verdict, statuses, asked = judged("dimensions", **given)
    assert (verdict["state"], verdict["passed"], verdict["composite"]) == ("valid", True, pytest.approx(0.8))
    plain = ("factual_accuracy", "citation_accuracy", "source_quality")
    assert {statuses[name] for name in plain} == {"not_applicable"}
    assert statuses["completeness"] == "scored"
    assert asked == [GradeDimension("completeness"), GradeDimension("tool_efficiency")]
    verdict, statuses, _ = judged("quality", **given)
    assert (verdict["state"], statuses["factual_correctness"]) == ("valid", "not_applicable")
    assert verdict["composite"] == pytest.approx(0.9)


@pytest.mark.parametrize("text", ["See https://example.com.", "Paris [1].", "Paris (Smith et al., 2021)."])
def test_what_cites_without_a_source_is_judged_for_it(text):
    _, statuses, _ = judged("dimensions", model_output=text, expected_outcome="Paris")
    assert {statuses["citation_accuracy"], statuses["source_quality"], statuses["factual_accuracy"]} == {"scored"}


@pytest.mark.parametrize("given", [
    {"trace": trace(SPAN, completion="timeout"), "complete": False}, {"trace": None}, {"tools_used": None},
    {"trace": None, "context": (), "tools_used": (ToolCall(name="search"),)},
])  # fmt: skip
def test_where_sources_may_exist_unseen_nothing_is_left_out(given):
    _, statuses, _ = judged("quality", **given)
    assert statuses["factual_correctness"] == "unavailable"
