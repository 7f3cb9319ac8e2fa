"""Limits on shares in mode ``adaptive``: followed verdict by verdict, under a budget of false alarms."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import replace

import pytest

from sidejudge.monitor.alerting.details import Details, WatchedWindow, details
from sidejudge.monitor.alerting.fleet.publish import SlicePublisher
from sidejudge.monitor.alerting.fleet.slices import SLICE_NS, decoded, end_ns, slice_of
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.observation import First, Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import AlertLimits, Declaration
from sidejudge.scoring.alerts.lifecycle import AlertTransition, Stage
from sidejudge.scoring.status.status import Policy
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS

KEY = Key("shop", "prod", "agent")
BEGIN_NS = slice_of(1_790_000_000 * 10**9) * SLICE_NS
WATCHED = {"agent": WatchedWindow(blocking=("leak",), workflow=True)}
BOTH = ["blocker_rate", "workflow_violation_rate"]


class Played:
    """Thirty verdicts an hour, and a look every ten minutes."""

    def __init__(self, declared: Declaration | None = None, seed: int = 1) -> None:
        self.declared = declared or Declaration(limits=AlertLimits(blocker_ratio=0.1))
        self.windows = LimitedWindows(self.declared)
        self.watch = Watch(self.declared, self.windows, WATCHED)
        self.now_ns, self.n, self.chance = BEGIN_NS, 0, random.Random(seed)
        self.events: list[tuple[str, AlertTransition, int]] = []

    def go_on(self, hours: float, share: float) -> Played:
        for _ in range(round(hours * 30)):
            self.n, self.now_ns = self.n + 1, self.now_ns + 2 * MINUTE_NS
            seen = observed(self.n, self.now_ns, bad=self.chance.random() < share)
            self.windows.add(KEY, seen)
            self.watch.learn(KEY, seen)
            if self.n % 5 == 0:
                self.look()
        return self

    def look(self) -> None:
        found = {KEY: details(self.windows.members(KEY, self.now_ns), WATCHED["agent"])}
        events = self.watch.look(Observed(now_ns=self.now_ns), found, {})
        self.events += [(each.condition, each.transition, each.at_ns) for each in events if each.condition in BOTH]

    def of(self, turn: AlertTransition) -> list[str]:
        return sorted(condition for condition, transition, _ in self.events if transition is turn)


def observed(n: int, at_ns: int, *, bad: bool, weight: float = 1.0) -> Observation:
    """One verdict; a bad one departs from its scenario and is blocked."""
    return Observation(
        identity=str(n), at_ns=at_ns, passed=not bad, blockers=("leak",) if bad else (), weight=weight,
        metrics={"agents": 1.0, "tools": float(not bad)},
    )  # fmt: skip


def test_a_share_that_stays_just_within_its_limit_alerts_nobody():
    assert Played().go_on(4 * 24, 0.098).events == []


def test_a_share_that_rises_above_its_limit_alerts_once_and_ends_when_it_is_back():
    played = Played().go_on(48, 0.04)
    rose_ns = played.now_ns
    played.go_on(3 * 24, 0.2)
    assert played.of(AlertTransition.FIRING) == BOTH
    assert {transition for _, transition, _ in played.events} == {AlertTransition.FIRING}
    assert max(at_ns for *_, at_ns in played.events) - rose_ns < 12 * HOUR_NS
    for alert in (each for each in played.watch.alerts.values() if each.condition in BOTH):
        found = alert.finding
        assert found.limit < found.value == pytest.approx(0.2, abs=0.03), "the share since it rose"
        assert abs(found.changed_ns - rose_ns) < 4 * HOUR_NS
    played.go_on(24, 0.04)
    assert played.of(AlertTransition.RESOLVED) == BOTH
    assert [turn for _, turn, _ in played.events].count(AlertTransition.FIRING) == 2


def test_what_is_wrong_from_the_first_verdict_on_is_told_within_an_hour():
    played = Played().go_on(1, 1.0)
    assert played.of(AlertTransition.FIRING) == BOTH


def test_an_alert_outlives_a_restart_and_a_limit_that_is_raised_ends_it():
    played = Played().go_on(24, 0.25)
    assert played.of(AlertTransition.FIRING) == BOTH
    for limit, ended in ((0.1, []), (0.4, BOTH)):
        again = Played(replace(played.declared, limits=AlertLimits(blocker_ratio=limit, violation_ratio=limit)))
        again.windows, again.now_ns, again.n = played.windows, played.now_ns, played.n
        again.watch = Watch(again.declared, again.windows, WATCHED)
        again.watch.restore(played.watch.to_memory())
        again.go_on(12, 0.25)
        assert (again.of(AlertTransition.FIRING), again.of(AlertTransition.RESOLVED)) == ([], ended)


def test_an_alarm_of_before_another_mode_is_none_of_now():
    played = Played().go_on(24, 0.3)
    other = Watch(Declaration(policy=Policy()), played.windows, WATCHED)
    other.restore(played.watch.to_memory())
    back = Watch(played.declared, played.windows, WATCHED)
    back.restore({name: text for name, text in other.to_memory().items() if not name.startswith("alert/")})
    assert [watch._tracked[KEY].beyond.keys() for watch in (played.watch, back)] == [{"", "leak"}, set()]


def test_an_alert_that_no_chart_raised_lasts_until_its_chart_ends_it():
    """As after an update from a version that followed no shares, or in a fleet from a leader of one."""
    played = Played().go_on(24, 0.3)
    kept = {
        name: json.dumps({**json.loads(text), "shares": {}}) if name.startswith("state/") else text
        for name, text in played.watch.to_memory().items()
    }
    played.watch = Watch(played.declared, played.windows, WATCHED)
    played.watch.restore(kept)
    played.events.clear()
    assert played.go_on(3, 0.3).events == []
    assert played.go_on(24, 0.02).of(AlertTransition.RESOLVED) == BOTH
    assert played.of(AlertTransition.FIRING) == []


def test_an_empty_window_neither_confirms_nor_ends_it():
    played = Played().go_on(24, 0.3)
    events = played.watch.look(Observed(now_ns=played.now_ns + MINUTE_NS), {KEY: Details()}, {})
    assert {each.transition for each in events if each.condition in BOTH} == {AlertTransition.UNKNOWN}


def test_outside_mode_adaptive_the_bound_of_the_window_decides():
    played = Played(Declaration(policy=Policy(), limits=AlertLimits(blocker_ratio=0.1))).go_on(2, 0.4)
    stages = {each.condition: each.stage for each in played.watch.alerts.values() if each.condition in BOTH}
    assert stages == dict.fromkeys(BOTH, Stage.FIRING)
    assert all("at least" in each.finding.stated for each in played.watch.alerts.values() if each.condition in BOTH)


def test_a_limit_of_all_is_never_passed():
    played = Played(Declaration(limits=AlertLimits(blocker_ratio=1.0, violation_ratio=1.0))).go_on(48, 1.0)
    assert played.events == []
    assert played.watch._tracked[KEY].beyond.keys() == {"", "leak"}, "no chart has a place above it"
    assert not any("CUSUM" in each.when for each in played.watch.conditions if each.id in BOTH)


def test_a_limit_of_none_is_passed_by_the_few_that_the_guards_ask_for():
    played = Played(Declaration(limits=AlertLimits(blocker_ratio=0.0, violation_ratio=0.0))).go_on(24, 0.0)
    assert played.events == []
    assert played.go_on(6, 0.2).of(AlertTransition.FIRING) == BOTH


def test_a_fleet_knows_of_shares_what_one_monitor_with_all_the_traffic_would():
    declared, chance = Declaration(limits=AlertLimits(blocker_ratio=0.1)), random.Random(7)
    windows = [LimitedWindows(declared) for _ in range(4)]
    alone, leader = (Watch(declared, windows[0], WATCHED) for _ in range(2))
    publishers = [SlicePublisher(own, WATCHED, lambda _: "1") for own in windows[1:]]
    begin, known = slice_of(BEGIN_NS), []
    for number in range(begin, begin + 60):
        for place in range(4):
            seen = observed(
                4 * number + place, end_ns(number), bad=chance.random() < 0.6, weight=chance.choice((1.0, 4.0))
            )
            windows[0].add(KEY, seen)
            alone.learn(KEY, seen)
            which = chance.randrange(3)
            windows[1 + which].add(KEY, seen)
            publishers[which].seen(KEY, seen)
        bodies = [body for each in publishers for body in asyncio.run(each.due(end_ns(number) + 1)).values()]
        for each in publishers:
            each.published([number], dict.fromkeys(range(begin, number + 1), 0.0), end_ns(number), HOUR_NS)
        parts = [part for body in bodies for _, _, part in decoded(body)]
        firsts = sum((part.firsts for part in parts), Counter[First]())
        leader.learn_together(KEY, firsts, number * SLICE_NS, end_ns(number))
        leader.learn_slices(KEY, sum((part.sliced for part in parts), Counter()), number * SLICE_NS)
        for watch in (alone, leader):
            watch.look(Observed(now_ns=end_ns(number)), {}, {})
        beyond = [watch._tracked[KEY].beyond for watch in (alone, leader)]
        known.append({len(each) for each in beyond})
    assert known.count({2}) > 20
    assert not [each for each in known if len(each) > 1]
    mine, theirs = (each["leak"] for each in beyond)
    assert theirs.share == pytest.approx(mine.share)
    assert abs(theirs.since_ns - mine.since_ns) <= MINUTE_NS
