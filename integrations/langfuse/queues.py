"""Queues: annotation queues, where people are asked to look at something.

A queue takes the same object twice, and its list has no filter for it: whoever puts something in looks first, where
it is not known whether it is in already.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Literal, TypeAlias

from .client import Langfuse
from .pages import Row, rows_of

ObjectType: TypeAlias = Literal["TRACE", "SESSION"]
_PAGE: Final = 100
_MOST_PAGES: Final = 200


async def queues_named(langfuse: Langfuse, name: str) -> list[str]:
    """The ids of the queues of this name; their names are not unique. Raises ``LangfuseError``."""
    return [str(row["id"]) async for row in _all(langfuse, "annotation-queues") if row.get("name") == name]


async def holds(langfuse: Langfuse, queue_id: str, object_id: str) -> bool:
    """Whether an object is in a queue, whatever has become of it there. Raises ``LangfuseError``."""
    rows = _all(langfuse, f"annotation-queues/{queue_id}/items")
    return any([row.get("objectId") == object_id async for row in rows])


async def put(langfuse: Langfuse, queue_id: str, object_id: str, kind: ObjectType) -> None:
    """Ask people to look at an object. Raises ``LangfuseError``."""
    await langfuse.post(f"annotation-queues/{queue_id}/items", {"objectId": object_id, "objectType": kind})


async def _all(langfuse: Langfuse, path: str) -> AsyncIterator[Row]:
    for page in range(1, _MOST_PAGES + 1):
        rows = rows_of(await langfuse.get(path, {"page": page, "limit": _PAGE}))
        for row in rows:
            yield row
        if len(rows) < _PAGE:
            return
