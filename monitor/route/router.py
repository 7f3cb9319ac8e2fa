"""Router: which rubrics judge a case, against which scenario. First match wins; our own traces are never judged."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.evaluators import Priority
from sidejudge.monitor.config.match import task_of
from sidejudge.monitor.config.model import RouteSection
from sidejudge.monitor.config.rubric_section import BudgetSection
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.metrics.run_steps import acts
from sidejudge.scoring.rubrics import SCENARIO_RUBRICS
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.scenario.scenario import Scenario
from sidejudge.scoring.trace.loop_guard import evaluator_traffic
from sidejudge.scoring.trace.record import record
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.documents import UnmetRoute

log = logging.getLogger("sidejudge.router")

TASK_RUBRICS: Mapping[str, str] = {
    name: name
    for name in ("qa", "entity", "text", "translation", "answer", "workflow", "agent", "quality", "dimensions")
}
"""Without configured routes the task names the rubric."""

_NO_BUDGET: Mapping[str, float] = {}
_EXPLAINED = 10
"""Most routes whose failed condition is recorded."""


@record(frozen=True, slots=True, kw_only=True)
class Route:
    """The rubrics and the scenario of a case. ``scenario`` is ``None`` when the case names none that is known.

    It is read already where the configuration has it, and JSON where the case brings its own. ``name`` is the route's,
    as a trace's details show it; ``scenario_name`` None when the case brings its own inline. ``priority`` decides which
    traces are judged first when the judge's budget does not suffice for all. ``budget`` limits the run's effort, by
    measure.
    """

    rubrics: tuple[str, ...]
    scenario: Scenario | dict[str, Json] | None
    name: str
    scenario_name: str | None = None
    priority: Priority = "normal"
    budget: Mapping[str, float] = field(default_factory=dict)

    def applied_to(self, case: Case) -> Case:
        """The case with its scenario and its budget, for judging without a monitor, which draws none."""
        return case.drawn(case.sampling_probability, self.scenario or case.scenario, budget=self.budget)


@dataclass(frozen=True, slots=True)
class Excluded:
    """A case that must not be judged, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class NotARun:
    """A case in which no model, agent or tool took part: a health check, plain HTTP. Nothing here can judge it."""


class Router:
    """Chooses by the configured routes; without any, by the case's task.

    A scenario that the case brings itself goes before the route's.
    """

    def __init__(
        self,
        routes: Sequence[RouteSection],
        scenarios: Mapping[str, dict[str, Json]],
        *,
        elsewhere: frozenset[str] = frozenset(),
        default: tuple[str, ...] = (),
        budgets: Sequence[BudgetSection] = (),
    ) -> None:
        """Take the routes.

        Args:
            routes: The configured routes, the first that matches wins.
            scenarios: The configured scenarios by name.
            elsewhere: Rubrics that no task chooses here, for they judge something else than these cases.
            default: Rubrics of the traces that no route matches and no task names. They are for runs: a trace without
                a span of a model, an agent or a tool is not one.
            budgets: Limits on runs' effort; the first that matches a run applies.
        """
        self._routes = tuple(routes)
        self._default = default
        self._budgets = tuple(budgets)
        self._elsewhere = elsewhere
        self._scenarios = {name: parse_scenario(name, data) for name, data in scenarios.items()}

    def take_routes_of(self, other: Router) -> None:
        """Take over another router's routes, scenarios and budgets: the configuration was reloaded."""
        self.__dict__ |= other.__dict__

    def route(self, case: Case) -> Route | Excluded | NotARun | None:
        """The route of a case; ``None`` when no rubric is meant for it."""
        evaluator = evaluator_traffic(case.service, case.environment, tags=case.tags)
        if evaluator is not None:
            return Excluded(evaluator)
        if not self._routes:
            return self._by_task(case) or self._by_default(case)
        for index, route in enumerate(self._routes):
            if route.match.matches(case):
                name = route.name or f"routes[{index}]"
                if not route.rubrics:
                    return Excluded(f"{name} excludes it")
                return self.to(route.rubrics, name, case, route.scenario, route.priority)
        return self._by_default(case)

    def budget(self, case: Case) -> Mapping[str, float]:
        """The limits on a run's effort, by measure; empty where no budget is configured for it."""
        return next((each.limits for each in self._budgets if each.match.matches(case)), _NO_BUDGET)

    def unmatched(self, case: Case) -> list[UnmetRoute]:
        """For each route, up to a number, the condition of it that a case does not meet."""
        return [
            {"route": route.name or f"routes[{index}]", "unmet": route.match.unmet(case)}
            for index, route in enumerate(self._routes[:_EXPLAINED])
        ]

    def _by_default(self, case: Case) -> Route | NotARun | None:
        if not self._default:
            return None
        return self.to(self._default, "default", case) if acts(case) else NotARun()

    def scenario(self, case: Case, default: str | None = None) -> Scenario | dict[str, Json] | None:
        """The case's own scenario, inline or by name, else the one named ``default``; ``None`` when unknown."""
        if isinstance(case.scenario, dict):
            return case.scenario
        named = case.scenario if isinstance(case.scenario, str) else default
        return self._scenarios.get(named) if named is not None else None

    def to(
        self, rubrics: tuple[str, ...], name: str, case: Case, default: str | None = None, priority: Priority = "normal"
    ) -> Route:
        """A route to these rubrics, with the case's scenario, else with the one named ``default``."""
        scenario = self.scenario(case, default)
        named = case.scenario if isinstance(case.scenario, str) else default
        known = None if scenario is None or isinstance(case.scenario, dict) else named
        return Route(
            rubrics=rubrics,
            scenario=scenario,
            name=name,
            scenario_name=known,
            priority=priority,
            budget=self.budget(case),
        )

    def chosen(self, rubrics: Sequence[str], case: Case) -> Route:
        """A route to rubrics that somebody named, with the scenario that the case would be held to anyway."""
        found = self.to(tuple(rubrics), "chosen", case)
        if found.scenario is None and isinstance(other := self.route(case), Route):
            return replace(found, scenario=other.scenario, scenario_name=other.scenario_name)
        return found

    def _by_task(self, case: Case) -> Route | None:
        task = task_of(case)
        rubric = TASK_RUBRICS.get(task) if task is not None else None
        rubrics: tuple[str, ...] = () if rubric is None else (rubric,)
        # Whoever sends a scenario wants it checked; for an unknown one the verdict has the reason.
        if isinstance(case.scenario, str | dict):
            rubrics = (*rubrics, *(name for name in SCENARIO_RUBRICS if name not in rubrics))
        rubrics = tuple(name for name in rubrics if name not in self._elsewhere)
        return self.to(rubrics, f"task {task}" if rubric else "scenario", case) if rubrics else None


def router_of(config: Config) -> Router:
    """The router of traces; sessions have their own, made from their own section."""
    return Router(
        config.routes,
        config.scenarios,
        elsewhere=config.session_rubrics,
        default=config.default_rubrics,
        budgets=config.budgets,
    )
