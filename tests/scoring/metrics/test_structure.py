"""The structure check of all call tasks."""

from __future__ import annotations

import copy
import json

import pytest

from sidejudge.scoring.case.case import Case, parse_output
from sidejudge.scoring.metrics.structure import check, match_by_id, over, response_structure_compliance, strict_key
from sidejudge.scoring.result.result import Scored

QA = {"questions": [{"question_id": "Q1", "score": 5, "max_score": 5, "type": "PASS_FAIL", "reason": "at 01:23"}]}
TEXT = {
    "sentiment": [{"sentence_id": 1, "text": "…", "label": "negative"}],
    "summary": {"call_purpose": "refund", "highlights": ["a"], "call_extracted_info": {"customer_name": "Priya"}},
    "emotion": {"anger": 60, "joy": 10},
}


def altered(value, path, new):
    value = copy.deepcopy(value)
    *way, last = path
    inner = value
    for step in way:
        inner = inner[step]
    if new is ...:
        del inner[last]
    else:
        inner[last] = new
    return value


def differences(output, expected):
    return check(parse_output(output), expected).differences


@pytest.mark.parametrize("expected", [QA, TEXT], ids=["qa", "text"])
def test_the_same_structure_passes(expected):
    assert differences(copy.deepcopy(expected), expected) == ()


@pytest.mark.parametrize(
    ("path", "new", "reported"),
    [
        (("questions", 0, "max_score"), ..., "$.questions[0].max_score: missing"),
        (("questions", 0, "confidence"), 1, "$.questions[0].confidence: not expected"),
        (("questions", 0, "score"), "5", "$.questions[0].score: string, expected number"),
        (("questions", 0, "score"), True, "$.questions[0].score: boolean, expected number"),
        (("questions", 0, "reason"), None, "$.questions[0].reason: null, expected string"),
        (("questions",), {}, "$.questions: object, expected array"),
        (("extra",), [], "$.extra: not expected"),
    ],
)
def test_a_key_missing_renamed_or_extra_and_another_kind_are_told_with_their_path(path, new, reported):
    assert differences(altered(QA, path, new), QA) == (reported,)


def test_a_renamed_key_is_missing_and_extra():
    output = {"questions": [{**{k: v for k, v in QA["questions"][0].items() if k != "reason"}, "reasoning": "x"}]}
    assert len(differences(output, QA)) == 2


def test_a_whole_number_and_a_fraction_are_both_numbers():
    assert differences(altered(QA, ("questions", 0, "score"), 2.5), QA) == ()


@pytest.mark.parametrize("count", [0, 1, 7])
def test_the_number_of_items_is_not_structure(count):
    assert differences({"questions": QA["questions"] * count}, QA) == ()


def test_free_maps_may_have_any_keys():
    output = altered(altered(TEXT, ("emotion",), {"rage": 3}), ("summary", "call_extracted_info"), {"x": [1, {}]})
    assert differences(output, TEXT) == ()


@pytest.mark.parametrize(
    ("path", "new"),
    [
        (("emotion",), []),
        (("emotion", "anger"), "60"),
        (("emotion", "anger"), -1),
        (("emotion", "anger"), True),
        (("summary", "call_extracted_info"), None),
        (("sentiment", 0, "text"), None),
        (("sentiment", 0, "sentence_id"), None),
    ],
)
def test_free_maps_must_be_objects_and_percentages_numbers_of_at_least_zero(path, new):
    assert differences(altered(TEXT, path, new), TEXT)


def test_only_a_sentiment_label_may_be_null():
    assert differences(altered(TEXT, ("sentiment", 0, "label"), None), TEXT) == ()


def test_null_is_accepted_where_null_is_expected():
    expected = {"a": None}
    assert differences({"a": None}, expected) == ()
    assert differences({"a": "x"}, expected) == ("$.a: string, expected null",)


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "  ```json\n{}\n```  "])
def test_one_code_fence_around_the_output_is_tolerated_and_told(fence):
    output = fence.replace("{}", json.dumps(QA))
    outcome = check(parse_output(output), QA)
    assert outcome.matches
    assert outcome.fenced
    result = response_structure_compliance.start(Case(case_id="c", model_output=output, expected_outcome=QA))
    assert result.details["fenced"] is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Here it is: {}",
        "{} {}",
        "```json\n{}\n``` done",
        '{"a": NaN}',
        '{"questions": [], "questions": []}',
        "[" * 100_000,
    ],
)
def test_any_other_text_has_no_structure(text):
    assert differences(text, QA)


def test_an_empty_expected_list_says_nothing_of_its_items():
    assert differences({"a": [1, "x"]}, {"a": []}) == ()


def test_without_expected_outcome_the_check_is_unavailable():
    assert response_structure_compliance.start(Case(case_id="c", model_output=QA)).status == "unavailable"


def test_an_expected_outcome_that_is_text_is_read_as_json():
    case = Case(case_id="c", model_output=QA, expected_outcome=json.dumps(QA))
    assert response_structure_compliance.start(case).value == 1.0


def test_items_match_by_id_never_by_position_and_the_rest_is_told():
    found = [{"id": "b"}, {"id": "a", "n": 1}, {"id": "a", "n": 2}, {"id": "z"}, "junk"]
    matched = match_by_id(found, "id", ["a", "b"])
    assert matched.by_id[strict_key("a")] == {"id": "a", "n": 1}
    assert matched.unknown == ("z",)
    assert matched.repeated == ("a",)


def test_ids_of_different_kinds_differ():
    assert len({strict_key(value) for value in (1, "1", True, None)}) == 4


def test_items_of_many_different_shapes_match_in_any_order_and_a_wrong_one_is_still_told():
    expected = {"questions": [{f"k{n}": 1} for n in range(3000)]}
    output = {"questions": expected["questions"][::-1]}
    assert differences(output, expected) == ()
    output["questions"][7] = {"k1": 1, "x": 2}
    assert differences(output, expected) == ("$.questions[7].x: not expected",)


def test_an_item_need_not_equal_an_expected_one_to_fit_it():
    expected = {"a": [{"n": 1, "list": [1, "x"]}, {"n": 1, "list": []}]}
    assert differences({"a": [{"n": 1, "list": ["x"]}, {"n": 2, "list": [{}]}]}, expected) == ()
    assert differences({"a": [{"n": 1, "list": 5}]}, expected) == ("$.a[0].list: number, expected array",)


def test_a_comparison_that_would_take_for_ever_is_given_up_and_says_so():
    def tower(levels, tip):
        """Each level has many items with the same keys, none equal to another side's."""
        if not levels:
            return tip
        below = tower(levels - 1, tip)
        return [{"x": below, "y": [kind] * n} for n, kind in enumerate(["a", 1, True, None, {}, [], {"k": 1}])]

    case = Case(case_id="c", model_output={"a": tower(9, {"bad": 1})}, expected_outcome={"a": tower(9, {"good": 1})})
    result = response_structure_compliance.start(case)
    assert result.status == "unavailable"
    assert "steps" in result.reason


@pytest.mark.parametrize("key", ["detected_keywords", "detected_topics", "valid_entity_set"])
@pytest.mark.parametrize(("junk", "named"), [(1, "number"), (None, "null"), ({"x": 1}, "object"), (True, "boolean")])
def test_entities_are_strings_even_where_the_reference_lists_none(key, junk, named):
    assert differences({key: ["ok", junk]}, {key: []}) == (f"$.{key}[1]: {named}, expected string",)


@pytest.mark.parametrize(
    "fenced",
    [
        "````json\n{}\n````", "~~~json\n{}\n~~~", "```application/json\n{}\n```", "\ufeff{}", "\ufeff```json\n{}\n```",
        "```json \r\n{}\r\n```", "```{}```", "~~~~\n{}\n~~~~~",
    ],
)  # fmt: skip
def test_any_markdown_fence_and_a_byte_order_mark_are_taken_off(fenced):
    assert parse_output(fenced.replace("{}", json.dumps(QA))).value == QA


@pytest.mark.parametrize("text", ["````json\n{}\n```", "```json\n{}\n~~~", "```", "``````", "```json\n{}", "1e999"])
def test_a_fence_that_is_not_closed_and_a_number_without_bounds_are_not_json(text):
    assert parse_output(text).error


@pytest.mark.parametrize("text", ["1e999", "{broken", '{"questions": [{"score": 1e999}]}'])
def test_a_reference_that_does_not_parse_is_not_held_against_the_output(text):
    result = response_structure_compliance.start(Case(case_id="c", model_output=QA, expected_outcome=text))
    assert result.status == "unavailable"
    assert "expected_outcome is not JSON" in result.reason


def test_differences_stay_short_whatever_the_keys():
    long = "k" * 1_000_000
    deep: object = 1
    for _ in range(50):
        deep = {long: deep}
    for expected in ({long: 1}, {"a": {long: {long: 1}}}, deep):
        assert all(len(one) < 500 for one in differences({"a": {long: {long: "x"}}}, expected))


def test_a_value_is_read_once_for_all_metrics_over_it():
    read = []

    def named(case):
        read.append(case.case_id)
        return 1.0

    case = Case(case_id="one", model_output=None)
    assert [over(named)(lambda value: Scored(value=value))(case) for _ in range(3)] == [Scored(value=1.0)] * 3
    assert (case.once(named), read) == (1.0, ["one"])
