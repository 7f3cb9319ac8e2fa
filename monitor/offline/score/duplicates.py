"""Duplicates: a case id that occurs twice is reported once."""

from __future__ import annotations

MAX_KNOWN = 100_000
"""Ids that are remembered, the first of the file: what comes after is not compared, so that memory stays constant."""


class Duplicates:
    """Records the ids of cases with their lines. ``count`` is how many lines repeat an id."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}
        self.count = 0

    def first_line(self, case_id: str, number: int) -> int | None:
        """The line on which this id stood before; ``None`` when it is new (or too late to be compared)."""
        first = self._lines.get(case_id)
        if first is not None:
            self.count += 1
        elif len(self._lines) < MAX_KNOWN:
            self._lines[case_id] = number
        return first
