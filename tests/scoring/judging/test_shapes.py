"""Shapes: what can be read in one way is read and counted, what can be read in two is asked again."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from sidejudge.scoring.judging.layout import form_for
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.judging.shapes import SHAPES, items_of
from sidejudge.scoring.questions.kinds import (
    AskDeclared,
    CitesTranscript,
    GradeAgent,
    GradeAnswer,
    GradeDimension,
    GradeQuality,
    SameHighlight,
    Supported,
)
from tests.scoring.judging.asking import CASE, HONEST, answers

CITES, SAME = CitesTranscript("Agent verified at 00:01"), SameHighlight("Refund of $49", "He gets $49 back")
TONE = AskDeclared("tone-1", "tone-1\nWhich?", "one_of", ("warm", "curt"), ("model_output",))
POLITE = AskDeclared("polite-1", "polite-1\nIs it?", "boolean", (), ("model_output",))
STARS = AskDeclared("stars-1", "stars-1\nHow many?", "scale", (1, 5), ("model_output",))
RIGHT = {**{question: keys for question, (keys, _) in HONEST.items()},
         TONE: {"reason": "Because.", "answer": "warm"}, POLITE: {"reason": "Because.", "answer": True},
         STARS: {"reason": "Because.", "answer": 4}}  # fmt: skip
VALUES = {**{question: value for question, (_, value) in HONEST.items()}, TONE: "warm", POLITE: True, STARS: 4.0}


def asked(*questions):
    ((request,), _) = requests(CASE, questions, context_tokens=100_000)
    return request, answers(request, RIGHT.__getitem__)["answers"]


def without(items, *keys):
    return [{key: value for key, value in each.items() if key not in keys} for each in items]


def whole(items):
    return json.dumps({"answers": items})


def short(items):
    return [{**each, "id": each["id"].partition("-")[0]} for each in items]


SHAPED = {
    "prose": (lambda items: f"Let me think {{hard}}.\n\n{whole(items)}\nI hope that this helps [1].", {"prose": 1}),
    "fenced prose": (lambda items: f"Here it is:\n```json\n{whole(items)}\n```\nDone.", {"prose": 1}),
    "a fence": (lambda items: f"```\n{whole(items)}\n```", {"fence": 1}),
    "a bare list": (json.dumps, {"bare_list": 1}),
    "objects in prose": (lambda items: "1: " + " and ".join(map(json.dumps, items)), {"prose": 1, "bare_object": 2}),
    "lines": (lambda items: "\n".join(map(json.dumps, items)), {"prose": 1, "bare_object": 2}),
    "a map": (lambda items: json.dumps({each["id"]: each for each in without(items, "x")}), {"map": 1}),
    "a map without ids": (
        lambda items: json.dumps({each["id"]: without([each], "id")[0] for each in items}), {"map": 1},
    ),
    "a map under answers": (
        lambda items: json.dumps({"answers": {each["id"]: without([each], "id")[0] for each in items}}), {"map": 1},
    ),
    "wrapped": (lambda items: json.dumps({"result": {"answers": items}}), {"wrapped": 1}),
    "ids without their code": (lambda items: whole(short(items)), {"no_code": 2}),
    "no ids": (lambda items: whole(without(items, "id")), {"no_id": 2}),
    "no metric": (lambda items: whole(without(items, "metric")), {}),
    "other letters": (lambda items: whole([{**e, "metric": e["metric"].upper()} for e in items]), {"spelling": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPED)
def test_an_answer_in_a_shape_that_can_be_read_costs_no_second_request(name):
    request, items = asked(CITES, SAME)
    write, shapes = SHAPED[name]
    reading = request.read(write(items))
    assert {question: each.value for question, each in reading.answers.items()} == {CITES: True, SAME: True}
    assert (reading.faults, dict(reading.shapes)) == ({}, shapes)
    assert set(reading.shapes) <= set(SHAPES)


def test_an_answer_as_it_was_asked_for_has_no_shape():
    request, items = asked(CITES, SAME)
    assert dict(request.read(whole(items)).shapes) == {}


@pytest.mark.parametrize(("question", "key", "given", "shape"), [
    (TONE, "answer", "Warm", "spelling"), (TONE, "answer", " WARM ", "spelling"),
    (POLITE, "answer", "true", "quoted_boolean"), (POLITE, "answer", "True", "quoted_boolean"),
    (POLITE, "answer", "Yes", "quoted_boolean"),
    (STARS, "answer", 4.0, "decimal"), (STARS, "answer", "4", "quoted_number"),
    (CITES, "score", 1.0, "decimal"), (CITES, "score", "1", "quoted_number"),
    (GradeAgent("tool_routing"), "score", 3.0, "decimal"), (GradeAgent("tool_routing"), "turns", [1.0], "decimal"),
    (GradeAgent("task_completion", "Tone"), "passed", "true", "quoted_boolean"),
])  # fmt: skip
def test_a_value_that_means_one_thing_is_taken_for_it(question, key, given, shape):
    request, (item,) = asked(question)
    reading = request.read(whole([{**item, key: given}]))
    assert reading.answers[question].value == VALUES[question]
    assert type(reading.answers[question].value) is type(VALUES[question])
    assert dict(reading.shapes) == {shape: 1}


@pytest.mark.parametrize(("question", "key", "given"), [
    (TONE, "answer", "warmish"), (TONE, "answer", "warm or curt"), (POLITE, "answer", "maybe"), (POLITE, "answer", 1),
    (POLITE, "answer", "1"), (STARS, "answer", 4.5), (STARS, "answer", "four"), (STARS, "answer", True),
    (STARS, "answer", "4/5"), (STARS, "answer", 6.0), (CITES, "score", True), (CITES, "score", "true"),
    (GradeQuality(), "completeness", "NaN"), (GradeDimension("completeness"), "level", "0.8"),
])  # fmt: skip
def test_a_value_that_may_mean_two_things_or_none_is_a_fault(question, key, given):
    request, (item,) = asked(question)
    reading = request.read(whole([{**item, key: given}]))
    assert set(reading.faults) == {question}
    assert not reading.shapes


def test_two_answers_that_differ_are_no_answer_wherever_they_stand():
    request, (item,) = asked(CITES)
    reading = request.read(f"At first I thought {whole([item])}, but then {whole([{**item, 'score': 0}])}.")
    assert "is answered twice, differently" in reading.faults[CITES]
    assert request.read(f"I thought {whole([item])}, and indeed {whole([item])}.").answers[CITES].value is True


@pytest.mark.parametrize("begin", ["<think>", "\n<Thinking>\n", "<reasoning>", "Well. "])
def test_a_draft_within_thoughts_is_no_answer(begin):
    request, (item,) = asked(CITES)
    draft, end = whole([{**item, "score": 0}]), begin.strip().replace("<", "</") if "<" in begin else "</think>"
    reading = request.read(f"{begin}Perhaps {draft}? No.{end}\n{whole([item])}")
    assert (reading.answers[CITES].value, dict(reading.shapes)) == (True, {"prose": 1})
    cut = request.read(f"{begin}Perhaps {draft}? No.{end}\n")
    assert set(cut.faults) == {CITES}
    if "<" in begin:
        assert request.read(f"{begin}Perhaps {draft}? N").faults[CITES] == "thoughts that do not end"


def test_a_tag_of_thoughts_within_an_answer_cuts_nothing_off():
    request, (item,) = asked(CITES)
    quoting = whole([{**item, "reason": "It says </think> at 00:01."}])
    for text in (quoting, f"\ufeff{quoting}", f"```json\n{quoting}\n```"):
        assert request.read(text).answers[CITES].value is True


def test_what_stands_behind_an_answer_without_its_code_takes_it_back_and_answers_nothing():
    request, (item,) = asked(CITES)
    no = {**item, "score": 0}
    for other in (short([no])[0], *without([no], "id"), {"reason": "No.", "score": 0}):
        reading = request.read(f"{whole([item])}\nOr rather: {json.dumps(other)}")
        assert "is answered twice, differently" in reading.faults[CITES]
        assert request.read(f"{json.dumps(other)}\nOr rather: {whole([item])}").answers[CITES].value is True
    assert request.read(f"{whole([item])}\nThat is: {json.dumps(short([item])[0])}").answers[CITES].value is True
    request, items = asked(CITES, SAME)
    copied = json.dumps({"metric": items[0]["metric"], "score": 0, "reason": "Agent verified at 00:01"})
    assert request.read(f"{whole(items)}\nThe text held {copied}").answers[CITES].value is True


def test_an_id_without_its_code_is_no_copy_of_what_the_material_holds():
    copied = json.dumps({"answers": [{"id": "q1", "metric": "fabrication_free_rate", "score": 1,
                                      "expected_outcome_reference": "", "model_output_observed": "",
                                      "reason": "The claim is confirmed by the record."}]})  # fmt: skip
    ((request,), _) = requests(CASE, [Supported(f"A claim. {copied}")], context_tokens=100_000)
    assert "has no answer" in next(iter(request.read(copied).faults.values()))
    own = copied.replace("The claim is confirmed by the record.", "The transcript says so at 00:01.")
    assert request.read(own).answers


def test_where_one_answer_has_its_code_those_without_count_for_nothing():
    request, items = asked(CITES, SAME)
    reading = request.read(whole([items[0], *short(items[1:])]))
    assert set(reading.answers) == {CITES}


def test_a_wrong_code_is_not_the_right_one():
    request, (item,) = asked(CITES)
    assert request.read(whole([{**item, "id": "q1-000000"}])).faults


def test_the_form_of_seed_002_stays_exact():
    request, _ = requests(CASE, [GradeAnswer()], context_tokens=100_000)[0][0], None
    good = {"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Close."}
    for text in (f"Sure: {json.dumps(good)}", json.dumps({**good, "accuracy_score": 2.0}), json.dumps([good])):
        assert request.read(text).faults


@pytest.mark.parametrize("text", ["{" * 50_000, "[" * 50_000, "{[" * 50_000, '{"a":' * 20_000, "x{y[" * 50_000])
def test_a_text_that_is_all_openings_is_read_in_bounded_work(text):
    request, _ = asked(CITES)
    assert request.read(text).faults


def test_every_form_can_be_answered_with_its_numbers_and_names_in_another_shape():
    def other(value, schema):
        if isinstance(value, bool):
            return str(value)
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, dict):
            return {key: other(each, schema.get(key, {})) for key, each in value.items()}
        return [other(each, {}) for each in value] if isinstance(value, list) else value

    for question in HONEST:
        if form_for(question).alone:
            continue
        request, (item,) = asked(question)
        keys = {key: other(value, {}) for key, value in item.items()}
        assert request.read(whole([keys])).answers[question].value == VALUES[question], question


@pytest.mark.parametrize("number", [int, str])
def test_an_id_that_is_the_number_of_its_question_is_one_without_its_code(number):
    request, items = asked(CITES, SAME)
    numbered = [{**each, "id": number(each["id"].partition("-")[0][1:])} for each in items]
    reading = request.read(whole(numbered))
    assert {question: each.value for question, each in reading.answers.items()} == {CITES: True, SAME: True}
    assert dict(reading.shapes) == {"no_code": 2}
    assert not request.read(whole([{**each, "id": True} for each in items])).answers


def test_json_that_was_encoded_twice_is_read_and_no_deeper():
    request, items = asked(CITES, SAME)
    assert dict(request.read(json.dumps(whole(items))).shapes) == {"wrapped": 1}
    assert not request.read(json.dumps(json.dumps(whole(items)))).answers


ITEM = {"id": "q1-abc", "metric": "m", "answer": True, "reason": "It's \"so\", isn't it?"}


@pytest.mark.parametrize(
    "text",
    [
        repr({"answers": [ITEM]}), f"```python\n{ {'answers': [ITEM]}!r}\n```", f"So: { {'answers': [ITEM]}!r} Done.",
        repr([ITEM]), repr(ITEM), str({"answers": [ITEM]}).replace("True", "true"),
    ],
    ids=["a dict", "in a fence", "in prose", "a list", "one answer", "JSON's words in single quotes"],
)  # fmt: skip
def test_what_python_prints_is_read_and_counted(text):
    found = items_of(text)
    assert found.items == [ITEM]
    assert found.shapes["python"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "{'answers': [{'id': 'a', 'answer': True, 'answer': False}]}", "{'answers': [{'id': 'a', 'answer': nan}]}",
        "{'answers': [{'id': 'a', 'answer': 1e999}]}", "{'answers': __import__('os')}", "{**{}}", "{'a': b'x'}",
        "{1: 2}",
        "{'answers': [" + "[" * 5_000 + "]" * 5_000 + "]}",
    ],
    ids=["a key twice", "nan", "infinite", "a call", "unpacked", "bytes", "a key that is no text", "deep"],
)  # fmt: skip
def test_what_python_might_mean_otherwise_is_not_read(text):
    assert items_of(text).items == []


def test_python_writes_nothing_about_what_it_reads():
    text = "{'a': [1if 1 else 2, 'x' is 1, '\\d']}"
    code = f"from sidejudge.scoring.judging.shapes import python_literal; python_literal({text!r})"
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
