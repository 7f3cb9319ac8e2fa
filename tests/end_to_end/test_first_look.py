"""A stranger's first minute: ``serve`` without a configuration, a stranger's traces, a verdict on each."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.running import free_port

ENTRY = Path(sys.executable).with_name("sidejudge")
RECORDED = Path(__file__).parents[1] / "data" / "otlp"


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("SIDEJUDGE_")}


@pytest.fixture
def bare(tmp_path):
    """``sidejudge serve`` without a file; addresses and the store come from the environment."""
    otlp, api = (f"127.0.0.1:{free_port()}" for _ in range(2))
    environ = {
        **clean(), "PYTHONUNBUFFERED": "1", "SIDEJUDGE_SOURCES__OTLP__HTTP": otlp, "SIDEJUDGE_API__LISTEN": api,
        "SIDEJUDGE_STORE__PATH": str(tmp_path / "s.sqlite"),
    }  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([str(ENTRY), "serve"], stdout=log, stderr=log, env=environ, cwd=tmp_path)
    with httpx.Client(timeout=10) as http:
        until(lambda: ready(http, api))
        yield http, f"http://{otlp}", f"http://{api}", tmp_path / "log"
    process.terminate()
    process.wait(20)


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
    reported = subprocess.run(
        [str(ENTRY), "check"], env={**clean(), "SIDEJUDGE_SAMPLING__RATE": "0.25"}, capture_output=True, text=True,
        check=True, cwd=tmp_path,
    )  # fmt: skip
    assert "0.25" in reported.stdout
