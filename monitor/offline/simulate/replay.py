"""Replay: the monitor's own watch over verdicts of the past, in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sidejudge.monitor.alerting.build import windows_of
from sidejudge.monitor.alerting.details import Details, WatchedWindow, details
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import Incident, Incidents
from sidejudge.scoring.alerts.observed import Observed
from sidejudge.scoring.status.status import Status
from sidejudge.scoring.verdict.documents import VerdictDocument

from .cost import Costs, Judging


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
