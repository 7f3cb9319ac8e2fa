"""Watch: the status of every service and the alerts, from verdicts as they come and looks as they fall due.

It holds the state between looks and no clock: the caller passes the time. Nothing here waits or writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

from sidejudge.monitor.config.units import Duration
from sidejudge.scoring.alerts.condition import (
    PLACE,
    VIOLATION,
    AlertFinding,
    Condition,
    Labels,
    Observed,
    WindowFacts,
)
from sidejudge.scoring.alerts.conditions import TROUBLE, conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import AlertEvent, fingerprint
from sidejudge.scoring.alerts.lifecycle import Alert, AlertTransition, Posted, Stage, advance
from sidejudge.scoring.alerts.quality import FORGOTTEN_NS, place_of
from sidejudge.scoring.lexical.shown_text import label_of
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.statistics.arrivals import LEARNED_NS
from sidejudge.scoring.statistics.ppi import LabelSums
from sidejudge.scoring.statistics.sequence import ConfidenceSequence
from sidejudge.scoring.status.hysteresis import ALARMS, HysteresisState, Look, contradicted, step
from sidejudge.scoring.status.metric_status import MetricStatus
from sidejudge.scoring.status.service_status import (
    RELEASED,
    ServiceStatus,
    Silence,
    SilenceCause,
    SliceStatus,
    StatusChange,
)
from sidejudge.scoring.status.status import (
    NONE_BEHIND,
    WAITS,
    WORST_FIRST,
    Appraisal,
    Behind,
    Drops,
    Policy,
    Status,
    appraise,
    both_ways,
    left_open,
    lies_below,
    may_turn,
    mostly_waits,
    ruled_out,
)
from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS

from .details import LIMITED_SHARE, Details, WatchedWindow, keeps_to_scenario, limited_shares
from .metric_watch import NO_ESTIMATES, Estimates, MetricWatch
from .observation import First, Key, Observation, SliceFirst
from .sliced import MOST_SLICES, SlicePace
from .tracked import ChartPace, Tracked, change_of

_MAX_KEYS = 1_000
PASSING_NS = 10 * MINUTE_NS
"""A recovery passes through lesser states: an alert that a more severe one muted is reported if it lasts longer than
this, and the figures of that moment show it.
"""
READ_AGAIN_NS: Final = 3 * MINUTE_NS
"""After a start what waited before it counts for so long: it is read again, and the judge is asked again."""
_STATE, _SLICES, _ALERT, _JUDGES, _WAITED = "state/", "slices/", "alert/", "judges", "waited"
_BREACHED_LAST: Final = (False, None, True)
_FIGURES: Final = (
    "estimate", "incomplete", "judge_failed", "forced", "composite_mean", "metric_means", "missing", "cascade",
    "reach_ns",
)  # fmt: skip
"""What a status states of its window."""
WATCHED_BY_DEFAULT: Final[Mapping[str, WatchedWindow]] = {
    name: WatchedWindow.of(rubric) for name, rubric in RUBRICS.items()
}


class KeyWindows(Protocol):
    """Windows by key: those of this process, or of a fleet."""

    @property
    def design(self) -> dict[Key, float]: ...
    @property
    def usual(self) -> dict[Key, float]: ...
    def know(self, key: Key, /) -> None: ...
    def keys(self) -> list[Key]: ...
    def pace(self, key: Key, /) -> float: ...
    def status(
        self, key: Key, now_ns: int, policy: Policy, sequence: ConfidenceSequence | None = None,
        drops: Drops | None = None, *, since_ns: int | None = None,
    ) -> ServiceStatus: ...  # fmt: skip


class StatusSource(Protocol):
    """The statuses and alerts of this moment, and what decides about them: a watch, or a fleet's board."""

    @property
    def declared(self) -> Declaration: ...
    @property
    def conditions(self) -> Sequence[Condition]: ...
    def service_statuses(self, now_ns: int, /) -> list[ServiceStatus]: ...
    def each_service_status(self, now_ns: int, /) -> Iterator[ServiceStatus]: ...
    def metric_statuses(self) -> Iterator[MetricStatus]: ...
    def posted(self) -> Iterator[Posted]: ...


class Watch:
    """Statuses and alerts under one declaration, over these windows.

    ``watched``: what is watched of each rubric; those that check a scenario have an early warning of drift.
    ``max_keys``: beyond so many services under rubrics a status is that of the moment. ``among``: the conditions that
    are watched, all by default. ``metrics`` watches the limits of continuous metrics; None: there are none.
    ``judges`` are those of each rubric: others begin with nothing against them.
    ``known_until``: up to when all verdicts are known at a time, both in ns; silence is measured up to there.
    """

    def __init__(
        self, declared: Declaration, windows: KeyWindows,
        watched: Mapping[str, WatchedWindow] = WATCHED_BY_DEFAULT, *, max_keys: int = _MAX_KEYS,
        among: Sequence[Condition] | None = None, metrics: MetricWatch | None = None,
        judges: Mapping[str, Sequence[str]] = MappingProxyType({}),
        known_until: Callable[[int], int] = lambda now_ns: now_ns,
    ) -> None:  # fmt: skip
        self.declared, self._plain, self._max_keys = declared, declared, max_keys
        self.metrics = metrics or MetricWatch(declared, windows=None, figures=None)
        self.metrics.budgeted_with, self.metrics.version = lambda: self._series, self._version
        self.metrics.known_until = known_until
        self.watched = watched
        self.conditions = conditions(declared) if among is None else tuple(among)
        self.alerts: dict[tuple[str, Labels], Alert] = {}
        self.cursor_ns = 0
        self._windows, self._known_until = windows, known_until
        self.why_silent: Callable[[str, int], SilenceCause] = lambda _service, _since_ns: SilenceCause.UNKNOWN
        """Why a service has had no verdict since a time, in ns."""
        self.awaited: Callable[[Key, int], float] = lambda _key, _now_ns: 0.0
        """How many traces stand for those of a key that wait for an answer at a time, in ns."""
        self.behind: Callable[[Key, int, int], Behind] = lambda _key, _now_ns, _since_ns: NONE_BEHIND
        """Those behind a slow judge at a time, of what came since another, in ns."""
        self.waited: dict[Key, float] = {}
        """How many traces waited at the last look, also before a restart, or did behind a slow judge."""
        self._waited_until_ns: int | None = None
        self._by_id = {condition.id: condition for condition in self.conditions}
        self._tracked: dict[Key, Tracked] = {}
        self._unheard: dict[tuple[str, Labels], int] = {}  # and when each was muted last
        self._kept_slices: dict[Key, str] = {}
        self._judges = judges
        self.begun_ns: dict[str, int] = {}
        """By rubric, from when on its verdicts are by the judges that it has now, where it had others before."""

    def take_judges(self, judges: Mapping[str, Sequence[str]]) -> list[str]:
        """Watch verdicts by these judges from now on; returns the rubrics that had others.

        What those have shown is held against nothing that comes: their pass ratios are not comparable.
        """
        before, self._judges = self._judges, judges
        moved = [name for name, each in judges.items() if name in before and [*each] != [*before[name]]]
        self._begin_anew(moved)
        return moved

    def _begin_anew(self, rubrics: Collection[str]) -> None:
        self.begun_ns |= dict.fromkeys(rubrics, self.cursor_ns + 1)
        for key in [key for key in self._tracked if key.rubric in rubrics]:
            self._forget(key)
        self.metrics.begin_anew(rubrics)

    def take_labels(self, labels: Mapping[str, LabelSums]) -> None:
        """Hold verdicts from now on against thresholds that labels move to the judge's scale (``alerts.corrected``)."""
        declared = self._plain.on_labels(labels)
        if declared.thresholds == self.declared.thresholds:
            return
        before, self.declared = self.declared, declared
        for key, tracked in self._tracked.items():
            if tracked.sequence is not None and before.policy_of(key.rubric) != declared.policy_of(key.rubric):
                known = tracked.sequence.to_json()
                tracked.sequence = declared.new_sequence(key.rubric)
                tracked.sequence.restore(known)
                tracked.drop = declared.new_drop_level(key.rubric)

    def learn(self, key: Key, seen: Observation) -> None:
        """Take in a verdict for the methods that follow verdicts one by one; those before ``cursor_ns`` are known."""
        self.metrics.learn(key, seen)
        if seen.revision != 1 or seen.passed is None:
            return
        self.cursor_ns = max(self.cursor_ns, seen.at_ns)
        tracked = self._track(key)
        if tracked is None:
            return
        kept = keeps_to_scenario(seen.metrics.items(), signs=True) if self._checks_scenario(key) else None
        tracked.learn(
            self.declared, self._pace(key), passed=seen.passed, weight=seen.weight, at_ns=seen.at_ns,
            cluster=seen.cluster, kept=kept,
        )  # fmt: skip
        tracked.sliced.add(seen.slices, passed=seen.passed, weight=seen.weight)
        if self.declared.policy.mode == "adaptive":
            tracked.count(limited_shares(seen, self._watched_of(key)), seen.at_ns)
        self._windows.design[key] = tracked.effect

    def learn_slices(self, key: Key, firsts: Mapping[SliceFirst, int], begin_ns: int) -> None:
        """Take in the slices that verdicts are in, which ``learn_together`` takes in, and shares with a limit."""
        if (tracked := self._track(key)) is not None:
            shares = {first: n for first, n in firsts.items() if first.by == LIMITED_SHARE}
            tracked.sliced.add_together({first: n for first, n in firsts.items() if first not in shares})
            if self.declared.policy.mode == "adaptive":
                tracked.count(shares, begin_ns)

    def _follow_shares(self) -> None:
        """Take what came since the last look into the shares with a limit, which have a budget of false alarms."""
        of = (each.shares.keys() | {first.value for first in each.counted} for each in self._tracked.values())
        series = int(1 << max(0, sum(map(len, of)) - 1).bit_length())
        for key, tracked in self._tracked.items():
            if tracked.counted:
                tracked.follow_shares(self.declared, self._pace(key)._replace(series=series))

    def learn_together(self, key: Key, firsts: Mapping[First, int], begin_ns: int, end_ns: int) -> None:
        """Take in verdicts of this stretch of time, in an order that nobody knows, each as it was first."""
        self.cursor_ns = max(self.cursor_ns, end_ns)
        tracked = self._track(key)
        if tracked is None or not firsts:
            return
        checked = self._checks_scenario(key)
        tracked.learn_together(self.declared, self._pace(key), firsts, begin_ns, end_ns, checked=checked)
        self._windows.design[key] = tracked.effect

    def service_statuses(self, now_ns: int) -> list[ServiceStatus]:
        """The status of every key: the numbers of this moment, the status in force since the last look."""
        return list(self.each_service_status(now_ns))

    def each_service_status(self, now_ns: int) -> Iterator[ServiceStatus]:
        """The same one by one, for callers that must pause between them."""
        for key in self._windows.keys():  # noqa: SIM118 - not a dict
            yield self._in_force(key, now_ns, self._of_the_moment(key, now_ns))

    def metric_statuses(self) -> Iterator[MetricStatus]:
        """The statuses of continuous metrics under their limits, of the last look."""
        return self.metrics.statuses()

    def statuses(self) -> Iterator[tuple[Key, Status]]:
        """The status in force of every key since the last look."""
        for key, tracked in self._tracked.items():
            if tracked.held is not None:
                yield key, tracked.held.status

    def look(
        self, facts: Observed, details: Mapping[Key, Details],
        acceptable: Mapping[str, Mapping[str, tuple[float, bool]]], metrics: Estimates = NO_ESTIMATES,
    ) -> list[AlertEvent]:  # fmt: skip
        """One look at ``facts.now_ns``: statuses and alerts change, and their events are returned.

        ``details`` holds what each window's verdicts show beside the pass ratio, ``acceptable`` the bounds of metrics
        by rubric, ``metrics`` what ``self.metrics.measured`` found.
        """
        keys = self._windows.keys()
        for gone in self._tracked.keys() - set(keys):
            del self._tracked[gone]
            self._kept_slices.pop(gone, None)
        self._follow_shares()
        if self.cursor_ns > facts.now_ns + HOUR_NS:  # the clock was ahead, and was set back
            self.cursor_ns = facts.now_ns
        again_ns = facts.now_ns + READ_AGAIN_NS
        self._waited_until_ns = min(self._waited_until_ns or again_ns, again_ns)  # the clock may have been set back
        if facts.now_ns >= self._waited_until_ns:
            waits = ((key, self.awaited(key, facts.now_ns) + self.behind(key, facts.now_ns, 0).traces) for key in keys)
            self.waited = {key: weight for key, weight in waits if weight}
        windows, adaptive = [], self.declared.policy.mode == "adaptive"
        waiting: dict[Key, float] = {}
        slices = sum(tracked.sliced.series for tracked in self._tracked.values())  # added up once, not for each key
        for key in keys:
            if (tracked := self._tracked.get(key)) is not None:
                tracked.arrivals.no_later(facts.now_ns)
                slices -= tracked.sliced.series
            moment = self._step(key, facts.now_ns)
            if (tracked := self._tracked.get(key)) is not None:
                own = tracked.sliced.series
                pace, room = self._slice_pace(key, slices + own), MOST_SLICES - slices - own
                tracked.sliced.look(self.declared, pace, facts.now_ns, room=room)
                slices += tracked.sliced.series
            status = self._in_force(key, facts.now_ns, moment)
            silence, waiting[key] = status.silence, status.waiting
            if tracked is not None:
                tracked.cause = silence.cause if silence is not None else None
            seen = Details() if silence is not None else details.get(key, Details())
            windows.append(
                WindowFacts(
                    status=status, beyond=tracked.beyond if tracked is not None and adaptive else None,
                    blocked=seen.blocked, means=seen.means, acceptable=acceptable.get(key.rubric, {}),
                    violating=seen.violating, keeping=seen.keeping, judge_failed=seen.judge_failed,
                )
            )  # fmt: skip
        waiting |= {key: self.awaited(key, facts.now_ns) for _, key in metrics if key not in waiting}
        limited = self.metrics.look(metrics, facts.now_ns, waiting)
        return list(self._advance(replace(facts, windows=windows, metrics=limited), self.conditions))

    def look_at_trouble(self, facts: Observed) -> list[AlertEvent]:
        """One look at the monitor's own trouble alone: statuses and all other alerts stay as they are."""
        return list(self._advance(facts, [each for each in self.conditions if each.id == TROUBLE]))

    def is_muted(self, alert: Alert) -> bool:
        """Whether a more severe alert about the same thing fires."""
        condition = self._by_id[alert.condition]
        while condition.muted_by is not None:
            condition = self._by_id[condition.muted_by]
            labels = tuple(each for each in alert.labels if each[0] in condition.scope)
            above = self.alerts.get((condition.id, labels))
            if above is not None and above.stage is Stage.FIRING:
                return True
        return False

    def posted(self) -> Iterator[Posted]:
        """The alerts of this moment, in no order."""
        for alert in self.alerts.values():
            unsent = (alert.condition, alert.labels) in self._unheard
            muted = unsent or self.is_muted(alert)
            yield Posted(condition=self._by_id[alert.condition], alert=alert, muted=muted, unsent=unsent)

    def stated_alerts(self) -> Iterator[tuple[tuple[str, Labels], dict[str, object]]]:
        """The alerts in their JSON form."""
        for place, alert in self.alerts.items():
            yield place, {**alert.to_json(), "unheard": place in self._unheard}

    def to_memory(self) -> dict[str, str]:
        """The state that a restart needs, as JSON by name."""
        self._follow_shares()
        kept = {_STATE + json.dumps(key): json.dumps(tracked.to_json()) for key, tracked in self._tracked.items()}
        for key, tracked in self._tracked.items():
            if tracked.sliced.series and (tracked.sliced.is_changed or key not in self._kept_slices):
                self._kept_slices[key] = json.dumps(tracked.sliced.to_json())
                tracked.sliced.is_changed = False
        kept |= {_SLICES + json.dumps(key): stated for key, stated in self._kept_slices.items()}
        kept |= {_ALERT + fingerprint(*place): json.dumps(stated) for place, stated in self.stated_alerts()}
        judges = {name: [[*each], self.begun_ns.get(name, 0)] for name, each in self._judges.items()}
        waited = json.dumps([[*each] for each in self.waited.items()])
        return {
            **kept, **self.metrics.to_memory(), "cursor": str(self.cursor_ns), _JUDGES: json.dumps(judges),
            _WAITED: waited,
        }  # fmt: skip

    def restore(self, kept: Mapping[str, str], rubrics: Collection[str] | None = None) -> None:
        """Go on from what ``to_memory`` returned. What this configuration does not watch is dropped.

        ``rubrics``: those that there are; None: any. Of one that is gone nothing is known any more.
        """
        self.cursor_ns = int(kept.get("cursor", "0"))
        self.waited = {Key(*key): float(weight) for key, weight in json.loads(kept.get(_WAITED, "[]"))}
        self._waited_until_ns = None
        self.metrics.restore(kept)
        for name, record in kept.items():
            if name.startswith((_STATE, _SLICES)):
                key = Key(*json.loads(name.removeprefix(_STATE).removeprefix(_SLICES)))
                tracked = self._track(key) if rubrics is None or key.rubric in rubrics else None
                if tracked is None:
                    continue
                if name.startswith(_STATE):
                    self._go_on(key, tracked, json.loads(record))
                elif self.declared.slices and self._is_of_now(key, kept):
                    tracked.sliced.restore(json.loads(record))
            elif name.startswith(_ALERT):
                known = json.loads(record)
                alert = Alert.of_json(known)
                if alert.condition in self._by_id:
                    self.alerts[alert.condition, alert.labels] = alert
                    if known["unheard"]:
                        self._unheard[alert.condition, alert.labels] = self.cursor_ns
        if self.declared.policy.mode == "adaptive":
            self._go_on_with_shares({place_of(*key): each for key, each in self._tracked.items()
                                     if self._is_of_now(key, kept)})  # fmt: skip
        before = {name: each for name, each in json.loads(kept.get(_JUDGES, "{}")).items() if name in self._judges}
        self.begun_ns = {name: begun_ns for name, (_, begun_ns) in before.items() if begun_ns}
        self._begin_anew([name for name, (names, _) in before.items() if names != [*self._judges[name]]])

    def _go_on_with_shares(self, tracked: Mapping[Labels, Tracked]) -> None:
        """Let alerts on a share that no chart has followed, as in an earlier version, last until a chart ends them."""
        for (condition, labels), alert in self.alerts.items():
            known = tracked.get(labels[: len(PLACE)])
            name = {"blocker_rate": dict(labels).get("metric"), "workflow_violation_rate": VIOLATION}.get(condition)
            found = alert.finding
            if alert.stage is Stage.PENDING or name is None or known is None or name in known.shares:
                continue
            known.go_on_beyond(name, found.value or found.limit or 0.0, found.changed_ns or alert.since_ns)

    def _go_on(self, key: Key, tracked: Tracked, record: JsonRecord) -> None:
        tracked.restore(record)
        self._windows.design[key] = tracked.effect
        last_ns = tracked.arrivals.last_ns
        if last_ns is not None and self.cursor_ns - last_ns < FORGOTTEN_NS:
            self._windows.know(key)  # a restart must not make anybody forget who is silent

    def _is_of_now(self, key: Key, kept: Mapping[str, str]) -> bool:
        """Whether what is kept of a key is of the rubric's version in force."""
        version = self._version(key.rubric)
        return bool(json.loads(kept.get(_STATE + json.dumps(key), "{}")).get("version", version) == version)

    def show(self, alerts: Iterable[JsonRecord]) -> None:
        """Show alerts that another process watches, in their JSON form."""
        known = [(Alert.of_json(each), each.get("unheard", False)) for each in alerts]
        self.alerts = {(each.condition, each.labels): each for each, _ in known if each.condition in self._by_id}
        self._unheard = {(each.condition, each.labels): self.cursor_ns for each, unheard in known if unheard}

    def _track(self, key: Key) -> Tracked | None:
        tracked, version = self._tracked.get(key), self._version(key.rubric)
        if tracked is None and len(self._tracked) < self._max_keys:
            tracked = self._tracked[key] = Tracked(self.declared, key.rubric, version)
        elif tracked is not None and tracked.version != version:
            tracked = self._forget(key)
        return tracked

    def _forget(self, key: Key) -> Tracked:
        """Begin anew with a key, of which only when its verdicts come is still known."""
        found = self._tracked[key] = self._tracked[key].anew(self.declared, self._version(key.rubric))
        self._kept_slices.pop(key, None)
        self._windows.design.pop(key, None)
        return found

    def _version(self, rubric: str) -> str:
        watched = self.watched.get(rubric)
        return "" if watched is None else watched.version

    def is_in_force(self, rubric: str, version: object) -> bool:
        """Whether verdicts by this version of a rubric are watched; those by another are of another kind."""
        watched = self.watched.get(rubric)
        return watched is not None and watched.version in ("", version)

    def _of_the_moment(self, key: Key, now_ns: int) -> ServiceStatus:
        tracked = self._tracked.get(key)
        policy = self.declared.policy_of(key.rubric)
        sequence = tracked.sequence if tracked is not None else None
        found = self._windows.status(key, now_ns, policy, sequence, self._drops(key, now_ns))
        waiting = found.waiting + self._still_awaited(key, now_ns)
        if tracked is None:
            return replace(found, waiting=waiting)
        silence = self._silence(key, now_ns, incomplete=found.incomplete)
        appraisal = found.appraisal if silence is None else Appraisal(Status.NO_DATA, silence.stated(now_ns))
        last_ns = tracked.arrivals.last_ns
        return replace(found, waiting=waiting, last_ns=last_ns, silence=silence, appraisal=appraisal)

    def _drops(self, key: Key, now_ns: int) -> Drops | None:
        if (tracked := self._tracked.get(key)) is None:
            return None
        drops, fallen = tracked.drops(self._series), self._since_fall(key, now_ns)
        return drops if fallen is None else replace(drops, since=fallen.estimate)

    def _still_awaited(self, key: Key, now_ns: int) -> float:
        """How many traces stand for those of a key that wait for an answer, also while a start reads them again."""
        waiting = self.awaited(key, now_ns)
        if self._waited_until_ns is None or now_ns < self._waited_until_ns:
            waiting = max(waiting, self.waited.get(key, 0.0))
        return waiting

    def _since_fall(self, key: Key, now_ns: int) -> ServiceStatus | None:
        """The verdicts since the pass ratio fell; None where it has not, and outside mode ``adaptive``."""
        tracked, policy = self._tracked.get(key), self.declared.policy_of(key.rubric)
        if tracked is None or tracked.fell_ns is None or policy.mode != "adaptive":
            return None
        return self._windows.status(key, now_ns, policy, since_ns=tracked.fell_ns)

    def _silence(self, key: Key, now_ns: int, *, incomplete: int = 0) -> Silence | None:
        """The silence of a key where it is implausible, or longer than any that is learned as usual."""
        tracked = self._tracked.get(key)
        last_ns = tracked.arrivals.last_ns if tracked is not None else None
        if tracked is None or last_ns is None:
            return None
        bound_ns = max(self.declared.longest_ns, LEARNED_NS)
        known_ns = self._known_until(now_ns)
        if known_ns - last_ns < bound_ns and not tracked.arrivals.is_silent(known_ns, self.declared.window_ns):
            return None
        cause = SilenceCause.INCOMPLETE if incomplete else self.why_silent(key.service, last_ns)
        if cause is SilenceCause.UNKNOWN and tracked.cause is not None:
            cause = tracked.cause  # as it was before a restart
        return Silence(since_ns=last_ns, cause=cause)

    @property
    def _series(self) -> int:
        """The number of series that share the false alarms, as a power of two, so that few new services move limits."""
        return int(1 << max(0, len(self._tracked) + self.metrics.series - 1).bit_length())

    def _slice_pace(self, key: Key, slices: int) -> SlicePace:
        series = int(1 << max(0, slices - 1).bit_length())
        return SlicePace(self._windows.pace(key), series, self._windows.design.get(key, 1.0))

    def _pace(self, key: Key) -> ChartPace:
        return ChartPace(self._windows.pace(key) / self._windows.design.get(key, 1.0), self._series)

    def _step(self, key: Key, now_ns: int) -> ServiceStatus:
        """Decide the status in force from now on; returns the numbers of this moment."""
        tracked = self._track(key)
        if tracked is None:
            return self._of_the_moment(key, now_ns)
        rule, window_ns = self.declared.rule, self.declared.window_ns
        self._windows.usual[key] = tracked.arrivals.least(now_ns - window_ns, now_ns)
        plain = self._of_the_moment(key, now_ns)
        raised, better = self.declared.policy_of(key.rubric).raised(rule.recovery_margin), plain.appraisal.status
        if plain.silence is None:
            better = appraise(
                plain.estimate, raised, tracked.sequence, self._drops(key, now_ns), incomplete=plain.incomplete,
                judge_failed=plain.judge_failed,
            ).status  # fmt: skip
        adaptive = self.declared.policy.mode == "adaptive"
        if adaptive:
            # The detectors forget a drop that the window still shows: nothing is better while its ratio says no. Its
            # upper bound would rise where the window empties.
            point = replace(raised, mode="point")
            better = min(better, appraise(plain.estimate, point).status, key=WORST_FIRST.index)
        look, mildest = _look_at(plain, better), self._mildest(key, plain, now_ns)
        if mildest is not None:
            if mildest not in ALARMS or look.status not in ALARMS:
                return plain
            mildest = max(mildest, look.status, key=WORST_FIRST.index)
            look = replace(look, status=mildest, with_margin=Status.CRITICAL, ruled_out=None)
        tracked.held = step(tracked.held, look, now_ns, rule)
        return plain

    def _in_force(self, key: Key, now_ns: int, moment: ServiceStatus) -> ServiceStatus:
        tracked = self._tracked.get(key)
        if tracked is None:
            return moment
        pace = self._pace(key)
        most = mostly_waits(moment.estimate, moment.waiting)
        drift, slices = moment.drift, tracked.sliced.statuses
        if self._checks_scenario(key):
            drift = change_of(tracked.drift, tracked.drift_chart(self.declared, pace))
            drift = self._as_alerted(key, drift, "scenario_drift") if most else drift
        current = replace(
            moment, change=self._change(key, tracked, moment, now_ns), drift=drift,
            sequence_upper=None if tracked.sequence is None else tracked.sequence.upper,
            slices=tuple(self._slice_as_alerted(key, each) for each in slices) if most else slices,
        )  # fmt: skip
        held, mildest = tracked.held, self._mildest(key, moment, now_ns)
        if (self.declared.policy.mode == "point" and mildest is None) or moment.silence is not None:
            same = held is not None and held.status is moment.appraisal.status
            return replace(current, since_ns=held.since_ns if same and held else None)
        if held is None and moment.appraisal.status is Status.INSUFFICIENT_DATA:
            return current  # how much is missing is known without a look
        if held is None:
            so_far = f"decided within {Duration(self.declared.look_ns)}; so far {moment.appraisal.reason}"
            if mildest is not None:
                so_far = moment.appraisal.reason + WAITS
            return replace(current, appraisal=Appraisal(Status.INSUFFICIENT_DATA, so_far))
        if (instead := _instead(held.status, moment, mildest, self.behind(key, now_ns, 0))) is not None:
            found = replace(current, appraisal=_stated(replace(held, status=instead), moment, self.declared))
        else:
            found = replace(current, appraisal=_stated(held, moment, self.declared), since_ns=held.since_ns)
        if mildest is not None:
            found = replace(found, appraisal=replace(found.appraisal, reason=found.appraisal.reason + WAITS))
        return self._shown(key, found, now_ns)

    def _mildest(self, key: Key, found: ServiceStatus, now_ns: int) -> Status | None:
        """The status if all traces that wait for an answer, or got none, pass; None where it does not depend on them.

        An alarm on a fall rests on the verdicts since, which are few beside those of the window; what got no answer
        before the fall, or waits since before behind a slow judge, does not bear on it.
        """
        limits, level = found.thresholds, found.appraisal.status
        if found.silence is not None:
            return None
        behind = self.behind(key, now_ns, 0)
        reach = left_open(found.estimate, found.waiting, limits.warning, limits.critical, behind=behind)
        limit = limits.critical if level is Status.CRITICAL else limits.warning
        fallen = self._since_fall(key, now_ns) if level in ALARMS else None
        since, waiting = found.estimate, found.waiting
        if fallen is not None and fallen.estimate is not None:
            since, waiting = fallen.estimate, fallen.waiting + self._still_awaited(key, now_ns)
            behind = self.behind(key, now_ns, self._tracked[key].fell_ns or 0)
            if reach is None:
                reach = left_open(since, waiting, limit, behind=behind)
            elif both_ways(since.pass_ratio, since.weight_sum, waiting, behind)[1] < limits.warning:
                reach = left_open(since, waiting, limits.critical, behind=behind)
        if reach is None and since is not None and level in ALARMS and round(since.pass_ratio, 9) >= limit:
            # The evidence is older than what is shown, which lies above; its lower end is what the alarm rests on.
            reach = left_open(replace(since, pass_ratio=since.lower), waiting, limit, behind=behind)
        if reach is None:
            return None
        return Status.HEALTHY if reach[1] >= limits.warning else Status.WARNING

    def _fires(self, condition: str, labels: Labels) -> Alert | None:
        alert = self.alerts.get((condition, labels))
        return alert if alert is not None and alert.stage is not Stage.PENDING else None

    def _change(self, key: Key, tracked: Tracked, moment: ServiceStatus, now_ns: int) -> StatusChange | None:
        """The change detector; where verdicts since the change, and all that waits, may turn it, as its alert is."""
        change = tracked.change(self.declared, self._pace(key))
        if change is None:
            return change
        since_ns = change.since_ns if change.alarmed else None
        behind = self.behind(key, now_ns, since_ns or 0)
        if not moment.waiting and not behind.traces:
            return change
        since = self._windows.status(key, now_ns, self.declared.policy_of(key.rubric), since_ns=since_ns)
        waiting = since.waiting + self._still_awaited(key, now_ns)
        turns = may_turn(since.estimate, waiting, change.good, below=change.alarmed, behind=behind)
        return self._as_alerted(key, change, "pass_rate_change") if turns else change

    def _as_alerted(self, key: Key, change: StatusChange, condition: str) -> StatusChange:
        """A change detector that what waits leaves open: alarmed where, and since when, its alert is."""
        alert = self._fires(condition, place_of(*key))
        since_ns = change.since_ns
        if alert is not None and since_ns is None:
            since_ns = alert.finding.changed_ns or alert.since_ns
        return replace(change, alarmed=alert is not None, since_ns=since_ns)

    def _slice_as_alerted(self, key: Key, found: SliceStatus) -> SliceStatus:
        """The same of a part of the traffic."""
        labels = (*place_of(*key), ("slice", found.by), ("value", label_of(found.value)))
        condition = "version_worse" if found.by in RELEASED else "slice_worse"
        return replace(found, worse=self._fires(condition, labels) is not None)

    def _shown(self, key: Key, found: ServiceStatus, now_ns: int) -> ServiceStatus:
        """An alarm with the verdicts since the pass ratio fell, which raised it.

        The whole window also holds earlier passes and would look healthy.
        """
        level = found.appraisal.status
        fallen = self._since_fall(key, now_ns) if level in ALARMS else None
        if fallen is None or fallen.estimate is None:
            return found
        if ruled_out(fallen.estimate, self.declared.policy_of(key.rubric).thresholds) in {Status.WARNING, level}:
            return found
        return replace(found, **{name: getattr(fallen, name) for name in _FIGURES})

    def _checks_scenario(self, key: Key) -> bool:
        return self._watched_of(key).workflow

    def _watched_of(self, key: Key) -> WatchedWindow:
        return self.watched.get(key.rubric, WatchedWindow())

    def _advance(self, facts: Observed, among: Iterable[Condition]) -> Iterator[AlertEvent]:
        turns: dict[tuple[str, Labels], tuple[Alert, AlertTransition]] = {}
        for condition in among:
            # Of several findings about one thing, as by two limits that concern one service, the worst counts.
            least_bad = sorted(condition.find(facts), key=lambda finding: _BREACHED_LAST.index(finding.breached))
            found = {finding.labels: finding for finding in least_bad}
            known = [labels for name, labels in self.alerts if name == condition.id]
            for labels in dict.fromkeys((*found, *known)):
                place = (condition.id, labels)
                before = self.alerts.pop(place, None)
                finding = found.get(labels)
                after, turn = advance(before, finding, facts.now_ns, condition)
                if after is not None:
                    self.alerts[place] = after
                if turn is not None and (after or before) is not None:
                    turns[place] = (_last(after, before, finding), turn)
        yield from self._reported(turns, facts.now_ns)

    def _reported(
        self, turns: Mapping[tuple[str, Labels], tuple[Alert, AlertTransition]], now_ns: int
    ) -> Iterator[AlertEvent]:
        """Events, the most severe first. What was muted is reported after ``PASSING_NS``, where figures show it."""
        self._unheard = {
            place: min(at_ns, now_ns)  # the clock may have been set back
            for place, at_ns in self._unheard.items()
            if place in self.alerts or place in turns
        }
        for place in sorted(self._unheard.keys() - turns.keys()):
            alert = self.alerts[place]
            if self.is_muted(alert):
                self._unheard[place] = now_ns
            elif (
                alert.stage is Stage.FIRING and now_ns - self._unheard[place] >= PASSING_NS
                and alert.breached_ns == now_ns and alert.finding.shown
            ):  # fmt: skip
                del self._unheard[place]
                reported = self.alerts[place] = replace(alert, reported=alert.reported + 1)
                yield self._event(reported, AlertTransition.FIRING, now_ns, muted=False)
        order = [condition.id for condition in self.conditions]
        for place, (alert, turn) in sorted(turns.items(), key=lambda item: order.index(item[0][0])):
            if turn is AlertTransition.FIRING:
                self._unheard.pop(place, None)
                if self.is_muted(alert):
                    self._unheard[place] = now_ns
            yield self._event(alert, turn, now_ns, muted=place in self._unheard)
            if place not in self.alerts:
                self._unheard.pop(place, None)

    def _event(self, alert: Alert, transition: AlertTransition, now_ns: int, *, muted: bool) -> AlertEvent:
        return AlertEvent.of(self._by_id[alert.condition], alert, transition, now_ns, muted=muted)


def _look_at(moment: ServiceStatus, with_margin: Status) -> Look:
    known = moment.estimate
    return Look(
        status=moment.appraisal.status, with_margin=with_margin, empty=known is None,
        undecided=moment.appraisal.undecided, ruled_out=ruled_out(known, moment.thresholds),
        is_below=lies_below(known, moment.thresholds.warning),
    )  # fmt: skip


def _instead(held: Status, moment: ServiceStatus, mildest: Status | None, behind: Behind) -> Status | None:
    """What is shown in place of the status in force, which the figures of this moment rule out or leave open."""
    if mildest is not None and held in ALARMS:
        return None
    if mildest is not None and held is Status.HEALTHY:
        known, warning = moment.estimate, moment.thresholds.warning
        ratio = warning if known is None else round(known.pass_ratio, 9)
        lowest = ratio if known is None else both_ways(ratio, known.weight_sum, 0.0, behind)[0]
        if lowest < min(ratio, warning) or mostly_waits(known, moment.waiting):
            return Status.INSUFFICIENT_DATA
    if held is Status.HEALTHY and (known := moment.estimate) is not None and behind.traces:
        # What waits for a slow judge moves the interval, which healthy needs to reach the threshold.
        lowest = both_ways(known.pass_ratio, known.weight_sum, 0.0, behind)[0]
        if lies_below(replace(known, upper=known.upper - known.pass_ratio + lowest), moment.thresholds.warning):
            return Status.INSUFFICIENT_DATA
    return contradicted(held, _look_at(moment, moment.appraisal.status))


def _last(after: Alert | None, before: Alert | None, finding: AlertFinding | None) -> Alert:
    """The alert as its event reports it: the present finding, where there is one."""
    alert = after or before
    if alert is None:
        raise ValueError("an event is about an alert")
    if after is None:  # it is over, which is one more event
        alert = replace(alert, reported=alert.reported + 1)
    return replace(alert, finding=finding) if finding is not None else alert


def _stated(held: HysteresisState, moment: ServiceStatus, declared: Declaration) -> Appraisal:
    """The status in force and why; where the numbers of this moment give another status, the reason names both."""
    found, rule = moment.appraisal, declared.rule
    if held.status is found.status:
        return found
    if held.status is Status.INSUFFICIENT_DATA and found.status is not Status.HEALTHY:
        when = "decided at the next look" if rule.looks == 1 else f"not yet in {rule.needed} of {rule.looks} looks"
        return Appraisal(held.status, f"{found.reason}; {when}")
    least = ""
    if held.status is Status.HEALTHY and moment.estimate is not None:
        least = f", may be as low as {moment.estimate.lower:.2f}"
    return Appraisal(held.status, f"still {held.status.value.replace('_', ' ')}{least}; now {found.reason}")
