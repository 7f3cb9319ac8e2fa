"""Forms: the rules as files that people load: for Prometheus, and for its operator."""

from __future__ import annotations

from collections.abc import Mapping

from sidejudge.dashboards.yaml_text import written
from sidejudge.scoring.alerts.declaration import Declaration

from .groups import groups


def rules(declared: Declaration, runbooks: str | None = None) -> Mapping[str, object]:
    """The rule file's content."""
    return {"groups": [group.to_json(runbooks) for group in groups(declared)]}


def rule_file(declared: Declaration, runbooks: str | None = None) -> str:
    """A file for ``rule_files`` of Prometheus."""
    return written(rules(declared, runbooks))


def prometheus_rule(declared: Declaration, runbooks: str | None = None) -> str:
    """The same as an object for Prometheus' operator (``kubectl apply -f``)."""
    labels = {"app.kubernetes.io/name": "sidejudge", "app.kubernetes.io/component": "rules"}
    return written(
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": "sidejudge", "labels": labels},
            "spec": rules(declared, runbooks),
        }
    )
