"""What a fleet costs its database: many monitors in one process, each with rounds as a sidecar's, on a real PostgreSQL.

    python tests/bench/bench_fleet.py [MONITORS EVERY SECONDS]

Each monitor connects for its round and leaves: heartbeat, leases, budget, one window slice, and ten results an hour.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from sidejudge.integrations.postgres import archive, shared
from sidejudge.integrations.postgres.archive import ArchivedResult
from sidejudge.integrations.postgres.database import Transaction
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.config.units import parse_duration
from sidejudge.monitor.evaluate.judge.budget import JudgeBudget
from sidejudge.monitor.fleet.fleet import Fleet, Upkeep
from sidejudge.monitor.fleet.judge_budget import FleetBudget
from tests.postgres_server import PostgresServer

RESULTS_PER_HOUR = 10.0
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(folder: Path) -> float:
    """CPU seconds of all processes of the server so far, ended backends included."""
    postmaster = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    total = 0.0
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid, parent = int(each.parent.name), int(fields[1])
        if pid == postmaster:
            total += sum(map(int, fields[11:15]))  # with those of children that ended
        elif parent == postmaster:
            total += sum(map(int, fields[11:13]))
    return total * _TICK_S


class Sidecar:
    """One monitor's part."""

    def __init__(self, url: str, store: Store, n: int, every_s: float) -> None:
        times = {"every": parse_duration(f"{every_s:g}s"), "lease": parse_duration(f"{3 * every_s + 15:g}s")}
        section = FleetSection.model_validate({"database": url, "name": f"m{n}", **times})
        self.fleet = Fleet(section, store.kept.room(f"m{n}"))
        self.budget = JudgeBudget(per_hour=50.0)
        FleetBudget(self.budget, self.fleet, time.time)
        Upkeep(self.fleet, results_s=86_400.0)
        self.fleet.want("alerts")
        self.fleet.each_round("work", self.work)
        self.made, self._n = 0, n

    async def work(self, transaction: Transaction) -> None:
        now = time.time()
        minute = int(now // 60)
        await shared.put_windows(transaction, self.fleet.name, {f"{minute}": b"x" * 600})
        if self._n % int(3_600 / RESULTS_PER_HOUR / 15) == int(now // 15) % int(3_600 / RESULTS_PER_HOUR / 15):
            self.made += 1
            result = ArchivedResult(
                f"{self._n:016x}{self.made:016x}", 1, "shop", now, {"reason": "scored"}, [{"r": "x" * 900}]
            )
            await archive.put_results(transaction, self.fleet.name, [result])


class Counts(NamedTuple):
    """What was counted up to a moment."""

    at_s: float
    rounds: int
    connects: int
    commits: int
    server_cpu_s: float
    own_cpu_s: float


def counts(server: PostgresServer, sidecars: list[Sidecar]) -> Counts:
    commits = server.sql("SELECT sum(xact_commit) FROM pg_stat_database WHERE datname LIKE 'test%'")[0][0]
    connects = sum(each.fleet.database.connects for each in sidecars)
    return Counts(time.monotonic(), done(sidecars), connects, int(commits), cpu_s(server.folder), time.process_time())


async def main(monitors: int, every_s: float, seconds: float) -> None:
    logging.getLogger("sidejudge.fleet").setLevel(logging.CRITICAL)
    server = PostgresServer(max_connections=100, synchronous_commit="on", fsync="on", autovacuum="on").start()
    store = Store(Path(tempfile.mkdtemp()) / "state.sqlite")
    loop = asyncio.get_running_loop()
    try:
        url = server.url(server.new_database())
        sidecars = [Sidecar(url, store, n, every_s) for n in range(monitors)]
        await sidecars[0].fleet.round()
        for n, each in enumerate(sidecars):  # a rollout takes its time
            loop.call_later(max(30.0, every_s) * n / monitors, asyncio.ensure_future, each.fleet.start())
        await asyncio.sleep(max(30.0, every_s) + 5)
        before, most = counts(server, sidecars), 0
        while time.monotonic() - before.at_s < seconds:
            await asyncio.sleep(0.25)
            used = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sidejudge'"
            most = max(most, (await asyncio.to_thread(server.sql, used))[0][0])
        after = counts(server, sidecars)
        took, rounds = after.at_s - before.at_s, max(1, after.rounds - before.rounds)
        server_s, own_s = after.server_cpu_s - before.server_cpu_s, after.own_cpu_s - before.own_cpu_s
        granted, size = server.sql(
            "SELECT sum(granted), pg_database_size(current_database()) / 1e6 FROM sidejudge.judge_spend", "test_1"
        )[0]
        print(  # noqa: T201  # a benchmark prints
            f"{monitors} monitors, every {every_s:g} s, {took:.0f} s: rounds {rounds / took:.1f}/s, not whole "
            f"{failed(sidecars)}\n"
            f"connects {(after.connects - before.connects) / took:.1f}/s, at most {most} at once; "
            f"commits {(after.commits - before.commits) / took:.0f}/s\n"
            f"PostgreSQL {server_s / took:.3f} cores, {1e3 * server_s / rounds:.1f} ms a round; "
            f"monitors {own_s / took:.3f} cores, {1e3 * own_s / rounds:.1f} ms a round\n"
            f"granted {granted:.2f} of 50 $/h; database {size:.1f} MB"
        )
        for each in sidecars:
            each.fleet.database.close()
            if each.fleet._task is not None:
                each.fleet._task.cancel()
        await asyncio.sleep(0.5)
        store.close()
    finally:
        server.close()


def done(sidecars: list[Sidecar]) -> int:
    return sum(dict(each.fleet.snapshot().rounds).get("ok", 0) for each in sidecars)


def failed(sidecars: list[Sidecar]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in sidecars:
        for how, count in each.fleet.snapshot().rounds:
            if how != "ok":
                found[how] = found.get(how, 0) + count
    return found


if __name__ == "__main__":
    given = [float(each) for each in sys.argv[1:]]
    asyncio.run(main(int(given[0]) if given else 500, *(given[1:3] if len(given) > 2 else (60.0, 40.0))))
