"""A number with its noun, as people write them."""

from __future__ import annotations


def counted(number: float, noun: str, several: str = "") -> str:
    """``1 trace``, ``2 traces``, ``1,200 traces``; ``several`` is the plural where it is not the noun with an s.

    >>> counted(1, "effective sample"), counted(2.5, "effective sample"), counted(1200, "entry", "entries")
    ('1 effective sample', '2.5 effective samples', '1,200 entries')
    """
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"
    return f"{shown} {noun if number == 1 else several or noun + 's'}"
