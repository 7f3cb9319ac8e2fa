"""Skew watch: a sample that is not the share that it is taken for is told, and an honest one is left in peace."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from sidejudge.integrations.otlp.wire.tracestate import NEVER, threshold
from sidejudge.monitor.ingest.sampling_skew import SamplingSkew


def legacy(rate: float, seed: int) -> Iterator[bytes]:
    """Ids as the Python SDK's TraceIdRatioBased lets them through: the low ones of the last 64 bits."""
    draw, bound = random.Random(seed), round(rate * (1 << 64))
    while True:
        yield draw.randbytes(8) + draw.randrange(bound).to_bytes(8, "big")


def watched(base_rate: float, ids: Iterator[bytes], count: int, **more) -> SamplingSkew:
    watch = SamplingSkew(threshold(base_rate), **more)
    for _ in range(count):
        watch.observe("shop", [next(ids)])
    return watch


@pytest.mark.parametrize(("upstream", "base"), [(0.01, 0.1), (0.002, 0.5), (0.002, 0.1), (0.001, 0.01), (1e-5, 0.01)])
def test_a_legacy_sampler_upstream_is_found(upstream, base):
    (found,) = watched(base, legacy(upstream, 3), 8_000).anomalies
    assert (found.kind, found.service) == ("skewed_sampling", "shop")
    assert "hashed" in found.remedy


def test_it_is_told_how_many_were_expected():
    (found,) = watched(0.01, legacy(0.001, 1), 5_000).anomalies
    assert "0 of 5000 traces reach the base rate's threshold, where 50 are expected" in found.cause


def test_where_the_share_fits_it_is_told_what_does_not():
    (found,) = watched(1.0, (n.to_bytes(16, "big") for n in range(1, 1_000)), 320).anomalies
    assert "one holds 320 of 320 traces, where 20 are expected" in found.cause


def test_random_ids_raise_no_alarm_however_often_one_looks():
    draw, watch = random.Random(11), SamplingSkew(threshold(0.1), generation=2_000)
    for _ in range(20_000):
        watch.observe("shop", [draw.randbytes(16)])
        assert not list(watch.anomalies)


def test_ids_that_count_upwards_are_found():
    ids = iter(n.to_bytes(16, "big") for n in range(1, 10_000))
    assert list(watched(0.5, ids, 500).anomalies)


def test_a_sampler_upstream_that_states_its_threshold_is_honoured_and_not_suspected():
    draw, base = random.Random(2), threshold(0.05)
    watch = SamplingSkew(base)
    for _ in range(20_000):
        bits = draw.randrange(threshold(0.5), NEVER)
        # What is not kept is never read, so its statement is not known.
        watch.observe("shop", [bytes(9) + bits.to_bytes(7, "big")], stated=bits >= base)
        assert not list(watch.anomalies)


def test_an_alarm_stands_until_a_whole_generation_has_passed_without_one():
    draw = random.Random(4)
    watch = watched(0.5, legacy(0.002, 1), 1_000, generation=1_000)
    assert list(watch.anomalies)
    for _ in range(999):
        watch.observe("shop", [draw.randbytes(16)])
        assert list(watch.anomalies)
    watch.observe("shop", [draw.randbytes(16)])
    assert not list(watch.anomalies)


def test_services_are_told_apart_and_their_number_is_bounded():
    watch = watched(0.5, legacy(0.002, 1), 500)
    draw = random.Random(4)
    for n in range(3_000):
        watch.observe(f"service-{n}", [draw.randbytes(16)])
    assert [s.service for s in watch.anomalies] == ["shop"]
    assert len(watch._seen) <= 1_001
