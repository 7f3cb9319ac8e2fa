"""Remarks: what is reported of the lines of a run, in their order, whichever process judged them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from .duplicates import Duplicates

_IGNORED = 50
"""Names of fields that are reported as ignored; names come from the file."""


class Remarks(Protocol):
    """What a run has to report of its lines."""

    def complain(self, message: str) -> None: ...
    def ignored(self, name: str, number: int) -> None: ...
    def case(self, case_id: str, number: int) -> None: ...


@dataclass(slots=True)
class ReportedRemarks:
    """Reports each message to ``write``; a field that is ignored once, and the first case id that stands twice."""

    write: Callable[[str], None]
    _ignored: set[str] = field(default_factory=set)
    _duplicates: Duplicates = field(default_factory=Duplicates)

    @property
    def repeated(self) -> int:
        """How many lines repeat a case id."""
        return self._duplicates.count

    def complain(self, message: str) -> None:
        """Report a message as it is."""
        self.write(message)

    def ignored(self, name: str, number: int) -> None:
        """Report a field that no case has, the first time that it occurs."""
        if name not in self._ignored and len(self._ignored) < _IGNORED:
            self._ignored.add(name)
            self.write(f"line {number}: {name}: is no field of a case and is ignored, here and further on")

    def case(self, case_id: str, number: int) -> None:
        """Take note of the id of a case."""
        first = self._duplicates.first_line(case_id, number)
        if first is not None and self._duplicates.count == 1:
            self.write(
                f"warning: line {number}: case_id: {case_id[:100]!r} stands on line {first} already; both are judged, "
                "but their verdicts have the same name (further ones are only counted)"
            )


@dataclass(slots=True)
class RecordedRemarks:
    """Keeps the remarks of a few lines for the process that reports them."""

    kept: list[tuple[str, str, int]] = field(default_factory=list)

    def complain(self, message: str) -> None:
        self.kept.append(("complain", message, 0))

    def ignored(self, name: str, number: int) -> None:
        self.kept.append(("ignored", name, number))

    def case(self, case_id: str, number: int) -> None:
        self.kept.append(("case", case_id, number))

    def replay(self, remarks: Remarks) -> None:
        """Make the same remarks again, in their order."""
        for kind, text, number in self.kept:
            if kind == "complain":
                remarks.complain(text)
            elif kind == "ignored":
                remarks.ignored(text, number)
            else:
                remarks.case(text, number)
