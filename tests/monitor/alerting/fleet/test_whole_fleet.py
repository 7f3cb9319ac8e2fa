"""Three whole monitors over a real database: one status, one notice, and each goes on alone without the database."""

from __future__ import annotations

import asyncio
import time

import httpx

import sidejudge.integrations.prometheus.families as f
from sidejudge.dashboards.rules.promql import fleet
from sidejudge.scoring.status.status import Status
from tests.dashboards.prometheus_server import Prometheus, backfill
from tests.fakes.receiver import receiving
from tests.needs import PROMETHEUS
from tests.otlp_requests import LOW, S, request, span, trace
from tests.waiting import until

FAILING = {
    "routes": [{"rubrics": ["workflow"], "scenario": "never"}],
    "scenarios": {"never": {"tools_should_include": ["a_tool_that_nobody_has"]}},
}
RAN = {"gen_ai.operation.name": "invoke_agent", "output.value": "Done."}


async def test_three_monitors_have_one_status_and_receivers_hear_one_story(started, postgres, tmp_path):
    database, later_ns, monitors = postgres.url(postgres.new_database()), [0], []
    with receiving() as receiver:
        for number in range(3):
            app = await started(
                clock_ns=lambda: time.time_ns() + later_ns[0], **FAILING,
                store={"path": str(tmp_path / f"{number}.sqlite")},
                fleet={"database": database, "name": f"m{number}", "every": "200ms", "lease": "60s"},
                alerts={
                    "look": "1s", "min_samples": 30, "metrics": [{"metric": "latency_p50", "warning": "1h"}],
                    "instance": f"m{number}", "report": {"at": "08:00"},
                    "notify": [{"webhook": {"url": receiver.url, "severity": "warning"}}],
                },
            )  # fmt: skip
            monitors.append(app)
        for number, app in enumerate(monitors):
            share = range(20 * number, 20 * number + 20)
            await app.post(request([S(trace_id=trace(n + 1, LOW), span_id=span(1), attributes=RAN) for n in share]))
            await app.settled(20)
        later_ns[0] = 125 * 10**9  # the minute is over

        await until(lambda: shown(monitors) == [(Status.CRITICAL, 60)] * 3, seconds=120)
        views = [await app.get("/v1/fleet") for app in monitors]
        assert [view["name"] for view in views] == ["m0", "m1", "m2"]
        assert len({view["leader"] for view in views}) == 1
        for view in views:
            (service,), (own,) = view["services"], view["own"]
            assert (service["status"], service["n"], service["failures"]) == ("critical", 60, 60)
            assert own["n"] == 20
            assert (view["alone"], view["other_settings"]) == (None, None)
            assert [(each["name"], each["state"], each["verdicts"]) for each in view["monitors"]] == [
                ("m0", "working", 20), ("m1", "working", 20), ("m2", "working", 20)
            ]  # fmt: skip
        await shows_the_fleets_and_reports_its_share(monitors[0], time.time_ns() + later_ns[0])
        page = (await monitors[0].http.get(monitors[0].api + "/")).text
        assert all(each in page for each in ("monitors, and what each adds", "m2"))
        metrics = (await monitors[1].http.get(monitors[1].api + "/metrics")).text
        assert 'rubric="workflow",service="shop",status="critical"} 1.0' in metrics
        if PROMETHEUS.found is not None:
            await prometheus_finds(tmp_path, monitors)
        fired = [alert["condition"] for alert in (await monitors[2].get("/v1/alerts"))["alerts"]]
        assert "pass_rate_critical" in fired

        await until(
            lambda: any(app.monitor.fleet_status.status.leads for app in monitors)
        )  # a lease may move under load
        (leader,) = (app for app in monitors if app.monitor.fleet_status.status.leads)
        await until(lambda: any("pass_rate_critical" in str(got.json) for got in receiver.taken))
        told = [got.json for got in receiver.taken]
        assert len({body["id"] for body in told}) == len(told)

        # The leader ends; another goes on, and tells nobody again.
        await leader.monitor.stop()
        others = [app for app in monitors if app is not leader]
        await until(lambda: any(app.monitor.fleet_status.status.leads for app in others))
        name = leader.monitor.fleet.name
        later_ns[0] += 2 * 10**9
        await until(lambda: all(app.monitor.fleet_status.status.document.leader != name for app in others))
        await until(lambda: any((each.monitor, each.left) == (name, True) for each in others[0].monitor.fleet.monitors))
        found = await others[0].get("/v1/fleet")
        assert found["services"][0]["n"] == 60
        assert {each["name"]: each["state"] for each in found["monitors"]}[name] == "left"
        assert len({got.json["id"] for got in receiver.taken}) == len(receiver.taken)
        await when_the_database_fails(postgres, database, others, later_ns)
    alone = await started(**FAILING, store={"path": str(tmp_path / "alone.sqlite")})
    response = await alone.http.get(alone.api + "/v1/fleet")
    assert response.status_code == httpx.codes.NOT_FOUND
    assert "fleet.database" in response.text


async def shows_the_fleets_and_reports_its_share(app, now_ns):
    status = await app.get("/v1/status")
    assert (status["status"], status["services"][0]["n"]) == ("critical", 60)
    (limited,) = status["metrics"]
    assert (limited["metric"], limited["n"]) == ("latency_p50", 60)
    daily = await app.monitor.notifications.daily.report(now_ns - 86_400 * 10**9, now_ns, now_ns)
    assert (daily.share_of, [course.failed for course in daily.courses]) == ("m0", [20])


async def test_a_rubric_that_a_reload_removed_has_no_status_in_the_fleet(started, configured, postgres):
    own = {"metrics": [{"id": "quick", "check": {"latency": "1h"}}]}
    rest = {
        "fleet": {"database": postgres.url(postgres.new_database()), "every": "200ms", "lease": "60s"},
        "alerts": {"look": "1s"},
    }
    later_ns = [0]
    app = await started(
        clock_ns=lambda: time.time_ns() + later_ns[0], rubrics={"own": own}, routes=[{"rubrics": ["own"]}], **rest
    )
    status = app.monitor.fleet_status.status
    await app.post(request([S(trace_id=trace(1), span_id=span(1), attributes=RAN)]))
    await app.settled(1)
    later_ns[0] = 125 * 10**9
    await until(lambda: shown([app]) == [(Status.INSUFFICIENT_DATA, 1)])
    app.monitor.take_config(configured(routes=[{"rubrics": ["workflow"]}], **rest), {})
    later_ns[0] += 2 * 60 * 10**9
    await until(lambda: status.document.at_ns >= time.time_ns() + later_ns[0] - 60 * 10**9)
    assert status.document.services == []
    assert status.document.shares[app.monitor.fleet.name] == 0


async def when_the_database_fails(postgres, database, others, later_ns):
    """It comes back without a table: each publishes again what it had, and only a leader knows what others had."""
    name = database.rpartition("/")[2]
    postgres.sql("DROP SCHEMA sidejudge CASCADE", name)
    names = {app.monitor.fleet.name for app in others}

    def published():
        if postgres.sql("SELECT to_regclass('sidejudge.windows')", name) == [(None,)]:
            return set()
        return {monitor for (monitor,) in postgres.sql("SELECT monitor FROM sidejudge.windows", name)}

    await until(lambda: published() == names, seconds=60)
    later_ns[0] += 2 * 10**9
    await until(lambda: {n for _, n in shown(others)} in ({40}, {60}))
    assert {status for status, _ in shown(others)} == {Status.CRITICAL}
    await without_the_database(postgres, others[0], later_ns)


async def without_the_database(postgres, monitor, later_ns):
    for _ in range(20):  # a look between the two has its own answer
        monitor.monitor.fleet_status.status.other_settings = "roll one configuration out"
        stated = (await monitor.get("/v1/fleet"))["other_settings"]
        if stated is not None:
            break
    assert stated == "roll one configuration out"
    with postgres.stopped():
        await until(lambda: monitor.monitor.fleet.away is not None)
        later_ns[0] += 6 * 60 * 10**9  # what was known is too old
        found = await monitor.get("/v1/fleet")
        assert "fleet.database" in found["alone"]
        assert found["services"][0]["n"] == 20


def shown(monitors):
    """The status of the only service, and of how many verdicts, as each monitor knows it."""
    documents = [app.monitor.fleet_status.status.document for app in monitors]
    return [(each.appraisal.status, each.estimate.n) for found in documents if found for each in found.services]


async def prometheus_finds(folder, monitors):
    """What the expressions of the generated rules find over all three: the status, and the weights of verdicts."""
    kind = {"accept": "application/openmetrics-text;version=1.0.0"}
    scraped = [(await app.http.get(app.api + "/metrics", headers=kind)).text for app in monitors]
    await asyncio.to_thread(evaluated, folder, scraped)


def evaluated(folder, scraped):
    backfill(folder / "data", {f"m{number}": text for number, text in enumerate(scraped)})
    prometheus = Prometheus(folder, [])
    try:
        status = fleet(f.STATUS, "status", where='status="critical"', operation="max")
        weight, failed = fleet(f.VERDICT_WEIGHT), fleet(f.VERDICT_FAILED_WEIGHT)

        def found():
            return [[float(each["value"][1]) for each in prometheus.query(expr)] for expr in (status, weight, failed)]

        prometheus.until(lambda: found() == [[1.0], [60.0], [60.0]], "Prometheus finds something else")
    finally:
        prometheus.close()
