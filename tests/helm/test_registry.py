"""Packaged, pushed to a registry on loopback, and installed from there."""

from __future__ import annotations

import subprocess
import tarfile
import time
from pathlib import Path

import httpx
import pytest
import yaml

from tests.helm.generate import CHART, LIBRARY
from tests.needs import DOCKER_REGISTRY
from tests.running import free_port


@pytest.fixture
def registry(tmp_path):
    DOCKER_REGISTRY.path()
    address = f"127.0.0.1:{free_port()}"
    settings = {
        "version": 0.1, "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}},
        "http": {"addr": address},
    }  # fmt: skip
    file = tmp_path / "registry.yaml"
    file.write_text(yaml.safe_dump(settings))
    process = subprocess.Popen(
        ["docker-registry", "serve", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + 20
    while True:
        try:
            httpx.get(f"http://{address}/v2/", trust_env=False)
            break
        except httpx.HTTPError:
            assert time.monotonic() < end, "the registry does not answer"
            time.sleep(0.05)
    yield address
    process.terminate()
    process.wait(timeout=10)


def test_a_package_holds_the_library_and_no_tests(engine, tmp_path):
    archive = engine.ask(do="package", chart=str(CHART), folder=str(tmp_path))["archive"]
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    assert Path(archive).stat().st_size < 500_000, "a release is kept in a Secret, which holds 1 MiB"
    assert "sidejudge/charts/sidejudge-sidecar/templates/_monitor.tpl" in names
    assert "sidejudge/values.schema.json" in names
    assert not [name for name in names if "/ci/" in name]
    assert engine.render(archive).everything == engine.render(CHART).everything


def test_what_was_pushed_to_a_registry_installs_from_there(engine, registry, tmp_path):
    for chart in (LIBRARY, CHART):
        archive = engine.ask(do="package", chart=str(chart), folder=str(tmp_path))["archive"]
        engine.ask(do="push", archive=archive, remote=f"oci://{registry}/charts")
    tags = httpx.get(f"http://{registry}/v2/charts/sidejudge/tags/list", trust_env=False).json()["tags"]
    assert tags == ["0.2.0"]
    pulled = engine.render(
        f"oci://{registry}/charts/sidejudge", {"config": {"sampling": {"rate": 0.5}}}, version="0.2.0"
    )
    assert pulled.everything == engine.render(CHART, {"config": {"sampling": {"rate": 0.5}}}).everything
