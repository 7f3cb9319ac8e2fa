"""Anchors: what a judge reads of a scale, what it may answer, and what cannot be declared of it."""

from __future__ import annotations

import json

import jsonschema
import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.declared.ask import ask
from sidejudge.scoring.declared.metric import Sources, read_metric
from sidejudge.scoring.declared.reading import DeclarationError
from sidejudge.scoring.judging.request import requests

CASE = Case(case_id="c", model_output="Go away.")
ASKED = "How polite is {{output}}?"


def criterion(**given):
    return read_metric({"id": "m", "ask": ASKED, **given}, Sources())


def question(**given):
    (asked,) = next(criterion(**given).metric.measure(CASE))
    return asked


def request(**given):
    ((made,), _) = requests(CASE, [question(**given)], context_tokens=32_000)
    return made


def read(made, **keys):
    (of,) = made.questions
    return made.read(json.dumps({"answers": [{"id": made.ids[0], "metric": of.metric, **keys}]}))


def told(made):
    return made.messages[0]["content"]


@pytest.mark.parametrize("given", [
    {"answer": "number", "bounds": [0, 1]}, {"answer": {"number": [0, 1]}},
    {"answer": {"number": [0, 1]}, "bounds": [0, 1]},
])  # fmt: skip
def test_the_bounds_of_a_number_are_read_by_the_judge_and_held_however_they_are_declared(given):
    made = request(**given)
    assert '"answer": a number from 0 to 1' in told(made)
    assert "  0: the least\n  1: the most" in told(made)
    for value, valid in ((0, True), (0.25, True), (1, True), (60, False), (-1, False)):
        answer = {"id": made.ids[0], "metric": made.questions[0].metric, "reason": "So.", "answer": value}
        if valid:
            jsonschema.validate({"answers": [answer]}, made.schema)
        else:
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({"answers": [answer]}, made.schema)
        reading = read(made, reason="So.", answer=value)
        assert bool(reading.answers) is valid, value
    assert criterion(**given).metric.bounds == (0.0, 1.0)


def test_anchors_reach_the_judge_with_both_ends():
    made = request(answer={"scale": [1, 5]}, good=4, acceptable=3, anchors={"1": "insulting", "5": "very friendly"})
    assert "\n  1: insulting\n  3: acceptable from here on\n  4: good from here on\n  5: very friendly" in told(made)


@pytest.mark.parametrize(("given", "lines"), [
    ({"weight": 0.5}, "  1: the worst\n  5: the best"),
    ({"good": 2, "acceptable": 3}, "  1: the best\n  2: good up to here\n  3: acceptable up to here\n  5: the worst"),
    ({"good": 5, "acceptable": 5}, "  1: the worst\n  5: the best; acceptable from here on; good from here on"),
    ({}, "  1: the least\n  5: the most"),
])  # fmt: skip
def test_without_anchors_the_ends_mean_what_the_bands_say(given, lines):
    assert lines in told(request(answer={"scale": [1, 5]}, **given))


def test_categories_have_meanings_too():
    anchors = {"warm": "as a friend would write", "curt": "as short as can be"}
    made = request(answer={"one_of": ["warm", "curt"]}, passes=["warm"], anchors=anchors)
    assert "\n  warm: as a friend would write\n  curt: as short as can be" in told(made)


@pytest.mark.parametrize(("given", "message"), [
    ({"answer": {"scale": [1, 5]}, "good": 40}, "good: 40 is no value of this metric; its values are from 1 to 5"),
    ({"answer": {"scale": [1, 5]}, "good": 4, "acceptable": 0}, "acceptable: 0 is no value"),
    ({"answer": {"scale": [1, 5]}, "blocker": {"below": 9}}, "below: 9 is no value"),
    ({"answer": "number", "bounds": [0, 1], "good": 1.5}, "good: 1.5 is no value"),
    ({"answer": {"findings": 5}, "good": -1}, "good: -1 is no value"),
    ({"answer": "number", "good": -2}, "good: -2 is no value of this metric; its values are of at least 0"),
    ({"answer": {"scale": [1, 5]}, "bounds": [0, 1]}, "bounds: are 1 to 5 by its answer"),
    ({"answer": {"number": [0, 10]}, "bounds": [0, 1]}, "bounds: are 0 to 10 by its answer"),
    ({"answer": {"scale": [1, 5]}, "anchors": {"7": "beyond"}}, "anchors: '7' is no value from 1 to 5"),
    ({"answer": {"scale": [1, 5]}, "anchors": {"nan": "nothing"}}, "anchors: 'nan' is no value"),
    ({"answer": {"scale": [1, 5]}, "anchors": ["a"]}, "anchors: must be a map"),
    ({"answer": "boolean", "anchors": {"1": "yes"}}, "anchors: belong to a scale"),
    ({"answer": {"one_of": ["a", "b"]}, "passes": ["a"], "anchors": {"c": "x"}}, "anchors: 'c' is no category"),
    ({"answer": {"one_of": ["a", "cannot tell"]}, "passes": ["a"]}, "must be a list of different names"),
])  # fmt: skip
def test_what_can_never_hold_is_refused_with_its_place(given, message):
    with pytest.raises(DeclarationError) as refused:
        criterion(**given)
    assert any(message in f"{'.'.join(map(str, each.path))}: {each.message}" or message in
               f"{each.path[-1]}: {each.message}" for each in refused.value.faults), refused.value.faults  # fmt: skip


def test_a_condition_that_cannot_be_read_is_the_only_mistake_that_is_named():
    with pytest.raises(DeclarationError) as refused:
        read_metric({"id": "m", "cel": "size(", "bounds": [0, 10], "good": 5, "blocker": {"above": 9}}, Sources())
    assert [each.path for each in refused.value.faults] == [("cel",)]


def test_a_check_and_a_condition_with_bounds_are_held_to_theirs():
    for given in (
        {"check": {"similar": {"to": "x"}}, "good": 40},
        {"cel": "double(size(output))", "bounds": [0, 9], "good": 10},
    ):
        with pytest.raises(DeclarationError):
            read_metric({"id": "m", **given}, Sources())
    free = read_metric({"id": "m", "cel": "double(size(output))", "good": 10, "acceptable": 40}, Sources())
    assert free.metric.bands is not None


@pytest.mark.parametrize("given", [
    {"answer": "boolean"}, {"answer": {"scale": [1, 5]}}, {"answer": "number", "bounds": [0, 1]},
    {"answer": {"one_of": ["a", "b"]}, "passes": ["a"]},
])  # fmt: skip
def test_a_judge_may_say_that_it_cannot_tell_and_gives_its_reason_first(given):
    made = request(**given)
    assert 'or "cannot tell" where the data does not decide it' in told(made)
    answer = {"reason": "Nothing says so.", "answer": "cannot tell"}
    jsonschema.validate({"answers": [{"id": made.ids[0], "metric": made.questions[0].metric, **answer}]}, made.schema)
    assert [each.value for each in read(made, **answer).answers.values()] == ["cannot tell"]
    keys = list(made.schema["properties"]["answers"]["items"]["properties"])
    assert keys.index("reason") < keys.index("answer")
    assert told(made).index('"reason": what in the data') < told(made).index('"answer": ')


def test_other_anchors_are_another_question():
    plain, other = (ask(ASKED, answer={"scale": [1, 5]}, anchors=each) for each in (None, {5: "very friendly"}))
    assert plain.metric != other.metric
    assert "  5: very friendly" in other.instructions
