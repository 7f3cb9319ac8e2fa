"""Daily report: the last day, put together from the store and sent once a day: never twice, rather late than never."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import TypeAlias

from apscheduler.triggers.cron import CronTrigger

from sidejudge.integrations.store.bounded_read import MetricMean, read_courses
from sidejudge.integrations.store.notification_outbox import NotificationOutbox
from sidejudge.integrations.store.part import JudgeCacheTable
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.observation import Key
from sidejudge.scoring.alerts.condition import Agreement, Condition, Labels
from sidejudge.scoring.alerts.lifecycle import Posted, Stage
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.notices.notice import AgreedOn, DailyReportText, FailureLine, ServiceDay, WeakMetric, nameless
from sidejudge.scoring.result.reason import Rights
from sidejudge.scoring.status.failure_groups import FailureGroup, without_contents
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.status import WORST_FIRST, Status
from sidejudge.scoring.status.trend import VerdictSums, pooled
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS, SECOND_NS

from .notifier import Notifier


class Daily:
    """Once a day ``at`` a time of day in a time zone.

    Where a change of the clocks leaves that time out, it comes as much later; where it comes twice, the first counts.
    """

    def __init__(self, at: time, timezone: tzinfo) -> None:
        # In a zone of its own it leaves a day out, or repeats it, where clocks change: it gets wall times as UTC.
        self._trigger = CronTrigger(hour=at.hour, minute=at.minute, second=0, timezone=UTC)
        self._timezone = timezone

    def due_s(self, last_ns: int, now_ns: int) -> int | None:
        """When it was due last, after what was last done, in s since the epoch. Several that were missed are one."""
        due_s = self._latest_s(now_ns // SECOND_NS)
        return due_s if due_s * SECOND_NS > last_ns else None

    def begin_s(self, due_s: int) -> int:
        """When it was due the time before, in s since the epoch: a day earlier, but for a change of the clocks."""
        return self._latest_s(due_s - 1)

    def _latest_s(self, until_s: int) -> int:
        wall = datetime.fromtimestamp(until_s, self._timezone).replace(tzinfo=UTC)
        latest_s, following = 0, wall - timedelta(days=3)
        while (following := self._trigger.get_next_fire_time(following, following)) < wall + timedelta(days=1):
            due_s = int(following.replace(tzinfo=self._timezone).timestamp())
            latest_s = due_s if due_s <= until_s else latest_s
        return latest_s


MOST_COURSES = 20
MOST_WEAK = 5
MOST_FAILURES = 5
_WORDS = 200
_MOST_FIRING = 10
_LEAST_N = 10
"""A metric that was scored more rarely than this is not called weak."""
_NOTE = "report"
_LATE_NS = 5 * MINUTE_NS
"""A report that is no later than this lacks nothing that anybody would miss, where the store keeps a day."""


FailuresOver: TypeAlias = Callable[[int, int], Awaitable[Sequence[FailureGroup]]]
"""Returns the groups of failures of so many ns until a time, the largest first."""


async def alone(_: int) -> bool:
    """The default of ``sends``: there is no other monitor."""
    return True


@dataclass(slots=True, kw_only=True)
class DailyReport:
    """Sends a report when it is due. ``judged`` is ``None`` without a judge; ``share_of``: see ``DailyReportText``.

    ``sends`` returns whether the report that was due at a time is this monitor's to send; None: it is not known yet.
    ``kept_since`` returns since when the store holds all verdicts, at a time. ``waiting``: how many traces of each key
    wait for an outage to end.
    """

    daily: Daily
    notifier: Notifier
    store: Path
    outbox: NotificationOutbox
    watched: Mapping[str, WatchedWindow]
    kept_since: Callable[[int], int]
    statuses: Callable[[int], Sequence[ServiceStatus]]
    posted: Callable[[], Iterable[Posted]]
    judged: JudgeCacheTable | None = None
    unpriced: Callable[[], Iterable[str]] = tuple
    agreements: Callable[[], Sequence[Agreement]] = tuple
    failures: FailuresOver | None = None
    share_of: Callable[[], str | None] = lambda: None
    sends: Callable[[int], Awaitable[bool | None]] = alone
    waiting: Callable[[int], Mapping[Key, int]] = lambda _now_ns: {}
    _last_ns: int | None = field(default=None, init=False)

    async def restore(self, now_ns: int) -> None:
        """Read when the last report was sent; a monitor that never sent one starts counting now, and notes that."""
        known = self.outbox.notes().get(_NOTE)
        if known is None:
            await self._note(now_ns)
        else:
            self._last_ns = int(known)

    async def tick(self, now_ns: int) -> None:
        """Send a report if one is due."""
        if self._last_ns is not None and self._last_ns > now_ns + _LATE_NS:  # the clock was ahead, and was set back
            await self._note(now_ns)
        due_s = None if self._last_ns is None else self.daily.due_s(self._last_ns, now_ns)
        if due_s is None or (mine := await self.sends(due_s)) is None:
            return
        if mine:
            report = await self.report(self.daily.begin_s(due_s) * SECOND_NS, due_s * SECOND_NS, now_ns)
            await self.notifier.report(report, (_NOTE, str(now_ns)))
            self._last_ns = now_ns
        else:
            await self._note(now_ns)

    async def _note(self, now_ns: int) -> None:
        """Count from now on, after a restart too."""
        await self.outbox.put((), now_ns, {_NOTE: str(now_ns)})
        self._last_ns = now_ns

    async def report(self, day_ns: int, end_ns: int, now_ns: int) -> DailyReportText:
        """The report of a day, as far as it is kept, however late; statuses and alerts are those of now."""
        begin_ns = min(max(day_ns, self.kept_since(now_ns)), end_ns)
        sums, means = await asyncio.to_thread(read_courses, self.store, begin_ns, end_ns)
        statuses = {Key(s.service, s.environment, s.rubric): s for s in self.statuses(now_ns)}
        waiting = self.waiting(now_ns)
        known = {Key.of(each.service, each.environment, each.rubric) for each in sums}
        none = [_no_verdict(key) for key in waiting if key not in known and key in statuses]
        courses = sorted((_course(each, statuses, waiting) for each in (*sums, *none)), key=_worst_first)
        firing = [each for each in self.posted() if each.alert.stage is Stage.FIRING and not each.muted][:_MOST_FIRING]
        groups = await self.failures(end_ns - begin_ns, end_ns) if self.failures is not None else ()
        return DailyReportText(
            begin_ns=begin_ns, end_ns=end_ns, courses=tuple(courses[:MOST_COURSES]),
            more=max(0, len(courses) - MOST_COURSES), weakest=tuple(self._weakest(means)),
            agreements=tuple(AgreedOn(rubric=a.rubric, kappa=a.kappa, n=a.n) for a in self.agreements()),
            cost_usd=None if self.judged is None else _cost(self.judged, begin_ns, end_ns),
            unpriced=tuple(label(each, _WORDS) for each in sorted(self.unpriced())),
            failures=tuple(_failing(each) for each in groups[:MOST_FAILURES] if each.count),
            firing=tuple(_firing(each.condition, each.alert.labels) for each in firing),
            firing_nameless=tuple(_firing(each.condition, nameless(each.alert.labels)) for each in firing),
            share_of=self.share_of(),
            day_ns=day_ns if begin_ns - day_ns > _LATE_NS else None,
        )  # fmt: skip

    def _weakest(self, means: Iterable[MetricMean]) -> list[WeakMetric]:
        """The metrics furthest outside their acceptable band, as a share of its bound, the worst first."""
        found = []
        for estimate in means:
            bounds = self.watched.get(estimate.rubric, WatchedWindow()).acceptable.get(estimate.metric)
            if bounds is None or estimate.n < _LEAST_N:
                continue
            bound, higher_is_better = bounds
            mean = round(estimate.mean, 9)  # as everywhere a value meets a bound
            short = bound - mean if higher_is_better else mean - bound
            if short > 0:
                service, environment, rubric = Key.of(estimate.service, estimate.environment, estimate.rubric)
                weak = WeakMetric(
                    service=service, environment=environment, rubric=rubric, metric=estimate.metric,
                    mean=estimate.mean, n=estimate.n, acceptable=bound, higher_is_better=higher_is_better,
                )  # fmt: skip
                found.append((short / max(abs(bound), 1e-9), weak))
        return [weak for _, weak in sorted(found, key=lambda pair: -pair[0])[:MOST_WEAK]]


def _cost(judged: JudgeCacheTable, begin_ns: int, end_ns: int) -> float:
    """What judging cost in the hours of UTC that end within a day: each hour is in one report, and over by then."""
    begin_s, end_s = (ns // HOUR_NS * HOUR_NS // SECOND_NS for ns in (begin_ns, end_ns))
    return sum(usd for hour_s, usd in judged.spent_since(begin_s).items() if hour_s < end_s)


def _firing(condition: Condition, labels: Labels) -> str:
    return label(f"{condition.title} ({', '.join(value for _, value in labels) or 'the monitor'})", 200)


def _failing(group: FailureGroup) -> FailureLine:
    words = label(without_contents(group).words, _WORDS)
    hidden = label(without_contents(group, Rights.OWN).words, _WORDS)
    return FailureLine(
        group=group.group, rubric=group.rubric, metric=group.metric, words=words,
        count=group.count, before=group.before, examples=group.examples,
        nameless=None if hidden == words else hidden,
    )  # fmt: skip


def _no_verdict(key: Key) -> VerdictSums:
    return VerdictSums(
        service=key.service, environment=key.environment, rubric=key.rubric,
        passed=0, failed=0, incomplete=0, weight=0.0, failed_weight=0.0, squared_weight=0.0,
    )  # fmt: skip


def _course(sums: VerdictSums, statuses: Mapping[Key, ServiceStatus], waiting: Mapping[Key, int]) -> ServiceDay:
    key = Key.of(sums.service, sums.environment, sums.rubric)
    status = statuses.get(key)
    now = None if status is None else status.estimate
    estimate = pooled([sums], 1.0 if now is None else now.design_effect)
    return ServiceDay(
        service=label(key.service, 200), environment=label(key.environment, 200), rubric=key.rubric,
        status=Status.INSUFFICIENT_DATA if status is None else status.appraisal.status,
        passed=sums.passed, failed=sums.failed, incomplete=sums.incomplete,
        pass_ratio=estimate.pass_ratio if estimate else None, lower=estimate.lower if estimate else None,
        upper=estimate.upper if estimate else None,
        unanswered=sums.unanswered, unreached=sums.unreached, waiting=waiting.get(key, 0),
    )  # fmt: skip


def _worst_first(course: ServiceDay) -> tuple[int, float]:
    return WORST_FIRST.index(course.status), 2.0 if course.pass_ratio is None else course.pass_ratio
