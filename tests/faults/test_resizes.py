"""A fleet is resized under load behind a front that routes by trace id: no trace is torn, lost or judged twice."""

from __future__ import annotations

import bisect
import hashlib
import signal
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.faults.test_replicas import CONFIG, stated, traffic

_POINTS = 100
"""Places of each backend on the ring, as the loadbalancing exporter has them."""


class Ring:
    """Consistent hashing: when a backend comes or goes, only its own share of the traces moves."""

    def __init__(self, backends):
        self._places = sorted(
            (_hash(f"{backend}/{point}".encode()), backend) for backend in backends for point in range(_POINTS)
        )

    def of(self, trace_id):
        return self._places[bisect.bisect(self._places, (_hash(trace_id), "")) % len(self._places)][1]


def _hash(value):
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest())


class Front:
    """The Collector's place: it routes by trace id, waits for a backend that refuses, and is told of resizes."""

    def __init__(self, url):
        self.url, self.http, self.ring = url, httpx.Client(timeout=5), Ring(["nobody"])

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
        end = time.monotonic() + 10
        while True:
            try:
                answer = self.http.post(self.ring.of(trace_id) + path, content=body, headers=headers)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code == 200:
                return
            assert time.monotonic() < end, "no backend took it"
            time.sleep(0.05)


@contextmanager
def fronting():
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            kept = {
                name: value for name, value in self.headers.items() if name.lower().startswith(("sidej", "content-t"))
            }
            if self.path == "/v1/traces":
                front.route(self.path, body, kept)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    front = Front(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield front
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        front.http.close()


def test_resizes_under_load_tear_no_trace(serving):
    assembly = {"grace": "300ms", "idle": "60s"}
    with fronting() as front:
        config = {**CONFIG, "assembly": assembly, "drain": {"timeout": "10s", "quiet": "200ms", "to": front.url}}
        alone, first, second = (serving(**each) for each in ({**CONFIG, "assembly": assembly}, config, config))
        sent = traffic(30, 2)
        traces = list(dict.fromkeys(trace_id for trace_id, _ in sent))
        by_trace = {each: [part for trace_id, part in sent if trace_id == each] for each in traces}

        def send(chosen, begin, end):
            for trace_id in chosen:
                parts = by_trace[trace_id]
                for part in parts[int(begin * len(parts)) : int(end * len(parts))]:
                    assert alone.post(part).status_code == 200
                    front.route("/v1/traces", part, {"content-type": "application/x-protobuf"})

        front.ring = Ring([first.otlp, second.otlp])
        send(traces[:10], 0, 1)
        send(traces[10:20], 0, 0.5)
        # Down: the leaving monitor is out of the ring before it ends, and hands over what lacks spans.
        front.ring = Ring([second.otlp])
        assert first.stop(signal.SIGTERM) == 0
        send(traces[10:20], 0.5, 1)
        # Up: the front keeps the spans of a trace together (groupbytrace), so a trace comes before or after.
        third = serving(**config)
        front.ring = Ring([second.otlp, third.otlp])
        send(traces[20:], 0, 1)
        for monitor in (alone, second, third):
            monitor.until(lambda monitor=monitor: monitor.outcomes()["open"] == 0, "traces stayed open")
        first.configure(drain=None)
        first.start()  # what it judged is in its store
        found = [stated(monitor) for monitor in (first, second, third)]
    assert all(found)
    whole = {place: verdict for each in found for place, verdict in each.items()}
    assert whole == stated(alone)
    assert sum(map(len, found)) == len(whole), "none was judged twice"
