"""Outcomes that are remembered are those that would be reckoned."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scoring.case.case import Case
from scoring.metrics.metric import Metric
from scoring.result.bands import Blocker, Effect, at_least
from scoring.result.result import Failed, Judgement, NotApplicable, Scored, Unavailable
from scoring.verdict.rubric import Criterion, Rubric
from scoring.verdict.verdict import reach_verdict

CASE = Case(case_id="c", model_output={})
IDS = ("gate", "a", "b", "guard")
SHARED = (Scored(value=1.0), Scored(value=0.0), Unavailable("nothing there"), NotApplicable("not asked"))
FRESH = (lambda: Scored(value=0.7), lambda: Unavailable("nothing there"), lambda: Failed("broke"))


def rubric():
    def metric(name):
        return Metric(
            id=name, title=name, meaning="m", formula="f", source="s", measure=lambda _: SHARED[0],
            bands=at_least(good=0.9, acceptable=0.5),
        )  # fmt: skip

    gate, a, b, guard = map(metric, IDS)
    return Rubric(
        id="r",
        title="R",
        source="s",
        formula="f",
        criteria=(
            Criterion(metric=gate, prerequisite=True),
            Criterion(metric=a, weight=0.6),
            Criterion(metric=b, weight=0.4),
            Criterion(metric=guard, blocker=Blocker(effect=Effect.DISQUALIFIED, below=0.5)),
        ),
        pass_mark=0.7,
    )


def said(of, results, judgements=None):
    verdict = reach_verdict(of, CASE, results, judgements=judgements, created_at="2026-01-01T00:00:00Z")
    return repr(verdict), verdict.to_json()


one = st.sampled_from(SHARED) | st.sampled_from(FRESH).map(lambda make: make())


@given(st.lists(st.tuples(one, one, one, one), min_size=1, max_size=60))
def test_whatever_came_before_a_verdict_is_the_one_that_a_rubric_without_memory_reaches(cases):
    remembering = rubric()
    for results in cases:
        found = dict(zip(IDS, results, strict=True))
        assert said(remembering, found) == said(rubric(), found)
        assert said(remembering, dict(reversed(found.items()))) == said(rubric(), found)


def test_what_judges_were_asked_is_never_taken_from_an_earlier_verdict():
    remembering, found = rubric(), dict.fromkeys(IDS, SHARED[2])
    unasked = said(remembering, found)
    paid = {"a": (Judgement("model", "prompt", cost_usd=0.5, call="1"),)}
    assert said(remembering, found, paid) == said(rubric(), found, paid) != unasked
    assert said(remembering, found) == unasked


def test_only_the_latest_outcomes_are_kept():
    remembering = rubric()
    for _ in range(1000):
        said(remembering, {name: Scored(value=1.0) for name in IDS})
    assert len(remembering.outcomes) < 100
