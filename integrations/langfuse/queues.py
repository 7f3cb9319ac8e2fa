"""Queues: annotation queues, where people are asked to look at something.

A queue takes the same object twice, and its list has no filter for it: whoever puts something in looks first, where
it is not known whether it is in already.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from .client import Langfuse
from .pages import by_number

ObjectType: TypeAlias = Literal["TRACE", "SESSION"]


async def queues_named(langfuse: Langfuse, name: str) -> list[str]:
    """The ids of the queues of this name; their names are not unique. Raises ``LangfuseError``."""
    pages = by_number(langfuse, "annotation-queues")
    return [str(row["id"]) async for rows in pages for row in rows if row.get("name") == name]


async def holds(langfuse: Langfuse, queue_id: str, object_id: str) -> bool:
    """Whether an object is in a queue, whatever has become of it there. Raises ``LangfuseError``."""
    pages = by_number(langfuse, f"annotation-queues/{queue_id}/items")
    return any([row.get("objectId") == object_id async for rows in pages for row in rows])


async def put(langfuse: Langfuse, queue_id: str, object_id: str, kind: ObjectType) -> None:
    """Ask people to look at an object. Raises ``LangfuseError``."""
    await langfuse.post(f"annotation-queues/{queue_id}/items", {"objectId": object_id, "objectType": kind})
