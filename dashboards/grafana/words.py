"""Words: variables, filters and links that all dashboards use."""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.dashboards.rules.recordings import STATUS_CODES
from sidejudge.integrations.prometheus.families import Family
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.notices.notice import runbook_link

from .board import GREEN, GREY, RED, YELLOW, DashboardVariable, Steps

SITE = 'cluster=~"$cluster",namespace=~"$namespace",job=~"$job"'
SERVICE = f'{SITE},service=~"$service"'
WHERE = f'{SERVICE},environment=~"$environment"'
STATUS_WORDS = {
    code: (text, colour)
    for (code, text), colour in zip(STATUS_CODES.items(), (GREY, GREY, GREEN, YELLOW, RED), strict=True)
}
_PLACE = "cluster", "namespace", "service", "environment", "rubric"
_RUBRIC = "/d/sidejudge-rubric?${datasource:queryparam}&${__url_time_range}&${job:queryparam}"


def _to_rubric(form: str) -> tuple[str, str]:
    return "This rubric in depth", _RUBRIC + "".join(f"&var-{label}=${{{form}.{label}}}" for label in _PLACE)


DRILL = _to_rubric("__field.labels")
"""From a series to its rubric: each series is a field with labels."""
DRILL_ROW = _to_rubric("__data.fields")
"""The same from a row of a table, where labels are fields of their own. A label that targets do not have is empty."""
ALERTING = ("This alert in Grafana", "/alerting/list?search=${__data.fields.alertname}")
FIRING = ("Alerts of sidejudge", "/alerting/list?search=Sidejudge&state=firing")
CHOSEN = (
    "The rubric in depth",
    _RUBRIC + "".join(f"&${{{name}:queryparam}}" for name in ("cluster", "namespace", "service", "environment")),
)
"""From a number over all that is chosen."""
TRACE = ("Trace in Langfuse", "${langfuse}/traces/${__data.fields.trace_id}")
"""Where the dot of an exemplar leads; the data source's own exemplar link does the same on every panel."""


def to_runbook(runbooks: str | None) -> tuple[tuple[str, str], ...]:
    """The link from a row of an alert to its runbook; empty where no setting names the runbooks."""
    return () if runbooks is None else (("Its runbook", runbook_link(runbooks, "${__data.fields.runbook}")),)


def ratio_steps(declared: Declaration) -> Steps:
    """The thresholds of rubrics that have none of their own, as colours."""
    bounds = declared.policy.thresholds
    return (None, RED), (bounds.critical, YELLOW), (bounds.warning, GREEN)


def lasting(declared: Declaration) -> str:
    """How many looks it takes until a status is worse."""
    rule = declared.rule
    return "at once" if rule.looks == 1 else f"after {rule.needed} of {rule.looks} looks"


def per_second(family: Family, where: str, *by: str, part: str = "") -> str:
    """A counter's rate, summed over processes, for each value of the labels ``by``."""
    grouped = f" by ({', '.join(by)}) " if by else ""
    return f"sum{grouped}(rate({family.name}{part}{{{where}}}[$__rate_interval]))"


def per_minute(family: Family, where: str, *by: str) -> str:
    """The same rate, a minute."""
    return f"60 * {per_second(family, where, *by)}"


def site_variables() -> tuple[DashboardVariable, ...]:
    """The site's variables: where monitors run, service, environment, and Langfuse's address."""
    known = f.VERDICTS.name
    return (
        *targets(),
        DashboardVariable(name="service", label="Service", query=f"label_values({known}{{{SITE}}}, service)"),
        DashboardVariable(
            name="environment", label="Environment", query=f"label_values({known}{{{SERVICE}}}, environment)"
        ),
        LANGFUSE,
    )


def targets() -> tuple[DashboardVariable, ...]:
    """Cluster, namespace and job of monitors; a label that targets do not have lets all of them by."""
    info = f.BUILD_INFO.name
    here = 'cluster=~"$cluster"', 'namespace=~"$namespace"'
    return (
        DashboardVariable(name="cluster", label="Cluster", query=f"label_values({info}, cluster)"),
        DashboardVariable(name="namespace", label="Namespace", query=f"label_values({info}{{{here[0]}}}, namespace)"),
        DashboardVariable(name="job", label="Job", query=f"label_values({info}{{{','.join(here)}}}, job)"),
    )


LANGFUSE = DashboardVariable(
    name="langfuse", label="Langfuse project URL", default="https://cloud.langfuse.com/project/PROJECT"
)
