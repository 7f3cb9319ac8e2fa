"""What a scrape costs whoever asks meanwhile: ``/livez`` beside scrapes without a pause, as ratio to an idle one.

50 services are judged by 6 rubrics each. In the second run each service has a route of its own to one of the six, so
there must be no series of the other five.
"""

# ruff: noqa: T201  # a script prints

from __future__ import annotations

import gzip
import http.client
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.bench.servers import Served, monitor

SERVICES = 50
RUBRICS = ("workflow", "entity", "qa", "text", "run_health", "answer")
PROBES = 1500
TARGET_MS = 10.0
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


def fill(server: Served) -> None:
    """Send every service some runs, and wait until they are judged."""
    traffic = SampleTraffic(7)
    with httpx.Client(trust_env=False) as client:
        for number in range(SERVICES * 4):
            sent = ExportTraceServiceRequest.FromString(traffic.next(time.time_ns(), wrong=0.3).body)
            for group in sent.resource_spans:
                for each in group.resource.attributes:
                    if each.key == "service.name":
                        each.value.string_value = f"service-{number % SERVICES:02}"
            kind = {"content-type": "application/x-protobuf"}
            url = f"http://127.0.0.1:{server.port}/v1/traces"
            client.post(url, content=sent.SerializeToString(), headers=kind).raise_for_status()
    server.quiet()


def probes(server: Served, count: int) -> list[float]:
    """Milliseconds of each of so many probes, one every 5 ms, over a connection that is kept."""
    connection = http.client.HTTPConnection("127.0.0.1", server.api or 0, timeout=30)
    took = []
    for _ in range(count):
        begin = time.perf_counter()
        connection.request("GET", "/livez")
        connection.getresponse().read()
        took.append((time.perf_counter() - begin) * 1e3)
        time.sleep(0.005)
    connection.close()
    return sorted(took)


class Scraper:
    """Scrapes one after the other, as ``scrapers`` Prometheus servers without a pause would."""

    def __init__(self, server: Served, encoding: str) -> None:
        self._url, self._encoding = f"http://127.0.0.1:{server.api}/metrics", encoding
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.took: list[float] = []

    def _run(self) -> None:
        with httpx.Client(trust_env=False, timeout=60) as client:
            while not self._stop.is_set():
                begin = time.perf_counter()
                with client.stream(
                    "GET", self._url, headers={"accept": OPENMETRICS, "accept-encoding": self._encoding}
                ) as answer:
                    self.body = b"".join(answer.iter_raw())
                    self.encoding = answer.headers.get("content-encoding", "identity")
                self.took.append((time.perf_counter() - begin) * 1e3)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def text(self) -> bytes:
        return gzip.decompress(self.body) if self.encoding == "gzip" else self.body


def at(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))]


def measure(title: str, routes: list[dict[str, object]]) -> float:
    """Print a table for these routes; the p99 of ``/livez`` beside gzipped scrapes, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder, monitor(1.0, Path(folder), routes=routes) as server:
        fill(server)
        probes(server, 50)
        idle = probes(server, PROBES)
        print(f"{title}: /livez idle: p50 {at(idle, 0.5):.2f} ms, p99 {at(idle, 0.99):.2f} ms")
        for encoding in ("identity", "gzip"):
            with Scraper(server, encoding) as scraper:
                beside = probes(server, PROBES)
            lines = [line for line in scraper.text.splitlines() if line and not line.startswith(b"#")]
            p50, p99 = at(beside, 0.5), at(beside, 0.99)
            print(
                f"  {scraper.encoding}: {len(lines):,} samples, {len(scraper.body) / 1e3:,.0f} kB, "
                f"{len(scraper.took)} scrapes of {at(sorted(scraper.took), 0.5):.0f} ms"
            )
            print(
                f"    /livez p50 {p50:.2f} ms ({p50 / at(idle, 0.5):.1f} times idle), p99 {p99:.2f} ms "
                f"({p99 / at(idle, 0.99):.1f} times), longest {beside[-1]:.1f} ms"
            )
    return p99


def main() -> None:
    """Print the ratios."""
    scenario = {"scenario": "any"}
    every = [{"rubrics": list(RUBRICS), **scenario}]
    routed = [
        {"match": {"service": f"service-{number:02}"}, "rubrics": [RUBRICS[number % len(RUBRICS)]], **scenario}
        for number in range(SERVICES)
    ]
    print(f"{SERVICES} services; a probe every 5 ms beside scrapes without a pause; target: p99 below {TARGET_MS:g} ms")
    p99 = measure(f"{len(RUBRICS)} rubrics each", every)
    measure("one rubric each", routed)
    print("target reached" if p99 < TARGET_MS else "target missed")


if __name__ == "__main__":
    main()
