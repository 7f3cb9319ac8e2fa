"""A monitor whose store was damaged while it was down: it reports the remedy, or goes on with what is intact."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from sidejudge.integrations.store.errors import StoreCorrupt
from sidejudge.monitor.cli import main
from tests.monitor.runtime.test_app import ANY, root
from tests.otlp_requests import HIGH, request

SLOW = {"grace": "1h", "idle": "1h", "deadline": "2h"}
NUMBER = 120


async def left_open(started, path):
    """A monitor that has taken in traces and is gone."""
    app = await started(**ANY, assembly=SLOW, store={"path": str(path)})
    for number in range(NUMBER):
        await app.post(request([root(number + 1, HIGH, attributes={"text": "x" * 2_000})]))
    await app.monitor.stop()


def spoil(path, number):
    data = bytearray(path.read_bytes())
    data[number * 8192 : (number + 1) * 8192] = random.Random(1).randbytes(8192)
    path.write_bytes(data)


async def test_what_is_intact_of_a_damaged_store_goes_on(started, tmp_path, caplog):
    path = tmp_path / "s.sqlite"
    await left_open(started, path)
    pages = path.stat().st_size // 8192
    for number in (pages // 2, pages - 8, pages - 4):  # the later ones hold spans
        spoil(path, number)
    caplog.set_level("WARNING", "sidejudge")
    app = await started(**ANY, assembly=SLOW, store={"path": str(path), "on_damage": "recover"})
    assert NUMBER * 0.5 <= app.monitor.outcomes.open < NUMBER
    (record,) = [each for each in caplog.records if "the store was damaged" in each.getMessage()]
    assert record.lost
    assert (await app.post(request([root(9_999, HIGH)]))).status_code == 200


async def test_without_it_a_start_names_the_command_that_recovers_which_then_does(started, tmp_path):
    path = tmp_path / "s.sqlite"
    await left_open(started, path)
    path.write_bytes(b"\xff" * 50 + path.read_bytes()[50:])
    with pytest.raises(StoreCorrupt, match=f"sidejudge store recover --store {path}"):
        await started(**ANY, store={"path": str(path)})
    done = CliRunner().invoke(main, ["store", "recover", "--store", str(path)])
    assert done.exit_code == 0, "the list of tables is known without the first page, so nothing is lost"
    assert f"the damaged one is {path}.damaged-1" in done.stdout
    again = CliRunner().invoke(main, ["store", "recover", "--store", str(path)])
    assert (again.exit_code, "nothing is damaged" in again.stdout) == (0, True)
    app = await started(**ANY, assembly=SLOW, store={"path": str(path)})
    assert app.monitor.outcomes.open == NUMBER


_judged = bytearray()


async def judged(started, path):
    """The store of a monitor that has judged traces and is gone. It is made once: each test damages a copy."""
    if not _judged:
        app = await started(**ANY, store={"path": str(path)})
        for number in range(NUMBER):
            await app.post(request([root(number + 1, HIGH)]))
        await app.settled(NUMBER)
        await app.monitor.stop()
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _judged.extend(path.read_bytes())
    path.write_bytes(_judged)
    return bytearray(_judged)


@pytest.mark.parametrize("byte", [0xFF, ord("}")], ids=["no text", "no JSON"])
async def test_a_text_that_changed_is_reported_as_damage_with_the_command_that_helps(started, tmp_path, byte):
    path = tmp_path / "s.sqlite"
    data = await judged(started, path)
    data[data.index(b'"rubric_version"') - 1] = byte
    path.write_bytes(data)
    (again := tmp_path / "again.sqlite").write_bytes(data)
    with pytest.raises(StoreCorrupt, match=f"bytes of the file have changed\n'sidejudge store recover --store {path}'"):
        await started(**ANY, store={"path": str(path)})
    app = await started(**ANY, store={"path": str(again), "on_damage": "recover"})
    assert len(app.monitor.windows) == NUMBER - 1


@pytest.mark.parametrize(
    ("written", "damaged"),
    [(b'"sampling_probability":1.0', b'"sampling_probability":8.0'), (b'"rubric":', b'"rubsic":'),
     (b'"sampling_probability":1.0', b'"sampling_probability":0.0'),
     (b'"passed":true', b'"passed":[12]'), (b'"composite_norm":1.0', b'"composite_norm":"x"')],
)  # fmt: skip
async def test_a_changed_name_or_number_costs_its_verdict_and_no_start(started, tmp_path, caplog, written, damaged):
    path = tmp_path / "s.sqlite"
    data = await judged(started, path)
    at = data.index(written)
    data[at : at + len(written)] = damaged
    path.write_bytes(data)
    caplog.set_level("WARNING", "sidejudge")
    app = await started(**ANY, store={"path": str(path)})
    assert len(app.monitor.windows) == NUMBER - 1
    (record,) = [each for each in caplog.records if "not what was written" in each.getMessage()]
    assert record.rows == 1


@pytest.mark.parametrize(
    "damage", ["service = CAST(x'ff' AS TEXT)", "version = CAST(x'ff' AS TEXT)", "closed_ns = 'x'"]
)
async def test_a_changed_column_of_a_verdict_costs_it_at_most_and_no_start(started, tmp_path, damage):
    path = tmp_path / "s.sqlite"
    await judged(started, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE verdicts SET {damage} WHERE trace_id = (SELECT min(trace_id) FROM verdicts)")
    app = await started(**ANY, store={"path": str(path)})
    assert len(app.monitor.windows) >= NUMBER - 1


@pytest.mark.parametrize("recovers", [False, True])
@pytest.mark.parametrize(("written", "damaged"), [(b"since_ns", b"sinbe_ns"), (b'"n": ', b'"n": 9')])
async def test_a_changed_name_or_number_in_what_alerts_remember_costs_that_text_and_no_start(
    started, tmp_path, caplog, written, damaged, recovers
):
    path = tmp_path / "s.sqlite"
    await judged(started, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        kept = connection.execute("SELECT name, value FROM kept WHERE name LIKE 'state/%'").fetchall()
        assert all(written.decode() in value for _, value in kept)
        connection.execute(
            "UPDATE kept SET value = replace(value, ?, ?) WHERE name LIKE 'state/%'",
            (written.decode(), damaged.decode()),
        )
    caplog.set_level("WARNING", "sidejudge")
    app = await started(**ANY, store={"path": str(path), **({"on_damage": "recover"} if recovers else {})})
    assert len(app.monitor.windows) == NUMBER
    record = next(each for each in caplog.records if each.name == "sidejudge" and "store" in each.getMessage())
    if recovers:
        assert record.lost == {"kept": len(kept)}
    else:
        assert record.name_of in dict(kept)


async def test_damage_that_comes_while_the_store_is_open_is_reported_and_ends_nothing(started, tmp_path):
    path = tmp_path / "s.sqlite"
    app = await started(**ANY, assembly=SLOW, store={"path": str(path)})
    for number in range(40):
        await app.post(request([root(number + 1, HIGH, attributes={"text": "x" * 2_000})]))
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("PRAGMA wal_checkpoint(PASSIVE)")
    data = bytearray(path.read_bytes())
    data[8192:] = random.Random(1).randbytes(len(data) - 8192)
    with path.open("r+b") as file:
        file.write(data)
    with closing(sqlite3.connect(path)) as other, other, pytest.raises(sqlite3.DatabaseError):
        other.execute("SELECT count(*) FROM chunks").fetchone()
    statuses = {(await app.post(request([root(9_000 + n, HIGH)]))).status_code for n in range(20)}
    assert statuses <= {200, 503}
    answers = {}
    for place in ("/livez", "/readyz", "/metrics", "/v1/status", "/v1/verdicts", "/v1/traces", "/"):
        answers[place] = (await app.http.get(app.api + place)).status_code
    assert answers["/livez"] == 200
    assert set(answers.values()) <= {200, 503}, answers
