"""What is believed of thresholds that traces state: nothing undeclared, nothing below the floor, no lion's share."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sidejudge.integrations.otlp.wire.tracestate import NEVER, randomness, threshold
from sidejudge.monitor.config.sampling import SamplingSection, TrustedUpstreamSection
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.scoring.case.case import Case

CASE = Case(case_id="c", model_output=None, service="shop")
TOP = bytes(9) + b"\xff" * 7
"""A trace id that reaches every threshold."""
CLAIM = "ot=th:fffffffffff"
"""To stand for 1.8e13 traces."""


def sampler(rate: float = 1.0, **trusted: float) -> Sampler:
    upstream = TrustedUpstreamSection(**trusted) if trusted else None
    return Sampler(SamplingSection(rate=rate, trust_upstream=upstream))


def weight(one: Sampler, trace_id: bytes, *states: str) -> float:
    decision = one.decide(CASE, one.admission, trace_id, states)
    assert decision.probability is not None
    return 1 / decision.probability


def numbered(n: int) -> bytes:
    return n.to_bytes(9, "big") + TOP[9:]


texts = st.one_of(
    st.text(max_size=60),
    st.builds("ot=th:{};rv:{}".format, *(st.text("0123456789abcdef", max_size=15) for _ in range(2))),
)


@given(
    tid=st.binary(min_size=16, max_size=16), states=st.lists(texts, max_size=3), rate=st.sampled_from([1.0, 0.3, 1e-4]),
    source=st.sampled_from(["trace_id", "hashed"]),
)  # fmt: skip
def test_nothing_in_a_trace_state_changes_what_an_undeclared_trace_counts_for(tid, states, rate, source):
    section = SamplingSection(rate=rate, randomness=source)
    claiming, plain = Sampler(section), Sampler(section)
    assert claiming.decide(CASE, claiming.admission, tid, states) == plain.decide(CASE, plain.admission, tid)


@given(states=st.lists(texts, max_size=3), rate=st.sampled_from([1.0, 0.3]), hashed=st.booleans())
def test_with_a_floor_no_trace_counts_for_more_than_that_many(states, rate, hashed):
    trusted = TrustedUpstreamSection(floor=0.05, max_share=0.5)
    one = Sampler(SamplingSection(rate=rate, randomness="hashed" if hashed else "trace_id", trust_upstream=trusted))
    for n in range(100):
        decision = one.decide(CASE, one.admission, numbered(n), [*states, CLAIM])
        assert decision.probability is None or decision.probability >= 0.05 * rate * (1 - 1e-9)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_collector_of_one_rate_is_believed_from_its_first_trace_on(share):
    one = sampler(floor=0.1, max_share=share)
    weights = [weight(one, numbered(n), f"ot=th:{threshold(0.1):014x}") for n in range(2_000)]
    assert (min(weights), max(weights)) == pytest.approx((10.0, 10.0))
    assert one.trust.disbelieved == {}


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("before", [60, 200, 2_000])
def test_one_trace_holds_no_more_than_its_share_of_what_came_before(before, share):
    one = sampler(floor=1e-6, max_share=share)
    others = sum(weight(one, numbered(n)) for n in range(before))
    mine = weight(one, TOP, CLAIM)
    assert mine <= max(1.0, share / (1 - share) * others) * (1 + 1e-9)
    assert one.trust.disbelieved["share"] == 1


def test_a_trace_that_is_decided_again_counts_as_it_did_and_is_counted_once():
    one = sampler(floor=0.1)
    for n in range(200):
        weight(one, numbered(n), "ot=th:8")
    first = weight(one, TOP, CLAIM)
    counted = one.trust.disbelieved.copy()
    for n in range(200, 400):
        weight(one, numbered(n))
    assert weight(one, TOP, CLAIM) == first
    assert one.trust.disbelieved == counted


def test_what_is_disbelieved_is_told_with_its_remedy():
    one = sampler()
    for n in range(240):
        weight(one, numbered(n))
    for n in range(4):
        weight(one, numbered(1_000 + n), CLAIM)
    assert not list(one.trust.anomalies), "some callers are no anomaly"
    for n in range(36):
        weight(one, numbered(2_000 + n), CLAIM)
    (found,) = one.trust.anomalies
    assert (found.kind, found.service) == ("disbelieved_claims", "shop")
    assert "names no sampler upstream" in found.cause
    assert "sampling.trust_upstream.floor" in found.remedy
    assert one.trust.disbelieved == {"undeclared": 40}


def test_what_the_cap_leaves_out_is_told_as_a_share_of_what_is_claimed():
    one = sampler(floor=0.01)
    for n in range(1_500):
        weight(one, numbered(n), "ot=th:fd70a3d70a3d71" if n % 300 == 299 else "")
    (found,) = one.trust.anomalies
    assert "% of the weight that its traces claim is left out" in found.cause


def test_a_sampler_that_draws_as_it_states_raises_nothing():
    draw, one = random.Random(5), sampler(floor=0.05)
    reported = 0
    for _ in range(20_000):
        tid, claim = draw.randbytes(16), draw.choice((0.5, 0.1))
        if randomness(tid) >= threshold(claim):
            weight(one, tid, f"ot=th:{threshold(claim):014x}")
            reported += bool(list(one.trust.anomalies)) if draw.random() < 0.05 else 0
    assert reported == 0


def test_claims_whose_ids_were_chosen_are_found_among_honest_ones():
    draw, one = random.Random(6), sampler(floor=0.05)
    for n in range(5_000):
        tid = draw.randbytes(16)
        if randomness(tid) >= threshold(0.1):
            weight(one, tid, f"ot=th:{threshold(0.1):014x}")
        if n % 100 == 0:
            weight(one, numbered(n), f"ot=th:{threshold(0.06):014x}")
    (found,) = one.trust.anomalies
    assert "were not drawn at these" in found.cause


def test_a_claim_that_the_traces_own_randomness_contradicts_counts_nothing():
    one = sampler(floor=0.05)
    assert weight(one, bytes(16), "ot=th:8") == 1.0
    assert one.trust.disbelieved == {"contradicted": 1}


@pytest.mark.parametrize("services", [2_000])
def test_endless_services_are_kept_together(services):
    one = sampler()
    for n in range(services):
        one.decide(Case(case_id="c", model_output=None, service=f"s{n}"), 0, numbered(n), [CLAIM])
    assert len(one.trust._services) <= 1_001


def test_off_is_nobody_and_a_floor_of_nothing_is_refused():
    assert SamplingSection.model_validate({"trust_upstream": "off"}).trust_upstream is None
    assert SamplingSection.model_validate({"trust_upstream": False}).trust_upstream is None
    for floor in (0, 1.5):
        with pytest.raises(ValidationError):
            SamplingSection.model_validate({"trust_upstream": {"floor": floor}})
    with pytest.raises(ValidationError, match="floor"):
        SamplingSection.model_validate({"trust_upstream": {}})
    assert threshold(1e-9) < NEVER
