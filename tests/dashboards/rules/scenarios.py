"""What the rules must and must not do, as stories of two processes of one job.

Alerts are tried on recorded series, just above and just below each of their limits; recordings on counters, by value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dashboards.rules import recordings as r
from dashboards.rules import shares as s
from scoring.statistics.interval import Z_95_ONE_SIDED, Z_99_ONE_SIDED, wilson

from .scenario import (
    PLACE,
    SITE,
    Check,
    Scenario,
    constant,
    fires,
    is_number,
    labelled,
    on_both_pods,
    points,
    silent,
    target,
)

WORKFLOW = {**PLACE, "rubric": "workflow"}
RUBRIC = {**SITE, "rubric": "qa"}
SERVICE = {**SITE, "service": "shop", "rubric": "qa"}
METRIC = {**PLACE, "metric": "accuracy"}
THRESHOLDS = {
    **constant(r.THRESHOLD, {**RUBRIC, "level": "warning"}, 0.85),
    **constant(r.THRESHOLD, {**RUBRIC, "level": "critical"}, 0.70),
}


def _lower(share: float, n: float) -> float:
    """The bound as the process computes it."""
    told = wilson(share * n, n, Z_95_ONE_SIDED)
    assert told is not None
    return told.lower


def _upper(share: float, n: float, z: float = Z_95_ONE_SIDED) -> float:
    told = wilson(share * n, n, z)
    assert told is not None
    return told.upper


def scenarios() -> Iterator[Scenario]:
    yield from _estimates()
    yield from _thresholds()
    yield from _looks()
    yield from _status_alerts()
    yield from _story()
    yield from _shares()
    yield from _from_processes()
    yield from _limits()
    yield from _day()
    yield from _burning()
    yield from _unknown()
    yield from _health()


def _verdicts(window_steps: int, place: Mapping[str, str] = PLACE) -> dict[str, str]:
    """Half of the traffic drawn at 1/2, half at 1; 6 verdicts a minute, of which 2 fail. Forced ones fail more often."""
    steps = window_steps * 2
    return {
        **on_both_pods("sidejudge_verdict_weight_total", place, [9] * steps),
        **on_both_pods("sidejudge_verdict_failed_weight_total", place, [2.5] * steps),
        **on_both_pods("sidejudge_verdict_weight_squared_total", place, [15] * steps),
        **on_both_pods("sidejudge_verdicts_failed_total", {**place, "selection": "random"}, [0.5] * steps),
        **on_both_pods("sidejudge_verdicts_failed_total", {**place, "selection": "forced"}, [1.5] * steps),
    }


def _estimates() -> Iterator[Scenario]:
    # W = 540, F = 150, W² sum = 900: the ratio is 1 - 150/540, the effective size 540²/900 = 324.
    values = ((r.weight, 540), (r.failed_weight, 150), (r.squared_weight, 900), (r.failures, 120), (r.effective, 324),
              (r.pass_ratio, 390 / 540), (r.lower, _lower(390 / 540, 324)), (r.upper, _upper(390 / 540, 324)))  # fmt: skip
    yield Scenario(
        name="the ratio of the fleet comes from weights that are summed first",
        under=tuple(name("1h") for name, _ in values), given=_verdicts(60),
        checks=tuple(
            check
            for name, value in values
            for check in (is_number(name("1h"), "2h", value), Check(at="2h", expr=f"count({name('1h')})", value=1))
        ),
    )  # fmt: skip
    yield Scenario(
        name="without a verdict there is a sample size of 0 and no ratio",
        under=(r.effective("1h"), r.pass_ratio("1h")),
        given={**constant(r.weight("1h"), PLACE, 0), **constant(r.squared_weight("1h"), PLACE, 0),
               **constant(r.failed_weight("1h"), PLACE, 0)},
        checks=(is_number(r.effective("1h"), "1h", 0), is_number(r.pass_ratio("1h"), "1h", None)),
    )  # fmt: skip
    for window, at, step, scale in (("5m", "20m", "1m", 5), ("30m", "2h", "2m", 15), ("6h", "24h", "10m", 36),
                                    ("1d", "4d", "1h", 24), ("3d", "9d", "2h", 36)):  # fmt: skip
        names: list[tuple[str, float]] = [
            (r.weight(window), 9 * scale), (r.failed_weight(window), 2.5 * scale), (r.failures(window), 2 * scale),
        ]  # fmt: skip
        if window != "1d":
            names.append((r.failed_ratio(window), 150 / 540))
        yield Scenario(
            name=f"sums over {window}", under=tuple(name for name, _ in names), step=step, given=_verdicts(scale * 2),
            checks=tuple(
                check
                for name, value in names
                for check in (is_number(name, at, value), Check(at=at, expr=f"count({name})", value=1))
            ),
        )  # fmt: skip
    yield Scenario(
        name="the share of failures of the hour", under=(r.failed_ratio("1h"),),
        given={**constant(r.failed_weight("1h"), PLACE, 150), **constant(r.weight("1h"), PLACE, 540)},
        checks=(is_number(r.failed_ratio("1h"), "1h", 150 / 540),),
    )  # fmt: skip
    yield Scenario(
        name="the day's bounds",
        under=(r.squared_weight("1d"), r.effective("1d"), r.pass_ratio("1d"), r.lower("1d"), r.upper("1d"), r.upper("1d", 99)),
        step="1h", given=_verdicts(48),
        checks=(
            is_number(r.squared_weight("1d"), "4d", 360), is_number(r.effective("1d"), "4d", 129.6),
            is_number(r.pass_ratio("1d"), "4d", 390 / 540), is_number(r.lower("1d"), "4d", _lower(390 / 540, 129.6)),
            is_number(r.upper("1d"), "4d", _upper(390 / 540, 129.6)), is_number(r.upper("1d", 99), "4d", _upper(390 / 540, 129.6, Z_99_ONE_SIDED)),
            Check(at="4d", expr=f"count({r.squared_weight('1d')})", value=1),
        ),
    )  # fmt: skip
    yield Scenario(
        name="a day without a verdict", under=(r.effective("1d"), r.pass_ratio("1d")),
        given={**constant(r.weight("1d"), PLACE, 0), **constant(r.squared_weight("1d"), PLACE, 0),
               **constant(r.failed_weight("1d"), PLACE, 0)},
        checks=(is_number(r.effective("1d"), "1h", 0), is_number(r.pass_ratio("1d"), "1h", None)),
    )  # fmt: skip


def _thresholds() -> Iterator[Scenario]:
    family = "sidejudge_pass_ratio_threshold"
    yield Scenario(
        name="of two processes that disagree during a rollout the stricter threshold holds", under=(r.THRESHOLD,),
        given={**constant(family, {**RUBRIC, "level": "warning", **target("a")}, 0.85),
               **constant(family, {**RUBRIC, "level": "warning", **target("b")}, 0.90),
               **constant(family, {**RUBRIC, "level": "critical", **target("a")}, 0.70)},
        checks=(is_number(r.THRESHOLD, "5m", 0.9, level="warning"), is_number(r.THRESHOLD, "5m", 0.7, level="critical"),
                Check(at="5m", expr=f"count({r.THRESHOLD})", value=2)),
    )  # fmt: skip


def _looks() -> Iterator[Scenario]:
    def look(upper: float, failures: float, samples: float, warning: float | None, critical: float | None) -> Scenario:
        return Scenario(
            name=f"a look at an upper bound of {upper} with {failures} failures of {samples}", under=(r.BELOW,),
            given={**THRESHOLDS, **constant(r.upper("1h"), PLACE, upper), **constant(r.failures("1h"), PLACE, failures),
                   **constant(r.effective("1h"), PLACE, samples)},
            checks=(is_number(r.BELOW, "5m", warning, level="warning"), is_number(r.BELOW, "5m", critical, level="critical")),
        )  # fmt: skip

    yield look(0.86, 40, 100, 0, 0)
    yield look(0.84, 40, 100, 1, 0)
    yield look(0.71, 40, 100, 1, 0)
    yield look(0.69, 40, 100, 1, 1)
    yield look(0.60, 3, 30, 1, 1)
    yield look(0.60, 2.9, 30, 0, 0)
    yield look(0.60, 3, 29, None, None)

    def below(level: str, values: str) -> dict[str, str]:
        return points(r.BELOW, {**PLACE, "level": level}, [None if each == "." else float(each) for each in values])

    yield Scenario(
        name="the last twelve looks are counted, and the thirteenth is not", under=(r.LOOKS_BELOW,),
        given={**below("warning", "1" * 30), **below("critical", "1110101111110")},
        checks=(is_number(r.LOOKS_BELOW, "29m", 12, level="warning"), is_number(r.LOOKS_BELOW, "12m", 9, level="critical")),
    )  # fmt: skip

    def status(warned: str, critical: str, code: float, samples: float = 100) -> Scenario:
        at = f"{len(warned) - 1}m"
        return Scenario(
            name=f"looks {warned} and {critical} with {samples} samples are {r.STATUS_CODES[int(code)]}",
            under=(r.STATUS, r.LOOKS_BELOW, r.KNOWN),
            given={**below("warning", warned), **below("critical", critical),
                   **constant(r.effective("1h"), PLACE, samples)},
            checks=(is_number(r.STATUS, at, code), is_number(r.KNOWN, at, code if code >= 0 else None)),
        )  # fmt: skip

    yield status("0" * 13, "0" * 13, 0)
    yield status("1011111110111", "0" * 13, 1)
    yield status("1" * 13, "0011111111110", 2)
    yield status("1" * 13, "0001111111110", 1)
    yield status("1001111111110", "0" * 13, 0)  # nine of the last twelve
    yield status("0", "0", 0)
    yield status("1", "1", -1)  # one bad look proves neither
    yield status("1" * 10, "0" * 10, 1)
    yield status("0011111111", "0" * 10, -1)  # eight of ten bad looks prove neither
    yield status("0000010000", "0" * 10, -1)
    yield status("000000......010000", "000000......000000", -1)
    yield status("0000000000100", "...........00", 0)
    yield status("1" * 13, "1" * 13, -1, samples=29)
    yield status("1" * 13, "1" * 13, 2, samples=30)


def _status_alerts() -> Iterator[Scenario]:
    for level in ("critical", "warning"):
        alert = f"SidejudgePassRate{level.capitalize()}"
        looks = {**PLACE, "level": level}
        other = {**PLACE, "level": "warning" if level == "critical" else "critical"}
        yield Scenario(
            name=f"ten looks raise {level}, and it lasts for half an hour", under=(alert,),
            given={**points(r.LOOKS_BELOW, looks, [9] * 5 + [10] * 5 + [9] * 60), **constant(r.LOOKS_BELOW, other, 0),
                   **constant(r.pass_ratio("1h"), PLACE, 0.6)},
            checks=(silent(alert, "4m"), fires(alert, "5m", severity=level), fires(alert, "38m"), silent(alert, "40m")),
        )  # fmt: skip


def _story() -> Iterator[Scenario]:
    """Two processes, ten verdicts a minute: well, then worse, then bad, then well again, then nothing."""
    good, worse, bad = [(10, 0.5)] * 90, [(10, 2.5)] * 90, [(10, 4.5)] * 90
    told = good + worse + bad + good + good + [(0, 0.0)] * 90
    verdicts, failed = [n for n, _ in told], [k for _, k in told]
    warning, critical = "SidejudgePassRateWarning", "SidejudgePassRateCritical"
    thresholds = {
        labelled("sidejudge_pass_ratio_threshold", {**RUBRIC, "level": level, **target(pod)}): f"{value}x600"
        for level, value in (("warning", 0.85), ("critical", 0.7))
        for pod in ("a", "b")
    }
    yield Scenario(
        name="a service goes healthy, warning, critical, healthy, and is not healthy for being silent",
        under=(warning, critical, r.STATUS, r.KNOWN, "SidejudgePassRateUnknown"),
        given={
            **thresholds,
            **on_both_pods("sidejudge_verdict_weight_total", PLACE, verdicts),
            **on_both_pods("sidejudge_verdict_weight_squared_total", PLACE, verdicts),
            **on_both_pods("sidejudge_verdict_failed_weight_total", PLACE, failed),
            **on_both_pods("sidejudge_verdicts_failed_total", {**PLACE, "selection": "random"}, failed),
        },
        checks=(
            silent(warning, "90m"), is_number(r.STATUS, "90m", 0),
            fires(warning, "175m"), silent(critical, "175m"), is_number(r.STATUS, "175m", 1),
            fires(warning, "265m"), fires(critical, "265m"), is_number(r.STATUS, "265m", 2),
            silent(warning, "445m"), silent(critical, "445m"), is_number(r.STATUS, "445m", 0),
            is_number(r.STATUS, "535m", -1), silent("SidejudgePassRateUnknown", "535m"),
        ),
    )  # fmt: skip


def _shares() -> Iterator[Scenario]:
    base = {**constant(r.weight("1h"), PLACE, 540), **constant(r.effective("1h"), PLACE, 324)}
    values = (
        (s.count(s.BLOCKED, "1h"), 60),
        (s.ratio(s.BLOCKED, "1h"), 0.2),
        (s.lower(s.BLOCKED, "1h"), _lower(0.2, 324)),
    )
    yield Scenario(
        name="the share that a metric blocks", under=tuple(name for name, _ in values),
        given={**base, **on_both_pods("sidejudge_verdicts_blocked_total", METRIC, [1] * 120),
               **on_both_pods("sidejudge_verdict_blocked_weight_total", METRIC, [1.8] * 120)},
        checks=tuple(
            check
            for name, value in values
            for check in (is_number(name, "2h", value), Check(at="2h", expr=f"count({name})", value=1))
        ),
    )  # fmt: skip
    work = {**constant(r.weight("1h"), WORKFLOW, 540), **constant(r.effective("1h"), WORKFLOW, 324)}
    values = (
        (s.count(s.VIOLATING, "1h"), 60),
        (s.ratio(s.VIOLATING, "1h"), 0.2),
        (s.lower(s.VIOLATING, "1h"), _lower(0.2, 324)),
    )
    yield Scenario(
        name="the share that departs from its scenario", under=tuple(name for name, _ in values),
        given={**work, **on_both_pods("sidejudge_verdicts_violating_total", WORKFLOW, [1] * 120),
               **on_both_pods("sidejudge_verdict_violating_weight_total", WORKFLOW, [1.8] * 120)},
        checks=tuple(
            check
            for name, value in values
            for check in (is_number(name, "2h", value), Check(at="2h", expr=f"count({name})", value=1))
        ),
    )  # fmt: skip
    incomplete = "sidejudge_verdicts_incomplete_total"
    values = ((s.count(s.VERDICTS, "1h"), 360), (s.count(s.JUDGE_FAILED, "1h"), 60),
              (s.ratio(s.JUDGE_FAILED, "1h"), 1 / 6), (s.lower(s.JUDGE_FAILED, "1h"), _lower(1 / 6, 360)))  # fmt: skip
    yield Scenario(
        name="the share that the judge failed at, of all verdicts of a service", under=tuple(name for name, _ in values),
        given={
            **on_both_pods("sidejudge_verdicts_total", {**PLACE, "selection": "random"}, [2] * 120),
            **on_both_pods("sidejudge_verdicts_total", {**PLACE, "environment": "dev", "selection": "random"}, [1] * 120),
            **on_both_pods("sidejudge_verdicts_total", {**PLACE, "selection": "forced"}, [1] * 120),
            **on_both_pods(incomplete, {**SERVICE, "reason": "error"}, [1] * 120),
            **on_both_pods(incomplete, {**SERVICE, "reason": "unavailable"}, [0.5] * 120),
            **on_both_pods(incomplete, {**SERVICE, "reason": "not_applicable"}, [0.5] * 120),
        },
        checks=tuple(
            check
            for name, value in values
            for check in (is_number(name, "2h", value), Check(at="2h", expr=f"count({name})", value=1))
        ),
    )  # fmt: skip
    for alert, share, labels, samples, limit in (
        ("SidejudgeBlockerRate", s.BLOCKED, METRIC, (r.effective("1h"), PLACE), "blocker_rate"),
        ("SidejudgeWorkflowViolationRate", s.VIOLATING, WORKFLOW, (r.effective("1h"), WORKFLOW), "workflow_violation_rate"),
        ("SidejudgeJudgeFailureRate", s.JUDGE_FAILED, SERVICE, (s.count(s.VERDICTS, "1h"), SERVICE), "judge_failure_rate"),
    ):  # fmt: skip
        for lower, count, n, is_raised in (
            (0.06, 3, 30, True),
            (0.04, 3, 30, False),
            (0.06, 2.9, 30, False),
            (0.06, 3, 29, False),
        ):
            told = fires(alert, "10m", severity="warning") if is_raised else silent(alert, "10m")
            yield Scenario(
                name=f"{alert} at {lower} with {count} of {n}", under=(alert,),
                given={**_limit(limit, 0.05), **constant(s.lower(share, "1h"), labels, lower),
                       **constant(s.count(share, "1h"), labels, count), **constant(*samples, n)},
                checks=(silent(alert, "9m"), told),
            )  # fmt: skip
        yield Scenario(
            name=f"{alert} outlasts its breach by a quarter of an hour", under=(alert,),
            given={**_limit(limit, 0.05), **points(s.lower(share, "1h"), labels, [0.06] * 20 + [0.01] * 40),
                   **constant(s.count(share, "1h"), labels, 9), **constant(*samples, 90)},
            checks=(fires(alert, "33m"), silent(alert, "35m")),
        )  # fmt: skip


def _limit(id_: str, value: float) -> dict[str, str]:
    labels = {**SITE, "alert": id_}
    return {**constant("sidejudge_alert_limit", {**labels, **target("a")}, value),
            **constant("sidejudge_alert_limit", {**labels, **target("b")}, value * 0.1)}  # fmt: skip


def _from_processes() -> Iterator[Scenario]:
    change = "sidejudge_change_timestamp_seconds"
    alert = "SidejudgePassRateChange"
    yield Scenario(
        name="the early warning is there as soon as one process has it, with the earliest time", under=(alert,),
        given={**points(change, {**PLACE, **target("a")}, [None] * 5 + [240] * 5 + [None] * 10),
               **points(change, {**PLACE, **target("b")}, [None] * 7 + [300] * 3 + [None] * 10)},
        checks=(silent(alert, "4m"), fires(alert, "5m", severity="info"), fires(alert, "9m")),
    )  # fmt: skip
    for id_, alert, keep in (
        ("metric_mean_low", "SidejudgeMetricMeanLow", 15),
        ("judge_agreement_low", "SidejudgeJudgeAgreementLow", 0),
    ):
        labels = {**SITE, "alert": id_, "severity": "warning"}
        told = {
            **points("sidejudge_alerts", {**labels, "stage": "firing", **target("a")}, [0] * 5 + [2] * 5 + [0] * 30),
            **points("sidejudge_alerts", {**labels, "stage": "firing", **target("b")}, [0] * 5 + [1] * 5 + [0] * 30),
            **constant("sidejudge_alerts", {**labels, "stage": "pending", **target("b")}, 0),
            **constant("sidejudge_alerts", {**labels, "severity": "info", "stage": "firing", **target("b")}, 0),
            **constant("sidejudge_alerts", {**SITE, "alert": "other", "stage": "firing", **target("b")}, 9),
        }
        yield Scenario(
            name=f"{alert} is raised from what processes say", under=(alert,), given=told,
            checks=(silent(alert, "4m"), fires(alert, "5m", severity="warning"), fires(alert, f"{9 + max(0, keep - 1)}m"),
                    silent(alert, f"{10 + keep}m")),
        )  # fmt: skip
    breaker, alert = "sidejudge_judge_breaker_state", "SidejudgeJudgeUnreachable"

    def judges(**open_since: int) -> dict[str, str]:
        return {
            key: value
            for model in ("m1", "m2")
            for pod in ("a", "b")
            for state in ("open", "closed")
            for key, value in points(
                breaker, {**SITE, "model": model, "state": state, **target(pod)},
                [float((minute >= open_since.get(model + pod, 99) and minute < 20) == (state == "open")) for minute in range(40)],
            ).items()
        }  # fmt: skip

    yield Scenario(
        name="no judge can be asked by one process", under=(alert,), given=judges(m1a=2, m2a=3),
        checks=(silent(alert, "7m"), fires(alert, "8m", severity="warning"), fires(alert, "19m"), silent(alert, "21m")),
    )  # fmt: skip
    yield Scenario(
        name="no judge can be asked by any process", under=(alert,), given=judges(m1a=2, m2a=3, m1b=2, m2b=3),
        checks=(fires(alert, "9m"),),
    )  # fmt: skip
    yield Scenario(
        name="one of two judges can be asked", under=(alert,), given=judges(m1a=2, m1b=2, m2b=99),
        checks=(silent(alert, "15m"),),
    )  # fmt: skip
    yield Scenario(
        name="the alert about the judge outlasts its outage by a minute", under=(alert,), given=judges(m1b=2, m2b=3),
        checks=(fires(alert, "20m"), silent(alert, "21m")),
    )  # fmt: skip


def _limits() -> Iterator[Scenario]:
    hour = {**SITE, "period": "hour"}
    alert = "SidejudgeJudgeBudget"
    for spent, other, told in (
        (9.1, 1, fires(alert, "5m", severity="warning")), (9.1, 9.2, fires(alert, "5m")), (8.9, 1, silent(alert, "5m")),
    ):  # fmt: skip
        yield Scenario(
            name=f"{spent} and {other} of a budget of 10", under=(alert,),
            given={**_limit("judge_budget", 0.9),
                   **constant("sidejudge_judge_budget_spent_usd", {**hour, **target("a")}, spent),
                   **constant("sidejudge_judge_budget_limit_usd", {**hour, **target("a")}, 10),
                   **constant("sidejudge_judge_budget_spent_usd", {**hour, **target("b")}, other),
                   **constant("sidejudge_judge_budget_limit_usd", {**hour, **target("b")}, 10)},
            checks=(told,),
        )  # fmt: skip
    alert = "SidejudgeSpoolLarge"
    for size, other, told in (
        (101, 1, fires(alert, "5m", severity="warning")), (101, 102, fires(alert, "5m")), (99, 1, silent(alert, "5m")),
    ):  # fmt: skip
        yield Scenario(
            name=f"stores of {size} and {other} bytes of 100", under=(alert,),
            given={**_limit("spool_large", 100), **constant("sidejudge_spool_bytes", {**SITE, **target("a")}, size),
                   **constant("sidejudge_spool_bytes", {**SITE, **target("b")}, other)},
            checks=(silent(alert, "4m"), told),
        )  # fmt: skip
    alert, lag = "SidejudgeEvaluationLag", "sidejudge_evaluation_lag_seconds"

    def lags(late: float, prompt: float, minutes: int = 60, until: int = 60, *, after: bool = False) -> dict[str, str]:
        found: dict[str, str] = {}
        # One service is prompt and large, the other has all that is late.
        for service, own_prompt, own_late in (("bank", prompt * 0.9, 0.0), ("shop", prompt * 0.1, late)):
            for le, growth in (("60", own_prompt), ("300", own_prompt), ("600", own_prompt + own_late),
                               ("+Inf", own_prompt + own_late), (None, own_prompt + own_late)):  # fmt: skip
                labels = {**SITE, "service": service, **({"le": le} if le else {})}
                grown = [growth if n < until else (9 * (own_late == 0) if after else 0) for n in range(minutes)]
                found |= on_both_pods(f"{lag}_{'bucket' if le else 'count'}", labels, grown)
        return found

    yield Scenario(
        name="six of a hundred verdicts come later than the limit", under=(alert,),
        given={**_limit("evaluation_lag", 300), **lags(0.6, 9.4)},
        checks=(silent(alert, "10m"), fires(alert, "11m", severity="warning")),
    )  # fmt: skip
    yield Scenario(
        name="four of a hundred verdicts come later than the limit", under=(alert,),
        given={**_limit("evaluation_lag", 300), **lags(0.4, 9.6)}, checks=(silent(alert, "30m"),),
    )  # fmt: skip
    for count, told in ((5.2, fires(alert, "50m")), (4.8, silent(alert, "50m"))):
        yield Scenario(
            name=f"{count} late verdicts in ten minutes", under=(alert,),
            given={**_limit("evaluation_lag", 300), **lags(count / 10, 0)}, checks=(told,),
        )  # fmt: skip
    yield Scenario(
        name="verdicts are in time again", under=(alert,), given={**_limit("evaluation_lag", 300), **lags(1, 0, 90, 20)},
        checks=(fires(alert, "39m"), silent(alert, "41m")),
    )  # fmt: skip
    yield Scenario(
        name="late verdicts are followed by many that are in time", under=(alert,),
        given={**_limit("evaluation_lag", 300), **lags(1, 0, 90, 20, after=True)},
        checks=(fires(alert, "39m"), silent(alert, "45m")),
    )  # fmt: skip


def _day() -> Iterator[Scenario]:
    alert = "SidejudgePassRateSustained"
    for upper, failures, is_raised in ((0.84, 3, True), (0.86, 3, False), (0.84, 2.9, False)):
        told = fires(alert, "60m", severity="warning") if is_raised else silent(alert, "60m")
        yield Scenario(
            name=f"a day's upper bound of {upper} with {failures} failures", under=(alert,),
            given={**THRESHOLDS, **constant(r.upper("1d", 99), PLACE, upper), **constant(r.failures("1d"), PLACE, failures)},
            checks=(silent(alert, "58m"), told),
        )  # fmt: skip
    yield Scenario(
        name="the alert of the day lasts for an hour", under=(alert,),
        given={**THRESHOLDS, **points(r.upper("1d", 99), PLACE, [0.8] * 70 + [0.9] * 100),
               **constant(r.failures("1d"), PLACE, 9)},
        checks=(fires(alert, "128m"), silent(alert, "130m")),
    )  # fmt: skip


def _burning() -> Iterator[Scenario]:
    alert = "SidejudgeErrorBudgetBurn"
    tight, loose = (
        {**constant(r.THRESHOLD, {**RUBRIC, "level": "warning"}, warning),
         **constant(r.THRESHOLD, {**RUBRIC, "level": "critical"}, warning / 2)}
        for warning in (0.99, 0.02)
    )  # fmt: skip
    for long, short, factor, least, wait, severity in (
        ("1h", "5m", 14.4, 5, 2, "critical"), ("6h", "30m", 6, 10, 15, "critical"), ("3d", "6h", 1, 20, 180, "warning"),
    ):  # fmt: skip
        limit, unit = factor * 0.01, 10 if wait >= 60 else 1

        def burn(
            name: str, thresholds: Mapping[str, str], over: float, lately: float, failures: float, fired: bool
        ) -> Scenario:
            at = f"{wait}m"
            told = fires(alert, at, long=long, severity=severity) if fired else silent(alert, at, long=long)
            return Scenario(
                name=f"{name} over {long}", under=(alert,),
                given={**thresholds, **constant(r.failed_ratio(long), PLACE, over),
                       **constant(r.failed_ratio(short), PLACE, lately), **constant(r.failures(long), PLACE, failures)},
                checks=(silent(alert, f"{wait - unit}m", long=long), told), step=f"{unit}m",
            )  # fmt: skip

        yield burn("a budget burns", tight, limit * 1.05, limit * 1.05, least, True)
        yield burn("a budget burns not quite fast enough", tight, limit * 0.95, limit * 1.05, least, False)
        yield burn("a budget burns no more", tight, limit * 1.05, limit * 0.95, least, False)
        yield burn("a budget burns by few failures", tight, limit * 1.05, limit * 1.05, least - 0.1, False)
        yield burn("a threshold that no burn could reach is capped", loose, 0.91, 0.91, least, True)
        yield burn("a share below the cap does not burn", loose, 0.89, 0.91, least, False)
        yield burn("a share lately below the cap does not burn", loose, 0.91, 0.89, least, False)
        yield Scenario(
            name=f"a budget that burns over {long} is told for a quarter of an hour more", under=(alert,),
            given={**tight, **points(r.failed_ratio(long), PLACE, [0.5] * (wait // unit + (5 if unit == 1 else 3)) + [0.0] * 60),
                   **constant(r.failed_ratio(short), PLACE, 0.5), **constant(r.failures(long), PLACE, 99)},
            checks=(fires(alert, f"{wait + (18 if unit == 1 else 30)}m", long=long),
                    silent(alert, f"{wait + (20 if unit == 1 else 50)}m", long=long)),
            step=f"{unit}m",
        )  # fmt: skip


def _unknown() -> Iterator[Scenario]:
    alert = "SidejudgePassRateUnknown"
    for last, is_raised in ((2, True), (1, True), (0.9, False), (0, False)):
        known = [float(last)] * 10 + [None] * 200
        told = fires(alert, "25m", severity="info") if is_raised else silent(alert, "25m")
        yield Scenario(
            name=f"silence after status {last}", under=(alert,),
            given={**points(r.KNOWN, PLACE, known), **points(r.STATUS, PLACE, [float(last)] * 10 + [-1] * 200)},
            checks=(silent(alert, "19m"), told),
        )  # fmt: skip
    yield Scenario(
        name="a status that is known is not unknown", under=(alert,),
        given={**constant(r.KNOWN, PLACE, 2), **constant(r.STATUS, PLACE, 2)}, checks=(silent(alert, "60m"),),
    )  # fmt: skip
    yield Scenario(
        name="healthy is known too", under=(alert,),
        given={**points(r.KNOWN, PLACE, [2.0] * 5 + [None] * 60), **constant(r.STATUS, PLACE, 0)},
        checks=(silent(alert, "40m"),),
    )  # fmt: skip
    yield Scenario(
        name="after a day it is forgotten", under=(alert,), step="10m",
        given={**points(r.KNOWN, PLACE, [2.0] * 3 + [None] * 200), **points(r.STATUS, PLACE, [2.0] * 3 + [-1] * 200)},
        checks=(fires(alert, "20h"), silent(alert, "26h")),
    )  # fmt: skip


def _health() -> Iterator[Scenario]:
    kept, verdicts = "sidejudge_traces_kept_total", "sidejudge_verdicts_total"
    shop = {**SITE, "service": "shop"}
    alert = "SidejudgeMonitorSilent"

    def silence(name: str, drawn: float, judged: list[float], *checks: Check) -> Scenario:
        return Scenario(
            name=name, under=(alert,),
            given={**on_both_pods(kept, {**shop, "selection": "random"}, [drawn / 60] * 120),
                   **on_both_pods(kept, {**shop, "selection": "forced"}, [drawn / 60] * 120),
                   **on_both_pods(verdicts, {**PLACE, "selection": "random"}, judged),
                   **on_both_pods(verdicts, {**PLACE, "selection": "forced"}, [0] * len(judged)),
                   **on_both_pods(verdicts, {**PLACE, "environment": "dev", "selection": "random"}, [0] * len(judged)),
                   **on_both_pods(verdicts, {**PLACE, "rubric": "entity", "selection": "random"}, [0] * len(judged))},
            checks=checks,
        )  # fmt: skip

    yield silence(
        "twenty drawn and none judged", 21, [0] * 120, silent(alert, "43m"), fires(alert, "46m", severity="warning")
    )
    yield silence("nineteen drawn and none judged", 19, [0] * 120, silent(alert, "60m"))
    yield silence("one is judged", 21, [0.05] * 120, silent(alert, "60m"))
    yield silence("all is judged again", 21, [0] * 60 + [1] * 60, fires(alert, "74m"), silent(alert, "76m"))
    yield silence("judging ended half an hour ago", 21, [1] * 20 + [0] * 100, silent(alert, "63m"), fires(alert, "66m"))

    traces, alert = "sidejudge_traces_total", "SidejudgeTracesLost"

    def losses(name: str, lost: list[float], drawn: float, *checks: Check) -> Scenario:
        half = [each / 2 for each in lost]
        return Scenario(
            name=name, under=(alert,),
            given={**on_both_pods(traces, {**shop, "reason": "shed"}, half),
                   **on_both_pods(traces, {**shop, "reason": "error"}, half),
                   **on_both_pods(traces, {**shop, "reason": "scored"}, [0.1] * len(lost)),
                   **on_both_pods(kept, {**shop, "selection": "random"}, [drawn * 0.75] * len(lost)),
                   **on_both_pods(kept, {**shop, "selection": "forced"}, [drawn * 0.25] * len(lost))},
            checks=checks,
        )  # fmt: skip

    yield losses(
        "six of a hundred are lost", [0.6] * 60, 10, silent(alert, "19m"), fires(alert, "25m", severity="warning")
    )
    yield losses("fewer than five of a hundred are lost", [0.48] * 60, 10, silent(alert, "50m"))
    yield losses("a few are lost of few", [0.19] * 60, 1, silent(alert, "50m"))
    yield losses("just enough are lost of few", [0.21] * 60, 1, fires(alert, "50m"))
    yield losses("a loss of long ago is over", [1] * 40 + [0] * 60, 10, fires(alert, "62m"), silent(alert, "72m"))

    refused, alert = "sidejudge_requests_refused_total", "SidejudgeRequestsRefused"

    def refusals(name: str, each: list[float], *checks: Check) -> Scenario:
        return Scenario(
            name=name, under=(alert,), given=on_both_pods(refused, {**SITE, "code": "413"}, each), checks=checks
        )

    yield refusals("requests are refused", [0.36] * 60, silent(alert, "20m"), fires(alert, "25m", severity="warning"))
    yield refusals("hardly any request is refused", [0.32] * 60, silent(alert, "50m"))
    yield refusals("refusals are over", [1] * 30 + [0] * 60, fires(alert, "52m"), silent(alert, "58m"))

    alert = "SidejudgeExportsFailing"

    def exports(name: str, failed: list[float], *checks: Check, handed: list[float] | None = None) -> Scenario:
        labels = {**SITE, "destination": "jsonl"}
        return Scenario(
            name=name, under=(alert,),
            given={**on_both_pods("sidejudge_exports_failed_total", labels, failed),
                   **on_both_pods("sidejudge_exports_total", labels, handed or [10] * len(failed))},
            checks=checks,
        )  # fmt: skip

    yield exports(
        "six of a hundred are not accepted", [0.6] * 60, silent(alert, "10m"), fires(alert, "11m", severity="warning")
    )
    yield exports("fewer than five of a hundred are not accepted", [0.48] * 60, silent(alert, "50m"))
    yield exports("less is handed over than before", [0.6] * 60, fires(alert, "58m"), handed=[100] * 30 + [10] * 30)
    yield exports("all is accepted again", [10] * 30 + [0] * 60, fires(alert, "57m"), silent(alert, "62m"))

    info, alert = "sidejudge_build_info", "SidejudgeMonitorDown"
    a, b = {**SITE, **target("a")}, {**SITE, **target("b")}
    yield Scenario(
        name="a monitor no longer answers", under=(alert,),
        given={**points("up", a, [1] * 10 + [0] * 40), **points(info, a, [1] * 10 + [None] * 40),
               **constant("up", b, 1), **constant(info, b, 1),
               **constant("up", {**SITE, "instance": "other:1"}, 0)},
        checks=(silent(alert, "19m"), fires(alert, "21m", severity="warning"), Check(at="30m", expr=f'count(ALERTS{{alertname="{alert}"}})', value=1)),
    )  # fmt: skip
    yield Scenario(
        name="a monitor that never answered is known by its container", under=(alert,),
        given={**constant("up", {**a, "container": "sidejudge"}, 0), **constant("up", {**b, "container": "sidejudge"}, 1),
               **constant("up", {**SITE, "instance": "other:1"}, 0)},
        checks=(silent(alert, "9m"), fires(alert, "11m", instance="a:1"), Check(at="30m", expr=f'count(ALERTS{{alertname="{alert}"}})', value=1)),
    )  # fmt: skip
    yield Scenario(
        name="what was down for more than a day is forgotten", under=(alert,), step="10m",
        given={**points("up", a, [1] * 3 + [0] * 200), **points(info, a, [1] * 3 + [None] * 200)},
        checks=(fires(alert, "20h"), silent(alert, "26h")),
    )  # fmt: skip
    alert = "SidejudgeMonitorAbsent"
    yield Scenario(
        name="no monitor is scraped", under=(alert,), given=points(info, a, [1] * 10 + [None] * 40),
        checks=(silent(alert, "10m"), silent(alert, "28m"), fires(alert, "30m", severity="warning")),
    )  # fmt: skip
