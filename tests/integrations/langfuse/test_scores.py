"""Scores of a verdict: names, types, ids, and what stands beside the number."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.langfuse.scores import MAX_COMMENT, declared, environment, score_id, scores_of, timestamp
from scoring.case.case import Case
from scoring.result.result import Judgement, Method, Scored, Unavailable
from scoring.rubrics import RUBRICS
from scoring.verdict.score_name import score_name
from scoring.verdict.verdict import State, reach_verdict

TRACE = "36524d221566b94755e27265a6220988"
JUDGED = Judgement(
    model="openai/m-2026-01-01", prompt_version="ab" * 32, cost_usd=0.1, call="c", flags=("disagreement",)
)


def verdict(rubric, value=1.0, **more):
    results = {
        c.metric.id: Scored(value=value, method=Method.JUDGE, reason="why " + "w" * 3000, judgements=(JUDGED,))
        for c in rubric.criteria
    } | more  # fmt: skip
    case = Case(case_id=TRACE, trace_id=TRACE, model_output="x", environment="Production", sampling_probability=0.25)
    return reach_verdict(rubric, case, results, created_at="2026-11-20T00:00:00.000Z", revision=3)


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=RUBRICS.keys())
def test_every_score_of_every_rubric_is_declared_and_fits_what_langfuse_takes(rubric):
    known = {each.name: each for each in declared(rubric)}
    for body in scores_of(verdict(rubric), rubric):
        kind = known[body["name"]].data_type
        assert body["dataType"] == kind
        assert isinstance(body["value"], str if kind == "CATEGORICAL" else float)
        assert kind != "BOOLEAN" or body["value"] in (0.0, 1.0)
        assert body["environment"] == "production"
        assert len(body["comment"] or "") <= MAX_COMMENT + 1


def test_a_score_tells_method_version_judge_prompt_probability_coverage_flags_and_revision():
    rubric = RUBRICS["qa"]
    (body,) = [b for b in scores_of(verdict(rubric), rubric) if b["name"] == "qa_question_score_accuracy"]
    reported = verdict(rubric)
    (score,) = [s for s in reported.scores if s.metric == "question_score_accuracy"]
    assert body["metadata"] == {
        "method": "judge", "rating": score.rating, "weight": score.weight, "state": reported.state.value,
        "coverage": 1.0, "revision": 3, "rubric_version": rubric.version, "sampling_probability": 0.25,
        "selection": "random", "judge": "openai/m-2026-01-01", "prompt_hash": "ab" * 32, "flags": "disagreement",
    }  # fmt: skip


def test_every_score_has_the_same_keys_of_metadata_for_langfuse_merges_them():
    rubric = RUBRICS["qa"]
    plain = verdict(rubric, **{c.metric.id: Scored(value=1.0) for c in rubric.criteria})
    keys = {tuple(b["metadata"]) for v in (verdict(rubric), plain) for b in scores_of(v, rubric)}
    assert len(keys) == 1


def test_what_could_not_be_told_has_no_score_and_the_state_says_so():
    rubric = RUBRICS["qa"]
    untold = verdict(rubric, **{c.metric.id: Unavailable("no reference") for c in rubric.criteria})
    (body,) = scores_of(untold, rubric)
    assert (body["name"], body["value"]) == ("qa_state", State.INCOMPLETE.value)
    assert "no reference" in body["comment"]


def test_a_share_of_a_truth_value_is_a_number():
    rubric = next(r for r in RUBRICS.values() if any(c.metric.unit == "pass or fail" for c in r.criteria))
    metric = next(c.metric for c in rubric.criteria if c.metric.unit == "pass or fail")
    bodies = {b["name"]: b for b in scores_of(verdict(rubric, **{metric.id: Scored(value=0.5)}), rubric)}
    assert bodies[score_name(rubric.id, metric)]["dataType"] == "NUMERIC"


def test_a_conversation_that_was_judged_as_one_is_scored_as_a_session():
    rubric = RUBRICS["qa"]
    bodies = list(scores_of(replace(verdict(rubric), trace_id=None, session_id="s-1"), rubric))
    assert bodies
    assert all(body["sessionId"] == "s-1" and "traceId" not in body for body in bodies)


def test_without_anything_to_put_it_to_there_is_no_score():
    rubric = RUBRICS["qa"]
    assert list(scores_of(replace(verdict(rubric), trace_id=None, session_id=None), rubric)) == []


texts = st.text(min_size=1, max_size=40)


@given(a=st.tuples(texts, texts), b=st.tuples(texts, texts))
def test_no_two_scores_share_an_id(a, b):
    assert (score_id(*a) == score_id(*b)) is (a == b) or "\x00" in "".join(a + b)


@given(name=st.text(max_size=60))
def test_an_environment_is_one_that_langfuse_keeps_as_it_is(name):
    stated = environment(name)
    assert stated is None or (stated == stated.lower() and len(stated) <= 40 and not stated.startswith("langfuse"))


@given(at_ns=st.integers(0, 4_000_000_000 * 10**9))
def test_times_are_written_to_the_millisecond_in_utc(at_ns):
    read = datetime.fromisoformat(timestamp(at_ns))
    assert abs(read.timestamp() - at_ns // 10**6 / 1000) < 1e-4
