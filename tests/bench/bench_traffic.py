"""What traffic costs, in one run beside Rotel and beside the least that a server can do.

    python tests/bench/bench_traffic.py [--recordings FOLDER] [--spans 20000] [--per-request 100] [--rounds 3]

Not a test: it prints two tables and a line. The first is CPU of the whole process until it is quiet again, so that who
answers first and works later pays for it: bare servers that read a body, parse it, or walk through it; Rotel, a
collector in Rust that decodes, batches and drops; and the whole monitor, where what is drawn is judged by `workflow`
and `entity` and committed. At 100 % it is sent at a rate at which no trace is shed: one that is shed costs next to
nothing, so that the bench fails where there is one. The line is the highest rate that a monitor on one processor holds
for fifteen seconds without falling behind.
Servers take turns in every round and the best of the rounds counts, for other work on the machine only ever adds. No
copy of a recording has the texts of another. The second is what forwarding adds to the latency of a request, with one
monitor running at a time, in turns with requests that go directly; over the requests of all rounds together, for a p99
of one round is what befell its ten slowest. Absolute numbers are this machine's; ratios travel.
"""

# ruff: noqa: T201  # a script prints

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

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
SUSTAINED_S = 15.0
"""How long a rate is held: a burst of some seconds is judged at any rate, only later."""
CAUGHT_UP_S = 4.0
"""When all is judged after the last span: 2.5 s is when a monitor closes a trace, and a batch takes some time."""
LOST = ("shed", "error", "crashed", "undecodable")
"""What becomes of traces that were drawn and are not judged."""


def not_judged(outcomes: dict[str, Any]) -> int:
    """Traces that were lost, and those of which no reason says how they ended."""
    return outcomes["seen"] - outcomes["open"] - sum(n for reason, n in outcomes["ended"].items() if reason not in LOST)


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


async def flood(port: int, bodies: list[bytes], per_second: float | None = None) -> float:
    """Send everything, so many bodies a second or as fast as it is answered; wall seconds."""
    todo = iter(enumerate(bodies))
    begin = time.perf_counter()

    async def work() -> None:
        connection = Connection(port)
        for number, body in todo:
            if per_second is not None:
                await asyncio.sleep(max(0.0, begin + number / per_second - time.perf_counter()))
            await connection.post(body)
        connection.close()

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return time.perf_counter() - begin


class Cost(NamedTuple):
    """What a server took. ``pace`` is spans answered a second, ``shed`` traces that a monitor did not judge."""

    cpu_s_per_1000: float
    pace: float
    rss_mb: float
    fates: str
    shed: int


def cost(start: Start, load: Load, spans: int, pace: float | None = None) -> Cost:
    """What these spans cost, sent at ``pace`` spans a second, or as fast as they are answered."""
    made = list(load.bodies(spans, random.Random()))
    warm = [body for body, _ in load.bodies(WARM_UP, random.Random())]
    count = sum(each for _, each in made)
    with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as server:
        uvloop.run(flood(server.port, warm))
        before = server.quiet()
        requests = None if pace is None else pace * len(made) / count
        wall = uvloop.run(flood(server.port, [body for body, _ in made], requests))
        cpu = server.quiet() - before
        if not server.api:
            return Cost(cpu * 1000 / count, count / wall, server.usage()[1], "", 0)
        outcomes = server.outcomes()
        fates = ", ".join(f"{number} {reason}" for reason, number in sorted(outcomes["ended"].items()) if number)
        return Cost(cpu * 1000 / count, count / wall, server.usage()[1], fates, not_judged(outcomes))


def keeps_up(start: Start, load: Load, pace: float) -> bool:
    """Whether a monitor judges all that comes at ``pace`` spans a second, as it comes: what waits does not grow."""
    made = list(load.bodies(int(pace * SUSTAINED_S), random.Random()))
    warm = [body for body, _ in load.bodies(WARM_UP, random.Random())]
    with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as server:
        uvloop.run(flood(server.port, warm))
        server.quiet()
        begin = time.perf_counter()
        uvloop.run(flood(server.port, [body for body, _ in made], len(made) / SUSTAINED_S))
        while server.waiting() and time.perf_counter() - begin < SUSTAINED_S + CAUGHT_UP_S:
            time.sleep(0.1)
        in_time = time.perf_counter() - begin < SUSTAINED_S + CAUGHT_UP_S
        return in_time and not not_judged(server.outcomes())


def highest_pace(load: Load) -> float:
    """Spans a second at which a monitor on one processor still judges all: found by halving, to an eighth."""

    @contextmanager
    def pinned(folder: Path) -> Iterator[Served]:
        with monitor(1.0, folder) as server:
            for thread in Path(f"/proc/{server.pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {max(os.sched_getaffinity(0))})
            yield server

    low, high = 0.0, 1000.0
    while keeps_up(pinned, load, high):
        low, high = high, high * 2
    while high - low > low / 8:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_up(pinned, load, middle) else (low, middle)
    return low


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
    parser.add_argument("--pace", type=float, default=1500, help="spans a second at 100 %%; none may be shed at it")
    parser.add_argument("--only", default="", help="measure only servers whose name holds this; no latency")
    args = parser.parse_args()
    shed = _costs(args)
    if not args.only:
        _latencies(args)
    if shed:
        raise SystemExit(f"{shed} traces were shed, so that the figures at 100 % are no figures: take a lower --pace")


def _costs(args: argparse.Namespace) -> int:
    """Print the first table and the line; how many traces were shed."""
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
    runs: dict[str, list[Cost]] = {name: [] for name in servers}
    for _ in range(args.rounds):
        for name, start in servers.items():
            spans, pace = (args.spans // 4, args.pace) if "100%" in name else (args.spans, None)
            runs[name].append(cost(start, load, spans, pace))
    size = sum(len(t.body) for t in load.templates) / sum(t.spans for t in load.templates)
    print(f"{args.spans} spans of {load.clients} clients, {args.per_request} a request, {size:.0f} bytes a span, "
          f"best of {args.rounds} rounds")  # fmt: skip
    best = {name: min(run) for name, run in runs.items()}
    beside = [best.get(name) for name in ("rotel, to a black hole", "bare: parse, walk")]
    head = f"{'server':<26}{'CPU s/1000 spans':>18}{'worst':>9}{'x rotel':>9}{'x walk':>9}{'spans/s':>10}{'RSS MB':>8}"
    print(f"{head}  traces")
    for name, (cpu, pace, rss, fates, _) in best.items():
        ratios = "".join(f"{cpu / base.cpu_s_per_1000:>9.2f}" if base else f"{'–':>9}" for base in beside)
        print(f"{name:<26}{cpu:>18.4f}{max(runs[name])[0]:>9.4f}{ratios}{pace:>10.0f}{rss:>8.0f}  {fates}")
    if any("100%" in name for name in servers):
        print(f"highest rate at which one processor judges all: {highest_pace(load):.0f} spans/s")
    return max((run.shed for each in runs.values() for run in each), default=0)


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
