"""Requests: one where it fits, several where it does not, and never a text cut short."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.judging.form import prompt
from sidejudge.scoring.judging.request import MAX_ANSWER_TOKENS, cache_key, can_judge, requests
from sidejudge.scoring.lexical.token_estimate import estimate
from sidejudge.scoring.questions.kinds import (
    EMPHASIS_HEADING,
    BorneOut,
    CitesTranscript,
    GradeAgent,
    GradeAnswer,
    GradeQuality,
    HowFluent,
    SameEntity,
    SameHighlight,
    SameIntent,
    SentenceSimilarity,
    Supported,
)
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.trace.span import ToolCall
from tests.scoring.judging.asking import CASE, HONEST, answers

ROOM = 100_000
REASONS = tuple(f"Agent verified the account of customer {n} at 00:0{n}" for n in range(8))
SCORECARD = (*map(CitesTranscript, REASONS), *map(BorneOut, REASONS))


def user(request):
    return request.messages[1]["content"]


def test_all_that_is_open_travels_in_one_request():
    (request,), refused = requests(CASE, SCORECARD, context_tokens=ROOM)
    assert request.questions == SCORECARD
    assert len(set(request.ids)) == len(SCORECARD)
    assert not refused


def test_each_question_is_asked_once():
    (request,), _ = requests(CASE, SCORECARD * 3, context_tokens=ROOM)
    assert request.questions == SCORECARD


def test_seed_002_is_a_request_of_its_own_and_its_template_is_exact():
    made, _ = requests(CASE, (*SCORECARD, GradeAnswer()), context_tokens=ROOM)
    assert [len(request.questions) for request in made] == [1, len(SCORECARD)]
    assert made[0].messages[0] == {"role": "system", "content": prompt("data").rstrip("\n")}
    fixed = re.split(r"\{\{\w+\}\}", prompt("seed_002_evaluator").rstrip("\n"))
    fence = r"\n<<<DATA (\w+) (\w{16})>>>\n(?:.*\n)*?<<<END \2>>>"
    filled = re.sub(fence, lambda found: f"{{{{{found[1]}}}}}", user(made[0]))
    assert re.split(r"\{\{\w+\}\}", filled) == fixed
    assert re.findall(r"\{\{(\w+)\}\}", filled) == ["task", "expected_outcome", "provided_context", "model_output"]


def test_what_is_not_known_is_said_to_be_not_given():
    (request,), _ = requests(Case(case_id="c", model_output="x"), (GradeAnswer(),), context_tokens=ROOM)
    assert "- task: (not given)\n- reference_answer: (not given)\n- provided_context: (not given)\n" in user(request)
    (request,), _ = requests(Case(case_id="c", model_output="x"), (CitesTranscript("y"),), context_tokens=ROOM)
    assert "transcript: (not given)" in user(request)


def test_only_what_the_questions_need_is_shown():
    (request,), _ = requests(CASE, (SameIntent("Refund", "Billing"),), context_tokens=ROOM)
    assert "INPUTS" not in user(request)
    assert "I verified your account" not in user(request)
    (request,), _ = requests(CASE, (GradeQuality(),), context_tokens=ROOM)
    assert "I verified your account" not in user(request)
    assert "Refunds take 3 to 5 days." in user(request)


def test_a_text_that_is_asked_about_twice_is_shown_once():
    (request,), _ = requests(CASE, SCORECARD, context_tokens=ROOM)
    for reason in REASONS:
        assert user(request).count(reason) == 1
    assert "reason: the same text as q1.reason" in user(request)


def test_the_cases_emphasis_is_appended_once_under_the_seeds_heading():
    requested = (GradeAgent("tool_routing", "Mind the tone."), GradeAgent("response_delivery", "Mind the tone."))
    (request,), _ = requests(CASE, requested, context_tokens=ROOM)
    assert user(request).count(EMPHASIS_HEADING) == user(request).count("Mind the tone.") == 1
    assert user(request).index(EMPHASIS_HEADING) > user(request).index("QUESTIONS")
    assert EMPHASIS_HEADING == "Test case-specific evaluation emphasis"


def test_turns_are_numbered_as_the_answer_is_to_name_them():
    (request,), _ = requests(CASE, (GradeAgent("tool_routing"),), context_tokens=ROOM)
    assert '{"turn": 0, "at": "00:01", "speaker": "agent", "text": "I verified your account"}' in user(request)
    assert '{"turn": 2, "speaker": "agent", "text": "Your refund of $49 is on its way."}' in user(request)
    assert '{"tool": "refund", "arguments": {"amount": 49}, "result": "ok"}' in user(request)


def test_a_tool_without_calls_is_told_from_tools_that_are_not_known():
    requested = (GradeAgent("tool_routing"),)
    (none,), _ = requests(replace(CASE, tools_used=()), requested, context_tokens=ROOM)
    (unknown,), _ = requests(replace(CASE, tools_used=None), requested, context_tokens=ROOM)
    assert "(none was called)" in user(none)
    assert "tools: (not given)" in user(unknown)


def test_a_question_that_no_judge_can_answer_is_left_to_others():
    requested = (SameEntity(("a",), ("b",)), SentenceSimilarity((("a", "b"),)), GradeAgent("no_such_metric"))
    assert not any(map(can_judge, requested))
    assert requests(CASE, requested, context_tokens=ROOM) == ((), {})
    assert requests(CASE, (), context_tokens=ROOM) == ((), {})
    with pytest.raises(ValueError, match="SameEntity is no question for a judge"):
        cache_key(CASE, requested[0])


def test_equal_questions_about_an_equal_case_make_an_equal_request():
    again = Case(**{name: getattr(CASE, name) for name in CASE.__dataclass_fields__})
    assert requests(CASE, tuple(HONEST), context_tokens=ROOM) == requests(again, tuple(HONEST), context_tokens=ROOM)


# -- Splitting


@settings(max_examples=60)
@given(context=st.integers(500, 20_000), count=st.integers(1, 16), length=st.integers(0, 3000))
def test_whatever_the_context_every_question_is_asked_once_or_refused_and_no_request_exceeds_it(context, count, length):
    about = replace(CASE, transcript=(Utterance("word " * length, "agent"),))
    requested = (*SCORECARD[:count], GradeAnswer(), HowFluent("text", "hi"))
    made, refused = requests(about, requested, context_tokens=context)
    reported = [question for request in made for question in request.questions]
    assert sorted(map(repr, (*reported, *refused))) == sorted(map(repr, requested))
    for request in made:
        assert request.prompt_tokens + request.answer_tokens <= context
        sent = "".join(message["content"] for message in request.messages)
        assert estimate(sent) <= request.prompt_tokens
        assert len(request.questions) == 1 or len(set(request.questions)) == len(request.questions)
    for nobody in refused.values():
        assert not nobody.failed
        assert f"more than the judge's context of {context}" in nobody.reason


def test_questions_that_show_the_same_stay_together_when_not_all_fit():
    about = replace(CASE, transcript="word " * 3000, context=("word " * 3000,))
    made, refused = requests(about, (CitesTranscript("a"), GradeQuality(), CitesTranscript("b")), context_tokens=10_000)
    assert not refused
    assert {request.questions for request in made} == {(GradeQuality(),), (CitesTranscript("a"), CitesTranscript("b"))}


def test_nothing_is_cut_to_fit():
    about = replace(CASE, transcript="word " * 50_000)
    made, refused = requests(about, (CitesTranscript("a"), SameIntent("x", "y")), context_tokens=32_000)
    assert [request.questions for request in made] == [(SameIntent("x", "y"),)]
    assert list(refused) == [CitesTranscript("a")]


def test_more_answers_than_a_model_writes_in_one_go_are_asked_for_in_several_requests():
    pairs = tuple(SameHighlight(f"one {n}", f"other {m}") for n in range(10) for m in range(20))
    made, refused = requests(CASE, pairs, context_tokens=1_000_000)
    assert not refused
    assert len(made) > 1
    assert all(request.answer_tokens <= MAX_ANSWER_TOKENS for request in made)
    assert sum(len(request.questions) for request in made) == len(pairs)


def test_the_schema_depends_on_the_metrics_and_not_on_how_many_questions_there_are():
    one, many = (requests(CASE, requested, context_tokens=ROOM)[0][0] for requested in (SCORECARD[7:9], SCORECARD))
    assert one.schema == many.schema


def test_a_schema_is_what_strict_providers_accept():
    def objects(schema):
        if isinstance(schema, dict):
            if schema.get("type") == "object":
                yield schema
            for inner in schema.values():
                yield from objects(inner)
        elif isinstance(schema, list):
            for inner in schema:
                yield from objects(inner)

    for request in requests(CASE, tuple(HONEST), context_tokens=ROOM)[0]:
        json.dumps(request.schema)
        assert re.fullmatch(r"[a-z_]+", request.schema_name)
        for each in objects(request.schema):
            assert each["additionalProperties"] is False
            assert each["required"] == list(each["properties"])


# -- The key of the cache


@pytest.mark.parametrize("question", HONEST, ids=lambda q: type(q).__name__)
def test_a_key_changes_with_what_the_question_shows_and_with_nothing_else(question):
    key = cache_key(CASE, question)
    assert re.fullmatch(r"[0-9a-f]{64}", key)
    unseen = replace(
        CASE, case_id="other", metadata={"x": "y"}, trace_id="t", latency_e2e_ms=5.0, tags=("a",), name="n"
    )
    assert cache_key(unseen, question) == key
    made, _ = requests(CASE, (question,), context_tokens=ROOM)
    changes = {
        "transcript": "another",
        "model_output": "another",
        "expected_outcome": "another",
        "config": {"another": 1},
        "input": "another",
        "context": ("another",),
        "tools_used": (ToolCall(name="another"),),
        "system_prompt": "another",
        "scenario": {"expected_answer_criteria": "another"},
    }
    for field, value in changes.items():
        other = replace(CASE, **{field: value})
        requested_alike = user(requests(other, (question,), context_tokens=ROOM)[0][0]) == user(made[0])
        assert (cache_key(other, question) == key) == requested_alike, field


def test_keys_of_different_questions_differ():
    keys = {cache_key(CASE, question) for question in (*HONEST, *SCORECARD)}
    assert len(keys) == len({*HONEST, *SCORECARD})
    assert cache_key(CASE, Supported("a", "b")) != cache_key(CASE, Supported("ab"))


def test_a_key_can_be_made_of_any_text():
    about = Case(case_id="c", model_output="\ud800\x00", transcript="\udfff")
    assert cache_key(about, CitesTranscript("\ud83d")) != cache_key(about, CitesTranscript("?"))


def test_turns_that_the_conversation_does_not_have_are_dropped_and_told_by_the_rubric():
    def answer(about, question):
        (request,), _ = requests(about, (question,), context_tokens=ROOM)
        grade = {"score": 1, "failure_code": "lost", "turns": [1, 99, -1], "reason": "Lost."}
        judged = request.read(json.dumps(answers(request, lambda _: grade))).answers[question]
        return Answer(value=judged.value, method=Method.JUDGE, reason=judged.reason)

    found = score(CASE, RUBRICS["agent"], answer=answer, created_at="2026-01-01T00:00:00Z")
    assert found.scores[0].result.details == {"failure_code": "lost", "turns": [1], "dropped_turns": [-1, 99]}
