"""A monitor whose store was damaged while it was down: it reports the remedy, or goes on with what is intact."""

from __future__ import annotations

import random

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
    assert done.exit_code == 1, "all of it is lost, and a caller should know"
    assert f"the damaged one is {path}.damaged-1" in done.stdout
    again = CliRunner().invoke(main, ["store", "recover", "--store", str(path)])
    assert (again.exit_code, "nothing is damaged" in again.stdout) == (0, True)
    app = await started(**ANY, store={"path": str(path)})
    assert app.monitor.outcomes.open == 0
