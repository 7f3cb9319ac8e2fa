"""What taking in traffic costs: CPU seconds per 1000 spans, against a bare server that only reads, in the same run.

    python tests/bench/bench_intake.py [--spans 40000] [--per-request 100] [--attributes 15] [--gzip]

Not a test: it prints a table. Each server runs in a process of its own (uvicorn, httptools, uvloop, no access log) and
is charged with the CPU of that process until it is quiet again. Bodies are ready before the clock starts. Absolute
numbers depend on the machine and on what else it does; ratios within a run travel.
"""

# ruff: noqa: PLC0415, T201  # each server imports only what it needs; a script prints

from __future__ import annotations

import argparse
import asyncio
import gzip
import multiprocessing
import os
import random
import socket
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TICKS = os.sysconf("SC_CLK_TCK")


def serve(kind: str, port: int, folder: str) -> None:
    """Run one server until it is killed. ``kind``: ``bare``, or the rate of a monitor's intake."""
    import uvicorn

    if kind == "bare":
        app = bare
    else:
        from integrations.otlp.receiver import Receiver
        from integrations.store.sqlite import Store
        from monitor.assembler import Assembler
        from monitor.config.model import Sampling
        from monitor.intake import Intake
        from monitor.ledger import Ledger
        from monitor.sampler import Sampler

        store = Store(Path(folder) / f"{kind}.sqlite")
        sampler = Sampler(Sampling(rate=float(kind)))
        app = Receiver(Intake(sampler=sampler, store=store, assembler=Assembler(), ledger=Ledger()).consume)
    uvicorn.run(
        app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", access_log=False, lifespan="off",
        log_level="error",
    )  # fmt: skip


async def bare(scope, receive, send) -> None:
    """The least an HTTP server can do: read the body, answer."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def bodies(spans: int, per_request: int, attributes: int, rng: random.Random) -> list[bytes]:
    """Requests of traces of five spans with fresh ids, all below one root; about 1.8 kB a span with 15 attributes."""
    made = []
    for _ in range(spans // per_request):
        request = ExportTraceServiceRequest()
        resource_spans = request.resource_spans.add()
        resource_spans.resource.attributes.add(key="service.name").value.string_value = "bench"
        scope_spans = resource_spans.scope_spans.add()
        scope_spans.scope.name = "bench"
        trace_id = root = b""
        for number in range(per_request):
            if number % 5 == 0:
                trace_id, root = rng.randbytes(16), b""
            span = scope_spans.spans.add(trace_id=trace_id, span_id=rng.randbytes(8), parent_span_id=root, name="step")
            root = root or span.span_id
            span.start_time_unix_nano = span.end_time_unix_nano = time.time_ns()
            for a in range(attributes):
                span.attributes.add(key=f"gen_ai.attribute.{a}").value.string_value = rng.randbytes(40).hex()
        made.append(request.SerializeToString())
    return made


async def drive(port: int, payloads: list[bytes], connections: int) -> tuple[float, dict[int, int]]:
    """Send everything over a few connections, one request at a time each; wall seconds and answers by status."""
    todo = iter(payloads)
    statuses: dict[int, int] = {}

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for payload in todo:
            writer.write(payload)
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head[9:12])
            statuses[status] = statuses.get(status, 0) + 1
            length = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"), 0
            )
            await reader.readexactly(length)
        writer.close()

    begin = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(connections)))
    return time.perf_counter() - begin, statuses


def usage(pid: int) -> tuple[float, float]:
    """CPU seconds and resident MB of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def quiet(pid: int) -> float:
    """CPU seconds once the process has done nothing for half a second."""
    last = -1.0
    while (now := usage(pid)[0]) != last:
        last = now
        time.sleep(0.5)
    return last


def measure(kind: str, requests: list[bytes], spans: int, folder: str) -> tuple[float, float, float, dict[int, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(kind, port, folder), daemon=True)
    process.start()
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        before = quiet(process.pid)
        wall, statuses = asyncio.run(drive(port, requests, 8))
        cpu = quiet(process.pid) - before
        return cpu * 1000 / spans, wall, usage(process.pid)[1], statuses
    finally:
        process.kill()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=int, default=40_000)
    parser.add_argument("--per-request", type=int, default=100)
    parser.add_argument("--attributes", type=int, default=15)
    parser.add_argument("--gzip", action="store_true")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("bare", "0.01", "1.0"):
            # New ids for each server, so that none is spared work by knowing a trace already.
            raw = bodies(args.spans, args.per_request, args.attributes, random.Random())
            sent = [gzip.compress(body, 6) for body in raw] if args.gzip else raw
            extra = "Content-Encoding: gzip\r\n" if args.gzip else ""
            head = f"POST /v1/traces HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-protobuf\r\n{extra}"
            requests = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in sent]
            size = sum(map(len, raw)) / args.spans
            rows.append((kind, *measure(kind, requests, args.spans, folder)))
    print(f"{args.spans} spans, {args.per_request} a request, {size:.0f} bytes a span, gzip: {args.gzip}")
    print(f"{'server':<10}{'CPU s/1000 spans':>18}{'x bare':>8}{'spans/s':>10}{'RSS MB':>8}  answers")
    base = rows[0][1]
    for kind, cpu, wall, rss, statuses in rows:
        print(f"{kind:<10}{cpu:>18.4f}{cpu / base:>8.1f}{args.spans / wall:>10.0f}{rss:>8.0f}  {statuses}")


if __name__ == "__main__":
    main()
