"""The watch: verdicts come, looks fall due, statuses and alerts move; all with plain values and a clock of the test."""

from __future__ import annotations

import random
from collections import Counter, deque
from dataclasses import replace

import pytest

from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.alerting.details import Details, WatchedWindow, details
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.verdicts import Awaited
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.scoring.alerts.condition import Observed, WindowFacts
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.lifecycle import Alert, AlertTransition, Stage, advance
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.statistics.estimate import from_sums
from sidejudge.scoring.statistics.ppi import LabelSums
from sidejudge.scoring.status.hysteresis import Hysteresis
from sidejudge.scoring.status.service_status import ServiceStatus, SilenceCause
from sidejudge.scoring.status.status import WAITS, Appraisal, Behind, Policy, Status, Thresholds
from tests.linear_time import steps
from tests.monitor.alerting.test_last_received import decided
from tests.seed_policy import estimate_of

MINUTE_NS = 60 * 10**9
KEY = Key("shop", "prod", "qa")
QUICK = Declaration(
    policy=Policy(), hysteresis=Hysteresis(needed=3, looks=4, recovery_margin=0.02, hold_ns=5 * MINUTE_NS)
)

ABOVE = {"pass_rate_change": {"pass_rate_warning", "pass_rate_critical"}, "pass_rate_warning": {"pass_rate_critical"}}


class Played:
    """A watch that is fed and looked at minute by minute."""

    def __init__(self, declared: Declaration = QUICK, key: Key = KEY, seed: int = 1):
        self.key, self.now_ns, self.count = key, 10**18, 0
        self.windows = Windows(declared.window_ns)
        self.watch = Watch(declared, self.windows)
        self.chance = random.Random(seed)
        self.reported = []

    def minutes(self, count: int, *, ratio: float = 0.95, per_minute: int = 4, every: int = 1, **more) -> list[Status]:
        """The status after each look; looks come at the end of every so many minutes."""
        statuses = []
        for minute in range(count):
            for _ in range(per_minute):
                self.count += 1
                passed = self.chance.random() < ratio
                seen = Observation(identity=str(self.count), at_ns=self.now_ns, passed=passed, weight=20.0, **more)
                self.windows.add(self.key, seen)
                self.watch.learn(self.key, seen)
            self.now_ns += MINUTE_NS
            if (count - minute - 1) % every == 0:
                self.look()
                statuses.append(self.status)
        return statuses

    def look(self) -> None:
        found = {
            self.key: details(self.windows.members(self.key, self.now_ns), WatchedWindow.of(RUBRICS[self.key.rubric]))
        }
        events = self.watch.look(Observed(now_ns=self.now_ns), found, {})
        self.reported += [(event.condition, event.transition.value, event.muted) for event in events]

    @property
    def status(self) -> Status:
        (standing,) = self.watch.service_statuses(self.now_ns)
        return standing.appraisal.status

    def restarted(self) -> Played:
        """Another process with the same past."""
        again = Played(self.watch.declared, self.key)
        again.watch.restore(self.watch.to_memory())
        again.windows, again.now_ns, again.count = self.windows, self.now_ns, self.count
        again.watch._windows = self.windows
        again.chance.setstate(self.chance.getstate())
        again.reported = list(self.reported)
        return again


def test_a_service_that_degrades_is_told_in_order_and_recovers():
    played = Played(QUICK)
    assert set(played.minutes(90)) <= {Status.HEALTHY, Status.INSUFFICIENT_DATA}
    statuses = played.minutes(120, ratio=0.4)
    assert statuses[-1] is Status.CRITICAL
    assert statuses.index(Status.WARNING) < statuses.index(Status.CRITICAL)
    assert played.minutes(180)[-1] is Status.HEALTHY
    began = [condition for condition, turn, _ in played.reported if turn == "firing"]
    ended = [condition for condition, turn, _ in played.reported if turn == "resolved"]
    assert sorted(began) == sorted(ended) == ["pass_rate_change", "pass_rate_critical", "pass_rate_warning"]
    assert began[0] == "pass_rate_change", "the early warning is early"
    assert began.index("pass_rate_warning") < began.index("pass_rate_critical")
    assert ended.index("pass_rate_critical") < ended.index("pass_rate_warning")


@pytest.mark.parametrize("mode", ["bound", "adaptive", "point"])
def test_what_words_decide_alone_ends_no_alarm_while_the_rest_waits_for_a_judge(mode):
    played, waiting = Played(replace(QUICK, policy=Policy(mode=mode))), 0.0
    assert played.minutes(90, ratio=0.5)[-1] is Status.CRITICAL
    played.watch.awaited = lambda key, now_ns: waiting
    for _ in range(180):
        waiting += 2 * 20.0
        assert played.minutes(1, ratio=1.0, per_minute=2) == [Status.CRITICAL]
    (shown,) = played.watch.service_statuses(played.now_ns)
    assert shown.estimate.pass_ratio == 1.0
    assert shown.appraisal.reason.endswith("; traces without an answer may decide otherwise")
    assert "resolved" not in [turn for _, turn, _ in played.reported], "an early warning has not ended either"
    waiting = 0.0
    assert played.minutes(60, ratio=1.0)[-1] is Status.HEALTHY


@pytest.mark.parametrize("mode", ["bound", "adaptive"])
def test_the_first_minutes_of_an_outage_raise_nothing_where_traffic_is_dense(mode):
    played, waiting = Played(replace(QUICK, policy=Policy(mode=mode))), 0.0
    played.minutes(70, ratio=0.97, per_minute=100)
    played.watch.awaited = lambda key, now_ns: waiting
    for _ in range(5):
        waiting += 90 * 20.0
        played.minutes(1, ratio=0.3, per_minute=10)
    assert played.watch._tracked[KEY].change(played.watch.declared, played.watch._pace(KEY)).alarmed
    assert played.reported == []


@pytest.mark.parametrize("mode", ["bound", "adaptive", "point"])
def test_a_restart_in_an_outage_ends_no_alarm_while_what_waited_is_read_again(mode):
    played, waiting = Played(replace(QUICK, policy=Policy(mode=mode))), 0.0
    played.minutes(90, ratio=0.5)
    played.watch.awaited = lambda key, now_ns: waiting
    for _ in range(90):
        waiting += 2 * 20.0
        played.minutes(1, ratio=1.0, per_minute=2)
    again = played.restarted()
    assert again.minutes(2, ratio=1.0, per_minute=2) == [Status.CRITICAL] * 2
    again = again.restarted()
    assert again.minutes(2, ratio=1.0, per_minute=2) == [Status.CRITICAL] * 2
    again.watch.awaited = lambda key, now_ns: waiting
    assert again.minutes(30, ratio=1.0, per_minute=2) == [Status.CRITICAL] * 30
    again.watch.awaited = lambda key, now_ns: 0.0
    assert again.minutes(60, ratio=1.0)[-1] is Status.HEALTHY


def test_what_waited_before_a_restart_counts_for_minutes_also_where_the_clock_is_set_back_then():
    played = Played(replace(QUICK, policy=Policy(mode="bound")))
    played.watch.awaited = lambda key, now_ns: 4_000.0
    assert played.minutes(90)[-1] is Status.INSUFFICIENT_DATA
    again = played.restarted()
    again.minutes(1)
    again.now_ns -= 30 * MINUTE_NS
    assert again.minutes(10)[-1] is Status.HEALTHY


@pytest.mark.parametrize("mode", ["bound", "adaptive", "point"])
def test_what_words_refute_alone_raises_no_alarm_while_the_rest_waits_for_a_judge(mode):
    played, waiting = Played(replace(QUICK, policy=Policy(mode=mode))), 0.0
    assert played.minutes(120, ratio=0.97)[-1] is Status.HEALTHY
    played.watch.awaited = lambda key, now_ns: waiting
    for _ in range(120):
        waiting += 19 * 20.0
        assert set(played.minutes(1, ratio=0.0, per_minute=1)) <= {Status.HEALTHY, Status.INSUFFICIENT_DATA}
    assert played.status is Status.INSUFFICIENT_DATA
    (shown,) = played.watch.service_statuses(played.now_ns)
    assert (played.reported, shown.change.alarmed) == ([], False), "the detector itself is beyond its limit"
    assert played.watch._tracked[KEY].change(played.watch.declared, played.watch._pace(KEY)).alarmed


@pytest.mark.parametrize("mode", ["bound", "adaptive", "point"])
@pytest.mark.parametrize("reach", [True, False])
def test_what_got_no_answer_in_an_outage_counts_both_ways_as_what_waits_does(mode, reach):
    played = Played(replace(QUICK, policy=Policy(mode=mode)))
    assert played.minutes(90, ratio=0.5)[-1] is Status.CRITICAL
    for _ in range(90):
        played.minutes(1, ratio=1.0, per_minute=2)
        for n in range(8):
            given_up = Observation(
                identity=f"{played.now_ns}-{n}", at_ns=played.now_ns, passed=None, weight=20.0, judge_failed=True,
                unasked=reach,
            )  # fmt: skip
            played.windows.add(KEY, given_up)
    assert played.status is (Status.CRITICAL if reach else Status.HEALTHY)


def behind_a_slow_judge(played: Played, awaited: Awaited, line: deque, minutes: int, **more) -> list[Status]:
    """Traces of which words refute some, and a judge approves the others, or so many of them, four a minute or so."""
    statuses = []
    for _ in range(minutes):
        for _ in range(more["per_minute"]):
            played.count += 1
            name, refuted = played.count.to_bytes(16), played.chance.random() < more["refuted"]
            if refuted:
                answered_by(played, awaited, name, passed=False)
            else:
                awaited.waits(name, {KEY: 20.0}, played.now_ns)
                line.append((name, "approved" not in more or played.chance.random() < more["approved"]))
        for _ in range(min(more.get("answered", 4), len(line))):
            name, passed = line.popleft()
            answered_by(played, awaited, name, passed=passed)
        statuses += played.minutes(1, per_minute=0)
    return statuses


def answered_by(played: Played, awaited: Awaited, name: bytes, *, passed: bool) -> None:
    seen = Observation(identity=name.hex(), at_ns=played.now_ns, passed=passed, weight=20.0)
    played.windows.add(KEY, seen)
    played.watch.learn(KEY, seen)
    awaited.committed(decided(name, passed=passed, key=KEY, at_ns=played.now_ns))


@pytest.mark.parametrize("mode", ["bound", "adaptive", "point"])
def test_what_words_refute_in_a_burst_raises_no_alarm_while_a_slow_judge_has_the_rest_before_it(mode):
    played, awaited, line = Played(replace(QUICK, policy=Policy(mode=mode))), Awaited(lambda: False), deque()
    played.watch.awaited, played.watch.behind = awaited.weight, awaited.behind
    assert behind_a_slow_judge(played, awaited, line, 120, per_minute=4, refuted=0.06)[-1] is Status.HEALTHY
    assert (awaited.weight(KEY, played.now_ns), awaited.behind(KEY, played.now_ns), len(line)) == (0, (0, 0), 0)
    played.reported.clear()
    burst = behind_a_slow_judge(played, awaited, line, 15, per_minute=40, refuted=0.06)
    after = behind_a_slow_judge(played, awaited, line, 45, per_minute=3, refuted=0.06)
    assert set(burst + after) <= {Status.HEALTHY, Status.INSUFFICIENT_DATA}
    (shown,) = played.watch.service_statuses(played.now_ns)
    assert (played.reported, shown.estimate.pass_ratio < 0.87, len(line) > 300) == ([], True, True)


@pytest.mark.parametrize("mode", ["bound", "adaptive", "point"])
def test_what_words_refute_in_a_burst_raises_no_alarm_after_a_restart_either(mode, tmp_path):
    played, awaited, line = Played(replace(QUICK, policy=Policy(mode=mode))), Awaited(lambda: False), deque()
    played.watch.awaited, played.watch.behind = awaited.weight, awaited.behind
    behind_a_slow_judge(played, awaited, line, 120, per_minute=4, refuted=0.06, approved=0.97)
    behind_a_slow_judge(played, awaited, line, 20, per_minute=40, refuted=0.06, approved=0.97)
    played, awaited = played.restarted(), Awaited(lambda: False)
    played.watch.awaited, played.watch.behind = awaited.weight, awaited.behind
    awaited.restore(Store(tmp_path / "s.sqlite"), played.now_ns, played.watch.waited)
    played.reported.clear()
    played.look()
    for name, _ in line:
        awaited.waits(name, {KEY: 20.0}, played.now_ns)
    statuses = behind_a_slow_judge(played, awaited, line, 60, per_minute=4, refuted=0.0, approved=0.97)
    assert set(statuses) <= {Status.HEALTHY, Status.INSUFFICIENT_DATA}
    assert ("firing" in [turn for _, turn, _ in played.reported], len(line) > 300) == (False, True)


def test_no_fall_in_which_words_alone_decided_is_an_alarm_once_a_judge_that_hung_answers_that_all_pass():
    played, line = Played(replace(QUICK, policy=Policy(mode="adaptive")), seed=4), deque()
    awaited = Awaited(lambda: False)
    played.watch.awaited, played.watch.behind = awaited.weight, awaited.behind
    behind_a_slow_judge(played, awaited, line, 120, per_minute=4, refuted=0.06)
    behind_a_slow_judge(played, awaited, line, 60, per_minute=4, refuted=0.06, answered=0)
    played.reported.clear()
    statuses = behind_a_slow_judge(played, awaited, line, 60, per_minute=4, refuted=0.06)
    assert set(statuses) <= {Status.HEALTHY, Status.INSUFFICIENT_DATA}
    assert (played.reported, statuses[-1]) == ([], Status.HEALTHY)


def test_a_fall_that_a_slow_judge_shows_is_noticed_at_once_though_it_answered_otherwise_before():
    played, awaited, line = Played(replace(QUICK, policy=Policy(mode="adaptive"))), Awaited(lambda: False), deque()
    played.watch.awaited, played.watch.behind = awaited.weight, awaited.behind
    behind_a_slow_judge(played, awaited, line, 180, per_minute=4, refuted=0.06, approved=0.97)
    behind_a_slow_judge(played, awaited, line, 5, per_minute=40, refuted=0.06, approved=0.97)
    before = len(line)
    burst = behind_a_slow_judge(played, awaited, line, 15, per_minute=40, refuted=0.06, approved=0.4)
    after = behind_a_slow_judge(played, awaited, line, 50, per_minute=3, refuted=0.06, approved=0.4)
    known = before // 4  # minutes until the judge comes to the first one after the fall
    assert not {Status.WARNING, Status.CRITICAL} & set((burst + after)[:known])
    assert Status.CRITICAL in (burst + after)[known : known + 15]


@pytest.mark.parametrize(("share", "status"), [(0.02, Status.HEALTHY), (1.0, Status.INSUFFICIENT_DATA)])
def test_a_service_just_below_the_threshold_is_not_healthy_where_what_waits_for_a_slow_judge_is_worse(share, status):
    played = Played(replace(QUICK, policy=Policy(mode="bound")))
    for _ in range(90):
        for _ in range(20):
            played.count += 1
            seen = Observation(
                identity=str(played.count), at_ns=played.now_ns, passed=played.count % 25 > 3, weight=20.0
            )
            played.windows.add(KEY, seen)
            played.watch.learn(KEY, seen)
        played.minutes(1, per_minute=0)
    assert played.status is Status.HEALTHY, "0.84 of 1,200 may be 0.86"
    waits = share * 20 * 1_200
    played.watch.behind = lambda *_: Behind(waits, 0.7 * waits)
    assert played.status is status


def test_a_status_that_what_waits_leaves_open_from_the_first_look_on_says_so():
    played = Played(replace(QUICK, policy=Policy(mode="bound")))
    played.watch.awaited = lambda _key, _now_ns: 4_000.0
    assert set(played.minutes(20)) == {Status.INSUFFICIENT_DATA}
    (shown,) = played.watch.service_statuses(played.now_ns)
    assert (shown.appraisal.reason.endswith(WAITS), "decided within" in shown.appraisal.reason) == (True, False)


def test_what_a_slow_judge_refutes_leaves_healthy_what_words_approve_no_longer():
    played, awaited = Played(replace(QUICK, policy=Policy(mode="bound"))), Awaited(lambda: False)
    played.watch.awaited, played.watch.behind = awaited.weight, awaited.behind
    for number in range(1, 601):
        name = number.to_bytes(16)
        if number % 2:
            awaited.waits(name, {KEY: 20.0}, played.now_ns)
        if number % 2 == 0 or number % 20 == 1:
            answered_by(played, awaited, name, passed=number % 2 == 0)
        if number % 10 == 0:
            played.minutes(1, per_minute=0)
    (shown,) = played.watch.service_statuses(played.now_ns)
    assert shown.estimate.pass_ratio > 0.9
    assert awaited.behind(KEY, played.now_ns) == (266 * 20, 0)
    assert shown.appraisal.status is Status.INSUFFICIENT_DATA


def test_a_fall_after_an_outage_is_noticed_at_once_though_what_got_no_answer_is_still_in_the_window():
    played = Played(replace(QUICK, policy=Policy(mode="adaptive")))
    played.minutes(300, ratio=0.97)
    for _ in range(20):
        played.minutes(1, ratio=0.97)
        for n in range(15):
            given_up = Observation(
                identity=f"{played.now_ns}-{n}", at_ns=played.now_ns, passed=None, weight=20.0, judge_failed=True,
                unasked=True,
            )  # fmt: skip
            played.windows.add(KEY, given_up)
    assert played.minutes(10, ratio=0.97)[-1] is Status.INSUFFICIENT_DATA
    assert played.minutes(10, ratio=0.2)[-1] is Status.CRITICAL
    began = {condition for condition, turn, _ in played.reported if turn == "firing"}
    assert began >= {"pass_rate_change", "pass_rate_warning", "pass_rate_critical"}


@pytest.mark.parametrize("mode", ["bound", "adaptive"])
def test_a_share_that_words_alone_show_neither_begins_an_alert_nor_ends_one(mode):
    played = Played(replace(QUICK, policy=Policy(mode=mode)))
    blocker = min(WatchedWindow.of(RUBRICS["qa"]).blocking)
    waiting = 0.0
    played.watch.awaited = lambda key, now_ns: waiting

    def blocking() -> list[str]:
        return [turn for condition, turn, _ in played.reported if condition == "blocker_rate"]

    played.minutes(60, ratio=1.0)
    for _ in range(60):
        waiting += 100 * 20.0
        played.minutes(1, ratio=0.0, per_minute=2, blockers=(blocker,))
    assert blocking() == []
    waiting = 0.0
    played.minutes(60, ratio=0.0, blockers=(blocker,))
    assert blocking() == ["firing"]
    for _ in range(120):
        waiting += 8 * 20.0
        played.minutes(1, ratio=1.0, per_minute=2)
    assert blocking() == ["firing"]


def test_nothing_is_healthy_while_most_traces_wait_and_it_is_at_once_when_they_pass():
    played, waiting = Played(replace(QUICK, policy=Policy(mode="adaptive"))), 0.0
    assert played.minutes(120, ratio=0.97)[-1] is Status.HEALTHY
    played.watch.awaited = lambda key, now_ns: waiting
    waiting = 0.2 * 240 * 20.0
    assert played.minutes(1, ratio=1.0)[-1] is Status.HEALTHY
    waiting = 1.1 * 240 * 20.0
    assert played.minutes(1, ratio=1.0)[-1] is Status.INSUFFICIENT_DATA
    waiting = 0.0
    assert played.minutes(1, ratio=1.0)[-1] is Status.HEALTHY


@pytest.mark.parametrize("mode", ["bound", "adaptive"])
def test_an_alarm_that_no_answer_could_avert_waits_for_none(mode):
    played = Played(replace(QUICK, policy=Policy(mode=mode)))
    played.minutes(120, ratio=0.97, per_minute=20)
    played.watch.awaited = lambda key, now_ns: 200 * 20.0
    assert played.minutes(60, ratio=0.2, per_minute=20)[-1] is Status.CRITICAL


def test_what_waits_may_avert_a_critical_alarm_and_not_the_warning():
    played = Played(replace(QUICK, policy=Policy(mode="adaptive")))
    played.minutes(120, ratio=0.97, per_minute=20)
    played.watch.awaited = lambda key, now_ns: 600 * 20.0
    statuses = played.minutes(120, ratio=0.6, per_minute=20)
    assert (statuses[-1], Status.CRITICAL in statuses) == (Status.WARNING, False)
    played.watch.awaited = lambda key, now_ns: 0.0
    assert played.minutes(60, ratio=0.6, per_minute=20)[-1] is Status.CRITICAL


def test_adaptive_calls_nothing_healthy_while_both_bounds_of_the_window_say_otherwise():
    played = Played(replace(QUICK, policy=Policy(mode="adaptive")))
    assert played.minutes(90, per_minute=20)[-1] is Status.HEALTHY
    assert played.minutes(30, per_minute=20, ratio=0.2)[-1] is Status.CRITICAL
    for _ in range(61):
        if played.minutes(1, per_minute=20)[-1] is Status.HEALTHY:
            break
    (shown,) = played.watch.service_statuses(played.now_ns)
    assert shown.appraisal.status is Status.HEALTHY, "it recovers once the window is past"
    assert shown.estimate.pass_ratio >= 0.87


def test_an_alarm_that_a_fall_raised_shows_what_came_since_the_fall_everywhere():
    played = Played(replace(QUICK, policy=Policy(mode="adaptive")))
    played.minutes(90, per_minute=4, ratio=0.96)
    while played.minutes(1, per_minute=4, ratio=0.4)[-1] is not Status.CRITICAL:
        pass
    (shown,) = played.watch.service_statuses(played.now_ns)
    whole = estimate_of(played.windows, KEY, played.now_ns)
    assert whole.lower > 0.70, "the hour holds what passed before: it alone would rule out what is said"
    assert shown.estimate.upper < 0.70
    found = next(alert.finding for (name, _), alert in played.watch.alerts.items() if name == "pass_rate_critical")
    figures = (shown.estimate.pass_ratio, shown.estimate.lower, shown.estimate.upper, shown.estimate.n)
    assert (found.value, found.lower, found.upper, found.n) == figures
    assert found.measured_ns == found.changed_ns == played.now_ns - shown.reach_ns
    since = [each for each in played.windows.members(KEY, played.now_ns) if each.at_ns >= found.measured_ns]
    assert (len(since), sum(not each.passed for each in since)) == (shown.estimate.n, shown.estimate.failures)


def test_an_alert_that_is_held_where_nothing_is_decided_shows_what_is_known_now_and_why():
    played, alert, before = Played(Declaration(policy=Policy(mode="adaptive"))), None, None
    played.minutes(60, per_minute=40, ratio=0.96)
    for _ in range(30):
        played.minutes(1, per_minute=40, ratio=0.83)
        found = (each for (name, _), each in played.watch.alerts.items() if name == "pass_rate_warning")
        before, alert = alert, next(found, None)
        if alert is not None and alert.held:
            break
    (shown,) = played.watch.service_statuses(played.now_ns)
    assert (alert.stage, shown.appraisal.status) == (Stage.FIRING, Status.INSUFFICIENT_DATA)
    figures = (shown.estimate.pass_ratio, shown.estimate.lower, shown.estimate.upper, shown.estimate.n)
    found = alert.finding
    assert (found.value, found.lower, found.upper, found.n) == figures
    assert (found.stated, found.changed_ns) == (shown.appraisal.reason, before.finding.changed_ns)


def test_a_fall_that_comes_each_night_is_no_news_after_a_week_and_a_deeper_one_is():
    declared = Declaration()
    windows = LimitedWindows(declared)
    watch, hour_ns, draw, fired = Watch(declared, windows), 60 * MINUTE_NS, random.Random(3), Counter()

    def lives(days: range, night: float) -> None:
        for hour in range(24 * days.start, 24 * days.stop):
            for n in range(60):
                at_ns, ratio = (480_000 + hour) * hour_ns + n * MINUTE_NS, night if hour % 24 >= 16 else 0.97
                seen = Observation(identity=f"{hour}-{n}", at_ns=at_ns, passed=draw.random() < ratio)
                windows.add(KEY, seen)
                watch.learn(KEY, seen)
                if not n % 20:
                    for event in watch.look(Observed(now_ns=at_ns), {}, {}):
                        fired[event.condition, event.transition.value] += 1

    lives(range(8), 0.88)
    assert fired["pass_rate_change", "firing"] >= 3, "nobody knows yet"
    fired.clear()
    lives(range(8, 18), 0.88)
    assert fired["pass_rate_change", "firing"] + fired["pass_rate_warning", "firing"] <= 1
    fired.clear()
    lives(range(18, 19), 0.7)
    assert fired["pass_rate_warning", "firing"] == 1


@pytest.mark.parametrize(("mode", "trickle"), [("adaptive", None), ("adaptive", 1.0), ("bound", 1.0)])
def test_no_alert_is_over_because_a_window_empties(mode, trickle):
    declared = Declaration(policy=Policy(mode=mode))
    played = Played(declared)
    played.windows = LimitedWindows(declared)
    played.watch = Watch(declared, played.windows)
    played.minutes(60, ratio=0.96)
    assert played.minutes(60, ratio=0.77)[-1] is Status.WARNING
    for minute in range(100):  # nothing, or one verdict in twenty minutes
        played.minutes(1, per_minute=int(trickle is not None and minute % 20 == 0), ratio=trickle or 0.0)
    assert "pass_rate_warning" not in [condition for condition, turn, _ in played.reported if turn == "resolved"]


@pytest.mark.parametrize("margin", [0.02, 0.0])
@pytest.mark.parametrize("mode", ["adaptive", "bound"])
def test_no_alert_is_over_because_traffic_thins(mode, margin):
    declared = Declaration(policy=Policy(mode=mode), hysteresis=Hysteresis(recovery_margin=margin))
    played = Played(declared)
    assert played.minutes(120, ratio=0.77)[-1] is Status.WARNING
    assert set(played.minutes(120, per_minute=1, ratio=0.77)) == {Status.WARNING}


def test_silence_is_told_as_such_and_is_no_recovery():
    played = Played()
    played.minutes(60)
    played.minutes(120, ratio=0.3)
    reported = len(played.reported)
    assert played.minutes(70, per_minute=0)[-1] is Status.NO_DATA
    later = played.reported[reported:]
    assert ("pass_rate_critical", "unknown", False) in later
    assert not [turn for condition, turn, _ in later if turn == "resolved"]
    alert = next(alert for alert in played.watch.alerts.values() if alert.condition == "pass_rate_critical")
    assert alert.stage is Stage.UNKNOWN
    assert played.watch.alerts["traffic_stopped", alert.labels].stage is Stage.FIRING


@pytest.mark.parametrize("ahead_h", [0, 3, 4800], ids=["", "after a clock hours ahead", "months"])
def test_an_application_that_stops_is_no_data_after_an_hour_and_a_restart_does_not_forget_it(ahead_h):
    played = Played(Declaration())
    played.windows = LimitedWindows(played.watch.declared)
    played.watch = Watch(played.watch.declared, played.windows)
    played.watch.why_silent = lambda service, since_ns: SilenceCause.NONE_SAMPLED
    played.minutes(599, ratio=0.5, every=20)
    played.now_ns += ahead_h * 60 * MINUTE_NS
    played.minutes(1, ratio=0.5)
    played.now_ns -= ahead_h * 60 * MINUTE_NS
    played.minutes(2, ratio=0.5)
    stopped_ns = played.now_ns
    statuses = played.minutes(200, per_minute=0)
    assert statuses.index(Status.NO_DATA) == 58, "an hour after the last verdict"
    assert Status.HEALTHY not in statuses
    (found,) = played.watch.service_statuses(played.now_ns)
    assert (found.last_ns, found.silence.cause) == (stopped_ns - MINUTE_NS, SilenceCause.NONE_SAMPLED)
    assert "last verdict 3 h ago" in found.appraisal.reason
    reported = len(played.reported)
    for _ in range(3 * 60):
        played.now_ns += 9 * MINUTE_NS
        played.minutes(1, per_minute=0)
    assert {condition for condition, turn, _ in played.reported[reported:] if turn != "expired"} == set()
    again = Watch(played.watch.declared, LimitedWindows(played.watch.declared))  # which knows no cause of its own
    again.restore(played.watch.to_memory())
    again.look(Observed(now_ns=played.now_ns), {}, {})
    (found,) = again.service_statuses(played.now_ns)
    assert (found.appraisal.status, found.silence.cause) == (Status.NO_DATA, SilenceCause.NONE_SAMPLED)
    assert played.minutes(3, ratio=0.97)[-1] is not Status.NO_DATA


def test_a_weekend_is_no_silence_where_there_never_is_traffic_and_a_monday_without_any_is():
    declared, monday_ns = Declaration(), 4 * 86_400 * 10**9 + 2_900 * 7 * 86_400 * 10**9
    windows = LimitedWindows(declared)
    watch, hour_ns = Watch(declared, windows), 60 * MINUTE_NS
    for hour in (h for h in range(3 * 168) if h % 168 < 120 and 8 <= h % 24 < 18):
        for place in range(12):
            at_ns = monday_ns + hour * hour_ns + 5 * place * MINUTE_NS
            seen = Observation(identity=f"{hour}-{place}", at_ns=at_ns, passed=True)
            windows.add(KEY, seen)
            watch.learn(KEY, seen)
    found = {}
    for hour in (114, 130, 150, 168 + 8, 168 + 11):  # Friday evening, Saturday, Sunday, Monday at eight and at eleven
        now_ns = monday_ns + (2 * 168 + hour) * hour_ns
        watch.look(Observed(now_ns=now_ns), {}, {})
        (found[hour],) = (each.appraisal.status is Status.NO_DATA for each in watch.service_statuses(now_ns))
    assert found == {114: False, 130: False, 150: False, 176: False, 179: True}


def test_a_window_reaches_further_only_where_traffic_is_usually_thin():
    reach = {}
    for per_minute in (4, 0):
        played = Played(Declaration())
        played.windows = LimitedWindows(played.watch.declared)
        played.watch = Watch(played.watch.declared, played.windows)
        for _ in range(30):
            played.minutes(1, per_minute=4)
            played.minutes(0 if per_minute else 29, per_minute=0)
        played.minutes(50, per_minute=0)
        (found,) = played.watch.service_statuses(played.now_ns)
        reach[per_minute] = found.reach_ns
    assert reach[4] <= 80 * MINUTE_NS
    assert reach[0] > 3 * 60 * MINUTE_NS


def test_before_the_first_look_a_service_states_how_much_is_missing():
    played = Played(replace(QUICK, policy=Policy(min_samples=30)))
    seen = Observation(identity="x", at_ns=played.now_ns, passed=True, weight=1.0)
    played.windows.add(KEY, seen)
    played.watch.learn(KEY, seen)
    (standing,) = played.watch.service_statuses(played.now_ns)
    assert standing.appraisal.status is Status.INSUFFICIENT_DATA
    assert "30" in standing.appraisal.reason


@pytest.mark.parametrize(("mode", "stated"), [("adaptive", "decided at the next look"), ("bound", "in 3 of 4 looks")])
def test_between_two_looks_a_fall_is_stated_with_what_it_still_takes(mode, stated):
    """Evidence decides at one look: *not yet in 1 of 1 looks* contradicted it."""
    played = Played(replace(QUICK, policy=Policy(mode=mode)))
    played.minutes(120, ratio=1.0)
    for number in range(150):
        seen = Observation(identity=f"late-{number}", at_ns=played.now_ns, passed=False, weight=20.0)
        played.windows.add(KEY, seen)
        played.watch.learn(KEY, seen)
    (standing,) = played.watch.service_statuses(played.now_ns)
    assert standing.appraisal.status is Status.INSUFFICIENT_DATA
    assert standing.appraisal.reason.endswith(stated)


def test_mode_point_is_the_seeds_status_of_this_very_moment_whatever_the_looks():
    played = Played(replace(QUICK, policy=Policy(mode="point", min_samples=1, min_failures=0)))
    played.minutes(30, ratio=1.0)
    assert played.status is Status.HEALTHY
    for number in range(200):
        seen = Observation(identity=f"x{number}", at_ns=played.now_ns, passed=False, weight=20.0)
        played.windows.add(KEY, seen)
        played.watch.learn(KEY, seen)
    assert played.status is Status.CRITICAL, "without a look in between"


def test_incomplete_verdicts_change_no_status_but_the_worst_case():
    played = Played()
    played.minutes(60, ratio=1.0)
    for number in range(240):
        seen = Observation(identity=f"x{number}", at_ns=played.now_ns, passed=None, weight=20.0, judge_failed=True)
        played.windows.add(KEY, seen)
        played.watch.learn(KEY, seen)
    for _ in range(12):
        played.now_ns += MINUTE_NS
        played.look()
    (standing,) = played.watch.service_statuses(played.now_ns)
    assert standing.appraisal.status is Status.HEALTHY
    assert standing.missing.worst < 0.55
    assert standing.missing.best == 1.0
    assert played.reported == [("judge_failure_rate", "firing", False)]


def test_a_revision_moves_the_window_and_not_what_follows_verdicts_one_by_one():
    played = Played()
    first = Observation(identity="a", at_ns=played.now_ns, passed=True)
    for seen in (first, replace(first, passed=False, revision=2), replace(first, passed=False, revision=3)):
        played.windows.add(KEY, seen)
        played.watch.learn(KEY, seen)
    (standing,) = played.watch.service_statuses(played.now_ns)
    assert standing.estimate.failures == 1
    assert standing.change.share == 0


@pytest.mark.parametrize("mode", ["adaptive", "bound", "point"])
def test_a_restart_in_the_middle_of_it_tells_nothing_twice_and_misses_nothing(mode):
    declared = replace(QUICK, policy=Policy(mode=mode))
    whole, cut = Played(declared), Played(declared)
    for ratio in (0.95, 0.5, 0.95):
        for _ in range(6):
            whole.minutes(15, ratio=ratio)
            cut.minutes(15, ratio=ratio)
            cut = cut.restarted()
    assert cut.reported == whole.reported
    assert cut.status is whole.status
    assert cut.watch.to_memory() == whole.watch.to_memory()


def test_a_muted_warning_is_told_after_all_when_what_muted_it_is_over():
    played = Played(replace(QUICK, hysteresis=Hysteresis(needed=1, looks=1, recovery_margin=0.0, hold_ns=0)))
    played.minutes(60, ratio=0.3)
    warnings = [each for each in played.reported if each[0] == "pass_rate_warning"]
    assert warnings == [("pass_rate_warning", "firing", True)], "warning and critical began in the same look"
    played.minutes(90, ratio=0.76)
    warnings = [each for each in played.reported if each[0] == "pass_rate_warning"]
    assert warnings[1] == ("pass_rate_warning", "firing", False)


def test_a_muted_warning_is_sent_in_its_usual_time_after_the_clock_was_set_back():
    played = Played(replace(QUICK, hysteresis=Hysteresis(needed=1, looks=1, recovery_margin=0.0, hold_ns=0)))
    played.minutes(60, ratio=0.3)
    while any(each.alert.condition == "pass_rate_critical" for each in played.watch.posted()):
        played.minutes(1, ratio=0.85, per_minute=20)
    before = len(played.reported)
    played.now_ns -= 50 * MINUTE_NS
    played.minutes(12, ratio=0.76)
    assert ("pass_rate_warning", "firing", False) in played.reported[before:]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_recovery_that_passes_through_warning_reports_no_warning(restarted):
    played = Played(replace(QUICK, hysteresis=Hysteresis(needed=1, looks=1, recovery_margin=0.0, hold_ns=0)))
    played.minutes(60, ratio=0.3)
    statuses = []
    while not statuses or statuses[-1] is not Status.HEALTHY:  # the window passes through every ratio in between
        statuses += played.minutes(1, ratio=1.0, per_minute=40)
        if restarted and statuses[-1] is Status.WARNING:
            played = played.restarted()
    assert Status.WARNING in statuses
    assert 0 < statuses.count(Status.WARNING) < 10
    sent = [(condition, turn) for condition, turn, muted in played.reported if not muted and "pass_rate" in condition]
    assert [each for each in sent if each[0] == "pass_rate_warning"] == []
    assert sent.count(("pass_rate_critical", "resolved")) == 1


def test_few_verdicts_that_lie_below_the_threshold_are_not_shown_as_healthy():
    played = Played(replace(QUICK, hysteresis=Hysteresis()))
    assert played.minutes(60, ratio=1.0, per_minute=1)[-1] is Status.HEALTHY
    played.now_ns += 61 * MINUTE_NS
    assert played.minutes(8, ratio=0.0, per_minute=2)[-1] is Status.INSUFFICIENT_DATA
    (status,) = played.watch.service_statuses(played.now_ns)
    assert (status.estimate.n, status.estimate.failures) == (16, 16)


def test_an_alert_is_not_over_while_the_interval_lies_wholly_below_its_threshold():
    found = {each.id: each for each in conditions(Declaration())}["pass_rate_critical"]

    def breached(status: Status, passed: int, alert: Alert | None) -> tuple[Alert | None, AlertTransition | None]:
        estimate = from_sums(n=100, failures=100 - passed, weight=100, failed_weight=100 - passed, squared_weight=100)
        standing = ServiceStatus(
            service="shop", environment="prod", rubric="qa", estimate=estimate, appraisal=Appraisal(status, "why")
        )
        (finding,) = found.find(Observed(now_ns=1, windows=[WindowFacts(status=standing)]))
        return advance(alert, finding, 1, found)

    fired, _ = breached(Status.CRITICAL, 40, None)
    kept, turn = breached(Status.WARNING, 40, fired)
    assert (kept.held, turn, kept.breached_ns) == (True, None, fired.breached_ns)
    silent, turn = breached(Status.NO_DATA, 40, fired)
    assert turn is AlertTransition.UNKNOWN
    assert breached(Status.WARNING, 40, silent) == (silent, None)
    assert not silent.held
    assert breached(Status.WARNING, 69, silent)[1] is AlertTransition.RESOLVED
    assert breached(Status.WARNING, 40, None) == (None, None)


@pytest.mark.parametrize(("bounds", "good", "per_minute", "covered"), [
    (Thresholds(warning=0.85, critical=0.7), 0.96, 1, "pass_rate_change"),
    (Thresholds(warning=0.99, critical=0.98), 0.999, 5, "pass_rate_warning"),
])  # fmt: skip
def test_what_only_evidence_from_before_a_recovery_holds_up_is_not_sent_after_it(bounds, good, per_minute, covered):
    played = Played(replace(QUICK, policy=Policy(mode="adaptive", thresholds=bounds), hysteresis=Hysteresis()))
    played.minutes(240, ratio=good, per_minute=per_minute)
    played.minutes(40, ratio=0.3, per_minute=per_minute)
    fell, lasted = len(played.reported), 0
    assert [each for each in played.reported if each[0] == covered] == [(covered, "firing", True)]
    for _ in range(240):
        played.minutes(1, ratio=good, per_minute=per_minute)
        posted = list(played.watch.posted())
        assert all(each.muted for each in posted if each.unsent)
        held = {each.alert.condition: each.unsent for each in posted}
        lasted += held.get(covered) is True and not held.keys() & ABOVE[covered]
    assert lasted > 30, "it goes on for long after what covered it"
    assert [each for each in played.reported[fell:] if each[1] == "firing"] == []


def test_an_hour_with_fewer_verdicts_than_usual_by_chance_is_no_silence():
    declared = Declaration()
    played = Played(declared)
    played.windows = LimitedWindows(declared)
    played.watch = Watch(declared, played.windows)
    found: Counter[Status] = Counter()
    for minute in range(18 * 60):
        (status,) = played.minutes(1, per_minute=int(played.chance.random() < 35 / 60))
        found[status] += minute > 6 * 60
    assert set(+found) == {Status.HEALTHY}, "35 an hour are often fewer than the 30 that are needed"


def test_a_warning_that_was_sent_before_a_critical_alert_covers_it_is_muted_and_not_unsent():
    played = Played(QUICK)
    played.minutes(90)
    played.minutes(120, ratio=0.4)
    assert ("pass_rate_warning", "firing", False) in played.reported
    (warning,) = [each for each in played.watch.posted() if each.alert.condition == "pass_rate_warning"]
    assert (warning.muted, warning.unsent) == (True, False)


def test_a_blocker_that_hits_many_is_told_once_it_lasted_and_named():
    played, blocking = Played(), WatchedWindow.of(RUBRICS["qa"]).blocking
    played.minutes(30, ratio=0.9, blockers=(blocking[0],))
    fired = [alert for alert in played.watch.alerts.values() if alert.condition == "blocker_rate"]
    assert [dict(alert.labels)["metric"] for alert in fired] == [blocking[0]]
    assert fired[0].fired_ns - fired[0].since_ns == 10 * MINUTE_NS


def test_workflow_violations_are_counted_by_trace():
    key = Key("agent", "prod", "workflow")
    played = Played(key=key)
    played.minutes(30, ratio=0.9, metrics={"agents": 1.0, "tools": 0.5})
    assert ("workflow_violation_rate", "firing", False) in played.reported
    calm = Played(key=key)
    calm.minutes(30, ratio=0.9, metrics={"agents": 1.0, "tools": 1.0})
    assert not [reported for reported in calm.reported if reported[0] == "workflow_violation_rate"]


def test_a_drift_from_the_scenario_is_warned_of_early_and_dated():
    played = Played(key=Key("agent", "prod", "workflow"))
    kept, departed = {"agents": 1.0, "tools": 1.0}, {"agents": 1.0, "tools": 0.0}
    played.minutes(120, ratio=1.0, metrics=kept)
    assert not [each for each in played.reported if each[0] == "scenario_drift"]
    began_ns = played.now_ns
    for _ in range(30):  # every fourth run calls a tool that is not in the scenario, and passes all the same
        played.minutes(1, ratio=1.0, per_minute=3, metrics=kept)
        played.minutes(1, ratio=1.0, per_minute=1, metrics=departed)
    drift = [each for each in played.reported if each[0] == "scenario_drift"]
    assert drift[0] == ("scenario_drift", "firing", False)
    (status,) = played.watch.service_statuses(played.now_ns)
    assert status.drift.alarmed
    assert not status.change.alarmed, "the pass ratio is as it was"
    assert abs(status.drift.since_ns - began_ns) <= 5 * MINUTE_NS
    order = [each[0] for each in played.reported]
    assert order.index("scenario_drift") < order.index("workflow_violation_rate"), "the early warning is early"
    other = Watch(QUICK, played.windows)
    other.restore(played.watch.to_memory())
    assert other.service_statuses(played.now_ns)[0].drift == status.drift


def test_departures_from_signs_drift_and_violate_nothing():
    played = Played(key=Key("agent", "prod", "workflow"))
    kept = {"agents": 1.0, "tools": 1.0}
    played.minutes(120, ratio=1.0, metrics={**kept, "habits": 1.0})
    for _ in range(30):
        played.minutes(1, ratio=1.0, per_minute=3, metrics={**kept, "habits": 1.0})
        played.minutes(1, ratio=1.0, per_minute=1, metrics={**kept, "habits": 0.0})
    assert {each[0] for each in played.reported} == {"scenario_drift"}
    (drift,) = played.watch.alerts.values()
    assert drift.finding.value < drift.finding.upper < 0.98, "its figures count what departs from signs"


def test_drift_is_watched_where_a_scenario_is_checked_alone():
    played = Played()
    played.minutes(30, ratio=0.9, metrics={"tools": 0.0})
    assert played.watch.service_statuses(played.now_ns)[0].drift is None


def test_what_another_configuration_remembers_is_dropped_or_begins_anew():
    adaptive = Played(replace(QUICK, policy=Policy(mode="adaptive")))
    adaptive.minutes(120, ratio=0.3)
    bound = Watch(QUICK, adaptive.windows)
    bound.restore(adaptive.watch.to_memory())
    assert bound.service_statuses(adaptive.now_ns)[0].appraisal.status is Status.CRITICAL
    memory = {name: stated.replace("pass_rate_critical", "gone") for name, stated in adaptive.watch.to_memory().items()}
    other = Watch(QUICK, adaptive.windows)
    other.restore(memory)
    assert "gone" not in {alert.condition for alert in other.alerts.values()}


def test_keys_that_windows_forgot_are_forgotten():
    played = Played()
    played.minutes(5)
    other = Watch(QUICK, Windows(QUICK.window_ns))
    other.restore(played.watch.to_memory())
    assert len(other.service_statuses(played.now_ns)) == 1, "a restart does not forget who has stopped"
    other = Watch(QUICK, Windows(QUICK.window_ns))
    kept = played.watch.to_memory()
    other.restore({**kept, "cursor": str(played.now_ns + 8 * 24 * 60 * MINUTE_NS)})
    assert other.look(Observed(now_ns=played.now_ns), {}, {}) == []
    assert not [name for name in other.to_memory() if name.startswith("state/")]


def test_details_of_nothing_are_nothing():
    assert details([], WatchedWindow.of(RUBRICS["qa"])) == Details()


def test_a_mean_is_not_held_against_a_bound_that_only_perfection_keeps():
    workflow, qa = WatchedWindow.of(RUBRICS["workflow"]), WatchedWindow.of(RUBRICS["qa"])
    assert workflow.acceptable["tools"] == (1.0, True)
    assert workflow.acceptable["habits"] == (0.0, True)
    assert workflow.on_average == {}, "neither what must be perfect, nor a sign, which no value breaks"
    assert "response_structure_compliance" not in qa.on_average
    assert qa.on_average["question_score_accuracy"] == (0.9, True)
    assert qa.on_average["compliance_false_pass_rate"] == (0.03, False)


def test_every_turn_is_told_with_how_bad_since_when_and_what_to_do():
    played = Played()
    played.minutes(60)
    seen = []
    played.watch.look, original = (lambda *args: seen.extend(found := original(*args)) or found), played.watch.look
    played.minutes(120, ratio=0.3)
    event = next(
        event
        for event in seen
        if event.condition == "pass_rate_critical" and event.transition is AlertTransition.FIRING
    )
    assert event.runbook == "pass-rate-critical"
    assert dict(event.labels) == {"service": "shop", "environment": "prod", "rubric": "qa"}
    assert event.lower < event.value < event.upper < event.limit == 0.70
    assert event.n >= 30
    assert event.since_ns <= event.at_ns
    assert abs(event.changed_ns - (10**18 + 60 * MINUTE_NS)) <= 20 * MINUTE_NS


@pytest.mark.parametrize("mode", ["bound", "adaptive"])
def test_labels_of_people_move_the_thresholds_where_they_are_to(mode):
    lenient = LabelSums(both=400, people_only=0, judge_only=50, neither=50, squared=500, n=500)
    declared = replace(QUICK, policy=Policy(mode=mode), corrected="rogan_gladen")
    played, plain = Played(declared), Played(replace(declared, corrected="none"))
    for each in (played, plain):
        each.minutes(100, ratio=0.95)
        each.watch.take_labels({"qa": lenient})
    assert played.watch.declared.policy_of("qa").thresholds.warning > 0.88
    # A judge that fails half of what people fail passes 0.86 where people pass 0.72.
    assert played.minutes(150, ratio=0.86, every=3)[-1] is not Status.HEALTHY
    assert plain.minutes(150, ratio=0.86, every=3)[-1] is Status.HEALTHY
    again = played.restarted()
    assert again.status is played.status


class Versioned(Played):
    """The same, under a version of the rubric, and by judges, that may change."""

    def __init__(self, watched: dict[str, WatchedWindow], declared: Declaration, *judges: str) -> None:
        super().__init__(declared)
        self.watch = Watch(declared, self.windows, watched, judges={"qa": judges})

    def by(self, watched: dict[str, WatchedWindow], *judges: str) -> Versioned:
        """Another process with the same past, the windows apart: they hold verdicts by one version alone."""
        again = Versioned(watched, self.watch.declared, *judges)
        again.watch.restore(self.watch.to_memory(), watched)
        again.now_ns, again.count, again.reported = self.now_ns, self.count, list(self.reported)
        return again


ADAPTIVE = replace(QUICK, policy=Policy(mode="adaptive"))


@pytest.mark.parametrize("version", ["qa@1", "qa@2"])
@pytest.mark.parametrize("restarted", [False, True])
def test_what_another_version_or_judge_of_a_rubric_showed_is_held_against_none(restarted, version):
    watched = {"qa": WatchedWindow(version="qa@1")}
    judge = "other" if version == "qa@1" else "small"
    played = Versioned(watched, ADAPTIVE, "small")
    played.minutes(20, ratio=0.0)
    assert played.status is Status.CRITICAL
    assert ("pass_rate_critical", "firing", False) in played.reported
    arrivals = played.watch._tracked[KEY].arrivals
    if restarted:
        played = played.by({"qa": WatchedWindow(version=version)}, judge)
        assert played.watch._tracked[KEY].arrivals.last_ns == arrivals.last_ns, "when it is silent is still known"
    else:
        watched["qa"] = WatchedWindow(version=version)
        assert played.watch.take_judges({"qa": [judge]}) == (["qa"] if judge == "other" else [])
        played.windows.forget("qa")
    before = len(played.reported)
    played.look()
    assert played.status is Status.INSUFFICIENT_DATA
    assert {turn for _, turn, _ in played.reported[before:]} == {"unknown"}, (
        "no verdict is neither an alarm nor its end"
    )
    assert set(played.minutes(30, ratio=1.0)) <= {Status.INSUFFICIENT_DATA, Status.HEALTHY}
    assert played.status is Status.HEALTHY
    assert "firing" not in {turn for _, turn, _ in played.reported[before:]}
    assert ("pass_rate_critical", "resolved", False) in played.reported[before:]


def test_the_same_version_goes_on_after_a_restart():
    watched = {"qa": WatchedWindow(version="qa@1")}
    played = Versioned(watched, ADAPTIVE)
    played.minutes(20, ratio=0.0)
    known = played.watch._tracked[KEY].to_json()
    assert played.by(watched).watch._tracked[KEY].to_json() == known
    unnamed = {name: text for name, text in played.watch.to_memory().items() if name != "judges"}
    upgraded = Versioned(watched, ADAPTIVE, "small")
    upgraded.watch.restore(unnamed)
    assert upgraded.watch._tracked[KEY].to_json() == known, "which judge it was, an earlier version did not write"
    old = {name: text.replace('"version": "qa@1", ', "") for name, text in played.watch.to_memory().items()}
    upgraded = Versioned(watched, ADAPTIVE)
    upgraded.watch.restore(old)
    assert upgraded.watch._tracked[KEY].to_json() == known, "what an earlier version wrote names none"


def test_of_a_rubric_that_is_gone_nothing_is_known_and_its_alerts_are_not_known_any_more():
    watched = {"qa": WatchedWindow(version="qa@1")}
    played = Versioned(watched, ADAPTIVE)
    played.minutes(20, ratio=0.0)
    gone = played.by({})
    assert (list(gone.watch.service_statuses(gone.now_ns)), gone.watch._tracked) == ([], {})
    before = len(played.reported)
    played.windows.remove_rubric("qa")
    del watched["qa"]
    events = played.watch.look(Observed(now_ns=played.now_ns), {}, {})
    assert {event.transition.value for event in events} == {"unknown"}
    assert list(played.watch.service_statuses(played.now_ns)) == []
    assert not played.watch.is_in_force("qa", "qa@1")
    assert len(played.reported) == before


def test_a_look_costs_each_service_the_same_whatever_their_number():
    def a_look(services: int) -> int:
        windows = Windows(QUICK.window_ns)
        watch = Watch(QUICK, windows)
        for number in range(services):
            key = KEY._replace(service=f"shop {number}")
            seen = Observation(identity=str(number), at_ns=10**18, passed=True, slices={"release": "1"})
            windows.add(key, seen)
            watch.learn(key, seen)
        watch.look(Observed(now_ns=10**18 + MINUTE_NS), {}, {})
        return steps(lambda: watch.look(Observed(now_ns=10**18 + 2 * MINUTE_NS), {}, {}))

    assert a_look(160) <= 4.5 * a_look(40)
