"""What judges cost the whole fleet, and the answers that its monitors share.

Slices of the budget are granted ahead of time, under one lock, never more than is left. Each answer is paid for once,
as far as it is known in time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .database import Transaction, queries


class SpendLimit(NamedTuple):
    """US dollars in a time (``since`` to ``until``, s since the epoch), and the seconds that are left of it."""

    usd: float
    since: int
    until: int
    left_s: float


class SpendTotals(NamedTuple):
    """Of all monitors in a time: granted (what was spent included), spent, and demand in US dollars a second."""

    granted: float
    spent: float
    demand: float


async def begin(transaction: Transaction) -> None:
    """Keep others from being granted anything until this transaction ends."""
    await transaction.execute(queries()["lock_spend"])


async def settle(transaction: Transaction, monitor: str, hour: int, spent: float, *, reserved: float = 0.0) -> None:
    """Give back an hour's granted money that will not be spent. ``reserved`` is kept for calls under way."""
    kept = spent + reserved
    await transaction.execute(queries()["settle"], (spent, kept, monitor, hour, kept))


async def known(transaction: Transaction, monitor: str, since: int, until: int) -> list[tuple[int, float, float]]:
    """Hour, granted and spent dollars of this monitor's hours that begin in this time, both ends included."""
    found = await transaction.rows(queries()["known"], (monitor, since, until))
    return [(int(hour), float(granted), float(spent)) for hour, granted, spent in found]


async def report(
    transaction: Transaction, monitor: str, hour: int, *, spent: float, committed: float, demand: float, keep: float
) -> float:
    """Report what this monitor spent, and give back what it has beyond ``keep``; what it is granted now.

    ``committed``: what is spent, and what is set aside for calls that are under way.
    """
    values = {
        "monitor": monitor, "hour": hour, "spent": spent, "committed": committed, "demand": demand, "keep": keep
    }  # fmt: skip
    return float((await transaction.rows(queries()["report"], values))[0][0])


async def totals(
    transaction: Transaction, hour: int, limits: Sequence[SpendLimit], *, alive_s: float
) -> list[SpendTotals]:
    """The totals by limit. ``alive_s``: how old a demand may be."""
    values = {"hour": hour, "alive": alive_s}
    return [
        SpendTotals(
            *(await transaction.rows(queries()["totals"], {**values, "since": limit.since, "until": limit.until}))[0]
        )
        for limit in limits
    ]


async def grant(transaction: Transaction, monitor: str, hour: int, usd: float) -> float:
    """Grant this monitor more; what it is granted now."""
    return float((await transaction.rows(queries()["grant"], (usd, hour, monitor)))[0][0])


MOST: Final = 500
"""Answers that are read at a time."""
OVERLAP_S: Final = 30.0
"""What was written so long before the last reading is read again: it may have been committed after it."""


async def put_answers(transaction: Transaction, answers: Mapping[str, str]) -> None:
    """Share answers (JSON by key); one that is there stays."""
    await transaction.each(
        "INSERT INTO answers (key, body) VALUES (%s, %s) ON CONFLICT (key) DO NOTHING", sorted(answers.items())
    )


async def new_answers(transaction: Transaction, since_s: float) -> tuple[dict[str, str], float]:
    """The latest answers since a moment, and when the last of them was written (s since the epoch, its clock)."""
    rows = await transaction.rows(queries()["answers"], (since_s - OVERLAP_S, MOST))
    return {key: body for key, body, _ in rows}, max((at for *_, at in rows), default=since_s)
