"""What routes and pages ask of a running monitor. They run on the event loop; only the store may make them wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

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

    from .report import ComparedReport, ReloadResult, TraceList, TraceQuery, VerdictPage, VerdictQuery, VerdictSearch
    from .reported_route import ReportedAgreement
    from .service_page import ServiceChoice


class MonitorView(Protocol):
    """A monitor, looked at from outside."""

    reload: Callable[[], Awaitable[ReloadResult]] | None

    def live(self) -> bool:
        """Whether the process works; when not, it should be restarted."""

    def ready(self) -> bool:
        """Whether it takes traces in."""

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

    async def search(self, query: VerdictSearch, *, contents: bool, counted: bool = True) -> VerdictPage:
        """Verdicts that match, newest first, each with the ``name`` of its trace, and ``counted`` how many there are.

        Raises ``StoreError``.
        """

    async def service(self, choice: ServiceChoice, *, contents: bool) -> ServicePage | None:
        """What is known of a service under a rubric; None for a rubric that there is not. Raises ``StoreError``."""

    async def compared_verdicts(self, wanted: ComparedFilter) -> ComparedVerdicts:
        """Those that match, the newest first, for a comparison. Raises ``StoreError``."""

    async def traces(self, query: TraceQuery, *, contents: bool = False) -> TraceList:
        """Traces that have ended, newest first: by time of closing, then trace id, both descending.

        Without ``contents`` what failed is named without what it quotes.
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
        """How far verdicts before and after, or of two versions, lie apart. Raises ``StoreError``."""

    def fleet_report(self) -> tuple[FleetReport, float] | None:
        """The fleet, and the length of a window in s; None where no fleet is configured."""

    def reported_agreements(self) -> Sequence[ReportedAgreement]:
        """One for each pair of rubrics that judged traces of a service, the first of verdicts of others."""
