"""Forms: the rules as files that people load: for Prometheus, for its operator; inhibitions for Alertmanager."""

from __future__ import annotations

from collections.abc import Mapping

from dashboards.yaml_text import written
from scoring.alerts.conditions import conditions
from scoring.alerts.declaration import Declaration

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


def inhibit_rules(declared: Declaration) -> str:
    """The ``inhibit_rules`` of Alertmanager, which mute the same alerts as the process does."""
    by_id = {condition.id: condition for condition in conditions(declared)}
    site = ["cluster", "namespace", "job"]
    return written(
        {
            "inhibit_rules": [
                {
                    "source_matchers": [f'alertname="{by_id[condition.muted_by].alert_name}"'],
                    "target_matchers": [f'alertname="{condition.alert_name}"'],
                    "equal": [*site, *condition.scope],
                }
                for condition in by_id.values()
                if condition.muted_by is not None
            ]
        }
    )
