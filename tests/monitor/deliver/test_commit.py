"""What the disk refuses of one trace holds up no other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from sidejudge.integrations.otlp.wire.chunk import Chunk, ChunkOrigin
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.deliver.commit import Commit
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.monitor.ingest.outcomes import EndReason

UNUSED: Any = None
FAILS, SOUND = b"a" * 16, b"b" * 16


def spans(trace_id):
    return Chunk(trace_id=trace_id, payload=b"spans", headers=(), origin=ChunkOrigin("shop", "prod", 0))


def late(trace_id):
    return TraceResult(
        trace_id=trace_id, service="shop", reason=EndReason.LATE, completion="idle", revision=2, chunks=1, ended_ns=2,
        details={},
    )  # fmt: skip


async def test_late_spans_that_cannot_be_let_go_of_are_named_and_the_others_go(tmp_path):
    store = Store(tmp_path / "state.sqlite")
    commit = Commit(
        store=store, sessions=None, assembler=UNUSED, outcomes=UNUSED, sinks=UNUSED, listeners=(),
        keeps_contents=lambda _: False,
    )  # fmt: skip
    await store.append([spans(FAILS), spans(SOUND)], 1)
    with closing(sqlite3.connect(store.path)) as disk, disk:
        disk.execute(
            f"CREATE TRIGGER damage BEFORE DELETE ON chunks WHEN OLD.trace_id = x'{FAILS.hex()}' "
            "BEGIN SELECT RAISE(ABORT, 'the disk'); END"
        )
    disk.close()
    refused = await commit.commit([late(FAILS), late(SOUND)])
    assert list(refused) == [FAILS]
    assert "the disk" in str(refused[FAILS])
    assert (len(store.chunks(FAILS)), store.chunks(SOUND)) == (1, [])
    store.close()
