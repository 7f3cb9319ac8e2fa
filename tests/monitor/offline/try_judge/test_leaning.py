"""Leaning: judges that are wrong in one direction are found over the shipped questions, and good ones are not blamed.

What a judge answers is made here, without a network: the report sees nothing but answers.
"""

from __future__ import annotations

import json
import random

import pytest

from sidejudge.monitor.offline.try_judge.run import golden_set
from sidejudge.scoring.calibration.judge_report import Effort, GoldenAnswer, judge_report, unproven
from sidejudge.scoring.judging.beside import OptionChosen, YesOrNo, compared, too_little, too_much
from sidejudge.scoring.judging.golden import TRAPS, facts
from sidejudge.scoring.judging.request import requests
from sidejudge.scoring.questions.kinds import AskDeclared
from tests.fakes import golden_judge

ASKED = [(case, question) for case in golden_set() for question in case.questions]


def read(case, golden, keys):
    """The facts of an answer, read as a judge's text is."""
    ((request,), _) = requests(case.case, [golden.question], context_tokens=32_000)
    answer = keys
    if request.ids:
        metric = getattr(golden.question, "metric", golden.metric)
        answer = {"answers": [{**keys, "id": request.ids[0], "metric": metric}]}
    return facts(request.read(json.dumps(answer)).answers[golden.question].value)


ANSWERS = {
    golden.name: tuple(read(case, golden, golden_judge.answer(golden, wrong=wrong)) for wrong in (False, True))
    for case, golden in ASKED
}


def report(wrong=lambda _: False, given=lambda _: None, only=lambda _: True):
    """What is reported of a judge that answers rightly but where ``wrong`` says so, or ``given`` has other facts."""
    answers = [
        GoldenAnswer(question=golden, given=(given(golden) or ANSWERS[golden.name][bool(wrong(golden))],))
        for _, golden in ASKED
        if only(golden)
    ]
    return judge_report("judge", answers, Effort(), cases=len(answers), timeout_s=60.0)


def in_direction(side):
    return {golden.name for _, golden in ASKED if any(map(side, compared(golden, ANSWERS[golden.name][1])))}


LENIENT, STRICT = in_direction(too_much), in_direction(too_little) - in_direction(too_much)


def kinds(found):
    return {each.partition(":")[0] for each in found.findings}


def test_right_answers_lean_nowhere():
    for _, golden in ASKED:
        beside = compared(golden, ANSWERS[golden.name][0])
        assert not any(too_much(one) or too_little(one) for one in beside), golden.name
        assert all(one.given == one.right for one in beside if isinstance(one, OptionChosen | YesOrNo)), golden.name
    assert report().findings == ()


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_a_judge_that_says_yes_to_a_share_of_what_should_be_a_no_is_lenient(share):
    chance = random.Random(7)
    for _ in range(20):
        found = report(lambda each: ANSWERS[each.name][1].get("value") is True and chance.random() < share)
        assert "lenient" in kinds(found)
        assert "strict" not in kinds(found)
        assert found.leaning.specificity.value < 0.8


@pytest.mark.parametrize(("names", "how"), [(LENIENT, "lenient"), (STRICT, "strict")])
def test_grades_that_lean_are_found_apart_from_yes_and_no(names, how):
    chance = random.Random(8)
    for _ in range(20):
        wrong = {
            each for each in sorted(names) if chance.random() < 0.8 and type(ANSWERS[each][1].get("value")) is not bool
        }
        assert f"{how} grades" in kinds(report(lambda each, wrong=wrong: each.name in wrong))


def middle(golden):
    """The answer in the middle of each scale, where there is one."""
    right = ANSWERS[golden.name][0]
    ends = {"accuracy_score": 1, "faithfulness_score": 1, "level": "acceptable", "score": 3, "lowest": 0.5}
    ends |= dict.fromkeys(("answer_quality", "factual_correctness", "completeness"), 0.5)
    if isinstance(golden.question, AskDeclared) and golden.question.kind in ("scale", "number"):
        low, high = golden.question.choices
        ends["value"] = (low + high) // 2
    return {name: ends.get(name, fact) for name, fact in right.items()}


def test_a_judge_that_always_gives_the_middle_is_compressed_and_neither_lenient_nor_strict():
    found = report(given=middle)
    assert "compressed grades" in kinds(found)
    assert found.leaning.compression.lower > 0.5
    assert not {"lenient", "strict"} & kinds(found)


@pytest.mark.parametrize(("end", "word"), [(0, "first"), (-1, "last")])
def test_a_judge_that_takes_the_option_at_one_end_of_the_list_is_found(end, word):
    def given(golden):
        of_options = isinstance(golden.question, AskDeclared) and golden.question.kind == "one_of"
        return {"value": golden.question.choices[end]} if of_options else None

    found = report(given=given)
    assert f"drawn to the {word} option" in kinds(found)
    assert "confuses options" in kinds(found)


def test_the_longer_side_of_a_comparison_is_not_the_better_one():
    def given(golden):
        sides = CASES[golden.name].model_output
        return {"value": max(sides, key=lambda side: len(sides[side]))} if golden.name in ASKED_BETTER else None

    found = report(given=given)
    assert "biased by verbosity" in kinds(found)


CASES = {golden.name: case.case for case, golden in ASKED}
ASKED_BETTER = {golden.name: golden for _, golden in ASKED if golden.name.startswith("better-")}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_judge_that_goes_by_one_trap_is_found_by_its_pairs_alone(trap):
    found = report(lambda each: each.trap == trap)
    biased = {each.trap for each in found.biases if each.biased}
    assert biased == {trap}


@pytest.mark.parametrize("share", [0.0, 0.03, 0.07])
def test_a_good_judge_that_is_wrong_now_and_then_is_not_blamed(share):
    chance = random.Random(9)
    blamed = sum(bool(report(lambda _: chance.random() < share).findings) for _ in range(40))
    assert blamed <= 1


def test_a_judge_that_guesses_is_wrong_in_every_direction():
    chance = random.Random(10)
    assert {"lenient", "strict", "wrong", "compressed grades"} <= kinds(report(lambda _: chance.random() < 0.5))


def test_a_metric_in_which_all_errors_point_one_way_is_named():
    found = report(lambda each: each.metric == "is_factual" and each.name in LENIENT)
    assert any(each.startswith("lenient about is_factual: ") for each in found.findings)


def test_the_sides_of_comparisons_are_balanced_and_swapped_by_the_trap():
    right = [golden.right["value"] for golden in ASKED_BETTER.values() if golden.trap is None]
    assert right.count("A") == right.count("B") == 5
    for golden in ASKED_BETTER.values():
        swapped = golden.trap == "position"
        assert golden.twin is None or (golden.right != ASKED_BETTER[golden.twin].right) is swapped


def test_of_few_questions_nothing_is_praised():
    only = report(only=lambda each: each.name == "facts.1")
    assert only.findings == ()
    assert unproven(only) == ["sensitivity (1 answers)", "specificity (nothing should be answered no)"]
    assert unproven(report()) == []
