"""The example applications, run with their real SDKs beside a monitor with the configuration of their charts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import yaml

from tests.helm.generate import HELM

APPS = [("otel-app", "opentelemetry.exporter", "assistant"), ("langfuse-app", "langfuse", "researcher")]


@pytest.mark.parametrize(("name", "package", "service"), APPS, ids=[name for name, _, _ in APPS])
def test_an_example_is_judged_as_its_chart_says(serving, name, package, service):
    if find_spec("opentelemetry.exporter") is None or find_spec(package) is None:
        pytest.skip(f"the SDK of this example is not installed ({package})")
    folder = HELM / "examples" / name
    config = yaml.safe_load((folder / "values.yaml").read_text())["sidejudge-sidecar"]["config"]
    monitor = serving(routes=config["routes"], scenarios=config["scenarios"])
    environ = {
        **os.environ, "OTEL_SERVICE_NAME": service, "OTEL_EXPORTER_OTLP_ENDPOINT": monitor.otlp, "NO_PROXY": "*",
        "LANGFUSE_BASE_URL": monitor.api, "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk",
        "LANGFUSE_TRACING_ENABLED": "true",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(folder / "app.py"), "Hello?"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    assert monitor.settled(1)["ended"]["scored"] == 1, done.stderr
    (verdict,) = monitor.verdicts()
    assert (verdict["rubric"], verdict["service"], verdict["passed"]) == ("workflow", service, True)
