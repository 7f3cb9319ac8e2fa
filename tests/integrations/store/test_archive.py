"""Reading a store beside the monitor that writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidejudge.integrations.store.archive import read_details
from sidejudge.integrations.store.errors import StoreUnavailable
from sidejudge.integrations.store.sqlite import FinishedTrace, Store

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_a_story_is_read_while_the_monitor_runs_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    store = Store(path)
    try:
        await store.finish(
            FinishedTrace(
                trace_id=bytes.fromhex(TRACE), service="calls", reason="scored", completion="root_ended", revision=1,
                details={"spans": 3}, verdicts=[{"rubric": "qa", "passed": True}], closed_ns=5, chunks=0,
            )
        )  # fmt: skip
        assert read_details(path, TRACE) == store.details(TRACE)
        assert read_details(path, "f" * 32) is None
    finally:
        store.close()
    before = path.read_bytes()
    assert read_details(path, TRACE)["reason"] == "scored"
    assert path.read_bytes() == before


def test_what_is_no_store_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is no such file"):
        read_details(tmp_path / "nowhere.sqlite", TRACE)
    other = tmp_path / "text"
    other.write_text("not a database, only text that is long enough to be looked at" * 100)
    with pytest.raises(StoreUnavailable, match="cannot be used as a store"):
        read_details(other, TRACE)
    assert not (tmp_path / "nowhere.sqlite").exists()
