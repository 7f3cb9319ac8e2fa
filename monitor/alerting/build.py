"""Builds the declaration of alerts from the configuration.

Also lists what a configuration watches, as rows of a table for people.
"""

from __future__ import annotations

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.alerts import FEWEST_FALSE_ALARMS
from sidejudge.monitor.config.metric_limits import metric_limits
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.config.units import Duration
from sidejudge.scoring.alerts.condition import Severity
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import AlertLimits, ChangeRule, Declaration
from sidejudge.scoring.status.hysteresis import Hysteresis
from sidejudge.scoring.status.status import Policy, Thresholds


def declaration(config: Config) -> Declaration:
    """The conditions of this configuration, and when a status changes."""
    alerts = config.alerts
    common = alerts.thresholds
    return Declaration(
        policy=Policy(
            thresholds=Thresholds(warning=common.warning, critical=common.critical),
            mode="adaptive" if alerts.mode == "sequence" else alerts.mode,
            min_samples=alerts.min_samples,
            min_failures=alerts.min_failures,
        ),
        thresholds={
            name: Thresholds(
                warning=common.warning if own.warning is None else own.warning,
                critical=common.critical if own.critical is None else own.critical,
            )
            for name, own in alerts.rubrics.items()
        },
        window_ns=alerts.window.ns,
        longest_ns=alerts.longest_window.ns,
        false_alarms=alerts.false_alarms,
        look_ns=alerts.look.ns,
        corrected=alerts.corrected,
        hysteresis=Hysteresis(
            needed=alerts.hysteresis.needed,
            looks=alerts.hysteresis.looks,
            recovery_margin=alerts.hysteresis.recovery_margin,
            hold_ns=alerts.hysteresis.hold.ns,
        ),
        change=ChangeRule(
            good=alerts.change.good,
            bad=alerts.change.bad,
            drift_good=alerts.change.drift_good,
            drift_bad=alerts.change.drift_bad,
            false_alarm_every_ns=alerts.change.false_alarm_every.ns,
            severity=Severity(alerts.change.severity),
        ),
        limits=AlertLimits(
            blocker_ratio=alerts.limits.blocker_rate,
            violation_ratio=alerts.limits.violation_rate,
            judge_failed_ratio=alerts.limits.judge_failure_rate,
            agreement=alerts.limits.agreement,
            lag_s=alerts.limits.lag.seconds,
            spool_bytes=alerts.limits.spool,
            budget_ratio=alerts.limits.budget,
            for_ns=alerts.limits.lasting.ns,
            keep_ns=alerts.limits.keep.ns,
        ),
        slices=tuple(dict.fromkeys(alerts.slices)),
        slice_false_alarms=max(FEWEST_FALSE_ALARMS, alerts.slice_false_alarms_per_month),
        silence_severity=Severity(alerts.silence.severity),
        metrics=metric_limits(alerts.metrics, configured(config)) if alerts.metrics else (),
    )


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
