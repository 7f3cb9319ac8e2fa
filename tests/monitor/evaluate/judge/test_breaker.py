"""The circuit breaker: when it opens, how it looks whether it may close, and whose word it hears."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.provider.errors import ProviderError, ProviderErrorKind
from sidejudge.monitor.evaluate.judge.breaker import (
    CONSECUTIVE,
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MAX_PAUSE_S,
    REACTIONS,
    Breaker,
    pause,
)

TRIPS = [kind for kind, reaction in REACTIONS.items() if reaction.breaker == "trips"]
COUNTS = [kind for kind, reaction in REACTIONS.items() if reaction.breaker == "counts"]
IGNORES = [kind for kind, reaction in REACTIONS.items() if reaction.breaker == "ignores"]


def fail(breaker, kind, now, **more):
    permit = breaker.permit(now)
    assert permit is not None
    breaker.failed(permit, ProviderError(kind, "told", **more), now)


def test_every_kind_of_failure_has_its_reaction():
    assert set(REACTIONS) == set(ProviderErrorKind)
    assert not any(reaction.retry for kind, reaction in REACTIONS.items() if kind in TRIPS)


@pytest.mark.parametrize("kind", TRIPS)
def test_what_cannot_mend_itself_opens_it_at_once_with_its_reason(kind):
    breaker = Breaker()
    fail(breaker, kind, 100.0)
    state = breaker.state(100.0)
    assert (state.circuit, state.since_s, state.next_probe_s) == ("open", 100.0, 100.0 + FIRST_PAUSE_S)
    assert state.reason == f"{kind}: told"
    assert breaker.permit(100.0) is None


@pytest.mark.parametrize("kind", COUNTS)
def test_other_failures_open_it_when_several_follow_each_other(kind):
    breaker = Breaker()
    for _ in range(CONSECUTIVE - 1):
        fail(breaker, kind, 1.0)
    breaker.succeeded(breaker.permit(1.0), 1.0)
    for _ in range(CONSECUTIVE - 1):
        fail(breaker, kind, 2.0)
    assert breaker.state(2.0).circuit == "closed"
    fail(breaker, kind, 2.0)
    assert breaker.state(2.0).circuit == "open"
    assert breaker.state(2.0).reason == kind  # the provider's words may quote a trace


@pytest.mark.parametrize("kind", IGNORES)
def test_a_request_that_is_refused_says_that_the_provider_works(kind):
    breaker = Breaker()
    for _ in range(CONSECUTIVE - 1):
        fail(breaker, ProviderErrorKind.TIMEOUT, 1.0)
    fail(breaker, kind, 1.0)
    fail(breaker, ProviderErrorKind.TIMEOUT, 1.0)
    assert breaker.state(1.0).circuit == "closed"


def test_one_probe_at_a_time_decides():
    breaker = Breaker()
    fail(breaker, ProviderErrorKind.AUTHENTICATION_FAILED, 0.0)
    assert breaker.state(FIRST_PAUSE_S).circuit == "half_open"
    probe = breaker.permit(FIRST_PAUSE_S)
    assert breaker.permit(FIRST_PAUSE_S) is None
    assert breaker.state(FIRST_PAUSE_S).next_probe_s is None
    breaker.succeeded(probe, 6.0)
    state = breaker.state(6.0)
    assert (state.circuit, state.reason, state.since_s) == ("closed", "", 6.0)


def test_a_probe_that_is_given_up_lets_another_probe():
    breaker = Breaker()
    fail(breaker, ProviderErrorKind.AUTHENTICATION_FAILED, 0.0)
    breaker.abandoned(breaker.permit(10.0))
    assert breaker.permit(10.0) is not None


def test_pauses_double_with_each_probe_that_fails_up_to_a_bound_and_begin_anew_after_a_success():
    breaker, now, pauses = Breaker(), 0.0, []
    fail(breaker, ProviderErrorKind.MODEL_NOT_FOUND, now)
    for _ in range(10):
        pauses.append(breaker.state(now).next_probe_s - now)
        now = breaker.state(now).next_probe_s
        fail(breaker, ProviderErrorKind.MODEL_NOT_FOUND, now)
    assert pauses == [min(FIRST_PAUSE_S * 2**n, LONGEST_PAUSE_S) for n in range(10)]
    assert breaker.state(now).since_s == 0.0  # it has been out of reach since then
    now = breaker.state(now).next_probe_s
    breaker.succeeded(breaker.permit(now), now)
    fail(breaker, ProviderErrorKind.MODEL_NOT_FOUND, now)
    assert breaker.state(now).next_probe_s == now + FIRST_PAUSE_S


def test_it_waits_as_long_as_the_provider_asks_but_not_for_ever():
    for requested, waits in ((30.0, 30.0), (1.0, FIRST_PAUSE_S), (1e9, LONGEST_PAUSE_S)):
        breaker = Breaker()
        fail(breaker, ProviderErrorKind.CREDIT_EXHAUSTED, 0.0, retry_after_s=requested)
        assert breaker.state(0.0).next_probe_s == waits


@pytest.mark.parametrize(
    ("kind", "requested", "circuit"),
    [
        (ProviderErrorKind.RATE_LIMITED, 61.0, "open"),
        (ProviderErrorKind.OVERLOADED, 61.0, "open"),
        (ProviderErrorKind.RATE_LIMITED, 60.0, "closed"),
        (ProviderErrorKind.BAD_REQUEST, 61.0, "closed"),
        (ProviderErrorKind.CONTEXT_OVERFLOW, 61.0, "closed"),
    ],
)
def test_a_wait_that_is_too_long_for_a_retry_opens_it(kind, requested, circuit):
    breaker = Breaker()
    fail(breaker, kind, 0.0, retry_after_s=requested)
    assert breaker.state(0.0).circuit == circuit
    assert breaker.state(0.0).next_probe_s == (requested if circuit == "open" else None)


def test_calls_that_began_before_it_opened_are_not_heard():
    breaker = Breaker()
    late, later = breaker.permit(0.0), breaker.permit(0.0)
    fail(breaker, ProviderErrorKind.AUTHENTICATION_FAILED, 1.0)
    breaker.succeeded(late, 2.0)
    assert breaker.state(2.0).circuit == "open"
    probe = breaker.permit(10.0)
    breaker.failed(later, ProviderError(ProviderErrorKind.TIMEOUT), 10.0)
    assert breaker.state(10.0).circuit == "half_open"
    breaker.succeeded(probe, 11.0)
    assert breaker.state(11.0).circuit == "closed"


@given(st.lists(st.tuples(st.sampled_from(list(ProviderErrorKind)), st.booleans(), st.floats(0, 400))))
def test_it_always_lets_somebody_through_in_the_end(steps):
    breaker, now = Breaker(), 0.0
    for kind, good, later in steps:
        now += later
        permit = breaker.permit(now)
        if permit is not None and good:
            breaker.succeeded(permit, now)
        elif permit is not None:
            breaker.failed(permit, ProviderError(kind), now)
        state = breaker.state(now)
        assert (state.reason == "") == (state.circuit == "closed")
    assert breaker.permit(now + LONGEST_PAUSE_S) is not None


@given(st.integers(0, 50), st.floats(0, 1, exclude_max=True))
def test_pauses_between_attempts_are_bounded_and_what_is_asked_for_is_kept_to(attempt, jitter):
    assert 0 <= pause(attempt, None, jitter) <= MAX_PAUSE_S
    assert 7.0 <= pause(attempt, 7.0, jitter) < 7.71
    assert pause(attempt, MAX_PAUSE_S + 1, jitter) is None


@pytest.mark.parametrize("ago", [600.0, 7200.0, 30 * 86_400.0])
def test_after_a_clock_was_set_back_the_next_one_probes(ago):
    breaker = Breaker()
    fail(breaker, TRIPS[0], 1e9)
    state = breaker.state(1e9 - ago)
    assert (state.circuit, state.since_s, state.next_probe_s) == ("half_open", 1e9 - ago, 1e9 + FIRST_PAUSE_S)
    assert breaker.permit(1e9 - ago).probe
