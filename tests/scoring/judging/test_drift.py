"""Drift: a judge that moved is found, with what moved and whither; one that only wavers is not, day after day."""

from __future__ import annotations

import random

from scoring.judging.drift import measures
from scoring.questions.agent import GradeAgent
from scoring.questions.dimensions import GradeDimension
from scoring.questions.quality import GradeQuality
from scoring.questions.text import SummaryClaims, Supported
from scoring.statistics.judge_drift import LEAST, drifts

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
