"""Sampling: thresholds as the specification writes them, nested, unbiased, and with the probability that is true."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor import config
from monitor.config import Match
from monitor.config.model import Sampling
from monitor.sampler import NEVER, Sampler, incoming_threshold, probability, randomness, threshold
from scoring.case import Case

RATES = st.floats(min_value=0, max_value=1, exclude_min=True)


def sampler(rate: float, *rules: config.Rule) -> Sampler:
    # A rate of 0 cannot be configured; the arithmetic must hold all the same.
    return Sampler(Sampling.model_construct(rate=rate, rules=rules))


def Rule(name: str, match: Mapping[str, str], rate: float) -> config.Rule:  # noqa: N802
    return config.Rule(name=name, match=Match.model_validate(match), rate=rate)


def case(**more) -> Case:
    return Case(case_id="c", model_output=None, **more)


def trace_id(bits: int) -> bytes:
    return b"\x01" * 9 + bits.to_bytes(7, "big")


def encoded(rate: float) -> str:
    return f"{threshold(rate):014x}".rstrip("0") or "0"


@pytest.mark.parametrize(
    ("rate", "th"),
    [(1.0, "0"), (0.5, "8"), (0.25, "c"), (0.01, "fd70a3d70a3d71"), (1 / 3, "aaaaaaaaaaaaac"), (2**-56, "f" * 14)],
)
def test_thresholds_are_those_of_the_specification(rate, th):
    assert encoded(rate) == th
    assert incoming_threshold(f"ot=th:{th}") == threshold(rate)


def test_a_threshold_written_with_less_precision_has_its_own_probability():
    assert probability(incoming_threshold("ot=th:fd70a4")) == pytest.approx(0.01, rel=1e-5)
    assert probability(incoming_threshold("ot=th:fd70a4")) != probability(threshold(0.01))
    assert probability(incoming_threshold("ot=th:aaab")) == pytest.approx(0.33332825)


@given(rate=RATES)
def test_probability_undoes_threshold(rate):
    assert probability(threshold(rate)) == pytest.approx(rate, abs=2**-56)
    assert probability(threshold(rate)) > 0


def test_the_ends_of_the_scale():
    assert (threshold(0.0), probability(NEVER)) == (NEVER, 0.0)
    assert threshold(1e-300) == NEVER - 1
    for outside in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="lies in"):
            threshold(outside)
    with pytest.raises(ValueError, match="lies in"):
        probability(NEVER + 1)


@given(bits=st.integers(0, NEVER - 1), low=RATES, high=RATES)
def test_what_a_small_rate_keeps_a_larger_one_keeps_too(bits, low, high):
    low, high = sorted((low, high))
    keeps = [sampler(rate).decide(case(), sampler(rate).admission, trace_id(bits)).kept for rate in (low, high)]
    assert keeps[0] <= keeps[1]


@given(bits=st.integers(0, NEVER - 1), upstream=RATES, ours=RATES)
def test_an_upstream_threshold_multiplies_in_by_the_equalizing_form(bits, upstream, ours):
    one = sampler(ours)
    arrived = bits >= threshold(upstream)
    state = f"ot=th:{encoded(upstream)}"
    decision = one.decide(case(), one.admission, trace_id(bits), [state, "", state])
    believed = threshold(upstream) if arrived else 0
    assert decision.kept == (bits >= max(threshold(ours), believed))
    if decision.kept:
        assert decision.probability == probability(max(threshold(ours), believed))


def test_rates_by_service_and_environment_are_strata_and_the_first_that_matches_counts():
    one = sampler(
        0.01, Rule("shop-test", {"service": "shop", "environment": "test"}, 0.5), Rule("shop", {"service": "shop"}, 1.0)
    )
    assert one.admission == 0, "one threshold for all services: a trace may run through several"

    def decided(service: str, environment: str) -> tuple[object, ...]:
        decision = one.decide(case(service=service, environment=environment), one.admission, trace_id(threshold(0.5)))
        return decision.kept, decision.probability, decision.selection, decision.rule

    assert decided("shop", "test") == (True, 0.5, "random", "shop-test")
    assert decided("shop", "prod") == (True, 1.0, "random", "shop")
    assert decided("desk", "prod") == (False, None, "random", None)


def test_a_rule_on_content_keeps_everything_it_could_want_until_the_trace_is_whole():
    one = sampler(0.01, Rule("errors", {"service": "shop", "level": "error"}, 1.0))
    origin = one.admission
    assert origin == 0

    error, fine = case(service="shop", error="boom"), case(service="shop")
    forced = one.decide(error, origin, trace_id(5))
    assert (forced.kept, forced.selection, forced.rule, forced.probability) == (True, "forced", "errors", 1.0)
    assert forced.base_probability == probability(threshold(0.01))
    lucky = one.decide(error, origin, trace_id(NEVER - 1))
    assert (lucky.kept, lucky.selection, lucky.rule, lucky.probability) == (True, "random", None, 1.0)
    dropped = one.decide(fine, origin, trace_id(5))
    assert (dropped.kept, dropped.probability) == (False, None)
    drawn = one.decide(fine, origin, trace_id(NEVER - 1))
    assert (drawn.kept, drawn.selection, drawn.probability) == (True, "random", probability(threshold(0.01)))


def test_a_rule_that_was_not_in_force_when_the_trace_came_in_is_not_credited_with_more():
    one = sampler(0.25, Rule("prod", {"environment": "prod", "level": "error"}, 1.0))
    origin = sampler(0.25).admission
    moved = case(environment="prod", error="boom")
    assert one.decide(moved, origin, trace_id(NEVER - 1)).probability == 0.25
    assert not one.decide(moved, origin, trace_id(0)).kept


def test_a_base_rate_of_nothing_leaves_only_what_rules_force():
    one = sampler(0.0, Rule("errors", {"level": "error"}, 0.5))
    origin = one.admission
    assert one.decide(case(error="boom"), origin, trace_id(NEVER - 1)).selection == "forced"
    assert not one.decide(case(), origin, trace_id(NEVER - 1)).kept
    assert sampler(0.0).admission == NEVER


def test_of_spans_that_disagree_the_least_probable_speaks_for_the_trace():
    one = sampler(1.0)
    states = ["ot=rv:80000000000000;th:8", "ot=rv:ffffffffffffff;th:4"]
    decision = one.decide(case(), one.admission, trace_id(0), states)
    assert decision.probability == 0.5
    assert randomness(trace_id(0), states[0]) == 1 << 55


def test_explicit_randomness_of_any_span_speaks_for_the_trace():
    one = sampler(0.5)
    origin = one.admission
    assert one.decide(case(), origin, trace_id(0), ["", "ot=rv:ffffffffffffff"]).kept
    assert not one.decide(case(), origin, trace_id(NEVER - 1), ["ot=rv:00000000000000"]).kept


def test_weighted_estimates_are_unbiased_although_errors_are_always_kept():
    """20,000 traces, 10 % errors that all fail; a rule keeps every error, the base rate keeps 5 % of all."""
    draw = random.Random(20_261_121)
    one = sampler(0.05, Rule("errors", {"level": "error"}, 1.0))
    origin = one.admission
    weight = failed = random_weight = random_failed = naive = naive_failed = 0.0
    population = 20_000
    truth = 0
    for _ in range(population):
        error = draw.random() < 0.1
        fails = error or draw.random() < 0.05
        truth += fails
        decision = one.decide(case(error="boom" if error else None), origin, trace_id(draw.getrandbits(56)))
        if not decision.kept:
            continue
        weight += 1 / decision.probability
        failed += fails / decision.probability
        naive += 1
        naive_failed += fails
        if decision.selection == "random":
            random_weight += 1 / decision.base_probability
            random_failed += fails / decision.base_probability
    assert weight == pytest.approx(population, rel=0.1)
    assert failed / weight == pytest.approx(truth / population, abs=0.02)
    assert random_weight == pytest.approx(population, rel=0.15)
    assert random_failed / random_weight == pytest.approx(truth / population, abs=0.04)
    assert naive_failed / naive > 0.5, "without weights the estimate would be useless"


def test_a_uniform_population_is_kept_at_its_rate():
    draw = random.Random(7)
    one = sampler(0.1)
    origin = one.admission
    kept = sum(one.decide(case(), origin, draw.randbytes(16)).kept for _ in range(20_000))
    assert kept == pytest.approx(2_000, abs=5 * (20_000 * 0.1 * 0.9) ** 0.5)
