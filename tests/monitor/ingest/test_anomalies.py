"""Suspicions are told where an operator looks, and each once in the log."""

from __future__ import annotations

import logging
import random

from sidejudge.integrations.otlp.wire.request import ChunkOrigin
from sidejudge.integrations.otlp.wire.tracestate import threshold
from sidejudge.monitor.ingest.anomalies import TrafficAnomalies
from sidejudge.monitor.ingest.assembled_trace import Closing
from sidejudge.monitor.ingest.sampling_skew import SamplingSkew
from tests.otlp_requests import S, request, span


def closing(*, whole: bool) -> Closing:
    completion = "root_ended" if whole else "idle"
    return Closing(
        trace_id=bytes(16), completion=completion, revision=1, origin=ChunkOrigin("shop", None, 0), whole=whole
    )


def test_what_is_suspected_is_logged_once_with_its_remedy_and_when_it_is_over(caplog):
    caplog.set_level(logging.INFO, "sidejudge.traffic")
    traffic = TrafficAnomalies(skew=None)
    traffic.log_news()
    assert not caplog.records
    fragments = [closing(whole=False)] * 150
    assert traffic.closed(fragments) is fragments
    for _ in range(3):
        traffic.log_news()
    (warning,) = caplog.records
    assert (warning.levelname, warning.kind) == ("WARNING", "split_traces")
    assert "route by trace id" in warning.remedy
    traffic.closed([closing(whole=True)] * 200)
    traffic.log_news()
    assert [record.getMessage() for record in caplog.records[1:]] == ["an anomaly has ended"]


def test_a_service_name_cannot_write_lines_of_its_own_into_the_log(caplog):
    skew, draw = SamplingSkew(threshold(0.5)), random.Random(1)
    skew.observe(
        "shop\n12:00:01 error sidejudge forged" + "x" * 500, [draw.randbytes(8) + bytes(8) for _ in range(500)]
    )
    TrafficAnomalies(skew=skew).log_news()
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert len(record.getMessage()) < 500


async def test_a_monitor_that_a_legacy_sampler_starves_says_so(started):
    """Ids as TraceIdRatioBased lets them through at 0.1 %: nothing reaches our threshold, and nothing is kept."""
    draw = random.Random(5)
    running = await started(sampling={"rate": 0.1})
    for _ in range(4):
        ids = [draw.randbytes(8) + draw.randrange(round(0.001 * 2**64)).to_bytes(8, "big") for _ in range(100)]
        await running.post(request([S(trace_id=each, span_id=span(1)) for each in ids]))
    (found,) = (await running.get("/v1/status"))["suspicions"]
    assert (found["kind"], found["service"]) == ("skewed_sampling", "shop")
    assert "sampling.randomness: hashed" in found["remedy"]
    text = (await running.http.get(running.api + "/metrics")).text
    assert 'sidejudge_traffic_suspected{kind="skewed_sampling"} 1.0' in text
