"""Fragment watch: a fleet whose traces are torn apart is told so, and a healthy one is left in peace."""

from __future__ import annotations

import random

import pytest

from sidejudge.integrations.otlp.wire.request import Chunk, ChunkOrigin, SpanHeader
from sidejudge.monitor.ingest.anomalies import Fragmentation, TrafficAnomalies
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.assembler import Assembler, AssemblyLimits
from sidejudge.monitor.ingest.upstream_trust import UpstreamTrust

HERE = ChunkOrigin("shop", None, 0)


def closing(completion="root_ended", *, whole=True, revision=1) -> Closing:
    return Closing(trace_id=bytes(16), completion=completion, revision=revision, origin=HERE, whole=whole)


def kinds(watch) -> list[str]:
    return [anomaly.kind.value for anomaly in watch.anomalies]


def test_whole_traces_and_a_few_lost_spans_are_no_suspicion():
    watch, draw = Fragmentation(), random.Random(3)
    for _ in range(5_000):
        watch.observe(closing() if draw.random() > 0.05 else closing("idle", whole=False))
        assert kinds(watch) == []


@pytest.mark.parametrize(("completion", "kind"), [("idle", "split_traces"), ("pseudo_root", "rootless_traces")])
def test_many_fragments_are_told_with_what_helps_until_they_have_become_few(completion, kind):
    watch = Fragmentation()
    for n in range(200):
        watch.observe(closing(completion, whole=False) if n % 2 else closing())
    (found,) = watch.anomalies
    assert (found.kind, found.service) == (kind, None)
    assert "100 of the last 200 traces" in found.cause
    assert "trace id" in found.remedy
    for _ in range(155):
        watch.observe(closing())
        assert kinds(watch) == [kind]
    for _ in range(50):
        watch.observe(closing())
    assert kinds(watch) == []


def test_traces_that_callers_began_are_counted_once_each():
    watch = TrafficAnomalies(skew=None, trust=UpstreamTrust(None, independent=False))
    watch.closed([closing("pseudo_root", whole=False), closing("idle", whole=False), closing()])
    watch.closed([closing("pseudo_root", whole=False, revision=2)])
    assert watch.trust.begun_by_callers == 1


@pytest.mark.parametrize("completion", ["pressure", "shutdown", "torn"])
def test_revisions_and_what_was_closed_early_or_torn_by_a_resize_are_no_evidence(completion):
    watch = Fragmentation()
    for _ in range(500):
        watch.observe(closing(completion, whole=False))
        watch.observe(closing("idle", whole=False, revision=2))
    assert kinds(watch) == []


@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_a_fleet_behind_a_plain_load_balancer_is_found_by_every_replica(replicas):
    """Traces of a root and five spans, exported in two batches; each batch goes to any replica."""
    draw = random.Random(replicas)
    assemblers = [Assembler(AssemblyLimits(grace_ns=2, idle_ns=30)) for _ in range(replicas)]
    watches = [Fragmentation() for _ in range(replicas)]
    for n in range(400 * replicas):
        trace_id = (n + 1).to_bytes(16, "big")
        ids = [bytes([k + 1]) * 8 for k in range(6)]
        headers = [SpanHeader(span_id=ids[k], parent_id=ids[k - 1] if k else b"") for k in range(6)]
        for batch in (headers[3:], headers[:3]):
            chunk = Chunk(trace_id=trace_id, payload=b"x", headers=tuple(batch), origin=HERE)
            draw.choice(assemblers).add(chunk, n)
    for assembler, watch in zip(assemblers, watches, strict=True):
        for found in assembler.due(10_000):
            watch.observe(found)
        assert kinds(watch) == ["split_traces"]
