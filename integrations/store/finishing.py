"""The statements that write a trace's end: its details, verdicts, turn, scores and deliveries, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from .notification_outbox import put_entries
from .outbox import replace_scores
from .stored import FinishedTrace, id_bytes, json_text, writable


def finish(sql: Mapping[str, str], finished: FinishedTrace, connection: sqlite3.Connection) -> None:
    """Runs in the writing thread, where nobody waits for the JSON either."""
    trace_id = id_bytes(finished.trace_id)
    whole = {"trace_id": trace_id, "chunks": -1 if finished.chunks is None else finished.chunks}
    held, last_chunk = connection.execute(sql["held_status"], whole).fetchone()
    if last_chunk is None:  # a session has turns instead
        connection.execute(sql["mark_turns_done"], {**whole, "closed_ns": finished.closed_ns})
    if (turn := finished.turn) is not None:
        named = map(writable, (turn.service, turn.environment, turn.session_id))
        connection.execute(sql["put_turn"], (trace_id, turn.key, *named, finished.closed_ns, turn.turn))
    if held is not None and held > finished.revision:
        connection.execute(sql["mark_done"], {"trace_id": trace_id, "last_chunk": last_chunk})
        return
    row = (trace_id, finished.closed_ns, finished.revision, finished.service, str(finished.reason),
           finished.completion, json_text(finished.details), last_chunk)  # fmt: skip
    connection.execute(sql["finish_trace"], row)
    if held is not None:
        connection.execute(sql["forget_verdicts"], (trace_id,))
        connection.execute(sql["referred_drop"], (trace_id,))
    if finished.keep_contents:
        connection.execute(sql["contents_wanted"], (trace_id, finished.closed_ns, finished.revision))
    elif held is not None:
        connection.execute(sql["contents_unwanted"], (trace_id,))
    if finished.referred:
        referred = [(key, trace_id, finished.closed_ns, digest) for key, digest in finished.referred]
        connection.executemany(sql["referred_put"], referred)
    connection.executemany(
        sql["add_verdict"],
        [
            (
                trace_id,
                v["rubric"],
                finished.closed_ns,
                v.get("service"),
                v.get("environment"),
                v.get("passed"),
                json_text(v),
            )
            for v in finished.verdicts
        ],
    )
    if finished.scores is not None:
        written_ns = finished.closed_ns if finished.written_ns is None else finished.written_ns
        replace_scores(connection, trace_id, finished.scores, written_ns)
    if held is None or held < finished.revision:  # written again, it was delivered or still waits
        put_entries(connection, finished.entries, finished.closed_ns)
