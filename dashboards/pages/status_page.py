"""Status page: the status of every service, on one page that needs only a browser.

While there is no verdict yet it shows what has arrived, and how to get the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields

from sidejudge.integrations.otlp.server.traffic import Forwarding, Receiving
from sidejudge.scoring.alerts.condition import Condition
from sidejudge.scoring.alerts.lifecycle import Posted
from sidejudge.scoring.lexical.amount import amount
from sidejudge.scoring.status.agreement_snapshot import AgreementSnapshot
from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import UNKNOWN_SERVICE, FleetReport, ServiceStatus
from sidejudge.scoring.status.snapshots import (
    Anomaly,
    EmbeddingsSnapshot,
    ExportSnapshot,
    FleetSnapshot,
    JudgeSnapshot,
    LateReferenceSnapshot,
    PromptSnapshot,
    PullSnapshot,
)
from sidejudge.scoring.status.status import WORST_FIRST, Policy, Status
from sidejudge.scoring.status.trend import Trend

from .rendering import query_of, render
from .trend import trend_drawing

_INCOMPLETE = "/verdicts?passed=none"
_BY_REASON = {
    "sampled_out": "Sampling did not draw them: raise sampling.rate, or add a rule that draws what matters.",
    "no_rubric": "No route selects them: add a route for this service (routes), or default_rubrics.",
    "not_a_run": "No model, agent or tool took part in them: instrument the part that calls the model.",
    "excluded": "They are evaluators' traces, or their route has no rubrics: send the application's, or give it some.",
    "no_content": "They carry no message contents: switch on their capture in the instrumentation.",
    "incomplete": "They were cut short: see whether the application ends its spans and flushes its exporter.",
    "unavailable": "The rubrics lack what they need, such as a reference or a judge:",
    "judge_failed": "The judge could not be asked: see its card below, and evaluators.judge.",
    "over_budget": "The budget of the judge did not reach for them: raise it, or lower sampling.rate.",
    "shed": "They were given up for lack of room: lower sampling.rate, or raise the limits of assembly.",
    "late": "Their spans came after they had ended: raise assembly.late.",
    "undecodable": "Their bytes could not be read: see what sends to this address.",
    "deleted": "They were deleted in Langfuse before they were read.",
    "handed_over": "This process ended, and the monitor that drain.to names judges them.",
    "crashed": "The process ended while it judged them: see its log and its memory limit.",
    "error": "Judging them failed: see the log.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The state so far, the next action, and a helpful example or page."""

    happened: str
    advice: str
    example: str = ""
    link: str = ""
    link_text: str = ""


def next_step(
    seen: int, still_open: int, ended: Mapping[str, int], receiving: Receiving | None, otlp_port: int
) -> NextStep:
    """The step that follows from how most traces ended.

    Args:
        seen: Traces since the start.
        still_open: Those of them that have not ended.
        ended: The others, by reason.
        receiving: What has come in; None where nothing listens.
        otlp_port: The port that listens for OTLP over HTTP.
    """
    if not seen:
        return _nothing_seen(receiving, otlp_port)
    reason, most = max(ended.items(), key=lambda item: item[1], default=("", 0))
    happened = f"{amount(seen, 'trace')} came in, {still_open:,} still open"
    if not most:
        return NextStep(happened=f"{happened}.", advice="A trace is judged once it is whole; that takes some seconds.")
    link = {"link": _INCOMPLETE, "link_text": "verdicts with the reasons"} if reason == "unavailable" else {}
    advice = _BY_REASON.get(reason, "The outcomes below show how each ended.")
    return NextStep(happened=f"{happened}, {most:,} ended as {reason.replace('_', ' ')}.", advice=advice, **link)


def _nothing_seen(receiving: Receiving | None, otlp_port: int) -> NextStep:
    if receiving is None:
        return NextStep(happened="Nothing has come in.", advice="Traces are read from where sources names them.")
    refused = sum(receiving.refused.values())
    if refused:
        codes = ", ".join(map(str, sorted(receiving.refused)))
        return NextStep(
            happened=f"{amount(refused, 'request')} refused ({codes}), none brought a trace.",
            advice="See the log for the cause, and what the application's exporter sends.",
        )
    if receiving.requests:
        return NextStep(
            happened=f"{amount(receiving.requests, 'request')} came in, none with a span.",
            advice="Send traces, not only logs or metrics.",
        )
    scheme = "https" if receiving.encrypted else "http"
    return NextStep(
        happened="Nothing has come in.",
        advice="Let the application send OTLP traces here with these variables, or see",
        link="/help/tutorials",
        link_text="how it is done with your client",
        example=f"OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://THIS-HOST:{otlp_port}\nOTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    )


REFRESH_S = 10
MOST = 25
"""Services on the page, the first in its order, unless all are asked for."""
MOST_OF_ALL = 1000
"""Services on the page where all are asked for."""
SEARCHED_FROM = 10
"""From so many services on, the page has a field to search them by name."""
_ICONS = {
    Status.HEALTHY: "1a7f4b",
    Status.WARNING: "d98200",
    Status.CRITICAL: "c22b32",
    Status.INSUFFICIENT_DATA: "626c7c",
    Status.NO_DATA: "626c7c",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChoice:
    """The shown services. Their name, environment or rubric contains ``find``, in any letter case.

    ``sort`` is one of ``SORTS``, with a ``-`` before it in reverse, else the worst come first. ``whole``: all of them.
    """

    find: str = ""
    sort: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorReport:
    """Everything at one moment. Times are ns since the epoch; ``ended`` counts traces by the reason they ended with.

    ``seen == open + sum(ended)``, always. ``shortened`` counts verdicts that left a window early, for lack of memory.
    ``judge``, ``embeddings`` and ``pull`` are None where none is configured, ``agreement`` where no labels are read,
    ``late_references`` where references are in the traces alone, ``fleet`` and ``whole_fleet`` where none is
    configured. ``SamplingBody`` describes ``begun_by_callers`` and ``disbelieved``. ``alerts`` are in the order in
    which people want to see them.
    """

    services: Sequence[ServiceStatus]
    policy: Policy
    window_ns: int
    seen: int
    open: int
    ended: Mapping[str, int]
    revisions: int
    sampling_rate: float
    otlp_port: int
    sampling_rules: Sequence[str]
    version: str
    fingerprint: str
    started_ns: int
    now_ns: int
    begun_by_callers: int = 0
    disbelieved: Mapping[str, int] = field(default_factory=dict)
    shortened: int = 0
    judge: JudgeSnapshot | None = None
    embeddings: EmbeddingsSnapshot | None = None
    agreement: AgreementSnapshot | None = None
    exports: Sequence[ExportSnapshot] = ()
    pull: PullSnapshot | None = None
    fleet: FleetSnapshot | None = None
    whole_fleet: FleetReport | None = None
    late_references: LateReferenceSnapshot | None = None
    prompts: Sequence[PromptSnapshot] = ()
    anomalies: Sequence[Anomaly] = ()
    receiving: Receiving | None = None
    forwarding: Forwarding | None = None
    alerts: Sequence[Posted] = ()
    conditions: Sequence[Condition] = ()
    metrics: Sequence[MetricStatus] = ()

    @property
    def window_s(self) -> float:
        """How far back a window reaches, in seconds."""
        return self.window_ns / 1e9

    @property
    def overall(self) -> Status:
        """The worst status of any window or limited metric; insufficient data only when all are."""
        found = {each.appraisal.status for each in self.services}
        found |= {each.appraisal.status for each in self.metrics}
        return next((status for status in WORST_FIRST if status in found), Status.INSUFFICIENT_DATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPage:
    """The contents of the page: the state of the monitor, and the latest failures, verdicts in their JSON form.

    ``trends`` are by service, environment and rubric; ``groups`` are the failures of the last day. ``unreadable``: the
    store could not be read, so these and ``failures`` are missing.
    """

    report: MonitorReport
    choice: StatusChoice = StatusChoice()  # frozen
    failures: Sequence[Mapping[str, object]] = ()
    groups: Sequence[FailureGroup] = ()
    trends: Mapping[tuple[str, str, str], Trend] = field(default_factory=dict)
    unreadable: bool = False


def status_page(page: StatusPage) -> str:
    """The page as HTML. Every value is escaped: names of services and reasons come from traces."""
    report, choice = page.report, page.choice
    values = {each.name: getattr(of, each.name) for of in (report, page) for each in fields(of)}
    ordered = in_order(report.services, choice)
    shown = ordered[: MOST_OF_ALL if choice.whole else MOST]
    services = [
        (each, trend_drawing(page.trends.get((each.service, each.environment, each.rubric)), each.thresholds))
        for each in shown
    ]
    return render(
        "status.html",
        **{
            **values, "overall": report.overall, "window_s": report.window_s, "late": report.late_references,
            "services": services, "metrics": report.metrics[:MOST],
            "next_step": next_step(report.seen, report.open, report.ended, report.receiving, report.otlp_port),
            "unnamed": any(each.service.startswith(UNKNOWN_SERVICE) for each in report.services),
            "more_services": len(ordered) - len(shown), "all_services": len(ordered) if not choice.whole else None,
            "is_searched": len(report.services) >= SEARCHED_FROM or bool(choice.find),
            "sorts": {name: _order(name, choice) for name in SORTS},
            "whole_at": _address(find=choice.find, sort=choice.sort, services="all"),
            "own_thresholds": any(each.thresholds != report.policy.thresholds for each in report.services),
            "title": f"{report.overall.value.replace('_', ' ')} · sidejudge", "here": "/", "refresh_s": REFRESH_S,
            "icon": _ICONS[report.overall],
        },
    )  # fmt: skip


def in_order(services: Sequence[ServiceStatus], choice: StatusChoice) -> list[ServiceStatus]:
    """The services that match the search, in the chosen order; ties go to the worst first."""
    wanted = choice.find.casefold().split()
    found = [
        each for each in services
        if all(word in f"{each.service} {each.environment} {each.rubric}".casefold() for word in wanted)
    ]  # fmt: skip
    ordered = sorted(found, key=_worst_first)
    by = SORTS.get(choice.sort.removeprefix("-"))
    return ordered if by is None else sorted(ordered, key=by, reverse=choice.sort.startswith("-"))


def _worst_first(status: ServiceStatus) -> tuple[float | str, ...]:
    """By status; ties go to the lowest pass ratio, then to the service with more verdicts."""
    found = status.estimate
    level = WORST_FIRST.index(status.appraisal.status)
    return (level, found.pass_ratio, -found.n) if found is not None else (level, 1.0, 0)


SORTS: Mapping[str, Callable[[ServiceStatus], tuple[float | str, ...]]] = {
    "Status": _worst_first,
    "Service": lambda each: (each.service.casefold(), each.environment.casefold()),
    "Rubric": lambda each: (each.rubric,),
    "Pass ratio": lambda each: (each.estimate.pass_ratio if each.estimate else 2.0,),
    "Verdicts": lambda each: (each.estimate.n if each.estimate else 0,),
    "Failed": lambda each: (each.estimate.failures if each.estimate else 0,),
}
"""What the services may be sorted by: the columns of the page."""
_LARGEST_FIRST = ("Verdicts", "Failed")


def _order(name: str, choice: StatusChoice) -> tuple[str, str]:
    """The address that sorts by a column, or turns its order, and the ``aria-sort`` that the column has now."""
    now = choice.sort or "Status"
    usual = f"-{name}" if name in _LARGEST_FIRST else name
    is_sorted = now.removeprefix("-") == name
    turned = name if now.startswith("-") else f"-{name}"
    at = _address(find=choice.find, sort=turned if is_sorted else usual, services="all" if choice.whole else "")
    return at, ("descending" if now.startswith("-") else "ascending") if is_sorted else ""


def _address(**query: str) -> str:
    return f"/?{query_of(query)}"
