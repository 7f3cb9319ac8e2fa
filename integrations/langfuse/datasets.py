"""Datasets: reads expected outcomes from them, and writes items into them, each once.

An item's id is its identity in the whole project: writing it again replaces it, and Langfuse refuses an id that another
dataset holds (409). A field that is left out keeps its value.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.pages import by_number
from sidejudge.scoring.trace.span import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDatasetItem:
    """An item as it is written. ``source_trace_id`` links it to the trace that it was made from."""

    id: str
    input: Json
    expected_output: Json = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    source_trace_id: str | None = None


def item_id(dataset: str, source: str) -> str:
    """The id of the item that is made from one source, such as a trace: the same each time, another per dataset.

    >>> item_id("failures", "36524d221566b94755e27265a6220988")
    'sj-7c24195d543ac32ff1b291bf047726dc'
    """
    stated = f"{dataset}\x00{source}"
    return f"sj-{hashlib.sha256(stated.encode()).hexdigest()[:32]}"


async def dataset_exists(langfuse: Langfuse, name: str) -> bool:
    """Whether the project has a dataset of this name. Raises ``LangfuseError``."""
    return await langfuse.has(f"v2/datasets/{quote(name, safe='')}")


async def make_dataset(langfuse: Langfuse, name: str, description: str) -> None:
    """Make a dataset; one that exists under this name is left unchanged. Raises ``LangfuseError``."""
    if not await dataset_exists(langfuse, name):
        await langfuse.post("v2/datasets", {"name": name, "description": description})


async def put_item(langfuse: Langfuse, dataset: str, item: NewDatasetItem) -> str:
    """Write an item into a dataset, or replace the one with its id.

    Returns:
        The item's id.

    Raises:
        LangfuseError: ``NOT_FOUND`` where there is no such dataset; ``REFUSED`` where the item does not fit the
            dataset's schema, or where another dataset holds its id.
    """
    body: dict[str, object] = {
        "id": item.id, "datasetName": dataset, "input": item.input, "expectedOutput": item.expected_output,
        "metadata": dict(item.metadata), "sourceTraceId": item.source_trace_id,
    }  # fmt: skip
    given = {key: value for key, value in body.items() if value is not None}
    reply = await langfuse.post("dataset-items", given)
    return str(reply.body.get("id", item.id)) if isinstance(reply.body, Mapping) else item.id


async def delete_items(langfuse: Langfuse, dataset: str, trace_ids: Collection[str]) -> int:
    """Delete all items made from these traces, by any author. Raises ``LangfuseError``.

    Returns:
        How many were deleted; none where there is no such dataset.
    """
    found: list[str] = []
    try:
        async for rows in by_number(langfuse, "dataset-items", {"datasetName": dataset}):
            found += [str(row["id"]) for row in rows if row.get("sourceTraceId") in trace_ids]
    except LangfuseError as error:
        if error.missing:
            return 0
        raise
    for name in (found := list(dict.fromkeys(found))):
        await langfuse.delete("dataset-items", name)
    return len(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceItem:
    """A dataset item: its source trace, its metadata, and the expected output."""

    trace_id: str | None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    expected: Json


async def dataset_items(langfuse: Langfuse, name: str) -> AsyncIterator[ReferenceItem]:
    """The active items of a dataset that expect something, the newest first. Raises ``LangfuseError``."""
    async for rows in by_number(langfuse, "dataset-items", {"datasetName": name}):
        for row in rows:
            if row.get("status") == "ACTIVE" and row.get("expectedOutput") is not None:
                metadata, made_from = row.get("metadata"), row.get("sourceTraceId")
                yield ReferenceItem(
                    trace_id=made_from if isinstance(made_from, str) else None,
                    metadata=metadata if isinstance(metadata, Mapping) else {},
                    expected=row["expectedOutput"],
                )
