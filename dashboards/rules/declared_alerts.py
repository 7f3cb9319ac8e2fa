"""Declared alerts: one alert for each condition of the declaration, over the whole fleet where PromQL can compute it.

Conditions that only a process can compute (a mean against its band) are raised from the process's own alerts. A
condition without an expression here is an error, so none is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import sidejudge.integrations.prometheus.families as f
from sidejudge.scoring.alerts.condition import Condition, Severity
from sidejudge.scoring.alerts.conditions import conditions
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.alerts.quality import FORGOTTEN_NS
from sidejudge.scoring.status.service_status import RELEASED
from sidejudge.scoring.trace.time_units import MINUTE_NS

from .limited import limited_beyond
from .looks import breaching, interval, is_reported
from .promql import SHOWN_PLACE, SHOWN_SHARE, SITE, configured, fleet, held_back, listed, over_processes, sent
from .recordings import STATUS, effective, window_of
from .rule import AlertingRule
from .shares import BLOCKED, JUDGE_FAILED, VERDICTS, VIOLATING, count, lower

_ON_SITE = f"on ({', '.join(SITE)}) group_left ()"
_JUDGE = "{{ .Labels.model }} in {{ .Labels.instance }}"
LAG_WINDOW = "10m"
LEAST_LAGS = 5
_RESTART_NS = 5 * MINUTE_NS
_STOPPED = "traffic_stopped"
_BETWEEN_LOOKS = ("pass_rate_change", "scenario_drift", "version_worse", "slice_worse")
_OUTLASTS_A_RESTART = ("pass_rate_change", "scenario_drift", _STOPPED)
"""The others of a process are kept for ``alerts.limits.keep``."""
_PASSING_NS = 10 * MINUTE_NS
"""How long a recovery may take from *critical* through *warning*, as in process."""


def declared_alerts(declared: Declaration) -> list[AlertingRule]:
    """The alerts of all conditions, in their order."""
    return [_alert(condition, declared) for condition in conditions(declared) if condition.id not in _FROM_COUNTERS]


def _alert(condition: Condition, declared: Declaration) -> AlertingRule:
    if condition.id not in _EXPRESSIONS:
        raise LookupError(f"condition {condition.id}: {__name__}._EXPRESSIONS has no expression for its alert")
    expr, stated, *alone = _EXPRESSIONS[condition.id](declared)
    status = condition.id in {"pass_rate_critical", "pass_rate_warning", "metric_critical", "metric_warning"}
    # A process's own alert has waited there; a status has its looks, and afterwards its hold. A detector is exported as
    # verdicts come, and only the process's next look shows whether the alert is sent.
    reported = expr.startswith(_IN_PROCESS) or expr == _sent(condition.id)
    waits_ns = 0 if reported else declared.look_ns if condition.id in _BETWEEN_LOOKS else None
    if condition.id == _STOPPED:  # one process has not seen a service for long, and the one that does is away
        waits_ns = _RESTART_NS
    kept_ns = _RESTART_NS if condition.id in _OUTLASTS_A_RESTART else condition.keep_ns
    return AlertingRule(
        id=condition.id, severity=condition.severity, title=condition.title, when=condition.when,
        meaning=condition.meaning, expr=expr, stated=stated,
        for_ns=condition.for_ns if waits_ns is None else waits_ns,
        keep_ns=_kept_ns(condition, declared) if status else _RESTART_NS if reported else kept_ns,
        muted_by=() if condition.muted_by is None else (condition.muted_by,), stated_alone="".join(alone),
    )  # fmt: skip


def _kept_ns(condition: Condition, declared: Declaration) -> int:
    """How long an alert on a status outlasts it.

    A critical one is kept longer than the warning that it explains: a recovery passes through *warning*, and the
    warning would be sent in the minute between the two ends. What a process reports is held by the process already:
    there an alert outlasts a restart and a missed scrape.
    """
    kept_ns = _RESTART_NS if is_reported(declared) else declared.rule.hold_ns
    return kept_ns + (_PASSING_NS if condition.severity is Severity.CRITICAL else 0)


def _level(level: str) -> Callable[[Declaration], tuple[str, ...]]:
    passes = f"{SHOWN_SHARE} of the traffic passes {SHOWN_PLACE}"
    return lambda declared: (breaching(declared, level), f"{passes}{interval(declared)}.", f"{passes}.")


def _change(_: Declaration) -> tuple[str, str]:
    since = fleet(f.CHANGE_SINCE, operation="min")
    stated = f"{SHOWN_PLACE} seems to be falling since {{{{ $value | humanizeTimestamp }}}}."
    return _unless_held_back("pass_rate_change", since), stated


def _drift(_: Declaration) -> tuple[str, str]:
    since = fleet(f.DRIFT_SINCE, operation="min")
    stated = f"{SHOWN_PLACE} seems to depart from its scenario since {{{{ $value | humanizeTimestamp }}}}."
    return _unless_held_back("scenario_drift", since), stated


def _slice(*, released: bool) -> Callable[[Declaration], tuple[str, str]]:
    match = f'slice{"=~" if released else "!~"}"{"|".join(RELEASED)}"'
    since = fleet(f.SLICE_WORSE_SINCE, where=match, operation="min")
    stated = (
        f"{SHOWN_PLACE}: {{{{ $labels.slice }}}} {{{{ $labels.value }}}} is worse than the others since "
        "{{ $value | humanizeTimestamp }}."
    )
    alert = "version_worse" if released else "slice_worse"
    return lambda _: (_unless_held_back(alert, since), stated)


def _unless_held_back(alert: str, since: str) -> str:
    return f"{since} > 0\nunless\n{held_back(alert)}"


def _stopped(_: Declaration) -> tuple[str, str]:
    since = f"time() - {fleet(f.LAST_VERDICT, operation='max')}"
    return (
        f"{since} < {FORGOTTEN_NS // 10**9}\nand\n{STATUS} == -2",
        f"The last verdict of {SHOWN_PLACE} was {{{{ $value | humanizeDuration }}}} ago, which is not usual.",
    )


def _share(name: str, id_: str, what: str, match: str = "") -> Callable[[Declaration], tuple[str, str]]:
    def reporting(declared: Declaration) -> tuple[str, str]:
        window, policy = window_of(declared), declared.policy
        if policy.mode == "adaptive":  # PromQL cannot follow verdicts, as this mode does
            stated = f"More verdicts of {SHOWN_PLACE} {what} than the limit allows; the process states the share."
            return _sent(id_), stated
        expr = (
            f"{lower(name, window)}\n> {_ON_SITE} {_limit(id_)}\n"
            f"and\n{count(name, window)} >= {policy.min_failures}\n"
            f"and{match}\n{effective(window)} >= {policy.min_samples:g}"
        )
        return expr, f"At least {SHOWN_SHARE} of the verdicts of {SHOWN_PLACE} {what}, over {window}."

    return reporting


def _judge_failed(declared: Declaration) -> tuple[str, str]:
    window, policy = window_of(declared), declared.policy
    expr = (
        f"{lower(JUDGE_FAILED, window)}\n> {_ON_SITE} {_limit('judge_failure_rate')}\n"
        f"and\n{count(JUDGE_FAILED, window)} >= {policy.min_failures}\n"
        f"and\n{count(VERDICTS, window)} >= {policy.min_samples:g}"
    )
    what = "{{ $labels.rubric }} on {{ $labels.service }} are incomplete because the judge failed"
    return expr, f"At least {SHOWN_SHARE} of the verdicts of {what}, over {window}."


def _unreachable(_: Declaration) -> tuple[str, ...]:
    # Half open is not closed: a provider that hangs keeps a breaker so for minutes, and is not back in between.
    closed = f'avg without (model, state) ({f.JUDGE_BREAKER.name}{{state="closed"}})'
    stated = "No majority of the judges has a closed circuit breaker in at least one process"
    which = listed(f'{f.JUDGE_BREAKER.name}{{state="closed",job=%q}} == 0', "$labels.job", _JUDGE)
    return f"{over_processes(closed, operation='min')} <= 0.5", f"{stated}:{which}", f"{stated}."


def _budget(_: Declaration) -> tuple[str, str]:
    spent = f"{f.JUDGE_BUDGET_SPENT.name} / ({f.JUDGE_BUDGET_LIMIT.name} > 0)"
    return (
        f"{over_processes(spent, operation='max')}\n> {_ON_SITE} {_limit('judge_budget')}",
        f"{SHOWN_SHARE} of the budget of this {{{{ $labels.period }}}} is spent in the process that spent most.",
    )


def _lag(_: Declaration) -> tuple[str, str]:
    buckets, counted = (
        over_processes(f"increase({f.EVALUATION_LAG.name}_{part}[{LAG_WINDOW}])", "service")
        for part in ("bucket", "count")
    )
    late = f"histogram_quantile(0.95, {buckets})\n> {_ON_SITE} {_limit('evaluation_lag')}"
    # What is stuck has no lag yet.
    stuck = f"{fleet(f.JUDGING_BEHIND, operation='max')}\n> {_ON_SITE} {_limit('evaluation_lag')}"
    stated = (
        f"Of the traces of {LAG_WINDOW} 5 % waited longer than {{{{ $value | humanizeDuration }}}} for verdicts, or "
        "one that is not judged yet has waited for so long."
    )
    return f"{late}\nand\n{counted} >= {LEAST_LAGS}\nor\n{stuck}", stated


def _spool(_: Declaration) -> tuple[str, str]:
    size = fleet(f.SPOOL_BYTES, operation="max")
    return (
        f"{size}\n> {_ON_SITE} {_limit('spool_large')}",
        "The largest store takes {{ $value | humanize1024 }}B on disk.",
    )


def _agreement(declared: Declaration) -> tuple[str, str]:
    # Each process knows the labels of its project; of several, the one that finds least agreement.
    known = (
        f'{f.AGREEMENT_KAPPA_UPPER.name}{{metric="pass"}} and '
        f'{f.AGREEMENT_PAIRS.name}{{metric="pass"}} >= {declared.policy.min_samples:g}'
    )
    return (
        f"{over_processes(known, operation='min')}\n< {_ON_SITE} {_limit('judge_agreement_low')}",
        'Kappa of {{ $labels.rubric }} is at most {{ $value | printf "%.2f" }} where people judged the same traces.',
    )


def _process(id_: str, what: str) -> Callable[[Declaration], tuple[str, str]]:
    firing = fleet(f.ALERTS, "severity", "stage", where=f'alert="{id_}",stage="firing"', operation="max")
    return lambda _: (f"{firing} > 0", f"A process reports it of {{{{ $value }}}} {what}; its /v1/alerts lists them.")


def _sent(id_: str) -> str:
    return f"{sent(id_)} == 1"


def _limit(id_: str) -> str:
    return configured(f.ALERT_LIMIT, where=f'alert="{id_}"')


_IN_PROCESS = fleet(f.ALERTS, "severity", "stage", operation="max").removesuffix(")")
_EXPRESSIONS: Mapping[str, Callable[[Declaration], tuple[str, ...]]] = {
    "pass_rate_critical": _level("critical"),
    "pass_rate_warning": _level("warning"),
    "pass_rate_change": _change,
    "scenario_drift": _drift,
    _STOPPED: _stopped,
    "version_worse": _slice(released=True),
    "slice_worse": _slice(released=False),
    "blocker_rate": _share(BLOCKED, "blocker_rate", "are blocked by {{ $labels.metric }}", " ignoring (metric)"),
    "metric_critical": lambda declared: limited_beyond(declared, "critical"),
    "metric_warning": lambda declared: limited_beyond(declared, "warning"),
    "metric_mean_low": _process("metric_mean_low", "metrics"),
    "workflow_violation_rate": _share(VIOLATING, "workflow_violation_rate", "depart from the scenario"),
    "judge_failure_rate": _judge_failed,
    "judge_unreachable": _unreachable,
    "judge_agreement_low": _agreement,
    "judge_drift": _process("judge_drift", "metrics"),
    "judge_budget": _budget,
    "evaluation_lag": _lag,
    "spool_large": _spool,
    "store_trouble": _process("store_trouble", "cause"),
}
"""By condition: expression, template of the sentence, and the template for where none can query, if it differs."""
_FROM_COUNTERS: Final = {"connection_stalled", "exports_waiting", "requests_refused", "traffic_suspected"}
"""Conditions of a process that Prometheus computes itself, over all processes (``fleet_alerts``)."""
