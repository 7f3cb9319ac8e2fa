"""Labels that one monitor reads are every monitor's of the fleet, by a real database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.alerting.fleet.build import FleetParts
from sidejudge.monitor.alerting.fleet.publish import SlicePublisher
from sidejudge.monitor.alerting.fleet.status import FleetStatus
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.monitor.config.fleet import FleetSection
from sidejudge.monitor.feedback.shared_labels import LABELS, STATE, SharedLabels
from sidejudge.monitor.fleet.fleet import Fleet
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.ppi import LabelSums, label_sums
from sidejudge.scoring.status.status import Policy, Status
from tests.postgres_server import PostgresServer

LENIENT = label_sums([(True, True, 1.0)] * 300 + [(False, True, 1.0)] * 150 + [(False, False, 1.0)] * 150)
"""People fail half, of which the judge passes half: a judge's 0.75 is people's 0.5."""
S = 10**9


class Member:
    """A monitor with what it has read, if it may."""

    def __init__(self, database: str, name: str, path: Path, read: dict[str, LabelSums] | None, version: str = "1"):
        self.store = Store(path / f"{name}.sqlite")
        section = FleetSection.model_validate({"database": database, "name": name, "timeout": "2s"})
        self.fleet, self.read = Fleet(section, self.store.kept.room("fleet")), read
        self.shared = SharedLabels(self.fleet, lambda: self.read, lambda _: version)

    async def rounds(self, count: int = 4) -> None:
        for _ in range(count):
            await self.fleet.round()

    async def stop(self) -> None:
        await self.fleet.stop()
        self.store.close()


async def test_what_the_holder_reads_all_have_until_it_changes_and_without_the_database(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    database = postgres.url(postgres.new_database())
    reader, other = Member(database, "a", tmp_path, None), Member(database, "b", tmp_path, {"qa": label_sums([])})
    older = Member(database, "c", tmp_path, None, version="0")
    await reader.rounds(1)
    await other.rounds()
    assert reader.shared.reads
    assert not other.shared.reads
    assert not other.shared.sums(), "what one reads without the lease is nobody's"
    reader.read = {"qa": LENIENT}
    await reader.rounds(1)
    for each in (other, older):
        await each.rounds()
    assert reader.shared.sums() == other.shared.sums() == {"qa": LENIENT}
    assert not older.shared.sums(), "labels on verdicts by another version of the rubric"
    reader.read = {"qa": label_sums([(True, True, 2.0)])}
    await reader.rounds(1)
    await other.rounds()
    assert other.shared.sums() == reader.read
    with postgres.stopped():
        await other.rounds(1)
        assert other.fleet.away is not None
        assert other.shared.sums() == reader.read
    other.fleet._backoff.succeeded()
    for each in (reader, other, older):
        await each.stop()


async def test_a_holder_that_is_no_longer_one_saves_nothing_and_a_body_by_others_is_passed_over(
    postgres: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = postgres.url(postgres.new_database())
    reader, other = Member(database, "a", tmp_path, {"qa": LENIENT}), Member(database, "b", tmp_path, None)
    await reader.rounds(1)
    async with reader.fleet.database.transaction() as transaction:
        await transaction.execute("UPDATE leases SET holder = 'x', token = 9 WHERE name = %s", (LABELS,))
    reader.read = {"qa": label_sums([])}
    async with reader.fleet.database.transaction() as transaction:
        with pytest.raises(Exception, match="another monitor's by now"):
            await reader.shared._round(transaction)
    await other.rounds()
    assert other.shared.sums() == {"qa": LENIENT}
    async with reader.fleet.database.transaction() as transaction:
        await transaction.execute("UPDATE states SET body = '[1]' WHERE name = %s", (STATE,))
    await other.rounds()
    assert other.shared.sums() == {"qa": LENIENT}
    assert "labels of the fleet could not be read" in caplog.text
    for each in (reader, other):
        await each.stop()


@pytest.mark.parametrize(("corrected", "status"), [("none", Status.WARNING), ("rogan_gladen", Status.CRITICAL)])
async def test_the_status_of_the_fleet_is_that_which_people_would_find(
    postgres: PostgresServer, tmp_path: Path, corrected: str, status: Status
) -> None:
    """One monitor reads the labels, another one leads."""
    database, now_ns = postgres.url(postgres.new_database()), 1_790_000_000 * S
    declared = Declaration(corrected=corrected, policy=Policy(mode="point"))
    reader, leader = Member(database, "a", tmp_path, {"qa": LENIENT}), Member(database, "b", tmp_path, None)
    windows = Windows(declared.window_ns)
    publisher = SlicePublisher(windows, {}, lambda _: "1")
    leader.fleet.want("alerts")
    await reader.rounds(1)
    await leader.rounds()

    async def nothing(_: object) -> None: ...

    found = FleetStatus(
        name="b", declared=declared, watched={}, publisher=publisher, clock_ns=lambda: now_ns, pass_on=nothing,
        note=nothing, labels=leader.shared.sums,
    )  # fmt: skip
    parts = FleetParts(fleet=leader.fleet, watch=None, publisher=publisher, status=found)  # a round asks no watch
    for number in range(600):
        seen = Observation(identity=str(number), at_ns=now_ns - 300 * S + number, passed=number % 4 != 0)
        windows.add(Key("shop", "prod", "qa"), seen)
        publisher.seen(Key("shop", "prod", "qa"), seen)
    for _ in range(3):
        await parts.round()
        now_ns += 61 * S
        await leader.rounds(1)
    document = found.current(now_ns)
    assert document is not None
    assert [each.appraisal.status for each in document.services] == [status]
    await asyncio.gather(reader.stop(), leader.stop())
