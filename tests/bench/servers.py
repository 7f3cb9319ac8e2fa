"""Servers to be measured, each in a process of its own: the monitor, Rotel, and the least that a server can do."""

# ruff: noqa: PLC0415  # each process imports only what it needs

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.running import free_port

ROOT = Path(__file__).parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Served:
    """A server that listens on ``port``; ``api`` is the monitor's, None for others."""

    pid: int
    port: int
    api: int | None = None

    def usage(self) -> tuple[float, float]:
        """CPU seconds and resident MB so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def quiet(self) -> float:
        """CPU seconds once it has done nothing for half a second, and a monitor has judged all that it took."""
        last = -1.0
        while (now := self.usage()[0]) - last > 1 / TICKS or self.waiting():
            last = now
            time.sleep(0.5)
        return now

    def waiting(self) -> int:
        """How many traces a monitor has not judged yet."""
        return int(self.outcomes()["open"]) if self.api else 0

    def outcomes(self) -> dict[str, Any]:
        """What became of the traces: ``seen``, ``open``, and ``ended`` by reason.

        By metrics, which are at most a second old: a monitor that nobody looks at is asked for nothing else.
        """
        with urllib.request.urlopen(f"http://127.0.0.1:{self.api}/metrics") as answer:
            families = text_string_to_metric_families(answer.read().decode())
            samples = {each.name: each.samples for each in families}
        ended = Counter[str]()
        for each in samples["sidejudge_traces"]:  # a reason stands by service, or added up under one that is none
            ended[each.labels["reason"]] += int(each.value)
        seen, waiting = (int(samples[f"sidejudge_traces_{name}"][0].value) for name in ("seen", "open"))
        return {"seen": seen, "open": waiting, "ended": ended}


def _wait(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on {port} after a minute")


@contextlib.contextmanager
def bare(kind: str) -> Iterator[Served]:
    """A server that does one thing with each body (``read``, ``ids`` or ``walk``), and answers."""
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(target=_serve_bare, args=(kind, port), daemon=True)
    process.start()
    try:
        _wait(port)
        yield Served(process.pid or 0, port)
    finally:
        process.kill()
        process.join()


def _serve_bare(kind: str, port: int) -> None:
    import uvicorn
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def ids(body: bytes) -> None:
        for span in _each_span(ExportTraceServiceRequest.FromString(body)):
            span.trace_id  # noqa: B018  # touching it is what is measured

    def walk(body: bytes) -> None:
        for span in _each_span(ExportTraceServiceRequest.FromString(body)):
            _attributes(span.attributes)
            for event in span.events:
                _attributes(event.attributes)

    touch: Callable[[bytes], None] = {"read": lambda _: None, "ids": ids, "walk": walk}[kind]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        touch(b"".join(parts))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    uvicorn.run(
        app, host="127.0.0.1", port=port, loop="uvloop", http="httptools", access_log=False, lifespan="off",
        log_level="error",
    )  # fmt: skip


def _each_span(request: Any) -> Iterator[Any]:
    return (span for rs in request.resource_spans for ss in rs.scope_spans for span in ss.spans)


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, kind) if kind else None


def rotel_program() -> Path | None:
    """Rotel's program, where ``make bench-peers`` put it."""
    return next((ROOT / ".venv-peers").glob("lib/python*/site-packages/rotel/rotel-agent"), None)


@contextlib.contextmanager
def rotel(program: Path, folder: Path) -> Iterator[Served]:
    """Rotel (a collector in Rust) that receives, decodes, batches and drops."""
    port = free_port()
    process = subprocess.Popen(
        [
            program, "start", "--exporter", "blackhole", "--otlp-http-endpoint", f"127.0.0.1:{port}",
            "--otlp-grpc-endpoint", f"127.0.0.1:{free_port()}", "--pid-file", folder / "pid",
            "--log-file", folder / "log",
        ],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait(port)
        yield Served(process.pid, port)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def monitor(
    rate: float, folder: Path, upstream: int | None = None, routes: list[dict[str, object]] | None = None
) -> Iterator[Served]:
    """The whole monitor as an operator starts it: every trace that is drawn is judged and committed.

    Two rubrics judge it, unless ``routes`` say otherwise; ``any`` is a scenario without expectations.
    """
    port, api = free_port(), free_port()
    config: dict[str, Any] = {
        "sources": {"otlp": {"http": f"127.0.0.1:{port}"}}, "api": {"listen": f"127.0.0.1:{api}"},
        "store": {"path": f"{folder}/state.sqlite"}, "sampling": {"rate": rate}, "log": {"level": "error"},
        "assembly": {"grace": "500ms", "idle": "2s", "idle_max": "2s", "root_wait": "0s"},
        "routes": routes or [{"rubrics": ["workflow", "entity"], "scenario": "any"}], "scenarios": {"any": {}},
    }  # fmt: skip
    if upstream is not None:
        config["forward"] = {"url": f"http://127.0.0.1:{upstream}"}
    (folder / "sidejudge.yaml").write_text(yaml.safe_dump(config))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "sidejudge", "serve", "--config", folder / "sidejudge.yaml"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _wait(port)
        yield Served(process.pid, port, api)
    finally:
        process.kill()
        process.wait()
