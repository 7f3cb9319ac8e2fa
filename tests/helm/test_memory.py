"""What the charts let the monitor take is more than it takes at most with the configuration that they render."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sidejudge.monitor.config.load import load
from sidejudge.monitor.runtime.memory_bound import memory_bound
from tests.helm.checks import containers, pod_specs
from tests.helm.generate import CHART

HERE = Path(__file__).parent
HELM = CHART.parent
RENDERED = [*sorted((HERE / "golden").glob("*.yaml")), *sorted((HELM / "manifests").glob("*.yaml"))]
UNITS = {"Mi": 2**20, "Gi": 2**30}


def limit_of(container: dict[str, Any]) -> int:
    number, unit = re.fullmatch(r"(\d+)(\w+)", container["resources"]["limits"]["memory"]).groups()
    return int(number) * UNITS[unit]


def bound_of(container: dict[str, Any], config: str, folder: Path) -> int:
    """The bound that ``check`` prints with this container's environment."""
    environ = {"APP_NAME": "app", "POD_NAMESPACE": "shop"}
    for variable in container["env"]:
        name = variable["name"]
        if "value" in variable and not (name.startswith("SIDEJUDGE_") and "$(" in variable["value"]):
            environ[name] = variable["value"]
        elif not name.startswith("SIDEJUDGE_"):
            environ[name] = "postgresql://any" if "DATABASE" in name else "any"
    file = folder / "sidejudge.yaml"
    file.write_text(config)
    return sum(part.max_bytes for part in memory_bound(load(file, environ)))


def monitors(path: Path) -> list[tuple[dict[str, Any], str]]:
    """The containers in a rendered file that serve, each with its configuration."""
    objects = [each for each in yaml.safe_load_all(path.read_text()) if each]
    files = [file for each in objects if (file := (each.get("data") or {}).get("sidejudge.yaml"))] or [""]
    pods = [pod for each in objects if "kind" in each for pod in pod_specs(each)]
    pods += [each["spec"] for each in objects if "kind" not in each]  # a part of a Pod's template
    return [
        (container, files[0])
        for pod in pods
        for container in containers({"containers": [], **pod})
        if "serve" in (container.get("args") or ())
    ]


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_memory_limit_is_above_the_bound_of_the_configuration(path, tmp_path):
    for container, config in monitors(path):
        assert bound_of(container, config, tmp_path) < limit_of(container)


def test_both_charts_are_read():
    assert all(monitors(HELM / "manifests" / name) for name in ("sidecar.yaml", "gateway.yaml"))


def test_the_defaults_fit_a_sidecar():
    assert sum(part.max_bytes for part in memory_bound(load(None, {}))) < 512 << 20
