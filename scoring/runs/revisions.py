"""Revisions: which line of a verdict file stands, where late spans changed the verdict (formats §2)."""

from __future__ import annotations

from .verdict_line import VerdictLine


class Revisions:
    """Reads every line once, then decides which of them stand: those that no later revision replaces.

    It remembers the verdicts that were revised, which are few, and not the others.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}

    def add(self, line: VerdictLine) -> None:
        if line.revision > 1:
            key = (line.identity, line.rubric)
            self._last[key] = max(line.revision, self._last.get(key, 1))

    def merge(self, other: Revisions) -> None:
        """Take what another one has read."""
        for key, revision in other._last.items():
            self._last[key] = max(revision, self._last.get(key, 1))

    def stands(self, line: VerdictLine) -> bool:
        """Whether no later revision of this verdict was read."""
        return line.revision >= self._last.get((line.identity, line.rubric), 1)
