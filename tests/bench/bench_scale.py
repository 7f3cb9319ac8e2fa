"""How the cost of a fleet's status grows: publishing, merging and looking at 1, 2, 4 … monitors. ``make bench-scale``.

CPU seconds of one process, without a database; divide by the first row, for machines differ. Prints Markdown.
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator

from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.fleet.slices import SLICE_NS, encoded, end_ns, key_slice
from sidejudge.monitor.alerting.fleet.windows import FleetWindows
from sidejudge.monitor.alerting.observation import First, Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS

BEGIN = 29_800_000
RUBRIC = "qa"
WATCHED = {RUBRIC: WatchedWindow(on_average={f"metric_{n}": (0.5, True) for n in range(6)})}


def body(rng: random.Random, minute: int, services: list[int], each: int) -> bytes:
    """What one monitor publishes of one minute: so many verdicts of each of these services, six metrics each."""
    windows = Windows(10 * DAY_NS, max_verdicts=1_000_000, max_keys=100_000)
    keys = [Key(f"service-{service}", "production", RUBRIC) for service in services]
    for key in keys:
        for number in range(each):
            windows.add(key, Observation(
                identity=f"{key.service}/{number}", at_ns=minute * SLICE_NS + 1 + rng.randrange(SLICE_NS - 1),
                passed=rng.random() > 0.05, weight=20.0, composite=rng.random(),
                metrics={f"metric_{n}": rng.random() for n in range(6)},
            ))  # fmt: skip
    parts = {}
    for key in keys:
        members = windows.members(key, 0)
        parts[key] = key_slice(members)
        for held in members:
            parts[key].firsts[First(bool(held.passed), 20.0, None, None)] += 1
    return encoded(parts, {RUBRIC: "1"})


def merged(monitors: int, share: list[bytes], minutes: int) -> tuple[float, float]:
    """CPU seconds of a leader for one minute's slices of all monitors, and for one look."""
    declared = Declaration()
    windows = FleetWindows(declared.window_ns, longest_ns=DAY_NS, enough=30)
    watch = Watch(declared, windows, WATCHED, max_keys=100_000, among=conditions(declared)[:7])
    for minute in range(minutes + 1):
        if minute == 1:  # the first one meets every key for the first time
            begun = time.process_time()
        firsts: dict[Key, Counter[First]] = {}
        for monitor in range(monitors):
            for key, of in windows.put(f"m{monitor}", BEGIN + minute, share[(minute + monitor) % len(share)]).items():
                firsts.setdefault(key, Counter()).update(of)
        for key, group in firsts.items():
            watch.learn_together(key, group, (BEGIN + minute) * SLICE_NS, end_ns(BEGIN + minute))
        windows.advance(end_ns(BEGIN + minute))
    took = (time.process_time() - begun) / minutes
    now_ns = end_ns(BEGIN + minutes)
    watch.look(Observed(now_ns=now_ns), {}, {})
    begun = time.process_time()
    found = {key: windows.details(key, WATCHED[RUBRIC]) for key in windows.keys()}  # noqa: SIM118  # no dict
    watch.look(Observed(now_ns=now_ns + SLICE_NS), found, {})
    return took, time.process_time() - begun


def memory() -> str:
    """What a leader holds of one service under one rubric, an hour of one monitor."""
    share, windows = [body(random.Random(9), BEGIN, list(range(20)), 3)], FleetWindows(HOUR_NS)  # a benchmark
    tracemalloc.start()
    for minute in range(60):
        windows.put("m", BEGIN + minute, share[0])
    held = tracemalloc.get_traced_memory()[0] / 20 / 1024
    tracemalloc.stop()
    return f"Memory of a leader: {held:.0f} KiB a service under a rubric."


def rows() -> Iterator[str]:
    """The measured part, row by row."""
    rng = random.Random(7)  # a benchmark
    yield "| monitors | services of each | a slice, B | a minute, CPU ms | of each service, µs | a look, CPU ms |"
    yield "|---|---|---|---|---|---|"
    plan = [(1, 20), (2, 20), (4, 20), (8, 20), (16, 20), (32, 20), (500, 1), (1, 100), (1, 400)]
    for done, (monitors, services) in enumerate(plan):
        sys.stderr.write(f"\r{done} of {len(plan)} ")
        sys.stderr.flush()
        share = [body(rng, BEGIN, list(range(services)), 3) for _ in range(2)]
        took, looked = merged(monitors, share, 4)
        apart = took / monitors / services * 1e6
        size = f"{len(share[0]):,}"
        yield f"| {monitors} | {services} | {size} | {took * 1e3:.1f} | {apart:.0f} | {looked * 1e3:.1f} |"
    sys.stderr.write("\r")


def publishing() -> str:
    """CPU of publishing, a verdict."""
    rng, begun = random.Random(8), time.process_time()  # a benchmark
    for _ in range(20):
        body(rng, BEGIN, list(range(10)), 10)
    spent = (time.process_time() - begun) / 2000 * 1e6
    return f"Publishing, with the window that holds the verdicts: {spent:.0f} µs a verdict."


if __name__ == "__main__":
    print(publishing())  # noqa: T201  # what it is for
    print(memory(), end="\n\n")  # noqa: T201  # likewise
    for row in rows():
        print(row, flush=True)  # noqa: T201  # likewise
