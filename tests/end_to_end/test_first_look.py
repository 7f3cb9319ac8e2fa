"""A stranger's first minute: ``serve`` without a configuration, a stranger's traces, a verdict on each."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest

from tests.forked import Forked, sidejudge
from tests.running import free_port

RECORDED = Path(__file__).parents[1] / "data" / "otlp"


@pytest.fixture
def bare(tmp_path):
    """``sidejudge serve`` without a file; addresses and the store come from the environment."""
    otlp, api = (f"127.0.0.1:{free_port()}" for _ in range(2))
    environ = {
        "SIDEJUDGE_SOURCES__OTLP__HTTP": otlp, "SIDEJUDGE_API__LISTEN": api,
        "SIDEJUDGE_STORE__PATH": str(tmp_path / "s.sqlite"),
    }  # fmt: skip
    log = tmp_path / "log"
    process = Forked("serve", cwd=tmp_path, env=environ, stdout=log, stderr=log)
    try:
        with httpx.Client(timeout=10) as http:
            until(lambda: ready(http, api))
            yield http, f"http://{otlp}", f"http://{api}", log
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()


def ready(http, api):
    try:
        return http.get(f"http://{api}/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    "client", ["openinference-openai", "langfuse-5", "otel-genai-openai", "openinference-smolagents"]
)
def test_traces_of_a_stranger_have_verdicts_within_a_minute_and_nothing_to_configure(bare, client):
    http, otlp, api, log = bare
    files = sorted(file for file in (RECORDED / client).rglob("*.pb") if ".logs" not in file.name)
    for file in files:
        answer = http.post(
            f"{otlp}/v1/traces", content=file.read_bytes(), headers={"content-type": "application/x-protobuf"}
        )
        assert answer.status_code == 200
    until(lambda: http.get(f"{api}/v1/verdicts").json()["verdicts"])
    verdicts = http.get(f"{api}/v1/verdicts").json()["verdicts"]
    assert {verdict["rubric"] for verdict in verdicts} <= {
        "run_health",
        "qa",
        "entity",
        "workflow",
        "text",
        "translation",
    }
    judged = [verdict for verdict in verdicts if verdict["rubric"] == "run_health"]
    assert judged
    assert all(verdict["sampling_probability"] == 1.0 for verdict in judged)
    assert "no configuration: every trace is judged by run_health, up to 1000 an hour" in log.read_text()


def test_a_rate_in_the_environment_holds(tmp_path):
    reported = sidejudge("check", env={"SIDEJUDGE_SAMPLING__RATE": "0.25"}, cwd=tmp_path)
    assert (reported.returncode, "0.25" in reported.stdout) == (0, True)
