"""What a monitor of a fleet shares beside its statuses: each part is registered with the rounds of the fleet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sidejudge.integrations.store.judge_cache import JudgeCacheTable
from sidejudge.monitor.config import Config
from sidejudge.monitor.evaluate.build import EvaluationBackends
from sidejudge.monitor.fleet.fleet import Fleet

if TYPE_CHECKING:
    from sidejudge.monitor.evaluate.judge.fleet_answers import SharedAnswers


def share_judging(fleet: Fleet | None, backends: EvaluationBackends, clock_ns: Callable[[], int]) -> None:
    """Have judges keep the budget of the whole fleet, where there are both."""
    if fleet is None or backends.judge is None or not backends.judge.budget.limited:
        return
    from sidejudge.monitor.evaluate.judge.fleet_budget import FleetBudget  # noqa: PLC0415  # only where both are configured

    FleetBudget(backends.judge.budget, fleet, lambda: clock_ns() / 1e9)


def share_upkeep(fleet: Fleet | None, config: Config) -> None:
    """Have one monitor of the fleet delete what is too old."""
    if fleet is None or config.fleet is None:
        return
    from sidejudge.monitor.fleet.upkeep import Upkeep  # noqa: PLC0415  # only where it is configured

    archive, alerts = config.fleet.archive, config.alerts
    longest = max(each.seconds for each in (alerts.window, alerts.longest_window) if each is not None)
    Upkeep(fleet, results_s=archive.keep.seconds if archive is not None else 0.0, windows_s=longest + 3_600.0)


def shared_answers(
    fleet: Fleet | None, config: Config, own: JudgeCacheTable, clock_ns: Callable[[], int]
) -> JudgeCacheTable | SharedAnswers:
    """Where judged answers are kept: in the monitor's own store, and shared where there is a fleet and a judge."""
    if fleet is None or config.evaluators.judge is None:
        return own
    from sidejudge.monitor.evaluate.judge.fleet_answers import SharedAnswers  # noqa: PLC0415  # only where both are configured

    return SharedAnswers(own, fleet, clock_ns, most=config.evaluators.judge.cache_entries)
