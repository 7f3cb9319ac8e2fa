"""``helm upgrade --reuse-values``: values of an older chart lack what came since, and every template survives that."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.defaults import may_be_null
from tests.helm.generate import CHART, HELM, LIBRARY
from tests.helm.values_reference import keys, read

KNOWN = keys(read(CHART))
EVERYTHING: dict[str, Any] = {
    "gateway": {"kind": "StatefulSet", "replicaCount": 3},
    "networkPolicy": {"enabled": True},
    "ingress": {"enabled": True, "hosts": ["sidejudge.example.org"]},
    "httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]},
    "monitoring": {"dashboards": {"operator": {"enabled": True}}, "podMonitor": {"enabled": True}},
}


def paths(values: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every key and every section of the values."""
    found = []
    for name, value in values.items():
        found.append((*above, name))
        if isinstance(value, dict) and "type" not in KNOWN.get((*above, name), KNOWN["config",]).hint:
            found += paths(value, (*above, name))
    return found


def without(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    name, *rest = path
    if not rest:
        return {key: value for key, value in values.items() if key != name}
    return {**values, name: without(values[name], tuple(rest))}


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """A copy of a chart with these values in place of its own, as Helm takes them from the release."""

    def copied(chart: Path, values: dict[str, Any]) -> Path:
        folder = tmp_path_factory.mktemp("chart") / chart.name
        shutil.copytree(chart, folder, symlinks=False)
        (folder / "values.yaml").write_text(yaml.safe_dump(values))
        return folder

    return copied


def test_a_chart_without_a_section_or_some_values_renders_what_it_renders_with_them(engine, older):
    whole = yaml.safe_load(read(CHART))
    rendered = engine.render(CHART, EVERYTHING).everything
    known = paths(whole)
    nullable = [path for path in known if may_be_null(path, KNOWN)]
    ends = [path for path in known if sum(other[: len(path)] == path for other in known) == 1]
    leaves = [path for path in ends if path not in nullable]
    sections = [(name,) for name in whole if name not in {path[0] for path in nullable}]
    assert len(leaves) > 100
    for missing in [each[n::4] for each in (sections, leaves) for n in range(4)]:  # each beside others that are there
        values = whole
        for path in missing:
            values = without(values, path)
        assert engine.render(older(CHART, values), EVERYTHING).everything == rendered, missing


def test_a_chart_without_any_value_at_all_renders_its_defaults(engine, older):
    values = {"gateway": {"replicaCount": 1, "probes": yaml.safe_load(read(CHART))["gateway"]["probes"]}}
    found = engine.render(older(CHART, values)).everything
    assert {(each["kind"], each["metadata"]["name"]) for each in found} == {
        (each["kind"], each["metadata"]["name"]) for each in engine.render(CHART).everything
    }


def test_null_still_takes_a_value_away(engine):
    rendered = engine.render(CHART, {"gateway": {"replicaCount": None, "probes": {"startup": None}}})
    deployment = rendered.one("Deployment")["spec"]
    assert "replicas" not in deployment
    assert "startupProbe" not in deployment["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("kept", [(), ("image",), ("image", "state", "existingConfigMap")])
def test_a_sidecar_of_older_values_is_the_one_of_the_defaults(engine, older, kept):
    app, whole = HELM / "examples" / "otel-app", yaml.safe_load(read(LIBRARY))
    probes = {"probes": whole["probes"]}  # a probe that is not there is one that nobody wants
    chart = older(app, yaml.safe_load((app / "values.yaml").read_text()))
    values = {name: value for name, value in whole.items() if name in kept} | probes
    (chart / "charts" / LIBRARY.name / "values.yaml").write_text(
        yaml.safe_dump({**values, "terminationGracePeriodSeconds": whole["terminationGracePeriodSeconds"]})
    )
    assert engine.render(chart).one("Deployment") == engine.render(app).one("Deployment")
