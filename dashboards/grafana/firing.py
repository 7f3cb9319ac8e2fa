"""Firing alerts and new versions, as boards query them: for the chosen services, ranked, with runbooks."""

from __future__ import annotations

from collections.abc import Iterable

from sidejudge.dashboards.rules.groups import alerts
from sidejudge.integrations.prometheus.families import APPLICATION_TRACES
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.declaration import Declaration

_CHOSEN_BY = ("cluster", "namespace", "job", "service", "environment", "rubric")
RANKS = {3: Severity.CRITICAL.value, 2: Severity.WARNING.value, 1: Severity.INFO.value}
"""A number for each severity, because their names do not sort by it."""


def firing(variables: Iterable[str], *severities: str) -> str:
    """The alerts of these severities for the choices on a board with these variables.

    An alert on a monitor has no service, and is shown whichever is chosen: an absent label is an empty one.
    """
    known = set(variables)
    chosen = "".join(f',{name}=~"${name}|"' for name in _CHOSEN_BY if name in known)
    return f'ALERTS{{alertname=~"Sidejudge.*",alertstate="firing",severity=~"{"|".join(severities)}"{chosen}}}'


def with_rank(variables: Iterable[str]) -> str:
    """Alerts of any severity; the value of each is the rank of its severity."""
    names = tuple(variables)
    return " or ".join(f"{rank} * {firing(names, severity)}" for rank, severity in RANKS.items())


def with_runbook(expr: str, declared: Declaration) -> str:
    """The same with the name of the runbook as label ``runbook``. PromQL cannot make one name of the other."""
    for name, slug in sorted({(alert.name, alert.runbook) for alert in alerts(declared)}):
        expr = f'label_replace({expr}, "runbook", "{slug}", "alertname", "{name}")'
    return expr


_PLACE = "cluster, namespace, service, environment"
_NAMED = 'version!~"unknown|__other__"'


def version_change(where: str) -> str:
    """A series of 1 for some minutes after a version took over.

    A version that was not there an hour before is new, where its service was. One that was there took over again, as
    after a rollback, when it has two thirds of the traffic of five minutes and had less than a third of the fifteen
    before. A canary is marked when it first appears, and when it takes over.
    """
    every, named = f"{APPLICATION_TRACES.name}{{{where}}}", f"{APPLICATION_TRACES.name}{{{where},{_NAMED}}}"
    hour = "[1h] offset 5m"
    new = (
        f"{_group(named, version=True)}\n"
        f"  unless {_group(f'last_over_time({named}{hour})', version=True)}\n"
        f"  and on ({_PLACE}) {_group(f'last_over_time({every}{hour})')}"
    )
    again = (
        f"{_share(named, every, '[5m]')} > 2 / 3\n"
        f"  and {_share(named, every, '[15m] offset 5m')} < 1 / 3\n"
        f"  and {_group(f'{named} offset 20m', version=True)}"
    )
    return f"(\n  {new}\n)\nor group by ({_PLACE}, version) (\n  {again}\n)"


def _group(expr: str, *, version: bool = False) -> str:
    return f"group by ({_PLACE}{', version' if version else ''}) ({expr})"


def _share(named: str, every: str, window: str) -> str:
    """The share of a version in the traffic of its service; absent without traffic."""
    of_version = f"sum by ({_PLACE}, version) (increase({named}{window}))"
    return f"{of_version} / on ({_PLACE}) group_left () (sum by ({_PLACE}) (increase({every}{window})) > 0)"
