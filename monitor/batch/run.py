"""The run: each case of a stream of lines is read, routed, judged and appended, in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import orjson

from integrations.cases import CaseError, read_case
from integrations.jsonl import line as json_line
from monitor.config.match import task_of
from monitor.evaluator import Evaluator
from monitor.instant import written
from monitor.router import TASK_RUBRICS, Excluded, Route, Router
from scoring.case import Case
from scoring.rubric import Rubric
from scoring.span import Json

from .digest import case_digest
from .duplicates import Duplicates
from .lines import MAX_LINE, Line
from .tally import Tally
from .wanted import Wanted


class Verdicts(Protocol):
    """Where verdicts stand and go."""

    def standing(self, wanted: Wanted) -> Mapping[str, object] | None: ...
    def all_walked(self) -> None: ...
    def append(self, verdict: bytes) -> None: ...


@dataclass(slots=True, kw_only=True)
class Batch:
    """Judges cases. ``chosen`` rubrics judge every case; without any, the routes (or the case's task) choose.

    ``scenarios`` are those of the configuration, by name. ``complain`` hears one line of text for every line of the
    input that gives no verdict though it should, and one for the first case id that stands twice.
    ``repeat`` judges each case that often, and each verdict then says in which ``run``. ``keep_outputs`` has each
    verdict carry the ``model_output`` that it is about, for audits.
    """

    rubrics: Mapping[str, Rubric]
    router: Router
    scenarios: Mapping[str, Mapping[str, Json]]
    chosen: Sequence[str]
    complain: Callable[[str], None]
    by_task: bool
    repeat: int | None = None
    keep_outputs: bool = False
    tally: Tally = field(default_factory=Tally)
    _evaluator: Evaluator = field(init=False)
    _versions: dict[str, str] = field(init=False)
    _duplicates: Duplicates = field(default_factory=Duplicates)

    def __post_init__(self) -> None:
        self._evaluator = Evaluator(self.rubrics)
        self._versions = {name: rubric.version for name, rubric in self.rubrics.items()}

    def run(self, source: Iterable[Line], verdicts: Verdicts, progress: Callable[[int], None]) -> Tally:
        """Judge everything; ``progress`` hears how many bytes have been read."""
        for line in source:
            self._line(line, verdicts)
            progress(line.read)
        verdicts.all_walked()
        self.tally.repeated = self._duplicates.count
        return self.tally

    def _line(self, line: Line, verdicts: Verdicts) -> None:
        if line.text is None:
            self._bad(f"line {line.number}: is longer than {MAX_LINE} bytes")
            return
        try:
            case = read_case(line.text, line.number)
        except CaseError as error:
            self._bad(str(error))
            return
        if self.keep_outputs and not _can_be_kept(case.model_output):
            self._bad(f"line {line.number}: model_output: is nested too deeply to be kept; leave out --keep-outputs")
            return
        self._compare(case.case_id, line.number)
        route = self._route(case, line.number)
        if route is None:
            return
        named = self.scenarios.get(route.scenario_name) if route.scenario_name is not None else None
        digest = case_digest(line.text, named)
        case = replace(case, scenario=route.scenario) if route.scenario is not None else case
        extra: dict[str, object] = {"model_output": case.model_output} if self.keep_outputs else {}
        for run in (None,) if self.repeat is None else range(1, self.repeat + 1):
            self._run(case, route.rubrics, {"case_digest": digest, **({"run": run} if run else {}), **extra}, verdicts)

    def _run(self, case: Case, rubrics: Sequence[str], extra: Mapping[str, object], verdicts: Verdicts) -> None:
        """Judge a case once by each rubric whose verdict does not stand; ``extra`` goes into each verdict."""
        missing: list[str] = []
        for name in rubrics:
            said = verdicts.standing(Wanted(case.case_id, name, self._versions[name], extra))
            if said is None:
                missing.append(name)
            else:
                self.tally.add(said)
        if missing:
            for verdict in self._evaluator.verdicts(case, missing, created_at=written(time.time_ns())):
                told = {**verdict.to_json(), **extra}
                self.tally.add(told)
                verdicts.append(json_line(told))

    def _route(self, case: Case, number: int) -> Route | None:
        if self.chosen:
            return self.router.chosen(self.chosen, case)
        route = self.router.route(case)
        if isinstance(route, Excluded):
            self.tally.excluded += 1
            return None
        if route is None:
            self.tally.unrouted += 1
            if self.by_task:
                self.complain(f"line {number}: task: {_no_rubric(task_of(case))}")
        return route

    def _compare(self, case_id: str, number: int) -> None:
        first = self._duplicates.first_line(case_id, number)
        if first is not None and self._duplicates.count == 1:
            self.complain(
                f"warning: line {number}: case_id: {case_id[:100]!r} stands on line {first} already; both are judged, "
                "but their verdicts have the same name (further ones are only counted)"
            )

    def _bad(self, message: str) -> None:
        self.tally.bad_lines += 1
        self.complain(message)


def _no_rubric(task: str | None) -> str:
    if task is None:
        return "is missing, so no rubric is meant for this case; name one with --rubric, or configure routes"
    tasks = ", ".join(TASK_RUBRICS)
    return (
        f"this version has no rubric for {task[:100]!r} (it has one for {tasks}); "
        "name one with --rubric, or configure routes"
    )


def _can_be_kept(output: Json) -> bool:
    """Whether a verdict can carry it: what can be read may be nested more deeply than what can be written."""
    try:
        orjson.dumps({"model_output": output})
    except orjson.JSONEncodeError:
        return False
    return True
