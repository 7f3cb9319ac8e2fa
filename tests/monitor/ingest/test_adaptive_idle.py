"""Adaptive idle timeout: idle follows the silence of the application, within bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sidejudge.monitor.ingest.service_habits import AdaptiveIdle


def learnt(pauses, floor=30, ceiling=120) -> AdaptiveIdle:
    idle = AdaptiveIdle(floor, ceiling)
    for pause in pauses:
        idle.learn("shop", pause)
    return idle


def test_a_service_that_pauses_long_is_waited_for_longer():
    assert learnt([40] * 20).idle_ns("shop") == 80
    assert learnt([40] * 20).idle_ns("desk") == 30


def test_few_traces_are_too_few_to_adapt_and_few_long_pauses_change_nothing():
    assert learnt([40] * 15).idle_ns("shop") == 30
    assert learnt([1] * 96 + [100] * 4).idle_ns("shop") == 30
    assert learnt([1] * 90 + [50] * 10).idle_ns("shop") == 100


def test_it_forgets():
    assert learnt([50] * 20 + [1] * 128).idle_ns("shop") == 30


@given(st.lists(st.integers(0, 10_000)), st.integers(1, 100), st.integers(0, 1_000))
def test_idle_stays_within_its_bounds(pauses, floor, ceiling):
    assert floor <= learnt(pauses, floor, ceiling).idle_ns("shop") <= max(floor, ceiling)


def test_services_beyond_the_bound_keep_the_configured_idle():
    idle = AdaptiveIdle(30, 120)
    for n in range(1_200):
        for _ in range(20):
            idle.learn(f"s{n}", 40)
    assert (idle.idle_ns("s999"), idle.idle_ns("s1000")) == (80, 30)
