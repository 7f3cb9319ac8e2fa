"""The charts as a release publishes them, and that everything says the same version."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib

import pytest
import yaml

from tests.helm.checks import containers, pod_specs
from tests.helm.generate import CHART, HELM, LIBRARY, ROOT


def chart(folder):
    return yaml.safe_load((folder / "Chart.yaml").read_text())


def test_artifact_hub_is_told_of_every_variant_of_the_image(engine):
    reported = {each["image"] for each in yaml.safe_load(chart(CHART)["annotations"]["artifacthub.io/images"])}
    variants = json.loads((CHART / "values.schema.json").read_text())["properties"]["image"]["properties"]["variant"]
    used = {
        pod["containers"][0]["image"]
        for variant in variants["enum"]
        for pod in pod_specs(engine.render(CHART, {"image": {"variant": variant}}).one("Deployment"))
    }
    assert reported == used


def test_everything_says_the_same_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert chart(CHART)["appVersion"] == chart(LIBRARY)["appVersion"] == version
    (dependency,) = chart(CHART)["dependencies"]
    assert dependency["version"] == chart(LIBRARY)["version"]
    for example in HELM.glob("examples/*/Chart.yaml"):
        (dependency,) = yaml.safe_load(example.read_text())["dependencies"]
        assert dependency["version"] == chart(LIBRARY)["version"]


def test_published_charts_name_their_registry_and_version(engine, tmp_path):
    subprocess.run([str(ROOT / ".ci" / "stamp"), "ghcr.io/acme", "2.3.4", str(tmp_path)], check=True)
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert chart(tmp_path / "sidejudge")["version"] == chart(tmp_path / "sidejudge-sidecar")["appVersion"] == "2.3.4"
    assert (
        "ghcr.io/acme/sidejudge/sidejudge:2.3.4"
        in chart(tmp_path / "sidejudge")["annotations"]["artifacthub.io/images"]
    )
    rendered = engine.render(tmp_path / "sidejudge")
    images = {
        container["image"] for obj in rendered.everything for pod in pod_specs(obj) for container in containers(pod)
    }
    assert images == {"ghcr.io/acme/sidejudge/sidejudge:2.3.4"}
    assert "placeholder" not in rendered.notes
    library = yaml.safe_load((tmp_path / "sidejudge" / "charts" / "sidejudge-sidecar" / "values.yaml").read_text())
    assert (library["image"]["registry"], library["image"]["tag"]) == ("ghcr.io/acme", "2.3.4")


def test_published_plain_files_name_their_registry_and_version_and_leave_applications_alone(tmp_path):
    subprocess.run([str(ROOT / ".ci" / "stamp"), "ghcr.io/acme", "2.3.4", str(tmp_path)], check=True)
    folders = [tmp_path / name for name in ("manifests", "kustomize", "kyverno", "admission")]
    files = [path for folder in folders for path in folder.rglob("*.yaml")]
    for folder in folders:
        text = "\n".join(path.read_text() for path in folder.rglob("*.yaml"))
        assert set(re.findall(r"[\w./-]+/sidejudge:[\w.-]+", text)) == {"ghcr.io/acme/sidejudge/sidejudge:2.3.4"}, (
            folder
        )
    assert not [path for path in files if "0.2.0" in path.read_text()]
    assert "registry.example.com/shop/" in (tmp_path / "kustomize" / "example" / "app.yaml").read_text()


def test_published_charts_say_where_they_come_from_where_that_is_known(tmp_path):
    environ = os.environ | {"SOURCE_URL": "https://git.example.com/sidejudge"}
    subprocess.run([str(ROOT / ".ci" / "stamp"), "ghcr.io/acme", "2.3.4", str(tmp_path)], check=True, env=environ)
    for name in ("sidejudge", "sidejudge-sidecar"):
        stated = chart(tmp_path / name)
        assert (stated["home"], stated["sources"]) == (environ["SOURCE_URL"], [environ["SOURCE_URL"]])


@pytest.mark.parametrize("script", ["run", "release", "stamp", "image.sh"])
def test_a_script_is_one_that_the_shell_can_read(script):
    assert subprocess.run(["bash", "-n", str(ROOT / ".ci" / script)], check=False).returncode == 0


def test_the_changes_that_are_announced_are_of_kinds_that_artifact_hub_knows():
    known = {"added", "changed", "deprecated", "removed", "fixed", "security"}
    for folder in (CHART, LIBRARY):
        changes = yaml.safe_load(chart(folder)["annotations"]["artifacthub.io/changes"])
        assert {change["kind"] for change in changes} <= known
        assert all(change["description"] for change in changes)


def test_a_chart_says_whose_it_is_and_what_it_may_be_used_for():
    for folder in (CHART, LIBRARY):
        stated = chart(folder)
        assert stated["icon"].startswith("data:image/svg+xml;base64,")
        assert stated["maintainers"] == [{"name": "The sidejudge authors"}]
        assert stated["annotations"]["artifacthub.io/license"] == "MIT"


def test_dashboards_come_as_objects_of_the_grafana_operator_where_that_is_wanted(engine):
    values = {"monitoring": {"dashboards": {"operator": {"enabled": True, "instanceSelector": {"team": "ai"}}}}}
    made = engine.render(CHART, values).all("GrafanaDashboard")
    assert len(made) == len(list((HELM / "sidejudge" / "files" / "dashboards").glob("*.json")))
    for each in made:
        assert json.loads(each["spec"]["json"])["uid"].startswith("sidejudge-")
        assert each["spec"]["instanceSelector"]["matchLabels"]["team"] == "ai"
    assert engine.render(CHART, {}).all("GrafanaDashboard") == []
