"""The structure check of all call tasks."""

from __future__ import annotations

import copy
import json

import pytest

from scoring.case import Case, parse_output
from scoring.structure import check, match_by_id, response_structure_compliance, strict_key

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
    ("path", "new", "told"),
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
def test_a_key_missing_renamed_or_extra_and_another_kind_are_told_with_their_path(path, new, told):
    assert differences(altered(QA, path, new), QA) == (told,)


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
    result = response_structure_compliance.measure(Case(case_id="c", model_output=output, expected_outcome=QA))
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
    assert response_structure_compliance.measure(Case(case_id="c", model_output=QA)).status == "unavailable"


def test_an_expected_outcome_that_is_text_is_read_as_json():
    case = Case(case_id="c", model_output=QA, expected_outcome=json.dumps(QA))
    assert response_structure_compliance.measure(case).value == 1.0


def test_items_match_by_id_never_by_position_and_the_rest_is_told():
    found = [{"id": "b"}, {"id": "a", "n": 1}, {"id": "a", "n": 2}, {"id": "z"}, "junk"]
    matched = match_by_id(found, "id", ["a", "b"])
    assert matched.by_id[strict_key("a")] == {"id": "a", "n": 1}
    assert matched.unknown == ("z",)
    assert matched.repeated == ("a",)


def test_ids_of_different_kinds_differ():
    assert len({strict_key(value) for value in (1, "1", True, None)}) == 4
