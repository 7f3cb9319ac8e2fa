"""PromQL: the few expressions from which all rules are built.

Counters are summed over processes first and divided afterwards; a ratio of one process is never averaged. Labels of
single processes are removed (``without``) rather than the others listed (``by``), so that ``cluster``, ``namespace``,
``job`` and a site's own target labels stay on the results.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.integrations.prometheus.families import Family
from sidejudge.scoring.statistics.interval import LEAST_CORRECTED, Z_95_ONE_SIDED, Z_95_TWO_SIDED

PROCESS = ("instance", "pod", "container", "endpoint", "node")
"""Labels of a target that distinguish processes of one job."""
SITE = ("cluster", "namespace", "job")
"""Labels of a target that match the configuration's numbers to its verdicts."""
AWAY = "5m"
"""For so long the last values of a process that is away hold where rules subtract them: a restart, a missed scrape."""
PLACE = "service_environment_rubric"
ON_RUBRIC = f"on ({', '.join((*SITE, 'rubric'))}) group_left ()"
"""Matches a number for each rubric of a site to the services that it judges."""
SHOWN_PLACE = "{{ $labels.rubric }} on {{ $labels.service }} ({{ $labels.environment }})"
SHOWN_SHARE = "{{ $value | humanizePercentage }}"


def fleet(family: Family, *dropped: str, where: str = "", window: str = "", operation: str = "sum") -> str:
    """A family over all processes: the sum of the increases of a counter, or the ``operation`` over a gauge."""
    selected = f"{family.name}{{{where}}}" if where else family.name
    series = f"increase({selected}[{window}])" if window else selected
    return over_processes(series, *dropped, operation=operation)


def over_processes(expr: str, *dropped: str, operation: str = "sum") -> str:
    """An expression over all processes of a job, and over the labels that are ``dropped``."""
    return f"{operation} without ({', '.join((*PROCESS, *dropped))}) ({expr})"


def listed(query: str, labels: str, shown: str) -> str:
    """A template of Prometheus that lists a query's results, each as ``shown``; ``labels`` fill the query's ``%q``.

    With it one alert over all processes names the affected ones.
    """
    return f"{{{{ range printf `{query}` {labels} | query | sortByLabel `instance` }}}} {shown};{{{{ end }}}}"


def configured(family: Family, *labels: str, where: str = "") -> str:
    """A number of the configuration, one for each site and ``labels``; during a rollout the larger holds."""
    selected = f"{family.name}{{{where}}}" if where else family.name
    return f"max by ({', '.join((*SITE, *labels))}) ({selected})"


def sent(alert: str) -> str:
    """1 if a process has sent this alert and it goes on; 0 if every process with it holds it back; else absent."""
    return fleet(f.ALERT_REPORTED, "alert", where=f'alert="{alert}"', operation="max")


def held_back(alert: str) -> str:
    """Places whose alert no process sends and one holds back, or did before it was away."""
    reported = f'last_over_time({f.ALERT_REPORTED.name}{{alert="{alert}"}}[{AWAY}])'
    return f"{over_processes(reported, 'alert', operation='max')} == 0"


def waiting(*series: str, over: str = "") -> str:
    """Traces without an answer: the most of the last minutes, for what waits is read again after a restart.

    ``over``: of a longer time, as a range of instants.
    """
    each = (f"sum_over_time({one}[{over}])" if over else f"max_over_time({one}[{AWAY}])" for one in series)
    return over_processes(" or ".join(each), *(["like"] if series != UNANSWERED else []))


UNANSWERED = (f.UNANSWERED.name,)
"""Those that may pass and may fail."""
WAITING = (f.UNANSWERED.name, f.BEHIND.name)
"""And those that wait for a slow judge."""


def behind(like: str) -> str:
    """Those of the second kind that pass, or fail, if they are like what that judge answered."""
    return f'{f.BEHIND.name}{{like="{like}"}}'


def bound(share: str, n: str, *, upper: bool, match: str = "", z: float = Z_95_ONE_SIDED) -> str:
    """Wilson's score bound of a share at a sample size, the formula of ``scoring.statistics.interval``.

    ``match`` joins the share to the sample size where the share has more labels. Without a sample it is NaN or
    absent, and no comparison with that holds.
    """
    sign, square = "+" if upper else "-", z * z
    times, over = (f"* {match}", f"/ {match}") if match else ("*", "/")
    return (
        f"(\n    {share} {times} {n} + {square / 2!r}\n  {sign}\n"
        f"    {z!r} * sqrt({share} * (1 - {share}) {times} {n} + {square / 4!r})\n)\n"
        f"{over} ({n} + {square!r})"
    )


def shown_lower(share: str, n: str) -> str:
    """The lower bound of the interval that people are shown: ``scoring.statistics.interval.wilson_pair``.

    The upper bound is 1 minus the lower bound of the complement.
    """
    z, square = Z_95_TWO_SIDED, Z_95_TWO_SIDED**2
    root = f"{square - 2!r} - 1 / {n} + 4 * {share} * ({n} * (1 - {share}) + 1)"
    corrected = f"(2 * {share} * {n} + {square - 1!r} - {z!r} * sqrt({root})) / (2 * ({n} + {square!r}))"
    plain = bound(share, n, upper=False, z=z)
    return f"clamp_min(\n{corrected}\nand\n{share} * {n} >= {LEAST_CORRECTED}\nor\n{plain},\n0)"
