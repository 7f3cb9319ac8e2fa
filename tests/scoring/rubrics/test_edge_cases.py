"""Rules of all rubrics (rubrics §1): what is missing, empty or no number, blockers, worked examples and pass marks."""

from __future__ import annotations

import math

import pytest

from sidejudge.scoring.case.case import Case, parse_output
from sidejudge.scoring.evaluators.score import nobody, score
from sidejudge.scoring.questions.kinds import HowFluent
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import (
    Bands,
    Failed,
    Judgement,
    Method,
    Scored,
    Unavailable,
    at_most,
)
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.verdict import State, reach_verdict

AT = "2026-01-01T00:00:00Z"
CALL = "Agent: hello. Customer: I want a refund."
REASON = "Agent said 'hello'"


def case(found, expected, **more):
    return Case(case_id="c", model_output=found, expected_outcome=expected, **{"transcript": CALL, **more})


def entities(keywords=()):
    return {"detected_keywords": list(keywords), "detected_topics": [], "valid_entity_set": ["refund"]}


def scorecard(score):
    return {"questions": [{"question_id": "Q0", "score": score, "max_score": 5, "type": "SCORE", "reason": REASON}]}


def reported():
    return {
        "sentiment": [{"sentence_id": 1, "text": "I want a refund", "label": "neutral"}],
        "summary": {"call_purpose": "Refund", "highlights": [], "call_extracted_info": {}},
        "emotion": {"joy": 1},
    }


def translated(text):
    one = {"source_id": 1, "source_text": "Refund of $49", "translated_text": text}
    return {"full_translation": text, "sentence_translations": [one], "domain_terms_handled": [],
            "named_entities_handled": []}  # fmt: skip


def verdict(rubric, about, **more):
    return score(about, RUBRICS[rubric], created_at=AT, **more)


def results(rubric, about, **more):
    return {line.metric: line.result for line in verdict(rubric, about, **more).scores}


def scored_as(rubric, **values):
    """A verdict on the best results but for these; a value may be a result that is none."""
    best = {
        c.metric.id: c.metric.bounds[0 if c.metric.bands and not c.metric.bands.higher_is_better else 1]
        for c in RUBRICS[rubric].criteria
    }
    given = {**best, **values}
    made = {name: Scored(value=v) if isinstance(v, int | float) else v for name, v in given.items()}
    return reach_verdict(RUBRICS[rubric], case({}, {}), made, created_at=AT)


def test_a_metric_without_a_value_has_a_status_and_a_reason_and_no_number():
    lines = verdict("text", case(reported(), None)).to_json()["scores"]
    assert lines
    assert all((line["value"], line["status"]) == (None, "unavailable") and line["reason"] for line in lines)


def test_something_missing_is_unavailable():
    missing = {
        "no expected outcome": results("qa", case(scorecard(5), None))["question_score_accuracy"],
        "no judge": results("quality", case("x", "x", context=("x",)), answer=nobody)["answer_quality"],
        "no embeddings": results("translation", case(translated("a b"), translated("c")))["sentence_meaning_accuracy"],
    }  # fmt: skip
    assert {why: type(result) for why, result in missing.items()} == dict.fromkeys(missing, Unavailable)


def test_two_empty_keyword_lists_have_precision_recall_and_f1_of_one():
    found = results("entity", case(entities(), entities()))
    assert [found[f"keyword_{part}"].value for part in ("precision", "recall", "f1")] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("found", "expected"), [([], ["refund"]), (["refund"], [])])
def test_one_empty_side_is_zero_f1_included(found, expected):
    reported_of = results("entity", case(entities(found), entities(expected)))
    assert [reported_of[f"keyword_{part}"].value for part in ("precision", "recall", "f1")] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("value", "rating"), [(0.0, "good"), (0.03, "acceptable"), (0.0301, "fail")])
def test_where_lower_is_better_the_better_band_is_the_lower(value, rating):
    assert at_most(good=0.0, acceptable=0.03).rating(value) == rating


@pytest.mark.parametrize("value", [18 / 20, 0.9 - 1e-12, 0.1 * 3 * 3])
def test_values_are_compared_after_rounding_to_nine_decimals(value):
    assert Bands((("acceptable", 0.90),), "fail").rating(value) == "acceptable"


@pytest.mark.parametrize(
    ("rubric", "metric", "value", "at_its_bound"),
    [
        ("qa", "response_structure_compliance", 0.0, 1.0),
        ("entity", "fabricated_entity_count", 3, 2),
        ("text", "response_structure_compliance", 0.0, 1.0),
        ("text", "missing_sentiment_labels", 3, 2),
        ("text", "call_intent_match", 0.0, 0.5),
        ("text", "fabrication_free_rate", 0.9699, 1 - 0.03),
        ("translation", "domain_term_preservation_rate", 0.899, 0.9),
        ("translation", "critical_fact_preservation_rate", 0.969, 0.97),
    ],
)
def test_a_blocker_that_the_formula_names_leaves_no_number(rubric, metric, value, at_its_bound):
    found = scored_as(rubric, **{metric: value})
    assert (found.state, found.composite, found.passed) == (State.INVALID, None, False)
    assert (found.blockers, found.rating) == ((metric,), "blocker")
    assert (scored_as(rubric, **{metric: at_its_bound}).state) is State.VALID


@pytest.mark.parametrize(
    ("rubric", "metric", "value"),
    [("qa", "compliance_false_pass_rate", 0.031), ("entity", "configured_entity_compliance", 0.949)],
)
def test_a_blocker_that_only_its_table_names_leaves_the_number_standing(rubric, metric, value):
    found = scored_as(rubric, **{metric: value})
    assert (found.state, found.passed) == (State.DISQUALIFIED, False)
    assert found.composite > found.pass_mark


@pytest.mark.parametrize(
    ("rubric", "values", "composite"),
    [
        (
            "qa",
            {"question_score_accuracy": 0.93, "score_gap_accuracy": 0.73, "evidence_backed_reasoning": 0.85},
            0.882,
        ),
        # The seed prints 0.915: it adds parts that it rounded before.
        ("entity", {"keyword_f1": 0.91, "topic_f1": 0.85}, 0.9142),
        (
            "text",
            {
                "sentiment_accuracy": 0.85, "sentiment_macro_f1": 0.80, "missing_sentiment_labels": 1,
                "call_intent_match": 0.5, "highlight_recall_rate": 0.80, "highlight_correctness_rate": 0.90,
                "required_field_presence_rate": 0.85, "fabrication_free_rate": 0.985,
            },
            0.30 * 0.830 + 0.50 * 0.7855 + 0.20,  # which the seed prints as 0.842
        ),
        (
            "translation",
            {
                "translation_completeness_rate": 0.97, "sentence_meaning_accuracy": 0.84,
                "target_language_fluency": 0.80, "domain_term_preservation_rate": 0.92,
                "proper_noun_preservation_rate": 0.95, "critical_fact_preservation_rate": 0.98,
            },
            0.897,
        ),
    ],
    ids=["qa", "entity", "text", "translation"],
)  # fmt: skip
def test_with_everything_scored_coverage_is_one_and_the_seeds_worked_example_comes_out(rubric, values, composite):
    found = scored_as(rubric, **values)
    assert (found.coverage, found.state, found.passed) == (1.0, State.VALID, True)
    assert found.composite == pytest.approx(composite, abs=5e-4 if rubric == "translation" else 1e-12)
    assert found.rating == "acceptable"


@pytest.mark.parametrize(
    ("rubric", "mark"),
    [("qa", 0.87), ("entity", 0.8595), ("text", 0.8085), ("translation", 0.843), ("quality", 0.70),
     ("dimensions", 0.70), ("agent", 75.0), ("benchmarks", 0.80), ("answer", None), ("workflow", None)],
)  # fmt: skip
def test_the_pass_marks_are_those_of_the_rules(rubric, mark):
    assert RUBRICS[rubric].pass_mark == mark


@pytest.mark.parametrize("rubric", ["qa", "entity", "text", "translation"])
def test_a_case_at_the_lower_bound_of_every_acceptable_band_just_passes(rubric):
    bounds = {c.metric.id: c.metric.bands.acceptable for c in RUBRICS[rubric].criteria if c.metric.bands}
    # The lowest bound of some bands lies beyond a blocker: an acceptable case is just not blocked.
    held = {c.metric.id: (c.blocker.below if c.blocker.below is not None else c.blocker.above)
            for c in RUBRICS[rubric].criteria if c.blocker and c.blocker.blocks(bounds[c.metric.id])}  # fmt: skip
    found = scored_as(rubric, **{**bounds, **held})
    assert found.state is State.VALID
    assert found.passed is True
    assert found.composite == pytest.approx(found.pass_mark, abs=0.01)
    heaviest = max(RUBRICS[rubric].criteria, key=lambda c: c.weight).metric.id
    if not held:
        below = bounds[heaviest] - (0.5 if heaviest == "call_intent_match" else 0.01)
        assert scored_as(rubric, **{**bounds, heaviest: below}).passed is False


@pytest.mark.parametrize(
    ("metric", "good", "bad"),
    [("accuracy_score", 1, 0), ("faithfulness_score", 1, 0), ("latency_e2e_ms", 8000, 8001),
     ("total_tokens", 6000, 6001)],
)  # fmt: skip
def test_an_answer_passes_by_all_four_conditions(metric, good, bad):
    held = {"accuracy_score": 1, "faithfulness_score": 1, "latency_e2e_ms": 8000, "total_tokens": 6000,
            "latency_model_ms": 0, "token_efficiency_ratio": 1}  # fmt: skip
    assert scored_as("answer", **{**held, metric: good}).passed is True
    assert scored_as("answer", **{**held, metric: bad}).passed is False


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", '{"score": NaN}'])
def test_nan_and_infinities_are_no_json(text):
    assert parse_output(text).error


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_are_refused_everywhere(value):
    with pytest.raises(ValueError, match="finite"):
        Scored(value=value)
    found = results(
        "translation",
        case(translated("a b"), translated("a c")),
        answer=lambda *_: Answer(value=value, method=Method.JUDGE),
    )
    assert isinstance(found["target_language_fluency"], Failed)
    assert verdict("qa", case(scorecard(value), scorecard(5))).state is State.INVALID


def test_a_judged_result_carries_model_prompt_version_and_reason():
    judgement = Judgement("provider/model@1", "3f9c2a71", 0.002, call="c")

    def answer(_case, question):
        if isinstance(question, HowFluent):
            return Answer(value=0.75, method=Method.JUDGE, reason="one awkward phrase", judgement=judgement)
        return Answer(value=(1.0,), method=Method.EMBEDDING)

    found = verdict("translation", case(translated("a b"), translated("a c")), answer=answer)
    lines = {line["metric"]: line for line in found.to_json()["scores"]}
    assert (lines["target_language_fluency"]["method"], lines["target_language_fluency"]["reason"]) == (
        "judge", "one awkward phrase",
    )  # fmt: skip
    assert lines["sentence_meaning_accuracy"]["method"] == "embedding"
    assert found.to_json()["judge"] == {
        "model": "provider/model@1", "prompt_version": "3f9c2a71", "cost_usd": 0.002, "calls": 1,
        "input_tokens": 0, "output_tokens": 0, "call_ids": ["c"],
    }  # fmt: skip
