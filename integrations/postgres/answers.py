"""Answers of judges that monitors share: each is paid for once, as far as it is known in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .database import Transaction

MOST: Final = 500
"""Answers that are read at a time."""
OVERLAP_S: Final = 30.0
"""What was written so long before the last reading is read again: it may have been committed after it."""
_READ: Final = """
SELECT key, body, extract(epoch FROM written_at)::float8 FROM answers
WHERE written_at > to_timestamp(%s) ORDER BY written_at DESC LIMIT %s
"""


async def put_answers(transaction: Transaction, answers: Mapping[str, str]) -> None:
    """Share answers (JSON by key); one that is there stays."""
    await transaction.each(
        "INSERT INTO answers (key, body) VALUES (%s, %s) ON CONFLICT (key) DO NOTHING", sorted(answers.items())
    )


async def new_answers(transaction: Transaction, since_s: float) -> tuple[dict[str, str], float]:
    """The latest answers since a moment, and when the last of them was written (s since the epoch, its clock)."""
    rows = await transaction.rows(_READ, (since_s - OVERLAP_S, MOST))
    return {key: body for key, body, _ in rows}, max((at for *_, at in rows), default=since_s)
