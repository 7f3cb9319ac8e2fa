"""What a bare `serve` shows of agents: verdicts, what is usual across a restart, metrics, and a learned contract."""

from __future__ import annotations

import json
import time

import yaml

from sidejudge.integrations.otlp.wire.decode import decode_spans
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.forked import sidejudge
from tests.otlp_requests import S, request, span, trace
from tests.running import ROOT

TRACES = 72


def run_of_an_agent(number: int, *, tokens: int = 100, fails: bool = False) -> bytes:
    """A request with one run: an agent looks a ship up, asks a model, and answers."""
    at = time.time_ns() // 10**6 * 10**6 - 5 * 10**9

    def step(span_id: int, name: str, begins_ms: int, ends_ms: int, operation: str, **attributes: str | int) -> S:
        return S(
            trace_id=trace(number), span_id=span(span_id), parent_id=span(1) if span_id > 1 else b"", name=name,
            service="harbour", start_ns=at + begins_ms * 10**6, end_ns=at + ends_ms * 10**6,
            attributes={"gen_ai.operation.name": operation, **{f"gen_ai.{k}": v for k, v in attributes.items()}},
        )  # fmt: skip

    result = "Error: harbour office closed" if fails else f"the Aurora {number} sails at 9:{number % 60:02}"
    answer = messages("assistant", f"Aurora {number} sails at 9:{number % 60:02}.")
    asked = messages("user", "When does a ship leave Riga?")
    return request([
        step(1, "invoke_agent harbour", 0, 900, "invoke_agent",
             **{"agent.name": "harbour", "input.messages": asked, "output.messages": answer}),
        step(2, "execute_tool find_ship", 100, 200, "execute_tool",
             **{"tool.name": "find_ship", "tool.call.arguments": '{"port": "Riga"}', "tool.call.result": result}),
        step(3, "chat m", 300, 800, "chat",
             **{"request.model": "m", "usage.input_tokens": tokens, "usage.output_tokens": 10 + number % 7,
                "output.messages": answer}),
    ])  # fmt: skip


def messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def send(monitor, *runs: bytes) -> None:
    for body in runs:
        assert monitor.post(body).status_code == 200


def verdict_on(monitor, number: int) -> dict:
    found = monitor.get(f"/v1/traces/{trace(number).hex()}")["verdicts"]
    return next(verdict for verdict in found if verdict["rubric"] == "run_health")


def metric(verdict: dict, name: str) -> dict:
    return next(score for score in verdict["scores"] if score["metric"] == name)


def test_a_bare_monitor_learns_what_is_usual_and_what_good_runs_do(serving, tmp_path):
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as fake:
        keys = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}
        monitor = serving()
        runs = [run_of_an_agent(number, fails=number % 12 == 5) for number in range(TRACES)]
        send(monitor, *runs)
        monitor.settled(TRACES)
        assert metric(verdict_on(monitor, 0), "within_usual")["status"] == "unavailable", "never on the first traces"
        assert monitor.stop() == 0
        monitor.start()
        send(monitor, run_of_an_agent(TRACES, tokens=5_000), run_of_an_agent(TRACES + 1))
        monitor.until(lambda: len(monitor.get("/v1/verdicts", limit="500")["verdicts"]) == TRACES + 2, "no verdicts")
        outlier = metric(verdict_on(monitor, TRACES), "within_usual")
        assert outlier["value"] < 1.0
        assert "tokens" in outlier["reason"]
        assert metric(verdict_on(monitor, TRACES + 1), "within_usual")["value"] == 1.0

        # The counters begin anew with the process.
        text = monitor.http.get(monitor.api + "/metrics").text
        assert 'sidejudge_runs_total{service="harbour"} 2.0' in text
        assert 'sidejudge_run_signs_total{metric="within_usual",service="harbour"} 1.0' in text
        assert 'sidejudge_tool_calls_total{service="harbour",tool="find_ship"} 2.0' in text
        assert 'sidejudge_tool_errors_total{service="harbour",tool="find_ship"} 0.0' in text

        # From the store of the monitor that runs, with its verdicts; whole runs, for their spans are still held.
        store, out = monitor.folder / "state.sqlite", tmp_path / "scenarios.yaml"
        done = sidejudge(
            "learn", str(store), "--group-by", "service", "--good", "passed", "--most-false", "0.1", "--out", str(out),
            cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        learned = yaml.safe_load(out.read_text())["harbour"]
        assert learned["tools_should_include"] == ["find_ship"]
        assert learned["arguments_schema"]["find_ship"]["required"] == ["port"]
        assert "with 95 % at most 0.1 of good runs fail" in done.stderr

        # The same out of Langfuse.
        monitor.configure(sinks={"langfuse": keys})
        for body in runs:
            observations_of(fake).put(*rows_of(decode_spans(body)))
        done = sidejudge(
            "learn", "langfuse", "--config", str(monitor.config), "--from", "2020-01-01", "--to", "2100-01-01",
            "--group-by", "service", "--out", str(out), cwd=ROOT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (learned,) = yaml.safe_load(out.read_text()).values()
        assert "every line is a sign and fails no run" in done.stderr, "too few runs for the share allowed by default"
        assert learned.keys() == {"signs"}
        assert learned["signs"]["tools_should_include"] == ["find_ship"]
        assert SECRET_KEY not in done.stdout + done.stderr
