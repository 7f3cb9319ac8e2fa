"""Report: what queries for verdicts, traces and comparisons want and find, and what comes of a reload."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import ClassVar, Literal, Self, TypeAlias

from sidejudge.integrations.store.verdict_search import VerdictFilter
from sidejudge.monitor.alerting.comparisons import PlaceComparison
from sidejudge.scoring.verdict.verdict import State

Passed: TypeAlias = Literal["true", "false", "none"]
"""Outcomes that a query for verdicts may name: passed, failed, or neither (incomplete)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedReport:
    """Comparisons, and whether older verdicts were left unread. ``higher_is_better`` is about what was compared."""

    comparisons: Sequence[PlaceComparison]
    capped: bool
    higher_is_better: bool


@dataclass(frozen=True, slots=True)
class TracePosition:
    """Where a page of traces ended: just after this trace, newest first."""

    _FORM: ClassVar = re.compile(r"([0-9]{1,19})-([0-9a-f]{32})")
    closed_ns: int
    trace_id: str

    def __str__(self) -> str:
        return "-".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, cursor: str) -> Self:
        """The position that a cursor names; ``ValueError`` when it is none."""
        match = cls._FORM.fullmatch(cursor)
        if match is None or int(match[1]) >= 1 << 63:
            raise ValueError(f"{cursor[:100]!r} is not a cursor; use next_cursor of the page before")
        closed_ns, *names = match.groups()
        return cls(int(closed_ns), *names)


@dataclass(frozen=True, slots=True)
class Position(TracePosition):
    """Where a page of verdicts ended: just after the verdict on this trace under this rubric, newest first."""

    _FORM: ClassVar = re.compile(r"([0-9]{1,19})-([0-9a-f]{32})-([A-Za-z0-9_-]{1,64})")
    rubric: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictQuery:
    """The verdicts that a query wants; ``None`` does not restrict. ``since_ns`` is inclusive, ``after`` exclusive."""

    rubric: str | None = None
    service: str | None = None
    environment: str | None = None
    passed: Passed | None = None
    state: State | None = None
    trace_id: str | None = None
    since_ns: int | None = None
    limit: int = 100
    after: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSearch(VerdictFilter):
    """A query for people, by what verdicts hold: one page of it, from just after a position."""

    limit: int = 100
    after: Position | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictPage:
    """Verdicts in their JSON form, newest first, and where the next page begins (``None``: there is none).

    Of a search: how many match by what may be chosen, and whether older verdicts were not looked at, and in how
    many of them failing metrics were counted (None: in all).
    """

    verdicts: Sequence[Mapping[str, object]] = ()
    next: Position | None = None
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    capped: bool = False
    failing_of: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """The ended traces that a query wants; ``None`` does not restrict.

    ``since_ns`` is inclusive, ``after`` exclusive.
    """

    reason: str | None = None
    service: str | None = None
    since_ns: int | None = None
    limit: int = 100
    after: TracePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceList:
    """Ended traces, newest first, and where the next page begins (``None``: there is none)."""

    traces: Sequence[Mapping[str, object]] = ()
    next: TracePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadResult:
    """What came of reading the configuration again.

    ``mistakes``: why nothing changed; ``changed``: rubrics with another version, new and gone ones; ``restart``:
    sections that differ and are not in force before a restart.
    """

    mistakes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """For an answer of the API and the log."""
        return {"changed": list(self.changed), "needs_restart": list(self.restart), "mistakes": list(self.mistakes)}
