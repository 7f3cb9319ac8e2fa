"""A monitor that is killed with no warning: what it acknowledged is in the store, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sidejudge.integrations.store.sqlite import Store

WRITER = """
import asyncio, sys
from dataclasses import dataclass
from sidejudge.integrations.store.sqlite import FinishedTrace, Store

@dataclass(frozen=True)
class Origin:
    service: str = "s"
    environment: None = None
    threshold: int = 0

@dataclass(frozen=True)
class Chunk:
    trace_id: bytes
    payload: bytes
    origin: Origin = Origin()

async def one(store, number, every):
    n = number
    while True:
        trace_id = n.to_bytes(16, "big")
        await store.append([Chunk(trace_id, trace_id * 40)], n)
        print("appended", n, flush=True)
        if n % 3 == 0:
            verdicts = [{"rubric": rubric, "n": n} for rubric in ("qa", "entity")]
            await store.finish(FinishedTrace(trace_id=trace_id, service="s", reason="scored", completion="idle",
                                        revision=1, details={"n": n}, verdicts=verdicts, closed_ns=n))
            print("finished", n, flush=True)
        n += every

async def main():
    store = Store(sys.argv[1])
    await asyncio.gather(*(one(store, n, 16) for n in range(1, 17)))

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [5, 150, 1_000])
def test_everything_acknowledged_survives_a_kill_and_nothing_is_half_there(tmp_path, after):
    path = tmp_path / "s.sqlite"
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    acknowledged = []
    with process:
        for line in process.stdout:
            acknowledged.append(line.split())
            if len(acknowledged) == after:
                process.send_signal(signal.SIGKILL)
                break
        # What it had written before the signal took effect was acknowledged too; the last line may be cut.
        acknowledged += [line.split() for line in process.stdout if line.endswith("\n")]
    assert process.returncode == -signal.SIGKILL

    store = Store(path)
    try:
        assert store._write_connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        held = {int.from_bytes(c.trace_id, "big"): c for c in store.recover()}
        verdicts = {}
        for verdict in store.verdicts_since(0):
            verdicts.setdefault(verdict["n"], []).append(verdict["rubric"])
        for what, number in acknowledged:
            n = int(number)
            assert held[n].payload == n.to_bytes(16, "big") * 40
            if what == "finished":
                assert sorted(verdicts[n]) == ["entity", "qa"]
        for n, chunk in held.items():
            assert chunk.done == (n in verdicts) == (store.details(n.to_bytes(16, "big")) is not None)
        assert all(len(rubrics) == 2 for rubrics in verdicts.values())
    finally:
        store.close()
