"""What forwarding adds: latency of the same requests to a server directly, and to it through a monitor, in one run.

    python tests/bench/bench_forward.py [--requests 2000] [--per-second 100] [--spans 20]

Not a test: it prints a table. Requests are due at fixed times (an open loop), alternately to each target, so that
whatever else the machine does falls on all alike; latency counts from when a request was due. The server reads and
answers, no more: what it costs is the same on every way to it.
"""

# ruff: noqa: T201  # a script prints

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import yaml

from tests.bench.bench_intake import bodies, quiet, serve, usage
from tests.running import free_port

RATES = (0.01, 1.0)
_IDLE_S = 2.0
"""Connections idle for longer are not used again: a server may close them."""


def monitor(config: str) -> None:
    """Run a monitor until it is killed."""
    from monitor.cli import main  # noqa: PLC0415  # in its own process

    main(["serve", "--config", config])


class Target:
    """A way to the server, and how long each request on it took."""

    def __init__(self, name: str, port: int) -> None:
        self.name, self.port = name, port
        self.took: list[float] = []
        self._free: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, float]] = []

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._free:
            reader, writer, since = self._free.pop()
            if time.perf_counter() - since < _IDLE_S:
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, body: bytes, due: float) -> None:
        reader, writer = await self._connection()
        head = "POST /v1/traces HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-protobuf\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer[9:12] == b"200", answer
        self.took.append(time.perf_counter() - due)
        self._free.append((reader, writer, time.perf_counter()))

    def at(self, share: float) -> float:
        """A quantile in milliseconds."""
        return sorted(self.took)[int(share * (len(self.took) - 1))] * 1000


async def drive(targets: list[Target], requests: int, per_second: float, payloads: list[bytes]) -> None:
    """Send each payload to each target, the targets in turns."""
    for target in targets:  # connections are made and code is warm before the clock starts
        for _ in range(20):
            await target.post(payloads[0], time.perf_counter())
        target.took.clear()
    begin, under_way = time.perf_counter(), []
    for number in range(requests * len(targets)):
        due = begin + number / (per_second * len(targets))
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        turn, which = divmod(number, len(targets))
        # Each turn begins with another, so that none always follows the same one.
        target = targets[(which + turn) % len(targets)]
        under_way.append(asyncio.create_task(target.post(payloads[turn % len(payloads)], due)))
    await asyncio.gather(*under_way)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--per-second", type=float, default=50)
    parser.add_argument("--spans", type=int, default=20)
    args = parser.parse_args()
    spawn = multiprocessing.get_context("spawn").Process
    processes = []
    with tempfile.TemporaryDirectory() as folder:
        upstream = free_port()
        processes.append(spawn(target=serve, args=("bare", upstream, folder), daemon=True))
        targets = [Target("direct", upstream)]
        for rate in RATES:
            targets.append(Target(f"through a monitor at {rate:.0%}", port := free_port()))
            path = Path(folder) / f"{rate}.yaml"
            path.write_text(yaml.safe_dump({
                "sources": {"otlp": {"http": f"127.0.0.1:{port}"}}, "api": {"listen": f"127.0.0.1:{free_port()}"},
                "store": {"path": f"{folder}/{rate}.sqlite"}, "sampling": {"rate": rate}, "log": {"level": "warning"},
                "routes": [{"rubrics": ["workflow"], "scenario": "any"}], "scenarios": {"any": {}},
                "forward": {"url": f"http://127.0.0.1:{upstream}"},
            }))  # fmt: skip
            processes.append(spawn(target=monitor, args=(str(path),), daemon=True))
        try:
            for process in processes:
                process.start()
            payloads = bodies(args.requests * args.spans, args.spans, 15, random.Random())
            for target in targets:
                asyncio.run(_up(target.port))
            before = [quiet(process.pid) for process in processes]
            asyncio.run(drive(targets, args.requests, args.per_second, payloads))
            spent = [quiet(process.pid) - cpu for process, cpu in zip(processes, before, strict=True)]
            held = [usage(process.pid)[1] for process in processes]
        finally:
            for process in processes:
                process.kill()
    print(f"{args.requests} requests of {args.spans} spans on each way, {args.per_second:g} a second")
    print(f"{'way':<26}{'p50 ms':>8}{'p90':>8}{'p99':>8}{'p99 x':>8}{'CPU s/1000 spans':>18}{'RSS MB':>8}")
    for target, cpu, rss in zip(targets, spent, held, strict=True):
        p99 = target.at(0.99)
        per = cpu * 1000 / (args.requests * args.spans)
        print(
            f"{target.name:<26}{target.at(0.5):>8.2f}{target.at(0.9):>8.2f}{p99:>8.2f}"
            f"{p99 / targets[0].at(0.99):>8.1f}{per:>18.4f}{rss:>8.0f}"
        )
    print("the server itself serves all ways: its CPU is that of all of them together")


async def _up(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return


if __name__ == "__main__":
    main()
