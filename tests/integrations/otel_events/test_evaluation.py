"""Evaluation: every score of every rubric as an event of the conventions, and nothing that was not measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sidejudge.integrations.otel_events.evaluation import MAX_EXPLANATION, EvaluationSubject, evaluations, report
from sidejudge.integrations.otel_events.providers import telemetry
from sidejudge.integrations.otel_events.request import LOGS
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Failed, Judgement, Method, NotApplicable, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.score import composite_name, score_name
from sidejudge.scoring.verdict.verdict import reach_verdict

TRACE = "36524d221566b94755e27265a6220988"
JUDGED = Judgement(model="openai/m", prompt_version="ab" * 32, cost_usd=0.1, call="c", flags=("disagreement",))


def verdict(rubric, result=None, **more):
    result = result or Scored(value=1.0, method=Method.JUDGE, reason="why " + "w" * 3000, judgements=(JUDGED,))
    results = {c.metric.id: result for c in rubric.criteria} | more
    case = Case(case_id=TRACE, trace_id=TRACE, model_output="x", environment="prod", sampling_probability=0.25)
    return reach_verdict(rubric, case, results, created_at="2026-11-20T00:00:00.000Z", revision=3)


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS.keys())
def test_every_score_has_its_name_its_value_and_a_bounded_explanation(rubric):
    reported = {stated["gen_ai.evaluation.name"]: stated for stated in evaluations(verdict(rubric), rubric)}
    wanted = {score_name(rubric.id, c.metric): 1.0 for c in rubric.criteria}
    assert {
        name: stated["gen_ai.evaluation.score.value"] for name, stated in reported.items() if name in wanted
    } == wanted
    assert set(reported) <= {*wanted, composite_name(rubric.id)}
    for stated in reported.values():
        assert len(stated.get("gen_ai.evaluation.explanation", "")) <= MAX_EXPLANATION + 1
    assert {reported[name]["sidejudge.judge.model"] for name in wanted} == {"openai/m"}
    assert {tuple(reported[name]["sidejudge.judge.flags"]) for name in wanted} == {("disagreement",)}


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS.keys())
@pytest.mark.parametrize("result", [Unavailable("no reference"), NotApplicable("nothing to measure")])
def test_what_was_not_evaluated_is_no_event_of_its_metric(rubric, result):
    names = {stated["gen_ai.evaluation.name"] for stated in evaluations(verdict(rubric, result), rubric)}
    assert names <= {composite_name(rubric.id)}


def test_what_failed_is_told_as_a_failure_without_a_score():
    rubric = RUBRICS["qa"]
    reported = list(evaluations(verdict(rubric, Failed("judge unavailable: 503 from host 17")), rubric))
    assert reported
    for stated in reported:
        assert stated["error.type"] == "judge unavailable", "of low cardinality"
        assert not any(key.startswith("gen_ai.evaluation.score") for key in stated)


def test_the_composite_says_whether_it_passed():
    rubric = RUBRICS["qa"]
    (whole,) = [s for s in evaluations(verdict(rubric), rubric) if s["gen_ai.evaluation.name"] == "qa_score"]
    reported = verdict(rubric)
    assert whole["gen_ai.evaluation.score.label"] == ("pass" if reported.passed else "fail")


def test_an_event_stands_in_the_trace_that_was_judged_and_tells_what_makes_scores_comparable():
    made = telemetry(version="1", environment=None, clock_ns=lambda: 7)
    rubric = RUBRICS["qa"]
    judged = EvaluationSubject(case_id=TRACE, trace_id=TRACE, root_span_id="b" * 16)
    count = report(made.logger, judged, verdict(rubric), rubric, at_ns=5, own_trace_id="c" * 32)
    records = [item.body.log_record for item in made.events.waiting(99)]
    assert len(records) == count > 1
    for record in records:
        assert (record.trace_id, record.span_id) == (int(TRACE, 16), int("b" * 16, 16))
        assert (record.timestamp, record.event_name) == (5, "gen_ai.evaluation.result")
        stated = record.attributes
        assert stated["sidejudge.rubric_version"] == rubric.version
        assert (stated["sidejudge.sampling_probability"], stated["sidejudge.revision"]) == (0.25, 3)
        assert stated["sidejudge.evaluation.trace_id"] == "c" * 32


def test_a_verdict_on_a_session_stands_in_no_trace_and_can_still_be_sent():
    made = telemetry(version="1", environment=None, clock_ns=lambda: 7)
    rubric = RUBRICS["qa"]
    session = replace(verdict(rubric), trace_id=None, case_id="d" * 32, session_id="s-1")
    report(
        made.logger, EvaluationSubject(case_id="d" * 32, session_id="s-1"), session, rubric, at_ns=5, own_trace_id=None
    )
    items = [item.body for item in made.events.waiting(99)]
    assert {item.log_record.trace_id for item in items} == {0}
    assert {item.log_record.attributes["sidejudge.judged.session_id"] for item in items} == {"s-1"}
    assert LOGS.body(items)
