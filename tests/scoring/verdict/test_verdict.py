"""The algebra of verdicts: what holds whatever the rubric and whatever the values."""

from __future__ import annotations

import copy
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.metrics.settle import settle
from sidejudge.scoring.questions.kinds import CitesTranscript, GradeAnswer
from sidejudge.scoring.questions.question import Answer, NoAnswer
from sidejudge.scoring.result.result import (
    Blocker,
    Effect,
    Failed,
    Judgement,
    Method,
    NotApplicable,
    Proven,
    Scored,
    Unavailable,
    at_least,
)
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.runs.verdict_line import read_verdict
from sidejudge.scoring.verdict.rubric import Criterion, Rubric
from sidejudge.scoring.verdict.verdict import State, reach_verdict

AT = "2026-01-01T00:00:00Z"
CASE = Case(case_id="c", model_output={})
ONE = Scored(value=1.0)


def metric(name, bands=None):
    return Metric(
        id=name, title=name, meaning="m", formula="f", source="s", measure=lambda _: Scored(value=1), bands=bands
    )


def rubric(**more):
    return Rubric(
        id="r",
        title="R",
        source="s",
        formula="f",
        criteria=(
            Criterion(metric=metric("gate"), prerequisite=True),
            Criterion(metric=metric("a", at_least(good=0.9, acceptable=0.8)), weight=0.6),
            Criterion(metric=metric("b", at_least(good=0.9, acceptable=0.5)), weight=0.3),
            Criterion(metric=metric("c", at_least(good=0.9, acceptable=0.5)), weight=0.1),
            Criterion(metric=metric("soft"), blocker=Blocker(effect=Effect.DISQUALIFIED, above=0.03)),
            Criterion(metric=metric("hard"), blocker=Blocker(effect=Effect.INVALID, above=2)),
        ),
        pass_mark=0.7,
        **more,
    )


def results(gate=1.0, a=1.0, b=1.0, c=1.0, soft=0.0, hard=0.0):
    given = {"gate": gate, "a": a, "b": b, "c": c, "soft": soft, "hard": hard}
    return {name: Scored(value=value) if isinstance(value, int | float) else value for name, value in given.items()}


def reach(found, of=None):
    return reach_verdict(of or rubric(), CASE, found, created_at=AT)


RATIO = st.floats(0, 1)
MISSING = st.sampled_from([Unavailable("u"), Failed("f")])
ANY = st.one_of(RATIO, MISSING, st.just(NotApplicable("n")))


@given(ANY, ANY, ANY, st.randoms(use_true_random=False))
def test_the_order_of_results_is_irrelevant(a, b, c, shuffler: random.Random):
    found = results(a=a, b=b, c=c)
    rows = list(found.items())
    shuffler.shuffle(rows)
    assert reach(dict(rows)).to_json() == reach(found).to_json()


@given(RATIO, RATIO, RATIO, RATIO)
def test_a_better_value_never_lowers_the_composite(a, better, b, c):
    low, high = sorted((a, better))
    before, after = reach(results(a=low, b=b, c=c)), reach(results(a=high, b=b, c=c))
    assert before.composite <= after.composite + 1e-12
    assert after.passed or not before.passed


@given(ANY, ANY, ANY)
def test_composites_and_coverage_stay_in_bounds_and_pass_agrees_with_state(a, b, c):
    found = reach(results(a=a, b=b, c=c))
    assert 0 <= found.coverage <= 1
    assert found.composite is None or -1e-12 <= found.composite <= 1 + 1e-12
    assert (found.passed is None) == (found.state is State.INCOMPLETE)
    assert (found.composite is None) == (found.state in (State.INVALID, State.INCOMPLETE))


GAP = st.builds(
    lambda kind, proven: kind("u", proven),
    st.sampled_from([Unavailable, Failed]),
    st.none() | st.just(Proven(at_most=0.5)),
)
EVERY = st.one_of(RATIO, GAP, st.just(NotApplicable("n")))


@given(EVERY, EVERY, EVERY, EVERY, EVERY, st.booleans())
def test_a_blocker_that_hits_decides_whatever_else_is_missing(gate, a, b, c, hard, undecided):
    of = rubric(passes=lambda _composite, _results: None) if undecided else rubric()
    found = reach(results(gate=gate, a=a, b=b, c=c, hard=hard, soft=1.0), of)
    unmet = isinstance(gate, float) and gate != 1.0
    assert found.passed is False
    assert found.state is (State.INVALID if unmet else State.DISQUALIFIED)
    assert found.blockers == (("gate",) if unmet else ("soft",))
    assert found.rating == "blocker"
    assert found.blockers[0] in found.reason
    without = reach(results(gate=gate, a=a, b=b, c=c, hard=hard, soft=0.0), of)
    assert unmet or found.composite == without.composite or without.passed is None
    assert json.loads(json.dumps(found.to_json()))["state"] == found.state.value
    assert read_verdict(found.to_json()).state is found.state


@pytest.mark.parametrize("gap", [Unavailable, Failed])
@pytest.mark.parametrize(
    ("proven", "blocked"),
    [
        (Proven(at_least=0.5), True),
        (Proven(at_least=0.03), False),
        (Proven(at_least=0.030000000001), False),
        (Proven(at_most=1.0), False),
        (Proven(at_least=0.04, at_most=1.0), True),
        (None, False),
    ],
)
def test_what_is_proven_of_a_value_that_is_not_known_may_block(gap, proven, blocked):
    found = reach(results(soft=gap("two of three are made up", proven), a=Unavailable("no judge")))
    assert found.passed is (False if blocked else None)
    assert found.blockers == (("soft",) if blocked else ())
    assert next(score for score in found.scores if score.metric == "soft").to_json()["value"] is None
    assert not blocked or found.reason == "soft: two of three are made up"


@given(RATIO, RATIO, MISSING)
def test_a_missing_metric_lowers_coverage_and_leaves_the_others_their_mean(a, b, gone):
    found = reach(results(a=a, b=b, c=gone))
    assert found.coverage == pytest.approx(0.9)
    assert found.composite == pytest.approx((0.6 * a + 0.3 * b) / 0.9)
    assert found.state is State.PARTIAL


@given(RATIO, RATIO)
def test_a_metric_that_does_not_apply_gives_its_weight_to_the_others_and_coverage_stays(a, b):
    found = reach(results(a=a, b=b, c=NotApplicable("n")))
    assert (found.coverage, found.state) == (1.0, State.VALID)
    assert found.composite == pytest.approx((0.6 * a + 0.3 * b) / 0.9)


@given(ANY, ANY, ANY)
def test_nothing_given_is_changed(a, b, c):
    found = results(a=a, b=b, c=c)
    before = copy.deepcopy(found)
    reach(found)
    assert found == before


def test_the_pass_mark_is_compared_after_rounding():
    assert reach(results(a=0.7 - 1e-10, b=0.7, c=0.7)).passed, "to nine decimals"
    assert not reach(results(a=0.7 - 1e-8, b=0.7, c=0.7)).passed
    assert reach(results(a=0.5, b=1.0, c=1.0)).passed  # 0.6 × 0.5 + 0.3 + 0.1 is 0.7, in floats a little less or more


def test_a_bound_of_more_decimals_is_compared_after_rounding_too():
    third = 1 / 3
    assert reach(results(a=third, b=third, c=third), rubric().with_overrides(pass_mark=third)).passed
    assert at_least(good=third, acceptable=0.1).rating(third) == "good"
    assert not Blocker(effect=Effect.INVALID, below=third).blocks(third)
    assert not Blocker(effect=Effect.INVALID, above=2 / 3 - 1e-12).blocks(2 / 3)
    assert Blocker(effect=Effect.INVALID, below=0.1, above=0.9).describe() == "< 0.1 or > 0.9: invalid"


@pytest.mark.parametrize(
    ("given", "state", "composite", "rating"),
    [
        ({"soft": 0.031}, State.DISQUALIFIED, 1.0, "blocker"),
        ({"soft": 0.03}, State.VALID, 1.0, "good"),
        ({"hard": 3}, State.INVALID, None, "blocker"),
        ({"hard": 2}, State.VALID, 1.0, "good"),
        ({"gate": 0.0}, State.INVALID, None, "blocker"),
        ({"hard": 3, "soft": 1}, State.INVALID, None, "blocker"),
        ({"gate": Unavailable("u")}, State.INCOMPLETE, None, None),
        ({"hard": Unavailable("u")}, State.PARTIAL, 1.0, "good"),
        ({"soft": Unavailable("u")}, State.PARTIAL, 1.0, "good"),
        ({"soft": Failed("f")}, State.PARTIAL, 1.0, "good"),
        ({"soft": NotApplicable("n"), "hard": NotApplicable("n")}, State.VALID, 1.0, "good"),
    ],
)  # fmt: skip
def test_blockers_and_prerequisites_decide_the_state(given, state, composite, rating):
    found = reach(results(**given))
    assert (found.state, found.composite and pytest.approx(found.composite), found.rating) == (state, composite, rating)
    assert found.passed is (state in (State.VALID, State.PARTIAL) or (None if state is State.INCOMPLETE else False))


@pytest.mark.parametrize("name", RUBRICS)
def test_weights_sum_to_one_and_versions_name_the_rubric(name):
    assert sum(c.weight for c in RUBRICS[name].criteria) == pytest.approx(1)
    assert RUBRICS[name].version.startswith(f"{name}@")
    assert RUBRICS[name].with_overrides(min_coverage=0.5).version != RUBRICS[name].version


@pytest.mark.parametrize(
    ("weights", "values", "composite"),
    [
        ((0.70, 0.20, 0.10), (0.93, 0.73, 0.85), 0.882),  # qa
        ((0.47, 0.29, 0.24), (0.91, 0.85, 1.00), 0.9142),  # entity
        ((0.30, 0.50, 0.20), (0.830, 0.786, 1.0), 0.842),  # text
        ((0.10, 0.20, 0.30, 0.40), (0.1, 0.2, 0.3, 0.7), 0.42),
    ],
)
def test_sums_come_out_as_on_paper(weights, values, composite):
    names = [f"m{n}" for n in range(len(weights))]
    plain = Rubric(
        id="r", title="R", source="s", formula="f", pass_mark=0.5,
        criteria=tuple(Criterion(metric=metric(n), weight=w) for n, w in zip(names, weights, strict=True)),
    )  # fmt: skip
    found = reach({n: Scored(value=v) for n, v in zip(names, values, strict=True)}, plain)
    assert found.composite == composite
    assert found.coverage == 1.0


def test_a_reason_is_cut_whatever_an_answerer_says():
    found = reach(results(b=Unavailable("x" * 1_000_000)))
    assert len(str(found.to_json())) < 10_000


def test_a_verdict_that_fails_says_what_failed_it() -> None:
    wrong = Case(
        case_id="w", model_output="x", scenario={"tools_should_include": ["a"]}, agents_called=(), tools_used=()
    )
    assert score(wrong, RUBRICS["workflow"], created_at="").reason == "tools: missing: a"


NO_TOKENS = {"input_tokens": 0, "output_tokens": 0}


def judged(*judgements):
    return Scored(value=1.0, method=Method.JUDGE, judgements=judgements)


def test_answers_of_one_call_are_paid_once_and_answers_out_of_the_cache_are_not():
    one, same_call = Judgement("m", "p", 0.25, call="1"), Judgement("m", "q", 0.25, call="1", flags=("doubtful",))
    other, cached = Judgement("m", "p", 0.5, call="2"), Judgement("m", "p")
    found = reach(results(a=judged(one, cached), b=judged(same_call, other), c=judged(cached))).to_json()
    assert (
        found["judge"]
        == {"model": "m", "prompt_version": "p", "cost_usd": 0.75, "calls": 2, "call_ids": ["1", "2"]} | NO_TOKENS
    )
    scores = {each["metric"]: each.get("judge") for each in found["scores"]}
    reported = {"model": "m", "prompt_version": "p", "cost_usd": 0.25, "cached": False, "flags": [], "call_ids": ["1"]}
    assert scores["a"] == reported
    assert scores["b"] == reported | {
        "prompt_version": "q",
        "cost_usd": 0.75,
        "flags": ["doubtful"],
        "call_ids": ["1", "2"],
    }
    assert scores["c"] == reported | {"cost_usd": 0.0, "cached": True, "call_ids": []}
    assert scores["gate"] is None


def asks_twice(_case):
    found = settle((yield (GradeAnswer(),)), bool)
    if not isinstance(found, tuple):
        return found
    return NotApplicable("nothing to say") if isinstance(settle((yield (CitesTranscript("r"),)), bool), Failed) else ONE


@pytest.mark.parametrize("stated", ["error", "not_applicable"])
def test_what_was_asked_in_vain_was_paid_all_the_same(stated):
    first = Judgement("m", "p", 0.25, call="1", input_tokens=10, output_tokens=2)
    vain = Judgement("m", "p", 0.5, call="2", requests=3, input_tokens=30, output_tokens=1)

    def answer(_case, question):
        if isinstance(question, GradeAnswer) and stated == "not_applicable":
            return Answer(value=True, method=Method.JUDGE, judgement=first)
        return NoAnswer("parse_error: empty", failed=True, judgement=vain)

    metric = Metric(id="m", title="t", meaning="m", formula="f", source="s", measure=asks_twice)
    other = Metric(id="n", title="t", meaning="m", formula="f", source="s", measure=lambda _: ONE)
    asking = Rubric(
        id="r", title="r", source="s", formula="f", pass_mark=0.5,
        criteria=(Criterion(metric=metric, weight=0.5), Criterion(metric=other, weight=0.5)),
    )  # fmt: skip
    found = score(CASE, asking, answer=answer, created_at=AT).to_json()
    assert found["scores"][0]["status"] == stated
    calls = {"error": (0.5, 3, 30, 1), "not_applicable": (0.75, 4, 40, 3)}[stated]
    assert tuple(found["judge"][name] for name in ("cost_usd", "calls", "input_tokens", "output_tokens")) == calls
    assert (found["judge"]["model"], found["scores"][0]["judge"]["cost_usd"]) == ("m", calls[0])
    assert "judge" not in found["scores"][1]
