"""Limits of continuous metrics over a fleet: what one monitor with all the traffic would find, and one notice."""

from __future__ import annotations

import json
import random
import zlib
from typing import Final

import pytest

from sidejudge.monitor.alerting.fleet.document import FleetDocument, read_document
from sidejudge.monitor.alerting.fleet.publish import SlicePublisher
from sidejudge.monitor.alerting.fleet.slices import SLICE_NS, decoded
from sidejudge.monitor.alerting.fleet.status import FleetStatus
from sidejudge.monitor.alerting.fleet.windows import FleetValues, divided, values_of
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.metric_watch import MetricWatch
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.metric_status import MetricLimit
from sidejudge.scoring.status.status import Policy, Status

from .test_fleet_status import RUNNER, Tables

LIMITS: Final = (
    MetricLimit(name="latency_p95", measure="latency", quantile=0.95, warning=5.0, critical=10.0, unit="seconds"),
    MetricLimit(name="tone_mean", measure="tone", rubric="qa", warning=0.7, below=True, bounds=(0.0, 1.0)),
)  # fmt: skip
DECLARED: Final = Declaration(policy=Policy(mode="bound"), metrics=LIMITS)
RUNS, GRADED = Key("shop", "prod", ""), Key("shop", "prod", "qa")
BEGIN: Final = 1_790_000_000 * 10**9 // SLICE_NS * SLICE_NS


class Member:
    """A monitor: windows, what it publishes, and what receivers got."""

    def __init__(self, name: str, tables: Tables) -> None:
        self.name, self.tables, self.now_ns, self.sent = name, tables, BEGIN, list[str]()
        self.windows, self.figures = (LimitedWindows(DECLARED) for _ in range(2))
        self.publisher = SlicePublisher(self.windows, {}, lambda _: "1", figures=self.figures, limits=LIMITS)
        self.status = FleetStatus(
            name=name, declared=DECLARED, watched={}, publisher=self.publisher, clock_ns=lambda: self.now_ns,
            pass_on=self._pass_on, note=self._note,
        )  # fmt: skip

    async def _pass_on(self, event):
        self.sent.append(event.condition)

    async def _note(self, event): ...

    def take(self, key: Key, seen: Observation) -> None:
        if key is RUNS:
            self.figures.add(key, seen)
            self.publisher.touched(seen.at_ns)
        else:
            self.windows.add(key, seen)
            self.publisher.seen(key, seen)

    def round(self, now_ns: int, *, leading: bool) -> None:
        self.now_ns = now_ns
        RUNNER.run(self.status.round(self.tables.of(self.name), leading=leading))


def traffic(rng: random.Random, minutes: int, *, slower: float) -> list[tuple[Key, Observation]]:
    found = []
    for number in range(minutes * 8):
        at_ns = BEGIN + minutes * SLICE_NS * number // (minutes * 8) + rng.randrange(1, 10**9)
        stated = {
            "identity": f"{slower}/{number}", "at_ns": at_ns, "passed": True, "weight": rng.choice([1.0, 3.0]),
            "cluster": rng.choice([None, "a", "b", str(number)]),
        }  # fmt: skip
        found.append((RUNS, Observation(**stated, metrics={"latency": rng.lognormvariate(0, 0.8) * slower})))
        found.append((GRADED, Observation(**stated, metrics={"tone": rng.random() ** 0.2, "other": 1.0})))
    return found


@pytest.mark.parametrize(("slower", "firing"), [(1.0, set()), (6.0, {"metric_critical", "metric_warning"})])
def test_the_fleet_finds_what_one_monitor_with_all_the_traffic_finds_and_reports_it_once(slower, firing):
    tables, rng = Tables(), random.Random(5)
    members = [Member(f"m{each}", tables) for each in range(3)]
    windows, figures = (LimitedWindows(DECLARED) for _ in range(2))
    alone = MetricWatch(DECLARED, windows=windows, figures=figures)
    seen = traffic(rng, 40, slower=slower)
    for minute in range(60):
        now_ns = BEGIN + minute * SLICE_NS
        for key, each in seen:
            if now_ns - SLICE_NS < each.at_ns <= now_ns:
                rng.choice(members).take(key, each)
                (figures if key is RUNS else windows).add(key, each)
                alone.learn(key, each)
        leader = members[0] if minute < 50 else members[1]  # another one goes on from what is saved
        for member in sorted(members, key=lambda each: each is not leader):
            member.round(now_ns + 2 * 10**9, leading=member is leader)
        alone.look(alone.measured(now_ns + 2 * 10**9)(), now_ns + 2 * 10**9)
    expected = {each.limit.name: each.estimate for each in alone.statuses()}
    assert expected["latency_p95"].n == (310 if firing else 320), "an alarm shows the values since the change"
    for member in members:
        found = member.status.current(now_ns).metrics
        assert {each.limit.name for each in found} == expected.keys()
        for each in found:
            known = expected[each.limit.name]
            assert (each.estimate.n, each.estimate.value) == (known.n, known.value)
            assert each.estimate.clusters == known.clusters
            assert each.estimate.effective_n == pytest.approx(known.effective_n, rel=1e-9)
        assert {each.condition.id for each in member.status.posted() if each.alert.stage.value == "firing"} == firing
    sent = [event for member in members for event in member.sent]
    assert sorted(sent) == sorted(firing)
    assert members[2].status.covers("metric_critical")


def test_a_revision_takes_the_place_of_the_first_and_what_is_not_in_force_stays_out():
    tables = Tables()
    member = Member("m", tables)
    first = Observation(identity="t", at_ns=BEGIN + 1, passed=True, metrics={"latency": 2.0})
    member.take(RUNS, first)
    member.round(BEGIN + 2 * SLICE_NS, leading=True)
    again = Observation(identity="t", at_ns=BEGIN + 1, passed=True, metrics={"latency": 7.0}, revision=2)
    member.take(RUNS, again)
    member.round(BEGIN + 4 * SLICE_NS, leading=True)
    (status,) = member.status.current(member.now_ns).metrics
    assert (status.estimate.n, status.estimate.value) == (1, 7.0)


def test_a_slice_that_is_published_anew_before_it_is_followed_is_followed_as_it_stands_last():
    declared = Declaration(policy=Policy(mode="bound"), metrics=LIMITS[:1])
    values, number = FleetValues(declared, lambda *_: True), BEGIN // SLICE_NS
    learned: list[float] = []
    values.metrics.learn = lambda _, seen: learned.append(seen.metrics["latency"])  # type: ignore[method-assign]  # seen
    for latency, first in ((2.0, True), (7.0, False)):
        stated = [["shop", "prod", "", None, ["latency"], [[1, 1.0, None, latency]]]]
        values.put("m", number, zlib.compress(json.dumps(stated).encode()), first=first)
    values.advance(number, 0)
    values.advance(number, 0)
    assert learned == [7.0]


def test_monitors_of_the_version_before_read_the_slices_and_pass_over_the_values():
    tables = Tables()
    member = Member("m", tables)
    for key, seen in traffic(random.Random(1), 1, slower=1.0):
        member.take(key, seen)
    member.round(BEGIN + 2 * SLICE_NS, leading=False)
    ((_, name), body), *_ = tables.rows.items()
    slices, values = divided(body)
    assert [(key, part.sums.n("n")) for key, _, part in decoded(body)] == [(GRADED, 8)]
    assert list(decoded(body)) == list(decoded(slices))
    assert len(list(values_of(values, int(name)))) == 16
    assert not list(values_of(b"", int(name)))
    old = FleetDocument(at_ns=1, leader="old").encoded()
    stated = zlib.decompress(old).replace(b'"metrics":null,', b"")
    assert read_document(zlib.compress(stated)).metrics is None
    member.status._show(read_document(old))
    assert not member.status.covers("metric_warning"), "the leader does not watch limits: each its own"


@pytest.mark.parametrize(
    "stated",
    [b"[]x", b"{}", b'[["a","b","",null,["l"],[[0,1.0,null,1.0]]]]', b'[["a","b","",null,["l"],[[1,NaN,null,1.0]]]]',
     b'[["a","b","",null,["l"],[[1,1.0,null,Infinity]]]]', b'[["a","b","",null,["l"],[[1,1.0,null]]]]', b'[["a"]]'],
)  # fmt: skip
def test_what_is_no_values_is_refused(stated):
    with pytest.raises(ValueError, match="not values of metrics"):
        list(values_of(zlib.compress(stated) if stated != b"{}" else b"{}", 1))


def test_the_status_is_that_of_too_few_values_where_all_have_too_few():
    tables = Tables()
    members = [Member(f"m{each}", tables) for each in range(2)]
    for number, (key, seen) in enumerate(traffic(random.Random(1), 1, slower=9.0)):
        members[number % 4 // 2].take(key, seen)
    for member in reversed(members):
        member.round(BEGIN + 2 * SLICE_NS, leading=member is members[0])
    statuses = {each.limit.name: each.appraisal for each in members[0].status.current(members[0].now_ns).metrics}
    assert statuses["latency_p95"].status is Status.INSUFFICIENT_DATA
