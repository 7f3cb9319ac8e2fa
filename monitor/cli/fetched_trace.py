"""A trace with its case, fetched from a running monitor for the commands that work on what it holds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from .ask import ask
from .errors import CommandError

if TYPE_CHECKING:
    from sidejudge.scoring.trace.span import Json
    from sidejudge.scoring.verdict.documents import TraceDocument

TRACE_ID: Final = re.compile(r"[0-9a-fA-F]{32}")


def fetched_trace(trace_id: str, url: str) -> tuple[TraceDocument, dict[str, Json]]:
    """The trace and its case, both as JSON. Raises ``CommandError`` where either is not there."""
    found = ask(url, f"/v1/traces/{trace_id.lower()}")
    if found is None:
        raise CommandError(f"nothing is known of trace {trace_id}", "name a trace that was drawn and is kept still")
    if found.get("case") is None:
        raise CommandError(
            f"the contents of trace {trace_id} are not shown here, or no longer held",
            "call where the monitor's store can be read while the spans are held, or see api.contents",
        )
    return cast("TraceDocument", found), found["case"]
