"""Words: variables, filters and links that all dashboards use."""

from __future__ import annotations

import integrations.prometheus.families as f
from dashboards.rules.recordings import STATUS_CODES
from integrations.prometheus.families import Family
from scoring.alerts.declaration import Declaration

from .board import GREEN, GREY, RED, YELLOW, DashboardVariable

WHERE = 'job=~"$job",service=~"$service",environment=~"$environment"'
SERVICE = 'job=~"$job",service=~"$service"'
STATUS_WORDS = {
    code: (text, colour) for (code, text), colour in zip(STATUS_CODES.items(), (GREY, GREEN, YELLOW, RED), strict=True)
}
_CHOSEN = "service", "environment", "rubric"
DRILL = (
    "This rubric in depth",
    "/d/sidejudge-rubric?${datasource:queryparam}&${__url_time_range}"
    + "".join(f"&var-{label}=${{__field.labels.{label}}}" for label in _CHOSEN),
)
TRACE = ("Trace in Langfuse", "${langfuse}/traces/${__data.fields.trace_id}")
"""Where the dot of an exemplar leads; the data source's own exemplar link does the same on every panel."""


def ratio_steps(declared: Declaration) -> tuple[tuple[float | None, str], ...]:
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
    """The same a minute."""
    return f"60 * {per_second(family, where, *by)}"


def site_variables() -> tuple[DashboardVariable, ...]:
    """Job, service, environment, and where Langfuse is."""
    known = f.VERDICTS.name
    return (
        DashboardVariable(name="job", label="Job", query=f"label_values({f.BUILD_INFO.name}, job)"),
        DashboardVariable(name="service", label="Service", query=f'label_values({known}{{job=~"$job"}}, service)'),
        DashboardVariable(
            name="environment", label="Environment",
            query=f'label_values({known}{{job=~"$job",service=~"$service"}}, environment)',
        ),
        LANGFUSE,
    )  # fmt: skip


LANGFUSE = DashboardVariable(
    name="langfuse", label="Langfuse project URL", default="https://cloud.langfuse.com/project/PROJECT"
)
