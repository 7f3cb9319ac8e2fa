"""What traffic costs, in one run beside Rotel and beside the least that a server can do.

    python tests/bench/bench_traffic.py [--recordings FOLDER] [--spans 20000] [--per-request 100] [--rounds 3]

Not a test: it prints two tables. The first is CPU of the whole process until it is quiet again, so that who answers
first and works later pays for it: bare servers that read a body, parse it, or walk through it; Rotel, a collector in
Rust that decodes, batches and drops; and the whole monitor, where what is drawn is judged by `workflow` and `entity`
and committed; servers take turns in every round and the best of the rounds counts, for other work on the machine only
ever adds. No copy of a recording has the texts of another. The second is what forwarding adds to the latency of a
request, with one monitor running at a time, in turns with requests that go directly; over the requests of all rounds
together, for a p99 of one round is what befell its ten slowest. Absolute numbers are this machine's; ratios travel.
"""

# ruff: noqa: T201  # a script prints

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import uvloop

from tests.bench.load import KEPT, Load
from tests.bench.servers import Served, bare, monitor, rotel, rotel_program

RATES = (0.01, 0.1, 1.0)
CONNECTIONS = 8
WARM_UP = 2000
"""Spans before the clock starts: what is done once is not what a span costs."""
_HEAD = "POST /v1/traces HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n"
_IDLE_S = 2.0
"""Connections idle for longer are not used again: a server may close them."""
FORWARDING_RATES = (0.01, 1.0)

Start = Callable[[Path], AbstractContextManager[Served]]


class Connection:
    """One connection that is kept; one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def post(self, body: bytes) -> None:
        if self._streams is None or time.perf_counter() - self._used > _IDLE_S:
            self.close()
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.writelines((_HEAD.format(len(body)).encode(), body))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if head[9:12] != b"200":
            raise SystemExit(f"answered {head[:60]!r}")
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
        if b"transfer-encoding: chunked" in head:
            while (line := await reader.readuntil(b"\r\n")) != b"0\r\n":
                await reader.readexactly(int(line, 16) + 2)
            length = 2
        await reader.readexactly(length)
        self._used = time.perf_counter()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def flood(port: int, bodies: list[bytes]) -> float:
    """Send everything as fast as it is answered; wall seconds."""
    todo = iter(bodies)

    async def work() -> None:
        connection = Connection(port)
        for body in todo:
            await connection.post(body)
        connection.close()

    begin = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return time.perf_counter() - begin


def cost(start: Start, load: Load, spans: int) -> tuple[float, float, float, str]:
    """CPU seconds per 1000 spans, spans answered a second, resident MB, and what became of the traces."""
    made = list(load.bodies(spans, random.Random()))
    warm = [body for body, _ in load.bodies(WARM_UP, random.Random())]
    count = sum(each for _, each in made)
    with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as server:
        uvloop.run(flood(server.port, warm))
        before = server.quiet()
        wall = uvloop.run(flood(server.port, [body for body, _ in made]))
        cpu = server.quiet() - before
        ended = server.outcomes()["ended"] if server.api else {}
        fates = ", ".join(f"{number} {reason}" for reason, number in sorted(ended.items()) if number)
        return cpu * 1000 / count, count / wall, server.usage()[1], fates


async def paced(ports: list[int], bodies: list[bytes], per_second: float) -> list[list[float]]:
    """Send each body on each way, the ways in turns, at fixed times; ms that each took, by way.

    None waits for another. How late this process itself comes to a request (its timers count in whole ms) is no way's
    doing, and is not counted.
    """
    took: list[list[float]] = [[] for _ in ports]
    free: list[list[Connection]] = [[] for _ in ports]

    async def one(way: int, body: bytes) -> None:
        begin = time.perf_counter()
        connection = free[way].pop() if free[way] else Connection(ports[way])
        await connection.post(body)
        took[way].append((time.perf_counter() - begin) * 1000)
        free[way].append(connection)

    for way in range(len(ports)):  # connections are made and code is warm before the clock starts
        for _ in range(20):
            await one(way, bodies[0])
        took[way].clear()
    begin, under_way = time.perf_counter(), []
    for number in range(len(bodies) * len(ports)):
        due = begin + number / (per_second * len(ports))
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        turn, which = divmod(number, len(ports))
        # Each turn begins with another way, so that none always follows the same one.
        under_way.append(asyncio.create_task(one((which + turn) % len(ports), bodies[turn])))
    await asyncio.gather(*under_way)
    return took


def latencies(load: Load, rate: float, requests: int, per_second: float, rounds: int) -> list[list[list[float]]]:
    """What each request took in ms, by round: directly, and through a monitor at this rate."""
    with ExitStack() as stack:
        upstream = stack.enter_context(bare("read"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = [upstream.port, stack.enter_context(monitor(rate, folder, upstream.port)).port]
        found = []
        for _ in range(rounds):
            source = load.bodies(10**9, random.Random())
            bodies = [next(source)[0] for _ in range(requests)]
            found.append(uvloop.run(paced(ports, bodies, per_second)))
        return found


def _at(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, default=KEPT, help="folder of CLIENT/SCENARIO/NNN.pb")
    parser.add_argument("--spans", type=int, default=40_000, help="a quarter of it at 100 %%")
    parser.add_argument("--per-request", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=1000, help="by each way, for the latency")
    parser.add_argument("--per-second", type=float, default=50)
    parser.add_argument("--only", default="", help="measure only servers whose name holds this; no latency")
    args = parser.parse_args()
    _costs(args)
    if not args.only:
        _latencies(args)


def _costs(args: argparse.Namespace) -> None:
    load = Load(args.recordings, args.per_request, random.Random(1), laps=3, fresh=True)
    servers: dict[str, Start] = {  # what each costs is counted in ticks of 10 ms: the cheaper, the more spans
        "bare: read": lambda _: bare("read"),
        "bare: parse, touch ids": lambda _: bare("ids"),
        "bare: parse, walk": lambda _: bare("walk"),
    }
    program = rotel_program()
    if program is None:
        print("Rotel is not installed (make bench-peers) and is left out")
    else:
        servers["rotel, to a black hole"] = lambda folder: rotel(program, folder)
    for rate in RATES:
        servers[f"sidejudge at {rate:.0%}"] = lambda folder, rate=rate: monitor(rate, folder)
    servers = {name: start for name, start in servers.items() if args.only in name}
    runs: dict[str, list[tuple[float, float, float, str]]] = {name: [] for name in servers}
    for _ in range(args.rounds):
        for name, start in servers.items():
            spans = args.spans // 4 if "100%" in name else args.spans
            runs[name].append(cost(start, load, spans))
    size = sum(len(t.body) for t in load.templates) / sum(t.spans for t in load.templates)
    print(f"{args.spans} spans of {load.clients} clients, {args.per_request} a request, {size:.0f} bytes a span, "
          f"best of {args.rounds} rounds")  # fmt: skip
    best = {name: min(run) for name, run in runs.items()}
    base = best.get("rotel, to a black hole")
    print(f"{'server':<26}{'CPU s/1000 spans':>18}{'worst':>9}{'x rotel':>9}{'spans/s':>10}{'RSS MB':>8}  traces")
    for name, (cpu, pace, rss, fates) in best.items():
        ratio = f"{cpu / base[0]:.2f}" if base else "–"
        print(f"{name:<26}{cpu:>18.4f}{max(runs[name])[0]:>9.4f}{ratio:>9}{pace:>10.0f}{rss:>8.0f}  {fates}")


def _latencies(args: argparse.Namespace) -> None:
    load = Load(args.recordings, 20, random.Random(1), laps=3)
    print(f"\n{args.requests} requests of 20 spans on each way, {args.per_second:g} a second, {args.rounds} rounds")
    print(f"{'way':<26}{'p50 ms':>8}{'p99 ms':>8}{'directly':>18}{'added p50':>11}{'added p99':>11}  and in each round")
    for rate in FORWARDING_RATES:
        rounds = latencies(load, rate, args.requests, args.per_second, args.rounds)
        (p50, p99), (p50_through, p99_through) = (
            [_at([each for took in rounds for each in took[way]], share) for share in (0.5, 0.99)] for way in (0, 1)
        )
        each = ", ".join(f"{_at(through, 0.99) - _at(direct, 0.99):.2f}" for direct, through in rounds)
        print(f"{f'through sidejudge at {rate:.0%}':<26}{p50_through:>8.2f}{p99_through:>8.2f}{p50:>9.2f} {p99:>8.2f}"
              f"{p50_through - p50:>11.2f}{p99_through - p99:>11.2f}  {each}")  # fmt: skip


if __name__ == "__main__":
    main()
