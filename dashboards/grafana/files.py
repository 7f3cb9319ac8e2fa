"""Files: the dashboards and alerts as Grafana reads them: JSON, a ConfigMap for its side-car, and provisioning.

The alert rules are for Grafana's own alerting, where there is no Alertmanager (Grafana 12 and newer; older ones know no
``keepFiringFor`` and read over it). Expressions, waits and texts are those of the rules for Prometheus, whose
recordings they read: Prometheus evaluates the rule file as before. Grafana has no inhibition, so an alert leaves out
instances that another firing alert in Prometheus explains. Its templates cannot query Prometheus, so the text lacks
facts that only a query gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from sidejudge.dashboards.rules.alertmanager import explained
from sidejudge.dashboards.rules.groups import groups
from sidejudge.dashboards.rules.rule import AlertingRule, Group, prometheus_duration
from sidejudge.dashboards.yaml_text import written
from sidejudge.scoring.alerts.declaration import Declaration

from .application import application
from .board import Board
from .monitor import monitor
from .overview import overview
from .rubric import rubric
from .runs import runs


def boards(declared: Declaration, runbooks: str | None = None) -> tuple[Board, ...]:
    """All dashboards, in their usual order of use, querying the records of the rules of ``declared``.

    ``runbooks`` is the address of runbooks (``runbook_link``); None: nothing links to them.
    """
    return overview(declared, runbooks), rubric(declared), application(declared), runs(), monitor()


def dashboards(declared: Declaration, runbooks: str | None = None) -> Mapping[str, str]:
    """File name to dashboard, as JSON."""
    found = boards(declared, runbooks)
    links = [(board.uid, board.title) for board in found]
    return {
        f"{board.uid}.json": json.dumps(board.to_json(links), indent=1, ensure_ascii=False) + "\n" for board in found
    }


def config_map(declared: Declaration, runbooks: str | None = None) -> str:
    """All dashboards as one ConfigMap with the label that Grafana's side-car looks for (``kubectl apply -f``)."""
    labels = {
        "app.kubernetes.io/name": "sidejudge",
        "app.kubernetes.io/component": "dashboards",
        "grafana_dashboard": "1",
    }
    return written(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "sidejudge-dashboards",
                "labels": labels,
                "annotations": {"grafana_folder": "sidejudge"},
            },
            "data": dict(dashboards(declared, runbooks)),
        }
    )


def provider() -> str:
    """For ``/etc/grafana/provisioning/dashboards``: reads the JSON files from a folder."""
    options = {"path": "/var/lib/grafana/dashboards/sidejudge", "foldersFromFilesStructure": False}
    return written(
        {
            "apiVersion": 1,
            "providers": [
                {
                    "name": "sidejudge",
                    "folder": "sidejudge",
                    "type": "file",
                    "allowUiUpdates": False,
                    "options": options,
                }
            ],
        }
    )


def data_source() -> str:
    """For ``/etc/grafana/provisioning/datasources``: a Prometheus whose exemplars lead to traces in Langfuse."""
    link = {
        "name": "trace_id",
        "url": "$LANGFUSE_PROJECT_URL/traces/$${__value.raw}",
        "urlDisplayLabel": "Trace in Langfuse",
    }
    return written(
        {
            "apiVersion": 1,
            "datasources": [
                {
                    "name": "Prometheus", "type": "prometheus", "uid": "prometheus", "access": "proxy",
                    "url": "$PROMETHEUS_URL", "jsonData": {"exemplarTraceIdDestinations": [link]},
                }
            ],
        }
    )  # fmt: skip


_BASE_NS = 10 * 10**9
"""Grafana evaluates groups at multiples of this."""


def alert_rules(declared: Declaration, runbooks: str | None = None, *, source: str = "prometheus") -> str:
    """For ``/etc/grafana/provisioning/alerting``.

    ``source`` is the uid of the data source; ``runbooks`` as in ``runbook_link``.
    """
    above: dict[str, dict[str, list[str]]] = {}
    for name, below, equal in explained(declared):
        for target in below:
            above.setdefault(target, {}).setdefault(", ".join(equal), []).append(name)
    found = [(group, [rule for rule in group.rules if isinstance(rule, AlertingRule)]) for group in groups(declared)]
    return written(
        {
            "apiVersion": 1,
            "groups": [
                {
                    "orgId": 1, "name": group.name, "folder": "sidejudge", "interval": _interval(group),
                    "rules": [
                        _rule(rule, _unexplained(rule, above.get(rule.name, {})), runbooks, source) for rule in rules
                    ],
                }
                for group, rules in found if rules
            ],
        }
    )  # fmt: skip


def _interval(group: Group) -> str:
    return prometheus_duration(max(1, -(-group.interval_ns // _BASE_NS)) * _BASE_NS)


def _unexplained(rule: AlertingRule, above: Mapping[str, list[str]]) -> str:
    """The expression without instances that one of these alerts explains, by their equal labels."""

    def firing() -> Iterator[str]:
        for equal, names in above.items():
            yield f'unless on ({equal})\nALERTS{{alertstate="firing",alertname=~"{"|".join(names)}"}}'

    return "\n".join((f"({rule.expr})", *firing())) if above else rule.expr


def _rule(rule: AlertingRule, expr: str, runbooks: str | None, source: str) -> dict[str, object]:
    # The alert on the burnt budget is several rules: uid and title are one's own.
    which = "".join(f" {value}" for value in rule.labels.values())
    stated = (rule.stated_alone or rule.stated).replace("$value", "$values.A.Value")
    return {
        "uid": f"sidejudge-{rule.runbook}{which.replace(' ', '-')}", "title": rule.name + which, "condition": "B",
        "data": [
            {
                "refId": "A", "datasourceUid": source, "relativeTimeRange": {"from": 600, "to": 0},
                "model": {"refId": "A", "expr": expr, "instant": True, "range": False, "editorMode": "code"},
            },
            # A pass ratio of 0 fires as well: what counts is that there is a number.
            {
                "refId": "B", "datasourceUid": "__expr__", "relativeTimeRange": {"from": 600, "to": 0},
                "model": {"refId": "B", "type": "math", "expression": "is_number($A)"},
            },
        ],
        # Where nothing is wrong these queries answer nothing. A Prometheus that does not answer is an error.
        "noDataState": "OK", "execErrState": "Error", "for": _duration(rule.for_ns),
        "keepFiringFor": _duration(rule.keep_ns),
        "labels": {"severity": rule.severity.value, **rule.labels},
        "annotations": rule.annotations(stated, runbooks),
    }  # fmt: skip


def _duration(ns: int) -> str:
    return prometheus_duration(ns) if ns else "0s"
