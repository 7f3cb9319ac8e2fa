"""Adaptive rate: every trace while there are few, a share beyond, each with the probability that is true for it."""

from __future__ import annotations

import random

import pytest

from sidejudge.integrations.otlp.wire.tracestate import probability, random_bits
from sidejudge.monitor.config.sampling import SamplingRuleSection, SamplingSection
from sidejudge.monitor.ingest.load_shedding import AdaptiveRate
from sidejudge.monitor.ingest.sampler import Sampler

MINUTE = 60 * 10**9
DAY = 20_000 * 24 * 60 * MINUTE


def ids(seed: int):
    draw = random.Random(seed)
    while True:
        yield draw.randbytes(16)


def test_all_traces_up_to_the_limit_are_drawn_and_beyond_it_the_share_that_keeps_to_it():
    adaptive, traces = AdaptiveRate(100), ids(1)
    assert [adaptive.threshold(next(traces), DAY) for _ in range(100)] == [0] * 100
    assert adaptive.rate(DAY) == pytest.approx(100 / 101)
    for _ in range(900):
        adaptive.threshold(next(traces), DAY + MINUTE)
    assert adaptive.rate(DAY + MINUTE) == pytest.approx(100 / 1001)
    assert adaptive.rate(DAY + 60 * MINUTE) == pytest.approx(100 / 901), "the first minute is an hour ago"
    assert adaptive.rate(DAY + 61 * MINUTE) == 1.0
    assert adaptive.rate(DAY + 600 * MINUTE) == 1.0


@pytest.mark.parametrize("back", [5, 60, 25 * 60, 30 * 24 * 60])
def test_what_was_counted_before_a_clock_was_set_back_counts_for_its_hour(back):
    adaptive, traces = AdaptiveRate(10), ids(2)
    for minute in (0, 20):
        for _ in range(20):
            adaptive.threshold(next(traces), DAY + minute * MINUTE)
    now = DAY + (20 - back) * MINUTE
    assert adaptive.rate(now) == pytest.approx(10 / 41)
    assert adaptive.rate(now + 39 * MINUTE) == pytest.approx(10 / 41)
    assert adaptive.rate(now + 40 * MINUTE) == pytest.approx(10 / 21), "the first minute is an hour ago"
    assert adaptive.rate(now + 60 * MINUTE) == 1.0


def test_the_parts_of_a_trace_that_arrive_at_once_have_one_threshold_and_count_once():
    adaptive, traces = AdaptiveRate(10), ids(3)
    for _ in range(50):
        adaptive.threshold(next(traces), DAY)
    one = next(traces)
    first, before = adaptive.threshold(one, DAY), adaptive.rate(DAY)
    for _ in range(20):
        adaptive.threshold(next(traces), DAY)
    rate = adaptive.rate(DAY)
    assert adaptive.threshold(one, DAY) == first
    assert adaptive.rate(DAY) == rate < before


def test_the_weighted_pass_rate_is_unbiased_while_the_rate_changes_with_the_traffic_and_the_failures_with_both():
    """Failures are frequent when traffic is dense: an unweighted pass rate would be far off."""
    errors, unweighted, drawn_an_hour = [], [], []
    for seed in range(40):
        adaptive, traces, draw = AdaptiveRate(200), ids(seed), random.Random(1000 + seed)
        kept: list[tuple[float, bool]] = []
        passes = sent = 0
        for minute in range(180):
            dense = 60 <= minute < 100
            for _ in range(60 if dense else 2):
                trace_id, passed = next(traces), draw.random() < (0.5 if dense else 0.95)
                limit = adaptive.threshold(trace_id, DAY + minute * MINUTE)
                sent, passes = sent + 1, passes + passed
                if random_bits(trace_id, b"") >= limit:
                    kept.append((1 / probability(limit), passed))
        weight = sum(w for w, _ in kept)
        errors.append(sum(w for w, passed in kept if passed) / weight - passes / sent)
        unweighted.append(sum(passed for _, passed in kept) / len(kept) - passes / sent)
        drawn_an_hour.append(len(kept) / 3)
    mean = sum(errors) / len(errors)
    spread = (sum((each - mean) ** 2 for each in errors) / (len(errors) - 1)) ** 0.5
    assert abs(mean) < 3 * spread / len(errors) ** 0.5
    assert sum(unweighted) / len(unweighted) > 0.03 > 3 * spread / len(errors) ** 0.5, "weights matter"
    assert max(drawn_an_hour) < 300


def test_what_a_low_rate_draws_a_high_one_draws_too():
    traces = [next(each) for each in [ids(5)] for _ in range(2000)]
    low, high = AdaptiveRate(50), AdaptiveRate(500)
    drawn = [
        {each for each in traces if random_bits(each, b"") >= adaptive.threshold(each, DAY)} for adaptive in (low, high)
    ]
    assert drawn[0] < drawn[1]


@pytest.mark.parametrize(
    ("section", "whatever", "adaptive"),
    [
        (SamplingSection(), False, True),
        (SamplingSection(traces_per_hour=5), False, True),
        (SamplingSection(rate=0.5), False, False),
        (SamplingSection(), True, False),
        (SamplingSection(rules=(SamplingRuleSection(name="e", match={"level": "error"}, rate=1.0),)), False, False),
    ],
)
def test_an_explicit_rate_rules_and_sessions_have_a_fixed_rate(section, whatever, adaptive):
    sampler = Sampler(section, whatever=whatever)
    assert sampler.adaptive is adaptive
    assert probability(sampler.base) == pytest.approx(1.0 if adaptive else section.rate or 0.01)
