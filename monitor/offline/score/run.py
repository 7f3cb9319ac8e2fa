"""The run: each case of a stream of lines is read, routed, judged and appended, in order.

A batch judges what a run is asked for, in the process in which it is built. Elsewhere the lines of a run are judged by
an engine's processes, and the actors that these ask on Ray.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import orjson

from sidejudge.integrations.cases.lines import CaseError, read_case_line
from sidejudge.integrations.embed import EmbeddingError
from sidejudge.integrations.jsonl import line as json_line
from sidejudge.integrations.provider.attempt import JudgeObserver
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.match import task_of
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.evaluate.build import BY_WORDS, EvaluationBackends
from sidejudge.monitor.evaluate.evaluator import Evaluator
from sidejudge.monitor.offline.engine import Engine, RayCluster
from sidejudge.monitor.route.router import TASK_RUBRICS, Excluded, Route, Router
from sidejudge.monitor.runtime.tuning import collect_rarely
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.statistics.sums import FewCounts
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.trace.time_units import iso_time
from sidejudge.scoring.verdict.verdict import Verdict

from .case_lines import NumberedLine
from .chunks import (
    CHUNK_LINES,
    GROUP_BYTES,
    GROUP_LINES,
    ChunkVerdicts,
    JudgedChunk,
    JudgeOutError,
    chunks,
    in_order,
    reached,
)
from .judged_with import judged_with, stated_settings
from .request import ScoreRequest, waits_of
from .resume import Wanted, digest_of
from .tally import Expense, Gaps, RecordedRemarks, Remarks, ScoreTally
from .verdict_file import VerdictOutput

Elsewhere: TypeAlias = Callable[[Iterator[NumberedLine]], Iterator[JudgedChunk]]
"""Judges lines in other processes; the results come in the order of the lines."""
Progress: TypeAlias = Callable[[int, int], None]
"""Gets how many bytes have been read, and the number of the last line."""
_IN_FLIGHT = 8
"""Cases under way at a time where only embeddings are waited for: what they compare is embedded together."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A case and the rubrics whose verdicts on it are missing; ``extra`` goes into each verdict.

    ``run``: its number where each case is judged several times.
    """

    case: Case
    names: Sequence[str]
    extra: Mapping[str, object]
    run: int | None


class Batch:
    """Judges cases by the rubrics that were named; without any, the routes or a case's task choose, else the defaults.

    Args:
        request: what is asked for. ``repeat`` judges each case that often, and each verdict then names its ``run``;
            ``keep_outputs`` has each verdict carry the ``model_output`` that it is about, for audits.
        settings: rubrics, routes and scenarios. Where somebody has to be waited for, as many cases are judged at a time
            as a judge takes requests, and a judge that is out of reach is waited for, for as long as its section says.
        remarks: gets one line of text for every line of the input that gives no verdict though it should, and the id
            of every case.
        backends: who answers.
        in_groups: lines are all there, so that some may be read before the first of them is judged; those of a pipe may
            take their time.
    """

    def __init__(
        self, request: ScoreRequest, settings: Config, remarks: Remarks, backends: EvaluationBackends = BY_WORDS, *,
        in_groups: bool = False,
    ) -> None:  # fmt: skip
        self.remarks, self.tally, self.in_groups = remarks, ScoreTally(), in_groups
        self._request, self._settings, self._backends = request, settings, backends
        rubrics = configured(settings)
        self._versions = {name: rubric.version for name, rubric in rubrics.items()}
        self._judged_with = judged_with(settings)
        self._router = Router(settings.routes, settings.scenarios, budgets=settings.budgets)
        self._evaluator = Evaluator(rubrics, backends.at_once, backends.others)
        # Where the configuration names none they are run_health, which is for traces.
        self._default = settings.default_rubrics if "default_rubrics" in settings.model_fields_set else ()

    def run(
        self,
        source: Iterable[NumberedLine],
        verdicts: VerdictOutput,
        progress: Progress,
        elsewhere: Elsewhere | None = None,
    ) -> ScoreTally:
        """Judge everything.

        ``elsewhere`` judges lines in other processes, in their order; lines of which verdicts stand are walked here.
        """
        lines = iter(source)
        here = lines if elsewhere is None else _until_walked(lines, verdicts)
        if self._evaluator.others is not None:
            asyncio.run(self._run_in_flight(here, verdicts, progress))
        else:
            in_groups = self.in_groups and elsewhere is None
            for group in chunks(here, GROUP_LINES, GROUP_BYTES) if in_groups else ([line] for line in here):
                # Stage by stage, as the monitor judges: the code and data of one stage fit into a processor's caches.
                tasks = [task for line in group for task in self._tasks(line, verdicts)]
                for task, found in zip(tasks, [self._judge(task) for task in tasks], strict=True):
                    self._take(task, found, verdicts)
                progress(group[-1].read, group[-1].number)
        for chunk in elsewhere(lines) if elsewhere is not None else ():
            chunk.remarks.replay(self.remarks)
            self.tally.merge(chunk.tally)
            verdicts.append(chunk.verdicts)
            if chunk.out is not None:
                raise chunk.out
            progress(chunk.read, chunk.number)
        verdicts.all_walked()
        return self.tally

    def pass_over(self, line: NumberedLine) -> None:
        """Take note of the id of a case whose verdicts stand: a later line may repeat it."""
        with suppress(CaseError):
            if line.text is not None:
                self.remarks.case(read_case_line(line.text, line.number)[0].case_id, line.number)

    async def _run_in_flight(self, source: Iterable[NumberedLine], verdicts: VerdictOutput, progress: Progress) -> None:
        """The same with several cases in flight. A line is prepared when it is read: what stands, stands in order."""
        judge, waits = self._settings.evaluators.judge, waits_of(self._settings)
        at_most, out_s = (judge.concurrency, judge.timeout.seconds) if judge is not None else (_IN_FLIGHT, 0.0)

        async def judged(tasks: Sequence[_Task]) -> list[tuple[_Task, tuple[Verdict, ...]]]:
            return [
                (task, await reached(self._evaluator, task.case, task.names, waits, run=task.run)) for task in tasks
            ]

        def done(line: NumberedLine, came: Sequence[tuple[_Task, tuple[Verdict, ...]]]) -> None:
            for task, found in came:
                self._take(task, found, verdicts)
            progress(line.read, line.number)

        try:
            if self._backends.embedding is not None:
                await self._backends.embedding.start()  # a model that is not there costs no verdict
            await in_order(source, lambda line: judged(self._tasks(line, verdicts)), done, at_most, out_s=out_s)
        finally:
            await self._backends.close()

    def _tasks(self, line: NumberedLine, verdicts: VerdictOutput) -> list[_Task]:
        """The rubrics to judge a line by: the verdicts that stand already are only counted."""
        if line.text is None:
            self._bad(f"line {line.number}: {line.fault}")
            return []
        try:
            case, remarks, canonical = read_case_line(line.text, line.number)
        except CaseError as error:
            self._bad(str(error))
            return []
        case = case if line.case is None else line.case
        for name in remarks:
            self.remarks.ignored(name, line.number)
        if self._request.keep_outputs and not _can_be_kept(case.model_output):
            self._bad(f"line {line.number}: model_output: is nested too deeply to be kept; leave out --keep-outputs")
            return []
        self.remarks.case(case.case_id, line.number)
        route = self._route(case, line.number)
        if route is None:
            return []
        named = self._settings.scenarios.get(route.scenario_name) if route.scenario_name is not None else None
        digest = digest_of(canonical or line.text.strip(), named, route.budget)
        case = route.applied_to(case)
        kept: dict[str, object] = {"model_output": case.model_output} if self._request.keep_outputs else {}
        tasks = []
        for run in (None,) if self._request.repeat is None else range(1, self._request.repeat + 1):
            extra = {"case_digest": digest, **({"run": run} if run else {}), **kept}
            tasks.append(_Task(case, self._missing(case, route.rubrics, extra, verdicts), extra, run))
        return [task for task in tasks if task.names]

    def _missing(
        self, case: Case, rubrics: Sequence[str], extra: Mapping[str, object], verdicts: VerdictOutput
    ) -> Sequence[str]:
        """The rubrics whose verdict does not stand yet."""
        missing: list[str] = []
        for name in rubrics:
            wanted = Wanted(case.case_id, name, self._versions[name], extra, self._judged_with[name])
            stated = verdicts.existing(wanted)
            if stated is None:
                missing.append(name)
            else:
                self.tally.add(stated)
        return missing

    def _take(self, task: _Task, found: Iterable[Verdict], verdicts: VerdictOutput) -> None:
        for verdict in found:
            reported = verdict.to_json()
            reported.update(task.extra)
            reported.update(stated_settings(self._judged_with[verdict.rubric]))
            self.tally.add(reported)
            verdicts.append(json_line(reported))

    def _route(self, case: Case, number: int) -> Route | None:
        if self._request.chosen:
            return self._router.chosen(self._request.chosen, case)
        route = self._router.route(case)
        if isinstance(route, Excluded):
            self.tally.excluded += 1
            return None
        if not isinstance(route, Route):
            if self._default:
                return self._router.chosen(self._default, case)
            self.tally.unrouted += 1
            if not self._settings.routes:
                self.remarks.complain(f"line {number}: task: {_no_rubric(task_of(case))}")
            return None
        return route

    def _judge(self, task: _Task) -> tuple[Verdict, ...]:
        return self._evaluator.verdicts(task.case, task.names, created_at=iso_time(time.time_ns()))

    def _bad(self, message: str) -> None:
        self.tally.bad_lines += 1
        self.remarks.complain(message)


def _until_walked(lines: Iterator[NumberedLine], verdicts: VerdictOutput) -> Iterator[NumberedLine]:
    while not verdicts.walked and (line := next(lines, None)) is not None:
        yield line


def _no_rubric(task: str | None) -> str:
    if task is None:
        return "is missing, so no rubric is meant for this case; name one with --rubric, or configure routes"
    tasks = ", ".join(TASK_RUBRICS)
    return (
        f"this version has no rubric for {task[:100]!r} (it has one for {tasks}); "
        "name one with --rubric, or configure routes"
    )


def _can_be_kept(output: Json) -> bool:
    """Whether a verdict can carry this output: JSON that can be read may be nested too deeply to write."""
    try:
        orjson.dumps({"model_output": output})
    except orjson.JSONEncodeError:
        return False
    return True


def batch_of(request: ScoreRequest, settings: Config, remarks: Remarks, observer: JudgeObserver | None = None) -> Batch:
    """The batch that does what is asked for; ``observer`` is called with each request to a judge of this process."""
    if request.actors is None:
        backends = request.backends(settings, observer)
    else:
        from .ray_backends import remote_backends  # noqa: PLC0415  # it imports Ray, an extra

        backends = remote_backends(settings, request.actors)
    collect_rarely()  # what was imported stays to the end: to walk through it again and again took a fifth of a run
    return Batch(request, settings, remarks, backends)


class ChunkJudge:
    """Judges chunks with one batch, built once in its own process.

    Raises:
        OtherConfigError: The configuration has changed since the run began, or cannot be read here.
    """

    def __init__(self, request: ScoreRequest) -> None:
        self._request = request

    def __call__(self, lines: Sequence[NumberedLine]) -> JudgedChunk:
        """Judge the lines of one chunk, at least one."""
        remarks, tally, verdicts = RecordedRemarks(), ScoreTally(gaps=Gaps(times=FewCounts(math.inf))), ChunkVerdicts()
        self._batch.remarks, self._batch.tally = remarks, tally
        out: JudgeOutError | EmbeddingError | None = None
        try:
            self._batch.run(lines, verdicts, lambda _read, _number: None)
        except (JudgeOutError, EmbeddingError) as error:  # what was paid for is kept
            out = error
        done = b"".join(verdicts.blocks)
        last = lines[-1]
        return JudgedChunk(verdicts=done, remarks=remarks, tally=tally, read=last.read, number=last.number, out=out)

    @cached_property
    def _batch(self) -> Batch:
        batch = batch_of(self._request, self._request.settings(), RecordedRemarks())
        batch.in_groups = True
        return batch


_JUDGED_LINES = 16
"""Lines of a chunk where a judge is waited for: a chunk is done when its slowest case is."""


@contextmanager
def actors(engine: Engine, request: ScoreRequest, settings: Config) -> Iterator[ScoreRequest]:
    """The request with the actors that it needs, while they run; on Ray alone."""
    section = settings.evaluators
    if not isinstance(engine, RayCluster) or (section.judge is None and section.embedding is None):
        yield request
        return
    engine.start()
    from .ray_backends import actors_of, end_judge  # noqa: PLC0415  # it imports Ray, an extra

    found, _held = actors_of(request, settings)
    out: JudgeOutError | EmbeddingError | None = None
    try:
        yield replace(request, actors=found)
    except (JudgeOutError, EmbeddingError) as error:
        out = error
    if section.judge is not None:
        end_judge(section.judge.timeout.seconds)
    if out is not None:
        raise out


def judged_by(engine: Engine, request: ScoreRequest) -> Elsewhere:
    """The engine as what judges lines."""
    most = CHUNK_LINES if request.actors is None else _JUDGED_LINES

    def judged(lines: Iterator[NumberedLine]) -> Iterator[JudgedChunk]:
        return engine.map(ChunkJudge(request), chunks(lines, most))

    return judged


def expense_of(request: ScoreRequest) -> Expense | None:
    """The cost of the judge of a run on Ray; None without one."""
    from .ray_backends import expense_of_run  # noqa: PLC0415  # it imports Ray, an extra

    return expense_of_run() if request.actors is not None and request.actors.judge else None
