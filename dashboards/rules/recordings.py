"""Recordings: the pass ratio of the whole fleet with its bounds, as in process: from weights that are summed first.

The numbers are those of ``scoring.statistics.estimate``: the ratio is 1 - Σw of failures / Σw (Hájek), the effective
sample size (Σw)² / Σ(D·Σw²) (Kish) with the design effect D of each process, the bounds are Wilson's. D·Σw² is what
the variance of a process's Σw is proportional to, so it adds up over processes, which share no session but by chance.
``increase`` extrapolates to the edges of the window, so sample sizes may differ from the process's by some percent
while a window fills; ratios do not.
"""

from __future__ import annotations

import sidejudge.integrations.prometheus.families as f
from sidejudge.integrations.prometheus.families import Family
from sidejudge.scoring.alerts.declaration import Declaration
from sidejudge.scoring.statistics.interval import Z_99_ONE_SIDED

from .promql import (
    ON_RUBRIC,
    PLACE,
    UNANSWERED,
    WAITING,
    behind,
    bound,
    configured,
    fleet,
    over_processes,
    shown_lower,
    waiting,
)
from .rule import RecordingRule, prometheus_duration

BURN_WINDOWS = ("5m", "30m", "1h", "6h", "3d")
DAY = "1d"
THRESHOLD = "rubric_level:sidejudge_pass_ratio_threshold:max"
BELOW = f"{PLACE}:sidejudge_pass_ratio:below_threshold"
LOOKS_BELOW = f"{PLACE}:sidejudge_pass_ratio:looks_below_threshold"
STATUS = f"{PLACE}:sidejudge_status:code"
FIGURE = f"{PLACE}:sidejudge_pass:ratio_reported"
"""The lowest pass ratio among the processes that report a status worse than healthy."""
KNOWN = f"{PLACE}:sidejudge_status:known"
HELD = f"{PLACE}:sidejudge_status:held"
STATUS_CODES = {-2: "no data", -1: "insufficient data", 0: "healthy", 1: "warning", 2: "critical"}
LEVELS = ("warning", "critical")


def weight(window: str) -> str:
    """Σw of the window."""
    return f"{PLACE}:sidejudge_verdict_weight:increase{window}"


def failed_weight(window: str) -> str:
    """Σw of its failures."""
    return f"{PLACE}:sidejudge_verdict_failed_weight:increase{window}"


def squared_weight(window: str) -> str:
    """Σw² of the window."""
    return f"{PLACE}:sidejudge_verdict_weight_squared:increase{window}"


def clustered_weight(window: str) -> str:
    """Σ(D·Σw²) over processes: squared weights, times the design effect D of each process."""
    return f"{PLACE}:sidejudge_verdict_weight_squared_clustered:increase{window}"


def failures(window: str) -> str:
    """The unweighted number of failed verdicts, for guards."""
    return f"{PLACE}:sidejudge_verdicts_failed:increase{window}"


def effective(window: str) -> str:
    """Effective sample size; 0 where there was no verdict; absent where there never was one.

    A process counts every routed rubric from 0 on as soon as it knows a service, also those that never judge it.
    """
    return f"{PLACE}:sidejudge_effective_samples:increase{window}"


def pass_ratio(window: str) -> str:
    """Pass ratio; absent where there was no verdict."""
    return f"{PLACE}:sidejudge_pass:ratio_increase{window}"


def failed_ratio(window: str) -> str:
    """Its complement."""
    return f"{PLACE}:sidejudge_failed:ratio_increase{window}"


def upper(window: str, percent: int = 95) -> str:
    """Upper bound of the pass ratio: with the lower one 95 %, or one-sided 99 %."""
    return f"{PLACE}:sidejudge_pass:ratio_upper{percent}_{window}"


def lower(window: str) -> str:
    """Lower bound of the pass ratio: with the upper one 95 %."""
    return f"{PLACE}:sidejudge_pass:ratio_lower95_{window}"


def window_of(declared: Declaration) -> str:
    """The window of the status, as Prometheus writes it."""
    return prometheus_duration(declared.window_ns)


def estimates(window: str) -> list[RecordingRule]:
    """Ratio, effective sample size and bounds over one window."""
    ever = fleet(f.VERDICT_WEIGHT, operation="max")
    return [
        *sums(window),
        RecordingRule(squared_weight(window), fleet(f.VERDICT_WEIGHT_SQUARED, window=window)),
        RecordingRule(clustered_weight(window), clustered(f.VERDICT_WEIGHT_SQUARED, window)),
        RecordingRule(
            effective(window),
            f"{weight(window)} * {weight(window)} / ({clustered_weight(window)} > 0)\n"
            f"or\n{weight(window)} * 0\nand\n{ever} > 0",
        ),
        RecordingRule(pass_ratio(window), f"1 - {failed_weight(window)} / ({weight(window)} > 0)"),
        RecordingRule(lower(window), shown_lower(pass_ratio(window), effective(window))),
        RecordingRule(upper(window), f"1 - {shown_lower(f'(1 - {pass_ratio(window)})', effective(window))}"),
    ]


def clustered(squared_weight: Family, window: str, times: str = "*") -> str:
    """Σ(D·Σw²) over processes: ``times`` multiplies the weights with the design effect D that a process knew last.

    A process that is gone counts with its last D, a process that exports none with D = 1.
    """
    squared = f"increase({squared_weight.name}[{window}])"
    effect = f"last_over_time({f.DESIGN_EFFECT.name}[{window}])"
    return over_processes(f"\n  {squared} {times} {effect}\n  or\n  {squared}\n")


def sums(window: str) -> list[RecordingRule]:
    """Weights and failures over one window."""
    return [
        RecordingRule(weight(window), fleet(f.VERDICT_WEIGHT, window=window)),
        RecordingRule(failed_weight(window), fleet(f.VERDICT_FAILED_WEIGHT, window=window)),
        RecordingRule(failures(window), fleet(f.VERDICTS_FAILED, "selection", window=window)),
    ]


def unanswered(window: str) -> str:
    """The weighted number of the window's traces that have no answer; absent where there were none."""
    return f"{PLACE}:sidejudge_unanswered_traces:sum{window}"


def open_(window: str) -> str:
    """The same with those that wait for a slow judge."""
    return f"{PLACE}:sidejudge_open_traces:sum{window}"


def like_failed(window: str) -> str:
    """Those that fail if they are like what that judge answered; absent where none wait for one."""
    return f"{PLACE}:sidejudge_behind_traces_failed:sum{window}"


def best_failed_ratio(window: str) -> str:
    """The share of failures where what has no answer passes, but what is like a slow judge's refusals."""
    failed = f"({failed_weight(window)} + {like_failed(window)} or {failed_weight(window)})"
    return f"{failed} / ({weight(window)} + {open_(window)})"


def unanswered_over(window: str) -> list[RecordingRule]:
    """What had no answer over the windows of slow alerts: of gauges that hold each trace for ``window`` or longer.

    Over an hour at most it is what a gauge holds. Over longer, a trace that waits counts several times: for a while
    after an outage alerts begin later.
    """
    found = []
    for record, series in ((unanswered, UNANSWERED), (open_, WAITING), (like_failed, (behind("failed"),))):
        now = waiting(*series)
        found += [RecordingRule(record(over), now) for over in ("5m", "30m", "1h")]
        for over in ("6h", DAY, "3d"):
            summed = waiting(*series, over=f"{over}:{window}")
            found.append(RecordingRule(record(over), f"({now} > {summed})\nor\n{summed}\nor\n{now}"))
    return found


def threshold() -> RecordingRule:
    """The thresholds of each rubric."""
    return RecordingRule(THRESHOLD, configured(f.PASS_RATIO_THRESHOLD, "rubric", "level"))


def burning() -> list[RecordingRule]:
    """The share of failures over all windows of the burn-rate alerts."""
    return [
        RecordingRule(failed_ratio(window), f"{failed_weight(window)} / ({weight(window)} > 0)")
        for window in BURN_WINDOWS
    ]


def day() -> list[RecordingRule]:
    """The day's estimate, for services that are too quiet for the window of the status."""
    strict = bound(pass_ratio(DAY), effective(DAY), upper=True, z=Z_99_ONE_SIDED)
    return [*estimates(DAY), RecordingRule(upper(DAY, 99), strict)]


TRUE_POSITIVE = "rubric:sidejudge_agreement_true_positive:avg"
TRUE_NEGATIVE = "rubric:sidejudge_agreement_true_negative:avg"


def corrected(window: str) -> str:
    """The corrected pass ratio; absent where labels do not show both errors, or the judge only guesses."""
    return f"{PLACE}:sidejudge_pass_corrected:ratio_increase{window}"


def people(window: str) -> list[RecordingRule]:
    """Errors, and the corrected ratio over one window."""
    return [
        RecordingRule(TRUE_POSITIVE, _of_verdicts(f.AGREEMENT_TRUE_POSITIVE)),
        RecordingRule(TRUE_NEGATIVE, _of_verdicts(f.AGREEMENT_TRUE_NEGATIVE)),
        RecordingRule(
            corrected(window),
            f"clamp(\n  ({pass_ratio(window)} + {ON_RUBRIC} {TRUE_NEGATIVE} - 1)\n"
            f"  / {ON_RUBRIC} ({TRUE_POSITIVE} + {TRUE_NEGATIVE} - 1 > 0),\n  0, 1\n)",
        ),
    ]


def _of_verdicts(family: Family) -> str:
    return over_processes(f'{family.name}{{metric="pass"}}', "metric", operation="avg")
