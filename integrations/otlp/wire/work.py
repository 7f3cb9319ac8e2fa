"""A budget of work for one request, so that the event loop does no more than it has time for.

The size of a request is no measure of its work: 1 MiB may be 200 spans or half a million. So steps are counted while
the request is split, and when they exceed the budget the request is split again from the start, in a thread.
"""

from __future__ import annotations

import sys
from typing import Final

from sidejudge.scoring.errors import SidejudgeError

_CONTROL: Final = bytes(range(0x20))
_PER_STEP: Final = 32
"""Messages that protobuf parses in one step."""


class OverBudget(SidejudgeError):  # noqa: N818  # it is a decision, not a fault
    """A request takes more work than the budget allows; it is not known to be wrong."""


class WorkBudget:
    """Steps of work that are left, about 4 µs each (parsing the ids of one span); without a number, unlimited."""

    __slots__ = ("_limited", "left")

    def __init__(self, steps: int | None = None) -> None:
        self._limited = steps is not None
        self.left = sys.maxsize if steps is None else steps

    def spend(self, steps: int) -> None:
        """Count work that is about to be done. Raises ``OverBudget`` when there is not enough left for it."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget

    def spend_parsing(self, payload: bytes) -> None:
        """Count the parsing of a whole message with all that is nested in it; raises likewise."""
        if self._limited:
            self.spend(most_messages(payload) // _PER_STEP)


def most_messages(payload: bytes) -> int:
    """An upper bound of the number of messages nested in a protobuf message, found without parsing it.

    A message is a tag, a length and its content. The length of one with less than 32 bytes ends with a byte below 0x20,
    even if it is padded; the others have 34 bytes each.
    """
    return len(payload) // 34 + len(payload) - len(payload.translate(None, _CONTROL))
