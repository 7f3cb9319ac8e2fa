"""Thresholds of a cascade that are learned from the verdicts that a strong judge saw too."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from pydantic import ValidationError

from sidejudge.monitor.config.evaluators import CascadeSection
from sidejudge.monitor.evaluate.cascade import NEAR_MARK, OTHER_ORDER, UNSURE
from sidejudge.monitor.evaluate.cascade_learning import CascadeLearning
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause

QUALITY = RUBRICS["quality"]
MARK = QUALITY.pass_mark / QUALITY.scale
STATED = CascadeSection(agreement=0.95, rate=0.2)
DRAWN = Escalation(judge="strong", cause=EscalationCause.DRAWN, rate=0.2, passed_before=True, composite_before=1.0)


def learned(wrong, *, section=STATED, verdicts=4_000, certain=lambda draw: None):
    """What is learned of a first judge that is wrong with a probability by its distance and certainty."""
    draw = random.Random(5)
    learning = CascadeLearning({"quality": QUALITY}, section)
    asked = left = 0
    for number in range(verdicts):
        policy = learning.policy("quality", section)
        distance, certainty = draw.random() * 0.5, certain(draw)
        mistaken = draw.random() < wrong(distance, certainty)
        doubt = NEAR_MARK if distance <= policy.margin else ""
        doubt = doubt or (UNSURE if certainty is not None and certainty < policy.sure_from else "")
        drawn = not doubt and draw.random() < section.rate
        if number >= verdicts // 2:
            asked, left = asked + bool(doubt), left + (mistaken and not doubt and not drawn)
        seen = Escalation(
            judge="strong" if doubt or drawn else "default", why=doubt, rate=section.rate,
            cause=EscalationCause.DOUBT if doubt else EscalationCause.DRAWN if drawn else EscalationCause.SURE,
            passed_before=True if doubt or drawn else None, composite_before=MARK + distance,
            certainty_before=certainty,
        )  # fmt: skip
        learning.take("quality", not mistaken, seen)
    half = verdicts // 2
    return learning.policy("quality", section), asked / half, 1 - left / half


def test_a_judge_that_is_wrong_far_from_the_mark_has_a_wider_margin_and_reaches_the_agreement():
    policy, _, agreement = learned(lambda distance, _: 0.5 * (distance < 0.1))
    assert 0.03 < policy.margin <= 0.1
    assert agreement >= 0.95


def test_a_judge_that_is_wrong_nowhere_is_not_doubted_at_all_and_costs_less():
    policy, asked, agreement = learned(lambda *_: 0.0)
    assert (policy.margin, asked) == (0.0, pytest.approx(0.0, abs=0.01))
    assert agreement == 1.0


def test_certainty_is_learned_beside_the_margin():
    policy, asked, agreement = learned(
        lambda _, certainty: 0.45 * (certainty < 0.8), certain=lambda draw: 0.5 + draw.random() / 2
    )
    assert 0.7 <= policy.sure_from <= 0.8
    assert agreement >= 0.95
    assert asked < 0.7


@pytest.mark.parametrize(
    ("wrong", "changes"),
    [
        (lambda *_: 0.3, {}),  # whatever margin there is leaves it so
        (lambda *_: 0.0, {"verdicts": 100}),
        (lambda distance, _: 0.5 * (distance < 0.1), {"section": CascadeSection(rate=0.2)}),
    ],
    ids=["no threshold reaches it", "too little was drawn", "no agreement is stated"],
)
def test_the_stated_thresholds_hold_until_others_are_known_to_do_better(wrong, changes):
    policy, *_ = learned(wrong, **changes)
    assert policy == changes.get("section", STATED)


def test_a_doubt_that_no_threshold_decides_on_teaches_nothing_of_one():
    learning = CascadeLearning({"quality": QUALITY}, STATED)
    for _ in range(100):
        learning.take("quality", True, DRAWN)
        learning.take("quality", False, replace(DRAWN, cause=EscalationCause.DOUBT, why=OTHER_ORDER))
    assert learning.policy("quality", STATED).margin == 0.0


def test_another_version_of_a_rubric_begins_anew():
    learning = CascadeLearning({"quality": QUALITY}, STATED)
    for _ in range(100):
        learning.take("quality", True, DRAWN)
    assert learning.policy("quality", STATED) != STATED
    learning.forget(["quality"])
    assert learning.policy("quality", STATED) == STATED


def test_what_is_drawn_nowhere_teaches_nothing_and_is_refused():
    with pytest.raises(ValidationError, match="raise rate"):
        CascadeSection(agreement=0.95, rate=0.0)
