"""A real Prometheus scrapes a real monitor: the same numbers, sound rules, and dashboards whose queries all answer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from sidejudge.dashboards.generated import FOLDER
from sidejudge.dashboards.rules import by_version as v
from sidejudge.dashboards.rules import recordings as r
from sidejudge.dashboards.rules.groups import rule_file, rules
from sidejudge.dashboards.rules.recordings import corrected
from sidejudge.monitor.demo.scene import CONFIG
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.status.hysteresis import Hysteresis
from sidejudge.scoring.status.status import Policy
from tests.dashboards.prometheus_server import Prometheus
from tests.fakes.judge import judges
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.fakes.openai import Provider
from tests.needs import LITELLM, PROMETHEUS
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.running import Running

pytestmark = [PROMETHEUS.mark, LITELLM.mark, pytest.mark.timeout(300)]
# What a scrape, a look and a wait take is cut from minutes to seconds; nothing else differs from what is shipped.
QUICK = Declaration(policy=Policy(), look_ns=10**9, hysteresis=Hysteresis(needed=3, looks=4))
TRACES, JUDGED = 300, 10
SESSIONS, TURNS = 16, 4
MODEL = "openai/gpt-4.1-mini-2025-04-14"
QUALITY = {"name": "quality", "match": {"service": ["shop", "desk"]}, "rubrics": ["quality"]}
CHAT = {"name": "chat", "match": {"service": ["chat"]}, "rubrics": ["workflow"], "scenario": "policy_question"}


@dataclass(slots=True)
class Live:
    monitor: Running
    prometheus: Prometheus


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A monitor that has judged bad traffic, drawn at uneven rates, while Prometheus looked on."""
    folder = tmp_path_factory.mktemp("live")
    demo = yaml.safe_load(CONFIG.read_text())
    text = re.sub(r"interval: [12]m\b", "interval: 1s", rule_file(QUICK))
    text = re.sub(r"    for: \w+\n", "", text)
    with ExitStack() as running:
        provider = running.enter_context(Provider(judges()))
        langfuse = running.enter_context(FakeLangfuse(Mode.NEW))
        judge = {
            "model": MODEL, "api_base": provider.url, "api_key": "sk-fake", "retries": 0, "timeout": "10s",
            "price": {"input_usd_per_million": 1, "output_usd_per_million": 4}, "budget_usd_per_hour": 10,
        }  # fmt: skip
        settings = {
            "routes": [*(_with_run_health(route) for route in demo["routes"]), QUALITY, CHAT],
            "scenarios": demo["scenarios"], "evaluators": {"judge": judge},
            "sampling": {"rate": 0.7, "rules": [{"name": "calls", "match": {"metadata.task": "qa"}, "rate": 1.0}]},
            "alerts": {
                "mode": "bound", "cluster": "metadata.chat", "look": "1s", "hysteresis": {"needed": 3, "looks": 4},
                "metrics": [{"metric": "latency_p50", "warning": "5m"}],
            },
            "sinks": {
                "jsonl": {"path": str(folder / "verdicts.jsonl")},
                "langfuse": {
                    "base_url": langfuse.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY,
                    "requests_per_minute": 100_000, "annotations": {"every": "1s"},
                },
            },
        }  # fmt: skip
        monitor = Running(folder, settings)
        running.callback(monitor.close)
        monitor.start()
        prometheus = Prometheus(folder, [monitor.api.removeprefix("http://")], text)
        running.callback(prometheus.close)
        prometheus.until(lambda: prometheus.query("sidejudge_build_info"), "the monitor was not scraped")
        _play(monitor, prometheus)
        total = str(sum(standing["n"] for standing in monitor.get("/v1/status")["standings"]))
        prometheus.until(
            lambda: [found["value"][1] for found in prometheus.query("sum(sidejudge_verdicts_total)")] == [total],
            "the last verdicts were not scraped",
        )
        prometheus.until(
            lambda: prometheus.query('ALERTS{alertname="SidejudgePassRateCritical",alertstate="firing"}'),
            "no alert fired",
        )
        _label(langfuse, monitor)
        prometheus.until(
            lambda: prometheus.query("sidejudge_labels_corrections") and prometheus.query(corrected("1h")),
            "what people say was not scraped",
        )
        yield Live(monitor, prometheus)


def _with_run_health(route: dict[str, Any]) -> dict[str, Any]:
    return {**route, "rubrics": [*route["rubrics"], "run_health"]}


def _play(monitor: Running, prometheus: Prometheus) -> None:
    traffic = SampleTraffic(3)
    for number in range(JUDGED):
        if number == JUDGED // 2:
            # What is seen to grow has to be seen before.
            prometheus.until(lambda: prometheus.query("sidejudge_application_cost_usd_total"), "no cost was scraped")
        monitor.post(needing_the_judge(number))
        monitor.post(needing_the_judge(JUDGED + number, service="desk"))
    for number in range(TRACES):
        body = traffic.next(time.time_ns(), 0.6).body
        monitor.post(body.replace(b"1.2.3", b"1.2.4") if number % 3 else body)  # two versions side by side
        if number % 20 == 0:
            time.sleep(0.7)  # so that counters are seen to grow
    for number in range(SESSIONS * TURNS):
        monitor.post(turn(number))
        if number % TURNS == 0:
            time.sleep(0.1)
    monitor.post(b"\xff not protobuf")
    monitor.settled(TRACES + 2 * JUDGED + SESSIONS * TURNS)


def _label(langfuse: FakeLangfuse, monitor: Running) -> None:
    """People look at every verdict on a trace: of those that passed they fail every fourth and correct all."""

    def everything_is_there() -> bool:
        exports = {each["destination"]: each for each in monitor.get("/v1/status")["exports"]}
        return exports["langfuse"]["waiting"] == 0

    monitor.until(everything_is_there, "scores wait")
    rows = [row for row in langfuse.scores.stored() if row["name"].endswith("_pass")]
    assert {row["value"] for row in rows} == {True, False}
    for number, row in enumerate(rows):
        stated = bool(row["value"]) and number % 4 > 0
        reported = {"traceId": row["traceId"], "source": "ANNOTATION", "authorUserId": "ann"}
        langfuse.scores.add(**reported, id=f"label-{number}", name=row["name"], value=float(stated), dataType="BOOLEAN")
        if row["value"]:
            corrects = {"name": "output", "value": "what it should have said", "dataType": "CORRECTION"}
            langfuse.scores.add(**reported, id=f"correction-{number}", **corrects)


WHAT_A_MODEL_COST = {
    "langfuse.observation.type": "generation",
    "langfuse.observation.model.name": "small",
    "langfuse.observation.usage_details": '{"input": 100, "output": 20}',
    "langfuse.observation.cost_details": '{"total": 0.001}',
}


def needing_the_judge(number: int, service: str = "shop") -> bytes:
    """A question and its answer. At the desk they have no source, so that no verdict passes or fails."""
    stated = {
        "langfuse.observation.input": f"When does order {number} come?",
        "langfuse.observation.output": f"Order {number} comes tomorrow.",
        "langfuse.trace.metadata.expected_outcome": f"Order {number} comes tomorrow.",
    }
    # What a tool returned is the source that the answer is judged by.
    looked_up = {"langfuse.observation.type": "tool", "langfuse.observation.output": f"Order {number}: tomorrow."}
    trace_id = trace(number, HIGH)
    tool = S(trace_id=trace_id, span_id=span(2), parent_id=span(1), name="look_up", attributes=looked_up)
    root = S(trace_id=trace_id, span_id=span(1), service=service, attributes=stated)
    model = S(trace_id=trace_id, span_id=span(3), parent_id=span(1), name="chat", attributes=WHAT_A_MODEL_COST)
    return request([root] if service == "desk" else [root, tool, model])


def turn(number: int) -> bytes:
    """A turn of a chat. Either all turns of a session look up what they have to, or none does."""
    session, trace_id = number // TURNS, trace(10_000 + number, HIGH)
    asked = {"langfuse.observation.input": f"When does order {number} come?"}
    stated = {"langfuse.trace.metadata.chat": f"c{session}", **asked}
    agent = {"langfuse.observation.type": "agent", **stated}
    tool = {"langfuse.observation.type": "tool", "langfuse.observation.output": f"Order {number}: tomorrow."}
    name = "pdf_retrieval" if session % 3 else "web_search"
    return request([
        S(trace_id=trace_id, span_id=span(1), service="chat", attributes=stated),
        S(trace_id=trace_id, span_id=span(2), parent_id=span(1), name="research", attributes=agent),
        S(trace_id=trace_id, span_id=span(3), parent_id=span(2), name=name, attributes=tool),
    ])  # fmt: skip


def inlined(record: str) -> str:
    """What a rule records, from counters as they stand instead of their increases: no extrapolation is in it."""
    known = {
        rule["record"]: rule["expr"] for group in rules(QUICK)["groups"] for rule in group["rules"] if "record" in rule
    }
    expr = known[record]
    while found := re.search(r"\w+(?::\w+)+", expr):
        expr = expr[: found.start()] + f"({known[found[0]]})" + expr[found.end() :]
    return re.sub(r"increase\((\w+(?:\{[^}]*\})?)\[\w+\]\)", r"\1", expr)


def test_prometheus_computes_what_the_process_computes(live: Live) -> None:
    statuses = [standing for standing in live.monitor.get("/v1/status")["standings"] if standing["n"]]
    assert len(statuses) >= 3
    [chat] = [standing for standing in statuses if standing["service"] == "chat"]
    assert chat["clusters"] == SESSIONS
    assert chat["design_effect"] > TURNS / 2
    assert chat["effective_n"] < chat["n"] / 2
    for name, field in (
        (r.pass_ratio("1h"), "pass_ratio"), (r.effective("1h"), "effective_n"), (r.lower("1h"), "lower"),
        (r.upper("1h"), "upper"), (r.failures("1h"), "failures"),
    ):  # fmt: skip
        found = {
            tuple(each["metric"][label] for label in ("service", "environment", "rubric")): float(each["value"][1])
            for each in live.prometheus.query(inlined(name))
        }
        reported = {(s["service"], s["environment"], s["rubric"]): s[field] for s in statuses}
        assert {key: found[key] for key in reported} == pytest.approx(reported, rel=1e-9), name


def test_what_people_would_have_passed_is_told_alike(live: Live) -> None:
    reported = {
        (s["service"], s["environment"], s["rubric"]): s["corrected"]["pass_ratio"]
        for s in live.monitor.get("/v1/status")["standings"]
        if s["corrected"] is not None
    }
    assert reported
    found = {
        tuple(each["metric"][label] for label in ("service", "environment", "rubric")): float(each["value"][1])
        for each in live.prometheus.query(inlined(corrected("1h")))
    }
    assert {key: found[key] for key in reported} == pytest.approx(reported, rel=1e-9)
    powered = [s["prediction_powered"] for s in live.monitor.get("/v1/status")["standings"] if s["prediction_powered"]]
    assert powered
    assert all(each["lower"] <= each["pass_ratio"] <= each["upper"] for each in powered)


def test_the_recorded_numbers_are_those_but_for_extrapolation(live: Live) -> None:
    # The few traces that were judged at once were counted between two scrapes: what is born at 10 has not increased.
    grown = [each for each in live.monitor.get("/v1/status")["standings"] if each["rubric"] != "quality"]
    assert len(grown) >= 3
    for standing in grown:
        place = ",".join(f'{label}="{standing[label]}"' for label in ("service", "environment", "rubric"))
        [found] = live.prometheus.query(f"{r.pass_ratio('1h')}{{{place}}}")
        assert float(found["value"][1]) == pytest.approx(standing["pass_ratio"], abs=0.1)


def test_versions_are_compared(live: Live) -> None:
    found = {
        name: {(each["metric"]["service"], each["metric"]["rubric"], each["metric"]["version"]): float(each["value"][1])
               for each in live.prometheus.query(f'{name}{{service=~"call-.*"}}')}
        for name in (v.DIFFERENCE, v.LOWER, v.UPPER)
    }  # fmt: skip
    assert {(service, version) for service, _, version in found[v.DIFFERENCE]} == {
        (service, version) for service in ("call-quality", "call-entities") for version in ("1.2.3", "1.2.4")
    }
    for key, difference in found[v.DIFFERENCE].items():
        assert found[v.LOWER][key] < difference < found[v.UPPER][key]
        other = "1.2.3" if key[2] == "1.2.4" else "1.2.4"
        assert found[v.DIFFERENCE][*key[:2], other] == pytest.approx(-difference)


def test_no_rule_fails_and_every_alert_reads_well(live: Live) -> None:
    groups = live.prometheus.get("rules")["groups"]
    found = [rule for group in groups for rule in group["rules"]]
    assert len(found) == sum(len(group["rules"]) for group in rules(QUICK)["groups"])
    assert [(rule["name"], rule.get("lastError")) for rule in found if rule["health"] != "ok"] == []
    alerts = live.prometheus.get("alerts")["alerts"]
    assert {"SidejudgePassRateCritical", "SidejudgePassRateWarning"} <= {
        alert["labels"]["alertname"] for alert in alerts
    }
    for alert in alerts:
        for text in alert["annotations"].values():
            assert text.strip()
            assert not re.search(r"<error|<no value>|\{\{|%!| on  | \(\)", text), text


def test_process_and_prometheus_agree_on_the_status(live: Live) -> None:
    codes = {"insufficient_data": -1, "healthy": 0, "warning": 1, "critical": 2}
    who = ("service", "environment", "rubric")

    def in_process() -> dict[tuple[str, ...], float]:
        statuses = live.monitor.get("/v1/status")["standings"]
        return {tuple(each[label] for label in who): codes[each["status"]] for each in statuses}

    def in_prometheus() -> dict[tuple[str, ...], float]:
        found = live.prometheus.query(r.STATUS)
        return {tuple(each["metric"][label] for label in who): float(each["value"][1]) for each in found}

    assert set(in_process().values()) >= {2, 0, -1}
    assert in_process()["desk", "unknown", "quality"] == -1
    # Both look once a second, not at the same moment.
    live.prometheus.until(
        lambda: {key: in_prometheus().get(key) for key in in_process()} == in_process(), "they do not agree", seconds=20
    )


def filled(expr: str, board: dict[str, Any]) -> str:
    """The expression with Grafana's variables put in, as for 'All'."""
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            expr = expr.replace(f"${variable['name']}", variable["allValue"] or ".+")
    return expr.replace("$__rate_interval", "5m")


def queries() -> list[tuple[str, str, str]]:
    found = []
    for path in sorted((FOLDER / "grafana" / "json").glob("*.json")):
        board = json.loads(path.read_text())
        for panel in board["panels"]:
            found += [
                (board["uid"], panel["title"], filled(target["expr"], board)) for target in panel.get("targets", ())
            ]
    return found


def test_every_query_of_the_dashboards_answers(live: Live) -> None:
    requested = queries()
    assert len(requested) > 50

    def is_silent(query: str) -> bool:
        return not live.prometheus.query(query.removesuffix(" > 0"))  # nothing may be above nought: it is asked for all

    silent = [each for each in requested if is_silent(each[2])]
    # After a scrape that failed, as on a busy machine, nothing is shown until the next one.
    live.prometheus.until(lambda: not any(is_silent(query) for *_, query in silent), "\n".join(map(str, silent)))


def test_every_variable_has_values(live: Live) -> None:
    for path in (FOLDER / "grafana" / "json").glob("*.json"):
        board = json.loads(path.read_text())
        for variable in board["templating"]["list"]:
            if variable["name"] in {"cluster", "namespace"}:
                assert variable["allValue"] == ".*", "this Prometheus has no such labels: all has to match none"
            elif variable["type"] == "query":
                series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
                assert live.prometheus.get(f"label/{label}/values", **{"match[]": filled(series, board)}), variable[
                    "name"
                ]


def test_failures_lead_to_traces(live: Live) -> None:
    now = time.time()
    found = live.prometheus.get(
        "query_exemplars", query="sidejudge_verdicts_failed_total", start=str(now - 600), end=str(now)
    )
    traces = {exemplar["labels"]["trace_id"] for series in found for exemplar in series["exemplars"]}
    assert traces
    assert traces <= {verdict["trace_id"] for verdict in live.monitor.verdicts(passed="false")}
