"""Steps: the single steps that a metric's value was made of, as the details of its result hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOWEST: Final = "lowest"
"""Key of the details of a metric of steps: the steps with the lowest values, span id → value."""
MATCHING: Final = "matching"
"""Key of the same details: how many steps match."""


def lowest_steps(details: Mapping[str, object]) -> dict[str, float]:
    """The steps with the lowest values, by span id, the lowest first; none for a metric of the whole trace.

    >>> lowest_steps({"spans": 2, "matching": 2, "lowest": {"b7ad6b7169203331": 0.0}})
    {'b7ad6b7169203331': 0.0}
    >>> lowest_steps({"lowest": 3})
    {}
    """
    found = details.get(LOWEST)
    if MATCHING not in details or not isinstance(found, Mapping):
        return {}
    return {str(span): float(value) for span, value in found.items() if isinstance(value, int | float)}
