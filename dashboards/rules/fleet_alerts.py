"""Fleet alerts: conditions that only Prometheus can compute: long windows over all processes, and a lost monitor.

Burn rates are those of the SRE workbook (chapter 5), with the warning threshold as objective. A factor of 14.4 asks
for 216 % failures at an objective of 85 %: thresholds are capped so that they can be reached.
"""

from __future__ import annotations

from dataclasses import replace

import sidejudge.integrations.prometheus.families as f
from sidejudge.scoring.alerts.condition import Severity, alert_name
from sidejudge.scoring.alerts.conditions import monitoring
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.trace.time_units import HOUR_NS, MINUTE_NS

from .promql import ON_RUBRIC, SHOWN_PLACE, SHOWN_SHARE, SITE, fleet, listed
from .recordings import (
    DAY,
    HELD,
    THRESHOLD,
    best_failed_ratio,
    failed_ratio,
    failed_weight,
    failures,
    pass_ratio,
    unanswered,
    upper,
    weight,
)
from .rule import AlertingRule

CAP = 0.9
"""The largest share of failures that a burn rate may ask for."""
_BURNS = (
    (14.4, "1h", "5m", 5, 2 * MINUTE_NS, Severity.CRITICAL),
    (6, "6h", "30m", 10, 15 * MINUTE_NS, Severity.CRITICAL),
    (1, "3d", "6h", 20, 3 * HOUR_NS, Severity.WARNING),
)
"""Factor, both windows, least failures in the long one, for how long, severity."""
_LOST = "shed|undecodable|error|crashed"


def fleet_alerts() -> list[AlertingRule]:
    """The alerts on quality that need long windows, in the order of the runbooks."""
    return [_sustained(), *map(_burn, _BURNS), _unknown(), _tool_failing()]


def health_alerts() -> list[AlertingRule]:
    """The alerts on monitors that lose traces, are silent, or are gone. None is critical."""
    return [
        _silent(), _losing(), _refusing(), _exports(), _stalled(), _unsent(), _labels(), _reloaded(), _not_judging(),
        _down(), _absent(), _traffic(),
    ]  # fmt: skip


def _sustained() -> AlertingRule:
    limit = f'{ON_RUBRIC} {THRESHOLD}{{level="warning"}}'
    waits = f"{unanswered(DAY)} / ({weight(DAY)} + {unanswered(DAY)})"
    return AlertingRule(
        id="pass_rate_sustained", severity=Severity.WARNING, title="Fewer traces pass than should, for a day",
        when="upper 99 % bound of the day's pass ratio below the warning threshold; at least 3 failures",
        meaning="the service may be too quiet for the hourly window; over a day the evidence is in",
        expr=_both_ways(
            f"{upper(DAY, 99)}\n< {limit}\nand\n{failures(DAY)} >= 3", "pass_rate_sustained",
            averted=f"1 - {best_failed_ratio(DAY)}\n>= {limit}",
            upheld=f"{upper(DAY, 99)}\nand\n{upper(DAY, 99)} - {pass_ratio(DAY)} * {waits} < {limit}",
        ),
        stated=f"With 99 % confidence at most {SHOWN_SHARE} of the day's traffic passes {SHOWN_PLACE}.",
        for_ns=HOUR_NS, keep_ns=HOUR_NS, muted_by=("pass_rate_warning",),
    )  # fmt: skip


def _both_ways(breached: str, id_: str, *, averted: str, upheld: str, labels: str = "") -> str:
    """Where an alert goes on: none begins that traces without an answer could avert, none ends that they could uphold.

    An outage leaves short windows empty, or with those alone that need no answer.
    """
    firing = f'ALERTS{{alertname="{alert_name(id_)}",alertstate="firing"{labels}}}'
    on = f"on ({', '.join((*SITE, 'service', 'environment', 'rubric'))})"
    return f"{breached}\nunless\n(\n{averted}\nunless {on}\n{firing}\n)\nor\n(\n{upheld}\nand {on}\n{firing}\n)"


def _burn(burn: tuple[float, str, str, int, int, Severity]) -> AlertingRule:
    factor, long, short, least, for_ns, severity = burn
    worst = (
        f"({failed_weight(over)} + {unanswered(over)}) / ({weight(over)} + {unanswered(over)})"
        for over in (long, short)
    )
    limit = f'clamp_max({factor:g} * (1 - {THRESHOLD}{{level="warning"}}), {CAP})'
    return AlertingRule(
        id="error_budget_burn", severity=severity, title="The error budget burns too fast",
        when=f"share of failures over {long} and over {short} above {factor:g} times what the warning threshold allows "
        f"(at most {CAP:.0%}); at least {least} failures",
        meaning="at this pace the failures of a month that the warning threshold allows are used up early",
        expr=_both_ways(
            f"{failed_ratio(long)}\n> {ON_RUBRIC} {limit}\nand\n{failed_ratio(short)}\n> {ON_RUBRIC} {limit}\nand\n"
            f"{failures(long)} >= {least}", "error_budget_burn", labels=f',long="{long}"',
            averted=f"{best_failed_ratio(long)}\n<= {ON_RUBRIC} {limit}",
            upheld="\nand\n".join([
                f"last_over_time({failed_ratio(long)}[{DAY}])", *(f"{each}\n> {ON_RUBRIC} {limit}" for each in worst),
            ]),
        ),
        stated=f"{SHOWN_SHARE} of the traffic failed {SHOWN_PLACE} over {long}.",
        for_ns=for_ns, keep_ns=15 * MINUTE_NS, muted_by=("pass_rate_critical",),
        labels={"long": long, "short": short},
    )  # fmt: skip


def _unknown() -> AlertingRule:
    return AlertingRule(
        id="pass_rate_unknown", severity=Severity.INFO, title="The pass rate was too low and is now unknown",
        when="the last status that was known within a day is warning or critical, and now there is too little data",
        meaning="silence is not recovery: the alert on the pass rate stays until it is known again or a day is over",
        expr=f"{HELD} >= 1",
        stated=f"{SHOWN_PLACE} has too few verdicts to decide whether it has recovered.",
        for_ns=10 * MINUTE_NS,
    )  # fmt: skip


def _tool_failing() -> AlertingRule:
    failed, calls = fleet(f.TOOL_ERRORS, window="1h"), fleet(f.TOOL_CALLS, window="1h")
    return AlertingRule(
        id="tool_failing", severity=Severity.WARNING, title="A tool fails too often",
        when="more than 30 % of the calls of a tool failed within an hour, and at least 10",
        meaning="agents work around a tool that fails, so answers get worse before runs fail",
        expr=f"{failed} / ({calls} > 0) > 0.3\nand\n{failed} >= 10",
        stated=f"{SHOWN_SHARE} of the calls of {{{{ $labels.tool }}}} failed in {{{{ $labels.service }}}}, over 1h.",
        for_ns=10 * MINUTE_NS, keep_ns=15 * MINUTE_NS,
    )  # fmt: skip


def _silent() -> AlertingRule:
    kept = fleet(f.TRACES_KEPT, "selection", window="30m")
    verdicts = f"{fleet(f.VERDICTS, 'environment', 'rubric', 'selection', window='30m')} > 0"
    return AlertingRule(
        id="monitor_silent", severity=Severity.WARNING, title="Traces are drawn and none is judged",
        when="at least 20 traces were drawn in 30 minutes and no verdict was reached",
        meaning="no status and no alert on quality is computed while this lasts",
        expr=f"{kept} >= 20\nunless\n{verdicts}",
        stated="{{ $value | humanize }} traces of {{ $labels.service }} were drawn in 30 minutes and none was judged.",
        for_ns=15 * MINUTE_NS, keep_ns=15 * MINUTE_NS,
    )  # fmt: skip


def _losing() -> AlertingRule:
    lost = fleet(f.TRACES, "reason", where=f'reason=~"{_LOST}"', window="15m")
    kept = fleet(f.TRACES_KEPT, "selection", window="15m")
    return AlertingRule(
        id="traces_lost", severity=Severity.WARNING, title="Traces that were drawn are lost",
        when="more than 5 % of the traces drawn in 15 minutes, and at least 3, ended as shed, undecodable, error or "
        "crashed",
        meaning="what is lost is missing from every number; estimates are sound only if the loss is by chance",
        # What is lost was drawn, and is counted there alone: it has no verdict.
        expr=f"{lost} / ({kept} + {lost} > 0) > 0.05\nand\n{lost} >= 3",
        stated=f"{SHOWN_SHARE} of the traces of {{{{ $labels.service }}}} were lost, over 15m.",
        for_ns=15 * MINUTE_NS, keep_ns=15 * MINUTE_NS,
    )  # fmt: skip


def _refusing() -> AlertingRule:
    each = f"increase({f.REQUESTS_REFUSED.name}{{code=%q}}[15m]) >= 1"
    instances = listed(each, "$labels.code", "{{ .Value | humanize }} by {{ .Labels.instance }}")
    stated = "{{ $value | humanize }} requests were answered with {{ $labels.code }}, over 15m"
    expr = f"{fleet(f.REQUESTS_REFUSED, window='15m')} >= 5"
    return _as_in_process("requests_refused", expr, f"{stated}:{instances}", f"{stated}.")


def _exports() -> AlertingRule:
    failed, handed = fleet(f.EXPORTS_FAILED, "reason", window="15m"), fleet(f.EXPORTS, window="15m")
    return AlertingRule(
        id="exports_failing", severity=Severity.WARNING, title="Verdicts are not accepted where they are sent",
        when="more than 5 % of the verdicts that were handed to a destination in 15 minutes were not accepted",
        meaning="they are missing there; statuses and metrics here do not depend on it",
        expr=f"{failed} / ({handed} > 0) > 0.05",
        stated=f"{{{{ $labels.destination }}}} did not accept {SHOWN_SHARE} of the verdicts, over 15m.",
        for_ns=10 * MINUTE_NS, keep_ns=15 * MINUTE_NS,
    )  # fmt: skip


def _stalled() -> AlertingRule:
    state = fleet(f.CONNECTION_STATE, "state", where='state=~"retrying|stopped"', operation="max")
    stated = "{{ $labels.connection }} cannot be used; the status page says why."
    rule = _as_in_process("connection_stalled", f"{state} == 1", stated)
    return replace(rule, meaning=f"{rule.meaning}; it is noticed from the first start on, when nothing was counted yet")


def _unsent() -> AlertingRule:
    oldest = fleet(f.QUEUE_OLDEST, where='queue=~"langfuse|otel_events"', operation="min")
    stated = "What goes to {{ $labels.queue }} has waited for {{ $value | humanizeDuration }}."
    return _as_in_process("exports_waiting", f"time() - {oldest} > 3600", stated)


def _labels() -> AlertingRule:
    # Nobody knows of labels where none are read: a process has the series once it has read some.
    read = fleet(f.LABELS_READ, operation="min")
    return AlertingRule(
        id="labels_unread", severity=Severity.WARNING, title="Labels of people are not read any more",
        when="a monitor that reads labels of people has not read them for six hours",
        meaning="agreement with people and corrected pass ratios stand still, and no alert on agreement changes",
        expr=f"time() - {read} > 21600",
        stated="Labels of people were last read {{ $value | humanizeDuration }} ago.",
        for_ns=10 * MINUTE_NS,
    )  # fmt: skip


def _not_judging() -> AlertingRule:
    return AlertingRule(
        id="config_invalid", severity=Severity.WARNING, title="A monitor forwards and does not judge",
        when="a process that forwards found a mistake in its configuration when it started",
        meaning="telemetry goes on upstream and none of it is judged until the configuration is mended",
        expr=f"{fleet(f.CONFIG_VALID, operation='min')} == 0",
        stated="A monitor was started with an invalid configuration: it forwards and judges nothing.",
        for_ns=5 * MINUTE_NS,
    )  # fmt: skip


def _reloaded() -> AlertingRule:
    return AlertingRule(
        id="config_not_reloaded", severity=Severity.WARNING, title="A changed configuration is not in force",
        when="the latest reload of the configuration failed in a process that still runs",
        meaning="it judges by the configuration that was valid before; with its next start it would not judge",
        expr=f"{fleet(f.CONFIG_RELOADED, operation='min')} == 0",
        stated="The latest configuration was refused, and the one before it is in force.",
        for_ns=5 * MINUTE_NS,
    )  # fmt: skip


def _down() -> AlertingRule:
    known = f"max_over_time({f.BUILD_INFO.name}[{DAY}])"
    same = f"on ({', '.join((*SITE, 'instance'))})"
    return AlertingRule(
        id="monitor_down", severity=Severity.WARNING, title="A monitor cannot be scraped",
        when="a target that was a monitor within a day does not answer its scrapes; one that never answered is known "
        'by its container name "sidejudge"',
        meaning="its verdicts are missing from the fleet's numbers, which may not notice",
        expr=f'up{{container="sidejudge"}} == 0\nor\nup == 0\nand {same}\n{known}',
        stated="{{ $labels.instance }} of {{ $labels.job }} does not answer.",
        for_ns=10 * MINUTE_NS,
    )  # fmt: skip


def _absent() -> AlertingRule:
    return AlertingRule(
        id="monitor_absent", severity=Severity.WARNING, title="No monitor is scraped at all",
        when=f"no target exports {f.BUILD_INFO.name}",
        meaning="either none runs or Prometheus does not find them; no alert on quality can fire",
        expr=f"absent({f.BUILD_INFO.name})",
        stated="Prometheus knows no monitor.",
        for_ns=15 * MINUTE_NS,
    )  # fmt: skip


def _traffic() -> AlertingRule:
    stated = "{{ $labels.kind }} was found; the status page has its cause and remedy."
    return _as_in_process("traffic_suspected", f"{fleet(f.TRAFFIC_SUSPECTED, operation='max')} == 1", stated)


def _as_in_process(id_: str, expr: str, stated: str, stated_alone: str = "") -> AlertingRule:
    """The rule of a condition that each process watches as well, in the same words."""
    known = next(each for each in monitoring(Declaration()) if each.id == id_)
    return AlertingRule(
        id=id_, severity=known.severity, title=known.title, when=known.when, meaning=known.meaning, expr=expr,
        stated=stated, stated_alone=stated_alone, for_ns=known.for_ns, keep_ns=known.keep_ns,
    )  # fmt: skip
