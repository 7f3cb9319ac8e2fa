"""``status``, ``explain TRACE_ID`` and ``doctor`` against a server that answers as a monitor does."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from sidejudge.dashboards.pages.status_page import MonitorReport
from sidejudge.monitor.api.explain import explanation, sampling_forecast
from sidejudge.monitor.api.schemas import StatusBody
from sidejudge.monitor.cli.doctor_checks import memory_limit
from sidejudge.monitor.config import load
from sidejudge.scoring.statistics.estimate import estimate
from sidejudge.scoring.status.service_status import ServiceStatus
from sidejudge.scoring.status.status import Policy, appraise
from tests.certificates import make
from tests.image.dockerfile import image
from tests.running import Running

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
STORY = {
    "trace_id": TRACE,
    "name": "qa-call\x1b[31m",
    "service": "calls",
    "environment": "production",
    "spans": 7,
    "dialects": ["langfuse"],
    "completion": "root_ended",
    "closed_ns": 1_795_000_000_000_000_000,
    "revision": 2,
    "sampling": {"probability": 0.01, "selection": "random", "rule": None},
    "route": "routes[0]",
    "rubrics": ["qa"],
    "reason": "scored",
    "verdicts": [
        {
            "rubric": "qa", "passed": False, "composite": 0.5, "state": "valid", "pass_mark": 0.87, "reason": "",
            "scores": [{"metric": "question_score_accuracy", "value": 0.5, "status": "scored", "weight": 0.7,
                        "rating": "fail", "reason": "1 of 2 questions"}],
        }
    ],
}  # fmt: skip


def status_body() -> dict[str, object]:
    reported_by = estimate([(True, 20.0)] * 40 + [(False, 20.0)] * 20)
    policy = Policy()
    report = MonitorReport(
        services=[
            ServiceStatus(
                service="calls", environment="production", rubric="qa", estimate=reported_by,
                appraisal=appraise(reported_by, policy),
            ),
            ServiceStatus(
                service="new", environment="production", rubric="qa", estimate=None, appraisal=appraise(None, policy)
            ),
        ],
        policy=policy, window_ns=3600 * 10**9, seen=100, open=1, ended={"scored": 60, "sampled_out": 39}, revisions=0,
        sampling_rate=0.05, otlp_port=4317, sampling_rules=[],
        version="0.1.0", fingerprint="abc", started_ns=10**18, now_ns=10**18 + 5,
    )  # fmt: skip
    return json.loads(StatusBody.of(report).model_dump_json())


def test_status_is_a_table_of_standings_and_the_outcomes(call, monitor_at) -> None:
    shown = call("status", "--url", monitor_at({"/v1/status": status_body()}))
    assert shown.exit_code == 1, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].split()[:3] == ["STATUS", "SERVICE", "ENVIRONMENT"]
    assert lines[1].split()[:5] == ["warning", "calls", "production", "qa", "0.667"]
    assert lines[2].split()[:5] == ["insufficient_data", "new", "production", "qa", "-"]
    assert "since start: traces seen 100, open 1, ended: scored 60, sampled_out 39" in shown.stdout


def test_status_gives_reasons_only_where_something_is_wrong(call, monitor_at) -> None:
    shown = call("status", "--url", monitor_at({"/v1/status": status_body()})).stdout
    assert "  calls, production, qa: " in shown
    assert "  new, production, qa: " not in shown


def test_status_says_what_references_that_came_late_left_undone(call, monitor_at) -> None:
    late = {
        "state": "retrying", "reason": "it is away", "waiting": 3, "given_up": 2, "oldest": None, "revised": 1,
        "unchanged": 0, "failures": {"gone": 5},
    }  # fmt: skip
    shown = call("status", "--url", monitor_at({"/v1/status": {**status_body(), "late_references": late}})).stdout
    stated = "references that came late: retrying (it is away), 3 verdicts to be revised, 2 left as they are"
    assert stated + ", gone 5" in shown


def test_status_hints_at_the_name_of_a_service_that_has_none(call, monitor_at) -> None:
    body = status_body()
    assert "OTEL_SERVICE_NAME" not in call("status", "--url", monitor_at({"/v1/status": body})).stdout
    body["services"][0]["service"] = "unknown_service:python"
    assert "OTEL_SERVICE_NAME" in call("status", "--url", monitor_at({"/v1/status": body})).stdout


def test_status_as_json_is_what_the_monitor_said(call, monitor_at) -> None:
    shown = call("status", "--format", "json", "--url", monitor_at({"/v1/status": status_body()}))
    assert json.loads(shown.stdout) == status_body()


@pytest.mark.parametrize(
    ("overall", "code"), [("healthy", 0), ("warning", 1), ("critical", 3), ("insufficient_data", 4)]
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_the_exit_code_of_status_says_how_it_is(call, monitor_at, overall, code, form) -> None:
    url = monitor_at({"/v1/status": {**status_body(), "status": overall}})
    assert call("status", url, "--format", form).exit_code == code
    assert call("status", url, "--format", form, "--any-state").exit_code == 0


def test_what_is_no_address_is_refused_and_not_waited_for(call):
    refused = call("status", "monitor:8790", "--watch")
    assert (refused.exit_code, "must begin with http" in refused.stderr) == (2, True)


def test_status_tells_of_judge_and_exports_a_line_each(call, monitor_at) -> None:
    export = {
        "destination": "webhook",
        "state": "retrying",
        "reason": "no answer",
        "waiting": 2,
        "unseen": 0,
        "dead": 1,
    }
    judge = {
        "name": "m\x1b[31m", "in_flight": 1, "waiting": 3, "budgets": [], "models": [], "shares": {"high": 1.0},
    }  # fmt: skip
    url = monitor_at({"/v1/status": {**status_body(), "exports": [export, {**export, "unseen": 4}], "judge": judge}})
    lines = call("status", url).stdout.splitlines()
    assert "judge m: 1 in flight, 3 waiting, " in lines
    assert "export to webhook: retrying (no answer): 2 wait, 1 given up" in lines
    assert "export to webhook: retrying (no answer): 2 wait, 4 not seen there yet, 1 given up" in lines
    assert not [line for line in lines if "\\n" in line]


@pytest.mark.parametrize("body", [{}, [], {"services": [{}]}, b"<html>"])
def test_status_of_something_that_is_no_monitor_is_two_lines(call, monitor_at, body) -> None:
    shown = call("status", "--url", monitor_at({"/v1/status": body}))
    assert shown.exit_code == 2
    assert len(shown.stderr.splitlines()) == 2


def test_why_a_monitor_cannot_answer_now_is_shown_as_it_states_it(call, monitor_at) -> None:
    stated = {"error": "the search took longer than 5 s", "remedy": "narrow it by time, service or rubric"}
    shown = call("status", "--url", monitor_at({"/v1/status": (503, stated)}))
    assert shown.exit_code == 2
    assert shown.stderr.splitlines() == [f"error: {stated['error']}", f"remedy: {stated['remedy']}"]
    shown = call("status", "--url", monitor_at({"/v1/status": (503, b"<html>a proxy")}))
    assert "answered 503" in shown.stderr


def test_where_nobody_answers_the_remedy_says_how_to_start(call) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shown = call("status", "--url", f"http://127.0.0.1:{port}")
    assert shown.exit_code == 2
    assert "no monitor answers" in shown.stderr
    assert "sidejudge serve" in shown.stderr
    assert call("status", "--url", "file:///etc/passwd").exit_code == 2


def test_the_story_of_a_trace_is_told_without_its_terminal_escapes(call, monitor_at) -> None:
    shown = call("explain", TRACE.upper(), "--url", monitor_at({f"/v1/traces/{TRACE}": STORY}))
    assert shown.exit_code == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert "it ended as scored: a rubric reached a verdict" in shown.stdout
    assert "probability 0.01, and so counts 100-fold" in shown.stdout
    assert "qa: failed, composite 0.500 (pass mark 0.87), valid" in shown.stdout
    assert "question_score_accuracy 0.500 fail, weight 0.7: 1 of 2 questions" in shown.stdout


def test_a_composite_is_shown_on_the_side_of_the_pass_mark_that_decides() -> None:
    verdict = {"rubric": "qa", "passed": False, "composite": 0.8697, "pass_mark": 0.87, "state": "valid"}
    shown = list(explanation({"trace_id": TRACE, "reason": "scored", "verdicts": [verdict]}))
    assert "  qa: failed, composite 0.8697 (pass mark 0.87), valid" in shown


def test_what_is_unexpected_may_be_excluded_where_the_scenario_is_open() -> None:
    tools = {"metric": "tools", "value": 0.0, "reason": "unexpected: web_search"}
    verdict = {"rubric": "workflow", "passed": False, "state": "valid", "scores": [tools]}
    shown = "".join(explanation({"trace_id": TRACE, "reason": "scored", "verdicts": [verdict]}))
    assert "the scenario excludes it, or does not name it where it is closed" in shown


def test_a_story_of_few_words_is_told_as_well() -> None:
    assert list(explanation({"trace_id": TRACE, "reason": None}))[-1].startswith("  it is still open")
    waits = list(explanation({"trace_id": TRACE, "reason": None, "waits_for": "judge"}))
    assert waits[-1] == "  it waits for the judge: its spans are kept, and it will be judged"
    (_, excluded) = explanation({"trace_id": TRACE, "reason": "excluded", "excluded": "routes[0] excludes it"})
    assert excluded.endswith("by a route without rubrics (routes[0] excludes it)")
    over = explanation({
        "trace_id": TRACE, "reason": "over_budget",
        "sampling": {"probability": 0.5, "selection": "random", "judged_share": 0.25, "over_budget": ["answer"]},
    })  # fmt: skip
    assert list(over)[-3:] == [
        "  the judge's budget reached for 0.25 of such traces",
        "  it was not among them, so these rubrics did not judge it: answer",
        "  it ended as over_budget: its rubrics need a judge, and the budget of the judge did not reach for it",
    ]
    assert "undecodable" in "\n".join(explanation({"trace_id": TRACE, "reason": "undecodable"}))


def test_of_an_unknown_trace_the_sampling_decision_is_told(call, monitor_at, tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("sampling: {rate: 0.25, rules: [{name: errors, match: {level: error}, rate: 1.0}]}")
    url = monitor_at({})
    low, high = "0" * 18 + "1" * 14, "0" * 18 + "f" * 14
    unknown = call("explain", low, "--url", url, "--config", config)
    assert unknown.exit_code == 1
    assert "the base rate does not draw it" in unknown.stdout
    assert "the rule 'errors' (rate 1) would draw it if it matches: level: error" in unknown.stdout
    assert "it would be drawn, with probability 0.25" in call("explain", high, "--url", url, "--config", config).stdout
    assert "--config FILE" in call("explain", low, "--url", url).stdout


def test_the_forecast_agrees_with_the_sampler_at_the_threshold() -> None:
    config = load(None, {"SIDEJUDGE_SAMPLING__RATE": "0.5"})
    assert "does not draw" in "".join(sampling_forecast("0" * 18 + "7f" + "f" * 12, config))
    assert "would be drawn" in "".join(sampling_forecast("0" * 18 + "80" + "0" * 12, config))


def test_doctor_finds_a_running_monitor_and_a_taken_port(call, monitor_at, tmp_path: Path) -> None:
    port = int(monitor_at({"/livez": "ok"}).rpartition(":")[2])
    path = tmp_path / "c.yaml"
    stated = f"api: {{listen: '127.0.0.1:{port}'}}\nsources: {{otlp: {{http: '127.0.0.1:0'}}}}\n"
    path.write_text(stated + f"store: {{path: {tmp_path}/deep/er/state.sqlite}}")
    shown = call("doctor", "--config", path)
    assert shown.exit_code == 0, shown.stdout
    assert "in use, and a monitor answers" in shown.stdout
    assert not (tmp_path / "deep").exists()

    stranger = int(monitor_at({}).rpartition(":")[2])
    path.write_text(f"api: {{listen: '127.0.0.1:{stranger}'}}\nsources: {{otlp: {{http: '127.0.0.1:0'}}}}\n")
    shown = call("doctor", "--config", path)
    assert shown.exit_code == 1
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("fail")]
    assert "set api.listen to another address" in line


def test_what_a_running_monitor_suspects_of_its_traffic_is_told_by_status_and_doctor(
    call, monitor_at, tmp_path: Path
) -> None:
    suspicion = {
        "kind": "split_traces",
        "service": None,
        "cause": "90 of 100 traces\x1b[31m lack",
        "remedy": "route by id",
    }
    url = monitor_at({"/livez": "ok", "/v1/status": {**status_body(), "anomalies": [suspicion]}})
    shown = call("status", "--url", url)
    assert "suspicious: 90 of 100 traces" in shown.stdout
    assert "remedy: route by id" in shown.stdout
    assert "\x1b" not in shown.stdout

    path = tmp_path / "c.yaml"
    stated = f"api: {{listen: '127.0.0.1:{url.rpartition(':')[2]}'}}\nsources: {{otlp: {{http: '127.0.0.1:0'}}}}\n"
    path.write_text(stated + f"store: {{path: {tmp_path}/state.sqlite}}")
    (line,) = [each for each in call("doctor", "--config", path).stdout.splitlines() if "traffic" in each]
    assert line.startswith("warn")
    assert "route by id" in line


def test_doctor_tells_of_a_broken_configuration_and_of_all_else(call, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("rate: 1")
    shown = call("doctor", "--config", path)
    assert shown.exit_code == 1
    assert "did you mean sampling.rate?" in shown.stdout
    assert "protobuf" in shown.stdout
    path.write_text("rate: 1\nsmapling: {}\nalrets: {}")
    (line,) = [each for each in call("doctor", "--config", path).stdout.splitlines() if each.startswith("fail")]
    assert line.split()[:4] == ["fail", "configuration", "3", "mistakes"]
    assert "sidejudge check FILE" in line


def test_doctor_and_the_images_health_check_find_a_monitor_whose_api_is_encrypted(call, tmp_path: Path) -> None:
    made, monitor = make(tmp_path), Running(tmp_path)
    listen = monitor.api.removeprefix("http://")
    monitor.configure(api={"listen": listen, "tls": {"certificate": made.server, "key": made.server_key}})
    monitor.api, monitor.http = f"https://{listen}", httpx.Client(verify=False, timeout=10)  # made for this test
    check = [sys.executable, *(part.replace("127.0.0.1:8790", listen) for part in image().healthcheck[1:])]
    assert subprocess.run(check, check=False, capture_output=True).returncode != 0
    monitor.start()
    try:
        assert subprocess.run(check, check=False).returncode == 0
        shown = call("doctor", "--config", monitor.config)
        assert f"in use, and a monitor answers at {listen}" in shown.stdout
    finally:
        monitor.close()


@pytest.mark.parametrize(
    ("limit", "grades"),
    [("max", []), ("", []), (str(384 << 20), ["warn"]), (str(512 << 20), ["ok"])],
    ids=["none", "unreadable", "too low", "enough"],
)
def test_doctor_compares_the_containers_memory_limit_with_what_is_taken_at_most(tmp_path: Path, limit, grades) -> None:
    file = tmp_path / "memory.max"
    file.write_text(limit)
    assert [each.grade for each in memory_limit(load(None, {}), file)] == grades
    assert list(memory_limit(load(None, {}), tmp_path / "none")) == []
