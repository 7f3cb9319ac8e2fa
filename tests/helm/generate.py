"""Writes what is generated under ``helm/``, and the renders that the tests compare with.

    python -m tests.helm.generate

Values schemas and the tables of the READMEs come from ``values.yaml``; plain manifests, the patches of the kustomize
component and the Kyverno policy from the charts, rendered by the real engine; rules and dashboards from what
``dashboards/`` declares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.helm import defaults, rule_files
from tests.helm.engine import FIRST_ADMISSION, ROOT, Engine
from tests.helm.values_reference import read, schema, with_table

HELM = ROOT / "helm"
CHART = HELM / "sidejudge"
LIBRARY = HELM / "sidejudge-sidecar"
GOLDEN = Path(__file__).parent / "golden"
COMPONENT = "app.kubernetes.io/component"
HEAD = "# Generated from the charts by 'python -m tests.helm.generate'; do not edit.\n"


def cases() -> dict[str, dict[str, Any]]:
    """The chart's sets of values by name, the defaults among them."""
    files = sorted((CHART / "ci").glob("*-values.yaml"))
    return {
        "default": {},
        **{file.name.removesuffix("-values.yaml"): yaml.safe_load(file.read_text()) for file in files},
    }


def references() -> dict[Path, str]:
    """Schemas and READMEs; they need no engine."""
    made: dict[Path, str] = {}
    for chart, admitted in ((CHART, (LIBRARY.name,)), (LIBRARY, ())):
        made[chart / "values.schema.json"] = (
            json.dumps(schema(read(chart), admitted=admitted), indent=2, ensure_ascii=False) + "\n"
        )
        readme = chart / "README.md"
        made[readme] = with_table(readme.read_text(encoding="utf-8"), read(chart))
        called, at = f"{chart.name}.defaults", ".Values" if chart == CHART else f'index .Values "{LIBRARY.name}"'
        made[chart / "templates" / "_defaults.tpl"] = defaults.template(called, at, read(chart))
    return made


def copies() -> dict[Path, str]:
    """Rules and dashboards, with marks for what the configuration decides."""
    return {CHART / "files" / path: text for path, text in rule_files.files().items()}


def renders(engine: Engine) -> dict[Path, str]:
    """Everything that is rendered."""
    made = {GOLDEN / f"{name}.yaml": golden(engine, values) for name, values in cases().items()}
    made[HELM / "admission" / "inject.yaml"] = HEAD + ADMISSION + dump(injection(engine))
    plain = engine.render(CHART, {"tests": {"enabled": False}}, crds=False, release="sidejudge", namespace="sidejudge")
    made[HELM / "manifests" / "gateway.yaml"] = HEAD + dump([without_helm(each) for each in plain.objects])
    pod = sidecar(engine)
    made[HELM / "manifests" / "sidecar.yaml"] = HEAD + SNIPPET + dump([pod])
    for kind, version in WORKLOADS.items():
        spec: dict[str, Any] = {"template": pod}
        if kind == "CronJob":
            spec = {"jobTemplate": {"spec": spec}}
        patch = {"apiVersion": version, "kind": kind, "metadata": {"name": "any"}, "spec": spec}
        made[HELM / "kustomize" / "sidecar" / f"{kind.lower()}.yaml"] = HEAD + dump([patch])
    made[HELM / "kyverno" / "inject.yaml"] = HEAD + KYVERNO + dump([policy(for_kyverno(pod))])
    return made


ADMISSION = """\
# Puts the monitor beside every Pod that asks by sidejudge.io/inject: "true" (Kubernetes 1.36 and newer). The chart
# makes the same with a configuration of the release: injection.enabled. A Pod's own configuration: the annotation
# sidejudge.io/config names its ConfigMap.
"""


def injection(
    engine: Engine, values: dict[str, Any] | None = None, kube: str = FIRST_ADMISSION
) -> list[dict[str, Any]]:
    """The admission policy and its binding."""
    wanted = {"gateway": {"enabled": False}, "injection": {"enabled": True}, **(values or {})}
    made = engine.render(CHART, wanted, kube=kube, crds=False, release="sidejudge", namespace="sidejudge")
    return [without_helm(each) for each in made.objects if each["kind"].startswith("MutatingAdmissionPolicy")]


WORKLOADS = {
    "Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
}  # fmt: skip
"""What the component puts a sidecar into."""
SNIPPET = (
    "# What a Pod template needs, besides the ConfigMap sidejudge-sidecar with the key sidejudge.yaml. Merge it in.\n"
)
KYVERNO = """\
# Puts the monitor beside every Pod that is labelled sidejudge.io/inject: "true". The namespace needs the ConfigMap
# sidejudge-sidecar with the key sidejudge.yaml. Pods that were there before are not changed; restart their owners.
"""


def golden(engine: Engine, values: dict[str, Any]) -> str:
    rendered = engine.render(CHART, values)
    notes = "".join(f"# {line}\n".replace("# \n", "#\n") for line in rendered.notes.strip().splitlines())
    taken = [
        obj
        for obj in rendered.everything
        if obj["metadata"].get("labels", {}).get(COMPONENT) in ("rules", "dashboards")
    ]
    rest = [obj for obj in rendered.everything if obj not in taken]
    names = "".join(f"# {obj['kind']} {obj['metadata']['name']}, as it stands in files/\n" for obj in taken)
    return f"{HEAD}{dump(rest)}---\n{names}# NOTES\n{notes}"


def sidecar(engine: Engine) -> dict[str, Any]:
    """What the sidecar adds to a Pod template, its configuration in a ConfigMap."""
    values = {LIBRARY.name: {"config": None, "existingConfigMap": {"name": "sidejudge-sidecar"}}}
    template = engine.render(HELM / "examples" / "otel-app", values).one("Deployment")["spec"]["template"]
    labels = {name: value for name, value in template["metadata"]["labels"].items() if name.startswith("sidejudge.io/")}
    spec = {name: template["spec"][name] for name in ("initContainers", "volumes")}
    return {"metadata": {"labels": labels}, "spec": spec}


def without_helm(obj: dict[str, Any]) -> dict[str, Any]:
    """An object that nobody takes for a part of a release."""
    labels = obj["metadata"]["labels"]
    kept = {
        name: value for name, value in labels.items() if name not in ("helm.sh/chart", "app.kubernetes.io/managed-by")
    }
    return {**obj, "metadata": {**obj["metadata"], "labels": kept}}


def for_kyverno(pod: dict[str, Any]) -> dict[str, Any]:
    """Without variables made of others: Kyverno would take ``$(POD_NAME)`` for a reference of its own."""
    (container,) = pod["spec"]["initContainers"]
    env = [each for each in container["env"] if "$(" not in each.get("value", "")]
    return {**pod, "spec": {**pod["spec"], "initContainers": [{**container, "env": env}]}}


def policy(pod: dict[str, Any]) -> dict[str, Any]:
    match = {
        "any": [
            {
                "resources": {
                    "kinds": ["Pod"],
                    "operations": ["CREATE"],
                    "selector": {"matchLabels": {"sidejudge.io/inject": "true"}},
                }
            }
        ]
    }
    rule = {"name": "sidecar", "match": match, "mutate": {"patchStrategicMerge": pod}}
    metadata = {
        "name": "sidejudge-sidecar",
        # Pods only: a rule written for Pods would else be copied to their owners, and the container come twice.
        "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"},
    }
    return {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": metadata, "spec": {"rules": [rule]}}


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def dump(objects: list[dict[str, Any]]) -> str:
    return yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=120, explicit_start=True, allow_unicode=True)


def everything(engine: Engine) -> Iterator[tuple[Path, str]]:
    """Every generated file; schemas first, for the engine reads them."""
    yield from references().items()
    yield from copies().items()
    yield from renders(engine).items()


def main() -> None:
    """Write all."""
    engine = Engine()
    for path, text in everything(engine):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    engine.close()


if __name__ == "__main__":
    main()
