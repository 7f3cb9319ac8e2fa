"""Scores by their time, the latest first: people's annotations, and programs' scores; and annotation queues.

Newer servers answer at ``v3/scores``, older ones at ``v2/scores``; both give the same records here. A score counts as a
person's only where an author is named: a program may write the same source, to prefill a queue.

A score's time is that of its first version, neither endpoint filters by when it was changed, and an edit in the
interface leaves ``updatedAt`` as it is. So a reader that needs changed scores reads the same time again, and compares.

In an annotation queue people are asked to look at objects. It takes the same object twice, and its list has no filter
for it: check first where it is unknown whether an object is in already.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.trace.span import Json

from .client import Langfuse, Query
from .existing_scores import read_back
from .observations import instant, instant_ns
from .pages import PAGE, Row, by_cursor, by_number, rows_of
from .scores import WRITTEN, finite

_FIELDS: Final = "details,subject,annotation"
_SOURCES: Final = {"EVAL": "an evaluator of Langfuse"}
SubjectKind: TypeAlias = Literal["trace", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedScore:
    """One score by any author.

    ``subject`` is the id of a trace (that of an observation's trace, where it is on an observation) or of a session.
    ``value`` is a truth value as 1 or 0, a text where it is a category or a corrected output. ``author`` is None where
    no person is named. ``at_ns`` is its time, ns since the epoch, which an edit leaves as it is.
    """

    id: str
    subject: str
    kind: SubjectKind
    observation: str | None
    name: str
    value: float | str
    correction: bool
    author: str | None
    queue: str | None
    at_ns: int
    source: str = ""
    comment: str | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)

    @property
    def by(self) -> str | None:
        """The author, if the score states one."""
        return self.author or _text(self.metadata.get("evaluator")) or _SOURCES.get(self.source)


async def read_annotations(
    langfuse: Langfuse, *, since_ns: int, until_ns: int, v3: bool
) -> AsyncIterator[list[ListedScore]]:
    """Pages of scores from [since, until), the latest first. Raises ``LangfuseError``.

    ``until_ns`` is fixed, so that new scores do not shift the pages to come.
    """
    query = {"source": "ANNOTATION", "fields": _FIELDS}
    async for rows in pages_of_scores(langfuse, query, since_ns=since_ns, until_ns=until_ns, v3=v3):
        yield _read(rows)


async def annotations_named(langfuse: Langfuse, ids: Sequence[str], *, v3: bool) -> list[ListedScore]:
    """Those of these ids that still exist, at any time. Raises ``LangfuseError``."""
    return _read(await read_back(langfuse, ids, v3=v3, fields=_FIELDS))


async def any_as_old(langfuse: Langfuse, at_ns: int, *, v3: bool) -> bool:
    """Whether the project shows a score of this time or before. Raises ``LangfuseError``."""
    query: Query = {"limit": 1, "fromTimestamp": instant(0), "toTimestamp": instant(at_ns + 10**6)}
    return bool(rows_of(await langfuse.get("v3/scores" if v3 else "v2/scores", query)))


def pages_of_scores(
    langfuse: Langfuse, filters: Mapping[str, str], *, since_ns: int, until_ns: int, v3: bool
) -> AsyncIterator[list[Row]]:
    """Pages of rows that have their time in [since, until), the latest first. Raises ``LangfuseError``.

    ``filters`` are those of ``v3/scores``; ``fields`` among them are left out where the older read gives all.
    """
    between: Query = {"limit": PAGE, "fromTimestamp": instant(since_ns), "toTimestamp": instant(until_ns)}
    if v3:
        return by_cursor(langfuse, "v3/scores", {**filters, **between})
    older = {name: value for name, value in filters.items() if name != "fields"}
    return by_number(langfuse, "v2/scores", {**older, **between})


def _read(rows: Iterable[Row]) -> list[ListedScore]:
    """The scores in these rows, except scores of experiments and rows that cannot be read."""
    found: list[ListedScore] = []
    for row in rows:
        id_, name, value, on = _text(row.get("id")), _text(row.get("name")), value_of(row), subject_of(row)
        if id_ is None or name is None or value is None or on is None:
            continue
        (kind, subject, observation), metadata = on, row.get("metadata")
        found.append(ListedScore(
            id=id_, subject=subject, kind=kind, observation=observation, name=name, value=value,
            correction=row.get("dataType") == "CORRECTION", author=_text(row.get("authorUserId")),
            queue=_text(row.get("queueId")), at_ns=instant_ns(row.get("timestamp")) or 0,
            source=str(row.get("source")), comment=_text(row.get("comment")),
            metadata=metadata if isinstance(metadata, Mapping) else {},
        ))  # fmt: skip
    return found


def value_of(row: Mapping[str, object]) -> float | str | None:
    """The value of a score: a text where it is a category, a text or a correction, else a number; None for neither.

    The older read has texts in a field of their own, and writes a truth value there as well.
    """
    stated = row.get("value")
    if row.get("dataType") in ("CATEGORICAL", "TEXT", "CORRECTION"):
        text = row["stringValue"] if isinstance(row.get("stringValue"), str) else stated
        return text if isinstance(text, str) else None
    return finite(stated)


def subject_of(row: Mapping[str, object]) -> tuple[SubjectKind, str, str | None] | None:
    """(kind, id, observation) of a score's subject; None if it is an experiment."""
    reported = row.get("subject")
    if isinstance(reported, Mapping):
        kind, of = reported.get("kind"), _text(reported.get("id"))
        if kind == "observation":
            trace = _text(reported.get("traceId"))
            return ("trace", trace, of) if trace else None
        return (kind, of, None) if of and kind in ("trace", "session") else None
    trace, session = _text(row.get("traceId")), _text(row.get("sessionId"))
    if trace:
        return "trace", trace, _text(row.get("observationId"))
    return ("session", session, None) if session else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


async def listed_scores(langfuse: Langfuse, *, since_ns: int, until_ns: int, v3: bool) -> AsyncIterator[ListedScore]:
    """Scores of source API that have their time in [since, until). Raises ``LangfuseError``."""
    query = {"source": "API", "fields": "details,subject"}
    async for rows in pages_of_scores(langfuse, query, since_ns=since_ns, until_ns=until_ns, v3=v3):
        for each in _read(rows):
            yield each


async def scores_of_others(
    langfuse: Langfuse, filters: Mapping[str, str], *, since_ns: int, until_ns: int, v3: bool
) -> AsyncIterator[ListedScore]:
    """Scores of traces by others, with their time in [since, until), the latest first. Raises ``LangfuseError``.

    ``filters``: ``name``, or ``dataType`` (``CORRECTION``, which are asked for alone).
    """
    query = {**filters, "fields": _FIELDS}
    name = filters.get("name", "")
    if v3 and ("," in name or name != name.strip()):  # it is read there as a list of names: all are read
        del query["name"]
    async for rows in pages_of_scores(langfuse, query, since_ns=since_ns, until_ns=until_ns, v3=v3):
        for each in _of_others(rows, filters):
            yield each


async def still_there(
    langfuse: Langfuse, ids: Sequence[str], filters: Mapping[str, str], *, v3: bool
) -> list[ListedScore]:
    """Those of these ids that still exist, at any time. Raises ``LangfuseError``."""
    return _of_others(await read_back(langfuse, ids, v3=v3, fields=_FIELDS), filters)


def _of_others(rows: Iterable[Row], filters: Mapping[str, str]) -> list[ListedScore]:
    """The scores that this product did not write: by a person, another evaluator, or Langfuse's own."""
    corrected = filters.get("dataType") == "CORRECTION"
    return [
        each
        for each in _read(rows)
        if each.kind == "trace" and WRITTEN not in each.metadata
        if each.name == filters.get("name", each.name) and each.correction is corrected
    ]


ObjectType: TypeAlias = Literal["TRACE", "SESSION"]


async def queues_named(langfuse: Langfuse, name: str) -> list[str]:
    """The ids of the queues of this name; their names are not unique. Raises ``LangfuseError``."""
    pages = by_number(langfuse, "annotation-queues")
    return [str(row["id"]) async for rows in pages for row in rows if row.get("name") == name]


async def holds(langfuse: Langfuse, queue_id: str, object_id: str) -> bool:
    """Whether an object is in a queue, in any state. Raises ``LangfuseError``."""
    pages = by_number(langfuse, f"annotation-queues/{queue_id}/items")
    return any([row.get("objectId") == object_id async for rows in pages for row in rows])


async def put(langfuse: Langfuse, queue_id: str, object_id: str, kind: ObjectType) -> None:
    """Ask people to look at an object. Raises ``LangfuseError``."""
    await langfuse.post(f"annotation-queues/{queue_id}/items", {"objectId": object_id, "objectType": kind})
