"""Shares: blockers, violations and failures of the judge, from counters to alerts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sidejudge.dashboards.rules import recordings as r
from sidejudge.dashboards.rules import shares as s
from tests.dashboards.rules.scenario import (
    METRIC,
    PLACE,
    SERVICE,
    WORKFLOW,
    Check,
    Scenario,
    constant,
    fires,
    is_number,
    limit_of,
    lower_bound,
    on_both_pods,
    points,
    silent,
)


def stories() -> Iterator[Scenario]:
    yield from _shares()


def _shares() -> Iterator[Scenario]:
    yield _weighed("the share that a metric blocks", s.BLOCKED, "blocked", METRIC, PLACE)
    yield _weighed("the share that departs from its scenario", s.VIOLATING, "violating", WORKFLOW, WORKFLOW)
    incomplete = "sidejudge_verdicts_incomplete_total"
    values = (
        (s.count(s.VERDICTS, "1h"), 360),
        (s.count(s.JUDGE_FAILED, "1h"), 60),
        (s.ratio(s.JUDGE_FAILED, "1h"), 1 / 6),
        (s.lower(s.JUDGE_FAILED, "1h"), lower_bound(1 / 6, 360)),
    )
    yield Scenario(
        name="the share that the judge failed at, of all verdicts of a service",
        under=tuple(name for name, _ in values),
        given={
            **on_both_pods("sidejudge_verdicts_total", {**PLACE, "selection": "random"}, [2] * 120),
            **on_both_pods(
                "sidejudge_verdicts_total", {**PLACE, "environment": "dev", "selection": "random"}, [1] * 120
            ),
            **on_both_pods("sidejudge_verdicts_total", {**PLACE, "selection": "forced"}, [1] * 120),
            **on_both_pods(incomplete, {**SERVICE, "reason": "error"}, [1] * 120),
            **on_both_pods(incomplete, {**SERVICE, "reason": "unavailable"}, [0.5] * 120),
            **on_both_pods(incomplete, {**SERVICE, "reason": "not_applicable"}, [0.5] * 120),
        },
        checks=_each_once(values),
    )
    none_decided = (
        (s.count(s.VERDICTS, "1h"), 90),
        (s.ratio(s.JUDGE_FAILED, "1h"), 2 / 3),
        (s.lower(s.JUDGE_FAILED, "1h"), lower_bound(2 / 3, 90)),
    )
    yield Scenario(
        name="the share that the judge failed at, where no verdict ever passed or failed",
        under=tuple(name for name, _ in none_decided),
        given={
            **on_both_pods(incomplete, {**SERVICE, "reason": "error"}, [1] * 120),
            **on_both_pods(incomplete, {**SERVICE, "reason": "unavailable"}, [0.5] * 120),
        },
        checks=_each_once(none_decided),
    )
    for alert, share, labels, samples, limit in (
        ("SidejudgeBlockerRate", s.BLOCKED, METRIC, (r.effective("1h"), PLACE), "blocker_rate"),
        (
            "SidejudgeWorkflowViolationRate",
            s.VIOLATING,
            WORKFLOW,
            (r.effective("1h"), WORKFLOW),
            "workflow_violation_rate",
        ),
        (
            "SidejudgeJudgeFailureRate",
            s.JUDGE_FAILED,
            SERVICE,
            (s.count(s.VERDICTS, "1h"), SERVICE),
            "judge_failure_rate",
        ),
    ):
        for lower, count, n, is_raised in (
            (0.06, 3, 30, True),
            (0.04, 3, 30, False),
            (0.06, 2.9, 30, False),
            (0.06, 3, 29, False),
        ):
            reported = fires(alert, "10m", severity="warning") if is_raised else silent(alert, "10m")
            yield Scenario(
                name=f"{alert} at {lower} with {count} of {n}",
                under=(alert,),
                given={
                    **limit_of(limit, 0.05),
                    **constant(s.lower(share, "1h"), labels, lower),
                    **constant(s.count(share, "1h"), labels, count),
                    **constant(*samples, n),
                },
                checks=(silent(alert, "9m"), reported),
            )
        yield Scenario(
            name=f"{alert} outlasts its breach by a quarter of an hour",
            under=(alert,),
            given={
                **limit_of(limit, 0.05),
                **points(s.lower(share, "1h"), labels, [0.06] * 20 + [0.01] * 40),
                **constant(s.count(share, "1h"), labels, 9),
                **constant(*samples, 90),
            },
            checks=(fires(alert, "33m"), silent(alert, "35m")),
        )


def _weighed(name: str, share: str, word: str, labels: dict[str, str], of: dict[str, str]) -> Scenario:
    """A fifth of the verdicts by weight: 60 in number, of 324 effective ones."""
    values = ((s.count(share, "1h"), 60), (s.ratio(share, "1h"), 0.2), (s.lower(share, "1h"), lower_bound(0.2, 324)))
    return Scenario(
        name=name,
        under=tuple(name for name, _ in values),
        given={
            **constant(r.weight("1h"), of, 540),
            **constant(r.effective("1h"), of, 324),
            **on_both_pods(f"sidejudge_verdicts_{word}_total", labels, [1] * 120),
            **on_both_pods(f"sidejudge_verdict_{word}_weight_total", labels, [1.8] * 120),
        },
        checks=_each_once(values),
    )


def _each_once(values: Iterable[tuple[str, float]]) -> tuple[Check, ...]:
    return tuple(
        check
        for name, value in values
        for check in (is_number(name, "2h", value), Check(at="2h", expr=f"count({name})", value=1))
    )
