"""One status, one alert, one notice: whoever leads, and whoever leaves."""

from __future__ import annotations

import asyncio
import atexit
import json
import math
import random
import tracemalloc
import zlib
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import pytest

from sidejudge.integrations.postgres.database import DatabaseAway
from sidejudge.integrations.postgres.shared import WindowRow
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.fleet.build import FleetBoard
from sidejudge.monitor.alerting.fleet.document import FleetDocument, read_document
from sidejudge.monitor.alerting.fleet.publish import SlicePublisher
from sidejudge.monitor.alerting.fleet.slices import SLICE_NS, decoded, slice_of
from sidejudge.monitor.alerting.fleet.status import FleetStatus
from sidejudge.monitor.alerting.fleet.windows import FleetWindows, values_of
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.event import Example
from sidejudge.scoring.status.status import Behind, Status
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS
from tests.alert_events import event
from tests.seed_policy import estimate_of

KEY = Key("shop", "prod", "qa")
RUNNER = asyncio.Runner(loop_factory=asyncio.new_event_loop)
"""One loop for the rounds of all tests: a new one, with new threads, takes as long as a round."""
atexit.register(RUNNER.close)
DECLARED = Declaration()
WATCHED = {"qa": WatchedWindow(on_average={"tone": (0.5, True)}, blocking=("pii",))}


class Tables:
    """What all monitors share, without a server."""

    def __init__(self):
        self.rows, self.states, self.reads = {}, {}, 0
        self.written, self.clock_s = {}, 0.0
        self.fail = False

    def of(self, monitor):
        @asynccontextmanager
        async def opened():
            yield _Transaction(self, monitor)

        return opened


class _Transaction:
    def __init__(self, tables, monitor):
        self.tables, self.monitor = tables, monitor

    async def publish(self, slices):
        self.tables.rows |= {(self.monitor, name): body for name, body in slices.items()}
        self.tables.clock_s += 1
        self.tables.written |= {(self.monitor, name): self.tables.clock_s for name in slices}

    async def published(self, younger_s):
        self.tables.reads += 1
        return [WindowRow(*place, body, 0.0) for place, body in self.tables.rows.items()]

    async def own(self):
        return {name: body for (monitor, name), body in self.tables.rows.items() if monitor == self.monitor}

    async def held(self):
        return {name: self.tables.written.get((self.monitor, name), 0.0) for name in await self.own()}

    async def save(self, states):
        if self.tables.fail:
            raise ConnectionError("away")
        self.tables.states |= states

    async def load(self, names):
        return {name: self.tables.states[name] for name in names if name in self.tables.states}


EXAMPLE = Example(trace_id="ab", reason="what a person wrote", composite=0.1, closed_ns=1)


class Member:
    """A monitor: its windows, what it publishes, and what its receivers got or it noted."""

    def __init__(self, name, fleet):
        self.name, self.fleet = name, fleet
        self.sent, self.noted = [], []
        self.windows = Windows(fleet.declared.window_ns, longest_ns=DAY_NS, enough=30)
        self.publisher = SlicePublisher(self.windows, WATCHED, lambda _: "1")
        self.undelivered = self.ahead_ns = 0
        self.waiting = self.behind = 0.0
        self.approved = 1.0
        self.status = FleetStatus(
            name=name, declared=fleet.declared, watched=WATCHED, publisher=self.publisher,
            clock_ns=lambda: fleet.now_ns + self.ahead_ns, pass_on=self._pass_on, note=self._note,
            undelivered=lambda: self.undelivered, illustrated=lambda event: replace(event, examples=(EXAMPLE,)),
            clock_s=lambda: fleet.now_ns / 1e9, waiting=lambda _: {KEY: self.waiting} if self.waiting else {},
            behind=lambda _: {KEY: Behind(self.behind, self.approved * self.behind)} if self.behind else {},
        )  # fmt: skip

    async def _pass_on(self, event):
        assert self.status.leads
        assert event.examples == (EXAMPLE,)
        self.sent.append(event.id)

    async def _note(self, event):
        self.noted.append(event.id)

    def take(self, seen, key=KEY):
        seen = replace(seen, at_ns=seen.at_ns + self.ahead_ns)
        self.windows.add(key, seen)
        self.publisher.seen(key, seen)

    async def round(self, *, leading):
        await self.status.round(self.fleet.tables.of(self.name), leading=leading)


class Simulated:
    def __init__(self, members, declared=DECLARED):
        self.declared = declared
        self.now_ns = 1_790_000_000 * 10**9 // SLICE_NS * SLICE_NS
        self.tables, self.rng, self.count = Tables(), random.Random(1), 0
        self.members = [Member(f"m{each}", self) for each in range(members)]
        self.leader = self.members[0]

    def run(self, minutes, *, failing, per_minute=12):
        async def go():
            for _ in range(minutes):
                for place in sorted(self.rng.randrange(1, SLICE_NS) for _ in range(per_minute)):
                    self.count += 1
                    seen = Observation(
                        identity=str(self.count), at_ns=self.now_ns + place, passed=self.rng.random() > failing,
                        metrics={"tone": self.rng.random()},
                    )  # fmt: skip
                    self.rng.choice(self.members).take(seen)
                self.now_ns += SLICE_NS + 10**9 if not self.now_ns % SLICE_NS else SLICE_NS
                for member in sorted(self.members, key=lambda each: each is not self.leader):
                    await member.round(leading=member is self.leader)

        RUNNER.run(go())

    def firing(self, member):
        return sorted(each.condition.id for each in member.status.posted() if each.alert.stage.value == "firing")

    def state(self, member):
        (status,) = member.status.current(self.now_ns).services
        return status.appraisal.status


@pytest.mark.parametrize("mode", ["adaptive", "bound", "point"])
def test_what_words_decide_alone_ends_no_alarm_of_a_fleet_while_the_rest_waits_and_the_leader_changes(mode):
    fleet = Simulated(3, replace(DECLARED, policy=replace(DECLARED.policy, mode=mode)))
    fleet.run(60, failing=0.5)
    assert fleet.state(fleet.leader) is Status.CRITICAL
    for minute in range(80):
        fleet.members[1].waiting += 8
        fleet.members[2].waiting += 4
        if minute == 40:
            fleet.leader = fleet.members[2]
        fleet.run(1, failing=0.0, per_minute=3)
        assert "pass_rate_critical" in fleet.firing(fleet.leader)
    (status,) = fleet.members[0].status.current(fleet.now_ns).services
    assert (status.appraisal.status, status.waiting) == (Status.CRITICAL, 80 * 12 - 8)  # it publishes after the leader
    assert status.appraisal.reason.endswith("; traces without an answer may decide otherwise")
    fleet.members[1] = Member("m1", fleet)  # it starts again, and reads again what waited
    found = []
    for _ in range(6):
        fleet.run(1, failing=0.0, per_minute=3)
        (status,) = fleet.leader.status.current(fleet.now_ns).services
        found.append(status.waiting)
    assert (found[0], found[-1]) == (80 * 12, 80 * 4)
    fleet.members[2].waiting = 0.0
    fleet.run(100, failing=0.0)
    assert fleet.firing(fleet.leader) == []


def test_what_waited_at_a_monitor_before_it_began_again_goes_in_minutes_also_where_its_clock_is_set_back_then():
    fleet = Simulated(2)
    fleet.members[1].waiting = 40.0
    fleet.run(10, failing=0.0)
    fleet.members[1] = Member("m1", fleet)
    fleet.members[1].ahead_ns = HOUR_NS
    fleet.run(1, failing=0.0)
    fleet.members[1].ahead_ns = 0
    fleet.run(2, failing=0.0)
    (before,) = fleet.leader.status.current(fleet.now_ns).services
    fleet.run(4, failing=0.0)
    (after,) = fleet.leader.status.current(fleet.now_ns).services
    assert (before.waiting, after.waiting) == (40, 0)


@pytest.mark.parametrize("mode", ["adaptive", "bound", "point"])
def test_what_words_refute_alone_raises_no_alarm_of_a_fleet_also_of_what_waits_at_a_monitor_that_is_gone(mode):
    fleet = Simulated(3, replace(DECLARED, policy=replace(DECLARED.policy, mode=mode)))
    fleet.run(90, failing=0.02)
    gone = fleet.members[2]
    for minute in range(90):
        fleet.members[1].waiting += 30
        gone.waiting += 25
        if minute == 40:
            fleet.members.remove(gone)
        fleet.run(1, failing=1.0, per_minute=1)
        assert fleet.firing(fleet.leader) == []
    assert fleet.state(fleet.leader) is Status.INSUFFICIENT_DATA
    for _ in range(30):
        fleet.members[1].waiting -= 90
        fleet.run(1, failing=0.01, per_minute=100)
        assert fleet.firing(fleet.leader) == []
    fleet.run(30, failing=0.02)
    assert (fleet.firing(fleet.leader), fleet.state(fleet.leader)) == ([], Status.HEALTHY)


@pytest.mark.parametrize("mode", ["adaptive", "bound", "point"])
def test_what_words_refute_first_raises_no_alarm_of_a_fleet_that_waits_for_slow_judges(mode):
    fleet = Simulated(3, replace(DECLARED, policy=replace(DECLARED.policy, mode=mode)))
    fleet.run(90, failing=0.02)
    for _ in range(60):
        fleet.members[1].behind += 120
        fleet.members[2].behind += 80
        fleet.run(1, failing=1.0, per_minute=3)
        assert fleet.firing(fleet.leader) == []
    assert (fleet.state(fleet.leader), fleet.leader.status.current(fleet.now_ns).services[0].waiting) in {
        (Status.HEALTHY, 0), (Status.INSUFFICIENT_DATA, 0),
    }  # fmt: skip
    fleet.members[1].behind = fleet.members[2].behind = 0.0
    fleet.run(30, failing=1.0, per_minute=3)
    assert "pass_rate_critical" in fleet.firing(fleet.leader)


@pytest.mark.parametrize(("approved", "status"), [(0.8, Status.INSUFFICIENT_DATA), (0.9, Status.HEALTHY)])
def test_what_waits_for_a_slow_judge_of_one_monitor_weighs_in_a_fleet_as_many_traces_as_it_stands_for(approved, status):
    fleet = Simulated(3)
    fleet.run(90, failing=0.1)
    (shown,) = fleet.leader.status.current(fleet.now_ns).services
    fleet.members[1].behind, fleet.members[1].approved = 2 * shown.estimate.weight_sum, approved
    fleet.run(2, failing=0.1)
    assert fleet.state(fleet.leader) is status


@pytest.mark.parametrize("phase_s", [0, 7, 14])
@pytest.mark.parametrize("begin_s", [1, 25, 59])
def test_a_collapse_is_passed_on_within_two_minutes_in_whichever_second_it_begins(begin_s: int, phase_s: int) -> None:
    fleet = Simulated(2)
    fleet.run(40, failing=0.02)
    second_ns, fleet.leader.sent = 10**9, []
    start_ns = fleet.now_ns // SLICE_NS * SLICE_NS + SLICE_NS
    begin_ns = start_ns + begin_s * second_ns

    async def go() -> None:
        for at_ns in range(start_ns, begin_ns + 121 * second_ns, second_ns):
            fleet.now_ns = at_ns
            for n in range(2):
                seen = Observation(identity=f"{at_ns}-{n}", at_ns=at_ns, passed=at_ns < begin_ns, metrics={})
                fleet.members[n].take(seen)
            if at_ns // second_ns % 15 == phase_s:  # `fleet.every`
                for member in reversed(fleet.members):
                    await member.round(leading=member is fleet.leader)

    RUNNER.run(go())
    assert fleet.leader.sent


def test_a_collapse_is_seen_at_a_monitor_whose_clock_was_hours_ahead_and_was_set_back() -> None:
    fleet = Simulated(2)
    fleet.run(40, failing=0.02)
    other = fleet.members[1]
    other.ahead_ns = 8 * HOUR_NS
    fleet.run(10, failing=0.02)
    other.ahead_ns = 0
    fleet.run(10, failing=0.02)
    assert not fleet.leader.sent
    fleet.members.remove(fleet.leader)  # verdicts come to the other one alone
    for _ in range(4):
        fleet.run(1, failing=1.0)
        RUNNER.run(fleet.leader.round(leading=True))
    assert fleet.leader.sent


def test_a_leader_whose_clock_was_set_back_looks_at_once() -> None:
    fleet = Simulated(1)
    fleet.now_ns += 8 * HOUR_NS
    fleet.run(40, failing=0.02)
    fleet.now_ns -= 8 * HOUR_NS
    fleet.run(2, failing=0.02)
    document = fleet.leader.status.current(fleet.now_ns)
    assert document is not None
    assert 0 <= fleet.now_ns - document.at_ns <= 2 * SLICE_NS


@pytest.mark.parametrize("phase_s", [0, 7, 14])
def test_a_minute_that_is_not_complete_is_no_silence(phase_s: int) -> None:
    second_ns = 10**9
    fleet = Simulated(2, replace(DECLARED, window_ns=SLICE_NS, look_ns=15 * second_ns))
    states = []

    async def go(seconds: int, per_second: int) -> None:
        for _ in range(seconds):
            fleet.now_ns += second_ns
            for n in range(per_second):
                seen = Observation(identity=f"{fleet.now_ns}-{n}", at_ns=fleet.now_ns, passed=True, metrics={})
                fleet.members[n % 2].take(seen)
            if fleet.now_ns // second_ns % 15 == phase_s:  # `fleet.every`
                for member in reversed(fleet.members):
                    await member.round(leading=member is fleet.leader)
                document = fleet.leader.status.current(fleet.now_ns)
                states.extend(each.appraisal.status for each in document.services)

    RUNNER.run(go(300, 20))
    assert states
    assert Status.NO_DATA not in states
    RUNNER.run(go(900, 0))
    assert states[-1] is Status.NO_DATA


def test_a_status_that_is_looked_at_rarely_is_the_present_one_between_two_looks():
    fleet = Simulated(2, replace(DECLARED, look_ns=10 * SLICE_NS))
    fleet.run(15, failing=0.02)
    status = fleet.members[1].status
    known = [status.current(status.document.at_ns + minutes * SLICE_NS) is not None for minutes in (1, 9, 29, 30)]
    assert known == [True, True, True, False]


def test_the_alerts_of_the_fleet_stand_until_a_monitor_notifies_for_itself():
    fleet = Simulated(2)
    fleet.run(40, failing=0.02)
    fleet.run(10, failing=0.9)
    own = SimpleNamespace(declared=DECLARED, posted=lambda: iter(()))
    board = FleetBoard(own, SimpleNamespace(away_for_s=0.0), clock_ns=lambda: fleet.now_ns)
    board.status = fleet.members[1].status
    found = []
    for minutes in (0, 9, 2):
        fleet.now_ns += minutes * SLICE_NS
        found.append({each.condition.id for each in board.posted()})
    assert "pass_rate_critical" in found[0]
    assert found == [found[0], found[0], set()]


def test_a_monitor_notifies_for_itself_while_nobody_reaches_a_status_of_the_fleet():
    fleet, passed_on = Simulated(2), []
    fleet.run(5, failing=0.02)
    board = FleetBoard(
        SimpleNamespace(declared=DECLARED), SimpleNamespace(away_for_s=0.0), clock_ns=lambda: fleet.now_ns
    )
    board.status = fleet.members[1].status

    def is_left_to_others():
        async def take(event):
            passed_on.append(event.condition)

        passed_on.clear()
        RUNNER.run(board.own_events(take)(event()))
        assert board.is_quiet("pass_rate_critical") == (not passed_on)
        assert board.is_shared("pass_rate_critical") == (board.is_quiet("pass_rate_critical"))
        return board.is_quiet("pass_rate_critical")

    assert is_left_to_others()
    fleet.now_ns += 9 * SLICE_NS  # the leader holds its lease, and every look of it fails
    assert is_left_to_others()
    fleet.now_ns += 2 * SLICE_NS
    assert not is_left_to_others()
    fleet.run(1, failing=0.02)
    assert is_left_to_others()


async def test_the_leader_sends_the_report_and_each_monitor_where_the_fleet_is_away_for_long():
    claimed, answers = [], [True, None, DatabaseAway("away")]

    async def claim(task, *, take):
        claimed.append((task, take))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    shared = SimpleNamespace(away_for_s=0.0, claim=claim)
    board = FleetBoard(SimpleNamespace(declared=DECLARED), shared, clock_ns=lambda: 0)
    assert await board.reports(1_795_248_000) is True, "nothing is shared yet"
    board.status = SimpleNamespace(leads=True, unknown_for_s=0.0)
    assert await board.reports(1_795_248_000) is True
    board.status.leads = False
    assert [await board.reports(1_795_248_000) for _ in range(2)] == [None, None]
    assert claimed == [("report of 2026-11-21 08:00", leads) for leads in (True, False, False)]
    shared.away_for_s = HOUR_NS / 1e9
    assert await board.reports(1_795_248_000) is True


def test_a_leader_leads_while_its_rounds_run(monkeypatch):
    fleet, seen, load = Simulated(1), [], _Transaction.published
    (member,) = fleet.members
    fleet.run(1, failing=0.02)

    async def looking(tables, younger_s):
        seen.append(member.status.leads)
        return await load(tables, younger_s)

    monkeypatch.setattr(_Transaction, "published", looking)
    fleet.run(3, failing=0.02)
    assert seen == [True] * 3


def test_a_leader_that_leaves_at_once_after_a_notice_leaves_no_duplicate():
    fleet = Simulated(2)
    fleet.run(40, failing=0.02)
    while not fleet.leader.sent:
        fleet.run(1, failing=0.7)
    first, sent = fleet.leader, set(fleet.leader.sent)
    fleet.leader = fleet.members[1]  # before the next look, as in a restart in order
    RUNNER.run(fleet.leader.round(leading=True))
    assert not set(fleet.leader.sent) & sent
    assert sent <= set(fleet.leader.noted)
    assert set(first.sent) == sent
    assert fleet.leader.status.document.sent
    assert not any(EXAMPLE.reason.encode() in zlib.decompress(body) for body in fleet.tables.states.values())


def test_what_is_delivered_between_two_looks_is_saved_in_order_when_the_leader_ends():
    fleet = Simulated(2)
    fleet.run(40, failing=0.02)
    fleet.leader.undelivered = 1
    while not fleet.leader.sent:
        fleet.run(1, failing=0.7)
    first, sent = fleet.leader, set(fleet.leader.sent)
    first.undelivered = 0  # the receiver is back

    async def change():
        await first.status.end(fleet.tables.of(first.name))
        await fleet.members[1].round(leading=True)

    RUNNER.run(change())
    assert not set(fleet.members[1].sent) & sent
    assert sent <= set(fleet.members[1].noted)


def test_all_show_one_status_and_receivers_get_each_event_once_whoever_leads():
    fleet = Simulated(3)
    fleet.run(40, failing=0.02)
    assert [fleet.state(each) for each in fleet.members] == [Status.HEALTHY] * 3
    assert [each.sent for each in fleet.members] == [[], [], []]
    fleet.run(30, failing=0.6)
    assert [fleet.state(each) for each in fleet.members] == [Status.CRITICAL] * 3
    assert "pass_rate_critical" in fleet.firing(fleet.members[2])
    first = fleet.leader
    assert len(first.sent) == len(set(first.sent)) > 0
    assert set(first.sent) <= set(fleet.members[1].noted)

    # The leader is killed; its verdicts stay in the windows, and the next one goes on where it ended.
    fleet.members.remove(first)
    fleet.leader = fleet.members[0]
    before = fleet.members[0].status.document.services[0].estimate.n
    fleet.run(2, failing=0.6, per_minute=1)
    status = fleet.members[1].status.document.services[0]
    assert status.estimate.n >= before - 26
    assert status.since_ns is not None
    assert fleet.state(fleet.members[1]) is Status.CRITICAL
    assert fleet.leader.sent == []
    fleet.run(150, failing=0.0)
    assert fleet.state(fleet.members[1]) is Status.HEALTHY
    assert fleet.leader.sent
    assert not set(fleet.leader.sent) & set(first.sent)


def test_what_receivers_do_not_have_yet_is_passed_on_by_the_next_leader():
    fleet = Simulated(2)
    fleet.run(30, failing=0.02)
    fleet.leader.undelivered = 1  # its receiver is away
    fleet.run(30, failing=0.6)
    lost = fleet.leader
    fleet.members.remove(lost)
    fleet.leader = fleet.members[0]
    assert fleet.leader.noted == []
    fleet.run(2, failing=0.6)
    assert set(lost.sent) <= set(fleet.leader.sent)


def test_a_leader_that_could_not_save_passes_nothing_on_and_begins_again_with_what_is_saved():
    fleet = Simulated(2)
    fleet.run(40, failing=0.02)
    fleet.tables.fail = True
    with pytest.raises(ConnectionError):
        fleet.run(30, failing=0.6)
    assert not fleet.leader.status.leads
    assert fleet.leader.sent == []
    fleet.tables.fail = False
    fleet.run(30, failing=0.6)
    assert fleet.state(fleet.members[1]) is Status.CRITICAL
    assert fleet.leader.sent


def test_a_revision_and_a_withdrawal_reach_the_windows_of_the_fleet():
    fleet = Simulated(1)
    (member,) = fleet.members
    for number in range(40):
        member.take(Observation(identity=str(number), at_ns=fleet.now_ns + 1 + number, passed=number > 3))
    begin_ns = fleet.now_ns
    fleet.run(2, failing=0, per_minute=0)
    found = fleet.leader.status.document.services[0].estimate
    assert (found.n, found.failures) == (40, 4)
    revised = Observation(identity="0", at_ns=begin_ns + 1, passed=True, revision=2)
    member.publisher.touched(member.windows.time_of("0", "qa"))
    member.take(revised)
    member.publisher.touched(member.windows.time_of("9", "qa"))
    member.windows.withdraw("9", "qa")
    fleet.run(2, failing=0, per_minute=0)
    found = fleet.leader.status.document.services[0].estimate
    assert (found.n, found.failures) == (39, 3)


def restored(held, number, **changed):
    metrics = dict(zip(held.metrics, held.values, strict=True))
    return replace(Observation(identity=str(number), at_ns=held.at_ns, passed=held.passed, metrics=metrics), **changed)


@pytest.mark.parametrize(("rubric", "stays"), [("qa", True), ("removed", False)])
def test_a_rubric_that_the_leader_does_not_have_leaves_the_status_with_its_last_verdict(rubric, stays):
    fleet = Simulated(2)
    key = KEY._replace(rubric=rubric)

    def watched():
        return [each.rubric for each in fleet.leader.status.current(fleet.now_ns).services]

    for minute in range(120):
        fleet.members[1].take(Observation(identity=f"{minute}", at_ns=fleet.now_ns + 1, passed=True), key)
        fleet.run(1, failing=0, per_minute=0)
    assert watched() == [rubric], "another monitor may have it"
    fleet.run(45, failing=0, per_minute=0)
    assert watched() == [rubric]
    fleet.run(90, failing=0, per_minute=0)
    assert watched() == ([rubric] if stays else [])
    fleet.leader = fleet.members[1]
    fleet.run(2, failing=0, per_minute=0)
    assert watched() == ([rubric] if stays else [])


def test_a_monitor_that_starts_again_publishes_nothing_twice():
    fleet = Simulated(1)
    fleet.run(5, failing=0.1)
    (former,) = fleet.members
    again = Member("m0", fleet)
    for number, held in enumerate(former.windows.members(KEY, fleet.now_ns)):
        again.take(restored(held, number))
    before, written = dict(fleet.tables.rows), dict(fleet.tables.written)
    fleet.members, fleet.leader = [again], again
    fleet.run(1, failing=0.1)
    assert {place: fleet.tables.written[place] for place in before} == written
    assert {place: fleet.tables.rows[place] for place in before} == before
    assert len(fleet.tables.rows) == len(before) + 1


@pytest.mark.parametrize("goes_on", [False, True], ids=["for good", "and starts again within the minute"])
def test_a_monitor_that_ends_in_order_leaves_the_verdicts_of_its_last_minute_to_the_fleet(goes_on):
    fleet = Simulated(2)
    fleet.run(3, failing=0)
    former, other = fleet.members
    seen = [Observation(identity=f"last {n}", at_ns=fleet.now_ns + n + 1, passed=n > 3) for n in range(20)]
    for each in seen[:10]:
        former.take(each)
    fleet.now_ns += 10**9
    RUNNER.run(former.status.end(fleet.tables.of(former.name)))
    again = Member(former.name, fleet)
    if goes_on:
        for number, held in enumerate(former.windows.members(KEY, fleet.now_ns)):
            again.take(restored(held, number))
        RUNNER.run(again.round(leading=False))
        for each in seen[10:]:
            again.take(each)
    fleet.now_ns -= 10**9
    fleet.members, fleet.leader = [again, other] if goes_on else [other], other
    fleet.run(3, failing=0, per_minute=0)
    (found,) = fleet.leader.status.document.services
    n = 36 + (20 if goes_on else 10)
    assert (found.estimate.n, found.estimate.failures) == (n, 4)
    followed = sum(
        part.firsts.total() for body in fleet.tables.rows.values() for _, _, part in decoded(body)
    )  # fmt: skip
    assert followed == n


@pytest.mark.parametrize("revises", [False, True], ids=["came late", "revised"])
def test_what_a_monitor_had_judged_and_not_published_when_it_was_killed_is_published_by_its_next_run(revises):
    fleet = Simulated(2)
    fleet.run(5, failing=0)
    former, other = fleet.members
    held = former.windows.members(KEY, fleet.now_ns)
    again = Member(former.name, fleet)
    for number, seen in enumerate(held):
        again.take(restored(seen, number, **({"passed": False, "revision": 2} if revises and number < 3 else {})))
    if not revises:
        again.take(Observation(identity="late", at_ns=held[0].at_ns, passed=False))
    before = dict(fleet.tables.rows)
    fleet.members, fleet.leader = [again, other], other
    fleet.run(2, failing=0, per_minute=0)
    found = fleet.leader.status.document.services[0].estimate
    assert (found.n, found.failures) == ((60, 3) if revises else (61, 1))
    changed = [place for place, body in before.items() if fleet.tables.rows[place] != body]
    assert {int(name) for _, name in changed} == {slice_of(seen.at_ns) for seen in held[: 3 if revises else 1]}
    for place in changed:
        was, now = ([part.firsts for _, _, part in decoded(body[place])] for body in (before, fleet.tables.rows))
        assert now == was, "they were followed already"


def test_a_monitor_that_starts_with_an_older_backup_of_its_store_takes_no_verdict_from_what_was_published():
    fleet = Simulated(2)
    fleet.run(5, failing=0)
    former, other = fleet.members
    again = Member(former.name, fleet)
    held = former.windows.members(KEY, fleet.now_ns)
    for number, seen in enumerate(held[:-3]):
        again.take(restored(seen, number))
    before = dict(fleet.tables.rows)
    fleet.members, fleet.leader = [again, other], other
    fleet.run(2, failing=0, per_minute=0)
    assert {place: fleet.tables.rows[place] for place in before} == before
    assert fleet.leader.status.document.services[0].estimate.n == 60


def test_a_run_with_another_version_of_a_rubric_leaves_what_was_published():
    fleet = Simulated(1)
    fleet.run(3, failing=0.1)
    before = dict(fleet.tables.rows)
    again = Member("m0", fleet)
    again.publisher._version = lambda _: "2"
    again.take(Observation(identity="new", at_ns=fleet.now_ns - SLICE_NS - 2 * 10**9, passed=True))
    fleet.members, fleet.leader = [again], again
    fleet.run(2, failing=0)
    assert {place: fleet.tables.rows[place] for place in before} == before


def test_what_comes_while_its_slice_is_being_published_is_published_in_the_next_round():
    fleet = Simulated(1)
    (member,) = fleet.members
    begin_ns = fleet.now_ns
    fleet.run(1, failing=0)
    member.take(Observation(identity="first", at_ns=begin_ns + 1, passed=False))

    async def go():
        due, published = member.publisher.due, member.publisher.published
        cut_off = await due(fleet.now_ns)
        assert await due(fleet.now_ns) == cut_off, "nothing of it was written"
        member.take(Observation(identity="meanwhile", at_ns=begin_ns + 2, passed=False))
        published([*cut_off], dict.fromkeys(cut_off, 9.0), fleet.now_ns, DAY_NS)
        anew = await due(fleet.now_ns)
        assert anew.keys() == cut_off.keys()
        assert anew != cut_off
        published([*anew], dict.fromkeys(anew, 10.0), fleet.now_ns, DAY_NS)
        assert await due(fleet.now_ns) == {}

    RUNNER.run(go())


def test_a_slice_of_an_older_backup_is_written_again():
    fleet = Simulated(1)
    begin_ns = fleet.now_ns
    fleet.run(3, failing=0)
    tables = fleet.tables
    backup = dict(tables.rows), dict(tables.written)
    fleet.members[0].take(Observation(identity="late", at_ns=begin_ns + 1, passed=False))
    fleet.run(2, failing=0, per_minute=0)
    after = dict(tables.rows)
    assert after != backup[0]
    tables.rows, tables.written = backup
    fleet.run(2, failing=0, per_minute=0)
    assert {place: tables.rows.get(place) for place in after} == after


@pytest.mark.parametrize("lost_minutes", [7, 40])
def test_a_database_that_was_set_up_anew_gets_what_it_had_from_those_who_had_it(lost_minutes: int) -> None:
    fleet = Simulated(3)
    fleet.run(30, failing=0.02)
    fleet.run(10, failing=0.6)
    fleet.run(2, failing=0, per_minute=0)
    found = fleet.leader.status.document.services[0].estimate
    rows, tables = dict(fleet.tables.rows), fleet.tables
    backed_up = str((fleet.now_ns - lost_minutes * SLICE_NS) // SLICE_NS)
    tables.rows = {place: body for place, body in rows.items() if place[1] < backed_up}
    tables.states = {}
    assert len(tables.rows) < len(rows)
    fleet.leader = fleet.members[1]  # leases are gone as well
    fleet.run(3, failing=0, per_minute=0)
    assert {place: tables.rows.get(place) for place in rows} == rows
    again = fleet.leader.status.document.services[0].estimate
    assert (again.n, again.failures) == (found.n, found.failures)
    fleet.run(2, failing=0.6)
    assert "pass_rate_critical" in fleet.firing(fleet.members[2])


def test_the_document_is_read_as_it_was_written_and_nothing_else_is():
    windows = Windows(DECLARED.window_ns)
    watch = Watch(DECLARED, windows, WATCHED)
    for number in range(50):
        seen = Observation(
            identity=str(number), at_ns=1 + number, passed=number > 5, composite=0.5, metrics={"tone": 0.5}, cluster="s"
        )
        windows.add(KEY, seen)
        watch.learn(KEY, seen)
    watch.look(Observed(now_ns=100), {}, {})
    document = FleetDocument(
        at_ns=7, leader="m", services=watch.service_statuses(100), shares={"m": 50}, sent=[],
        alerts=[alert.to_json() for alert in watch.alerts.values()],
    )  # fmt: skip
    assert read_document(document.encoded()) == document
    for body in (b"", b"x", document.encoded()[:-9]):
        with pytest.raises(ValueError, match="not a status"):
            read_document(body)


def _slice(**changed):
    part = {
        "n": {"members": 1, "n": 1, "alone": 1}, "sum": {"weight": [1.0], "squared_weight": [1.0]},
        "clusters": {}, "firsts": [],
    }  # fmt: skip
    return zlib.compress(json.dumps([[*KEY, "1", {**part, **changed}]]).encode())


ABSURD = {
    "more than any monitor has": _slice(n={"members": 10**9, "n": 10**9, "alone": 10**9}, sum={"weight": [1e9]}),
    "a name without end": _slice(slices=[["name", "x" * 10_000, True, 1.0, 1]]),
    "NaN": _slice(sum={"weight": [math.nan]}),
    "infinite": _slice(sum={"weight": [math.inf]}),
    "overflows": _slice(sum={"weight": [1e308] * 9}),
    "negative weight": _slice(sum={"weight": [-1.0]}),
    "negative n": _slice(n={"n": -5}),
    "n beyond floats": _slice(n={"n": 10**400}),
    "more failures than verdicts": _slice(n={"n": 1, "failures": 9}),
    "a first without weight": _slice(firsts=[[True, 0.0, None, None, 1]]),
    "a session counted in words": _slice(clusters={"s": "many"}),
    "a service that is a list": zlib.compress(b'[[["x"],"prod","qa","1",{}]]'),
    "another schema": zlib.compress(b'{"schema":2}'),
    "nested": zlib.compress(b"[" * 200_000),
    "a gigantic list": zlib.compress(json.dumps([[str(n), "p", "qa", "1", {}] for n in range(20_001)]).encode()),
}


@pytest.mark.parametrize("body", ABSURD.values(), ids=ABSURD)
def test_a_slice_that_makes_no_sense_is_refused_with_a_reason_and_counts_nowhere(body):
    windows = FleetWindows(DECLARED.window_ns)
    windows.put("sound", 7, _slice())
    with pytest.raises(ValueError, match="not a slice of verdicts: "):
        windows.put("broken", 7, body)
    assert (estimate_of(windows, KEY).n, estimate_of(windows, KEY).weight_sum, windows.keys()) == (1, 1.0, [KEY])


def test_slices_and_states_of_a_broken_version_leave_the_status_as_it_is_without_them(caplog):
    sound, harmed = Simulated(2), Simulated(2)
    for fleet in (sound, harmed):
        fleet.run(5, failing=0.1)
    now = harmed.now_ns // SLICE_NS
    for place, body in enumerate(ABSURD.values()):
        harmed.tables.rows["broken", str(now - 1 - place % 3) if place < 3 else str(now - place)] = body
    for name in (str(now + 10**6), "9" * 5000, "-1", "x"):
        harmed.tables.rows["broken", name] = _slice()
        harmed.tables.rows["m0", name] = _slice()
    harmed.tables.states["alerts/state"] = zlib.compress(b'{"watch": 3}')
    for fleet in (sound, harmed):
        fleet.leader = fleet.members[1]  # who reads everything anew
        fleet.run(5, failing=0.1)
    of = [fleet.members[0].status.document for fleet in (sound, harmed)]
    assert of[0].services[0].estimate == of[1].services[0].estimate
    assert of[1].shares.keys() == {"m0", "m1"}
    causes = [record.getMessage() for record in caplog.records]
    assert sum("a slice of the fleet could not be read" in each for each in causes) <= 2 * 2
    assert any("begins anew" in each for each in causes)
    harmed.tables.states["alerts/status"] = zlib.compress(b'{"at_ns": 5, "leader": "x", "alerts": [{}]}')
    RUNNER.run(harmed.members[0].round(leading=False))
    assert harmed.members[0].status.document == of[1]


@cache
def bomb() -> bytes:
    """What unpacks to 400 MB."""
    packed = zlib.compressobj(1)
    return b"".join(packed.compress(b" " * (1 << 20)) for _ in range(400)) + packed.flush()


def test_a_state_that_unpacks_to_more_than_any_leader_writes_is_not_unpacked():
    fleet = Simulated(1)
    fleet.run(1, failing=0.1)
    body = fleet.tables.states["alerts/state"]
    fleet.tables.states["alerts/state"] = bomb()
    tracemalloc.start()
    try:
        fleet.members.append(Member("m1", fleet))
        fleet.leader = fleet.members[1]
        fleet.run(1, failing=0.1)
        assert tracemalloc.get_traced_memory()[1] < 250 << 20
    finally:
        tracemalloc.stop()
    assert zlib.decompress(fleet.tables.states["alerts/state"])[:1] == zlib.decompress(body)[:1] == b"{"


@pytest.mark.parametrize("read", [read_document, lambda body: [*decoded(body)], lambda body: [*values_of(body, 1)]])
def test_nor_is_any_other_record_of_a_fleet_that_unpacks_to_more(read):
    packed = bomb()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="not "):
            read(packed)
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()


def test_two_configurations_in_one_fleet_are_named_after_an_hour_and_not_while_one_is_rolled_out(caplog):
    fleet = Simulated(2)
    leader, other = fleet.members
    other.status._watches = "another"
    fleet.run(50, failing=0.1, per_minute=1)
    assert (leader.status.other_settings, other.status.other_settings) == (None, None)
    other.status._watches = leader.status._watches
    fleet.run(1, failing=0.1, per_minute=1)
    other.status._watches = "another"
    fleet.run(50, failing=0.1, per_minute=1)
    assert other.status.other_settings is None
    fleet.run(15, failing=0.1, per_minute=1)
    assert "fleet.schema_name" in other.status.other_settings
    assert leader.status.other_settings is None
    assert [each.getMessage() for each in caplog.records].count("one fleet, two configurations") == 1
