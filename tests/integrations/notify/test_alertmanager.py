"""Alertmanager: alerts as a real one takes, holds, ends and passes them on."""

from __future__ import annotations

import json
import time

import pytest

from sidejudge.integrations.backoff import RefusedError
from sidejudge.integrations.notify.alertmanager import ENDS_AFTER_S, Alertmanager, alertmanager_body
from sidejudge.integrations.post import Poster
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.notices.notice import DailyReportText, Notice, NoticeKind
from sidejudge.scoring.notices.text import Wording
from tests.alert_events import MINUTE_NS, TRACES, event
from tests.alertmanager import alertmanager
from tests.fakes.receiver import receiving
from tests.waiting import until

LINKED = Wording(trace_url="https://t.example/{trace_id}", runbooks="https://r.example")
LABELS = {"alertname": "SidejudgePassRateCritical", "severity": "critical", "service": "checkout",
          "environment": "production", "rubric": "qa", "pod": "a-1"}  # fmt: skip


def notice(*events, kind=NoticeKind.ALERT):
    return Notice(id="n-1", kind=kind, at_ns=events[0].at_ns if events else time.time_ns(), events=events)


def now_event(**changes):
    now_ns = time.time_ns()
    return event(**{"since_ns": now_ns - 12 * MINUTE_NS, "at_ns": now_ns, **changes})


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with receiving() as hook, alertmanager(tmp_path_factory.mktemp("am"), f"{hook.url}/hook") as running:
        yield running, hook


def sender(url, labels=None, clock_ns=time.time_ns, token=None):
    poster = Poster(f"{url}/api/v2/alerts")
    return Alertmanager(poster, LINKED, clock_ns, labels=labels or {"pod": "a-1"}, token=token)


def passed_on(hook, status, **labels):
    """The alerts that the real one passed on, as (status, labels) wants them."""
    alerts = [alert for got in hook.got for alert in got.json["alerts"]]
    return [a for a in alerts if a["status"] == status and labels.items() <= a["labels"].items()]


async def test_a_real_one_takes_an_alert_passes_it_on_once_and_then_its_end(real):
    running, hook = real
    reported, mark = sender(running.url), {"pod": "a-1"}
    firing = now_event()
    await reported.send(notice(firing))
    await until(lambda: len(passed_on(hook, "firing", **mark)) == 1)
    (alert,) = running.alerts(pod="a-1")
    assert alert["labels"] == LABELS
    assert (
        alert["annotations"]["summary"]
        == "Critical: checkout, production: 73 of 100 fail qa since 2026-11-21 09:58 UTC (4 of 100 in the day before)"
    )
    assert "27.0% pass (between 14.1% and 44.6% with 95 % confidence, n = 100)" in alert["annotations"]["description"]
    assert TRACES[0] in alert["annotations"]["description"]
    assert alert["annotations"]["runbook_url"] == "https://r.example/pass-rate-critical"
    assert alert["generatorURL"] == f"https://t.example/{TRACES[0]}"
    # Refreshed, and delivered twice after a crash: still one alert, one page.
    for _ in range(3):
        await reported.send(notice(firing, kind=NoticeKind.REFRESH))
    over = now_event(transition=AlertTransition.RESOLVED, number=2, since_ns=firing.since_ns)
    await reported.send(notice(over))
    await reported.send(notice(over, kind=NoticeKind.REFRESH))
    await until(lambda: len(passed_on(hook, "resolved", **mark)) == 1)
    assert running.alerts(pod="a-1") == []
    assert len(passed_on(hook, "firing", **mark)) == 1


async def test_the_end_of_an_alert_that_stands_lies_ahead_and_moves_with_each_refresh(real):
    running, _ = real
    start_ns = time.time_ns()
    ends = []
    for clock_ns in (start_ns, start_ns + 60 * 10**9):
        await sender(running.url, {"pod": "b"}, lambda at=clock_ns: at).send(
            notice(now_event(), kind=NoticeKind.REFRESH)
        )
        await until(lambda: bool(running.alerts(pod="b")))
        ends.append(running.alerts(pod="b")[0]["endsAt"])
    assert ends[0] < ends[1]
    assert ENDS_AFTER_S == 240


async def test_an_alert_that_began_under_a_clock_that_was_set_back_stands_and_ends(real):
    running, _ = real
    reported, ahead_ns = sender(running.url, {"pod": "g"}), time.time_ns() + 3_600 * 10**9
    await sender(running.url, {"pod": "g"}, lambda: ahead_ns).send(notice(now_event(since_ns=ahead_ns, at_ns=ahead_ns)))
    await reported.send(notice(now_event(since_ns=ahead_ns), kind=NoticeKind.REFRESH))
    assert len(running.alerts(pod="g")) == 1
    await reported.send(notice(now_event(since_ns=ahead_ns, transition=AlertTransition.RESOLVED, number=2)))
    await until(lambda: running.alerts(pod="g") == [])


async def test_alerts_of_two_monitors_do_not_end_each_other_when_a_label_tells_them_apart(real):
    running, _ = real
    for pod in ("c-1", "c-2"):
        await sender(running.url, {"pod": pod, "app": "c"}).send(notice(now_event()))
    over = now_event(transition=AlertTransition.RESOLVED, number=2)
    await sender(running.url, {"pod": "c-1", "app": "c"}).send(notice(over))
    await until(lambda: [a["labels"]["pod"] for a in running.alerts(app="c")] == ["c-2"])


async def test_an_alert_that_cannot_be_told_any_more_stands_and_says_so(real):
    running, _ = real
    reported = sender(running.url, {"pod": "d"})
    await reported.send(notice(now_event()))
    await reported.send(notice(now_event(transition=AlertTransition.UNKNOWN, number=2, examples=())))
    (alert,) = running.alerts(pod="d")
    assert alert["annotations"]["summary"].startswith("Not known any more: ")
    assert alert["labels"]["alertname"] == "SidejudgePassRateCritical"


async def test_a_test_is_an_alert_that_ends_soon_by_itself(real):
    running, _ = real
    await sender(running.url, {"pod": "e"}).send(Notice(id="t", kind=NoticeKind.TEST, at_ns=time.time_ns()))
    (alert,) = running.alerts(pod="e")
    assert alert["labels"]["alertname"] == "SidejudgeTest"


async def test_names_that_are_hostile_are_taken_all_the_same(real):
    running, _ = real
    service = "a\u0000b\n\u202e<script>" + "x" * 5_000 + "\ud800"
    await sender(running.url, {"pod": "f"}).send(notice(now_event(labels=(("service", service), ("rubric", "qa")))))
    (alert,) = running.alerts(pod="f")
    assert alert["labels"]["service"].startswith("a b <script>x")
    assert len(alert["labels"]["service"]) <= 201


async def test_what_is_wrong_is_refused_with_its_words(real):
    running, _ = real
    with pytest.raises(RefusedError, match="it answered 400"):
        await Poster(f"{running.url}/api/v2/alerts").post(b'[{"labels": {}}]')


async def test_a_token_is_sent_as_bearer():
    with receiving() as fake:
        await sender(fake.url, token="tok").send(notice(now_event()))
    assert fake.got[0].headers["authorization"] == "Bearer tok"


def test_a_report_is_no_alert_and_nothing_is_sent():
    report = Notice(id="r", kind=NoticeKind.REPORT, at_ns=1, report=DailyReportText(begin_ns=0, end_ns=1))
    assert alertmanager_body(report, LINKED, {}, 1) is None


def test_a_page_that_was_late_still_stands_when_it_arrives():
    made = now_event()
    late_ns = made.at_ns + 3_600 * 10**9
    (alert,) = json.loads(alertmanager_body(notice(made), LINKED, {}, late_ns) or b"[]")
    assert alert["endsAt"] > alert["startsAt"]
    (fresh,) = json.loads(alertmanager_body(notice(made), LINKED, {}, made.at_ns) or b"[]")
    assert alert["endsAt"] > fresh["endsAt"]
