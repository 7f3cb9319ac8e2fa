"""Real monitors behind a front that routes by trace id are resized in the middle of traces: none is torn or lost."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.monitor.evaluate.result import EndReason
from sidejudge.monitor.runtime.process import drain
from tests.faults.test_replicas import CONFIG, traffic
from tests.monitor.peers.test_joining import Ring
from tests.running import free_port
from tests.waiting import until

KEPT = ("sidejudge-handover", "content-type")


class Front:
    """The Collector's place: it routes by trace id, waits for a backend that refuses, and is given each resize."""

    def __init__(self):
        self.url, self.http, self.backends = "", httpx.Client(timeout=20), {}

    def route(self, path, body, headers):
        apart = {}
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    into = apart.setdefault(span.trace_id, ExportTraceServiceRequest()).resource_spans.add()
                    into.resource.CopyFrom(resource.resource)
                    into.scope_spans.add(scope=scope.scope).spans.append(span)
        for trace_id, request in apart.items():
            self._deliver(trace_id, path, request.SerializeToString(), headers)

    def _deliver(self, trace_id, path, body, headers):
        end = time.monotonic() + 30
        while True:
            try:
                url = self.backends[Ring(self.backends).of(trace_id)]
                if self.http.post(url + path, content=body, headers=headers).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < end, "no backend took it"
            time.sleep(0.05)


@contextmanager
def fronting():
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces":
                front.route(self.path, body, {k: v for k, v in self.headers.items() if k.lower() in KEPT})
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    front = Front()
    front.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        front.http.close()


async def stated(app):
    """What matters of each verdict."""
    return {
        (v["trace_id"], v["rubric"]): (v["passed"], v["composite"], v["state"], v["reason"], v["revision"])
        for v in (await app.get("/v1/verdicts", limit="1000"))["verdicts"]
    }


def joins(app):
    return app.monitor.outcomes.balance().ended[EndReason.HANDED_OVER]


async def test_resizes_in_the_middle_of_traces_tear_none(started, tmp_path):
    ports = {name: free_port() for name in ("a", "b", "c")}
    addresses = [f"http://127.0.0.1:{port}" for port in ports.values()]
    common = {k: v for k, v in CONFIG.items() if k != "assembly"} | {
        "assembly": {"grace": "100ms", "idle": "60s"}, "log": {"level": "error"},
    }  # fmt: skip
    later_ns = [0]
    with fronting() as front:

        async def member(name):
            return await started(
                clock_ns=lambda: time.time_ns() + later_ns[0], **common,
                store={"path": str(tmp_path / f"{name}.sqlite")},
                sources={"otlp": {"http": f"127.0.0.1:{ports[name]}"}},
                peers={"addresses": addresses, "every": "100ms", "settle": "2s", "wait": "20s"},
                drain={"timeout": "5s", "quiet": "0s", "to": front.url},
            )  # fmt: skip

        alone = await started(**common, store={"path": str(tmp_path / "alone.sqlite")})
        a, b = await member("a"), await member("b")
        await until(lambda: all(app.monitor.peers.joining.peers.met for app in (a, b)))
        later_ns[0] = 600 * 10**9  # they have been there for long, and c was not
        sent = traffic(30, 1, now_ns=time.time_ns() + later_ns[0])
        parts = {}
        for trace_id, part in sent:
            parts.setdefault(trace_id, []).append(part)
        assert sum(len(each) > 1 for each in parts.values()) > 10

        async def send(begin, end):
            for each in parts.values():
                for part in each[round(begin * len(each)) : round(end * len(each))]:
                    assert (await alone.post(part)).status_code == 200
                    await asyncio.to_thread(front.route, "/v1/traces", part, {"content-type": "application/x-protobuf"})

        async def settled(*apps):
            await until(lambda: all(app.monitor.outcomes.open == 0 for app in apps), seconds=90)

        front.backends = {"a": a.otlp, "b": b.otlp}
        await send(0, 0.5)
        # Up: half of each trace came before. What is at the new one looks whole, and is not.
        c = await member("c")
        front.backends["c"] = c.otlp
        await send(0.5, 1)
        await settled(alone, a, b, c)
        assert joins(a) + joins(b) > 3, "some were torn, and have been joined"
        found = [await stated(app) for app in (a, b, c)]
        assert all(found)
        assert {place: verdict for each in found for place, verdict in each.items()} == await stated(alone)
        assert sum(map(len, found)) == len(await stated(alone)), "none was judged twice"

        # Down: what is open at the one that ends goes on elsewhere.
        before = len(await stated(alone))
        parts = {}
        for trace_id, part in traffic(30, 1, seed=4, now_ns=time.time_ns() + later_ns[0]):
            parts.setdefault(trace_id, []).append(part)
        await send(0, 0.5)
        del front.backends["a"]
        await drain(a.monitor, asyncio.Event())
        own = await stated(a)
        await a.monitor.stop()
        await send(0.5, 1)
        await settled(alone, b, c)
        found = [own, await stated(b), await stated(c)]
        assert {place: verdict for each in found for place, verdict in each.items()} == await stated(alone)
        assert sum(map(len, found)) == len(await stated(alone)) > before


async def test_where_another_monitor_does_not_answer_the_verdict_is_incomplete_and_gives_the_reason(started, tmp_path):
    ports = [free_port(), free_port()]
    common = {
        "routes": [{"rubrics": ["workflow"], "scenario": "any"}], "scenarios": {"any": {"agents_should_include": []}},
        "assembly": {"grace": "0s"},
    }  # fmt: skip
    peers = {"addresses": [f"http://127.0.0.1:{port}" for port in ports], "every": "100ms", "wait": "1s"}
    apps = [
        await started(
            **common, store={"path": str(tmp_path / f"{n}.sqlite")}, peers=peers,
            sources={"otlp": {"http": f"127.0.0.1:{port}"}},
        )
        for n, port in enumerate(ports)
    ]  # fmt: skip
    left, right = apps
    await until(lambda: all(app.monitor.peers.joining.peers._by_name for app in apps))
    await left.monitor.stop()
    (body,) = [part for _, part in traffic(1, 1000)]
    trace_id = ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans[0].trace_id.hex()
    await right.post(body)
    await until(lambda: right.monitor.peers.joining.waiting == 1)
    metrics = (await right.http.get(right.api + "/metrics")).text
    assert 'sidejudge_queue_items{queue="joining"} 1.0' in metrics
    await right.settled(1)
    assert right.monitor.outcomes.balance().ended == {EndReason.INCOMPLETE: 1}
    (verdict,) = (await right.get("/v1/verdicts"))["verdicts"]
    assert (verdict["state"], verdict["passed"]) == ("incomplete", None)
    explained = (await right.http.get(f"{right.api}/traces/{trace_id}")).text
    assert "another monitor may hold spans of it" in explained


async def test_strangers_are_given_no_spans(started):
    app = await started(peers={"addresses": ["http://127.0.0.1:9"], "every": "1h"})
    for message, status in (({"name": "x", "run": "y", "port": 1, "traces": {"00" * 16: True}}, 403), ({}, 400)):
        response = await app.http.post(app.otlp + "/v1/peers", json=message)
        assert response.status_code == status, response.text
    alone = await started(store={"path": str(app.monitor.config.store.path) + ".alone"})
    assert (await alone.http.post(alone.otlp + "/v1/peers", json={})).status_code in (404, 405)
