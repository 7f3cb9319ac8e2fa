"""Notice: one message to people, as plain values, the report of a day among them; each receiver formats it.

The address of an alert's runbook comes from ``alerts.links.runbooks``, the one setting for all runbooks. Notices, rules
for Prometheus and Grafana's boards all take it from this file.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Final, TypeVar

from msgspec import convert

from sidejudge.scoring.alerts.condition import Labels
from sidejudge.scoring.alerts.event import AlertEvent, Example, MainFailure, event_of_json
from sidejudge.scoring.alerts.explanation import TOOL
from sidejudge.scoring.status.service_status import OTHER
from sidejudge.scoring.status.snapshots import AnomalyKind
from sidejudge.scoring.status.status import Status
from sidejudge.scoring.trace.span import JsonRecord

Stated = TypeVar("Stated", Example, MainFailure)
_OF_ROUTES: Final = ("kind", AnomalyKind.SILENT_ROUTES.value)
_ROUTES: Final = "a route matches none of the traces that arrive; the monitor's status page names it"


class NoticeKind(StrEnum):
    """The kind of a notice.

    ``alert``: an event of one alert; ``group``: events of several at about the same time. ``reminder``: an alert that
    was sent still fires. ``digest``: events of less severe alerts since the last digest. ``refresh``: all firing
    alerts, for a receiver that wants repetition. ``report``: a day. ``test``: a test message.
    """

    ALERT = "alert"
    GROUP = "group"
    REMINDER = "reminder"
    DIGEST = "digest"
    REFRESH = "refresh"
    REPORT = "report"
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message made at ``at_ns``. ``events`` are its contents: one for an alert or a reminder.

    ``id`` is the same each time the notice is delivered, so that a receiver can recognise a repeated one.
    """

    id: str
    kind: NoticeKind
    at_ns: int
    events: tuple[AlertEvent, ...] = ()
    report: DailyReportText | None = None

    def to_json(self) -> dict[str, object]:
        """The notice as JSON, to send or store."""
        return {
            "id": self.id, "kind": self.kind.value, "at_ns": self.at_ns,
            "events": [event.to_json() for event in self.events],
            "report": asdict(self.report) if self.report is not None else None,
        }  # fmt: skip

    @classmethod
    def of_json(cls, record: JsonRecord) -> Notice:
        """Read what ``to_json`` wrote."""
        return cls(
            id=record["id"], kind=NoticeKind(record["kind"]), at_ns=record["at_ns"],
            events=tuple(map(event_of_json, record["events"])),
            report=convert(record["report"], DailyReportText | None),
        )  # fmt: skip


def without_names(notice: Notice) -> Notice:
    """The notice without names of the application's parts, including versions, tenants and routes.

    A slice of the traffic keeps a digest in place of its name, so that its alerts stay distinct.
    """
    report = notice.report
    if report is not None:
        failures = [replace(each, words=_plain_words(each.words, each.nameless)) for each in report.failures]
        report = replace(report, failures=tuple(failures), firing=report.firing_nameless or report.firing)
    return replace(notice, events=tuple(map(_without_names, notice.events)), report=report)


def nameless(labels: Labels) -> Labels:
    """The labels of an alert without the name of a slice of the traffic."""
    by = dict(labels).get("slice")
    return tuple((name, _digest(by, text) if by and name == "value" else text) for name, text in labels)


def _without_names(event: AlertEvent) -> AlertEvent:
    known, failure = event.explained, event.failure
    if known is not None:
        causes = [replace(each, words=each.nameless) for each in known.causes if each.by != TOOL]
        known = replace(known, slices=(), new=(), causes=tuple(causes))
    return replace(
        event, labels=nameless(event.labels), examples=tuple(map(_plain, event.examples)), explained=known,
        failure=None if failure is None else _plain(failure),
        stated=_ROUTES if _OF_ROUTES in event.labels else event.stated,
    )  # fmt: skip


def _plain(stated: Stated) -> Stated:
    return replace(stated, reason=_plain_words(stated.reason, stated.nameless), quoted=None)


def _plain_words(words: str, nameless: str | None) -> str:
    return words if nameless is None else nameless


def _digest(by: str, value: str) -> str:
    return value if value == OTHER else hashlib.sha256(f"{by}\n{value}".encode("utf-8", "replace")).hexdigest()[:8]


SLUG = "{runbook}"
"""The placeholder for the name of a runbook, in an address that does not end with it."""


def runbook_link(runbooks: str, slug: str) -> str:
    """The address of a runbook; ``slug`` is its name, or a placeholder that somebody else replaces.

    >>> runbook_link("https://monitor.example/help/alert", "judge-budget")
    'https://monitor.example/help/alert/judge-budget'
    >>> runbook_link("https://git.example/runbooks/{runbook}.md", "judge-budget")
    'https://git.example/runbooks/judge-budget.md'
    """
    return runbooks.replace(SLUG, slug) if SLUG in runbooks else f"{runbooks.rstrip('/')}/{slug}"


def check_runbooks(runbooks: str) -> str:
    """Validate the setting and return it unchanged.

    Raises:
        ValueError: No runbook's name could be appended to it.
    """
    if unknown := re.findall(r"[{}]", runbooks.replace(SLUG, "")):
        raise ValueError(f"holds {unknown[0]!r}: only {SLUG} is replaced in it, by the name of a runbook")
    if SLUG not in runbooks and re.search(r"[?#]", runbooks):
        raise ValueError(f"has a query or a fragment: write {SLUG} where the name of a runbook goes")
    return runbooks


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDay:
    """One (service, environment, rubric): its verdicts of the period, and its status at the end.

    The pass ratio is the weighted estimate with the 95 % interval of the pages; ``None`` where nothing passed or
    failed. ``unanswered`` of the incomplete ones are so because of an outage of a judge or of embeddings; for
    ``unreached`` more traces the judge's budget was spent, and ``waiting`` more wait for an outage to end.
    """

    service: str
    environment: str
    rubric: str
    status: Status
    passed: int
    failed: int
    incomplete: int
    pass_ratio: float | None
    lower: float | None
    upper: float | None
    unanswered: int = 0
    unreached: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakMetric:
    """A metric whose weighted mean over ``n`` verdicts, in its own unit, is outside its acceptable band."""

    service: str
    environment: str
    rubric: str
    metric: str
    mean: float
    n: int
    acceptable: float
    higher_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureLine:
    """A group of similar failures of the day, with the number ``before`` of the day before; ``words`` hold no contents.

    ``before`` is None where that day is not kept any more. ``nameless`` are the words without names of the
    application's parts, None where they are the same.
    """

    group: str
    rubric: str
    metric: str
    words: str
    count: int
    before: int | None
    examples: tuple[str, ...]
    nameless: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedOn:
    """The judge's agreement with people on a rubric: kappa from ``n`` pairs."""

    rubric: str
    kappa: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyReportText:
    """The report of the period from ``begin_ns`` to ``end_ns``.

    ``day_ns`` is when the day began, where what came before ``begin_ns`` is not kept any more; else None.

    ``courses`` are its services, the worst first, and ``more`` counts those that are left out. ``cost_usd`` is what
    judging cost; None without a judge. ``unpriced`` are the models of which no price is known. ``share_of`` names the
    monitor of a fleet whose verdicts and cost these are; None where there are no others. ``firing`` are the titles and
    subjects of the alerts that fire at its end, and ``firing_nameless`` the same without names of the application's
    parts.
    """

    begin_ns: int
    end_ns: int
    courses: tuple[ServiceDay, ...] = ()
    more: int = 0
    weakest: tuple[WeakMetric, ...] = ()
    agreements: tuple[AgreedOn, ...] = ()
    cost_usd: float | None = None
    unpriced: tuple[str, ...] = ()
    failures: tuple[FailureLine, ...] = ()
    firing: tuple[str, ...] = ()
    firing_nameless: tuple[str, ...] = ()
    share_of: str | None = None
    day_ns: int | None = None
