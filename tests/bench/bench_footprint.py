"""What a monitor takes, for sizing: start, memory, CPU by spans and by verdicts, disk, and the time to end.

    python tests/bench/bench_footprint.py [--traces 3000] [--python /opt/sidejudge/bin/python]

Not a test: it prints a table. Each row is a monitor of its own, as an image starts it, fed with the agent traces of the
demo by eight connections that wait for their answers. ``--python`` is the environment that is measured: that of an
image (``.ci/image.sh FOLDER``), or this one. Absolute numbers depend on the machine and on what else it does.
"""

# ruff: noqa: T201  # a script prints

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.bench.servers import Served
from tests.fakes.judge import judges
from tests.fakes.openai import Provider
from tests.running import free_port

TOGETHER = 20
"""Traces a request, as a batching exporter sends them."""
STARTS = 5
SCENARIO = {"any": {"agents_should_include": ["research"], "tools_should_exclude": ["rm"]}}
HISTORY = ("traces", "verdicts")


@dataclass
class Way:
    """How a monitor is configured; ``share`` of the traces are sent."""

    name: str
    config: dict[str, Any]
    share: float = 1.0
    took: dict[str, float] = field(default_factory=dict)


class Monitor:
    """A monitor in an environment of its own choice."""

    def __init__(self, python: str, folder: Path, config: dict[str, Any]) -> None:
        self.python, self.folder = python, folder
        self.otlp, self.api = free_port(), free_port()
        self.store = folder / "state.sqlite"
        stated = {
            "assembly": {"grace": "200ms", "idle": "2s", "late": "1h"},
            "sources": {"otlp": {"http": f"127.0.0.1:{self.otlp}"}},
            "api": {"listen": f"127.0.0.1:{self.api}"}, "store": {"path": str(self.store)},
            **config,
        }  # fmt: skip
        (folder / "sidejudge.yaml").write_text(yaml.safe_dump(stated))

    def start(self) -> float:
        """Seconds until it is ready."""
        begin = time.perf_counter()
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [self.python, "-P", "-m", "sidejudge", "serve", "--config", str(self.folder / "sidejudge.yaml")],
            cwd=self.folder, stdout=log, stderr=log, env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )  # fmt: skip
        log.close()
        self.served = Served(self.process.pid, self.otlp, self.api)
        while not self.ready():
            if self.process.poll() is not None:
                raise SystemExit((self.folder / "log").read_text())
            time.sleep(0.01)
        return time.perf_counter() - begin

    def ready(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.api, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def settle(self, traces: int) -> dict[str, Any]:
        while (outcomes := self.served.outcomes())["open"] or outcomes["seen"] < traces:
            time.sleep(0.5)
        return outcomes

    def highest_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6

    def end(self) -> float:
        """Seconds from SIGTERM to the end."""
        begin = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)
        return time.perf_counter() - begin

    def pages(self) -> dict[str, int]:
        """Bytes of the store by table, indexes with their table."""
        with closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as connection, connection:
            return dict(
                connection.execute(
                    "SELECT m.tbl_name, sum(d.pgsize) FROM dbstat AS d JOIN sqlite_master AS m USING (name) GROUP BY 1"
                )
            )


async def drive(port: int, requests: list[bytes]) -> None:
    """Send everything over eight connections, one request at a time each."""
    todo = iter(requests)

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in todo:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if head[9:12] != b"200":
                raise SystemExit(head.decode("latin-1"))
            lines = head.lower().split(b"\r\n")
            await reader.readexactly(next((int(line[15:]) for line in lines if line[:15] == b"content-length:"), 0))
        writer.close()

    await asyncio.gather(*(work() for _ in range(8)))


def load(traces: int) -> tuple[list[bytes], int]:
    """Requests of agent traces with fresh ids, and how many spans a trace has on average, times the traces."""
    traffic, made, spans = SampleTraffic(11), [], 0
    for _ in range(max(1, traces // TOGETHER)):
        request = ExportTraceServiceRequest()
        for _ in range(TOGETHER):
            while (sent := traffic.next(time.time_ns(), wrong=0.1)).service != "research-assistant":
                pass
            request.MergeFromString(sent.body)
        spans += sum(len(scope.spans) for each in request.resource_spans for scope in each.scope_spans)
        body = request.SerializeToString()
        head = "POST /v1/traces HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-protobuf\r\n"
        made.append(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return made, spans


def measure(way: Way, python: str, traces: int) -> None:
    took = way.took
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor(python, Path(folder), way.config)
        starts = []
        for _ in range(STARTS):
            waited = monitor.start()
            starts.append((waited, monitor.served.usage()[0]))
            monitor.served.quiet()
            took["idle MB"] = monitor.served.usage()[1]
            monitor.end()
        took["start s"], took["start CPU s"] = (median(column) for column in zip(*starts, strict=True))
        requests, spans = load(int(traces * way.share))
        monitor.start()
        try:
            before = monitor.served.quiet()
            asyncio.run(drive(monitor.otlp, requests))
            outcomes = monitor.settle(len(requests) * TOGETHER)
            cpu = monitor.served.quiet() - before
            judged = outcomes["ended"]["scored"]
            took |= {"CPU ms/span": cpu * 1000 / spans, "MB": monitor.highest_mb(), "end s": monitor.end()}
            took |= {"traces": len(requests) * TOGETHER, "spans": spans, "judged": judged}
            if judged == took["traces"]:
                pages = monitor.pages()
                took["disk B/span"] = pages["chunks"] / spans
                took["disk B/trace"] = sum(pages[table] for table in HISTORY) / judged
        finally:
            monitor.process.kill()
            monitor.process.wait()
        way.took = took


def has(python: str, module: str) -> bool:
    find = f"import sys, importlib.util as u; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-P", "-c", find], check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=3000)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    routes = {"routes": [{"rubrics": ["workflow"], "scenario": "any"}], "scenarios": SCENARIO}
    with ExitStack() as stack:
        ways = [
            Way("1 % sampled", {"sampling": {"rate": 0.01}, **routes}),
            Way("all judged by workflow", {"sampling": {"rate": 1.0}, **routes}),
        ]
        if has(args.python, "litellm"):
            provider = stack.enter_context(Provider(judges()))
            judge = {"model": "openai/gpt-4o-mini", "api_base": provider.url, "api_key": "none", "cache_entries": 0}
            judged = {"routes": [{"rubrics": ["quality"]}], "evaluators": {"judge": judge}}
            ways.append(Way("all judged by a judge", {"sampling": {"rate": 1.0}, **judged}, share=0.1))
        if has(args.python, "sentence_transformers") and has(sys.executable, "sentence_transformers"):
            from tests.fakes import sentence_model  # noqa: PLC0415  # loads nothing before it is needed

            model = sentence_model.save(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "model")
            embedded = {"routes": [{"rubrics": ["answer"]}], "evaluators": {"embedding": {"model": str(model)}}}
            ways.append(Way("a small embedding model", {"sampling": {"rate": 1.0}, **embedded}, share=0.1))
        for way in ways:
            measure(way, args.python, args.traces)
    columns = ["traces", "spans", "judged", "start s", "start CPU s", "idle MB", "MB"]
    columns += ["CPU ms/span", "disk B/span", "disk B/trace", "end s"]
    print(f"{'':<24}" + "".join(f"{column:>14}" for column in columns))
    for way in ways:
        cells = (f"{way.took[c]:.4g}" if c in way.took else "" for c in columns)
        print(f"{way.name:<24}" + "".join(f"{cell:>14}" for cell in cells))
    least, most = ways[0].took, ways[1].took
    each = (most["CPU ms/span"] - least["CPU ms/span"]) * most["spans"] / (most["judged"] - least["judged"])
    length = most["spans"] / most["traces"]
    print(f"CPU of a verdict of workflow, its spans read and kept: {each:.2f} ms ({length:.1f} spans a trace)")


if __name__ == "__main__":
    main()
