"""Drift: a judge that moved is found, with what moved and whither; one that only wavers is not, day after day."""

from __future__ import annotations

import random

from sidejudge.scoring.judging.drift import far, measures
from sidejudge.scoring.questions.kinds import (
    CANNOT_TELL,
    AskDeclared,
    GradeAgent,
    GradeDimension,
    GradeQuality,
    SummaryClaims,
    Supported,
)
from sidejudge.scoring.statistics.judge_drift import LEAST, drifts

DAYS, ERROR = 30, 0.05


def test_every_kind_of_answer_has_measures_that_can_be_compared():
    assert measures(Supported("x"), True) == {"fabrication_free_rate": 1.0}
    assert measures(GradeAgent("tool_routing"), {"score": 3, "failure_code": "x", "turns": [1], "reason": "y"}) == {
        "tool_routing.score": 3.0
    }
    assert measures(GradeDimension("completeness"), {"level": "poor", "reason": "y"}) == {"completeness.level": 0.3}
    assert measures(GradeQuality(), {"answer_quality": 0.8, "completeness": 1, "reasoning": "y"}) == {
        "quality.answer_quality": 0.8, "quality.completeness": 1.0
    }  # fmt: skip
    assert measures(SummaryClaims(("f",)), ("a", "b")) == {"summary_claims.count": 2.0}


def test_what_moved_stands_first_with_its_direction():
    moved = [({"a": 4.0, "b": 1.0}, {"a": 3.0, "b": 1.0})] * 14 + [({"a": 4.0, "b": 1.0}, {"a": 4.0, "b": 0.0})] * 6
    first, second = drifts(moved, ERROR / DAYS)
    assert (first.metric, first.n, first.higher, first.lower, first.moved) == ("a", 20, 0, 14, True)
    assert (second.metric, second.moved) == ("b", False)


def test_few_prompts_prove_nothing():
    (found,) = drifts([({"a": 1.0}, {"a": 0.0})] * (LEAST - 1), 0.5)
    assert found.moved is None


def test_a_judge_that_wavers_raises_a_false_alarm_in_fewer_than_the_promised_share_of_months():
    chance = random.Random(11)

    def noisy(one):
        return {m: float(chance.random() < 0.7) if chance.random() < 0.3 else value for m, value in one.items()}

    alarms = months = 0
    for _ in range(200):
        months += 1
        before = [{metric: float(chance.random() < 0.7) for metric in "abcd"} for _ in range(30)]
        days = (drifts([(one, noisy(one)) for one in before], ERROR / DAYS) for _ in range(DAYS))
        alarms += any(each.moved for day in days for each in day)
    assert alarms <= 1.5 * ERROR * months


def test_a_judge_that_became_stricter_is_found_on_the_first_day_mostly():
    chance = random.Random(12)
    found = 0
    for _ in range(100):
        pairs = []
        for _ in range(30):
            before = float(chance.choice((3, 4, 5)))
            pairs.append(({"score": before}, {"score": before - (chance.random() < 0.6)}))
        found += bool(drifts(pairs, ERROR / DAYS)[0].moved)
    assert found >= 90


CATEGORIES = ("warm", "neutral", "curt")


def days_until_found(before, answer, *, far, days=3):
    """The day on which a judge that answers so is found; 0: not within these days."""
    quiet = {}
    for day in range(1, days + 1):
        (found,) = drifts(
            [({"m": old}, {"m": answer(number, old)}) for number, old in enumerate(before)], ERROR / DAYS, far=far,
            quiet=quiet,
        )  # fmt: skip
        if found.moved:
            return day
        quiet["m"] = (found.changed, found.n)
    return 0


def test_half_of_the_answers_that_moved_are_found_whatever_they_are_and_wherever_they_went():
    chance = random.Random(13)
    missed = 0
    for _ in range(50):
        half = set(chance.sample(range(40), 20))
        words = [chance.choice(CATEGORIES) for _ in range(40)]
        away = {n: chance.choice([each for each in CATEGORIES if each != words[n]]) for n in half}
        answers = [float(chance.random() < 0.5) for _ in range(40)]
        grades = [float(chance.choice((2, 3, 4))) for _ in range(40)]
        missed += not days_until_found(words, away.get, far={})
        missed += not days_until_found(answers, lambda n, old: 1 - old if n in half else old, far={"m": 0.0})  # noqa: B023  # asked at once
        missed += not days_until_found(grades, lambda n, old: old + (n in half), far={"m": 1.0})  # noqa: B023  # likewise
    assert missed <= 0.05 * 150


def test_categories_that_all_moved_on_by_one_are_found_on_the_first_day():
    following = dict(zip(CATEGORIES, CATEGORIES[1:] + CATEGORIES[:1], strict=True))
    assert days_until_found([*CATEGORIES * 13], lambda _, old: following[old], far={}) == 1


def test_a_judge_that_has_always_mixed_its_answers_up_raises_no_alarm_by_it():
    chance = random.Random(14)
    alarms = 0
    for _ in range(60):
        words, quiet = [chance.choice(CATEGORIES) for _ in range(40)], {}
        for _ in range(10):
            now = [chance.choice(CATEGORIES) if chance.random() < 0.25 else old for old in words]
            (found,) = drifts(
                [({"m": x}, {"m": y}) for x, y in zip(words, now, strict=True)], ERROR / DAYS, quiet=quiet
            )
            alarms += bool(found.moved)
            before = quiet.get("m", (0, 0))
            quiet["m"] = (before[0] + found.changed, before[1] + found.n)
    assert alarms <= 3


def test_a_category_and_the_bounds_of_each_kind_of_answer_are_measured():
    tone = AskDeclared("tone-a1b2c3", "t", "one_of", CATEGORIES)
    stars = AskDeclared("stars-a1b2c3", "s", "scale", (1, 5))
    assert measures(tone, "warm") == {"tone": "warm"}
    assert (measures(stars, 4.0), far(stars, 4.0)) == ({"stars": 4.0}, {"stars": 1.0})
    assert measures(stars, CANNOT_TELL) == {}
    assert far(Supported("x"), True) == {"fabrication_free_rate": 0.0}
    assert far(SummaryClaims(("f",)), ("a", "b")) == {}
    assert far(GradeDimension("completeness"), {"level": "poor", "reason": "y"}) == {"completeness.level": 0.25}
