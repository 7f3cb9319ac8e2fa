"""Judge: an agent's reply is read as fields of a case; the rubrics that apply to the case give their verdicts."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sidejudge.integrations.cases.fields import case_of, field_errors
from sidejudge.integrations.jsonl import line
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.match import task_of
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.evaluate.build import BY_WORDS, EvaluationBackends
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.offline.score.chunks import reached
from sidejudge.monitor.offline.score.judged_with import JUDGED_WITH, judged_with, stated_settings
from sidejudge.monitor.offline.score.request import Waits, waits_of
from sidejudge.monitor.offline.score.resume import case_digest
from sidejudge.monitor.route.router import TASK_RUBRICS, Route, Router
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.runs.summary import SEED_RUBRIC
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict

MAX_DEPTH = 100
"""Levels of lists and objects."""
MAX_VALUES = 1_000_000


def not_plain(value: object) -> str | None:
    """Why a value is not JSON, as the end of a sentence; ``None`` if it is. Tuples count as lists."""
    waiting = [(value, 0)]
    seen = 0
    while waiting:
        found, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH or seen > MAX_VALUES:
            return f"is nested more than {MAX_DEPTH} levels deep" if depth > MAX_DEPTH else "holds too many values"
        if isinstance(found, dict) and all(isinstance(key, str) for key in found):
            waiting.extend((each, depth + 1) for each in found.values())
        elif isinstance(found, list | tuple):
            waiting.extend((each, depth + 1) for each in found)
        elif isinstance(found, float) and not math.isfinite(found):
            return f"holds the number {found}, which JSON does not have"
        elif found is not None and not isinstance(found, str | bool | int | float):
            return f"holds a {type(found).__name__}, which JSON does not have"
    return None


FIELDS = (
    "agents_called", "tools_used", "context", "input_tokens", "output_tokens", "cost_usd", "model", "trace_id",
    "latency_model_ms",
)  # fmt: skip
"""The fields of an answer beside its ``output``, each as in a case. Anything else is ignored."""


class AnswerError(SidejudgeError, ValueError):
    """The agent's reply is no answer; the message states why."""


def read_answer(stated: object) -> dict[str, Json]:
    """The fields of a case that an answer makes: ``model_output`` and what it holds beside it.

    An answer is text, or a map with ``output``, which may be any JSON but null.
    """
    if isinstance(stated, str):
        return {"model_output": stated}
    if not isinstance(stated, Mapping):
        raise AnswerError(f"the answer is {_kind(stated)}, neither text nor an object with output")
    if stated.get("output") is None:
        raise AnswerError("the answer has no output" if "output" not in stated else "output is null")
    reported = {name: stated[name] for name in ("output", *FIELDS) if stated.get(name) is not None}
    for name, value in reported.items():
        if (why := not_plain(value)) is not None:
            raise AnswerError(f"{name} {why}")
    # As a file would hold it: an answer that is judged now and one that is read again are the same.
    fields: dict[str, Json] = json.loads(line(reported))
    for wrong in field_errors(fields):
        raise AnswerError(f"{wrong.field} {wrong.message}; {wrong.remedy}")
    return {"model_output": fields.pop("output"), **fields}


def _kind(value: object) -> str:
    kinds = {list: "a list", tuple: "a list", int: "a number", float: "a number", type(None): "null"}
    return kinds.get(type(value), f"a {type(value).__name__}")


class RunJudge:
    """The rubrics are the ``chosen`` ones, else the first matching route's, else the task's.

    A test whose task names no rubric is judged by ``dimensions``, as the seed has it, and one with a scenario by
    ``workflow`` too. What a route excludes is judged likewise: a test in the set is there to be judged.
    ``backends`` is who answers (default: by words alone); a judge that is out of reach is waited for, as ``settings``
    have it, or ``waits``. ``rubrics`` are those that may judge (default: all that are configured).
    """

    def __init__(
        self, settings: Config, chosen: Sequence[str], *, backends: EvaluationBackends = BY_WORDS,
        rubrics: Mapping[str, Rubric] | None = None, waits: Waits | None = None,
    ) -> None:  # fmt: skip
        self._waits = waits_of(settings) if waits is None else waits
        self._settings, self._backends, self._chosen = settings, backends, tuple(dict.fromkeys(chosen))
        self._rubrics = configured(settings) if rubrics is None else rubrics
        self._judged_with = judged_with(settings)
        routes, scenarios, budgets = settings.routes, settings.scenarios, settings.budgets
        self._routed = Router(routes, scenarios, budgets=budgets) if routes else None
        self._by_task = Router((), scenarios, budgets=budgets)
        self._evaluator = Evaluator(self._rubrics, backends.at_once, backends.others)

    async def start(self) -> None:
        """Load the model of embeddings, where one is configured. Raises ``EmbeddingError``."""
        if self._backends.embedding is not None:
            await self._backends.embedding.start()

    async def close(self) -> None:
        """Close the loaded backends."""
        await self._backends.close()

    async def verdicts(
        self, fields: Mapping[str, Json], existing: Sequence[Mapping[str, object]]
    ) -> Sequence[Mapping[str, object]]:
        """A verdict of each rubric, as the format page writes it; ``existing`` itself where it is equal.

        ``fields`` are those of the case. A verdict stands while the case, its scenario, the rubric's version and the
        settings of its judge are what they were.
        """
        case, route, digest = await asyncio.to_thread(self._prepared, fields)
        wanted = [(name, self._rubrics[name].version, digest, self._judged_with[name]) for name in route.rubrics]
        if wanted == [
            (*map(stated.get, ("rubric", "rubric_version", "case_digest")), stated.get(JUDGED_WITH, {}))
            for stated in existing
        ]:
            return existing
        case = route.applied_to(case)
        return [
            {**verdict.to_json(), "case_digest": digest, **stated_settings(self._judged_with[verdict.rubric])}
            for verdict in await self._reached(case, route.rubrics)
        ]

    async def reach(self, given: Case | Mapping[str, Json]) -> Sequence[Verdict]:
        """The verdicts of a case, or of one that is read from these fields, one of each rubric."""
        case = given if isinstance(given, Case) else await asyncio.to_thread(case_of, given)
        route = self._route(case)
        case = route.applied_to(case)
        return await self._reached(case, route.rubrics)

    def _prepared(self, fields: Mapping[str, Json]) -> tuple[Case, Route, str]:
        case = case_of(fields)
        route = self._route(case)
        named = None if route.scenario_name is None else self._settings.scenarios.get(route.scenario_name)
        return case, route, case_digest(line(fields), named, route.budget)

    async def _reached(self, case: Case, names: Sequence[str]) -> Sequence[Verdict]:
        """Runs in a thread: judging takes the processor, and agents' latencies are being measured meanwhile."""
        if self._evaluator.others is None:
            now = iso_time(time.time_ns())
            return await asyncio.to_thread(self._evaluator.verdicts, case, names, created_at=now)
        return await reached(self._evaluator, case, names, self._waits)

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
