"""benchmarks: every example of seed 000's Layer 2, every threshold at its bound, numpy's and scikit-learn's opinion."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, precision_score, recall_score

from sidejudge.scoring.case.case import Case, Utterance
from sidejudge.scoring.evaluators import lexical
from sidejudge.scoring.evaluators.score import nobody, score
from sidejudge.scoring.metrics.context_use import ContextUse
from sidejudge.scoring.questions.kinds import (
    FollowsInstructions,
    PiecesNeeded,
    PiecesUsed,
    SameFact,
    SentenceSimilarity,
    SoundReasoning,
    StatedClaims,
    Supported,
)
from sidejudge.scoring.questions.question import Answer, NoAnswer, run
from sidejudge.scoring.result.result import Failed, Judgement, Method, NotApplicable, Scored, Unavailable
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.rubrics.benchmarks import METRICS
from sidejudge.scoring.verdict.consistency import MAX_RUNS, consistency_of
from sidejudge.scoring.verdict.verdict import State, reach_verdict
from tests.scoring.rubrics.made import AT, judge

RUBRIC = RUBRICS["benchmarks"]
CALL = "Customer: I was charged twice for my order.\nAgent: I see the duplicate charge of $49 and refund it."
VOUCHER = "Agent saw the duplicate charge of $49. Agent offered a $20 voucher."
IDS = [
    "faithfulness", "hallucination_rate", "answer_relevancy", "answer_correctness", "contextual_precision",
    "contextual_recall", "contextual_relevancy", "argument_correctness", "instruction_following", "exact_match",
    "consistency",
]  # fmt: skip
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")
LETTERS = [f"Fact {word} holds here." for word in WORDS]


def case(output="It was refunded.", expected="It was refunded.", **more):
    return Case(case_id="c", model_output=output, expected_outcome=expected, **{"transcript": CALL, **more})


def result(metric, about, answer=nobody):
    measured = next(m for m in METRICS if m.id == metric)
    return run({metric: measured.start(about)}, lambda question: answer(about, question)).results[metric]


def raw(metric, about, answer=nobody):
    found = result(metric, about, answer)
    return found.details["raw"] if isinstance(found, Scored) else found.status


def claims_of(supported, total):
    """A judge that takes the output apart into so many claims, and supports so many of them."""
    return judge(
        StatedClaims=tuple(f"claim number {n}" for n in range(total)),
        Supported=lambda question: int(question.claim.split()[-1]) < supported,
    )


def cosine(value):
    return judge(SentenceSimilarity=(value,), SameFact=True)


def pieces(used, needed):
    return judge(PiecesUsed=tuple(used), PiecesNeeded=tuple(needed))


def steps(*scores, expected=True):
    return judge(SoundReasoning={"steps": [{"step": "so", "score": s} for s in scores], "expected": expected})


def followed(right, total):
    reported = [{"instruction": "do", "followed": n < right} for n in range(total)]
    return judge(FollowsInstructions={"instructions": reported})


def labels(*found):
    return [{"sentence_id": n, "label": label} for n, label in enumerate(found)]


TWENTY = {"context": tuple(f"passage {n}" for n in range(20))}
PROMPTED = {"system_prompt": "Be brief."}


# -- the rubric


def test_the_eleven_stand_in_the_seeds_order_and_weigh_the_same():
    assert [criterion.metric.id for criterion in RUBRIC.criteria] == IDS
    assert {criterion.weight for criterion in RUBRIC.criteria} == {1 / 11}
    assert RUBRIC.pass_mark == 0.80


@pytest.mark.parametrize("passed", range(12))
def test_the_score_is_the_sum_of_the_binaries_over_eleven_and_nine_are_enough(passed):
    results = {name: Scored(value=float(at < passed)) for at, name in enumerate(IDS)}
    found = reach_verdict(RUBRIC, case(), results, created_at=AT)
    assert found.composite == pytest.approx(passed / 11)
    assert (found.state, found.coverage) == (State.VALID, pytest.approx(1.0))
    assert found.passed is (passed >= 9)


@pytest.mark.parametrize(("missing", "state"), [(0, State.VALID), (1, State.PARTIAL), (2, State.INCOMPLETE)])
def test_one_benchmark_may_be_missing_and_two_may_not(missing, state):
    results = {
        name: Unavailable("no judge") if at < missing else Scored(value=float(at != 10)) for at, name in enumerate(IDS)
    }
    found = reach_verdict(RUBRIC, case(), results, created_at=AT)
    assert found.state is state
    assert found.coverage == pytest.approx((11 - missing) / 11)
    assert found.composite == (None if state is State.INCOMPLETE else pytest.approx((10 - missing) / (11 - missing)))


BOUNDS = [
    ("faithfulness", case(VOUCHER), claims_of(9, 10), 0.9, 1),
    ("faithfulness", case(VOUCHER), claims_of(18, 20), 0.9, 1),
    ("faithfulness", case(VOUCHER), claims_of(8, 9), 8 / 9, 0),
    ("hallucination_rate", case(VOUCHER), claims_of(49, 50), 0.02, 1),
    ("hallucination_rate", case(VOUCHER), claims_of(48, 49), 1 / 49, 0),
    ("answer_relevancy", case(input="Why?"), cosine(0.85), 0.85, 1),
    ("answer_relevancy", case(input="Why?"), cosine(0.8499), 0.8499, 0),
    ("answer_correctness", case("It was paid."), cosine(0.7), 0.85, 1),
    ("answer_correctness", case("It was paid."), cosine(0.6999), 0.84995, 0),
    ("contextual_precision", case(**TWENTY), pieces([True] * 20, [True] * 17 + [False] * 3), 0.85, 1),
    ("contextual_precision", case(**TWENTY), pieces([True] * 20, [True] * 16 + [False] * 4), 0.8, 0),
    ("contextual_recall", case(**TWENTY), pieces([True] * 17 + [False] * 3, [True] * 20), 0.85, 1),
    ("contextual_recall", case(**TWENTY), pieces([True] * 16 + [False] * 4, [True] * 20), 0.8, 0),
    ("contextual_relevancy", case(**TWENTY), pieces([True] * 20, [True] * 14 + [False] * 6), 0.85, 1),
    ("contextual_relevancy", case(**TWENTY), pieces([True] * 20, [True] * 13 + [False] * 7), 0.825, 0),
    ("argument_correctness", case(), steps(*[1.0] * 14, *[0.5] * 6), 0.85, 1),
    ("argument_correctness", case(), steps(*[1.0] * 13, *[0.5] * 7), 0.825, 0),
    ("instruction_following", case(**PROMPTED), followed(19, 20), 0.95, 1),
    ("instruction_following", case(**PROMPTED), followed(18, 19), 18 / 19, 0),
    ("exact_match", case(list(range(9)), list(range(10))), nobody, 0.9, 1),
    ("exact_match", case(list(range(8)), list(range(9))), nobody, 8 / 9, 0),
]


@pytest.mark.parametrize(("metric", "about", "answer", "value", "passes"), BOUNDS)
def test_a_value_at_its_threshold_passes_and_one_beyond_it_does_not(metric, about, answer, value, passes):
    found = result(metric, about, answer)
    assert found.details["raw"] == pytest.approx(value)
    assert found.value == passes
    stated, threshold = float(found.reason.partition(",")[0]), found.details["threshold"]
    assert stated == pytest.approx(value, abs=5e-4)
    assert (stated <= threshold if "<=" in found.reason else stated >= threshold) == passes
    assert f"{threshold:g}" in found.reason


@pytest.mark.parametrize(("second", "value", "passes"), [(0.62, 0.9, 1), (0.61, 1 - 0.185 / 1.795, 0)])
def test_consistency_at_its_threshold(second, value, passes):
    by_text = {"It was paid.": 0.98, "It is paid.": second}
    answer = judge(SentenceSimilarity=lambda q: (by_text[q.pairs[0][0]],), SameFact=True)
    found = result("consistency", case("It was paid.", repeats=("It is paid.",)), answer)
    assert found.details["raw"] == pytest.approx(value)
    assert found.value == passes


@pytest.mark.parametrize("metric", [m for m in IDS if m not in {"instruction_following", "answer_relevancy"}])
def test_without_expected_outcome_and_transcript_there_is_no_value(metric):
    found = result(metric, Case(case_id="c", model_output="It was refunded.", repeats=("x",)), cosine(1.0))
    assert isinstance(found, Unavailable)


@pytest.mark.parametrize("metric", IDS)
def test_no_output_is_not_judged(metric):
    found = result(metric, case(None, input="Why?", **PROMPTED), cosine(1.0))
    assert isinstance(found, Unavailable)


# -- faithfulness and hallucination rate


@pytest.mark.parametrize("metric", ["faithfulness", "hallucination_rate"])
@pytest.mark.parametrize("failed", [False, True])
def test_a_refuted_claim_decides_the_binary_where_no_answer_to_the_others_could_pass_it(metric, failed):
    def supported(question):
        return question.claim not in LETTERS[:1] and NoAnswer("open", failed=failed)

    few = case(" ".join(LETTERS[:4]))
    found = result(metric, few, judge(Supported=supported))
    assert (found.value, found.method, found.details["best"]) == (
        0.0,
        Method.JUDGE,
        0.75 if metric == "faithfulness" else 0.25,
    )
    assert "raw" not in found.details, "a bound is no value"
    many = case(" ".join(f"Fact {n} holds here." for n in range(60)))
    open_ones = result(metric, many, judge(Supported=lambda q: q.claim != "Fact 7 holds here." and NoAnswer("open")))
    assert open_ones.status == "unavailable"
    assert "1 of 60 made up" in open_ones.reason


def test_a_voucher_that_stands_nowhere_is_unsupported():
    about = case(VOUCHER, "Agent saw the duplicate charge of $49.")
    found = result("faithfulness", about, lexical.answer)
    assert (found.value, found.details["raw"], found.method) == (0.0, 0.5, Method.LEXICAL)
    assert found.details["unsupported"] == ["Agent offered a $20 voucher."]
    assert raw("hallucination_rate", about, lexical.answer) == 0.5


def test_a_figure_that_stands_in_a_reference_of_plain_text_is_supported():
    about = case("Agent offered a voucher worth $20.", "The agent offered a voucher worth $20.")
    assert raw("faithfulness", about, lexical.answer) == 1.0


def test_both_read_the_same_answers_and_each_question_is_asked_once():
    requested = []

    def answer(_case, question):
        requested.append(question)
        return Answer(value=("a", "b") if isinstance(question, StatedClaims) else False, method=Method.JUDGE)

    wanted = [m for m in METRICS if m.id in {"faithfulness", "hallucination_rate"}]
    about = case(VOUCHER)
    found = run({m.id: m.start(about) for m in wanted}, lambda question: answer(about, question)).results
    assert requested == [StatedClaims(tuple(VOUCHER.replace(". ", ".\n").splitlines())), Supported("a"), Supported("b")]
    assert (found["faithfulness"].details["raw"], found["hallucination_rate"].details["raw"]) == (0.0, 1.0)


def test_a_summary_is_asked_about_as_the_text_rubric_asks():
    summary = {
        "call_purpose": "Refund",
        "highlights": ["A $20 voucher. It was late."],
        "call_extracted_info": {"by": "Bo"},
    }
    about = case({"summary": summary, "sentiment": labels("negative"), "emotion": {"joy": 1}}, {"summary": {}})
    requested = []

    def answer(question):
        requested.append(question)
        return NoAnswer("nobody") if isinstance(question, StatedClaims) else Answer(value=True, method=Method.JUDGE)

    measured = METRICS[0]
    run({"m": measured.start(about)}, answer)
    assert requested[1:] == [Supported("Refund"), Supported("A $20 voucher. It was late."), Supported("Bo", "by")]


def test_labels_scores_ids_and_echoes_state_nothing():
    about = case(
        {"label": "bad", "score": 3, "type": "SCORE", "question_id": "Q1", "source_text": "Ring ring."}, {"a": 1}
    )
    assert raw("faithfulness", about) == 1.0
    assert raw("hallucination_rate", about) == 0.0


def test_an_output_that_claims_nothing_is_faithful_and_makes_nothing_up():
    assert raw("faithfulness", case("Who knows?", "x"), judge(StatedClaims=())) == 1.0
    assert raw("hallucination_rate", case("Well well.", "x"), judge(StatedClaims=())) == 0.0


def test_without_a_transcript_absence_cannot_be_told_but_support_can():
    about = case("It was lost. It was paid.", "It was paid.", transcript=None)
    found = result("faithfulness", about, judge(Supported=False))
    assert (found.status, found.reason) == ("unavailable", "no transcript to look facts up in")
    assert raw("faithfulness", about, judge(Supported=True)) == 1.0


@pytest.mark.parametrize("claims", ["a claim", [1], [""], ["x"] * 501, None])
def test_claims_that_break_the_contract_are_an_error(claims):
    assert isinstance(result("faithfulness", case(VOUCHER), judge(StatedClaims=claims, Supported=True)), Failed)


# -- relevancy and correctness


def test_three_facts_of_four_and_a_wrong_one_have_an_f1_of_three_quarters():
    about = case(" ".join([*LETTERS[:3], LETTERS[9]]), " ".join(LETTERS[:4]))
    found = result("answer_correctness", about, judge(SentenceSimilarity=(0.9,), SameFact=False))
    assert found.details["f1"] == 0.75
    assert found.details["raw"] == pytest.approx(0.5 * 0.75 + 0.5 * 0.9)
    assert found.value == 0.0
    assert found.details["missed"] == [LETTERS[3]]


def test_facts_are_matched_one_to_one():
    about = case("It was paid twice.", "It was paid. It has been paid.")
    found = result("answer_correctness", about, cosine(1.0))
    assert found.details["f1"] == pytest.approx(2 / 3)


def test_with_a_judge_the_facts_are_the_claims_of_both_sides():
    reported = {("It was paid late.",): ("it was paid", "it was late"), ("It was paid.",): ("it was paid",)}
    answer = judge(StatedClaims=lambda q: reported[q.statements], SentenceSimilarity=(1.0,), SameFact=False)
    assert result("answer_correctness", case("It was paid late.", "It was paid."), answer).details["f1"] == (
        pytest.approx(2 / 3)
    )


def test_claims_of_one_side_are_not_held_against_sentences_of_the_other():
    def one_side(question):
        return ("it was paid",) if question.statements == ("It was paid.",) else NoAnswer("too long")

    answer = judge(StatedClaims=one_side, SentenceSimilarity=(1.0,), SameFact=True)
    assert result("answer_correctness", case("It was paid late.", "It was paid."), answer).details["f1"] == 1.0


def test_a_wrong_label_is_a_wrong_fact_and_an_id_is_none():
    about = case({"sentiment": labels("a", "b")}, {"sentiment": labels("a", "c")})
    assert result("answer_correctness", about, cosine(1.0)).details["f1"] == 0.5
    assert raw("exact_match", about) == 0.75


def test_without_embeddings_relevancy_and_correctness_are_unavailable_and_say_so():
    about = case("It was paid.", input="Why?")
    for metric in ("answer_relevancy", "answer_correctness"):
        found = result(metric, about, lambda c, q: lexical.answer(c, q) if isinstance(q, SentenceSimilarity) else
                       judge(SameFact=True)(c, q))  # fmt: skip
        assert (found.status, "embeddings" in found.reason) == ("unavailable", True)


def test_the_same_text_is_as_close_as_can_be_and_an_empty_one_is_not():
    assert raw("answer_correctness", case()) == 1.0
    assert raw("answer_relevancy", case("Why?", input=" why? ")) == 0.0, "an echo is no answer"
    assert raw("answer_relevancy", case(" ", input="Why?")) == 0.0
    assert raw("answer_correctness", case("", "It was paid.")) == 0.0


@pytest.mark.parametrize(("cosine_given", "kept"), [(-0.2, 0.0), (1.0000001, 1.0), (0.5, 0.5)])
def test_a_cosine_is_clamped(cosine_given, kept):
    assert raw("answer_relevancy", case(input="Why?"), cosine(cosine_given)) == kept


@pytest.mark.parametrize("wrong", [1.5, True, "0.9", math.nan, None])
def test_a_cosine_that_is_none_is_an_error(wrong):
    assert isinstance(result("answer_relevancy", case(input="Why?"), cosine(wrong)), Failed)


MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "First?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "And then?"},
    {"role": "assistant", "content": "Looking."},
]


@pytest.mark.parametrize(("given_input", "question"), [("Why?", "Why?"), (MESSAGES, "And then?"), (["Why?"], "Why?")])
def test_the_question_is_what_the_user_asked_last(given_input, question):
    requested = []
    result("answer_relevancy", case(input=given_input), lambda _, q: requested.append(q) or NoAnswer("no"))
    assert requested == [SentenceSimilarity((("It was refunded.", question),))]


@pytest.mark.parametrize("given_input", [None, "", " ", [], [{"role": "system", "content": "Be kind."}]])
def test_without_a_question_relevancy_is_unavailable(given_input):
    assert "question is not known" in result("answer_relevancy", case(input=given_input), cosine(1.0)).reason


# -- context


def test_documents_are_the_pieces_where_there_are_any_and_else_turns():
    requested = []

    def answer(_, question):
        requested.append(question)
        return NoAnswer("no")

    turns = (Utterance("Hello", "agent"), Utterance("Bye"))
    for more in ({"context": ("doc",), "transcript": turns}, {"context": (), "transcript": turns}, {}):
        result("contextual_recall", case(**more), answer)
    reported = [("doc",), ("Hello", "Bye"), tuple(CALL.splitlines())]
    assert requested == [question(each) for each in reported for question in (PiecesUsed, PiecesNeeded)]


def test_the_three_of_them_ask_two_questions():
    requested = []
    wanted = [m for m in METRICS if m.id.startswith("contextual")]
    about = case()
    run({m.id: m.start(about) for m in wanted}, lambda q: requested.append(q) or NoAnswer("no"))
    assert [type(question) for question in requested] == [PiecesUsed, PiecesNeeded]


@pytest.mark.parametrize(
    ("used", "needed", "precision", "recall"),
    [([], [], 1.0, 1.0), ([0], [], 0.0, 0.0), ([], [0], 0.0, 0.0), ([0, 1], [1, 2, 3], 0.5, 1 / 3)],
)
def test_nothing_used_and_nothing_needed_is_perfect_and_one_of_them_is_not(used, needed, precision, recall):
    found = ContextUse(used=frozenset(used), needed=frozenset(needed), of="turns")
    assert (found.precision, found.recall) == (precision, recall)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_precision_and_recall_agree_with_scikit_learn(marks):
    used, needed = [u for u, _ in marks], [n for _, n in marks]
    found = ContextUse(
        used=frozenset(i for i, u in enumerate(used) if u),
        needed=frozenset(i for i, n in enumerate(needed) if n),
        of="x",
    )
    empty = float(not any(used) and not any(needed))
    assert found.precision == pytest.approx(precision_score(needed, used, zero_division=empty))
    assert found.recall == pytest.approx(recall_score(needed, used, zero_division=empty))


@pytest.mark.parametrize("wrong", [None, (True,), (1, 0), "ab", (True, None)])
def test_marks_that_do_not_fit_the_pieces_are_an_error(wrong):
    about = case(context=("a", "b"))
    assert isinstance(result("contextual_recall", about, judge(PiecesUsed=wrong, PiecesNeeded=(True, True))), Failed)


def test_words_tell_which_turns_were_drawn_on():
    turns = (
        Utterance("I was charged twice for my order"), Utterance("The weather is lovely today, is it not"),
        Utterance("I see the duplicate charge and refund it"),
    )  # fmt: skip
    about = case("Duplicate charge refunded. Lovely weather.", "Customer charged twice for order. Duplicate charge.",
                 transcript=turns)  # fmt: skip
    found = result("contextual_recall", about, lexical.answer)
    assert (found.details["used"], found.details["needed"], found.method) == ([1, 2], [0, 2], Method.LEXICAL)
    assert (found.details["raw"], raw("contextual_precision", about, lexical.answer)) == (0.5, 0.5)


@pytest.mark.parametrize(
    "output", ["Zurückerstattung wurde veranlasst. Alles erledigt heute.", "Refund", "", "退款已处理完毕"]
)
def test_words_that_lead_to_no_piece_tell_nothing(output):
    assert raw("contextual_precision", case(output), lexical.answer) == "unavailable"


# -- judged


def test_the_right_conclusion_for_a_wrong_reason_is_half_a_step():
    found = result("argument_correctness", case(), steps(0.5))
    assert (found.details["raw"], found.value) == (0.5, 0.0)


def test_no_reasoning_where_the_reference_reasons_is_wrong_and_where_it_does_not_is_no_matter():
    assert raw("argument_correctness", case(), steps(expected=True)) == 0.0
    assert isinstance(result("argument_correctness", case(), steps(expected=False)), NotApplicable)


BROKEN_STEPS = [
    {}, {"steps": []}, {"steps": [], "expected": 1}, {"steps": {}, "expected": True}, "steps",
    {"steps": [{"step": "so", "score": 0.7}], "expected": True}, {"steps": [{"score": 1}], "expected": True},
    {"steps": [{"step": "so", "score": True}], "expected": True}, {"steps": [[]], "expected": True},
]  # fmt: skip


@pytest.mark.parametrize("wrong", BROKEN_STEPS)
def test_reasoning_that_breaks_the_contract_is_an_error(wrong):
    assert isinstance(result("argument_correctness", case(), judge(SoundReasoning=wrong)), Failed)


def test_instructions_are_the_cases_own_and_else_the_system_prompts():
    requested = []
    listed = {"config": {"instructions": ["Be brief", "Use JSON"]}}
    for more in ({**listed, **PROMPTED}, PROMPTED):
        result("instruction_following", case(**more), lambda _, q: requested.append(q) or NoAnswer("no"))
    assert requested == [FollowsInstructions(("Be brief", "Use JSON")), FollowsInstructions(None)]


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "unavailable"),
        ({"system_prompt": " "}, "unavailable"),
        ({"config": {"instructions": "Be brief"}}, "unavailable"),
        ({"config": {"instructions": ["Be brief", ""]}}, "unavailable"),
        ({"config": {"instructions": ["x"] * 501}}, "unavailable"),
        ({"config": {"instructions": []}}, "not_applicable"),
    ],
)
def test_without_a_list_of_instructions_there_is_no_value(more, status):
    assert raw("instruction_following", case(**more), followed(1, 1)) == status


def test_a_system_prompt_without_instructions_is_not_applicable():
    assert raw("instruction_following", case(**PROMPTED), followed(0, 0)) == "not_applicable"


@pytest.mark.parametrize(
    "wrong", [[], {}, {"instructions": [{"instruction": "a", "followed": 1}]}, {"instructions": [{"followed": True}]}]
)
def test_an_account_of_instructions_that_breaks_the_contract_is_an_error(wrong):
    assert isinstance(result("instruction_following", case(**PROMPTED), judge(FollowsInstructions=wrong)), Failed)


def test_as_many_instructions_are_answered_as_were_listed():
    listed = {"config": {"instructions": ["Be brief", "Use JSON"]}}
    assert isinstance(result("instruction_following", case(**listed), followed(1, 1)), Failed)
    assert result("instruction_following", case(**listed), followed(1, 2)).details["not_followed"] == ["Use JSON"]


@pytest.mark.parametrize("metric", ["argument_correctness", "instruction_following"])
def test_only_a_judge_can_tell(metric):
    assert raw(metric, case(**PROMPTED), lexical.answer) == "unavailable"


# -- exact match


def test_negative_is_negative_as_in_the_seeds_example():
    assert raw("exact_match", case({"sentiment": "Negative"}, {"sentiment": "negative"})) == 1.0
    assert raw("exact_match", case("negative", "negative")) == 1.0
    assert raw("exact_match", case("neutral", "negative")) == 0.0


def test_a_reference_of_prose_alone_has_nothing_to_match():
    assert raw("exact_match", case("It was paid.", "It was paid.")) == "not_applicable"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=20))
def test_exact_match_of_labels_agrees_with_scikit_learn(pairs):
    found, expected = ({str(n): pair[side] for n, pair in enumerate(pairs)} for side in (0, 1))
    agreed = accuracy_score(list(expected.values()), list(found.values()))
    assert raw("exact_match", case(found, expected)) == pytest.approx(agreed)


# -- consistency


def test_the_seeds_three_runs_are_consistent():
    assert consistency_of([0.91, 0.90, 0.88]) == pytest.approx(
        1 - np.std([0.91, 0.90, 0.88]) / np.mean([0.91, 0.90, 0.88])
    )
    assert consistency_of([0.91, 0.90, 0.88]) > 0.98


@given(st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=2, max_size=20))
def test_consistency_agrees_with_numpy_and_stays_in_bounds(scores):
    expected = max(0.0, 1 - np.std(scores) / np.mean(scores)) if any(scores) else 1.0
    assert consistency_of(scores) == pytest.approx(expected, abs=1e-9)
    assert 0 <= consistency_of(scores) <= 1
    assert consistency_of(scores) == pytest.approx(consistency_of(scores[::-1]))


@given(st.fractions(0, 1), st.integers(2, 9))
def test_equal_runs_are_consistent_and_so_is_always_being_wrong(value: Fraction, count):
    assert consistency_of([float(value)] * count) == pytest.approx(1.0)
    assert consistency_of([0.0] * count) == 1.0


def test_scores_that_lie_far_apart_are_floored_at_zero():
    assert consistency_of([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]) == 0.0


@pytest.mark.parametrize("repeats", [None, ()])
def test_one_run_is_not_enough(repeats):
    assert "fewer than two runs" in result("consistency", case(repeats=repeats)).reason


def test_more_runs_than_can_be_scored_are_not_scored():
    assert isinstance(result("consistency", case(repeats=("It was refunded.",) * MAX_RUNS)), Unavailable)


ENTITIES = {"detected_keywords": ["refund"], "detected_topics": [], "valid_entity_set": ["refund"]}
WORSE = {**ENTITIES, "detected_topics": ["order"]}


def test_runs_of_a_call_task_are_scored_by_its_rubric_and_an_invalid_one_counts_nothing():
    about = case(
        ENTITIES, ENTITIES, repeats=(WORSE, "not JSON"), task="entity", config={"keywords": ["refund", "order"]}
    )
    found = result("consistency", about, lexical.answer)
    composites = [
        score(case(output, ENTITIES, config=about.config), RUBRICS["entity"], created_at=AT).composite or 0.0
        for output in (ENTITIES, WORSE, "not JSON")
    ]
    assert found.details == {"raw": consistency_of(composites), "threshold": 0.9, "scores": composites, "by": "entity"}
    assert composites[0] == 1.0
    assert composites[2] == 0.0


def test_every_run_invalid_is_consistent_though_wrong():
    assert raw("consistency", case("x", ENTITIES, repeats=("y",), task="entity")) == 1.0


def test_runs_of_any_other_task_are_scored_by_answer_correctness():
    found = result("consistency", case(repeats=("It was refunded.", "It was lost."), task="agent"), judge(
        SentenceSimilarity=(0.0,), SameFact=False))  # fmt: skip
    assert (found.details["by"], found.details["scores"]) == ("answer_correctness", [1.0, 1.0, 0.0])


@pytest.mark.parametrize("failed", [True, False])
def test_a_run_that_cannot_be_scored_leaves_no_value_and_is_named(failed):
    found = result("consistency", case(repeats=("Lost.",)), lambda _c, _q: NoAnswer("the model is down", failed=failed))
    assert isinstance(found, Failed if failed else Unavailable)
    assert found.reason == "run 2 has no score: the model is down"


def test_the_judgement_is_carried():
    judgement = Judgement("m", "v", 0.01)

    def answer(_case, question):
        value = (0.5,) if isinstance(question, SentenceSimilarity) else True
        return Answer(value=value, method=Method.JUDGE, judgement=judgement)

    def without_claims(about, question):
        return NoAnswer("no") if isinstance(question, StatedClaims) else answer(about, question)

    found = result("consistency", case(repeats=("Lost it.",)), without_claims)
    assert (found.judgements, found.method) == ((judgement,), Method.JUDGE)


# -- the whole


def perfect(_case, question):
    """A judge that finds no fault, and embeddings to which the output answers the question."""
    match question:
        case SentenceSimilarity(pairs):
            return Answer(value=tuple(1.0 for _ in pairs), method=Method.EMBEDDING)
        case SoundReasoning():
            return steps(1.0)(None, question)
        case FollowsInstructions():
            return followed(1, 1)(None, question)
        case PiecesUsed(reported) | PiecesNeeded(reported):
            return Answer(value=tuple(True for _ in reported), method=Method.JUDGE)
        case SameFact() | Supported():
            return Answer(value=True, method=Method.JUDGE)
        case _:
            return lexical.answer(_case, question)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
).filter(lambda value: value is not None))  # fmt: skip
def test_the_expected_outcome_itself_is_perfect(value):
    about = case(value, value, input="Why?", repeats=(value,), **PROMPTED)
    found = score(about, RUBRIC, answer=perfect, created_at=AT)
    missed = [s for s in found.scores if isinstance(s.result, Scored) and s.result.value != 1.0]
    assert [s.metric for s in missed if s.metric != "answer_relevancy"] == []
    assert not [s for s in found.scores if isinstance(s.result, Failed)]


def test_a_perfect_answer_scores_one():
    found = score(
        case("Paid", "Paid", input="Why?", repeats=("Paid",), **PROMPTED), RUBRIC, answer=perfect, created_at=AT
    )
    assert (found.composite, found.passed, found.state) == (1.0, True, State.VALID)
