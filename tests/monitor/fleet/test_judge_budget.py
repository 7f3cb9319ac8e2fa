"""One budget for a fleet: slices ahead of time, thinned alike, never more in sum than there is."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from sidejudge.integrations.postgres.spend import SpendLimit, SpendTotals
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.evaluate.judge.budget import AHEAD_S, HOUR_S, JudgeBudget
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.monitor.fleet.judge_budget import FleetBudget, granted_usd
from tests.postgres_server import PostgresServer

HOUR = SpendLimit(10.0, 0, HOUR_S, 3600.0)


@pytest.mark.parametrize(
    ("totals", "unspent", "demand", "refused", "monitors", "expected"),
    [
        pytest.param(SpendTotals(0, 0, 0), 0, 0, 0, 1, 2.5, id="the first slice, before anything is known"),
        pytest.param(SpendTotals(0, 0, 0), 0, 0, 0, 10, 0.25, id="a first slice for each of ten"),
        pytest.param(SpendTotals(0, 0, 0), 0, 0, 0.7, 10, 0.7, id="a call that is dearer than that"),
        pytest.param(SpendTotals(2, 0, 0.001), 0.6, 0.001, 0, 100, 0, id="enough is left for ten minutes"),
        pytest.param(SpendTotals(2, 0, 0.001), 0.2, 0.001, 0, 100, 0.4, id="topped up to ten minutes of its demand"),
        pytest.param(SpendTotals(0, 0, 0.01), 0, 0.005, 0, 100, 0.8333, id="half of the demand, half of the pace"),
        pytest.param(SpendTotals(9.9, 0, 0.01), 0, 0.005, 0, 100, 0.1, id="what is free"),
        pytest.param(SpendTotals(10, 3, 0.01), 0, 0.005, 9, 100, 0, id="all is granted"),
        pytest.param(SpendTotals(11, 11, 0.01), 0, 0.005, 9, 100, 0, id="a monitor with a larger budget took more"),
    ],
)
def test_a_slice(
    totals: SpendTotals, unspent: float, demand: float, refused: float, monitors: int, expected: float
) -> None:
    found = granted_usd(
        limits=[HOUR], totals=[totals], unspent=unspent, demand=demand, refused=refused, monitors=monitors
    )
    assert found == pytest.approx(expected, abs=1e-4)


def test_the_day_bounds_a_slice_as_well() -> None:
    day = SpendLimit(20.0, 0, 86_400, 80_000.0)
    totals = [SpendTotals(0, 0, 0.01), SpendTotals(19.5, 19.5, 0.01)]
    found = granted_usd(limits=[HOUR, day], totals=totals, unspent=0, demand=0.01, refused=3, monitors=100)
    assert found == pytest.approx(0.5)


class Member:
    """A monitor's fleet and budget, at a time that a test sets."""

    now = HOUR_S * 1000.0

    def __init__(self, folder: Path, url: str, name: str, *, spent: dict[int, float] | None = None, **limits: float):
        self.store = Store(folder / f"{name}-{id(self)}.sqlite")
        section = FleetSection.model_validate({"database": url, "name": name})
        self.fleet = Fleet(section, self.store.kept.room("fleet"))
        self.budget = JudgeBudget(**limits, spent=spent)
        FleetBudget(self.budget, self.fleet, lambda: Member.now)
        self.spent = 0.0

    def spend(self, usd: float) -> bool:
        reservation = self.budget.reserve(usd, Member.now)
        if reservation is None:
            return False
        self.budget.settle(reservation, usd, Member.now)
        self.budget.judged("normal", usd)
        self.spent += usd
        return True


@pytest.fixture
def members(postgres: PostgresServer, tmp_path: Path):
    made: list[Member] = []
    url = postgres.url(postgres.new_database())

    def make(count: int, **limits: float) -> list[Member]:
        Member.now = HOUR_S * 1000.0
        made.extend(Member(tmp_path, url, f"m{len(made) + n}", **limits) for n in range(count))
        return made

    def again(member: Member, spent: dict[int, float]) -> Member:
        """The next run of a monitor, whose store has this of what it spent."""
        made.append(Member(tmp_path, url, member.fleet.name, spent=spent, **LIMITS))
        return made[-1]

    make.again = again

    yield make
    for each in made:
        each.fleet.database.close()
        each.store.close()


async def test_before_a_first_round_nothing_is_spent(members) -> None:
    (member,) = members(1, per_hour=10.0)
    assert not member.spend(0.01)
    assert member.budget.q("normal", Member.now) == 0.0
    await member.fleet.round()
    assert member.spend(0.01)
    assert member.budget.q("normal", Member.now) == 1.0


async def test_in_sum_no_more_is_spent_than_there_is_whoever_is_cut_off(members) -> None:
    draw = random.Random(7)
    each = members(5, per_hour=1.0, per_day=2.2)
    by_hour: dict[int, float] = {}
    for step in range(50):
        hour = int(Member.now // HOUR_S)
        for member in each:
            member.budget.arrive("normal", Member.now)
            for _ in range(draw.randrange(12)):
                before = member.spent
                member.spend(draw.choice((0.002, 0.01, 0.03)))
                by_hour[hour] = by_hour.get(hour, 0.0) + member.spent - before
        reached = [member for n, member in enumerate(each) if n != step // 10 % 5]  # one is cut off for a while
        await asyncio.gather(*(member.fleet.round() for member in reached))
        Member.now += 180
    assert max(by_hour.values()) <= 1.0 + 1e-9
    assert sum(by_hour.values()) <= 2.2 + 1e-9
    assert sum(by_hour.values()) > 1.9, "and it is used"


async def test_without_the_database_the_slice_is_spent_and_no_more(members, postgres: PostgresServer) -> None:
    first, second = members(2, per_hour=1.0)
    for _ in range(3):
        await asyncio.gather(first.fleet.round(), second.fleet.round())
    with postgres.stopped():
        for _ in range(200):
            first.spend(0.01)
            second.spend(0.01)
        await first.fleet.round()
        assert first.fleet.away is not None
        assert 0 < first.spent + second.spent <= 1.0
        assert first.budget.q("normal", Member.now) == 0.0, "cases are left out by chance, not refused"


async def test_over_the_full_hour_something_is_left_to_spend(members, postgres: PostgresServer) -> None:
    (member,) = members(1, per_hour=1.0)
    Member.now += HOUR_S - AHEAD_S / 2
    await member.fleet.round()
    with postgres.stopped():
        Member.now += AHEAD_S
        assert member.spend(0.1)


async def test_what_an_hour_left_over_is_there_for_the_day(members) -> None:
    (member,) = members(1, per_hour=10.0, per_day=10.0)
    await member.fleet.round()
    assert member.spend(2.0)
    Member.now += HOUR_S
    await member.fleet.round()
    async with member.fleet.database.transaction() as transaction:
        rows = await transaction.rows("SELECT spent, granted FROM judge_spend ORDER BY hour")
    assert rows[0] == (2.0, 2.0)


LIMITS = {"per_hour": 1.0, "per_day": 4.0}


async def test_a_monitor_that_ends_in_order_gives_its_slice_back(members) -> None:
    for number in range(12):  # as in roll-outs, each with new names
        member = members(1, **LIMITS)[-1]
        await member.fleet.round()
        assert member.spend(0.01), f"nothing is left for monitor {number}"
        await member.fleet.round()
        await member.fleet.stop()
        assert not member.spend(0.01), "it was given back"
    async with member.fleet.database.transaction() as transaction:
        rows = await transaction.rows("SELECT sum(spent), sum(granted) FROM judge_spend")
    assert rows == [(pytest.approx(0.12), pytest.approx(0.12))]


async def test_what_is_set_aside_for_a_call_that_is_under_way_is_not_given_back(members) -> None:
    (member,) = members(1, **LIMITS)
    await member.fleet.round()
    assert member.spend(0.01)
    assert member.budget.reserve(0.05, Member.now) is not None
    await member.fleet.stop()
    async with member.fleet.database.transaction() as transaction:
        rows = await transaction.rows("SELECT spent, granted FROM judge_spend")
    assert rows == [(pytest.approx(0.01), pytest.approx(0.06))]


@pytest.mark.parametrize("kept", [0.0, 0.01, 0.02], ids=["a new store", "an older backup", "its store"])
async def test_what_a_store_lacks_is_spent_all_the_same(members, kept: float) -> None:
    (member,) = members(1, **LIMITS)
    await member.fleet.round()
    hour = int(Member.now)
    assert member.spend(0.02)
    await member.fleet.round()
    (slice_usd,) = (member.budget.grants or {}).values()
    assert member.budget.reserve(0.05, Member.now) is not None
    await member.fleet.round()
    while member.spend(0.01):  # and then it is killed
        pass
    known = kept if kept < 0.02 else member.spent
    again = members.again(member, {hour: known})
    await again.fleet.round()
    assert again.budget.spent_in(hour) == pytest.approx(slice_usd if kept < 0.02 else known)
    while again.spend(0.01):
        await again.fleet.round()
    assert member.spent + again.spent <= 1.0 + 1e-9


async def test_what_an_earlier_hour_left_over_is_given_back_when_a_monitor_is_there_again(members) -> None:
    (member,) = members(1, **LIMITS)
    hour = int(Member.now)
    await member.fleet.round()
    assert member.spend(0.02)
    await member.fleet.round()
    Member.now += HOUR_S
    again = members.again(member, {hour: 0.02})
    await again.fleet.round()
    async with again.fleet.database.transaction() as transaction:
        rows = await transaction.rows("SELECT spent, granted FROM judge_spend ORDER BY hour")
    assert rows[0] == (pytest.approx(0.02), pytest.approx(0.02))
