"""A number with its noun, as people write them."""

from __future__ import annotations


def amount(number: float, noun: str, several: str = "") -> str:
    """``1 trace``, ``2 traces``, ``1,200 traces``; ``several`` is the plural where it is not the noun with an s.

    >>> amount(1, "verdict"), amount(2.5, "verdict"), amount(1200, "entry", "entries")
    ('1 verdict', '2.5 verdicts', '1,200 entries')
    """
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"
    return f"{shown} {noun if number == 1 else several or noun + 's'}"
