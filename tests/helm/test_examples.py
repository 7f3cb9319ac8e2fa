"""The example applications, run with their real SDKs beside a monitor with the configuration of their charts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import yaml

from tests.fakes.upstream import upstream
from tests.helm.generate import HELM
from tests.needs import LANGFUSE_SDK, OTLP_EXPORTER
from tests.running import Running


def configured(name: str) -> dict[str, object]:
    values = yaml.safe_load((HELM / "examples" / name / "values.yaml").read_text())
    return {key: stated for key, stated in values["sidejudge-sidecar"]["config"].items() if key != "sampling"}


def run(name: str, service: str, **environ: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HELM / "examples" / name / "app.py"), "Hello?"], capture_output=True, text=True,
        timeout=90,
        env={**os.environ, "OTEL_SERVICE_NAME": service, "NO_PROXY": "*", **environ}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def judged(monitor: Running) -> list[tuple[str, str, bool]]:
    assert monitor.settled(1)["ended"]["scored"] == 1
    return [(verdict["rubric"], verdict["service"], verdict["passed"]) for verdict in monitor.verdicts()]


@OTLP_EXPORTER.mark
def test_the_opentelemetry_example_is_judged_as_its_chart_says(serving):
    monitor = serving(**configured("otel-app"))
    run("otel-app", "assistant", OTEL_EXPORTER_OTLP_ENDPOINT=monitor.otlp)
    assert judged(monitor) == [("workflow", "assistant", True)]


@LANGFUSE_SDK.mark
async def test_the_langfuse_example_changes_its_base_url_and_reaches_langfuse_all_the_same(serving):
    stated = configured("langfuse-app")
    async with upstream() as langfuse:
        assert stated["forward"] == {"url": "https://langfuse.example.com"}
        monitor = await asyncio.to_thread(lambda: serving(**{**stated, "forward": {"url": langfuse.url}}))
        keys = {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}
        await asyncio.to_thread(lambda: run("langfuse-app", "researcher", LANGFUSE_BASE_URL=monitor.otlp, **keys))
        assert await asyncio.to_thread(judged, monitor) == [("workflow", "researcher", True)]
        assert any(requested.line.startswith("POST /api/public/otel/v1/traces") for requested in langfuse.requested)
