"""However the spans of a trace are delivered, what is said of it in the end is the same."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.monitor.config import Config, load
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.runtime.app import Monitor

SECOND = 1_000_000_000
NOW = 1_790_000_000 * SECOND
CONFIG = {
    "sampling": {"rate": 1.0},
    "assembly": {"grace": "2s", "idle": "30s", "late": "6h"},
    "routes": [
        {"match": {"service": "research-assistant"}, "rubrics": ["workflow"], "scenario": "policy"},
        {"match": {"metadata.task": "qa"}, "rubrics": ["qa"]},
        {"match": {"metadata.task": "entity"}, "rubrics": ["entity"]},
    ],
    "scenarios": {"policy": {"agents_should_include": ["research"], "tools_should_include": ["pdf_retrieval"]}},
}
_SAID_AGAIN = ("created_at", "revision", "closed_ns")


def configuration(folder: Path) -> Config:
    path = folder / "sidejudge.yaml"
    path.write_text(yaml.safe_dump({**CONFIG, "store": {"path": str(folder / "state.sqlite")}}))
    return load(path, {})


def traffic(count: int) -> list[bytes]:
    made = SampleTraffic(7)
    return [made.next(NOW, wrong=float(n % 2)).body for n in range(count)]


def apart(body: bytes) -> list[bytes]:
    """A request with one span each."""
    found = []
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                one = ExportTraceServiceRequest()
                into = one.resource_spans.add(resource=resource.resource)
                into.scope_spans.add(scope=scope.scope).spans.append(span)
                found.append(one.SerializeToString())
    return found


async def verdicts(deliveries: list[tuple[int, bytes]]) -> list[dict]:
    """Deliver each request after its pause in seconds; the last verdicts, without what differs by time."""
    with tempfile.TemporaryDirectory() as folder:
        now = NOW
        monitor = Monitor(configuration(Path(folder)), clock_ns=lambda: now)

        async def wait(seconds: int) -> None:
            nonlocal now
            for _ in range(0, seconds + 1, 5):
                now += min(seconds, 5) * SECOND
                monitor.pipeline.waiting.extend(monitor.judging.due())
                await monitor.pipeline.drain()

        for pause, body in deliveries:
            await wait(pause)
            await monitor.intake.consume(body)
        await wait(300)
        found = list(monitor.store.verdicts_since(0))
        assert monitor.outcomes.open == 0
        monitor.store.close()
    reported = [{key: value for key, value in verdict.items() if key not in _SAID_AGAIN} for verdict in found]
    return sorted(reported, key=lambda verdict: (verdict["trace_id"], verdict["rubric"]))


BODIES = traffic(4)
EXPECTED = asyncio.run(verdicts([(0, body) for body in BODIES]))


@given(seed=st.integers(0, 2**32), slow=st.floats(0, 1), again=st.floats(0, 1))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_shuffled_split_duplicated_and_delayed_delivery_gives_the_same_verdicts(seed, slow, again):
    """Spans one by one, in any order, some twice, some late enough that their trace has been judged without them."""
    draw = random.Random(seed)
    parts = [part for body in BODIES for part in apart(body)]
    parts += [part for part in parts if draw.random() < again]
    draw.shuffle(parts)
    deliveries = [(draw.choice((3, 35, 120)) if draw.random() < slow else 0, part) for part in parts]
    assert asyncio.run(verdicts(deliveries)) == EXPECTED


def test_the_verdicts_that_are_compared_say_something():
    assert {verdict["passed"] for verdict in EXPECTED} >= {True, False}
    assert len(EXPECTED) == len(BODIES)
