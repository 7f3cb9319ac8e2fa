"""View: what routes and pages ask of a running monitor, and the records of what they want and find.

The questions run on the event loop; only the store may make them wait.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, Self, TypeAlias

from pydantic import BaseModel, Field

from sidejudge.integrations.store.verdict_search import VerdictFilter
from sidejudge.monitor.alerting.comparisons import PlaceComparison
from sidejudge.scoring.statistics.agreement import Confusion
from sidejudge.scoring.verdict.verdict import State

if TYPE_CHECKING:
    from sidejudge.dashboards.pages.plain_pages import ConfigurationPage
    from sidejudge.dashboards.pages.service_page import ServicePage
    from sidejudge.dashboards.pages.status_page import MonitorReport
    from sidejudge.dashboards.pages.trace_page import TracePage
    from sidejudge.integrations.store.bounded_read import ComparedFilter
    from sidejudge.monitor.alerting.comparisons import ComparedVerdicts, ComparisonQuery
    from sidejudge.monitor.alerting.observation import Key
    from sidejudge.scoring.status.failure_groups import FailureGroup
    from sidejudge.scoring.status.service_status import FleetReport
    from sidejudge.scoring.status.trend import Trend
    from sidejudge.scoring.verdict.rubric import Rubric

Passed: TypeAlias = Literal["true", "false", "none"]
"""Outcomes that a query for verdicts may name: passed, failed, or neither (incomplete)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedReport:
    """Comparisons, and whether older verdicts were left unread. ``higher_is_better`` is about what was compared.

    ``metrics``: those of the rubrics that were asked for; empty where a figure of the application was.
    """

    comparisons: Sequence[PlaceComparison]
    capped: bool
    higher_is_better: bool
    metrics: Sequence[str] = ()


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

    For a search: the number of matches by choice, whether older verdicts were left unread, and in how many verdicts
    failing metrics were counted (None: in all).
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
    """The result of reading the configuration again.

    ``mistakes``: why nothing changed; ``changed``: rubrics with another version, new and gone ones; ``restart``:
    sections that differ and are not in force before a restart.
    """

    mistakes: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """For an answer of the API and the log."""
        return {"changed": list(self.changed), "needs_restart": list(self.restart), "mistakes": list(self.mistakes)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAgreement:
    """Verdicts of others (rows of ``table``) and by one of our rubrics (columns) on the traces of a service."""

    service: str
    environment: str
    reported: str
    rubric: str
    table: Confusion


class PlaceChoice(BaseModel):
    """A service, an environment and a rubric, as in an address; empty for any."""

    service: str = Field(default="", max_length=2000)
    environment: str = Field(default="", max_length=2000)
    rubric: str = Field(default="", max_length=200)


class ServiceChoice(PlaceChoice):
    """Which service, and what of it; ``metric`` is empty for the composite, ``last`` for a time that fits the data."""

    metric: str = Field(default="", max_length=200)
    last: str = Field(default="", max_length=20)


class MonitorView(Protocol):
    """A monitor, looked at from outside."""

    reload: Callable[[], Awaitable[ReloadResult]] | None

    def live(self) -> bool:
        """Whether the process works; when not, it should be restarted."""

    def ready(self) -> bool:
        """Whether it accepts traces."""

    def started(self) -> bool:
        """Whether its start is over."""

    async def trace(self, trace_id: str, *, contents: bool) -> Mapping[str, object] | None:
        """The details of a trace (32 lower-case hex digits), None when unknown; ``contents`` if they are shown."""

    async def spans(self, trace_id: str) -> bytes | None:
        """The spans of a trace as a request of OTLP in protobuf, None where none are held."""

    async def judge_calls(self, trace_id: str) -> Mapping[str, object]:
        """The calls to judges about a trace, and where they are not kept, how they would be."""

    async def metrics(self, accept: str, *, small: bool = False) -> tuple[bytes, Mapping[str, str]]:
        """The metrics as the ``Accept`` header wants them, with their headers; ``small``: gzipped."""

    @property
    def clock_ns(self) -> Callable[[], int]:
        """The time, in ns since the epoch."""

    @property
    def rubrics(self) -> Sequence[str]:
        """The names of all rubrics, those that the configuration declares too."""

    def status(self) -> MonitorReport:
        """Everything at this moment."""

    async def verdicts(self, query: VerdictQuery, *, contents: bool = False) -> VerdictPage:
        """Verdicts that match, newest first: by time of closing, then trace id, then rubric, all descending.

        Without ``contents`` reasons and details hold nothing that people or models wrote.
        """

    async def search(
        self, query: VerdictSearch, *, contents: bool, counted: bool = True, fields: Collection[str] | None = None
    ) -> VerdictPage:
        """Verdicts that match, newest first, each with the ``name`` of its trace, and ``counted`` how many there are.

        Of each these ``fields`` alone, with those of its position; None: all. Raises ``StoreError``.
        """

    async def service(self, choice: ServiceChoice, *, contents: bool) -> ServicePage | None:
        """What is known of a service under a rubric; None for a rubric that there is not. Raises ``StoreError``."""

    async def compared_verdicts(self, wanted: ComparedFilter) -> ComparedVerdicts:
        """Those that match, the newest first, for a comparison. Raises ``StoreError``."""

    async def traces(self, query: TraceQuery, *, contents: bool = False) -> TraceList:
        """Traces that have ended, newest first: by time of closing, then trace id, both descending.

        Without ``contents`` failures are named without quotations.
        """

    async def trace_page(self, trace_id: str, *, contents: bool) -> TracePage | None:
        """The data of a trace's page, with its contents or without; None for an unknown trace."""

    def rubric(self, name: str) -> Rubric | None:
        """A rubric of the configuration or one that ships; None where there is none of this name."""

    async def failure_groups(self, *, contents: bool) -> Sequence[FailureGroup]:
        """The failures of the last day that are alike, the largest groups first."""

    async def trends(self) -> Mapping[Key, Trend]:
        """Where each service came from."""

    def configuration(self) -> ConfigurationPage:
        """The configuration in force, secrets struck."""

    async def compare(self, wanted: ComparedFilter, query: ComparisonQuery) -> ComparedReport:
        """The difference of verdicts before and after, or of two versions. Raises ``StoreError``."""

    def fleet_report(self) -> tuple[FleetReport, float] | None:
        """The fleet, and the length of a window in s; None where no fleet is configured."""

    def reported_agreements(self) -> Sequence[ReportedAgreement]:
        """One for each pair of rubrics that judged traces of a service, the first of verdicts of others."""
