"""Rounds of several monitors with a real database: leases, away and back, and nothing that waits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from sidejudge.integrations.postgres import shared
from sidejudge.integrations.postgres.database import Transaction
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.config.units import parse_duration
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.monitor.fleet.probe import try_database
from tests.postgres_server import PostgresServer, SlowProxy
from tests.waiting import until


@pytest.fixture
async def member(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Callable[..., Fleet]]:
    """Makes monitors of one fleet; ends them."""
    database, made = postgres.new_database(), []

    def make(name: str | None = None, *, port: int | None = None, **values: Any) -> Fleet:
        store = Store(tmp_path / f"{len(made)}.sqlite")
        section = FleetSection.model_validate({
            "database": postgres.url(database, port=port), "name": name,
            **{key: parse_duration(text) for key, text in {"every": "50ms", "timeout": "20s", "lease": "60s"}.items()},
            **values,
        })  # fmt: skip
        made.append((Fleet(section, store.kept.room("fleet")), store))
        return made[-1][0]

    yield make
    for fleet, store in made:
        await fleet.stop()
        store.close()


def later(postgres: PostgresServer, fleet: Fleet, seconds: float) -> None:
    """Have this long passed in the database, of which no monitor wrote anything."""
    database, past = fleet.database.shown.rpartition("/")[2], f"make_interval(secs => {seconds})"
    postgres.sql(f"UPDATE sidejudge.leases SET expires_at = expires_at - {past}", database)
    postgres.sql(f"UPDATE sidejudge.monitors SET seen_at = seen_at - {past}", database)


async def test_two_monitors_see_each_other_and_one_holds_the_lease(member: Callable[..., Fleet]) -> None:
    first, second = member("a"), member("b")
    for each in (first, second):
        each.want("labels")
        await each.start()
    await until(lambda: first.present == second.present == ["a", "b"])
    assert (first.held("labels") is None) != (second.held("labels") is None)
    holder, other = (first, second) if first.held("labels") else (second, first)
    await holder.stop()
    await until(lambda: other.held("labels") is not None)
    assert other.held("labels").token == 2, "handed over at once, and fenced"
    await until(lambda: other.present == [other.name])


async def test_what_is_done_once_is_done_by_one_monitor_which_may_end_before(member: Callable[..., Fleet]) -> None:
    first, second, again = member("a"), member("b"), member("a")
    for each in (first, second, again):
        await each.round()
    assert await second.claim("report", take=False) is None
    assert [await each.claim("report", take=True) for each in (first, second, again)] == [True, False, True]
    assert await second.claim("report", take=False) is False


async def test_without_the_database_a_monitor_starts_goes_on_and_says_so_once(
    member: Callable[..., Fleet], postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sidejudge.fleet")
    fleet = member("a")
    fleet._backoff._longest_s = 0.05
    with postgres.stopped():
        await fleet.start()
        assert fleet.snapshot().rounds == (), "it returned before the first round ended"
        await until(lambda: dict(fleet.snapshot().rounds).get("away", 0) >= 3)
        shot = fleet.snapshot()
        assert (shot.state, shot.monitors, shot.leases) == ("retrying", 1, ())
        assert shot.away_s > 0
    await until(lambda: fleet.away is None)
    messages = [record.message for record in caplog.records]
    assert messages.count("the fleet's database is away; this monitor goes on alone") == 1
    assert messages.count("the fleet's database is back") == 1
    assert "s3cret-Pass" not in caplog.text + repr(fleet.snapshot())


async def test_a_slow_database_holds_up_nothing_but_the_round(
    member: Callable[..., Fleet], postgres: PostgresServer
) -> None:
    async with SlowProxy(postgres.port) as proxy:
        fleet = member("a", port=proxy.port, timeout=parse_duration("300ms"), lease=parse_duration("1s"))
        fleet.want("labels")
        await fleet.start()
        await until(lambda: fleet.held("labels") is not None)
        proxy.delay_s = 30
        turns = 0
        while fleet.away is None:
            await asyncio.sleep(0.005)
            turns += 1
        assert turns > 5, "the event loop went on"
        await until(lambda: fleet.held("labels") is None)
        connects, begun = fleet.database.connects, time.monotonic()
        await fleet.stop()
        assert time.monotonic() - begun < 10, "the end does not wait either"
        assert fleet.database.connects == connects


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_commit_of_unknown_outcome_is_done_once_and_leaves_no_connection(
    member: Callable[..., Fleet], postgres: PostgresServer
) -> None:
    async with SlowProxy(postgres.port) as proxy:
        fleet = member("a", port=proxy.port)
        fleet.want("labels")
        work: list[int] = []

        async def write(transaction: Transaction) -> None:
            work.append(1)
            await shared.put_windows(transaction, "a", {"w": b"1"})

        fleet.each_round("windows", write)
        await fleet.round()
        before = open_files()
        for _ in range(10):
            proxy.cut_after = b"COMMIT"
            await fleet.round()
            assert fleet.away is not None
            proxy.cut_after = None
            await fleet.round()
            assert fleet.away is None
        assert proxy.cuts == 10
        lease = fleet.held("labels")
        assert lease is not None
        assert lease.token == 1, "its own lease, whether the renewal took place or not"
        database = fleet.database.shown.rpartition("/")[2]
        assert postgres.sql("SELECT count(*) FROM sidejudge.windows", database) == [(1,)]
        assert postgres.sql("SELECT count(*) FROM sidejudge.monitors", database) == [(1,)]
        open_now = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'"
        await until(lambda: postgres.sql(open_now) == [(0,)])
        await until(lambda: open_files() <= before + 2)
        assert len(work) == 11


async def test_a_part_that_is_refused_leaves_the_others_theirs(member: Callable[..., Fleet]) -> None:
    fleet, done = member("a"), []

    async def refused(transaction: Transaction) -> None:
        await transaction.execute("SELECT * FROM absent")

    async def well(transaction: Transaction) -> None:
        await shared.put_windows(transaction, "a", {"w": b"1"})
        done.append(1)

    fleet.each_round("refused", refused)
    fleet.each_round("well", well)
    await fleet.start()
    await until(lambda: len(done) >= 2)
    assert fleet.away is None


async def test_a_clock_that_is_ten_minutes_off_is_named_with_a_remedy_and_keeps_no_lease_from_anybody(
    member: Callable[..., Fleet], caplog: pytest.LogCaptureFixture
) -> None:
    right, ahead = member("a"), member("b")
    ahead._time_s = lambda: time.time() + 600
    for each in (ahead, right):
        each.want("labels")
        await each.round()
        await each.round()
    assert right.wrong_clock is None
    assert ahead.wrong_clock == "this monitor's clock is 600 s ahead of the database's; set both by NTP"
    assert caplog.text.count("verdicts stand in other minutes") == 1
    shots = [each.snapshot() for each in (ahead, right)]
    assert [round(shot.clock_offset_s or 0, -1) for shot in shots] == [600, 0]
    assert [shot.wrong_clock for shot in shots] == [ahead.wrong_clock, ""]
    assert [(shot.state, shot.reason) for shot in shots] == [("wrong_clock", ahead.wrong_clock), ("ok", "")]
    assert ahead.held("labels") is not None
    assert right.held("labels") is None
    ahead._time_s = lambda: time.time() - 600
    await ahead.round()
    assert ahead.wrong_clock == "this monitor's clock is 600 s behind the database's; set both by NTP"
    ahead._time_s = time.time
    await ahead.round()
    assert ahead.wrong_clock is None


async def test_what_depends_on_the_time_goes_to_a_monitor_whose_clock_is_right_if_there_is_one(
    member: Callable[..., Fleet],
) -> None:
    wrong, right, now_s = member("a"), member("b"), [1_000.0]
    wrong._time_s = lambda: time.time() + 3_600
    wrong._clock_s = lambda: now_s[0]
    for each in (wrong, right):
        each.want("alerts", by_time=True)
        each.want("labels")
    held = []
    for passed_s in (0.0, 1.0, 100.0, 100.0):  # alone: it leaves the lease for some rounds, and nobody takes it
        now_s[0] += passed_s
        await wrong.round()
        held.append(wrong.leases.names())
    assert held == [["alerts", "labels"], ["labels"], ["alerts", "labels"], ["alerts", "labels"]]
    now_s[0] += 7 * 3_600.0
    await wrong.round()
    await right.round()
    assert (wrong.leases.names(), right.leases.names()) == (["labels"], ["alerts"])
    now_s[0] += 100.0
    await wrong.round()
    assert wrong.leases.names() == ["labels"]
    await right.stop()
    third = member("c")
    third.want("alerts", by_time=True)
    await wrong.round()  # the one that had it left just now
    assert wrong.leases.names() == ["labels"]
    await third.round()
    assert third.leases.names() == ["alerts"]


async def test_what_depends_on_the_time_is_left_to_a_monitor_that_comes_later(member: Callable[..., Fleet]) -> None:
    wrong, right, now_s = member("a"), member("b"), [1_000.0]
    wrong._time_s = lambda: time.time() - 3_600
    wrong._clock_s = lambda: now_s[0]
    for each in (wrong, right):
        each.want("alerts", by_time=True)
    for passed_s in (0.0, 1.0, 100.0):
        now_s[0] += passed_s
        await wrong.round()
    assert wrong.leases.names() == ["alerts"], "alone"
    for _ in range(2):
        now_s[0] += 1.0
        await right.round()
        await wrong.round()
    await right.round()
    assert (wrong.leases.names(), right.leases.names()) == ([], ["alerts"])


@pytest.mark.parametrize(
    ("options", "found", "remedy"),
    [
        ("-c%20default_transaction_read_only%3Don", "it takes no writes", "target_session_attrs=read-write"),
        ("", "ms, ", ""),
    ],
)
async def test_the_probe_names_a_database_that_takes_no_writes(
    postgres: PostgresServer, options: str, found: str, remedy: str
) -> None:
    url = postgres.url(postgres.new_database()) + (f"?options={options}" if options else "")
    section = FleetSection.model_validate({"database": url})
    stated, to_do = await try_database(section)
    assert found in stated
    assert remedy in to_do


async def test_a_schema_is_one_fleet_s_and_a_monitor_of_another_is_refused_with_the_remedy(
    member: Callable[..., Fleet], postgres: PostgresServer
) -> None:
    first, second = (member(name, identity="blue") for name in "ab")
    other, unnamed = member("d", identity="green"), member("e")
    for each in (first, second, unnamed, other):
        each.want("labels")
        await each.round()
    assert [each.snapshot().state for each in (first, second, unnamed, other)] == ["ok", "ok", "stopped", "stopped"]
    assert other.away is not None
    assert unnamed.away is not None
    assert "this monitor has no fleet.identity\ngive this fleet another fleet.schema_name" in unnamed.away
    assert "is the fleet blue's, this monitor is of green\ngive this fleet another fleet.schema_name" in other.away
    await first.round()
    assert first.present == ["a", "b"], "what is refused leaves nothing behind"
    stated, to_do = await try_database(other.section)
    assert "blue" in stated
    assert "fleet.schema_name" in to_do
    later(postgres, other, 60)  # all of the first fleet are gone: it was given another identity
    await other.round()
    assert other.snapshot().state == "ok"


async def test_of_two_monitors_with_one_name_the_older_goes_on_alone_while_the_other_is_there(
    member: Callable[..., Fleet], postgres: PostgresServer
) -> None:
    first, second = member("a"), member("a")
    for each in (first, second, first, second):
        await each.round()
    assert [each.snapshot().state for each in (first, second)] == ["stopped", "ok"]
    assert first.away is not None
    assert first.away.startswith("fleet.name: a monitor that started later, at ")
    assert "is a as well\ngive each monitor a fleet.name of its own" in first.away
    await second.stop()
    await first.round()
    assert first.snapshot().state == "ok", "the other left"

    killed, next_run = member("b"), member("b")
    next_run._started_s = killed._started_s - 60  # the clock was set back
    await killed.round()
    await next_run.round()
    assert next_run.snapshot().state == "stopped"
    later(postgres, next_run, next_run._gone_s)
    await next_run.round()
    assert next_run.snapshot().state == "ok", "the other is gone"


@pytest.mark.parametrize("userinfo", ["u:p@ss", "u:p@ss/word", "u@v:pass"])
def test_a_password_that_is_not_encoded_is_refused_with_the_remedy(userinfo: str) -> None:
    with pytest.raises(ValueError, match="as %40"):
        FleetSection.model_validate({"database": f"postgresql://{userinfo}@db/fleet"})
    FleetSection.model_validate({"database": "postgresql://u:p%40s%2Fs%25@a:1,b:2/fleet?application_name=a@b"})


async def test_a_name_is_kept_and_another_process_of_it_is_another_holder(tmp_path: Path) -> None:
    section = FleetSection.model_validate({"database": "postgresql://127.0.0.1:1/none"})
    names, holders = set(), set()
    for _ in range(2):
        async with AsyncExitStack() as stack:
            store = Store(tmp_path / "state.sqlite")
            stack.callback(store.close)
            fleet = Fleet(section, store.kept.room("fleet"))
            await fleet.start()
            await fleet.stop()
            names.add(fleet.name)
            holders.add(fleet.leases.holder)
    assert (len(names), len(holders)) == (1, 2)
