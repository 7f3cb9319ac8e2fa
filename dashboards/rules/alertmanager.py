"""Alertmanager: routes by severity, groups, and inhibitions.

An alert that another one explains is not sent while that fires. Its declaration names these (``muted_by``), and muting
is transitive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sidejudge.dashboards.yaml_text import written
from sidejudge.scoring.alerts.condition import PLACE, alert_name
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration

from .groups import alerts
from .promql import SITE

_OURS = 'alertname=~"Sidejudge.*"'
_INCIDENT = [*SITE, "service", "environment"]
"""One incident: all rubrics of a service. An alert on monitors has no service, and belongs to its job."""


def inhibit_rules(declared: Declaration) -> str:
    """Alertmanager's ``inhibit_rules``: they mute as the process does, and also alerts that only Prometheus raises."""
    return written({"inhibit_rules": list(_inhibitions(declared))})


def alertmanager(declared: Declaration) -> str:
    """A whole configuration to begin with: a pager, a channel or no receiver, by severity, with placeholders."""
    hook = {"url": "http://127.0.0.1:9/REPLACE-ME", "send_resolved": True}
    by_severity = [
        {"matchers": [f'severity="{severity}"'], "receiver": receiver, "repeat_interval": repeated}
        for severity, receiver, repeated in (
            ("critical", "sidejudge-pager", "4h"), ("warning", "sidejudge-channel", "12h"),
        )
    ]  # fmt: skip
    route = {
        "receiver": "nobody",
        "routes": [
            {
                "matchers": [_OURS], "receiver": "nobody", "group_by": _INCIDENT, "group_wait": "30s",
                "group_interval": "5m", "routes": by_severity,
            }
        ],
    }  # fmt: skip
    receivers: list[Mapping[str, object]] = [
        {"name": "nobody"},
        {"name": "sidejudge-pager", "webhook_configs": [hook]},
        {"name": "sidejudge-channel", "webhook_configs": [dict(hook)]},
    ]
    return written({"route": route, "receivers": receivers, "inhibit_rules": list(_inhibitions(declared))})


def _inhibitions(declared: Declaration) -> Iterator[Mapping[str, object]]:
    for source, names, equal in explained(declared):
        yield {
            "source_matchers": [f'alertname="{source}"'],
            "target_matchers": [f'alertname=~"{"|".join(names)}"'],
            "equal": equal,
        }


def explained(declared: Declaration) -> Iterator[tuple[str, list[str], list[str]]]:
    """An alert's name, the names of the alerts that it explains, and their equal labels."""
    scopes = {condition.id: condition.scope for condition in conditions(declared)}
    known = {rule.id: rule for rule in alerts(declared)}
    below: dict[str, set[str]] = {}
    for rule in known.values():
        above = list(rule.muted_by)
        while above:
            source = above.pop()
            below.setdefault(source, set()).add(rule.name)
            above += known[source].muted_by
    for source, names in sorted(below.items()):
        yield alert_name(source), sorted(names), [*SITE, *scopes.get(source, PLACE)]
