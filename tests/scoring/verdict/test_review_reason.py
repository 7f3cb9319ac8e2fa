"""Which verdicts a person should look at."""

from __future__ import annotations

import pytest

from sidejudge.scoring.verdict.review_reason import COST_UNKNOWN, JUDGES_DISAGREE, NEAR, ReviewReason, review_reason


def line(composite=0.9, *, passed=True, mark=0.8, method="judge", flags=()):
    score = {"metric": "m", "weight": 1.0, "value": composite, "method": method, "judge": {"flags": list(flags)}}
    return {"composite": composite, "passed": passed, "pass_mark": mark, "scores": [score]}


@pytest.mark.parametrize(
    ("verdict", "scale", "why"),
    [
        (line(), 1.0, None),
        (line(flags=["credit for an empty answer", JUDGES_DISAGREE]), 1.0, ReviewReason.DISAGREEMENT),
        (line(flags=["credit for an empty answer"]), 1.0, ReviewReason.CONTRADICTION),
        (line(flags=[COST_UNKNOWN]), 1.0, None),
        (line(0.8 + NEAR), 1.0, ReviewReason.BORDERLINE),
        (line(0.8 - NEAR, passed=False), 1.0, ReviewReason.BORDERLINE),
        (line(0.8 + NEAR + 0.001), 1.0, None),
        (line(0.8, method="exact"), 1.0, None),
        (line(84.0, mark=80.0), 100.0, ReviewReason.BORDERLINE),
        (line(84.0, mark=80.0), 1.0, None),
        (line(None, passed=None, flags=[JUDGES_DISAGREE]), 1.0, None),
        (line(None, passed=False, flags=[]), 1.0, None),
        (line(0.8, mark=None), 1.0, None),
    ],
)
def test_a_verdict_is_in_doubt_for_the_gravest_reason_or_for_none(verdict, scale, why):
    assert review_reason(verdict, scale) is why


def test_a_metric_without_weight_does_not_make_a_verdict_borderline():
    verdict = line(0.8, method="exact")
    verdict["scores"].append({"metric": "told only", "weight": 0.0, "value": 0.1, "method": "judge"})
    assert review_reason(verdict, 1.0) is None
