"""Limited metrics: kept shares from counters, and alerts where their bound is below the threshold."""

from __future__ import annotations

from collections.abc import Iterator

from sidejudge.dashboards.rules import limited as m
from tests.dashboards.rules.scenario import (
    PLACE,
    SITE,
    Scenario,
    constant,
    fires,
    is_number,
    on_both_pods,
    points,
    silent,
    target,
    upper_bound,
)

_METRIC = {**PLACE, "metric": "latency_p95"}
_NAME = "sidejudge_limited_metric"


def stories() -> Iterator[Scenario]:
    yield _shares()
    for level, other in (("critical", "warning"), ("warning", "critical")):
        for upper, n, fires_so in ((0.94, 30, True), (0.96, 30, False), (0.94, 29, False)):
            yield _alert(level, other, upper, n, is_raised=fires_so)


def _shares() -> Scenario:
    # 60 values of weight 2 and 60 of weight 4 an hour: 360 in all, 1200 squared. Of them 300 and 330 keep to a limit.
    share, n = 300 / 360, 360 * 360 / 1200
    values = ((m.effective("1h"), n, {}), (m.kept("1h"), share, {"level": "warning"}),
              (m.upper("1h"), upper_bound(share, n), {"level": "warning"}),
              (m.kept("1h"), 330 / 360, {"level": "critical"}))  # fmt: skip
    return Scenario(
        name="the share that keeps to the limit of a metric, and its bound",
        under=(m.effective("1h"), m.kept("1h"), m.upper("1h")),
        given={
            **on_both_pods(f"{_NAME}_weight_total", _METRIC, [6] * 120),
            **on_both_pods(f"{_NAME}_weight_squared_total", _METRIC, [20] * 120),
            **on_both_pods(f"{_NAME}_kept_weight_total", {**_METRIC, "level": "warning"}, [5] * 120),
            **on_both_pods(f"{_NAME}_kept_weight_total", {**_METRIC, "level": "critical"}, [5.5] * 120),
        },
        checks=tuple(is_number(name, "90m", value, **labels) for name, value, labels in values),
    )


def _alert(level: str, other: str, upper: float, n: float, *, is_raised: bool) -> Scenario:
    alert = f"SidejudgeMetric{level.capitalize()}"
    configured = f"{_NAME}_kept_threshold_ratio"
    labels = {**SITE, "rubric": "qa", "metric": "latency_p95", "level": level}
    return Scenario(
        name=f"{alert} where at most {upper} of {n} keep to the limit",
        under=(alert,),
        given={
            **points(m.upper("1h"), {**_METRIC, "level": level}, [0.99] * 5 + [upper] * 5 + [0.99] * 90),
            **points(m.upper("1h"), {**_METRIC, "level": other}, [0.5] * 100),
            **constant(m.effective("1h"), _METRIC, n),
            **constant(configured, {**labels, **target("a")}, 0.95),
            **constant(configured, {**labels, **target("b")}, 0.5),
            **constant(configured, {**labels, "level": other, **target("b")}, 0.0),
        },
        checks=(
            silent(alert, "4m"), fires(alert, "5m", severity=level), fires(alert, "35m"),
            *((silent(alert, "45m"),) if level == "warning" else (fires(alert, "45m"), silent(alert, "55m"))),
        ) if is_raised else (silent(alert, "5m"), silent(alert, "9m")),
    )  # fmt: skip
