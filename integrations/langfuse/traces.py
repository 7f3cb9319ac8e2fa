"""Whether a Langfuse has a trace."""

from __future__ import annotations

from urllib.parse import quote

from .client import Langfuse
from .errors import LangfuseError, LangfuseErrorKind
from .pages import rows_of


async def trace_exists(langfuse: Langfuse, trace_id: str, *, v2: bool) -> bool:
    """Whether the project has anything of a trace; ``v2``: by the listing of observations. Raises ``LangfuseError``."""
    if v2:
        rows = rows_of(await langfuse.get("v2/observations", {"traceId": trace_id, "limit": 1, "fields": "core"}))
        return any(row.get("traceId") == trace_id for row in rows)
    try:
        await langfuse.get(f"traces/{quote(trace_id, safe='')}", {"fields": "core"})
    except LangfuseError as error:
        if error.kind is LangfuseErrorKind.NOT_FOUND and error.body is not None:
            return False
        raise
    return True
