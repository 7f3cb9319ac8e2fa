"""Replay: the monitor's own watch over verdicts of the past, in their order, and what judging them took."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sidejudge.monitor.alerting.build import windows_of
from sidejudge.monitor.alerting.details import Details, WatchedWindow, details
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import Incident, Incidents
from sidejudge.scoring.alerts.observed import Observed
from sidejudge.scoring.status.snapshots import JudgeSnapshot, Spending
from sidejudge.scoring.status.status import Status
from sidejudge.scoring.verdict.documents import VerdictDocument

HOUR_S = 3_600
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """US dollars as verdicts state them; ``judged`` of ``verdicts`` needed the judge and state its cost.

    ``paid_usd`` is for what was drawn then. ``whole_usd`` estimates, by inverse probability, what judging all of the
    traffic would have taken; ``at_rate_usd`` the same at a base rate of ``rate``, without what rules keep beyond it.
    ``dearest_hour_usd`` and ``dearest_day_usd`` (UTC) are of what was paid. Where no verdict states a cost all are
    ``None``: nothing is known of it.
    """

    verdicts: int
    judged: int
    models: tuple[str, ...]
    rate: float
    paid_usd: float | None
    whole_usd: float | None
    at_rate_usd: float | None
    dearest_hour_usd: float | None
    dearest_day_usd: float | None


@dataclass(slots=True, kw_only=True)
class Costs:
    """Adds up what verdicts cost, hour by hour. ``hour_usd`` and ``day_usd`` are the configured budgets."""

    rate: float
    hour_usd: float | None = None
    day_usd: float | None = None
    _verdicts: int = 0
    _costs: list[float] = field(default_factory=list)
    _whole: list[float] = field(default_factory=list)
    _hours: dict[int, float] = field(default_factory=dict)
    _models: dict[str, None] = field(default_factory=dict)

    def add(self, verdict: VerdictDocument, at_ns: int, *, counted: bool) -> None:
        """Take a verdict; one that is not ``counted`` (it came before the period) is only spent."""
        judge = verdict.get("judge") or {}
        usd = float(judge.get("cost_usd") or 0.0)
        hour = at_ns // 10**9 // HOUR_S
        self._hours[hour] = self._hours.get(hour, 0.0) + usd
        if not counted:
            return
        self._verdicts += 1
        if usd > 0:
            self._costs.append(usd)
            self._whole.append(usd / float(verdict["sampling_probability"]))
            self._models[str(judge.get("model") or "unknown")] = None

    def snapshot(self, now_ns: int) -> JudgeSnapshot:
        """The judge as a condition on its budget sees it; of its reach nothing is known, so nothing is wrong."""
        hour = now_ns // 10**9 // HOUR_S
        day = hour - hour % 24
        return JudgeSnapshot(
            name="", models=(), outage=None, shares={}, under_way=0, waiting=0,
            spending=(
                Spending(period="hour", spent_usd=self._hours.get(hour, 0.0), limit_usd=self.hour_usd),
                Spending(
                    period="day", spent_usd=sum(self._hours.get(each, 0.0) for each in range(day, hour + 1)),
                    limit_usd=self.day_usd,
                ),
            ),
        )  # fmt: skip

    def reported(self, begin_ns: int) -> Judging:
        """The total from ``begin_ns`` on."""
        known = bool(self._costs)
        whole = math.fsum(self._whole)
        first = begin_ns // 10**9 // HOUR_S
        hours = {hour: usd for hour, usd in self._hours.items() if hour >= first}
        days: dict[int, float] = {}
        for hour, usd in hours.items():
            days[hour // 24] = days.get(hour // 24, 0.0) + usd
        return Judging(
            verdicts=self._verdicts, judged=len(self._costs), models=tuple(self._models), rate=self.rate,
            paid_usd=math.fsum(self._costs) if known else None, whole_usd=whole if known else None,
            at_rate_usd=whole * self.rate if known else None,
            dearest_hour_usd=_largest(list(hours.values())) if known else None,
            dearest_day_usd=_largest(list(days.values())) if known else None,
        )  # fmt: skip


def _largest(values: Sequence[float]) -> float | None:
    return max(values, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedCourse:
    """How often each status was in force at one place, as shares of the ``looks`` since its first verdict."""

    key: Key
    verdicts: int
    looks: int
    shares: Mapping[Status, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The alerts that the past would have had, from ``begin_ns`` to ``end_ns``."""

    begin_ns: int
    end_ns: int
    incidents: Sequence[Incident]
    courses: Sequence[ReplayedCourse]
    judging: Judging


class Replay:
    """Plays verdicts under a declaration. Events are as in a monitor; none is delivered."""

    def __init__(self, declared: Declaration, watched: Mapping[str, WatchedWindow], costs: Costs) -> None:
        self._watched, self._costs = watched, costs
        self._windows = windows_of(declared)
        self._watch = Watch(declared, self._windows, watched)
        self._look_ns = declared.look_ns
        self._acceptable = {name: each.on_average for name, each in watched.items()}
        self._details: dict[Key, tuple[int, Details]] = {}
        self._grown: set[Key] = set()
        self._incidents = Incidents()
        self._looks: dict[Key, dict[Status, int]] = {}
        self._verdicts: dict[Key, int] = {}

    @staticmethod
    def warm_up_ns(declared: Declaration) -> int:
        """How long before the period verdicts are needed: a window, and the looks that a status takes."""
        reach_ns = declared.longest_ns if declared.policy.mode == "adaptive" else declared.window_ns
        return reach_ns + declared.rule.looks * declared.look_ns

    def play(
        self,
        past: Iterable[tuple[Key, Observation, VerdictDocument]],
        begin_ns: int,
        end_ns: int,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Replayed:
        """Look from ``begin_ns`` less the warm-up until ``end_ns``; ``progress`` gets the looks that are done.

        ``past`` is in order of time; what comes out of it is taken to have come when the one before it did.
        """
        now_ns = begin_ns - self.warm_up_ns(self._watch.declared)
        done = 0
        for key, seen, verdict in past:
            while now_ns + self._look_ns <= min(seen.at_ns, end_ns):
                now_ns += self._look_ns
                self._look(now_ns, counted=now_ns > begin_ns)
                progress(done := done + 1)
            if seen.at_ns > end_ns:
                break
            self._take(key, seen, verdict, counted=seen.at_ns > begin_ns)
        while now_ns + self._look_ns <= end_ns:
            now_ns += self._look_ns
            self._look(now_ns, counted=now_ns > begin_ns)
            progress(done := done + 1)
        reported = [each for each in self._incidents.reported() if each.ended_ns is None or each.ended_ns > begin_ns]
        return Replayed(
            begin_ns=begin_ns, end_ns=end_ns, incidents=reported, courses=list(self._courses()),
            judging=self._costs.reported(begin_ns),
        )  # fmt: skip

    def _take(self, key: Key, seen: Observation, verdict: VerdictDocument, *, counted: bool) -> None:
        self._windows.add(key, seen)
        self._watch.learn(key, seen)
        self._costs.add(verdict, seen.at_ns, counted=counted)
        self._grown.add(key)
        self._verdicts[key] = self._verdicts.get(key, 0) + counted

    def _look(self, now_ns: int, *, counted: bool) -> None:
        found = {key: self._details_of(key, now_ns) for key in self._windows.keys()}  # noqa: SIM118 - not a dict
        self._grown.clear()
        facts = Observed(now_ns=now_ns, judge=self._costs.snapshot(now_ns))
        for event in self._watch.look(facts, found, self._acceptable):
            self._incidents.add(event)
        if counted:
            for key, status in self._watch.statuses():
                looks = self._looks.setdefault(key, {})
                looks[status] = looks.get(status, 0) + 1

    def _details_of(self, key: Key, now_ns: int) -> Details:
        """Computed anew only where the window has changed: by what came, or by what has left it."""
        members = self._windows.members(key, now_ns)
        known = self._details.get(key)
        if known is None or key in self._grown or known[0] != len(members):
            known = self._details[key] = (
                len(members),
                details(members, self._watched.get(key.rubric, WatchedWindow()), self._windows.design.get(key, 1.0)),
            )
        return known[1]

    def _courses(self) -> Iterable[ReplayedCourse]:
        for key, looks in sorted(self._looks.items()):
            many = sum(looks.values())
            shares = {status: looks.get(status, 0) / many for status in Status}
            yield ReplayedCourse(key=key, verdicts=self._verdicts.get(key, 0), looks=many, shares=shares)
