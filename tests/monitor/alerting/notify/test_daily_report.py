"""Daily: the report adds up what the store holds, and is sent once however often the monitor is killed."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, time
from functools import partial
from zoneinfo import ZoneInfo

import pytest

from sidejudge.integrations.store.sqlite import FinishedTrace, Store
from sidejudge.monitor.alerting.details import WatchedWindow
from sidejudge.monitor.alerting.failures import FailureGroups
from sidejudge.monitor.alerting.notify.daily_report import Daily, DailyReport
from sidejudge.monitor.alerting.notify.notifier import Notifier
from sidejudge.monitor.alerting.notify.receiver import NoticeReceiver
from sidejudge.monitor.alerting.observation import Key
from sidejudge.monitor.evaluate.backends import OUTAGE
from sidejudge.scoring.alerts.condition import Agreement
from sidejudge.scoring.notices.notice import AgreedOn, Notice
from sidejudge.scoring.notices.wording import report_report
from sidejudge.scoring.result.reason import Reason, reason_fields
from sidejudge.scoring.result.result import BEHIND, Failed
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.status.failure_groups import FailureGroup
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.status import Appraisal, Status

HOUR_NS = 3_600 * 10**9
EIGHT_NS = 1_795_248_000 * 10**9  # 2026-11-21 08:00 UTC
WATCHED = {"qa": WatchedWindow(acceptable={"accuracy": (0.9, True), "gap": (0.1, False), "fine": (0.5, True)})}


@pytest.fixture
async def store(tmp_path):
    made = Store(tmp_path / "state.sqlite")
    yield made
    made.close()


async def judged(store, number, passed, *, probability=1.0, hours_ago=1.0, service="shop", where=None, **scores):
    verdict = {
        "rubric": "qa", "service": service, "environment": where, "passed": passed,
        "sampling_probability": probability,
        "scores": [{"metric": name, "value": value} for name, value in scores.items()],
    }  # fmt: skip
    await store.finish(
        FinishedTrace(
            trace_id=number.to_bytes(16, "big"), service=service, reason="scored", completion="root", revision=1,
            details={}, verdicts=[verdict], closed_ns=EIGHT_NS - int(hours_ago * HOUR_NS),
        )
    )  # fmt: skip


def daily(store, status=Status.WARNING, now=None, **more):
    notifier = Notifier(
        [NoticeReceiver(name="slack", sender=None)], store.notifications, remind_ns=HOUR_NS, clock_ns=lambda: EIGHT_NS
    )
    standing = ServiceStatus(service="shop", environment="unknown", rubric="qa", estimate=now,
                        appraisal=Appraisal(status, "so"))  # fmt: skip
    return DailyReport(
        daily=Daily(time(8), UTC), notifier=notifier, store=store.path, outbox=store.notifications, watched=WATCHED,
        statuses=lambda _: [standing], posted=list, **{"kept_since": lambda now: now - 72 * HOUR_NS, **more},
    )  # fmt: skip


def sent(store):
    return [Notice.of_json(json.loads(each.body)).report for each in store.notifications.waiting("slack", 100)]


@pytest.mark.parametrize("effect", [1.0, 1.5])
async def test_counts_and_estimates_are_those_of_the_day_weighed_as_in_the_windows(store, effect):
    drawn = [(True, 0.1), (True, 0.1), (False, 1.0), (False, 0.1), (None, 1.0)]
    for number, (passed, probability) in enumerate(drawn):
        await judged(store, number, passed, probability=probability)
    await judged(store, 99, False, hours_ago=24.5)
    now = estimate([(True, 1.0)] * 9, design_effect=effect)
    (course,) = (await daily(store, now=now).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)).courses
    decided = [(passed, 1 / probability) for passed, probability in drawn if passed is not None]
    reported = estimate(decided, design_effect=effect)
    assert (course.passed, course.failed, course.incomplete) == (2, 2, 1)
    assert (course.pass_ratio, course.lower, course.upper) == pytest.approx(
        (reported.pass_ratio, reported.lower, reported.upper)
    )
    assert (course.service, course.environment, course.status) == ("shop", "unknown", Status.WARNING)


async def test_the_weakest_metrics_are_those_furthest_outside_their_band(store):
    for number in range(12):
        await judged(store, number, False, accuracy=0.8, gap=0.3, fine=0.6)
    await judged(store, 50, False, service="rare", accuracy=0.0)
    weakest = (await daily(store).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)).weakest
    assert [(weak.metric, weak.n) for weak in weakest] == [("gap", 12), ("accuracy", 12)]
    assert [weak.mean for weak in weakest] == pytest.approx([0.3, 0.8])


async def test_what_names_no_service_or_environment_is_one_with_what_names_them_unknown(store):
    named = itertools.product([None, "", "unknown_service"], [None, "", "unknown"])
    for number, (service, where) in enumerate(named):
        await judged(store, number, number != 0, service=service, where=where, accuracy=0.8)
    await judged(store, 9, None, service=None, accuracy=0.8)
    report = await daily(store).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
    assert [(each.service, each.environment, each.passed, each.failed, each.incomplete) for each in report.courses] == [
        ("unknown_service", "unknown", 8, 1, 1)
    ]
    assert [(each.service, each.environment, each.n) for each in report.weakest] == [("unknown_service", "unknown", 10)]


async def test_a_metric_whose_mean_is_its_bound_is_not_weak(store):
    for number in range(333):
        await judged(store, number, False, probability=0.3, accuracy=0.9, gap=0.1)
    assert not (await daily(store).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)).weakest


async def test_cost_and_agreement_are_told_where_they_are_known(store):
    await store.judged.spend(EIGHT_NS // 10**9 - 7_200, 1.25)
    await store.judged.spend(EIGHT_NS // 10**9 - 3_600, 0.5)
    await store.judged.spend(EIGHT_NS // 10**9 - 90_000, 9.0)
    known = daily(store, judged=store.judged, agreements=lambda: [Agreement(rubric="qa", kappa=0.7, upper=0.8, n=40)])
    report = await known.report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
    assert report.cost_usd == pytest.approx(1.75)
    assert report.agreements == (AgreedOn(rubric="qa", kappa=0.7, n=40),)
    nothing = await daily(store).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
    assert (nothing.cost_usd, nothing.agreements, nothing.courses) == (None, (), ())


async def test_a_model_of_which_no_price_is_known_is_named_beside_the_cost(store):
    known = daily(store, judged=store.judged, unpriced=lambda: {"openai/ours"})
    told = []
    for usd in (0.0, 1.25):
        await store.judged.spend(EIGHT_NS // 10**9 - 7_200, usd)
        report = await known.report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
        (line,) = [each for each in report_report(report).paragraphs[-1] if "cost" in each.text]
        told.append(line.text)
    assert told == [
        "What the judge cost is not known: no price is known of openai/ours.",
        "The judge cost $1.25; no price is known of openai/ours.",
    ]


async def test_the_cost_of_each_hour_is_in_one_report_also_where_days_begin_within_an_hour(store):
    half_past_ns, day_ns = EIGHT_NS + HOUR_NS // 2, 24 * HOUR_NS  # 08:00 is 02:30 UTC in India
    known, cost = daily(store, judged=store.judged), []
    for days in (0, 1):
        await store.judged.spend(EIGHT_NS // 10**9 - 3_600 + days * 86_400, 0.25)  # 07:00 to 08:00
        await store.judged.spend(EIGHT_NS // 10**9 + days * 86_400, 0.5)  # 08:00 to 08:30
        end_ns = half_past_ns + days * day_ns
        cost.append((await known.report(end_ns - day_ns, end_ns, end_ns)).cost_usd)
        await store.judged.spend(EIGHT_NS // 10**9 + days * 86_400, 1.0)  # 08:30 to 09:00
    assert cost == [0.25, 1.75]


@pytest.mark.parametrize("status", Status)
async def test_a_service_is_reported_whatever_its_status_is(store, status):
    await judged(store, 1, True)
    await judged(store, 2, True, service="other")
    report = await daily(store, status).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
    assert {course.status for course in report.courses} == {status, Status.INSUFFICIENT_DATA}


async def test_only_so_many_courses_are_shown_and_the_rest_counted(store):
    for number in range(25):
        await judged(store, number, True, service=f"s{number}")
    report = await daily(store).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
    assert (len(report.courses), report.more) == (20, 5)


async def test_a_report_is_sent_once_a_day_though_the_monitor_is_killed_again_and_again(store):
    for hour in range(-30, 30):
        now_ns = EIGHT_NS + hour * HOUR_NS
        for _ in range(2):
            again = daily(store)
            await again.restore(now_ns)
            await again.tick(now_ns)
            await again.tick(now_ns)
    assert [report.end_ns for report in sent(store)] == [EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS + 24 * HOUR_NS]


async def test_reports_go_on_after_a_clock_that_was_ahead_was_set_back(store):
    await daily(store).restore(EIGHT_NS + 1000 * 24 * HOUR_NS)
    for hour in range(-30, 30):
        again = daily(store)
        await again.restore(EIGHT_NS + hour * HOUR_NS)
        await again.tick(EIGHT_NS + hour * HOUR_NS)
    assert [report.end_ns for report in sent(store)] == [EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS + 24 * HOUR_NS]


async def test_a_report_that_a_clock_that_was_ahead_sent_too_early_is_sent_again_with_its_whole_day(store):
    ahead = daily(store)
    await judged(store, 1, False, hours_ago=3)
    await ahead.restore(EIGHT_NS - 2 * HOUR_NS)
    await ahead.tick(EIGHT_NS + HOUR_NS)
    await judged(store, 2, False, hours_ago=1)
    for minute in range(-119, 2):
        await ahead.tick(EIGHT_NS + minute * HOUR_NS // 60)
    (report,) = sent(store)
    assert (report.begin_ns, report.end_ns) == (EIGHT_NS - 24 * HOUR_NS, EIGHT_NS)
    assert [course.failed for course in report.courses] == [2]
    await ahead.tick(EIGHT_NS - 10**9)
    await ahead.tick(EIGHT_NS + 10**9)
    assert [each.seq for each in store.notifications.waiting("slack", 9)] == [2], (
        "a clock that is set by seconds sends none"
    )


async def test_a_report_that_nobody_sends_is_sent_late_and_one_that_another_sends_is_not(store):
    of_whom: list[bool | None] = []

    async def sends(due_s):
        assert due_s == EIGHT_NS // 10**9
        return of_whom[-1]

    of_fleet = daily(store, sends=sends)
    await of_fleet.restore(EIGHT_NS - HOUR_NS)
    for late_ns, mine in ((0, None), (1, None), (2, True), (3, True)):  # it leads from then on
        of_whom.append(mine)
        await of_fleet.tick(EIGHT_NS + late_ns)
    assert [report.end_ns for report in sent(store)] == [EIGHT_NS]


@pytest.mark.parametrize("late_hours", [0, 3, 23])
async def test_a_report_that_is_late_is_of_its_whole_day_and_of_nothing_after_it(store, late_hours):
    for number, hours_ago in enumerate((24.5, 23.5, 0.5, -0.5, -2.5)):
        await judged(store, number, False, hours_ago=hours_ago)
        await store.judged.spend(int(EIGHT_NS / 1e9 - hours_ago * 3_600), 2.0**number)
    failures = FailureGroups(store, lambda: EIGHT_NS + late_hours * HOUR_NS)
    again = daily(store, judged=store.judged, failures=failures.over)
    await again.restore(EIGHT_NS - HOUR_NS)
    await again.tick(EIGHT_NS + late_hours * HOUR_NS)
    (report,) = sent(store)
    assert (report.begin_ns, report.end_ns, report.day_ns) == (EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, None)
    assert [(course.failed, course.passed) for course in report.courses] == [(2, 0)]
    assert report.cost_usd == 2.0 + 4.0


@pytest.mark.parametrize("early", [False, True], ids=["by age", "early"])
async def test_a_late_report_states_from_where_to_where_nothing_of_its_day_is_kept(store, early):
    await judged(store, 1, False, hours_ago=22.5)
    await judged(store, 2, False, hours_ago=0.5)
    await store.delete_early(EIGHT_NS - (21 if early else 30) * HOUR_NS)
    again = daily(store, kept_since=partial(store.kept_since_ns, (72 if early else 24) * HOUR_NS))
    await again.restore(EIGHT_NS - HOUR_NS)
    await again.tick(EIGHT_NS + 3 * HOUR_NS)
    (report,) = sent(store)
    assert (report.day_ns, report.begin_ns, report.end_ns) == tuple(EIGHT_NS - h * HOUR_NS for h in (24, 21, 0))
    assert [course.failed for course in report.courses] == [1], "what is left by chance does not count"
    assert "from 2026-11-20 08:00 UTC to 2026-11-20 11:00 UTC is missing" in report_report(report).text


@pytest.mark.parametrize("before", [None, 2])
async def test_failures_are_compared_with_the_day_before_where_that_is_known(store, before):
    async def failures(*_):
        known = {"group": "a1", "rubric": "qa", "metric": "tone", "code": None, "words": "", "examples": ()}
        return [FailureGroup(**known, count=3, before=before)]

    report = await daily(store, failures=failures).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
    assert [(each.count, each.before) for each in report.failures] == [(3, before)]
    stated = "tone of qa: 3, the day before 2 (group a1)" if before else "tone of qa: 3 (group a1)"
    assert stated in report_report(report).text


@pytest.mark.parametrize(("day", "hours"), [(24, 24), (25, 25), (26, 24)])
def test_the_day_of_a_report_begins_where_the_one_before_ended_when_clocks_change_too(day, hours):
    at = Daily(time(8), ZoneInfo("Europe/Berlin"))
    due_s = int(datetime(2026, 10, day, 8, tzinfo=ZoneInfo("Europe/Berlin")).timestamp())
    assert due_s - at.begin_s(due_s) == hours * 3_600


async def test_a_report_that_another_monitor_of_the_fleet_has_sent_is_noted(store):
    mine = iter([False, True, True])

    async def sends(_):
        return next(mine)

    of_fleet = daily(store, sends=sends)
    await of_fleet.restore(EIGHT_NS - HOUR_NS)
    await of_fleet.tick(EIGHT_NS)
    await of_fleet.tick(EIGHT_NS + 1)
    again = daily(store, sends=sends)
    await again.restore(EIGHT_NS + 2)
    await again.tick(EIGHT_NS + 2)
    assert sent(store) == []


async def test_a_monitor_that_starts_for_the_first_time_does_not_report_a_day_it_has_not_seen(store):
    first = daily(store)
    await first.restore(EIGHT_NS + HOUR_NS)
    await first.tick(EIGHT_NS + 2 * HOUR_NS)
    assert sent(store) == []


async def test_what_nobody_was_asked_about_is_stated_beside_what_was_judged(store):
    def finished(number: int, **more):
        return FinishedTrace(**{
            "trace_id": number.to_bytes(16, "big"), "service": "shop", "reason": "scored", "completion": "root",
            "revision": 1, "details": {}, "verdicts": [], "closed_ns": EIGHT_NS - HOUR_NS, **more,
        })  # fmt: skip

    await judged(store, 1, True)
    for number, reason in enumerate([f"{OUTAGE}: HTTP 503", f"{OUTAGE}: {BEHIND}"], 10):
        await judged(store, number, None)
        failed = {"metric": "kind", "status": Failed.status, "weight": 1.0, **reason_fields(Reason(reason))}
        verdict = {"rubric": "qa", "service": "shop", "passed": None, "sampling_probability": 1.0, "scores": [failed]}
        await store.finish(finished(number, verdicts=[verdict], revision=2))
    for number, share in enumerate([0.0, 0.0, 0.0, 0.5], 20):
        drawn = {"probability": 0.5, "judged_share": share, "over_budget": ["qa"]}
        await store.finish(finished(number, details={"sampling": drawn}))
    waits = {Key("shop", "unknown", "qa"): 5, Key("gone", "unknown", "qa"): 1}
    report = await daily(store, waiting=lambda _: waits).report(EIGHT_NS - 24 * HOUR_NS, EIGHT_NS, EIGHT_NS)
    (course,) = report.courses
    assert (course.passed, course.incomplete, course.unanswered, course.unreached, course.waiting) == (1, 2, 1, 3, 5)
    (line,) = [each.text for part in report_report(report).paragraphs for each in part if "shop" in each.text]
    assert line.endswith(
        "; no answer: 1 in an outage of a judge or embeddings, 3 because the budget of the judge was spent, "
        "5 wait for an outage to end; what passes is of the rest"
    )
    before = EIGHT_NS - 48 * HOUR_NS, EIGHT_NS - 24 * HOUR_NS
    (waiting,) = (await daily(store, waiting=lambda _: waits).report(*before, EIGHT_NS)).courses
    assert (waiting.service, waiting.passed, waiting.waiting, waiting.pass_ratio) == ("shop", 0, 5, None)
