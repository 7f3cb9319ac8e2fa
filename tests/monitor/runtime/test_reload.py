"""Reloading a running monitor: what may change is in force, and what is wrong changes nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
import urllib.request
from urllib.error import HTTPError, URLError

import pytest

from tests.forked import Forked

CONFIG = """
api: {{listen: "127.0.0.1:0", reload: {reload}}}
sources: {{otlp: {{http: "127.0.0.1:0"}}}}
sampling: {{rate: 1.0}}
assembly: {{grace: 100ms, idle: 1s}}
store: {{path: store.sqlite}}
rubric_files: ["rubrics/*.yaml"]
routes: [{{rubrics: [own]}}]
{more}
"""
RUBRIC = "own: {metrics: [{id: way, check: {contains: WORD}}]}\n"


class Running:
    """A monitor as a process of its own."""

    def __init__(self, folder, *, reload="true", watch=""):
        self.folder, self.watch = folder, watch
        (folder / "rubrics").mkdir()
        self.write("way", reload=reload)
        out = folder / "out"
        self.process = Forked("serve", "--config", "sidejudge.yaml", cwd=folder, stdout=out, stderr=folder / "log")
        try:
            wait_for(lambda: out.exists() and out.read_text().count("\n") >= 2)
        except AssertionError:
            self.stop()
            raise AssertionError((folder / "log").read_text()) from None
        lines = out.read_text().splitlines()[:2]
        self.otlp, self.api = (re.match(r"https?://[^/]+", line.split()[1]).group() for line in lines)

    def write(self, word, *, reload="true", more=""):
        (self.folder / "rubrics" / "own.yaml").write_text(RUBRIC.replace("WORD", word))
        (self.folder / "sidejudge.yaml").write_text(CONFIG.format(reload=reload, more=f"{more}\n{self.watch}"))

    def get(self, path):
        with urllib.request.urlopen(self.api + path, timeout=10) as answer:
            return answer.read().decode()

    def reload(self):
        request = urllib.request.Request(self.api + "/-/reload", method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def send(self, trace_id, text, **more):
        def attribute(key, value):
            return {"key": key, "value": {"stringValue": value}}

        now = time.time_ns()
        span = {
            "traceId": trace_id, "spanId": trace_id[:16], "name": "chat", "startTimeUnixNano": str(now - 10**9),
            "endTimeUnixNano": str(now), "attributes": [
                attribute("openinference.span.kind", "LLM"), attribute("output.value", text),
                attribute("input.value", "where is it?"),
                *(attribute(key.replace("_", "."), value) for key, value in more.items()),
            ],
        }  # fmt: skip
        body = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": [span]}]}]}
        request = urllib.request.Request(
            self.otlp + "/v1/traces", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()

    def verdict(self, trace_id, by="trace_id"):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = json.loads(self.get(f"/v1/verdicts?{by}={trace_id}"))["verdicts"]
            if found:
                return found[0]
            time.sleep(0.05)
        raise TimeoutError((self.folder / "log").read_text())

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


@pytest.fixture
def running(tmp_path):
    made = Running(tmp_path)
    yield made
    made.stop()


def wait_for(holds, seconds=30):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_changed_rubric_judges_what_comes_next_and_a_mistake_changes_nothing(running):
    running.send("a" * 32, "it is on its way")
    before = running.verdict("a" * 32)
    assert before["passed"] is True

    running.write("parcel", more="log: {level: debug}")
    status, stated = running.reload()
    assert (status, stated["changed"], stated["needs_restart"], stated["mistakes"]) == (200, ["own"], ["log"], [])
    assert "sidejudge_config_last_reload_successful 1" in running.get("/metrics")
    running.send("b" * 32, "it is on its way")
    after = running.verdict("b" * 32)
    assert (after["passed"], after["rubric_version"] != before["rubric_version"]) == (False, True)
    # Only verdicts by the version in force count for the status.
    (service,) = json.loads(running.get("/v1/status"))["standings"]
    assert service["n"] == 1

    (running.folder / "rubrics" / "own.yaml").write_text("own: {metrics: [{id: way, check: {regex: '('}}]}\n")
    status, stated = running.reload()
    assert status == 500
    assert "rubrics.own.metrics[0].check.regex" in stated["mistakes"][0]
    assert "sidejudge_config_last_reload_successful 0" in running.get("/metrics")
    running.send("c" * 32, "the parcel")
    assert running.verdict("c" * 32)["rubric_version"] == after["rubric_version"]


def test_the_departures_from_a_scenario_that_is_new_begin_at_zero(running):
    running.write("way", more="scenarios: {refund: {tools_should_include: [find]}}")
    assert running.reload()[0] == 200
    zero = 'sidejudge_workflow_violations_total{kind="tools_missing",scenario="refund"} 0.0'
    assert zero in running.get("/metrics").splitlines()


def test_a_rubric_that_no_route_named_before_has_its_thresholds_and_scores_in_the_metrics(running):
    text = (running.folder / "sidejudge.yaml").read_text()
    other = "other: {metrics: [{id: polite, check: {contains: please}, blocker: disqualify}]}\n"
    (running.folder / "rubrics" / "own.yaml").write_text(RUBRIC.replace("WORD", "way") + other)
    assert running.reload()[1]["changed"] == ["other"]
    assert 'rubric="other"' not in running.get("/metrics")
    (running.folder / "sidejudge.yaml").write_text(text.replace("rubrics: [own]", "rubrics: [own, other]"))
    assert running.reload()[1]["changed"] == []
    running.send("a" * 32, "please")
    running.verdict("a" * 32)
    wait_for(lambda: 'sidejudge_verdict_weight_total{environment="unknown",rubric="other"' in running.get("/metrics"))
    lines = running.get("/metrics").splitlines()
    assert 'sidejudge_pass_ratio_threshold{level="warning",rubric="other"} 0.85' in lines
    assert 'sidejudge_metric_score_count{metric="polite",rubric="other",service="__all__"} 1.0' in lines
    assert [line for line in lines if line.startswith("sidejudge_verdicts_blocked_total") and 'rubric="other"' in line]


def test_of_a_rubric_that_a_reload_removes_no_status_is_shown_any_more(running):
    monitor = running
    monitor.send("a" * 32, "it is on its way")
    monitor.verdict("a" * 32)

    def rubrics():
        return [each["rubric"] for each in json.loads(monitor.get("/v1/status"))["services"]]

    wait_for(lambda: rubrics() == ["own"])
    threshold = 'sidejudge_pass_ratio_threshold{level="warning",rubric="own"}'
    assert threshold in monitor.get("/metrics")
    text = (monitor.folder / "sidejudge.yaml").read_text()
    (monitor.folder / "rubrics" / "own.yaml").write_text("{}\n")
    (monitor.folder / "sidejudge.yaml").write_text(text.replace("rubrics: [own]", "rubrics: [run_health]"))
    assert monitor.reload()[0] == 200
    wait_for(lambda: rubrics() == [])
    shown = monitor.get("/metrics")
    assert threshold not in shown
    assert threshold.replace("own", "run_health") in shown

    monitor.write("way")
    assert monitor.reload() == (200, {"changed": ["own"], "needs_restart": [], "mistakes": []})
    monitor.send("b" * 32, "it is on its way")
    monitor.verdict("b" * 32)
    wait_for(lambda: rubrics() == ["own"], 5)


def test_a_rubric_that_sessions_are_judged_by_until_a_restart_is_not_removed(tmp_path):
    rubric = "rubrics: {talk: {judges: sessions, metrics: [{id: way, check: {contains: way}}]}}"
    running = Running(tmp_path, watch=f"sessions: {{idle: 300ms, routes: [{{rubrics: [talk]}}]}}\n{rubric}")
    try:
        running.watch = ""
        running.write("another word")
        status, stated = running.reload()
        assert (status, stated["changed"]) == (500, [])
        assert stated["mistakes"][0].startswith("rubrics: talk is gone, by which sessions are judged")
        running.send("a" * 32, "it is on its way", session_id="one")
        assert running.verdict("talk", by="rubric")["passed"]
        assert running.verdict("own", by="rubric")["passed"], "nothing has changed"
    finally:
        running.stop()


JUDGE = "judge: {model: openai/small, api_key: sk-1}"
TALK = "rubrics: {talk: {metrics: [{id: way, check: {contains: way}}]}}"


@pytest.mark.parametrize(
    ("before", "after", "restart", "mistake"),
    [
        ("api: {auth: {bearer: [one]}}", "api: {auth: {bearer: [two]}}", ["api"], ""),
        (f"evaluators: {{{JUDGE}}}", f"evaluators: {{{JUDGE.replace('sk-1', 'sk-2')}}}", ["evaluators"], ""),
        ("sources: {attributes: {a: input}}", "sources: {attributes: {a: output}}", [], ""),
        (
            f"evaluators: {{{JUDGE}}}",
            f"evaluators: {{{JUDGE}, judges: {{strict: {{model: openai/big}}}}}}\nrubrics: {{qa: {{judge: strict}}}}",
            [],
            "evaluators.judges names no judge 'strict'",
        ),
        (
            f"evaluators: {{{JUDGE}}}",
            f"evaluators: {{{JUDGE}}}\nrubrics: {{agent: {{judge_config: {{model: big}}}}}}",
            [],
            "rubrics.agent.judge_config: openai/big is not asked",
        ),
        (
            f"{TALK}\nsessions: {{routes: [{{rubrics: [talk]}}]}}",
            f"{TALK}\nroutes: [{{rubrics: [talk]}}]",
            [],
            "sessions.routes: talk judges traces already",
        ),
        (
            "scenarios: {desk: {closed: true}}\nsessions: {routes: [{rubrics: [workflow], scenario: desk}]}",
            "sessions: {routes: [{rubrics: [workflow]}]}",
            [],
            "scenarios: desk is gone, by which sessions are judged",
        ),
    ],
)
def test_what_needs_a_restart_is_named_and_what_does_not_fit_until_then_is_refused(
    tmp_path, before, after, restart, mistake
):
    from sidejudge.monitor.config import resolve  # noqa: PLC0415  # with the rest of the configuration
    from sidejudge.monitor.runtime.reload import Reload  # noqa: PLC0415  # as above

    path, taken = tmp_path / "sidejudge.yaml", []
    path.write_text(before)
    first = resolve(path, {})

    class Monitor:
        config = first.config

        def take_config(self, config, changed):
            taken.append(config)

        def reloaded(self, *, successful):
            assert successful is not bool(mistake)

    path.write_text(after)
    result = asyncio.run(Reload(Monitor(), first, lambda before: resolve(path, {}, before.prompts))())
    assert (list(result.restart), bool(taken)) == (restart, not mistake)
    assert mistake in "".join(result.mistakes)


def test_sessions_are_held_to_the_scenarios_of_the_last_reload(tmp_path):
    routed = "sessions: {idle: 300ms, routes: [{rubrics: [workflow], scenario: desk}]}"
    scenarios = "scenarios: {desk: {tools_should_include: [find]}}"
    running = Running(tmp_path, watch=f"{routed}\n{scenarios}")
    try:
        running.watch = f"{routed}\n{scenarios.replace('find', 'pay')}"
        running.write("way")
        assert running.reload() == (200, {"changed": [], "needs_restart": [], "mistakes": []})
        running.send("a" * 32, "it is on its way", session_id="one")
        assert "missing: pay" in running.verdict("workflow", by="rubric")["reason"]
    finally:
        running.stop()


def test_the_meaning_of_an_attribute_is_in_force_after_a_reload_and_needs_no_restart(running):
    running.send("a" * 32, "it is on its way")
    assert running.verdict("a" * 32)["passed"] is True
    config = running.folder / "sidejudge.yaml"
    text = config.read_text()
    config.write_text(text.replace("sources: {", "sources: {attributes: {input.value: output}, "))
    status, stated = running.reload()
    assert (status, stated["needs_restart"], stated["mistakes"]) == (200, [], [])
    running.send("b" * 32, "it is on its way")
    assert running.verdict("b" * 32)["passed"] is False  # the answer is what was asked

    config.write_text(text.replace("sources: {", "sources: {attributes: {input.value: answer}, "))
    status, stated = running.reload()
    assert status == 500
    assert "sources.attributes" in stated["mistakes"][0]


def test_a_limit_that_concerns_a_new_rubric_is_told_to_need_a_restart(tmp_path):
    limit = "alerts: {metrics: [{metric: way_mean, warning_below: 0.9}]}"
    running = Running(tmp_path, watch=limit)
    try:
        (tmp_path / "rubrics" / "other.yaml").write_text(RUBRIC.replace("own", "other").replace("WORD", "way"))
        config = (tmp_path / "sidejudge.yaml").read_text()
        (tmp_path / "sidejudge.yaml").write_text(config.replace("[own]", "[own, other]"))
        for _ in range(2):  # it is as true at the second time
            status, stated = running.reload()
            assert (status, stated["needs_restart"]) == (200, ["alerts.metrics"])
        (tmp_path / "rubrics" / "other.yaml").unlink()
        (tmp_path / "sidejudge.yaml").write_text(config)
        assert running.reload()[1]["needs_restart"] == []
    finally:
        running.stop()


def test_a_signal_reloads_and_a_new_rubric_can_be_routed_to(running):
    (running.folder / "rubrics" / "more.yaml").write_text("other: {metrics: [{id: any, check: {length: {min: 1}}}]}\n")
    config = running.folder / "sidejudge.yaml"
    config.write_text(config.read_text().replace("rubrics: [own]", "rubrics: [other]"))
    running.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "was reloaded" in (running.folder / "log").read_text())
    running.send("d" * 32, "anything")
    assert running.verdict("d" * 32)["rubric"] == "other"
    assert running.process.poll() is None


def test_a_signal_that_comes_while_the_monitor_starts_reloads_it_once_it_runs(tmp_path):
    log, path, pipe = tmp_path / "log", tmp_path / "sidejudge.yaml", tmp_path / "pipe"
    text = (
        CONFIG.format(reload="false", more="")
        .replace('rubric_files: ["rubrics/*.yaml"]', "")
        .replace("[own]", "[text]")
    )
    os.mkfifo(pipe)
    path.symlink_to(pipe)
    process = Forked("serve", path, cwd=tmp_path, stderr=log)
    try:
        with pipe.open("w") as read:  # as soon as the monitor reads it
            process.send_signal(signal.SIGHUP)
            path.unlink()
            path.write_text(text)
            read.write(text)
        wait_for(lambda: process.poll() is not None or "was reloaded" in log.read_text())
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(10)


def test_a_changed_configmap_is_in_force_without_a_signal_and_a_broken_one_is_not(tmp_path):
    running = Running(tmp_path, watch="reload: {watch: true, every: 200ms}")
    try:
        running.send("a" * 32, "it is on its way")
        before = running.verdict("a" * 32)
        running.write("parcel")
        wait_for(lambda: "was reloaded" in (tmp_path / "log").read_text())
        running.send("b" * 32, "it is on its way")
        after = running.verdict("b" * 32)
        assert (before["passed"], after["passed"]) == (True, False)
        rubric = tmp_path / "rubrics" / "own.yaml"
        rubric.write_text("own: {metrics: [{id: way, check: {regex: '('}}]}\n")
        wait_for(lambda: "sidejudge_config_last_reload_successful 0" in running.get("/metrics"))
        time.sleep(2)
        assert (tmp_path / "log").read_text().count("was not reloaded") == 1
        rubric.write_text(RUBRIC.replace("WORD", "way"))
        wait_for(lambda: "sidejudge_config_last_reload_successful 1" in running.get("/metrics"))
        running.send("c" * 32, "it is on its way")
        assert running.verdict("c" * 32)["rubric_version"] == before["rubric_version"]
    finally:
        running.stop()


def test_what_changes_while_it_is_read_is_read_again(tmp_path):
    from sidejudge.monitor.config import resolve  # noqa: PLC0415  # as below
    from sidejudge.monitor.runtime.reload import Reload  # noqa: PLC0415  # as below

    path, taken = tmp_path / "sidejudge.yaml", []
    (tmp_path / "own.yaml").write_text(RUBRIC.replace("WORD", "one"))
    path.write_text("rubric_files: [own.yaml]\nroutes: [{rubrics: [own]}]\n")
    first = resolve(path, {})

    class Monitor:
        config, rubrics = first.config, dict(first.config.declared)

        def take_config(self, config, changed):
            taken.append(config.rubrics["own"].metrics[0]["check"])

        def reloaded(self, *, successful):
            assert successful

    def read(before):
        found = resolve(path, {}, before.prompts)
        if "three" not in (tmp_path / "own.yaml").read_text():
            (tmp_path / "own.yaml").write_text(RUBRIC.replace("WORD", "three"))  # by somebody else, meanwhile
        return found

    (tmp_path / "own.yaml").write_text(RUBRIC.replace("WORD", "two"))
    asyncio.run(Reload(Monitor(), first, read)())
    assert taken == [{"contains": "three"}]


def test_over_http_nothing_is_reloaded_unless_that_is_configured(tmp_path):
    running = Running(tmp_path, reload="false")
    try:
        running.write("parcel", reload="false")
        status, stated = running.reload()
        assert status == 403
        assert "SIGHUP" in json.dumps(stated)
    except URLError as error:
        raise AssertionError((tmp_path / "log").read_text()) from error
    finally:
        running.stop()


def test_two_reloads_at_once_come_one_after_the_other():
    from sidejudge.monitor.config import resolve  # noqa: PLC0415  # with the rest of the configuration
    from sidejudge.monitor.runtime.reload import Reload  # noqa: PLC0415  # as above

    order = []

    class Monitor:
        config, rubrics = resolve(None, {}).config, {}

        def take_config(self, config, changed):
            order.append("taken")

        def reloaded(self, *, successful):
            order.append(successful)

    def read(before):
        order.append("read")
        time.sleep(0.05)
        return resolve(None, {}, before.prompts)

    async def both():
        reload = Reload(Monitor(), resolve(None, {}), read)
        await asyncio.gather(reload(), reload())

    asyncio.run(both())
    assert order == ["read", "taken", True] * 2
