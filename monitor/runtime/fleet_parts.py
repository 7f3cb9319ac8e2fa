"""What a monitor of a fleet shares beside its statuses: each part is registered with the rounds of the fleet."""

from __future__ import annotations

from collections.abc import Callable

from monitor.evaluate.build import EvaluationBackends
from monitor.fleet.fleet import Fleet


def share_judging(fleet: Fleet | None, backends: EvaluationBackends, clock_ns: Callable[[], int]) -> None:
    """Have judges keep the budget of the whole fleet, where there are both."""
    if fleet is None or backends.judge is None or not backends.judge.budget.limited:
        return
    from monitor.evaluate.judge.fleet_budget import FleetBudget  # noqa: PLC0415  # only where both are configured

    FleetBudget(backends.judge.budget, fleet, lambda: clock_ns() / 1e9)
