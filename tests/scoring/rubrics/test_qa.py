"""qa: what no golden story tells of seed 000, Task 1, and the edges that rubrics §1–3 settle."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import nobody
from sidejudge.scoring.questions.kinds import BorneOut
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import Method, Scored
from sidejudge.scoring.rubrics import RUBRICS, qa
from sidejudge.scoring.verdict.verdict import State
from tests.scoring.rubrics.made import Made

RUBRIC = RUBRICS["qa"]
MADE = Made("qa")
verdict, line = MADE.verdict, MADE.line
CALL = "[00:12] Agent: Good morning, how can I help?\n[01:23] Agent: I have verified your account."


def question(number, score, *, most=5, kind="SCORE", reason="Agent said 'Good morning' at 00:12."):
    return {"question_id": f"Q{number}", "score": score, "max_score": most, "type": kind, "reason": reason}


def case(given, expected, **more):
    return Case(
        case_id="c",
        model_output={"questions": given},
        expected_outcome={"questions": expected},
        **{"transcript": CALL, **more},
    )


ONE = case([question(1, 5)], [question(1, 5)])


def value(metric, about):
    result = getattr(qa, metric).measure(about)
    return result.value if isinstance(result, Scored) else result.status


def test_eighteen_of_twenty_questions_is_exactly_acceptable():
    expected = [question(n, 5, kind="PASS_FAIL") for n in range(20)]
    given = [question(n, 0 if n < 2 else 5, kind="PASS_FAIL") for n in range(20)]
    assert value("question_score_accuracy", case(given, expected)) == 0.90
    assert line("question_score_accuracy", case(given, expected)).rating == "acceptable"


def test_gaps_are_measured_on_each_questions_own_scale():
    expected = [question(1, 5), question(2, 2, most=2), question(3, 9, most=10)]
    given = [question(1, 4), question(2, 1, most=2), question(3, 8, most=10)]
    assert value("score_gap_accuracy", case(given, expected)) == pytest.approx(0.733, abs=5e-4)


@pytest.mark.parametrize(
    ("given", "right"), [(3.5, True), (2.5, True), (3.51, False), (2.4, False), (3, True)]
)  # fmt: skip
def test_a_score_question_has_a_margin_of_a_tenth_of_its_scale(given, right):
    assert value("question_score_accuracy", case([question(1, given)], [question(1, 3)])) == right


def test_the_margin_grows_with_the_scale():
    assert value("question_score_accuracy", case([question(1, 8, most=10)], [question(1, 9, most=10)])) == 1
    assert value("question_score_accuracy", case([question(1, 1, most=2)], [question(1, 2, most=2)])) == 0


def test_a_pass_fail_question_has_no_margin():
    about = case([question(1, 4.9, kind="PASS_FAIL")], [question(1, 5, kind="PASS_FAIL")])
    assert value("question_score_accuracy", about) == 0


def test_the_reference_decides_scale_and_type_and_the_models_own_are_reported():
    about = case([question(1, 4.8, most=100, kind="SCORE")], [question(1, 5, kind="PASS_FAIL")])
    result = qa.question_score_accuracy.measure(about)
    assert result.value == 0
    assert result.details["differing_scale_or_type"] == ["Q1"]


def test_a_skipped_question_is_wrong_with_a_gap_of_one():
    about = case([question(1, 5)], [question(1, 5), question(2, 5)])
    assert value("question_score_accuracy", about) == 0.5
    assert value("score_gap_accuracy", about) == 0.5


def test_a_score_outside_the_scale_cannot_push_the_mean_below_zero():
    assert value("score_gap_accuracy", case([question(1, 1000)], [question(1, 0)])) == 0


def test_unknown_and_repeated_ids_are_ignored_and_reported():
    about = case([question(1, 5), question(1, 0), question(9, 5)], [question(1, 5)])
    result = qa.question_score_accuracy.measure(about)
    assert result.value == 1
    assert (result.details["unknown_ids"], result.details["repeated_ids"]) == (["Q9"], ["Q1"])
    assert verdict(about).state is State.VALID


def test_items_are_matched_by_id_whatever_their_order():
    expected = [question(1, 5), question(2, 0), question(3, 3)]
    assert value("question_score_accuracy", case(expected[::-1], expected)) == 1


def test_the_mean_gap_is_the_same_to_the_last_digit_whatever_the_order_of_the_questions():
    expected = [question(gap, 9, most=10) for gap in (1, 2, 3)]
    given = [question(gap, 9 - gap, most=10) for gap in (1, 2, 3)]
    found = {value("score_gap_accuracy", case(given, list(order))) for order in permutations(expected)}
    assert found == {0.8}


def test_nothing_expected_and_nothing_given_is_perfect_and_one_side_alone_is_not():
    assert value("question_score_accuracy", case([], [])) == 1
    assert value("score_gap_accuracy", case([], [])) == 1
    assert value("question_score_accuracy", case([question(1, 5)], [])) == 0


def test_a_false_pass_counts_over_pass_fail_questions_only():
    expected = [question(1, 0, kind="PASS_FAIL"), question(2, 5, kind="PASS_FAIL"), question(3, 0)]
    given = [question(1, 5, kind="PASS_FAIL"), question(2, 5, kind="PASS_FAIL"), question(3, 5)]
    assert value("compliance_false_pass_rate", case(given, expected)) == 0.5


def test_exactly_three_percent_is_still_acceptable():
    expected = [question(n, 0 if n < 3 else 5, kind="PASS_FAIL") for n in range(100)]
    given = [question(n, 5, kind="PASS_FAIL") for n in range(100)]
    found = verdict(case(given, expected))
    assert (found.state, found.passed) == (State.VALID, True)
    assert next(s.rating for s in found.scores if s.metric == "compliance_false_pass_rate") == "acceptable"


def test_the_seeds_example_of_a_reason_counts_twice_and_praise_not_at_all():
    good = "Agent greeted the customer at 00:12 by saying 'Good morning, how can I help?'"
    about = case(
        [question(1, 5, reason=good), question(2, 5, reason="Agent was polite")], [question(1, 5), question(2, 5)]
    )
    reasoning = line("evidence_backed_reasoning", about).result
    assert reasoning.value == 0.5
    assert reasoning.method is Method.LEXICAL
    assert reasoning.details["without_evidence"] == ["Q2"]


def test_a_reason_without_evidence_is_not_factual_either():
    def odd(_case, requested):
        return Answer(value=isinstance(requested, BorneOut), method=Method.JUDGE)

    assert line("evidence_backed_reasoning", ONE, odd).result.value == 0


@pytest.mark.parametrize("reason", ["", "   "])
def test_no_reasons_at_all_is_zero(reason):
    about = case([question(1, 5, reason=reason)], [question(1, 5)])
    assert line("evidence_backed_reasoning", about).result.value == 0


def test_without_a_transcript_reasons_cannot_be_told_and_the_verdict_is_partial():
    found = verdict(case([question(1, 5)], [question(1, 5)], transcript=None))
    assert (found.state, found.coverage, found.composite, found.passed) == (
        State.PARTIAL,
        pytest.approx(0.9),
        1.0,
        True,
    )
    assert "evidence_backed_reasoning unavailable: no transcript" in found.reason


@pytest.mark.parametrize(("failed", "status"), [(True, "error"), (False, "unavailable")])
def test_a_question_that_nobody_answered_leaves_the_metric_without_a_value(failed, status):
    found = line("evidence_backed_reasoning", ONE, lambda *_: NoAnswer("timeout", failed=failed))
    assert found.result.status == status


@pytest.mark.parametrize("wrong", ["yes", 1, None])
def test_an_answer_that_is_neither_yes_nor_no_is_an_error(wrong):
    found = line("evidence_backed_reasoning", ONE, lambda *_: Answer(value=wrong, method=Method.JUDGE))
    assert found.result.status == "error"


@pytest.mark.parametrize("broken", ["no JSON", {"questions": [{"question_id": "Q1"}]}, None, []])
def test_a_broken_structure_makes_the_rest_not_applicable_and_the_composite_invalid(broken):
    about = Case(case_id="c", model_output=broken, expected_outcome={"questions": [question(1, 5)]}, transcript=CALL)
    found = verdict(about)
    assert (found.state, found.composite, found.passed) == (State.INVALID, None, False)
    assert found.blockers == ("response_structure_compliance",)
    assert {s.result.status for s in found.scores} == {"scored", "not_applicable"}


@pytest.mark.parametrize(
    "broken",
    [
        {"question_id": "Q1", "score": True, "max_score": 5, "type": "SCORE"},
        {"question_id": "Q1", "score": "5", "max_score": 5, "type": "SCORE"},
        {"question_id": "Q1", "score": 5, "max_score": 0, "type": "SCORE"},
        {"question_id": "Q1", "score": 5, "max_score": 5, "type": "pass"},
        {"score": 5, "max_score": 5, "type": "SCORE"},
        "Q1",
    ],
)
def test_a_reference_that_cannot_be_used_makes_the_case_unavailable_not_wrong(broken):
    found = verdict(case([broken], [broken]), answer=nobody)
    assert found.state is State.INCOMPLETE
    assert "expected_outcome.questions[0]" in found.reason


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), min_size=1, max_size=12))
def test_a_score_moved_towards_the_expected_one_never_lowers_a_metric(rows):
    def at(given):
        expected = [question(n, e, kind="PASS_FAIL" if p else "SCORE") for n, (_, e, p) in enumerate(rows)]
        return case(
            [question(n, g, kind=e["type"]) for (n, g), e in zip(enumerate(given), expected, strict=True)], expected
        )

    before = at([g for g, _, _ in rows])
    after = at([rows[0][1], *(g for g, _, _ in rows[1:])])
    for metric in ("question_score_accuracy", "score_gap_accuracy"):
        assert 0 <= value(metric, before) <= value(metric, after) <= 1


@pytest.mark.parametrize(
    ("score", "most", "wrong"),
    [(0.1 + 0.2, 0.3, 1), (0.3, 0.3, 1), (0.29, 0.3, 0), (7, 5, 1), (5, 5, 1), (4.9, 5, 0), (-5, 5, 0)],
)
def test_full_marks_or_more_where_the_reference_gives_none_are_a_false_pass(score, most, wrong):
    about = case([question(1, score, most=most, kind="PASS_FAIL")], [question(1, 0, most=most, kind="PASS_FAIL")])
    assert value("compliance_false_pass_rate", about) == wrong


def test_a_gap_that_only_floats_see_is_none():
    assert value("score_gap_accuracy", case([question(1, 0.1 + 0.2)], [question(1, 0.3)])) == 1.0


def test_a_score_that_is_there_but_cannot_be_used_is_not_called_skipped():
    about = case([question(1, 1e16)], [question(1, 5), question(2, 5)])
    reason = qa.question_score_accuracy.measure(about).reason
    assert "Q1 (score not usable, expected 5)" in reason
    assert "Q2 (skipped, expected 5)" in reason


@pytest.mark.parametrize(
    "expected",
    [
        {"questions": [{**question(1, 5), "score": "5"}]},
        {"questions": [{"question_id": "Q1"}]},
        {"questions": "none"},
        {"verdict": "ok"},
        "{broken",
        "1e999",
    ],
)
def test_a_faulty_reference_is_never_the_models_fault(expected):
    about = Case(case_id="c", model_output={"questions": [question(1, 5)]}, expected_outcome=expected, transcript=CALL)
    found = verdict(about)
    assert (found.state, found.passed) == (State.INCOMPLETE, None)
    assert "response_structure_compliance unavailable: expected_outcome" in found.reason


def test_a_verdict_stays_small_whatever_the_case_holds():
    long = "q" * 100_000
    expected = [{**question(n, 5), "question_id": f"{long}{n}", long: 1} for n in range(30)]
    for reported in (expected, [], [{**one, "score": 0} for one in expected], [{long + "x": 1}], {long: long}):
        assert len(str(verdict(case(reported, expected)).to_json())) < 60_000
