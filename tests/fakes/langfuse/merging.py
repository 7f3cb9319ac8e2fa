"""How Langfuse up to 4.58 makes one row of all writings of a score.

Held to the server's published source (langfuse/langfuse, commit 6275144614, version 4.16.0), function by function:

- ``files`` stands for ``processEventBatch`` (packages/shared/src/server/ingestion/processEventBatch.ts): the events of
  a request that are of one score are one file, named after the first event's id and ordered by ``sortBatch``; a file of
  the same name replaces what it held. An event without ``body.id`` is taken and stored nowhere.
- ``time_sorted`` is ``IngestionService.toTimeSortedEventList`` (worker/src/services/IngestionService/index.ts): by the
  event's own timestamp, and of two events of one millisecond the comparator answers -1 whichever way it is asked.
  ``v8_sorted`` is what ``Array.prototype.sort`` of Node.js makes of that (V8's third_party/v8/builtins/array-sort.tq).
- ``merged`` is ``processScoreEventList``, ``mergeRecords`` and ``overwriteObject`` (…/IngestionService/utils.ts): the
  stored row first, then all events of all files (``ingestionQueueProcessorBuilder`` lists them by name); what is absent
  stays, null replaces, metadata is merged key by key, ``IMMUTABLE`` fields keep what came first.

Recordings cover: a later event, an event older than the stored one, events of one millisecond in one request, a change
of trace, of name and of type, null, merged metadata, a deleted score written again. Not covered by any recording, and
known by the source alone: events of one millisecond in several requests, the same event id twice in two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

Event = Mapping[str, Any]
"""id, timestamp (ISO 8601) and body, as it was sent."""
IMMUTABLE = ("id", "projectId", "timestamp", "traceId", "createdAt", "environment")
_MOST = 63
"""Events of one score that are sorted here: from 64 on V8 merges several runs."""


def files(events: Iterable[Event]) -> dict[str, dict[str, list[Event]]]:
    """The events of one request by score and file name."""
    found: dict[str, dict[str, list[Event]]] = {}
    names: dict[str, str] = {}
    for event in sorted(events, key=millisecond):
        score = event["body"].get("id")
        if score:
            name = names.setdefault(score, event["id"])
            found.setdefault(score, {}).setdefault(name, []).append(event)
    return found


def time_sorted(events: Sequence[Event]) -> list[Event]:
    """In the order in which they are laid over each other."""
    return v8_sorted(events, lambda a, b: millisecond(a) - millisecond(b) or -1)


def v8_sorted(items: Sequence[Any], compare: Callable[[Any, Any], int]) -> list[Any]:
    """As ``items.slice().sort(compare)`` of Node.js, for at most 63 items."""
    if len(items) > _MOST:
        raise NotImplementedError(f"more than {_MOST} events of one score")
    work = list(items)
    done = _first_run(work, compare)
    for start in range(done, len(work)):
        pivot, left, right = work[start], 0, start
        while left < right:
            middle = left + (right - left) // 2
            if compare(pivot, work[middle]) < 0:
                right = middle
            else:
                left = middle + 1
        work.insert(left, work.pop(start))
    return work


def _first_run(work: list[Any], compare: Callable[[Any, Any], int]) -> int:
    """Length of the run at the beginning; one that descends is turned round in place."""
    if len(work) < 2:
        return len(work)
    descends = compare(work[1], work[0]) < 0
    length = 2
    while length < len(work) and (compare(work[length], work[length - 1]) < 0) is descends:
        length += 1
    if descends:
        work[:length] = reversed(work[:length])
    return length


def merged(stored: Mapping[str, Any] | None, events: Sequence[Event]) -> dict[str, Any]:
    """One row of the stored row and all events of the score."""
    row: dict[str, Any] = dict(stored or {})
    for event in time_sorted(events):
        given = {key: value for key, value in event["body"].items() if key != "metadata"}
        kept = {key: row[key] for key in IMMUTABLE if key in row}
        row = {
            **row, "environment": None, "queueId": None, **given, "timestamp": event["timestamp"], **kept,
            "metadata": _merged(row.get("metadata") or {}, event["body"].get("metadata") or {}),
        }  # fmt: skip
    return row


def _merged(into: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Key by key, null included; lodash's ``merge`` goes into objects."""
    found = dict(into)
    for key, value in more.items():
        held = found.get(key)
        found[key] = _merged(held, value) if isinstance(held, Mapping) and isinstance(value, Mapping) else value
    return found


def millisecond(event: Event) -> int:
    """The event's own time, ms since the epoch."""
    return round(datetime.fromisoformat(event["timestamp"]).timestamp() * 1000)
