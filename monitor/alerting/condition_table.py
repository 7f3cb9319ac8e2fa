"""Explained: what is watched under a configuration, as rows of a table for people."""

from __future__ import annotations

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.units import Duration
from sidejudge.scoring.alerts.conditions import conditions

from .build import declaration

WATCHED = ("alert", "severity", "raised when", "for", "of each")


def watched(config: Config) -> list[tuple[str, str, str, str, str]]:
    """One row for each condition, and one for each rubric with thresholds of its own."""
    declared = declaration(config)
    rule, look = declared.rule, Duration(declared.look_ns)
    lasting = f"{rule.needed} of {rule.looks} looks" if rule.looks > 1 else "-"
    rows = []
    for condition in conditions(declared):
        by_status = condition.id in {"pass_rate_critical", "pass_rate_warning", "metric_critical", "metric_warning"}
        for_text = lasting if by_status else str(Duration(condition.for_ns)) if condition.for_ns else "-"
        rows.append(
            (condition.id, condition.severity.value, condition.when, for_text, ", ".join(condition.scope) or "monitor")
        )
    for name in declared.thresholds:
        bounds = declared.policy_of(name).thresholds
        rows.append(
            (f"  {name}", "", f"its own thresholds: {bounds.warning:g} and {bounds.critical:g}", "", f"rubric {name}")
        )
    window = Duration(declared.window_ns)
    better = (
        "" if rule.looks == 1 else f"; better only by {rule.recovery_margin:g} more, after {Duration(rule.hold_ns)}"
    )
    rows.append(("", "", f"verdicts of the last {window}, looked at every {look}{better}", "", ""))
    return rows
