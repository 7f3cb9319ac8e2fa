"""The archive of verdicts: results of all monitors, kept for a bounded time. Contents are untrusted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from .database import Transaction, queries

MOST_TEXT: Final = 16_384
"""Characters of one text; a longer one is cut, with its length behind it."""
MOST_BYTES: Final = 262_144
"""Of one result as JSON; a larger one is kept without the details of its metrics."""
_DEEPEST: Final = 64
_SLICE: Final = 5_000


@dataclass(frozen=True, slots=True)
class ArchivedResult:
    """How a trace or a session ended, with the verdicts that are new or changed. ``ended_s``: s since the epoch."""

    trace_id: str
    revision: int
    service: str | None
    ended_s: float
    outcome: Mapping[str, object]
    verdicts: Sequence[Mapping[str, object]]


async def put_results(transaction: Transaction, monitor: str, results: Sequence[ArchivedResult]) -> None:
    """Keep results; an existing one is not changed."""
    await transaction.each(
        queries()["put_result"],
        [
            (
                text(each.trace_id), each.revision, monitor, None if each.service is None else text(each.service),
                each.ended_s, _bounded(each.outcome), _bounded(list(each.verdicts)),
            )
            for each in results
        ],
    )  # fmt: skip


async def erase_results(
    transaction: Transaction, *, traces: Sequence[str], users: Sequence[str], sessions: Sequence[str],
    before_s: float | None,
) -> int:  # fmt: skip
    """Erase results of these traces, users (digests) and sessions, and those from before a moment; how many."""
    return await transaction.execute(
        "DELETE FROM results WHERE trace_id = ANY(%s) OR outcome->>'user' = ANY(%s) OR outcome->>'session_id' = ANY(%s)"
        " OR outcome->>'session' = ANY(%s) OR ended_at < to_timestamp(%s)",
        (list(traces), list(users), list(sessions), list(sessions), before_s),
    )


async def purge(transaction: Transaction, *, results_s: float, windows_s: float, answers_s: float, answers: int) -> int:
    """Delete what is too old, a bounded number of rows at a time; how many results were deleted."""
    aged: tuple[tuple[str, float], ...] = (
        ("DELETE FROM windows WHERE written_at < now() - make_interval(secs => %s)", windows_s),
        ("DELETE FROM claims WHERE claimed_at < now() - make_interval(secs => %s)", 2 * 86_400.0),
        ("DELETE FROM judge_spend WHERE hour < extract(epoch FROM now()) - %s", 2 * 86_400.0),
        ("DELETE FROM monitors WHERE seen_at < now() - make_interval(secs => %s)", 7 * 86_400.0),
        ("DELETE FROM leases WHERE expires_at < now() - make_interval(secs => %s)", 7 * 86_400.0),
        ("DELETE FROM answers WHERE written_at < now() - make_interval(secs => %s)", answers_s),
        # Whoever reads a place writes it each minute; what nobody reads any more holds contents for nothing.
        ("DELETE FROM states WHERE starts_with(name, 'references/') AND written_at < now() - make_interval(secs => %s)",
         86_400.0),
    )  # fmt: skip
    for sql, seconds in aged:
        await transaction.execute(sql, (seconds,))
    await transaction.execute(
        "DELETE FROM answers WHERE written_at < "
        "(SELECT written_at FROM answers ORDER BY written_at DESC OFFSET %s LIMIT 1)",
        (answers,),
    )
    return await transaction.execute(
        "DELETE FROM results WHERE ctid = ANY(ARRAY(SELECT ctid FROM results "
        "WHERE ended_at < now() - make_interval(secs => %s) LIMIT %s))",
        (results_s, _SLICE),
    )


def text(value: str, most: int = MOST_TEXT) -> str:
    """A bounded text without NUL and lone surrogates, which PostgreSQL cannot store."""
    if len(value) > most:
        value = f"{value[:most]} … ({len(value)} characters)"
    clean = value.replace("\0", "\u2400")
    return clean if clean.isascii() else clean.encode("utf-8", "replace").decode("utf-8")


def _bounded(value: object) -> str:
    """JSON of a record that PostgreSQL takes."""
    stated = json.dumps(_clean(value, _DEEPEST), ensure_ascii=False, allow_nan=False)
    if len(stated) <= MOST_BYTES:
        return stated
    return json.dumps(_clean(_without_details(value), _DEEPEST), ensure_ascii=False, allow_nan=False)


def _without_details(value: object) -> object:
    """What a result is found and counted by; the rest is too large to keep."""
    if isinstance(value, list):
        return [_without_details(each) for each in value[:100]]
    if not isinstance(value, Mapping):
        return None
    return {
        str(name)[:200]: each[:1_000] if isinstance(each, str) else each
        for name, each in list(value.items())[:100]
        if each is None or isinstance(each, str | int | float)
    } | {"cut": True}


def _clean(value: object, left: int) -> object:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**300 else text(str(value)[:100])
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not left:
        return None
    if isinstance(value, Mapping):
        return {text(str(name), 1_000): _clean(each, left - 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, left - 1) for each in value]
    return text(str(value))
