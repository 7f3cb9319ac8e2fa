"""Rounds over a real store: what is remembered, what is told, and what a crash in between does to it."""

from __future__ import annotations

import time

import pytest

from sidejudge.integrations.store.sqlite import FinishedTrace, Store, StoreError
from sidejudge.monitor.alerting import schedule
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.failures import illustrated
from sidejudge.monitor.alerting.observation import Key, Observation
from sidejudge.monitor.alerting.schedule import EvaluationSchedule
from sidejudge.monitor.alerting.watch import Watch
from sidejudge.monitor.alerting.windows import Windows
from sidejudge.scoring.alerts.condition import MonitorFacts
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.lifecycle import Stage
from sidejudge.scoring.alerts.quality import place_of
from sidejudge.scoring.lexical.shown_text import label_of
from sidejudge.scoring.notices.text import Wording
from sidejudge.scoring.notices.wording import report_event
from sidejudge.scoring.result.reason import Reason, reason_fields
from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.status.hysteresis import Hysteresis
from sidejudge.scoring.status.status import Policy
from tests.alert_events import event as reported

MINUTE_NS = 60 * 10**9
START_NS = 1_790_000_000 * 10**9
KEY = Key("shop", "unknown", "qa")
DECLARED = Declaration(policy=Policy(), hysteresis=Hysteresis(needed=1, looks=1, recovery_margin=0.0, hold_ns=0))


class Process:
    """One life of a monitor's watch over a store's file."""

    def __init__(self, path):
        self.store = Store(path)
        self.windows = Windows(DECLARED.window_ns)
        self.watch = Watch(DECLARED, self.windows, {"qa": WatchedWindow.of(RUBRICS["qa"])})
        self.heard = []
        self.schedule = EvaluationSchedule(
            watch=self.watch, windows=self.windows, store=self.store, judge=lambda: None,
            monitor=lambda _: MonitorFacts(trouble=self.schedule.failure),
        )  # fmt: skip
        self.schedule.listeners.append(self.hear)
        self.schedule.restore()

    async def hear(self, event):
        self.heard.append(event)

    def judge(self, count, *, passed, at_ns):
        for number in range(count):
            seen = Observation(identity=f"{at_ns}-{passed}-{number}", at_ns=at_ns, passed=passed)
            self.windows.add(KEY, seen)
            self.watch.learn(KEY, seen)


@pytest.fixture
def process(tmp_path):
    lives = []

    def begin():
        for life in lives:
            life.store.close()
        lives.append(Process(tmp_path / "state.sqlite"))
        return lives[-1]

    yield begin
    for life in lives:
        life.store.close()


def verdict(number: int, *, passed=False, norm=0.5, reason="wrong", service="shop", **more):
    return {
        "trace_id": f"{number:032x}", "case_id": "c", "rubric": "qa", "service": service, "environment": None,
        "passed": passed, "composite": norm, "composite_norm": norm, "reason": reason, "blockers": [], **more,
    }  # fmt: skip


async def finish(store, stated, closed_ns, **details):
    await store.finish(
        FinishedTrace(
            trace_id=stated["trace_id"] or stated["case_id"], service=stated["service"], reason="scored",
            completion="root_ended", revision=1, details=details, verdicts=[stated], closed_ns=closed_ns, chunks=0,
        )
    )  # fmt: skip


async def test_what_fires_is_told_once_and_remembered_by_the_next_process(process):
    first = process()
    first.judge(60, passed=False, at_ns=START_NS)
    reported = await first.schedule.look(START_NS + MINUTE_NS)
    assert [event.condition for event in reported] == ["pass_rate_critical", "pass_rate_warning", "pass_rate_change"]
    assert reported == first.heard
    assert await first.schedule.look(START_NS + 2 * MINUTE_NS) == []
    second = process()
    assert {alert.stage for alert in second.watch.alerts.values()} == {Stage.FIRING}
    second.judge(60, passed=False, at_ns=START_NS)
    assert await second.schedule.look(START_NS + 3 * MINUTE_NS) == []
    assert second.watch.service_statuses(START_NS + 3 * MINUTE_NS)[0].since_ns == START_NS + MINUTE_NS


async def test_an_event_that_nobody_took_is_told_again_under_its_id_even_by_the_next_process(process):
    first = process()

    async def refuse(event):
        raise OSError("no network")

    first.schedule.listeners.append(refuse)
    first.judge(60, passed=False, at_ns=START_NS)
    assert await first.schedule.look(START_NS + MINUTE_NS) == []
    assert await first.schedule.look(START_NS + 2 * MINUTE_NS) == []
    offered = [event.id for event in first.heard]
    assert offered[:3] == offered[3:], "offered again at the next look"
    second = process()
    second.judge(60, passed=False, at_ns=START_NS)
    reported = await second.schedule.look(START_NS + 3 * MINUTE_NS)
    assert [event.id for event in reported] == offered[:3]
    third = process()
    third.judge(60, passed=False, at_ns=START_NS)
    assert await third.schedule.look(START_NS + 4 * MINUTE_NS) == []


async def test_a_store_that_refuses_costs_a_look_its_voice_and_nothing_more(process):
    life = process()
    life.judge(60, passed=False, at_ns=START_NS)
    life.store.close()
    with pytest.raises(StoreError):
        await life.schedule.look(START_NS + MINUTE_NS)
    assert life.heard == []


async def test_where_no_status_can_be_decided_the_earlier_ones_stay_and_that_is_an_alert(process, caplog):
    life = process()
    life.judge(60, passed=False, at_ns=START_NS)
    assert "pass_rate_critical" in {event.condition for event in await life.schedule.look(START_NS + MINUTE_NS)}
    key = Key("other", "unknown", "qa")
    life.windows.add(key, Observation(identity="odd", at_ns=START_NS, passed=True, blockers=None))
    assert await life.schedule.look(START_NS + 2 * MINUTE_NS) == []
    (event,) = await life.schedule.look(START_NS + 3 * MINUTE_NS)
    assert (event.condition, event.transition.value) == ("store_trouble", "firing")
    assert event.stated == "no status can be decided (TypeError); the log has the cause"
    assert {posted.condition.id for posted in life.watch.posted()} >= {"pass_rate_critical", "store_trouble"}
    assert "a look at statuses failed" in caplog.text
    life.windows.withdraw("odd", "qa")
    await life.schedule.look(START_NS + 4 * MINUTE_NS)
    ended = await life.schedule.look(START_NS + 9 * MINUTE_NS)
    assert [(event.condition, event.transition.value) for event in ended] == [("store_trouble", "resolved")]


async def test_an_alert_shows_the_three_worst_of_its_own_failures(process):
    life = process()
    for number, (norm, more) in enumerate(
        [
            (0.6, {}), (0.1, {"reason": "x" * 5000}), (None, {"reason": "invalid"}), (0.3, {}), (0.2, {}),
            (0.0, {"service": "other"}), (0.0, {"passed": True}), (0.01, {"environment": "prod"}),
        ]
    ):  # fmt: skip
        await finish(life.store, verdict(number + 1, norm=norm, **more), START_NS)
    await finish(life.store, verdict(99, norm=0.0), START_NS - 3 * DECLARED.window_ns)
    life.judge(60, passed=False, at_ns=START_NS)
    reported = await life.schedule.look(START_NS + MINUTE_NS)
    shown = next(event for event in reported if event.condition == "pass_rate_critical").examples
    assert not any(event.examples for event in reported if event.muted), "nobody is sent it"
    assert [int(each.trace_id, 16) for each in shown] == [3, 2, 5]
    assert len(shown[1].reason) <= 301


async def test_of_very_many_alerts_that_begin_at_once_none_waits_until_all_others_are_illustrated(process, monkeypatch):
    life = process()
    for number in range(40):
        key = Key(f"s{number}", "unknown", "qa")
        await finish(life.store, verdict(number + 1, service=key.service), START_NS)
        for seen in range(60):
            observed = Observation(identity=f"{number}-{seen}", at_ns=START_NS, passed=False)
            life.windows.add(key, observed)
            life.watch.learn(key, observed)
    read, found = life.store.verdicts, []

    def slow(**wanted):
        found.append(wanted)
        time.sleep(0.05)
        return read(**wanted)

    monkeypatch.setattr(life.store, "verdicts", slow)
    monkeypatch.setattr(schedule, "ILLUSTRATES_S", 0.2)
    fired = [each for each in await life.schedule.look(START_NS + MINUTE_NS) if each.condition == "pass_rate_critical"]
    assert (len(fired), bool(fired[0].examples), fired[-1].examples) == (40, True, ())
    assert len(found) < 10


async def test_an_alert_shows_its_own_failures_however_many_other_services_have(process):
    life = process()
    for number in range(30):
        await finish(life.store, verdict(number + 1, norm=0.1, service="small"), START_NS + number)
    for number in range(1_000):
        await finish(life.store, verdict(number + 100, norm=0.2), START_NS + 100 + number)
    labels = (("service", "small"), ("environment", "unknown"), ("rubric", "qa"))
    shown = illustrated(life.store, reported(labels=labels, examples=(), failure=None), 0)
    assert [int(each.trace_id, 16) for each in shown.examples] == [30, 29, 28]
    assert shown.failure.count == 30
    long = "a service whose name is longer than what a label of an alert may hold"
    await finish(life.store, verdict(2_000, norm=0.1, service=long), START_NS + 2_000)
    (example,) = illustrated(life.store, reported(labels=place_of(long, "unknown", "qa"), examples=()), 0).examples
    assert int(example.trace_id, 16) == 2_000


async def test_an_alert_shows_the_failures_of_the_window_that_its_figures_are_of(process):
    life = process()
    for hour in range(8):
        await finish(life.store, verdict(hour + 1, norm=0.1), START_NS - hour * 60 * MINUTE_NS)
    labels = place_of("shop", "unknown", "qa")
    about = reported(labels=labels, measured_ns=START_NS - 5 * 60 * MINUTE_NS, examples=(), failure=None)
    shown = illustrated(life.store, about, START_NS - 60 * MINUTE_NS)
    assert (len(shown.examples), shown.failure.count) == (3, 6)


async def test_what_broke_is_stated_once_with_its_share_however_long_the_reason_is(process):
    life, why = process(), Reason("the tool lookup_order failed, " * 5 + "and nobody tried again")
    for number in range(50):
        stated = {"metric": "tool_errors", "rating": "fail", **reason_fields(why)}
        failed = verdict(number + 1, norm=0.1, scores=[stated], passed=number % 2 == 0, sampling_probability=1.0)
        await finish(life.store, failed, START_NS + number)
    labels = place_of("shop", "unknown", "qa")
    about = reported(labels=labels, changed_ns=START_NS, measured_ns=START_NS, examples=(), failure=None)
    shown = illustrated(life.store, about, START_NS)
    text = report_event(shown, Wording()).text
    assert "(25 of the latest 25 failing traces; all of the failures)" in text
    assert text.count("nobody tried again") == 1


async def test_what_failed_since_the_failures_of_a_notice_were_counted_is_in_no_cause_of_them(process):
    life, stated = process(), {"metric": "tool_errors", "rating": "fail", "details": {"failed_by_tool": {"refund": 1}}}
    for number in range(20):
        at_ns = START_NS + (number if number < 12 else 5 * MINUTE_NS)
        await finish(life.store, verdict(number + 1, norm=0.1, scores=[stated], sampling_probability=1.0), at_ns)
    labels = place_of("shop", "unknown", "qa")
    about = reported(labels=labels, condition="pass_rate_warning", at_ns=START_NS + MINUTE_NS, changed_ns=START_NS)
    known = illustrated(life.store, about, START_NS).explained
    assert known.now.failures == 12
    assert {(each.by, each.count) for each in known.causes} == {("tool", 12), ("failure group", 12)}


async def test_an_alert_on_a_part_of_the_traffic_with_a_long_name_shows_its_failures(process):
    life, name = process(), "the name of a trace that is longer than what is kept of a value that divides the traffic"
    await finish(life.store, verdict(1), START_NS)
    await finish(life.store, verdict(2), START_NS, slices={"name": label_of(name)})
    session = {**verdict(3), "trace_id": None, "case_id": f"{3:032x}"}
    await finish(life.store, session, START_NS + 1, slices={"name": label_of(name)})
    labels = (*place_of("shop", "unknown", "qa"), ("slice", "name"), ("value", label_of(name)))
    examples = illustrated(life.store, reported(labels=labels, examples=()), 0).examples
    assert [int(example.trace_id, 16) for example in examples] == [3, 2]


async def test_an_alert_about_a_metric_shows_what_that_metric_blocked(process):
    life = process()
    await finish(life.store, verdict(1, norm=0.0), START_NS)
    await finish(life.store, verdict(2, norm=0.5, blockers=["accuracy"]), START_NS)
    await finish(life.store, verdict(3, norm=0.5, service=None, blockers=["accuracy"]), START_NS)
    labels = (("service", "shop"), ("environment", "unknown"), ("rubric", "qa"), ("metric", "accuracy"))

    def shown(labels):
        return illustrated(life.store, reported(labels=labels, examples=()), 0).examples

    assert [int(each.trace_id, 16) for each in shown(labels)] == [2]
    nameless = (("service", "unknown_service"), *labels[1:])
    assert [int(each.trace_id, 16) for each in shown(nameless)] == [3]
    assert shown(()) == ()


async def test_the_lag_of_the_last_minutes_is_watched_and_older_forgotten(process):
    life = process()
    for number in range(40):
        life.schedule.lagged(START_NS + number, 900.0)
    for minute in range(1, 12):
        await life.schedule.look(START_NS + minute * MINUTE_NS)
    assert [event.condition for event in life.heard] == []
    assert not life.watch.alerts, "ten minutes later it is no longer known"
    for minute in range(12, 40):
        for number in range(10):
            life.schedule.lagged(START_NS + minute * MINUTE_NS + number, 900.0)
        await life.schedule.look(START_NS + minute * MINUTE_NS + MINUTE_NS // 2)
    assert [event.condition for event in life.heard] == ["evaluation_lag"]


async def test_the_lag_of_a_time_that_has_not_come_does_not_count_after_the_clock_was_set_back(process):
    life = process()
    for number in range(40):
        life.schedule.lagged(START_NS + 8 * 60 * MINUTE_NS + number, 900.0)
    for minute in range(20):
        await life.schedule.look(START_NS + minute * MINUTE_NS)
    assert not life.watch.alerts
