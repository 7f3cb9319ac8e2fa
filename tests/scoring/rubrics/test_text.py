"""text: what no golden story tells of seed 000, Task 3, the edges of rubrics §1, §2 and §5, scikit-learn beside it."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import nobody
from sidejudge.scoring.questions.kinds import CorrectHighlight, SameHighlight, SameIntent, SummaryClaims, Supported
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Judgement, Method, Scored
from sidejudge.scoring.rubrics import RUBRICS, text
from sidejudge.scoring.verdict.verdict import State, reach_verdict
from tests.scoring.rubrics.made import AT, Made, judge

RUBRIC = RUBRICS["text"]
MADE = Made("text")
verdict, line, result, value = MADE.verdict, MADE.line, MADE.result, MADE.value
CLASSES = ("positive", "neutral", "negative")
CALL = "Customer: I was charged twice, this is Priya Sharma.\nAgent: I see the duplicate charge of $49 and refund it."
REFERENCE = {
    "sentiment": [
        {"sentence_id": 1, "text": "I was charged twice", "label": "negative"},
        {"sentence_id": 2, "text": "I see the duplicate charge", "label": "neutral"},
    ],
    "summary": {
        "call_purpose": "Customer requesting refund for duplicate charge",
        "highlights": ["Agent confirmed duplicate charge", "Refund initiated for $49"],
        "call_extracted_info": {
            "customer_name": "Priya Sharma",
            "issue_type": "Billing",
            "resolution": "Refund approved",
            "follow_up": "Credit in 3–5 business days",
        },
    },
    "emotion": {"anger": 60, "neutral": 30, "joy": 10, "fear": 0, "sadness": 0},
}


def output(**summary):
    """The reference with another summary."""
    return {**copy.deepcopy(REFERENCE), "summary": {**REFERENCE["summary"], **summary}}


def case(found, expected=REFERENCE, **more):
    return Case(case_id="c", model_output=found, expected_outcome=expected, **{"transcript": CALL, **more})


def labelled(labels, expected):
    """A case with these labels, sentence by sentence."""

    def side(names):
        reported = [{"sentence_id": n, "text": "t", "label": name} for n, name in enumerate(names)]
        return {**REFERENCE, "sentiment": reported}

    return case(side(labels), side(expected))


def summarised(found, expected, **more):
    return case(output(**found), output(**expected), **more)


def all_one():
    return dict.fromkeys((c.metric.id for c in RUBRIC.criteria), Scored(value=1.0)) | {
        "missing_sentiment_labels": Scored(value=0)
    }


# -- the whole


def a_case_like_the_worked_example():
    """Every part as in the seed's example, counted from real items; the answers of a judge are scripted."""
    expected = ["positive"] * 8 + ["neutral"] * 24 + ["negative"] * 8
    found = ["positive"] * 6 + ["neutral"] * 28 + ["negative"] * 6
    fields = {f"field_{n}": "x" for n in range(20)}
    highlights = [f"highlight {name}" for name in "abcdefghij"]
    wanted = {"call_purpose": "refund", "highlights": highlights, "call_extracted_info": fields}
    given = {
        "call_purpose": "billing",
        "highlights": [*highlights[:8], "another k", "another l"],
        "call_extracted_info": {name: "" if n < 3 else "x" for n, name in enumerate(fields)},
    }
    about = labelled(found, expected)
    about.model_output["summary"], about.expected_outcome["summary"] = given, wanted
    return about


def test_the_sub_scores_are_reported_and_add_up_to_the_composite():
    answers = judge(
        SameIntent=0.5,
        SameHighlight=False,
        CorrectHighlight=lambda question: question.highlight == "another k",
        SummaryClaims=lambda _: tuple(f"claim {n}" for n in range(200)),
        Supported=lambda question: question.claim not in ("claim 7", "claim 8", "claim 9"),
    )
    found = verdict(a_case_like_the_worked_example(), answer=answers)
    values = {s.metric: s.result.value for s in found.scores}
    assert values["call_intent_match"] == 0.5
    assert values["highlight_recall_rate"] == 0.8
    assert values["highlight_correctness_rate"] == 0.9
    assert values["required_field_presence_rate"] == 0.85
    assert values["fabrication_free_rate"] == 0.985
    assert values["summary_score"] == pytest.approx(0.786, abs=1e-3)
    assert values["summary_score"] == pytest.approx(0.7855)
    assert values["sentiment_score"] == pytest.approx(
        0.6 * values["sentiment_accuracy"] + 0.4 * values["sentiment_macro_f1"]
    )
    assert values["emotion_score"] == 1.0
    assert found.composite == pytest.approx(
        0.3 * values["sentiment_score"] + 0.5 * values["summary_score"] + 0.2 * values["emotion_score"]
    )


def test_the_sentiment_sub_score_weighs_accuracy_and_macro_f1():
    about = labelled(["neutral"] * 40, ["positive"] * 5 + ["neutral"] * 30 + ["negative"] * 5)
    assert value("sentiment_score", about) == pytest.approx(0.75 * 0.60 + (60 / 70 / 3) * 0.40)


def test_the_weights_are_the_seeds_nested_ones():
    weights = {c.metric.id: c.weight for c in RUBRIC.criteria}
    assert weights["sentiment_accuracy"] + weights["sentiment_macro_f1"] == pytest.approx(0.30)
    assert weights["sentiment_accuracy"] / 0.30 == pytest.approx(0.60)
    assert weights["call_intent_match"] / 0.50 == pytest.approx(0.30)
    assert weights["fabrication_free_rate"] / 0.50 == pytest.approx(0.30)
    assert weights["dominant_emotion_correctness"] == 0.20
    assert [weights[name] for name in ("sentiment_score", "summary_score", "emotion_score")] == [0, 0, 0]


@pytest.mark.parametrize("transcript", [CALL, None])
def test_a_perfect_output_is_one_and_needs_nobodys_opinion(transcript):
    found = verdict(case(copy.deepcopy(REFERENCE), transcript=transcript), answer=nobody)
    assert (found.composite, found.state, found.passed, found.rating) == (1.0, State.VALID, True, "good")
    assert {s.result.method for s in found.scores} == {Method.EXACT}


@pytest.mark.parametrize(
    ("metric", "number", "rating"),
    [
        ("sentiment_accuracy", 0.88, "good"), ("sentiment_accuracy", 0.8799, "acceptable"),
        ("sentiment_accuracy", 0.80, "acceptable"), ("sentiment_accuracy", 0.7999, "fail"),
        ("sentiment_macro_f1", 0.85, "good"), ("sentiment_macro_f1", 0.75, "acceptable"),
        ("sentiment_macro_f1", 0.7499, "fail"),
        ("missing_sentiment_labels", 0, "pass"), ("missing_sentiment_labels", 1, "warning"),
        ("missing_sentiment_labels", 2, "warning"), ("missing_sentiment_labels", 3, "blocker"),
        ("call_intent_match", 1.0, "good"), ("call_intent_match", 0.5, "acceptable"),
        ("call_intent_match", 0.0, "blocker"),
        ("highlight_recall_rate", 0.85, "good"), ("highlight_recall_rate", 0.75, "acceptable"),
        ("highlight_recall_rate", 0.7499, "fail"),
        ("highlight_correctness_rate", 0.90, "good"), ("highlight_correctness_rate", 0.80, "acceptable"),
        ("highlight_correctness_rate", 0.7999, "fail"),
        ("required_field_presence_rate", 0.90, "good"), ("required_field_presence_rate", 0.75, "acceptable"),
        ("required_field_presence_rate", 0.7499, "fail"),
        ("fabrication_free_rate", 1.0, "good"), ("fabrication_free_rate", 0.99, "acceptable"),
        ("fabrication_free_rate", 0.98, "acceptable"), ("fabrication_free_rate", 0.975, "fail"),
        ("fabrication_free_rate", 0.97, "fail"), ("fabrication_free_rate", 0.9699, "blocker"),
        ("dominant_emotion_correctness", 1.0, "pass"), ("dominant_emotion_correctness", 0.0, "fail"),
    ],
)  # fmt: skip
def test_bands_at_their_bounds(metric, number, rating):
    found = reach_verdict(RUBRIC, case(REFERENCE), all_one() | {metric: Scored(value=number)}, created_at=AT)
    assert next(s.rating for s in found.scores if s.metric == metric) == rating


@pytest.mark.parametrize(
    "broken",
    [
        "no JSON", None, [], {**REFERENCE, "extra": 1}, {k: v for k, v in REFERENCE.items() if k != "emotion"},
        output(highlights="one"), output(call_extracted_info=[]), {**REFERENCE, "emotion": {"anger": -1}},
        {**REFERENCE, "emotion": {"anger": "60"}}, {**REFERENCE, "sentiment": [{"sentence_id": 1, "label": "neutral"}]},
    ],
)  # fmt: skip
def test_a_broken_structure_makes_the_rest_not_applicable_and_the_composite_invalid(broken):
    found = verdict(case(broken))
    assert (found.state, found.composite, found.passed) == (State.INVALID, None, False)
    assert found.blockers == ("response_structure_compliance",)
    assert {s.result.status for s in found.scores[1:]} == {"not_applicable"}


def test_other_fields_other_emotions_and_null_labels_are_no_breach_of_structure():
    found = {
        "sentiment": [{**REFERENCE["sentiment"][0], "label": None}, REFERENCE["sentiment"][1]],
        "summary": {**REFERENCE["summary"], "call_extracted_info": {"ticket": 7}},
        "emotion": {"disgust": 100},
    }
    assert value("response_structure_compliance", case(found)) == 1


def test_highlights_are_strings_even_where_the_reference_has_none():
    assert value("response_structure_compliance", summarised({"highlights": [1]}, {"highlights": []})) == 0
    assert value("response_structure_compliance", summarised({"highlights": ["a"]}, {"highlights": []})) == 1


# -- sentiment


def test_thirty_five_of_forty_sentences():
    about = labelled(["neutral"] * 35 + ["positive"] * 5, ["neutral"] * 40)
    assert value("sentiment_accuracy", about) == 0.875


def test_the_seeds_model_that_labels_everything_neutral_is_exposed():
    about = labelled(["neutral"] * 40, ["positive"] * 5 + ["neutral"] * 30 + ["negative"] * 5)
    assert value("sentiment_accuracy", about) == 0.75
    assert value("sentiment_macro_f1", about) == pytest.approx((0 + 0.857142857 + 0) / 3)
    assert value("sentiment_macro_f1", about) == pytest.approx(0.29, abs=5e-3)


def test_a_label_of_no_class_is_wrong_and_not_missing():
    about = labelled(["mixed", "", "neutral"], ["positive", "negative", "neutral"])
    assert value("sentiment_accuracy", about) == pytest.approx(1 / 3)
    assert value("missing_sentiment_labels", about) == 0
    assert value("sentiment_macro_f1", about) == pytest.approx(1 / 3)


def test_a_sentence_without_an_item_is_missing_and_wrong():
    about = labelled(["positive"], ["positive", "negative"])
    assert (value("sentiment_accuracy", about), value("missing_sentiment_labels", about)) == (0.5, 1)


def test_labels_are_compared_as_texts_are():
    assert value("sentiment_accuracy", labelled([" Negative "], ["negative"])) == 1


def test_unknown_and_repeated_sentences_are_ignored_and_reported():
    first, second = REFERENCE["sentiment"]
    more = [{**first, "label": "neutral"}, {**first, "sentence_id": 9}]
    found = result("sentiment_accuracy", case({**REFERENCE, "sentiment": [first, second, *more]}))
    assert found.value == 1
    assert (found.details["unknown_ids"], found.details["repeated_ids"]) == ([9], [1])


def test_sentences_are_matched_by_id_whatever_their_order():
    assert value("sentiment_accuracy", case({**REFERENCE, "sentiment": REFERENCE["sentiment"][::-1]})) == 1


def test_no_sentence_on_either_side_is_perfect_and_on_one_side_is_not():
    for metric in ("sentiment_accuracy", "sentiment_macro_f1"):
        assert value(metric, labelled([], [])) == 1
        assert value(metric, labelled(["neutral"], [])) == 0
        assert value(metric, labelled([], ["neutral"])) == pytest.approx(0 if metric.endswith("accuracy") else 2 / 3)


def test_a_sentence_that_the_reference_does_not_label_counts_nowhere():
    about = labelled(["neutral", "positive"], ["neutral", None])
    assert value("sentiment_accuracy", about) == 1
    assert result("sentiment_accuracy", about).details["unlabelled_in_reference"] == [1]


@pytest.mark.parametrize(
    ("broken", "reported"),
    [
        ([{"sentence_id": 1, "text": "t", "label": "mixed"}], "sentiment[0]: label is neither"),
        ([{"sentence_id": 1, "label": "neutral"}] * 2, "an id stands twice"),
        ([{"label": "neutral"}], "sentiment[0]: sentence_id is missing"),
        ([{"sentence_id": True, "label": "neutral"}], "sentiment[0]: sentence_id is missing"),
        ([{"sentence_id": 1, "label": None}], "has no label"),
        ([7], "sentiment[0]: not an object"),
        ("x", "sentiment is not a list"),
    ],
)
def test_a_reference_that_cannot_be_used_makes_sentiment_unavailable(broken, reported):
    about = case(REFERENCE, {**REFERENCE, "sentiment": broken})
    for metric in ("sentiment_accuracy", "sentiment_macro_f1", "missing_sentiment_labels", "sentiment_score"):
        found = result(metric, about)
        assert found.status == "unavailable"
        assert reported in found.reason
    assert value("response_structure_compliance", about) == "unavailable"
    assert verdict(about).state is State.INCOMPLETE


@pytest.mark.parametrize(
    "broken",
    [
        {**REFERENCE, "summary": "x"}, output(highlights=[1]), output(call_purpose=None),
        output(call_extracted_info=[]), {**REFERENCE, "emotion": {"anger": "60"}}, {"questions": []}, "no JSON", [],
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_reference_is_never_held_against_the_output(broken):
    found = verdict(case(REFERENCE, broken))
    assert (found.state, found.passed, found.blockers) == (State.INCOMPLETE, None, ())
    assert "expected_outcome" in found.reason


LABELS = st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from((*CLASSES, "mixed", None))), min_size=1)


@given(LABELS)
def test_sentiment_agrees_with_scikit_learn(pairs):
    expected, found = [e for e, _ in pairs], [f for _, f in pairs]
    about = labelled(found, expected)
    given_ = [name or "missing" for name in found]
    assert text.sentiment_accuracy.start(about).value == pytest.approx(accuracy_score(expected, given_))
    theirs = f1_score(expected, given_, labels=CLASSES, average="macro", zero_division=1)
    assert text.sentiment_macro_f1.start(about).value == pytest.approx(theirs)


@given(LABELS, st.randoms())
def test_sentiment_does_not_depend_on_the_order_and_never_falls_when_a_label_is_mended(pairs, chance):
    shuffled = chance.sample(pairs, len(pairs))
    mended = [(pairs[0][0], pairs[0][0]), *pairs[1:]]
    for metric in (text.sentiment_accuracy, text.sentiment_macro_f1):
        at, again, better = (
            metric.start(labelled([f for _, f in p], [e for e, _ in p])).value for p in (pairs, shuffled, mended)
        )
        assert at == again
        if metric is text.sentiment_accuracy:
            assert 0 <= at < better <= 1 or pairs[0][0] == pairs[0][1]


# -- summary: intent


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ("Customer requesting refund for duplicate charge", 1.0),
        ("CUSTOMER requesting  refund for duplicate charge", 1.0),
        ("Customer asking about billing", 0.5),
        ("Customer wants to upgrade plan", 0.0),
    ],
)
def test_the_call_purposes_of_the_seed_are_told_apart_without_a_judge(given, level):
    assert value("call_intent_match", case(output(call_purpose=given))) == level


@pytest.mark.parametrize("wrong", [0.7, True, "1.0", None, 2, [1.0]])
def test_an_intent_is_exactly_one_of_three_levels(wrong):
    about = case(output(call_purpose="other"))
    assert value("call_intent_match", about, answer=judge(SameIntent=wrong)) == "error"


def test_a_blank_purpose_is_wrong_where_the_reference_has_one_and_right_where_it_has_none():
    assert value("call_intent_match", case(output(call_purpose=" "))) == 0
    assert value("call_intent_match", summarised({"call_purpose": ""}, {"call_purpose": " "})) == 1
    assert value("call_intent_match", summarised({"call_purpose": "x"}, {"call_purpose": ""})) == "unavailable"


# -- summary: highlights


def test_three_of_four_highlights_are_captured():
    four = ["a b", "c d", "e f", "g h"]
    about = summarised({"highlights": four[:3]}, {"highlights": four})
    assert value("highlight_recall_rate", about, answer=nobody) == 0.75  # nobody is needed: nothing is left to match


def test_a_highlight_of_the_model_serves_one_expected_highlight_only():
    about = summarised({"highlights": ["x"]}, {"highlights": ["x", "x"]})
    assert value("highlight_recall_rate", about, answer=judge(SameHighlight=True)) == 0.5


def test_the_matching_is_as_large_as_it_can_be():
    same = {("A", "x"), ("A", "y"), ("B", "x")}
    about = summarised({"highlights": ["x", "y"]}, {"highlights": ["A", "B"]})
    answers = judge(SameHighlight=lambda q: (q.expected, q.found) in same)
    assert value("highlight_recall_rate", about, answer=answers) == 1.0


def test_only_pairs_whose_texts_are_not_matched_are_asked_about():
    requested = Counter()

    def count(_case, question):
        if isinstance(question, SameHighlight):
            requested[question.expected, question.found] += 1
        return Answer(value=True, method=Method.JUDGE)

    about = summarised({"highlights": ["a", "b", "z"]}, {"highlights": ["a", "b", "c"]})
    assert value("highlight_recall_rate", about, answer=count) == 1.0
    assert requested == {("c", "z"): 1}


def test_an_open_pair_that_cannot_change_the_number_does_not_matter():
    def answer(_case, question):
        if isinstance(question, SameHighlight) and question.found == "z":
            return NoAnswer("no judge")
        return Answer(value=True, method=Method.JUDGE)

    about = summarised({"highlights": ["y", "z"]}, {"highlights": ["a"]})
    assert value("highlight_recall_rate", about, answer=answer) == 1.0


@pytest.mark.parametrize(("failed", "status"), [(True, "error"), (False, "unavailable")])
def test_an_open_pair_that_could_change_the_number_leaves_none(failed, status):
    about = summarised({"highlights": ["z"]}, {"highlights": ["a"]})
    answers = judge(SameHighlight=NoAnswer("timeout", failed=failed))
    assert value("highlight_recall_rate", about, answer=answers) == status


def test_no_highlight_on_either_side_is_perfect_and_on_one_side_is_not():
    nothing, one = {"highlights": []}, {"highlights": ["a"]}
    for metric in ("highlight_recall_rate", "highlight_correctness_rate"):
        assert value(metric, summarised(nothing, nothing)) == 1
        assert value(metric, summarised(nothing, one)) == 0
    assert value("highlight_recall_rate", summarised(one, nothing)) == 0


def test_more_highlights_than_can_be_compared_have_no_recall_unless_they_are_equal():
    many, others = [f"a {n} b" for n in range(60)], [f"c {n} d" for n in range(60)]
    assert value("highlight_recall_rate", summarised({"highlights": many}, {"highlights": many[::-1]})) == 1
    assert value("highlight_recall_rate", summarised({"highlights": many}, {"highlights": others})) == "unavailable"


def test_the_refund_of_the_wrong_amount_is_the_seeds_incorrect_highlight():
    expected = ["Agent confirmed duplicate charge", "Refund initiated for $49", "Customer was satisfied"]
    given = ["Agent confirmed duplicate charge", "Refund of $99", "Customer was satisfied"]
    about = summarised({"highlights": given}, {"highlights": expected})
    found = result("highlight_correctness_rate", about)
    assert found.value == pytest.approx(0.67, abs=5e-3)
    assert (found.method, found.details["wrong"]) == (Method.LEXICAL, ["Refund of $99"])
    assert value("highlight_correctness_rate", case(about.model_output, about.expected_outcome, transcript=None)) == (
        pytest.approx(2 / 3)
    )
    assert value("highlight_recall_rate", about) == pytest.approx(2 / 3)


def test_every_copy_of_a_wrong_highlight_counts():
    about = summarised({"highlights": ["bad", "bad", "Refund initiated for $49"]}, {})
    assert value("highlight_correctness_rate", about, answer=judge(CorrectHighlight=False)) == pytest.approx(1 / 3)


# -- summary: fields


def test_three_of_four_fields():
    fields = REFERENCE["summary"]["call_extracted_info"]
    assert value("required_field_presence_rate", case(output(call_extracted_info={**fields, "follow_up": ""}))) == 0.75
    skipped = {name: reported for name, reported in fields.items() if name != "follow_up"}
    found = result("required_field_presence_rate", case(output(call_extracted_info=skipped)))
    assert (found.value, found.details["missing"]) == (0.75, ["follow_up"])


@pytest.mark.parametrize("empty", [None, "", "  ", "N/A", "n/a", "Unknown", "NONE", [], {}])
def test_a_field_that_says_nothing_is_not_filled(empty):
    about = summarised({"call_extracted_info": {"x": empty}}, {"call_extracted_info": {"x": "y"}})
    assert value("required_field_presence_rate", about) == 0


@pytest.mark.parametrize("filled", [0, False, "0", "no", ["a"], {"a": 1}])
def test_a_field_that_says_little_is_filled(filled):
    about = summarised({"call_extracted_info": {"x": filled}}, {"call_extracted_info": {"x": "y"}})
    assert value("required_field_presence_rate", about) == 1


def test_a_field_that_the_reference_leaves_empty_may_stay_empty():
    about = summarised({"call_extracted_info": {"x": None}}, {"call_extracted_info": {"x": "N/A"}})
    assert value("required_field_presence_rate", about) == 1
    assert (
        value("required_field_presence_rate", summarised({"call_extracted_info": {}}, {"call_extracted_info": {}})) == 1
    )
    about = summarised({"call_extracted_info": {"x": "y"}}, {"call_extracted_info": {}})
    assert value("required_field_presence_rate", about) == 0


# -- summary: fabrication


def test_a_discount_that_nobody_offered_is_fabricated():
    highlights = [*REFERENCE["summary"]["highlights"], "Agent offered a 10% discount"]
    found = verdict(case(output(highlights=highlights)))
    rate = next(s for s in found.scores if s.metric == "fabrication_free_rate").result
    # Facts: the purpose, three highlights, four fields.
    assert rate.value == pytest.approx(7 / 8)
    assert rate.details["fabricated"] == ["Agent offered a 10% discount"]
    assert rate.method is Method.LEXICAL
    assert found.state is State.INVALID
    assert "fabrication_free_rate" in found.blockers


@pytest.mark.parametrize(
    ("facts", "rate", "rating"), [(100, 0.99, "acceptable"), (40, 0.975, "fail"), (25, 0.96, "blocker")]
)
def test_the_rate_of_hallucination_is_over_all_facts_of_the_summary(facts, rate, rating):
    fields = {f"f{n}": "made up" if n == 0 else "Billing" for n in range(facts - 3)}
    about = case(output(call_extracted_info=fields))
    found = line("fabrication_free_rate", about, answer=judge(Supported=False))
    assert found.result.value == pytest.approx(rate)
    assert found.result.details["hallucination_rate"] == pytest.approx(1 - rate)
    assert found.rating == rating


def test_with_a_judge_the_facts_are_the_claims_that_it_extracts():
    requested = []

    def supported(question):
        requested.append(question)
        return question.claim != "it was free"

    answers = judge(SummaryClaims=("Refund approved", "it was free", "a third"), Supported=supported)
    found = result("fabrication_free_rate", case(output(call_purpose="other words")), answer=answers)
    assert found.value == pytest.approx(2 / 3)
    # What stands in the reference word for word needs no judge.
    assert set(requested) == {Supported("it was free"), Supported("a third")}


def test_a_bare_value_is_asked_about_with_its_field():
    requested = []
    about = case(output(call_extracted_info={"customer_name": "Amit", "n": 7}))
    verdict(about, answer=judge(Supported=lambda question: requested.append(question) or True))
    assert {Supported("Amit", "customer_name"), Supported("7", "n")} <= set(requested)


@pytest.mark.parametrize("claims", [(), "x", None, ("",), (1,), ("a",) * 501])
def test_claims_that_are_none_are_an_error(claims):
    about = case(output(call_purpose="other words"))
    assert value("fabrication_free_rate", about, answer=judge(SummaryClaims=claims, Supported=True)) == "error"


def test_a_judge_that_failed_to_extract_claims_is_an_error_and_not_a_guess():
    answers = judge(SummaryClaims=NoAnswer("timeout", failed=True), Supported=True)
    assert value("fabrication_free_rate", case(output(call_purpose="other words")), answer=answers) == "error"


@pytest.mark.parametrize("failed", [False, True])
def test_one_refuted_claim_beside_undecided_ones_bounds_the_rate_and_blocks(failed):
    def supported(question):
        return False if question.claim == "it was free" else NoAnswer("a paraphrase", failed=failed)

    about = case(output(call_purpose="other words"))
    claims = ("it was free", "a", "b", "c")
    found = verdict(about, answer=judge(SummaryClaims=claims, Supported=supported, SameIntent=1.0))
    score = next(s for s in found.scores if s.metric == "fabrication_free_rate")
    assert score.result.status == ("error" if failed else "unavailable")
    assert score.result.proven.at_most == 0.75
    assert score.result.reason.startswith("1 of 4 facts fabricated: it was free")
    assert score.result.reason.endswith("not all are decided: a paraphrase")
    assert (found.state, found.passed, found.blockers) == (State.INVALID, False, ("fabrication_free_rate",))
    many = (*claims, *(f"claim {n}" for n in range(60)))
    few = verdict(about, answer=judge(SummaryClaims=many, Supported=supported, SameIntent=1.0))
    assert few.blockers == (), "1 of 64 may be all that is fabricated"
    without = case(output(call_purpose="other words"), transcript=None)
    assert verdict(without, answer=judge(SummaryClaims=claims, Supported=supported, SameIntent=1.0)).blockers == ()


def test_words_that_prove_a_fabrication_are_used_without_a_judge():
    highlights = [*REFERENCE["summary"]["highlights"], "Agent offered a 10% discount", "They parted on good terms"]
    found = verdict(case(output(highlights=highlights)))
    assert "fabrication_free_rate" in found.blockers
    assert "1 of 9 facts fabricated: Agent offered a 10% discount" in found.reason
    honest = verdict(case(output(highlights=[*REFERENCE["summary"]["highlights"], "They parted on good terms"])))
    assert honest.blockers == ()


def test_without_a_transcript_absence_cannot_be_told():
    about = case(output(call_purpose="other words"), transcript=None)
    assert value("fabrication_free_rate", about, answer=judge(Supported=False)) == "unavailable"
    assert value("fabrication_free_rate", about, answer=judge(Supported=True)) == 1


def test_a_summary_that_states_nothing_makes_nothing_up():
    empty = {"call_purpose": "", "highlights": [], "call_extracted_info": {}}
    assert value("fabrication_free_rate", summarised(empty, {})) == 1


@pytest.mark.parametrize(
    ("given", "rate"), [({"b": True, "name": False}, 1), ({"b": False}, "unavailable"), ({"c": True}, "unavailable"),
                        ({"other_name": False}, "unavailable")],
)  # fmt: skip
def test_a_truth_value_states_nothing_apart_from_its_field(given, rate):
    reported = {"call_extracted_info": {"b": True, "name": False}}
    assert value("fabrication_free_rate", summarised({"call_extracted_info": given}, reported)) == rate


# -- emotion


@pytest.mark.parametrize(
    ("given", "expected", "right"),
    [
        ({"anger": 60, "joy": 40}, {"anger": 51, "joy": 49}, 1),
        ({"neutral": 60, "anger": 40}, {"anger": 60, "neutral": 40}, 0),
        ({"anger": 50, "joy": 50}, {"joy": 45.0, "anger": 45, "fear": 10}, 1),
        ({"anger": 50, "joy": 50}, {"anger": 60}, 0),
        ({"anger": 60}, {"anger": 50, "joy": 50}, 0),
        ({"Anger": 60}, {"anger": 60}, 1),
        ({"anger": 33.33333333333, "joy": 33.33333333334}, {"joy": 1, "anger": 1}, 1),
        ({}, {"anger": 60}, 0),
        ({"anger": 0}, {"anger": 60}, 0),
        ({}, {}, 1),
        ({}, {"anger": 0}, 1),
    ],
)
def test_the_top_emotions_decide_ties_included(given, expected, right):
    about = case({**REFERENCE, "emotion": given}, {**REFERENCE, "emotion": expected})
    assert (value("dominant_emotion_correctness", about), value("emotion_score", about)) == (right, right)


@pytest.mark.parametrize("broken", [{"anger": -1}, {"anger": "60"}, {"anger": True}, [], None])
def test_a_reference_without_usable_emotions_is_unavailable(broken):
    about = case(REFERENCE, {**REFERENCE, "emotion": broken})
    assert text.dominant_emotion_correctness.start(about).status == "unavailable"


# -- effects


def test_each_question_is_asked_once_though_the_sub_score_needs_it_too():
    requested = Counter()

    def count(about, question):
        requested[question] += 1
        return lexical.answer(about, question)

    verdict(case(output(call_purpose="Customer asking about billing", highlights=["Refund of $99"])), answer=count)
    assert set(map(type, requested)) == {SameIntent, SameHighlight, CorrectHighlight, SummaryClaims, Supported}
    assert set(requested.values()) == {1}


def test_a_judgement_is_carried_and_paid_once():
    paid = Judgement("provider/model", "sha", 0.25, call="call-1")
    answers = {SameIntent: 1.0}

    def answer(_case, question):
        given = answers.get(type(question))
        return NoAnswer("x") if given is None else Answer(value=given, method=Method.JUDGE, judgement=paid)

    about = case(output(call_purpose="Customer wants the money back"))
    assert result("call_intent_match", about, answer=answer).judgements == (paid,)
    assert verdict(about, answer=answer).to_json()["judge"]["calls"] == 1


def test_a_metric_and_its_sub_score_carry_the_judgements_of_every_round():
    taken_apart, looked_up = (Judgement("m", "p", 0.25, call=call) for call in ("one", "two"))

    def answer(about, question):
        if isinstance(question, SummaryClaims):
            return Answer(value=("a claim", "another"), method=Method.JUDGE, judgement=taken_apart)
        if isinstance(question, Supported):
            return Answer(value=True, method=Method.JUDGE, judgement=looked_up)
        return lexical.answer(about, question)

    about = case(output(call_purpose="Customer asking about billing"))
    assert result("fabrication_free_rate", about, answer=answer).judgements == (taken_apart, looked_up)
    found = result("summary_score", about, answer=answer)
    assert found.judgements == (taken_apart, looked_up)
    assert found.method is Method.JUDGE
