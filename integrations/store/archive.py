"""Reading a store that belongs to somebody else: a monitor that runs, or one that is gone. Nothing is written."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from .errors import StoreUnavailable
from .statements import queries


def read_story(path: Path, trace_id: str) -> dict[str, Any] | None:
    """What the store at ``path`` knows of a trace (32 hex digits): its story and its verdicts, or that it is open.

    ``None`` when it does not know the trace. Raises ``StoreUnavailable`` when there is no readable store.
    """
    if not path.is_file():
        raise StoreUnavailable(f"store {path}: there is no such file; name the file of store.path")
    wanted = (bytes.fromhex(trace_id),)
    sql = queries()
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=2.0)) as connection:
            row = connection.execute(sql["story"], wanted).fetchone()
            verdicts = [json.loads(text) for (text,) in connection.execute(sql["verdicts_of_trace"], wanted)]
            waiting = len(connection.execute(sql["chunks"], wanted).fetchall()) if row is None else 0
    except sqlite3.Error as error:
        raise StoreUnavailable(f"store {path}: it cannot be read as a store of sidejudge ({error})") from error
    if row is None:
        return {"trace_id": trace_id, "reason": None, "waiting_chunks": waiting, "verdicts": []} if waiting else None
    story, reason, completion, revision, service, closed_ns = row
    return {
        **json.loads(story), "trace_id": trace_id, "service": service, "reason": reason,
        "completion": completion, "revision": revision, "closed_ns": closed_ns, "verdicts": verdicts,
    }  # fmt: skip
