"""Builds the batch that judges a run's cases, in the current process.

Elsewhere: the lines of a run, judged by an engine's processes, and the actors that these ask on Ray.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sidejudge.integrations.provider.attempt import JudgeObserver
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.offline.engine import Engine, RayCluster
from sidejudge.monitor.route.router import Router
from sidejudge.monitor.runtime.tuning import collect_rarely

from .case_lines import NumberedLine
from .chunks import CHUNK_LINES, ChunkVerdicts, JudgedChunk, JudgeOutError, chunks
from .request import ScoreRequest, judge_wait_s
from .run import Batch, Elsewhere
from .tally import Expense, Gaps, RecordedRemarks, Remarks, ScoreTally

_IN_FLIGHT = 8
"""Cases under way at a time where only embeddings are waited for: what they compare is embedded together."""


def batch_of(request: ScoreRequest, settings: Config, remarks: Remarks, observer: JudgeObserver | None = None) -> Batch:
    """The batch that does what is asked for; ``observer`` is called with each request to a judge of this process."""
    judge = settings.evaluators.judge
    if request.actors is None:
        backends = request.backends(settings, observer)
    else:
        from .ray_backends import remote_backends  # noqa: PLC0415  # it imports Ray, an extra

        backends = remote_backends(settings, request.actors)
    collect_rarely()  # what was imported stays to the end: to walk through it again and again took a fifth of a run
    return Batch(
        rubrics=configured(settings),
        backends=backends,
        at_most=judge.concurrency if judge is not None else _IN_FLIGHT,
        max_wait_s=judge_wait_s(settings),
        router=Router(settings.routes, settings.scenarios),
        scenarios=settings.scenarios,
        chosen=request.chosen,
        # Where the configuration names none they are run_health, which is for traces.
        default=settings.default_rubrics if "default_rubrics" in settings.model_fields_set else (),
        remarks=remarks,
        by_task=not settings.routes,
        repeat=request.repeat,
        keep_outputs=request.keep_outputs,
    )


class ChunkJudge:
    """Judges chunks by one batch, which is built once in the process that it is for.

    Raises:
        OtherConfigError: The configuration has changed since the run began, or cannot be read here.
    """

    def __init__(self, request: ScoreRequest) -> None:
        self._batch = batch_of(request, request.settings(), RecordedRemarks())
        self._batch.in_groups = True

    def __call__(self, lines: Sequence[NumberedLine]) -> JudgedChunk:
        """Judge the lines of one chunk, at least one."""
        remarks, tally, verdicts = RecordedRemarks(), ScoreTally(gaps=Gaps(most=math.inf)), ChunkVerdicts()
        self._batch.remarks, self._batch.tally = remarks, tally
        out = None
        try:
            self._batch.run(lines, verdicts, lambda _: None)
        except JudgeOutError as error:  # what was paid for is kept
            out = str(error)
        done = b"".join(verdicts.blocks)
        return JudgedChunk(verdicts=done, remarks=remarks, tally=tally, read=lines[-1].read, judge_out=out)


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
    from .ray_backends import actors_of  # noqa: PLC0415  # it imports Ray, an extra

    found, _held = actors_of(request, settings)
    yield replace(request, actors=found)


def judged_by(engine: Engine, request: ScoreRequest) -> Elsewhere:
    """The engine as what judges lines."""
    most = CHUNK_LINES if request.actors is None else _JUDGED_LINES

    def judged(lines: Iterator[NumberedLine]) -> Iterator[JudgedChunk]:
        return engine.map(ChunkJudge, request, chunks(lines, most))

    return judged


def expense_of(request: ScoreRequest) -> Expense | None:
    """The cost of the judge of a run on Ray; None without one."""
    from .ray_backends import expense_of_run  # noqa: PLC0415  # it imports Ray, an extra

    return expense_of_run() if request.actors is not None and request.actors.judge else None
