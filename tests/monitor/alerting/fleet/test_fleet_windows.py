"""The merged status is that of one monitor with all the traffic."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from collections import Counter

import pytest

from sidejudge.monitor.alerting.details import WatchedWindow, details
from sidejudge.monitor.alerting.fleet import slices
from sidejudge.monitor.alerting.fleet.slices import (
    MOST_CLUSTERS,
    SLICE_NS,
    bounded,
    decoded,
    encoded,
    end_ns,
    first_of,
    key_slice,
    slice_of,
)
from sidejudge.monitor.alerting.fleet.windows import FleetWindows
from sidejudge.monitor.alerting.observation import First, Key, Observation
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.scoring.alerts.condition import Observed
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.service_status import OTHER
from sidejudge.scoring.status.status import Policy, Status
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS
from sidejudge.scoring.verdict.escalation import Escalation, EscalationCause
from tests.seed_policy import estimate_of

KEYS = [Key("shop", "prod", "qa"), Key("shop", "test", "qa"), Key("bank", "prod", "answer")]
WATCHED = WatchedWindow(blocking=("pii",), on_average={"tone": (0.5, True)}, workflow=True)
POLICY = Policy(mode="bound")
BEGIN = 1_790_000_000 * 10**9 // SLICE_NS


def traffic(rng, *, n=800, minutes=60, failing=0.1, weights=(1.0, 20.0), sessions=200, cascades=0.5):
    """Verdicts of one hour, the oldest first, some of them revised."""
    for number, place in enumerate(sorted(rng.randrange(minutes * SLICE_NS) for _ in range(n))):
        passed = None if rng.random() < 0.03 else rng.random() > failing
        cascade = None
        if passed is not None and rng.random() < cascades:
            cause = rng.choice([EscalationCause.SURE, EscalationCause.DRAWN])
            cascade = Escalation(judge="big", cause=cause, rate=0.3, passed_before=rng.random() > 0.2)
        seen = Observation(
            identity=str(number), at_ns=BEGIN * SLICE_NS + 1 + place, passed=passed, weight=rng.choice(weights) / 3,
            selection=rng.choice(["random", "forced"]), composite=rng.random() if rng.random() < 0.9 else None,
            judge_failed=passed is None and rng.random() < 0.5, blockers=("pii",) if passed is False else (),
            metrics={name: float(rng.random() > 0.1) for name in ("tools", "habits")} | {"tone": rng.random()}
            if rng.random() < 0.8 else {},
            cascade=cascade, cluster=f"s{rng.randrange(sessions)}" if sessions and rng.random() < 0.7 else None,
        )  # fmt: skip
        yield rng.choice(KEYS), seen


def bodies(verdicts):
    """What one monitor publishes: (number, body) for each minute with a verdict."""
    by_slice, firsts = {}, {}
    for key, seen in verdicts:
        number = slice_of(seen.at_ns)
        by_slice.setdefault(number, []).append((key, seen))
        first = first_of(seen, scenario=True)
        if first is not None:
            firsts.setdefault((number, key), Counter())[first] += 1
    for number, of in sorted(by_slice.items()):
        parts = summed(of)
        for key, part in parts.items():
            part.firsts = bounded(firsts.get((number, key), Counter()))
        yield number, encoded(parts, {})


def summed(verdicts):
    windows = Windows(10 * DAY_NS)
    for key, seen in verdicts:
        windows.add(key, seen)
    return {key: key_slice(windows.members(key, 0)) for key in windows.keys()}  # noqa: SIM118  # not a dict


def merged(published, now_ns, declared, watched=WATCHED):
    """The windows and the watch of a leader that gets these slices, minute by minute."""
    windows = FleetWindows(declared.window_ns, longest_ns=declared.longest_ns, enough=30)
    watch = Watch(declared, windows, {"qa": watched, "answer": watched})
    firsts = {}
    for monitor, number, body in published:
        for key, of in windows.put(monitor, number, body).items():
            firsts.setdefault(number, {}).setdefault(key, Counter()).update(of)
    for number, by_key in sorted(firsts.items()):
        for key, of in sorted(by_key.items()):
            watch.learn_together(key, of, number * SLICE_NS, end_ns(number))
    windows.advance(now_ns)
    return windows, watch


def split(verdicts, monitors, rng, by_session):
    shares = {}
    for key, seen in verdicts:
        own = seen.cluster if by_session and seen.cluster else seen.identity
        shares.setdefault(zlib.crc32(own.encode()) % monitors, []).append((key, seen))
    published = [(f"m{name}", number, body) for name, of in shares.items() for number, body in bodies(of)]
    rng.shuffle(published)  # slices come late and in any order
    return published


@pytest.mark.parametrize(("monitors", "by_session"), [(1, True), (2, False), (7, True), (60, False), (500, False)])
def test_any_division_of_the_traffic_has_the_status_of_one_monitor_to_the_last_digit(monitors, by_session):
    rng = random.Random(monitors)
    verdicts = list(traffic(rng))
    declared, now_ns = Declaration(), end_ns(BEGIN + 59)
    alone, one = merged([("m", *each) for each in bodies(verdicts)], now_ns, declared)
    fleet, many = merged(split(verdicts, monitors, rng, by_session), now_ns, declared)
    assert fleet.keys() == alone.keys() == sorted(KEYS)
    assert many.to_memory() == one.to_memory()
    for key in KEYS:
        assert fleet.details(key, WATCHED) == alone.details(key, WATCHED)
    assert many.service_statuses(now_ns) == one.service_statuses(now_ns)
    found = Observed(now_ns=now_ns)
    assert many.look(found, {}, {}) == one.look(found, {}, {})
    assert fleet.shares(now_ns).total() == sum(seen.passed is not None for _, seen in verdicts)


@pytest.mark.parametrize("effect", [1.0, 7.5])
def test_what_slices_add_up_to_is_what_a_window_of_verdicts_holds(effect):
    verdicts, now_ns = list(traffic(random.Random(5))), end_ns(BEGIN + 44)
    verdicts = [(key, seen) for key, seen in verdicts if seen.at_ns <= now_ns]
    windows = Windows(HOUR_NS // 2)
    for key, seen in verdicts:
        windows.add(key, seen)
    fleet = FleetWindows(HOUR_NS // 2)
    for number, body in bodies(verdicts):
        fleet.put("m", number, body)
    fleet.advance(now_ns)
    for key in KEYS:
        fleet.design[key] = windows.design[key] = effect
        assert fleet.status(key, now_ns, POLICY) == windows.status(key, now_ns, POLICY)
        here, there = fleet.details(key, WATCHED), details(windows.members(key, now_ns), WATCHED, effect)
        assert (here.blocked, here.judge_failed) == (there.blocked, there.judge_failed)
        assert (here.violating, here.keeping) == (there.violating, there.keeping)
        mean, of_members = here.means["tone"], there.means["tone"]
        assert mean.n == of_members.n
        assert [mean.mean, mean.lower, mean.upper, mean.effective_n] == pytest.approx(
            [of_members.mean, of_members.lower, of_members.upper, of_members.effective_n], rel=1e-12
        )


def test_a_later_state_of_a_slice_replaces_the_earlier_one():
    rng = random.Random(1)
    before = list(traffic(rng, n=200, minutes=2))
    after = [(key, seen) for key, seen in before if seen.identity != "17"]
    fleet, fresh = FleetWindows(HOUR_NS), FleetWindows(HOUR_NS)
    for number, body in [*bodies(before), *bodies(after)]:
        fleet.put("m", number, body)
    for number, body in bodies(after):
        fresh.put("m", number, body)
    for windows in (fleet, fresh):
        windows.advance(end_ns(BEGIN + 2))
    assert [fleet.status(key, 0, POLICY) for key in KEYS] == [fresh.status(key, 0, POLICY) for key in KEYS]


def test_a_window_reaches_back_until_it_holds_enough_and_one_minute_more_at_most():
    fleet = FleetWindows(HOUR_NS, longest_ns=DAY_NS, enough=30)
    for hour in range(10):
        of = [(KEYS[0], Observation(identity=f"{hour}/{n}", at_ns=(BEGIN + 60 * hour) * SLICE_NS + 1 + n, passed=True))
              for n in range(8)]  # fmt: skip
        for number, body in bodies(of):
            fleet.put("m", number, body)
    fleet.advance(end_ns(BEGIN + 9 * 60))
    assert estimate_of(fleet, KEYS[0]).n == 32
    assert fleet.wants_more(BEGIN + 9 * 60 - 30)
    assert not fleet.wants_more(BEGIN - 60)
    fleet.advance(end_ns(BEGIN + 40 * 60))
    assert estimate_of(fleet, KEYS[0]) is None


def test_five_hundred_sidecars_with_ten_verdicts_an_hour_have_one_status_where_each_alone_has_none():
    rng = random.Random(3)
    declared, now_ns = Declaration(), end_ns(BEGIN + 59)
    for sidecars, failing, expected in ((500, 0.03, Status.HEALTHY), (50, 0.45, Status.CRITICAL)):
        published, alone = [], Counter()
        for sidecar in range(sidecars):
            of = traffic(rng, n=10, failing=failing, weights=(3.0,), sessions=0, cascades=0)
            own = [(KEYS[0], seen) for _, seen in of]
            published += [(f"pod-{sidecar}", number, body) for number, body in bodies(own)]
            if sidecar < 25:
                windows = Windows(declared.window_ns, longest_ns=declared.longest_ns, enough=30)
                watch = Watch(declared, windows)
                for key, seen in own:
                    windows.add(key, seen)
                    watch.learn(key, seen)
                watch.look(Observed(now_ns=now_ns), {}, {})
                alone[watch.service_statuses(now_ns)[0].appraisal.status] += 1
        _, watch = merged(published, now_ns, declared)
        watch.look(Observed(now_ns=now_ns), {}, {})
        (status,) = watch.service_statuses(now_ns)
        assert status.appraisal.status is expected
        assert status.estimate.n > 9 * sidecars
        assert alone[Status.INSUFFICIENT_DATA] >= 20


def test_verdicts_of_another_rubric_version_stay_out():
    ((number, _),) = bodies([(KEYS[0], Observation(identity="a", at_ns=BEGIN * SLICE_NS + 1, passed=True))])
    parts = summed([(KEYS[0], Observation(identity="a", at_ns=BEGIN * SLICE_NS + 1, passed=True))])
    fleet = FleetWindows(HOUR_NS, in_force=lambda rubric, version: version == "2")
    fleet.put("old", number, encoded(parts, {"qa": "1"}))
    assert fleet.keys() == []
    fleet.put("new", number, encoded(parts, {"qa": "2"}))
    fleet.put("new", number, encoded(parts, {"qa": "1"}))  # it went back
    assert estimate_of(fleet, KEYS[0]) is None


def test_keys_beyond_the_limit_share_one():
    fleet = FleetWindows(HOUR_NS, max_keys=1)
    for of in ([0, 1], [0, 1, 1]):  # the second state replaces the first
        seen = [(KEYS[each], Observation(identity=f"{n}", at_ns=BEGIN * SLICE_NS + 1, passed=True))
                for n, each in enumerate(of)]  # fmt: skip
        for number, body in bodies(seen):
            fleet.put("m", number, body)
    assert fleet.keys() == [Key(OTHER, OTHER, "qa"), KEYS[0]]
    assert [estimate_of(fleet, key).n for key in [Key(OTHER, OTHER, "qa"), KEYS[0]]] == [2, 1]


def test_sessions_beyond_the_limit_count_as_sessions_of_twenty():
    of = Counter({First(True, 1.0, None, f"{n:016x}"): 1 for n in range(MOST_CLUSTERS + 60)})
    found = bounded(of)
    assert found.total() == of.total()
    sizes = Counter()
    for first, n in found.items():
        sizes[first.cluster] += n
    assert sorted(sizes.values())[-3:] == [20, 20, 20]
    assert len(sizes) == MOST_CLUSTERS + 3


@pytest.mark.parametrize("body", [b"", b"x", b"\x78\x9c", encoded({}, {})[:-2]])
def test_what_is_no_slice_is_refused(body):
    with pytest.raises(ValueError, match="slice"):
        list(decoded(body))


@pytest.mark.parametrize(
    ("limit", "cause"),
    [("MOST_BYTES", "too large"), ("MOST_KEY_BYTES", "has more than 10 bytes"), ("MOST_ENTRIES", "more than 10 entr")],
)
def test_a_slice_that_is_read_into_more_than_the_limit_is_refused(limit, cause, monkeypatch):
    monkeypatch.setattr(slices, limit, 10)
    parts = summed(traffic(random.Random(2), n=5))
    with pytest.raises(ValueError, match=cause):
        list(decoded(encoded(parts, {})))


def test_a_small_row_that_is_millions_of_numbers_takes_the_memory_of_none():
    text = b'[["a","b","qa","1",{"n":{},"sum":{"x":[%b1]},"clusters":{},"firsts":[]}]]' % (b"1," * 5_000_000)
    tracemalloc.start()
    with pytest.raises(ValueError, match="has more than"):
        list(decoded(zlib.compress(text, 1)))
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 4 * len(text)


def test_an_outage_within_one_slice_is_critical_whether_it_comes_at_once_or_monitor_by_monitor():
    key, declared, now_ns = Key("a", "default", "qa"), Declaration(), end_ns(BEGIN)
    verdicts = [(key, Observation(at_ns=now_ns - 10**9, passed=False, identity=f"t{n}")) for n in range(60)]
    for monitors in (1, 3):  # slices of a minute are followed together
        watch = merged(split(verdicts, monitors, random.Random(1), by_session=False), now_ns, declared)[1]
        watch.look(Observed(now_ns=now_ns), {}, {})
        (found,) = watch.service_statuses(now_ns)
        assert found.appraisal.status is Status.CRITICAL
