"""Versions: the pass ratio of each, of the rest, and the bounds of their difference."""

from __future__ import annotations

import math
from collections.abc import Iterator

from sidejudge.dashboards.rules import by_version as v
from sidejudge.dashboards.rules.by_version import by_version
from sidejudge.scoring.statistics.interval import Z_95_TWO_SIDED, wilson
from tests.dashboards.rules.scenario import PLACE, Check, Scenario, is_number, on_both_pods, points, target

_HOURLY = {"1": (6.0, 1.0, 9.0), "2": (3.0, 1.2, 5.0), "unknown": (1.0, 0.1, 1.0)}
"""Weight, failed weight and squared weight of the verdicts of a version in an hour."""
_STEP_H, _STEPS, _AT = 4, 15, "56h"
"""Twice the window, in steps that are as long as they can be: each rule is evaluated at each of them."""
_EFFECT = 0.75 * 2 + 0.25 * 1
"""Pod a has three quarters of all and a design effect of 2; that of pod b is known no more."""
_FAMILIES = ("weight", "failed_weight", "weight_squared")
_RULES = tuple(rule.record for rule in by_version())


def stories() -> Iterator[Scenario]:
    yield _apart()
    yield Scenario(
        name="a version that has all the traffic is compared with nothing, nor is one without traffic",
        under=(v.PASS_RATIO, v.DIFFERENCE),
        step=f"{_STEP_H}h",
        given={**_counters({"1": _HOURLY["1"]}), **_counters({"2": (0.0, 0.0, 0.0)})},
        checks=(
            is_number(v.PASS_RATIO, _AT, 5 / 6, version="1"),
            is_number(v.REST_PASS_RATIO, _AT, None, version="1"),
            is_number(v.PASS_RATIO, _AT, None, version="2"),
            is_number(v.DIFFERENCE, _AT, None),
        ),
    )


def _apart() -> Scenario:
    checks = [
        check
        for version in ("1", "2")
        for name, value in _expected(version).items()
        for check in (
            is_number(name, _AT, value, rubric="qa", version=version),
            Check(at=_AT, expr=f'count({name}{{rubric="qa",version="{version}"}})', value=1),
        )
    ]
    return Scenario(
        name="each version is compared with all other traffic of its service",
        under=_RULES,
        step=f"{_STEP_H}h",
        given={
            **_counters(_HOURLY),
            **points("sidejudge_design_effect", {**PLACE, **target("a")}, [2] * _STEPS),
            **points("sidejudge_design_effect", {**PLACE, **target("b")}, [4] * (12 // _STEP_H)),
            **_counters({"1": (90.0, 40.0, 99.0)}, rubric="other"),
        },
        checks=(*checks, is_number(v.DIFFERENCE, _AT, None, version="unknown")),
    )


def _counters(hourly: dict[str, tuple[float, float, float]], **place: str) -> dict[str, str]:
    return {
        series: values
        for version, amounts in hourly.items()
        for family, amount in zip(_FAMILIES, amounts, strict=True)
        for series, values in on_both_pods(
            f"sidejudge_version_verdict_{family}_total",
            {**PLACE, **place, "version": version},
            [amount * _STEP_H] * _STEPS,
        ).items()
    }


def _expected(version: str) -> dict[str, float]:
    """As in process: Kish's sample sizes, Wilson's bounds, and Newcombe's interval of the difference."""
    own, rest = _HOURLY[version], [each for name, each in _HOURLY.items() if name != version]
    share, n = _estimate(*own)
    other, m = _estimate(*(sum(amounts) for amounts in zip(*rest, strict=True)))
    ours, theirs = wilson(share * n, n, Z_95_TWO_SIDED), wilson(other * m, m, Z_95_TWO_SIDED)
    assert ours is not None
    assert theirs is not None
    return {
        v.PASS_RATIO: share,
        v.EFFECTIVE: n,
        v.REST_PASS_RATIO: other,
        v.REST_EFFECTIVE: m,
        v.DIFFERENCE: share - other,
        v.LOWER: share - other - math.hypot(share - ours.lower, theirs.upper - other),
        v.UPPER: share - other + math.hypot(ours.upper - share, other - theirs.lower),
    }


def _estimate(weight: float, failed: float, squared: float) -> tuple[float, float]:
    return 1 - failed / weight, (24 * weight) ** 2 / (24 * squared * _EFFECT)
