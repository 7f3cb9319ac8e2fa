"""AnswerReading a judge: everything that is exactly as asked, and nothing else."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidejudge.scoring.judging.answers import JudgedValue
from sidejudge.scoring.judging.request import prompt_version, requests
from sidejudge.scoring.metrics.judge_metrics import DEFINITIONS
from sidejudge.scoring.questions.kinds import (
    CitesTranscript,
    FollowsInstructions,
    GradeAgent,
    GradeAnswer,
    GradeDimension,
    GradeQuality,
    HowFluent,
    OutcomeDrift,
    PiecesUsed,
    SameIntent,
    SoundReasoning,
    SummaryClaims,
    VerifyClaims,
)
from sidejudge.scoring.rubrics.agent import parse_agent_grade
from tests.scoring.judging.asking import CASE, HONEST, answers

QUESTIONS = tuple(HONEST)


def request_for(*questions):
    made, refused = requests(CASE, questions, context_tokens=100_000)
    assert len(made) == 1
    assert not refused
    return made[0]


def cause(question, text):
    """Why it is refused, without the code of the request."""
    reading = request_for(question).read(text)
    assert not reading.answers
    (fault,) = reading.faults.values()
    assert len(fault) < 200
    return re.sub(r"^(q\d+)-[0-9a-f]{6}", r"\1", fault)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{type(q).__name__}")
def test_an_honest_answer_is_read_as_what_it_means_and_conforms_to_the_schema(question):
    request = request_for(question)
    given = answers(request)
    jsonschema.validate(given, request.schema)
    found = request.read(json.dumps(given)).answers
    assert found == {
        question: JudgedValue(
            value=HONEST[question][1], reason=found[question].reason, prompt_version=prompt_version(question)
        )
    }
    assert type(found[question].value) is type(HONEST[question][1])
    assert found[question].reason.strip()


def test_questions_that_travel_together_are_answered_in_any_order():
    made, _ = requests(CASE, QUESTIONS, context_tokens=100_000)
    assert 2 <= len(made) < len(QUESTIONS) / 2
    found = {}
    for request in made:
        given = answers(request)
        jsonschema.validate(given, request.schema)
        if "answers" in given:
            given["answers"].reverse()
        found |= request.read(f" \n{json.dumps(given)}\n").answers
    assert {question: judged.value for question, judged in found.items()} == {q: HONEST[q][1] for q in QUESTIONS}


def test_citations_are_kept_with_the_reason():
    question = CitesTranscript("Agent verified at 00:01")
    keys = {"score": 1, "expected_outcome_reference": ' "5" ', "model_output_observed": "x" * 500, "reason": "Because."}
    request = request_for(question)
    found = request.read(json.dumps(answers(request, lambda _: keys))).answers[question]
    assert found.reason.startswith('Because. (expected_outcome: "\\"5\\""; model_output: "xxx')
    assert len(found.reason) < 250


GOOD = '{"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Close."}'


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("", "empty"),
        ("Sure! Here you are: " + GOOD, "not JSON"),
        (GOOD + " I hope this helps.", "not JSON"),
        (GOOD + GOOD, "not JSON"),
        (f"```json\n{GOOD}\n```", "in a Markdown fence"),
        (f"```\n{GOOD}\n```", "in a Markdown fence"),
        (GOOD[:-2], "not JSON"),
        (GOOD.replace('"', "'"), "not JSON"),
        (GOOD.replace("}", ",}"), "not JSON"),
        ("// graded\n" + GOOD, "not JSON"),
        (f"[{GOOD}]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"2"', "not a JSON object"),
        (GOOD.replace('"accuracy_score": 2, ', ""), "answer: accuracy_score is missing"),
        (GOOD.replace(', "rationale": "Close."', ""), "answer: rationale is missing"),
        (GOOD.replace("}", ', "accuracy_score": 0}'), "not JSON"),
        (GOOD.replace("2", "3"), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", "-1"), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", "1.0"), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", "1e0"), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", "true"), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", '"2"'), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", "null"), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", "[2]"), "answer: accuracy_score is not 0, 1 or 2"),
        (GOOD.replace("2", "NaN"), "not JSON"),
        (GOOD.replace("2", "Infinity"), "not JSON"),
        (GOOD.replace("2", "1e999"), "not JSON"),
        (GOOD.replace("2", "9" * 5000), "not JSON"),
        (GOOD.replace("Close.", ""), "answer: rationale is empty"),
        (GOOD.replace("Close.", " \\n\\t "), "answer: rationale is empty"),
        (GOOD.replace('"Close."', "null"), "answer: rationale is empty"),
        (GOOD.replace("Close.", "word " * 81), "answer: rationale has more than 80 words"),
        (GOOD.replace("Close.", "字" * 2001), "answer: rationale has more than 80 words"),
        (GOOD.replace("Close.", "x" * 1_000_001), "longer than 1000000 characters"),
        ('{"answers": [' + GOOD + "]}", "answer: accuracy_score is missing"),
        ("[" * 100_000, "not JSON"),
        ('{"a":' * 100_000, "not JSON"),
    ],
)
def test_an_answer_to_seed_002_that_breaks_its_contract_is_refused_with_the_cause(text, stated):
    assert cause(GradeAnswer(), text) == stated


def test_a_key_beside_those_of_seed_002_is_ignored():
    found = request_for(GradeAnswer()).read(GOOD.replace("}", ', "confidence": 1}')).answers
    assert found[GradeAnswer()].value == json.loads(GOOD)


def test_a_rationale_of_eighty_words_is_within_the_contract():
    found = request_for(GradeAnswer()).read(GOOD.replace("Close.", "word " * 80)).answers
    assert len(found[GradeAnswer()].reason.split()) == 80


PIECES = next(question for question in QUESTIONS if isinstance(question, PiecesUsed))
CITES = CitesTranscript("Agent verified at 00:01")


def with_answer(question, **changed):
    def keys(requested):
        return {key: value for key, value in {**HONEST[requested][0], **changed}.items() if value is not ...}

    return json.dumps(answers(request_for(question), keys))


@pytest.mark.parametrize(
    ("question", "changed", "stated"),
    [
        (CITES, {"score": True}, "q1: score is not one of 0, 1"),
        (CITES, {"score": "one"}, "q1: score is not one of 0, 1"),
        (CITES, {"score": "0x1"}, "q1: score is not one of 0, 1"),
        (GradeDimension("completeness"), {"level": "very good"}, "q1: level is not one of excellent, good"),
        (CITES, {"score": 0.5}, "q1: score is not one of 0, 1"),
        (CITES, {"score": 2}, "q1: score is not one of 0, 1"),
        (CITES, {"score": ...}, "q1: score is missing"),
        (CITES, {"reason": ""}, "q1: reason is empty"),
        (CITES, {"expected_outcome_reference": ...}, "q1: expected_outcome_reference is missing"),
        (CITES, {"model_output_observed": None}, "q1: model_output_observed is not text"),
        (CITES, {"metric": "is_factual"}, "q1: metric is not has_evidence"),
        (CITES, {"metric": ["has_evidence"]}, "q1: metric is not has_evidence"),
        (CITES, {"id": "q2"}, "q1 has no answer"),
        (CITES, {"id": 1.5}, "q1 has no answer"),
        (SameIntent("Refund", "Billing"), {"score": 0.7}, "q1: score is not one of 0, 0.5, 1"),
        (SameIntent("Refund", "Billing"), {"score": True}, "q1: score is not one of 0, 0.5, 1"),
        (HowFluent("एजेंट ने", "hi"), {"score": 1.01}, "q1: score is not a number from 0 to 1"),
        (HowFluent("एजेंट ने", "hi"), {"score": False}, "q1: score is not a number from 0 to 1"),
        (GradeAgent("tool_routing"), {"score": 6}, "q1: score is not a whole number from 0 to 5"),
        (GradeAgent("tool_routing"), {"turns": [True]}, "q1: turns holds something that is not a whole number"),
        (GradeAgent("tool_routing"), {"turns": "1"}, "q1: turns is not a list of at most 200 turns"),
        (GradeAgent("tool_routing"), {"failure_code": ...}, "q1: failure_code is missing"),
        (GradeAgent("task_completion", "Tone"), {"passed": 1}, "q1: passed is neither true nor false"),
        (GradeQuality(), {"completeness": 1.2}, "q1: completeness is not a number from 0 to 1"),
        (GradeQuality(), {"reasoning": " "}, "q1: reasoning is empty"),
        (GradeDimension("completeness"), {"level": 1.0}, "q1: level is not one of excellent, good"),
        (VerifyClaims(), {"claims": {}}, "q1: claims is not a list"),
        (VerifyClaims(), {"claims": ["x"]}, "q1: claims holds something that is not an object"),
        (
            VerifyClaims(),
            {"claims": [{"claim": "x", "importance": "huge", "accurate": True}]},
            "q1: importance is not one of major, minor",
        ),
        (
            VerifyClaims(),
            {"claims": [{"claim": "x", "importance": "major", "accurate": 1}]},
            "q1: accurate is neither true nor false",
        ),
        (SummaryClaims(("Refund of $49 on Monday",)), {"claims": []}, "q1: claims is not a list of 1 to"),
        (SummaryClaims(("Refund of $49 on Monday",)), {"claims": [""]}, "q1: claims is empty"),
        (SummaryClaims(("Refund of $49 on Monday",)), {"claims": [1]}, "q1: claims is empty"),
        (OutcomeDrift((("Escalated.", "Closed."),)), {"outcomes": [{"outcome": "x"}]}, "q1: kept is missing"),
        (PIECES, {"used": [3]}, "q1: used is not a list of numbers of pieces"),
        (PIECES, {"used": [-1]}, "q1: used is not a list of numbers of pieces"),
        (PIECES, {"used": [True]}, "q1: used is not a list of numbers of pieces"),
        (PIECES, {"used": [1, 1]}, "q1: used names a piece twice"),
        (PIECES, {"used": {"0": True}}, "q1: used is not a list of numbers of pieces"),
        (SoundReasoning(), {"steps": [{"step": "x", "score": 0.7}]}, "q1: score is not one of 0, 0.5, 1"),
        (SoundReasoning(), {"steps": [{"step": "x", "score": True}]}, "q1: score is not one of 0, 0.5, 1"),
        (SoundReasoning(), {"expected": "perhaps"}, "q1: expected is neither true nor false"),
        (FollowsInstructions(("Be kind.",)), {"instructions": []}, "q1: instructions are not as many"),
        (OutcomeDrift((("Escalated.", "Closed."),)), {"added": "none"}, "q1: added is not a list of 0 to"),
    ],
)
def test_an_answer_that_breaks_the_contract_of_its_metric_is_refused_with_the_cause(question, changed, stated):
    assert cause(question, with_answer(question, **changed)).startswith(stated)


def test_each_question_is_read_by_itself_whatever_stands_beside_it():
    request = request_for(*QUESTIONS[:3])
    good = answers(request)["answers"]
    first, second, third = request.questions
    spoilt = {**good[1], "score": 7}
    for listed, faults in (
        (good[:-1], {third: "q3 has no answer"}),
        ([], {first: "q1 has no answer", second: "q2 has no answer", third: "q3 has no answer"}),
        ([good[0], spoilt, good[2]], {second: "q2: score is not one of"}),
        ([*good, good[0]], {}),
        ([*good, {**good[0], "reason": "Another one."}], {first: "q1 is answered twice, differently"}),
        ([*good, {**good[0], "id": request.ids[0].replace("q1", "q4")}], {}),
        ([*good, "and that is all"], {}),
        ([{**good[0], "confidence": 0.9}, *good[1:]], {}),
    ):
        reading = request.read(json.dumps({"answers": listed, "note": "done"}))
        assert set(reading.answers) == set(request.questions) - set(faults)
        assert set(reading.faults) == set(faults)
        for question, stated in faults.items():
            assert re.sub(r"-[0-9a-f]{6}", "", reading.faults[question]).startswith(stated)
        whole = request.read(json.dumps({"answers": good})).answers
        assert all(reading.answers[question] == whole[question] for question in reading.answers)


@pytest.mark.parametrize(
    ("text", "stated"),
    [('["a"]', "not a JSON object"), ('{"answers": {"q1": 1}}', "answers is not a list"), ("Well.", "not JSON")],
)
def test_a_text_without_a_list_of_answers_answers_nothing(text, stated):
    request = request_for(*QUESTIONS[:3])
    reading = request.read(text)
    assert (dict(reading.answers), set(reading.faults.values())) == ({}, {stated})


def test_a_fence_around_the_answers_is_tolerated_and_not_around_seed_002():
    text = json.dumps(answers(request_for(CITES)))
    assert request_for(CITES).read(f"```json\n{text}\n```").answers
    assert request_for(GradeAnswer()).read(f"```json\n{GOOD}\n```").faults


def test_of_a_list_that_breaks_off_the_complete_answers_are_kept():
    request = request_for(*QUESTIONS[:3])
    text = json.dumps(answers(request))
    middle = text.index(request.ids[2])
    reading = request.read(text[:middle])
    assert set(reading.answers) == set(request.questions[:2])
    assert list(reading.faults.values()) == [f"{request.ids[2]} has no answer"]


@pytest.mark.parametrize("between", ["\n\nWait, that was wrong.\n", "\n", "", ' "note": ', ","])
def test_a_list_after_the_list_that_answers_otherwise_leaves_no_answer(between):
    request = request_for(CITES)
    first, second = with_answer(CITES, score=1), with_answer(CITES, score=0)
    whole = f"{first}{between}{second}"
    key_twice = f"{first.removesuffix('}')}, {second.removeprefix('{')}"
    left_open = f"{first.removesuffix(']}')}{between.removesuffix(',')}{second}"
    for text in (whole, key_twice, left_open):
        assert request.read(text).faults == {CITES: f"{request.ids[0]} is answered twice, differently"}
    assert request.read(f"{first}{between}{first}").answers[CITES].value is True


def test_a_reason_that_is_too_long_is_cut_and_noted():
    found = request_for(CITES).read(with_answer(CITES, reason="w " * 81)).answers[CITES]
    assert (found.flags, len(found.reason.split("(")[0].split())) == (("reason cut to 80 words",), 80)


@pytest.mark.parametrize(
    ("code", "kept"), [("Wrong tool!", "wrong_tool"), (None, "unspecified"), (7, "unspecified"), ("गलत", "unspecified")]
)
def test_a_failure_code_in_another_form_costs_no_score(code, kept):
    question = GradeAgent("tool_routing")
    keys = {"score": 1, "failure_code": code, "turns": [0], "reason": "It called another one."}
    value = request_for(question).read(with_answer(question, **keys)).answers[question].value
    grade = parse_agent_grade(value, DEFINITIONS["tool_routing"])
    assert (grade.score, grade.failure_code) == (1, kept)
    assert "failure code" in grade.details(())["failure_code_note"]


def test_the_second_request_asks_the_rest_alone_with_the_complaint():
    request = request_for(*QUESTIONS[:3])
    given = answers(request)
    given["answers"][1]["score"] = 7
    reading = request.read(json.dumps(given))
    rest = request.again(reading.faults)
    before, after = request.messages[1]["content"], rest.messages[1]["content"]
    assert (rest.questions, rest.ids) == (request.questions[1:2], request.ids[1:2])
    assert after.startswith(before)
    assert reading.faults[request.questions[1]] in after[len(before) :]
    assert request.ids[0] not in after[len(before) :]
    assert rest.prompt_tokens > request.prompt_tokens
    repaired = rest.read(json.dumps(answers(request)))
    assert (set(repaired.answers), repaired.faults) == (set(rest.questions), {})


def test_seed_002_is_asked_again_with_identical_inputs():
    request = request_for(GradeAnswer())
    assert request.again(request.read("no").faults) is request


def test_a_cause_never_repeats_what_the_judge_wrote():
    secret = "4111-1111-1111-1111"
    for changed in ({"metric": secret}, {"id": secret}, {"score": secret}, {secret: 1}):
        reading = request_for(CITES).read(with_answer(CITES, **changed))
        assert not any(secret in fault for fault in reading.faults.values())


def test_halves_of_characters_do_not_get_out():
    found = request_for(CITES).read(with_answer(CITES, reason="a b").replace("a b", "a\ud800b")).answers
    found[CITES].reason.encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 7) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "metric", "score", "reason", "turns", "claims", "outcomes", "added", "level"])
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
READERS = [request_for(question) for question in QUESTIONS]


@settings(max_examples=80)
@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")) | JSON.map(json.dumps))
def test_every_text_is_read_as_answers_or_faults(text):
    for request in READERS:
        reading = request.read(text)
        assert {*reading.answers, *reading.faults} == set(request.questions)
        assert not {*reading.answers} & {*reading.faults}


@settings(max_examples=80)
@given(at=st.integers(0, 30), value=JSON)
def test_nor_does_a_good_answer_in_which_one_thing_is_another(at, value):
    for request in READERS:
        given_ = answers(request)
        one = given_["answers"][0] if "answers" in given_ else given_
        names = [*one, "other"]
        one[names[at % len(names)]] = value
        reading = request.read(json.dumps(given_))
        assert {*reading.answers, *reading.faults} == set(request.questions)
        assert all(judged.reason.strip() for judged in reading.answers.values())


WHOLE = [(request, json.dumps(answers(request))) for request in READERS]


@settings(max_examples=80)
@given(cut=st.floats(0, 0.999))
def test_an_answer_cut_short_is_refused(cut):
    for request, text in WHOLE:
        reading = request.read(text[: int(len(text) * cut)])
        whole = request.read(text).answers  # one that is complete may lack the end of the list
        assert reading.faults or reading.answers == whole
        assert reading.faults or text[int(len(text) * cut) :] in ("]}", "}")
