"""The READMEs, word for word: the chart that they show renders and runs, and every setting that they name exists."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

import pytest
import yaml

from sidejudge.monitor.ingest.outcomes import EndReason
from tests.helm.checks import pod_specs, schema_errors
from tests.helm.engine import LATEST
from tests.helm.generate import CHART, HELM, LIBRARY, ROOT
from tests.helm.readme import fenced

READMES = [HELM / "README.md", CHART / "README.md", LIBRARY / "README.md"]


def test_the_chart_that_the_readme_shows_puts_a_sidecar_beside_the_application(engine, shared, shown):
    deployment = engine.render(shown).one("Deployment")
    assert schema_errors(deployment, shared / "contracts" / "prometheus-operator", LATEST) == []
    (pod,) = pod_specs(deployment)
    (sidecar,) = pod["initContainers"]
    assert (sidecar["name"], sidecar["restartPolicy"]) == ("sidejudge", "Always")
    assert sidecar["image"] == "r.example/sidejudge/sidejudge:0.2.0"
    assert {mount["name"] for mount in sidecar["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert deployment["spec"]["template"]["metadata"]["labels"]["sidejudge.io/sidecar"] == "true"


def test_what_the_readme_shows_as_added_is_all_that_is_added(engine, shown):
    """Without the lines that are marked, it is the chart of an application that knows nothing of the monitor."""
    template = shown / "templates" / "deployment.yaml"
    kept = [line for line in template.read_text().splitlines() if "# +" not in line]
    template.write_text("\n".join(kept).replace("      initContainers:\n", "").replace("      volumes:", ""))
    (shown / "Chart.yaml").write_text("apiVersion: v2\nname: shop\nversion: 1.0.0\n")
    (shown / "values.yaml").write_text("")
    for archive in (shown / "charts").iterdir():
        archive.unlink()
    assert "sidejudge" not in engine.render(shown).manifest


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_every_value_that_a_command_sets_is_one_that_the_chart_takes(engine, readme):
    commands = [line for text in fenced(readme, "sh") for line in text.replace("\\\n", " ").splitlines()]
    for command in commands:
        words = shlex.split(command.replace("# --set", "--set"), comments=True)
        if words[:1] != ["helm"] or "--set" not in words:
            continue
        values = {}
        for word, stated in pairwise(words):
            if word == "--set":
                path, _, value = stated.partition("=")
                *above, last = path.split(".")
                inner = values
                for name in above:
                    inner = inner.setdefault(name, {})
                inner[last] = yaml.safe_load(value)
        assert values, command
        engine.render(CHART, values)


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_every_file_that_is_linked_to_is_there(readme):
    linked = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", readme.read_text(encoding="utf-8"))
    assert linked
    assert [link for link in linked if not (readme.parent / link).exists()] == []


def test_every_metric_that_the_readme_names_is_exported():
    families = (ROOT / "docs" / "reference" / "families.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(sidejudge_[a-z_]+)", (HELM / "README.md").read_text(encoding="utf-8")))
    assert named
    assert {name for name in named if name not in families} == set()


def test_every_way_in_which_a_trace_ends_is_explained():
    rows = re.findall(r"^\| (`[^|]+) \|", (HELM / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    assert {str(reason) for reason in EndReason} <= explained
