"""A monitor reads its traces from Langfuse, of every version, and is killed while it does."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sidejudge.integrations.otlp.wire.recording import read_files
from sidejudge.integrations.raw import RawSpan
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.forked import sidejudge
from tests.running import ROOT

RECORDED = Path(__file__).parents[1] / "data" / "otlp" / "langfuse-v5" / "s2_agents" / "001.pb"
ROUTES = [{"rubrics": ["answer", "entity", "qa", "workflow"], "scenario": "any"}]
ANY: dict[str, Any] = {"any": {"tools_should_include": ["pdf_retrieval"]}}


def source(fake: FakeLangfuse, **more: object) -> dict[str, object]:
    keys = {"public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
    return {"base_url": fake.base_url, **keys, "timeout": "2s", "poll": "300ms", "settle": "100ms", **more}


def reading(serving, fake: FakeLangfuse, **more: Any):
    otlp = {"http": "127.0.0.1:0"}
    return serving(sources={"otlp": otlp, "langfuse": source(fake)}, routes=ROUTES, scenarios=ANY, **more)


def lately(spans: Sequence[RawSpan]) -> list[RawSpan]:
    """The same some seconds ago, in whole milliseconds, for that is what Langfuse keeps.

    The last minute is listed at every poll; what starts before it, and is written only now, some minutes later.
    """
    shift = time.time_ns() - 5 * 10**9 - max(span.end_ns for span in spans)
    ms = 10**6

    def at(ns: int) -> int:
        return (ns + shift) // ms * ms

    return [replace(span, start_ns=at(span.start_ns), end_ns=at(span.end_ns)) for span in spans]


def reported(monitor) -> dict[tuple[str, str], Any]:
    """What the verdicts say, without when, and without what an error's type was."""
    found = {}
    for verdict in monitor.verdicts():
        scores = [(s["metric"], s["value"], s["status"], s["rating"], s["method"]) for s in verdict["scores"]]
        kept = {key: verdict[key] for key in ("composite", "coverage", "state", "passed", "rating", "blockers", "task")}
        found[verdict["trace_id"], verdict["rubric"]] = {**kept, "scores": scores, "of": verdict["environment"]}
    return found


@pytest.mark.parametrize("mode", [Mode.V3, Mode.DUAL, Mode.EVENTS_ONLY], ids=lambda mode: mode.value)
def test_every_version_is_read_and_written_back_to(serving, mode):
    spans = lately(read_files([RECORDED]).spans)
    with FakeLangfuse(mode, parts=[Observations.part]) as fake:
        observations_of(fake).put(*rows_of(spans))
        sink = {key: value for key, value in source(fake).items() if key not in ("poll", "settle")}
        monitor = reading(serving, fake, sinks={"langfuse": sink})
        monitor.settled(1)
        (trace_id,) = {span.trace_id for span in spans}
        monitor.until(lambda: bool(fake.scores.stored()), "no score arrived")
        assert {row["traceId"] for row in fake.scores.stored()} == {trace_id}
        metrics = monitor.http.get(monitor.api + "/metrics").text
        assert "sidejudge_pull_traces_total 1.0" in metrics
        assert 'sidejudge_pull_errors_total{reason="rate_limited"} 0.0' in metrics
        assert "sidejudge_pull_lag_seconds" in metrics
        reported = cli("status", "--url", monitor.api)
        version = mode.value.split()[0]
        assert f"\nreading from Langfuse {version}: ok, 1 trace taken" in reported
        found = cli("doctor", "--config", str(monitor.config))
        assert f"sources.langfuse Langfuse {version} at" in " ".join(found.split())
        shown = cli("check", "--all", str(monitor.config))
        assert "sources.langfuse.secret_key" in shown
        assert SECRET_KEY not in monitor.log() + metrics + reported + found + shown


def test_a_monitor_that_is_killed_while_it_reads_judges_each_trace_once(serving):
    spans = lately(read_files([RECORDED]).spans)
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as fake:
        ids = [f"{number + 1:032x}" for number in range(16)]
        for index, trace_id in enumerate(ids[:12]):
            observations_of(fake).put(*rows_of(_as(spans, trace_id)), after_s=index * 0.05)
        monitor = reading(serving, fake)
        for _ in range(2):
            begun = len(fake.requested("GET", "/v2/observations"))
            monitor.until(
                lambda seen=begun: len(fake.requested("GET", "/v2/observations")) > seen + 4, "it does not read"
            )
            monitor.stop(signal.SIGKILL)
            monitor.start()
        for trace_id in ids[12:]:
            observations_of(fake).put(*rows_of(_as(spans, trace_id)))
        monitor.until(lambda: {v["trace_id"] for v in monitor.verdicts()} == set(ids), "some were not judged")
        assert {verdict["revision"] for verdict in monitor.verdicts()} == {1}
        assert monitor.get("/v1/status")["outcomes"]["revisions"] == 0
        assert all(f"/traces/{verdict['trace_id']}" in verdict["trace_url"] for verdict in monitor.verdicts())


def cli(*args: str) -> str:
    ran = sidejudge(*args, cwd=ROOT)
    return ran.stdout + ran.stderr


def _as(spans: Sequence[RawSpan], trace_id: str) -> list[RawSpan]:
    return [replace(span, trace_id=trace_id) for span in spans]
