"""Groups: all rules under a declaration, one group after the other, as a rule file and as a PrometheusRule."""

from __future__ import annotations

from collections.abc import Mapping

from sidejudge.dashboards.yaml_text import written
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.trace.time_units import MINUTE_NS

from .by_version import by_version
from .declared_alerts import declared_alerts
from .fleet_alerts import fleet_alerts, health_alerts
from .limited import limited
from .looks import looks
from .recordings import (
    BURN_WINDOWS,
    burning,
    day,
    estimates,
    people,
    sums,
    threshold,
    unanswered_over,
    window_of,
)
from .rule import AlertingRule, Group, RecordingRule
from .shares import shares

LONG_NS = 2 * MINUTE_NS
"""Between two evaluations of long windows; well below the five minutes after which a series counts as gone."""


def groups(declared: Declaration) -> tuple[Group, ...]:
    """The groups in order of evaluation: no group reads what a later one records."""
    window = window_of(declared)
    long = [record for other in BURN_WINDOWS if other != window for record in sums(other)]
    return (
        Group(
            name="sidejudge-status", interval_ns=declared.look_ns,
            rules=(
                threshold(), *estimates(window), *people(window), *shares(window), *looks(declared),
                *limited(window), *declared_alerts(declared),
            ),
        ),
        Group(
            name="sidejudge-long", interval_ns=LONG_NS,
            rules=(
                *long, *burning(), *_day(window), *unanswered_over(window), *by_version(), *fleet_alerts(),
            ),
        ),
        Group(name="sidejudge-health", interval_ns=MINUTE_NS, rules=tuple(health_alerts())),
    )  # fmt: skip


def _day(window: str) -> list[RecordingRule]:
    """The day's estimates, except the ones that the status window records already."""
    known = {record.record for record in estimates(window)}
    return [record for record in day() if record.record not in known]


def alerts(declared: Declaration) -> list[AlertingRule]:
    """All alerts; the declaration's own come first."""
    return [rule for group in groups(declared) for rule in group.rules if isinstance(rule, AlertingRule)]


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
