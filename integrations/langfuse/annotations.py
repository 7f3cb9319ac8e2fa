"""Scores by their time, the latest first: annotations, which are people's, and what programs wrote.

Newer servers answer at ``v3/scores``, older ones at ``v2/scores``; both give the same records here. A score counts as a
person's only where an author is named: a program may write the same source, to prefill a queue.

A score's time is that of its first version, neither endpoint filters by when it was changed, and an edit in the
interface leaves ``updatedAt`` as it is. So a reader that needs changed scores reads the same time again, and compares.

Queues: annotation queues, where people are asked to look at something.

A queue takes the same object twice, and its list has no filter for it: whoever puts something in looks first, where
it is not known whether it is in already.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sidejudge.scoring.trace.span import Json

from .client import Langfuse, Query
from .existing_scores import MOST_IDS, read_back
from .observations import instant_ns
from .pages import PAGE, Row, by_cursor, by_number
from .scores import WRITTEN, timestamp

_FIELDS: Final = "details,subject,annotation"
_SOURCES: Final = {"EVAL": "an evaluator of Langfuse"}
SubjectKind: TypeAlias = Literal["trace", "session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One score that a person gave, or a program in a person's place.

    ``subject`` is the id of a trace (that of an observation's trace, where it is on an observation) or of a session.
    ``value`` is a truth value as 1 or 0. ``author`` is None where no person is named. ``at_ns`` is its time, ns since
    the epoch.
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


async def read_annotations(
    langfuse: Langfuse, *, since_ns: int, until_ns: int, v3: bool
) -> AsyncIterator[list[Annotation]]:
    """Pages of what has its time in [since, until), the latest first. Raises ``LangfuseError``.

    ``until_ns`` is fixed, so that what is new does not move what is still to be read.
    """
    query = {"source": "ANNOTATION", "fields": _FIELDS}
    async for rows in pages_of_scores(langfuse, query, since_ns=since_ns, until_ns=until_ns, v3=v3):
        yield [found for row in rows if (found := _annotation(row)) is not None]


async def annotations_named(langfuse: Langfuse, ids: Sequence[str], *, v3: bool) -> list[Annotation]:
    """Those of these ids that are still there, whatever their time. Raises ``LangfuseError``."""
    found: list[Annotation] = []
    for start in range(0, len(ids), MOST_IDS):
        rows = await read_back(langfuse, ids[start : start + MOST_IDS], v3=v3, fields=_FIELDS)
        found += [given for row in rows if (given := _annotation(row)) is not None]
    return found


def pages_of_scores(
    langfuse: Langfuse, filters: Mapping[str, str], *, since_ns: int, until_ns: int, v3: bool
) -> AsyncIterator[list[Row]]:
    """Pages of rows that have their time in [since, until), the latest first. Raises ``LangfuseError``.

    ``filters`` are those of ``v3/scores``; ``fields`` among them are left out where the older read gives all.
    """
    between: Query = {"limit": PAGE, "fromTimestamp": timestamp(since_ns), "toTimestamp": timestamp(until_ns)}
    if v3:
        return by_cursor(langfuse, "v3/scores", {**filters, **between})
    older = {name: value for name, value in filters.items() if name != "fields"}
    return by_number(langfuse, "v2/scores", {**older, **between})


def _annotation(row: Row) -> Annotation | None:
    """A row as an annotation; None for one that is of an experiment, or that is not understood."""
    name, called = row.get("id"), row.get("name")
    if not isinstance(name, str) or not isinstance(called, str):
        return None
    value, subject = value_of(row), subject_of(row)
    if value is None or subject is None:
        return None
    kind, of, observation = subject
    return Annotation(
        id=name, subject=of, kind=kind, observation=observation, name=called, value=value,
        correction=row.get("dataType") == "CORRECTION", author=_text(row.get("authorUserId")),
        queue=_text(row.get("queueId")), at_ns=instant_ns(row.get("timestamp")) or 0,
    )  # fmt: skip


def value_of(row: Mapping[str, object]) -> float | str | None:
    """The value of a score: a text where it is a category, a text or a correction, else a number; None for neither.

    The older read has texts in a field of their own, and writes a truth value there as well.
    """
    stated = row.get("value")
    if row.get("dataType") in ("CATEGORICAL", "TEXT", "CORRECTION"):
        text = row["stringValue"] if isinstance(row.get("stringValue"), str) else stated
        return text if isinstance(text, str) else None
    return float(stated) if isinstance(stated, int | float) else None


def subject_of(row: Mapping[str, object]) -> tuple[SubjectKind, str, str | None] | None:
    """(kind, id, observation) of what a score is on; None for one of an experiment."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedScore:
    """One score with its metadata. ``subject`` is the id of a trace or a session; a truth value is 1 or 0.

    ``observation`` is the id of the step of the trace that it is on; empty for the trace as a whole.
    """

    id: str
    subject: str
    name: str
    value: float | str
    metadata: Mapping[str, Json] = field(default_factory=dict)
    observation: str = ""


async def listed_scores(langfuse: Langfuse, *, since_ns: int, until_ns: int, v3: bool) -> AsyncIterator[ListedScore]:
    """Scores of source API that have their time in [since, until). Raises ``LangfuseError``."""
    query = {"source": "API", "fields": "details,subject"}
    async for rows in pages_of_scores(langfuse, query, since_ns=since_ns, until_ns=until_ns, v3=v3):
        for row in rows:
            id_, name, metadata = row.get("id"), row.get("name"), row.get("metadata")
            value, of = value_of(row), subject_of(row)
            if isinstance(id_, str) and isinstance(name, str) and value is not None and of is not None:
                yield ListedScore(
                    id=id_, subject=of[1], name=name, value=value,
                    metadata=metadata if isinstance(metadata, Mapping) else {},
                    observation=of[2] or "",
                )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignScore:
    """One score of a trace that this product has not written: by a person, another evaluator, or Langfuse's own.

    ``value`` is a truth value as 1 or 0, a text where it is a category or a corrected output. ``by`` is who gave it, as
    far as the score states that; ``at_ns`` is its time, which an edit leaves as it is.
    """

    id: str
    trace_id: str
    observation: str | None
    name: str
    value: float | str
    comment: str | None
    by: str | None
    at_ns: int


async def scores_of_others(
    langfuse: Langfuse, filters: Mapping[str, str], *, since_ns: int, until_ns: int, v3: bool
) -> AsyncIterator[ForeignScore]:
    """Scores of others that have their time in [since, until), the latest first. Raises ``LangfuseError``.

    ``filters``: ``name``, or ``dataType`` (``CORRECTION``, which are asked for alone).
    """
    query = {**filters, "fields": _FIELDS}
    async for rows in pages_of_scores(langfuse, query, since_ns=since_ns, until_ns=until_ns, v3=v3):
        for each in _foreign(rows, filters):
            yield each


async def still_there(
    langfuse: Langfuse, ids: Sequence[str], filters: Mapping[str, str], *, v3: bool
) -> list[ForeignScore]:
    """Those of these ids that are still there, whatever their time. Raises ``LangfuseError``."""
    found: list[ForeignScore] = []
    for start in range(0, len(ids), MOST_IDS):
        rows = await read_back(langfuse, ids[start : start + MOST_IDS], v3=v3, fields=_FIELDS)
        found += _foreign(rows, filters)
    return found


def _foreign(rows: Iterable[Row], filters: Mapping[str, str]) -> Iterator[ForeignScore]:
    corrected = filters.get("dataType") == "CORRECTION"
    for row in rows:
        metadata = row.get("metadata")
        held: Mapping[str, Json] = metadata if isinstance(metadata, Mapping) else {}
        id_, name, value, of = _text(row.get("id")), _text(row.get("name")), value_of(row), subject_of(row)
        if id_ is None or name is None or value is None or of is None or of[0] != "trace" or WRITTEN in held:
            continue
        if name == filters.get("name", name) and (row.get("dataType") == "CORRECTION") is corrected:
            given_by = (row.get("authorUserId"), held.get("evaluator"), _SOURCES.get(str(row.get("source"))))
            yield ForeignScore(
                id=id_, trace_id=of[1], observation=of[2], name=name, value=value,
                comment=_text(row.get("comment")), by=next(filter(None, map(_text, given_by)), None),
                at_ns=instant_ns(row.get("timestamp")) or 0,
            )  # fmt: skip


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
