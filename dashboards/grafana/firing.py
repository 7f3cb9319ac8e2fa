"""Firing: the alerts that Prometheus fires, as boards ask for them: of what is chosen, ranked, with runbooks."""

from __future__ import annotations

from collections.abc import Iterable

from sidejudge.dashboards.rules.groups import alerts
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.declaration import Declaration

_CHOSEN_BY = ("cluster", "namespace", "job", "service", "environment", "rubric")
RANKS = {3: Severity.CRITICAL.value, 2: Severity.WARNING.value, 1: Severity.INFO.value}
"""A number for each severity: their names do not sort by what is worse."""


def firing(variables: Iterable[str], *severities: str) -> str:
    """The alerts of these severities on what is chosen on a board with these variables.

    An alert on a monitor has no service, and is shown whichever is chosen: an absent label is an empty one.
    """
    known = set(variables)
    chosen = "".join(f',{name}=~"${name}|"' for name in _CHOSEN_BY if name in known)
    return f'ALERTS{{alertname=~"Sidejudge.*",alertstate="firing",severity=~"{"|".join(severities)}"{chosen}}}'


def with_rank(variables: Iterable[str]) -> str:
    """Alerts of any severity, whose value is the rank of that."""
    names = tuple(variables)
    return " or ".join(f"{rank} * {firing(names, severity)}" for rank, severity in RANKS.items())


def with_runbook(expr: str, declared: Declaration) -> str:
    """The same with the name of the runbook as label ``runbook``. PromQL cannot make one name of the other."""
    for name, slug in sorted({(alert.name, alert.runbook) for alert in alerts(declared)}):
        expr = f'label_replace({expr}, "runbook", "{slug}", "alertname", "{name}")'
    return expr
