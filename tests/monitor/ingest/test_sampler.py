"""Sampling: thresholds as the specification writes them, nested, unbiased, and with the probability that is true."""

from __future__ import annotations

import random
from collections.abc import Mapping
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError
from scipy.stats import binom, binomtest

from sidejudge.integrations.otlp.wire.chunk import ChunkOrigin
from sidejudge.integrations.otlp.wire.tracestate import (
    NEVER,
    PUBLIC_HASH_KEY,
    incoming_threshold,
    probability,
    random_bits,
    randomness,
    secret_hash_key,
    threshold,
)
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.config.sampling import SamplingRuleSection, SamplingSection, TrustedUpstreamSection
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.scoring.case.case import Case

RATES = st.floats(min_value=0, max_value=1, exclude_min=True)


def sampler(rate: float, *rules: SamplingRuleSection) -> Sampler:
    # A rate of 0 cannot be configured; the arithmetic must hold all the same.
    return Sampler(SamplingSection.model_construct(rate=rate, rules=rules))


TRUSTED = TrustedUpstreamSection(floor=0.001, max_share=0.5)
WHOLLY = TrustedUpstreamSection(floor=2**-56, max_share=0.01)


def trusting(rate: float) -> Sampler:
    """One that believes a sampler upstream."""
    return Sampler(SamplingSection.model_construct(rate=rate, trust_upstream=WHOLLY))


def Rule(name: str, match: Mapping[str, str], rate: float) -> SamplingRuleSection:  # noqa: N802  # stands for a class
    return SamplingRuleSection(name=name, match=MatchSection.model_validate(match), rate=rate)


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
    one = trusting(ours)
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
    one = trusting(1.0)
    states = ["ot=rv:80000000000000;th:8", "ot=rv:ffffffffffffff;th:4"]
    decision = one.decide(case(), one.admission, trace_id(0), states)
    assert decision.probability == 0.5
    assert randomness(trace_id(0), states[0]) == 1 << 55


def test_explicit_randomness_of_any_span_speaks_for_the_trace():
    one = trusting(0.5)
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


RULES = (
    Rule("errors", {"level": "error"}, 1.0),
    Rule("complaints", {"feedback": "negative"}, 0.8),
    Rule("slow", {"latency_ms": ">2000"}, 0.3),
    Rule("vip", {"tags": "vip", "environment": "prod"}, 0.5),
    Rule("desk", {"service": "desk"}, 0.2),
    Rule("shop-test", {"service": "shop", "environment": "test"}, 0.02),
)


def drawn_case(draw: random.Random) -> Case:
    """A trace of a mixed population: what fails is more often slow, an error, or complained of."""
    fails = draw.random() < 0.15
    return case(
        service=draw.choice(["shop", "shop", "desk"]), environment=draw.choice(["prod", "prod", "prod", "test"]),
        error="boom" if draw.random() < (0.3 if fails else 0.02) else None,
        metadata={"feedback": 0} if draw.random() < (0.2 if fails else 0.01) else {},
        latency_e2e_ms=draw.expovariate(1 / (2_500 if fails else 900)), tags=("vip",) if draw.random() < 0.05 else (),
        expected_outcome=fails,
    )  # fmt: skip


@pytest.mark.parametrize("source", ["trace_id", "hashed"])
@pytest.mark.parametrize("upstream", [None, 0.5])
def test_the_estimate_of_a_stratified_forced_and_thinned_sample_is_unbiased(source, upstream):
    """40 samples of one population of 1,000, rules, forced selections, a stated upstream sampler and a budget at once.

    The Horvitz-Thompson totals (of traces, of failures) are unbiased exactly when their mean over the samples
    is the truth; it may be off by four of its own standard errors. Forced selections are kept apart: those at random
    alone, weighed by their own probability, give the same totals.
    """
    draw = random.Random(20_261_121)
    population = [drawn_case(draw) for _ in range(1_000)]
    truth = len(population), sum(bool(each.expected_outcome) for each in population)
    one = Sampler(SamplingSection(rate=0.1, rules=RULES, randomness=source, trust_upstream=TRUSTED))
    state = f"ot=th:{encoded(upstream)}" if upstream else ""
    totals: list[tuple[float, ...]] = []
    for _ in range(40):
        traces = failures = at_random = failed_at_random = 0.0
        for each in population:
            tid = draw.randbytes(16)
            if upstream and randomness(tid) < threshold(upstream):
                continue  # it never reached us
            decision = one.decide(each, one.admission, tid, [state])
            # What the budget pays for moves with time and load, and is known before the trace comes.
            chance = decision.thinned(draw.choice((0.2, 0.6, 1.0)))
            if chance is not None:
                traces += 1 / chance
                failures += bool(each.expected_outcome) / chance
            if decision.kept and decision.selection == "random":
                at_random += 1 / decision.base_probability
                failed_at_random += bool(each.expected_outcome) / decision.base_probability
        totals.append((traces, failures, at_random, failed_at_random))
    for estimates, true in zip(zip(*totals, strict=True), (*truth, *truth), strict=True):
        error = stdev(estimates) / len(estimates) ** 0.5
        assert abs(mean(estimates) - true) < 4 * error


def test_every_rule_keeps_its_rate_of_a_million_ids():
    """Kept per rule over 1,000,000 ids within the bounds of its binomial: two-sided, 10**-6 a rule."""
    draw = random.Random(56)
    one = Sampler(SamplingSection(rate=0.01, rules=RULES))
    of_rules = {rule.name: threshold(rule.rate) for rule in RULES} | {None: one.base}
    kept = dict.fromkeys(of_rules, 0)
    floors = [(name, ChunkOrigin(None, None, limit).floor) for name, limit in of_rules.items()]
    for _ in range(1_000_000):
        tail = draw.randbytes(7)
        for name, floor in floors:
            if tail >= floor:
                kept[name] += 1
    rates = {rule.name: rule.rate for rule in RULES} | {None: 0.01}
    for name, count in kept.items():
        low, high = binom.ppf([5e-7, 1 - 5e-7], 1_000_000, rates[name])
        assert low <= count <= high, name


def test_each_of_thirty_thousand_traces_is_decided_at_the_rate_of_its_rule():
    draw = random.Random(57)
    one = Sampler(SamplingSection(rate=0.01, rules=RULES))
    cases = {
        "errors": case(error="boom"), "complaints": case(metadata={"feedback": "bad"}),
        "slow": case(latency_e2e_ms=2_001.0), "vip": case(tags=("vip",), environment="prod"),
        "desk": case(service="desk"), "shop-test": case(service="shop", environment="test"), "": case(),
    }  # fmt: skip
    rates = {rule.name: rule.rate for rule in RULES} | {"": 0.01}
    for name, each in cases.items():
        kept = sum(one.decide(each, one.admission, draw.randbytes(16)).kept for _ in range(30_000 // len(cases)))
        low, high = binom.ppf([5e-7, 1 - 5e-7], 30_000 // len(cases), rates[name])
        assert low <= kept <= high, name


@given(tid=st.binary(min_size=16, max_size=16), rate=RATES, upstream=RATES)
def test_hashed_randomness_multiplies_with_what_is_stated_upstream(tid, rate, upstream):
    one = Sampler(SamplingSection.model_construct(rate=rate, rules=(), randomness="hashed", trust_upstream=WHOLLY))
    decision = one.decide(case(), one.admission, tid, [f"ot=th:{encoded(upstream)}"])
    believed = probability(threshold(upstream)) if randomness(tid) >= threshold(upstream) else 1.0
    assert decision.kept == (random_bits(tid, PUBLIC_HASH_KEY) >= threshold(rate))
    assert decision.base_probability == pytest.approx(probability(threshold(rate)) * believed)


def test_hashed_randomness_keeps_what_a_legacy_sampler_lets_through():
    """The trap: below 1/256 upstream, nothing reaches a threshold of ours; hashed, its share does."""
    draw = random.Random(3)
    ids = [draw.randbytes(8) + draw.randrange(round(0.001 * 2**64)).to_bytes(8, "big") for _ in range(10_000)]
    kept = {key: sum(random_bits(tid, key) >= threshold(0.1) for tid in ids) for key in (b"", PUBLIC_HASH_KEY)}
    assert kept[b""] == 0
    assert binomtest(kept[PUBLIC_HASH_KEY], 10_000, 0.1).pvalue > 1e-6


def test_who_knows_everything_but_the_key_chooses_no_trace_that_is_drawn():
    """His ids are those that the last bytes, the public hash and another key draw, or none of them."""
    draw, limit = random.Random(5), threshold(0.1)
    keys = (b"", PUBLIC_HASH_KEY, secret_hash_key("a key of the attacker"))
    section = SamplingSection(rate=0.1, randomness="hashed", randomness_key=SecretStr("a key that he does not know"))
    one = Sampler(section)
    for wanted in (True, False):
        chosen: list[bytes] = []
        while len(chosen) < 300:
            tid = draw.randbytes(9) + (b"\xff" if wanted else b"\0") + draw.randbytes(6)
            if all((random_bits(tid, key) >= limit) is wanted for key in keys):
                chosen.append(tid)
        decisions = [one.decide(case(), one.admission, tid) for tid in chosen]
        assert binomtest(sum(each.kept for each in decisions), 300, 0.1).pvalue > 1e-6
        assert {each.probability for each in decisions if each.kept} == {probability(limit)}


def test_monitors_that_share_a_key_draw_the_same_traces():
    here, there = (SamplingSection(randomness="hashed", randomness_key=SecretStr("one key for both")) for _ in range(2))
    assert here.hash_key == there.hash_key != secret_hash_key("one key for both.")
    assert "one key" not in repr(here)
    assert repr(here.hash_key) not in repr(ChunkOrigin(None, None, 0, here.hash_key))


def test_a_key_without_a_hash_is_refused_for_it_would_protect_nothing():
    with pytest.raises(ValidationError, match="randomness: hashed"):
        SamplingSection(randomness_key=SecretStr("a key that keys nothing"))


def test_a_uniform_population_is_kept_at_its_rate():
    draw = random.Random(7)
    one = sampler(0.1)
    origin = one.admission
    kept = sum(one.decide(case(), origin, draw.randbytes(16)).kept for _ in range(20_000))
    assert kept == pytest.approx(2_000, abs=5 * (20_000 * 0.1 * 0.9) ** 0.5)


def test_a_trace_at_the_threshold_itself_is_kept_and_the_one_below_it_is_not():
    one, at = sampler(0.5), threshold(0.5)
    for bits in (at - 1, at, at + 1):
        assert one.admits(trace_id(bits)) is (bits >= at)
        assert one.may_keep(trace_id(bits), lambda _: False) is (bits >= at)
        assert one.decide(case(), one.admission, trace_id(bits)).kept is (bits >= at)
    assert sampler(0.0).may_keep(trace_id(NEVER - 1), lambda _: False) is False


def test_between_the_passes_a_rule_that_may_match_may_keep_and_sessions_keep_everything():
    section = SamplingSection(
        rate=0.25, rules=[Rule("errors", {"level": "error"}, 0.75), Rule("eu", {"service": "eu"}, 0.5)]
    )
    one, whole = Sampler(section), Sampler(section, whatever=True)
    bits = threshold(0.6)
    assert one.may_keep(trace_id(bits), lambda rule: rule.name == "errors") is True
    assert one.may_keep(trace_id(bits), lambda rule: rule.name == "eu") is False
    assert (whole.admission, whole.may_keep(trace_id(0), lambda _: False)) == (0, True)


def test_only_a_believed_threshold_above_0_counts_as_thinned_upstream():
    for stated, thinned in (("", False), ("ot=th:0", False), ("ot=th:8", True)):
        one = trusting(1.0)
        assert one.decide(case(), one.admission, trace_id(NEVER - 1), [stated]).thinned_upstream is thinned
    assert sampler(1.0).decide(case(), 0, trace_id(NEVER - 1), ["ot=th:8"]).thinned_upstream is False


def test_what_a_rule_forces_after_a_sampler_that_is_independent_carries_both_probabilities():
    rules = (Rule("errors", {"level": "error"}, 0.5),)
    section = SamplingSection.model_construct(rate=0.25, rules=rules, randomness="hashed", trust_upstream=WHOLLY)
    one = Sampler(section)
    ids = (number.to_bytes(16, "big") for number in range(1, 1000))
    forced = next(each for each in ids if threshold(0.5) <= random_bits(each, one.hash_key) < threshold(0.25))
    state = "ot=rv:ffffffffffffff;th:8"  # upstream kept half of what there was
    drawn = one.decide(case(error="boom"), one.admission, forced, [state])
    assert (drawn.selection, drawn.upstream) == ("forced", 0.5)
    assert (drawn.probability, drawn.base_probability) == (0.25, 0.125)
    assert (drawn.thinned(1.0), drawn.thinned_upstream) == (0.25, True)
