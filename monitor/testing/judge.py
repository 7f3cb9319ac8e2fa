"""Judge: which rubrics a tested case is judged by, and what they say."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from integrations.cases import case_of
from integrations.jsonl import line
from monitor.batch.digest import case_digest
from monitor.config.match import task_of
from monitor.config.model import RouteConfig
from monitor.evaluator import Evaluator
from monitor.instant import written
from monitor.router import TASK_RUBRICS, Route, Router
from scoring.case import Case
from scoring.rubric import Rubric
from scoring.runs.summary import SEED_RUBRIC
from scoring.span import Json


class Judge:
    """Rubrics are those ``chosen``; else those of the first configured route that matches; else the task's.

    A test whose task names no rubric is judged by ``dimensions``, as the seed has it, and one with a scenario by
    ``workflow`` too. What a route excludes is judged likewise: a test in the set is there to be judged.
    """

    def __init__(
        self,
        rubrics: Mapping[str, Rubric],
        routes: Sequence[RouteConfig],
        scenarios: Mapping[str, dict[str, Json]],
        chosen: Sequence[str],
    ) -> None:
        self._rubrics = rubrics
        self._scenarios = scenarios
        self._chosen = tuple(dict.fromkeys(chosen))
        self._routed = Router(routes, scenarios) if routes else None
        self._by_task = Router((), scenarios)
        self._evaluator = Evaluator(rubrics)

    def verdicts(
        self, fields: Mapping[str, Json], standing: Sequence[Mapping[str, object]]
    ) -> Sequence[Mapping[str, object]]:
        """A verdict of each rubric, as the format page writes it; ``standing`` itself where that is what they say.

        ``fields`` are those of the case. A verdict stands while the case, its scenario and the
        rubric's version are what they were.
        """
        case = case_of(fields)
        route = self._route(case)
        named = self._scenarios.get(route.scenario_name) if route.scenario_name is not None else None
        digest = case_digest(line(fields), named)
        wanted = [(name, self._rubrics[name].version, digest) for name in route.rubrics]
        if wanted == [(said.get("rubric"), said.get("rubric_version"), said.get("case_digest")) for said in standing]:
            return standing
        case = replace(case, scenario=route.scenario) if route.scenario is not None else case
        now = written(time.time_ns())
        reached = self._evaluator.verdicts(case, route.rubrics, created_at=now)
        return [{**verdict.to_json(), "case_digest": digest} for verdict in reached]

    def _route(self, case: Case) -> Route:
        router = self._routed or self._by_task
        if self._chosen:
            return router.chosen(self._chosen, case)
        if self._routed is not None and isinstance(found := self._routed.route(case), Route):
            return found
        if task_of(case) not in TASK_RUBRICS:
            case = replace(case, task=SEED_RUBRIC)
        by_task = self._by_task.route(case)
        return by_task if isinstance(by_task, Route) else self._by_task.to((SEED_RUBRIC,), "default", case)
