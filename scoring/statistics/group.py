"""Group: verdicts that came together, in an order that nobody knows, such as those of several monitors in one minute.

What follows verdicts one by one (CUSUM, confidence sequence, design effect) takes a group as one move. The move does
not depend on an order, so it is the same however the verdicts were divided among monitors. It is the product of the
same factors, hence each promise holds: a product of bets against a true statement is one. It is slower by one group at
most: a drop is counted from the end of the group in which it began.
"""

from __future__ import annotations

from typing import NamedTuple


class Together(NamedTuple):
    """So many verdicts that are alike: outcome, weight and what they belong to (None: each is its own).

    ``worth`` is what all of them are worth, at most ``n`` (``design_effect``).
    """

    passed: bool
    weight: float
    n: int
    worth: float
    cluster: str | None = None
