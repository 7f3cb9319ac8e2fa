"""Alerts in a whole monitor: what goes wrong is seen on every surface, survives a restart, and is told to listeners."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing

import pytest

from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.integrations.store.sqlite import Store, StoreUnavailable
from sidejudge.integrations.store.stored import FinishedTrace
from sidejudge.monitor.alerting.build import declaration, watched
from sidejudge.monitor.alerting.limited_windows import LimitedWindows
from sidejudge.monitor.alerting.observation import Key
from sidejudge.scoring.alerts.lifecycle import AlertTransition
from sidejudge.scoring.case.extract import extract
from sidejudge.scoring.learning.contract import learn
from sidejudge.scoring.learning.observed_run import observe_run
from sidejudge.scoring.status.status import Status, Thresholds
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS
from sidejudge.scoring.trace.trace import Trace
from tests.fakes.judge import judges
from tests.fakes.openai import Provider, hangs, page
from tests.needs import LITELLM
from tests.otlp_requests import HIGH, LOW, S, request, span, trace
from tests.seed_policy import estimate_of
from tests.waiting import answered, until

FAILING = {
    "routes": [{"rubrics": ["workflow"], "scenario": "never"}],
    "scenarios": {"never": {"tools_should_include": ["a_tool_that_nobody_has"]}},
    "alerts": {
        "min_samples": 5, "look": "100ms", "hysteresis": {"needed": 1, "looks": 1, "hold": "0s"},
        "rubrics": {"workflow": {"warning": 0.9}},
    },
}  # fmt: skip


def traces(first: int, count: int, chance: bytes = LOW) -> bytes:
    ran = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "orchestrator", "output.value": "Done."}
    numbers = range(first, first + count)
    return request([S(trace_id=trace(n, chance), span_id=span(1), service="shop", attributes=ran) for n in numbers])


async def test_what_goes_wrong_is_seen_everywhere_and_survives_a_restart(started):
    heard = []

    async def hear(event):
        heard.append(event)

    app = await started(**FAILING)
    app.monitor.schedule.listeners.append(hear)
    await app.post(traces(1, 40))
    await app.settled(40)
    await until(lambda: any(event.condition == "pass_rate_critical" for event in heard))
    event = next(event for event in heard if event.condition == "pass_rate_critical")
    assert (event.transition, dict(event.labels)["service"], event.n) == (AlertTransition.FIRING, "shop", event.n)
    assert len(event.examples) == 3
    assert all("a_tool_that_nobody_has" in example.reason for example in event.examples)
    assert all("a_tool_that_nobody_has" not in example.nameless for example in event.examples)

    board = await app.get("/v1/alerts")
    assert {c["id"] for c in board["conditions"]} == {c.id for c in app.monitor.watch.conditions}
    worst = board["alerts"][0]
    assert (worst["condition"], worst["stage"], worst["runbook"]) == (
        "pass_rate_critical",
        "firing",
        "pass-rate-critical",
    )
    assert worst["fingerprint"] == event.fingerprint
    warning = next(alert for alert in board["alerts"] if alert["condition"] == "pass_rate_warning")
    assert warning["muted"]
    assert warning["limit"] == 0.9
    status = await answered(lambda: app.get("/v1/status"), lambda status: status["status"] == "critical")
    (standing,) = status["standings"]
    assert standing["status"] == "critical"
    assert standing["thresholds"] == {"warning": 0.9, "critical": 0.7}
    assert standing["since"] is not None
    assert (standing["worst"], standing["best"]) == (0.0, 0.0)
    assert standing["change"]["alarmed"]
    assert "pass_rate_critical" in {alert["condition"] for alert in status["firing"]}
    page = (await app.http.get(app.api + "/")).text
    assert "Too few traces pass" in page
    assert "/help/dashboards/runbooks/pass-rate-critical" in page
    text = (await app.http.get(app.api + "/metrics")).text
    assert 'sidejudge_alerts{alert="pass_rate_critical",severity="critical",stage="firing"} 1.0' in text
    assert 'sidejudge_pass_ratio_threshold{level="warning",rubric="workflow"} 0.9' in text

    reported = len(heard)
    await app.monitor.stop()
    again = await started(**FAILING)
    again.monitor.schedule.listeners.append(hear)
    board = await again.get("/v1/alerts")
    assert board["alerts"][0]["since"] == worst["since"]
    assert again.monitor.view.status().services[0].appraisal.status is Status.CRITICAL
    assert len(heard) == reported, "nothing is told again"


@LITELLM.mark
async def test_verdicts_by_a_judge_are_not_mixed_with_those_by_the_one_before(started, configured):
    def settings(judge: str) -> dict:
        rubric = {"metrics": [{"id": "kind", "ask": "Is {{output}} kind?"}], "judge": judge}
        model = {"model": "openai/small", "api_base": provider.url, "api_key": "sk-1", "structured": "always"}
        return {
            "evaluators": {"order": ["judge"], "judge": model, "judges": {"other": {"model": "openai/other"}}},
            "rubrics": {"kindness": rubric, "done": {"metrics": [{"id": "done", "check": {"contains": "Done"}}]}},
            "routes": [{"rubrics": ["kindness", "done"]}],
        }  # fmt: skip

    async def counted(app, kindness: int, done: int) -> None:
        async def shown() -> dict:
            return {each["rubric"]: each["n"] for each in (await app.get("/v1/status"))["standings"]}

        await answered(shown, lambda n: (n.get("kindness", 0), n.get("done", 0)) == (kindness, done))

    with Provider(judges(lambda _, field: True if field == "answer" else None)) as provider:
        app = await started(**settings("default"))
        await app.post(traces(1, 5))
        await counted(app, 5, 5)
        app.monitor.take_config(configured(**settings("other")), {})
        await counted(app, 0, 5)
        await app.post(traces(6, 3))
        await counted(app, 3, 8)
        await app.monitor.stop()
        again = await started(**settings("other"))
        await counted(again, 3, 8)
        await again.monitor.stop()
        await counted(await started(**settings("default")), 0, 8)


@LITELLM.mark
async def test_statuses_know_of_traces_that_wait_for_a_judge(started):
    with Provider(page(503)) as provider:
        model = {"model": "openai/small", "api_base": provider.url, "api_key": "k", "structured": "always"}
        app = await started(
            evaluators={"judge": model},
            rubrics={"kindness": {"metrics": [{"id": "kind", "ask": "Is {{output}} kind?"}]}},
            routes=[{"rubrics": ["kindness"]}], sampling={"rate": 0.5},
        )  # fmt: skip
        await app.post(traces(1, 4, HIGH))
        await until(lambda: app.monitor.pipeline.judge_queue.waiting == 4)
        figures, key = sorted(app.monitor.awaited._since)
        assert (key.service, key.rubric, figures.rubric) == ("shop", "kindness", "")
        now_ns = app.monitor.clock_ns()
        assert app.monitor.watch.awaited(key, now_ns + MINUTE_NS) == 8
        provider.standing = judges(lambda _, field: True if field == "answer" else None)
        await app.settled(4)
        assert app.monitor.watch.awaited(key, now_ns + MINUTE_NS) == 0


@LITELLM.mark
async def test_prometheus_knows_of_traces_that_wait_for_a_slow_judge(started):
    approves = judges(lambda _, field: True if field == "answer" else None)
    with Provider(hangs()) as provider:
        provider.will(*[approves] * 12)
        model = {"model": "openai/small", "api_base": provider.url, "api_key": "k", "structured": "always"}
        ahead_ns = [0]
        asked, draw = {"id": "kind", "ask": "Is {{output}} kind?", "rate": 0.5}, random.Random(1)
        app = await started(
            clock_ns=lambda: time.time_ns() + ahead_ns[0], evaluators={"judge": {**model, "concurrency": 2}},
            rubrics={"kindness": {"metrics": [asked, {"id": "calm", "check": {"not-icontains-any": ["!"]}}]}},
            routes=[{"rubrics": ["kindness"]}], sampling={"rate": 1.0},
        )  # fmt: skip
        ran = {"gen_ai.operation.name": "invoke_agent"}
        spans = [
            S(trace_id=draw.randbytes(16), span_id=span(1), service="shop", attributes={**ran, "output.value": f"{n}"})
            for n in range(60)
        ]
        await app.post(request(spans))
        known = app.monitor.awaited._minutes.values
        # The first answer waits for what asks judges to be loaded, which takes half a minute on a busy machine.
        await until(lambda: sum(each.answers for held in known() for each in held.values()) == 12, 120)
        ahead_ns[0] = MINUTE_NS
        families = (await app.http.get(app.api + "/metrics")).text
        waits = len(app.monitor.awaited._keys)
        where = 'environment="unknown",like="{}",rubric="kindness",service="shop"'
        assert f"sidejudge_behind_traces{{{where.format('passed')}}} {float(waits)}" in families
        assert f"sidejudge_behind_traces{{{where.format('failed')}}} 0.0" in families
        assert (waits > 5, "sidejudge_unanswered_traces{" in families) == (True, False)


@LITELLM.mark
async def test_statuses_know_of_traces_that_got_no_answer_in_time_and_of_conversations_that_wait(started):
    with Provider(page(503)) as provider:
        model = {"model": "openai/small", "api_base": provider.url, "api_key": "k", "structured": "always"}
        ask = {"metrics": [{"id": "kind", "ask": "Is {{output}} kind?"}]}
        settings = {
            "evaluators": {"judge": model}, "sampling": {"rate": 0.5},
            "rubrics": {"kindness": ask, "talk": {**ask, "judges": "sessions"}},
            "routes": [{"rubrics": ["kindness"]}],
            "sessions": {"routes": [{"rubrics": ["talk"]}], "sampling_rate": 1.0},
        }  # fmt: skip
        ahead_ns = [0]
        app = await started(clock_ns=lambda: time.time_ns() + ahead_ns[0], **settings)
        spans = [
            S(trace_id=trace(n, HIGH), span_id=span(1), service="shop", attributes={
                "gen_ai.operation.name": "invoke_agent", "output.value": "Done.", "session.id": f"s{n // 2}",
            }) for n in range(4)
        ]  # fmt: skip
        await app.post(request(spans))
        await until(lambda: app.monitor.pipeline.judge_queue.waiting == 4)
        waiting = {key.rubric: weight for key, weight in app.monitor.awaited.weights(app.monitor.clock_ns()).items()}
        assert waiting == {"kindness": 8, "talk": 2, "": 8}
        ahead_ns[0] = HOUR_NS
        await app.settled(4)
        now_ns = app.monitor.clock_ns()
        (status,) = [each for each in app.monitor.watch.service_statuses(now_ns) if each.rubric == "kindness"]
        assert (status.incomplete, status.waiting) == (4, 8)
        families = (await app.http.get(app.api + "/metrics")).text
        assert 'sidejudge_unanswered_traces{environment="unknown",rubric="kindness",service="shop"} 8.0' in families
        assert "talk" not in {key.rubric for key in app.monitor.awaited.weights(now_ns)}


async def test_a_start_knows_of_traces_that_a_spent_budget_did_not_reach_for(started, tmp_path):
    path, now_ns = tmp_path / "kept.sqlite", time.time_ns()
    store = Store(path)
    # The clock was set back before the start: what is dated up to an hour ahead counts as verdicts do.
    past, ahead = [(0.0, 0), (0.0, MINUTE_NS), (0.5, 0), (0.0, 2 * HOUR_NS), (0.0, 1)], [(0.0, -HOUR_NS // 2)]
    for number, (share, ago_ns) in enumerate([*past, *ahead, (0.0, -2 * HOUR_NS)], 1):
        drawn = {"probability": 0.5, "judged_share": share, "over_budget": ["qa"]}
        await store.finish(
            FinishedTrace(
                trace_id=trace(number), service="shop", reason="over_budget", completion="root_ended", revision=1,
                details={"sampling": drawn, "environment": "prod"}, verdicts=[], closed_ns=now_ns - ago_ns,
            )
        )  # fmt: skip
    store._write_connection.execute("UPDATE traces SET story = '{\"over_budget\"' WHERE trace_id = ?", (trace(5),))
    store._write_connection.commit()
    store.close()
    app = await started(store={"path": str(path)})
    key = Key("shop", "prod", "qa")
    assert app.monitor.awaited.weights(app.monitor.clock_ns()) == {key: 6}
    assert [app.monitor.awaited.weight(key, now_ns + hours * HOUR_NS) for hours in (1, 2)] == [2, 0]


def runs(first: int, count: int, *tools: str) -> bytes:
    """Runs of an agent that calls these tools, one after the other."""
    spans = []
    for number in range(first, first + count):
        at = 10**18 + number * 10**9
        steps = [("invoke_agent", "agent.name", "harbour"), *(("execute_tool", "tool.name", tool) for tool in tools)]
        for step, (operation, key, name) in enumerate(steps, 1):
            spans.append(S(
                trace_id=trace(number, LOW), span_id=span(step), parent_id=span(1) if step > 1 else b"", name=name,
                service="harbour", start_ns=at + step * 10**6,
                end_ns=at + (10**8 if step == 1 else step * 10**6 + 10**5),
                attributes={"gen_ai.operation.name": operation, f"gen_ai.{key}": name},
            ))  # fmt: skip
    return request(spans)


def learned(*bodies: bytes) -> dict:
    """What ``learn`` makes of these requests."""
    by_trace = {}
    for body in bodies:
        for raw in decode_spans(body):
            by_trace.setdefault(raw.trace_id, []).append(normalise(raw))
    cases = [extract(Trace.of(trace_id, spans, "batch")) for trace_id, spans in by_trace.items()]
    runs_seen = [observe_run(case, group="harbour", good=None) for case in cases]
    return learn("harbour", runs_seen, most_false=0.1).scenarios()["harbour"]


async def test_a_drift_from_a_learned_contract_is_a_metric_and_an_early_warning(started):
    contract = learned(runs(1, 40, "find_ship", "book"), runs(41, 20, "find_ship"))
    assert contract["tools_may_include"] == ["book", "find_ship"]
    app = await started(
        routes=[{"rubrics": ["run_health", "workflow"], "scenario": "harbour"}],
        scenarios={"harbour": contract},
        alerts={"look": "100ms", "change": {"false_alarm_every": "1d"}},
    )
    await app.post(runs(1, 120, "find_ship", "book"))
    await app.settled(120)

    async def drift() -> dict | None:
        services = (await app.get("/v1/status"))["services"]
        return next(each["drift"] for each in services if each["rubric"] == "workflow")

    assert not (await answered(drift, lambda found: found is not None))["alarmed"]  # from the next look on
    for body in (runs(200, 10, "find_ship", "call_harbour_master"), runs(300, 10, "book")):
        await app.post(body)
    await app.settled(140)
    await until(lambda: any(known.condition == "scenario_drift" for known in app.monitor.watch.alerts.values()))
    await answered(drift, lambda found: found["alarmed"])  # an answer is kept for ten times what it took
    board = await app.get("/v1/alerts")
    alert = next(each for each in board["alerts"] if each["condition"] == "scenario_drift")
    assert (alert["stage"], alert["labels"]["service"]) == ("firing", "harbour")
    text = (await app.http.get(app.api + "/metrics")).text
    assert (
        'sidejudge_scenario_drift_timestamp_seconds{environment="unknown",rubric="workflow",service="harbour"}' in text
    )
    assert 'sidejudge_workflow_violations_total{kind="tools_unexpected",scenario="harbour"} 10.0' in text
    assert 'sidejudge_workflow_violations_total{kind="tools_missing",scenario="harbour"} 10.0' in text
    page = (await app.http.get(app.api + "/")).text
    assert "Behaviour seems to drift" in page
    assert "/help/dashboards/runbooks/pass-rate-critical" in page, "what explains it comes first"


async def test_verdicts_that_the_watch_had_not_remembered_are_learnt_at_the_next_start(started):
    calm = {**FAILING, "alerts": {**FAILING["alerts"], "look": "1h"}}
    app = await started(**calm)
    await app.post(traces(1, 30))
    await app.settled(30)
    seen = app.monitor.view.status().services[0].change
    await app.monitor.store.kept.change({"cursor": "0"})  # as after a crash: nothing of the last minutes is remembered
    app.monitor.schedule.remember = _nothing
    await app.monitor.stop()
    again = await started(**calm)
    assert again.monitor.view.status().services[0].change == seen


async def test_verdicts_of_a_clock_that_was_hours_ahead_count_neither_after_it_is_set_back_nor_after_a_restart(
    started, monkeypatch
):
    ahead_ns = 8 * HOUR_NS
    app = await started(clock_ns=lambda: time.time_ns() + ahead_ns, **FAILING)
    await app.post(traces(1, 12))
    await app.settled(12)
    await until(lambda: app.monitor.view.status().overall is Status.CRITICAL)
    ahead_ns = 0
    await until(lambda: app.monitor.view.status().services[0].estimate is None)
    await app.post(traces(13, 12))
    await app.settled(24)
    assert app.monitor.view.status().services[0].estimate.n == 12
    await app.monitor.stop()
    monkeypatch.setattr(LimitedWindows.__init__, "__defaults__", (12,))  # they take nobody's room either
    again = await started(**FAILING)
    assert [service.estimate.n for service in again.monitor.view.status().services] == [12]


_LIMITED = {"metrics": [{"rubric": "workflow", "metric": "habits_mean", "warning": 0.1}]}


@pytest.mark.parametrize(
    ("more", "reads"),
    [
        ({}, 40),
        ({"evaluators": {"cascade": {"agreement": 0.9}}}, 440),  # thresholds of a cascade are learned from all
        ({"alerts": FAILING["alerts"] | _LIMITED}, 440),  # few may have the value
    ],
)
async def test_a_start_reads_what_its_windows_hold_and_not_all_of_a_day(started, monkeypatch, more, reads):
    monkeypatch.setattr(LimitedWindows.__init__, "__defaults__", (100,))
    app = await started(**FAILING | more)
    await app.post(traces(1, 40))
    await app.settled(40)
    await until(lambda: app.monitor.view.status().overall is Status.CRITICAL)
    (key,) = app.monitor.windows.keys()
    before = estimate_of(app.monitor.windows, key, app.monitor.clock_ns())
    await app.monitor.stop()
    with (
        closing(sqlite3.connect(app.monitor.store.path)) as connection,
        connection,
    ):  # as many in each of ten hours before
        columns = "rubric, service, environment, passed, verdict, probability, version"
        for hour in range(2, 12):
            connection.execute(
                f"INSERT INTO verdicts (trace_id, closed_ns, {columns}) "
                f"SELECT randomblob(16), closed_ns - ?, {columns} FROM verdicts WHERE closed_ns > ?",
                (hour * HOUR_NS, time.time_ns() - HOUR_NS),
            )  # fmt: skip
    read, since = [], Store.verdicts_since
    monkeypatch.setattr(Store, "verdicts_since", lambda *args: (read.append(each) or each for each in since(*args)))
    again = await started(**FAILING | more)
    assert again.monitor.view.status().overall is Status.CRITICAL
    assert estimate_of(again.monitor.windows, key, again.monitor.clock_ns()) == before
    assert len(read) == reads
    assert bool(len(again.monitor.figures)) == ("alerts" in more), "where nobody limits them, none are kept"


async def _nothing() -> None:
    return None


async def test_a_store_that_refuses_leaves_the_statuses_as_they_were(started):
    app = await started(**FAILING)
    await app.post(traces(1, 10))
    await app.settled(10)
    await until(lambda: app.monitor.view.status().overall is Status.CRITICAL)

    async def refuse(values):
        raise StoreUnavailable("store x: it is full")

    app.monitor.store.kept.change = refuse
    await app.post(traces(100, 10))
    await app.settled(20)
    await app.monitor._watch_alerts()
    assert app.monitor.view.status().overall is Status.CRITICAL


def test_the_configuration_is_the_declaration(configured):
    config = configured(
        alerts={
            "thresholds": {"warning": 0.9, "critical": 0.8}, "rubrics": {"qa": {"critical": 0.5}}, "mode": "bound",
            "window": "2h", "look": "30s", "min_samples": 7, "min_failures": 2,
            "hysteresis": {"needed": 2, "looks": 3, "recovery_margin": 0.05, "hold": "1m"},
            "change": {"good": 0.97, "bad": 0.9, "false_alarm_every": "7d"},
            "limits": {
                "blocker_rate": 0.01, "violation_rate": 0.02, "judge_failure_rate": 0.03, "agreement": 0.4, "lag": "9s",
                "spool": "5MiB", "budget": 0.5,
            },
        }
    )  # fmt: skip
    declared = declaration(config)
    assert declared.policy_of("qa").thresholds == Thresholds(warning=0.9, critical=0.5)
    assert declared.policy_of("text").thresholds == Thresholds(warning=0.9, critical=0.8)
    assert (declared.policy.mode, declared.policy.min_samples, declared.policy.min_failures) == ("bound", 7, 2)
    assert (declared.window_ns, declared.look_ns) == (7_200 * 10**9, 30 * 10**9)
    assert (declared.rule.needed, declared.rule.looks, declared.rule.recovery_margin) == (2, 3, 0.05)
    assert declared.rule.hold_ns == 60 * 10**9
    assert declared.good_and_bad("qa") == (0.97, 0.9)
    limits = declared.limits
    assert (limits.blocker_ratio, limits.violation_ratio, limits.judge_failed_ratio) == (0.01, 0.02, 0.03)
    assert (limits.agreement, limits.lag_s, limits.spool_bytes, limits.budget_ratio) == (0.4, 9.0, 5 * 2**20, 0.5)
    rows = {row[0].strip(): row for row in watched(config)}
    assert rows["qa"][2] == "its own thresholds: 0.9 and 0.5"
    assert rows["pass_rate_critical"][3] == "2 of 3 looks"
    assert "upper bound of the pass ratio below 0.9" in rows["pass_rate_warning"][2]


def test_the_defaults_are_the_declarations_own(configured):
    from sidejudge.scoring.alerts.declaration import Declaration  # noqa: PLC0415  # only this test needs it

    assert declaration(configured()) == Declaration()
