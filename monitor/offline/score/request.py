"""What a run is asked for, in a form that goes to other processes, and the batch that does it there."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.config import Config, ConfigError, resolve
from monitor.config.plugins import install_dialects
from monitor.config.rubrics import configured
from monitor.evaluate.build import EvaluationBackends, build_backends
from monitor.evaluate.judge.observer import JudgeObserver
from monitor.route.router import Router
from monitor.runtime.tuning.gc import collect_rarely
from scoring.errors import SidejudgeError

from .chunks import ChunkVerdicts, JudgedChunk
from .gaps import Gaps
from .in_flight import JudgeOutError
from .lines import NumberedLine
from .remarks import RecordedRemarks, Remarks
from .run import Batch
from .tally import ScoreTally
from .transient import MOST_VECTORS, Transient, TransientShelf

_IN_FLIGHT = 8
"""Cases under way at a time where only embeddings are waited for: what they compare is embedded together."""


@dataclass(frozen=True, slots=True)
class Actors:
    """The actors of a run on Ray: whether one holds the judge, and how many hold a model of embeddings."""

    judge: bool
    embeddings: int


class OtherConfigError(SidejudgeError):
    """The configuration that a process reads is not the one that the run began with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """The file of the configuration, the rubrics that somebody named, and the options of ``Batch``.

    Declared rubrics hold functions, which cannot be sent: each process reads the file itself, and ``fingerprint``
    shows whether it has read the same. ``actors`` hold the judge and the model of embeddings;
    None: this process does.
    """

    config: Path | None
    fingerprint: str
    chosen: tuple[str, ...] = ()
    repeat: int | None = None
    keep_outputs: bool = False
    actors: Actors | None = None

    def backends(self, settings: Config, observer: JudgeObserver | None = None) -> EvaluationBackends:
        """Who answers in this process; ``observer`` is called with each request to a judge."""
        return build_backends(
            settings,
            # What is judged again, to see how much the judge varies, must not come out of the cache.
            memory=Transient(forgetful=self.repeat is not None),
            vectors=TransientShelf(MOST_VECTORS),
            observer=observer,
            clock_ns=time.time_ns,
        )

    def settings(self) -> Config:
        """The configuration as another process reads it. Raises ``OtherConfigError``."""
        install_dialects()
        try:
            settings = resolve(self.config, os.environ).config
        except ConfigError as error:
            raise OtherConfigError(f"the configuration cannot be read by a worker: {error}") from None
        if fingerprint(settings) != self.fingerprint:
            raise OtherConfigError(f"{self.config} has changed since the run began")
        return settings

    def batch(self, settings: Config, remarks: Remarks, observer: JudgeObserver | None = None) -> Batch:
        """The batch that judges so; ``observer`` is called with each request to a judge of this process."""
        judge = settings.evaluators.judge
        if self.actors is None:
            backends = self.backends(settings, observer)
        else:
            from .ray_backends import remote_backends  # noqa: PLC0415  # it imports Ray, an extra

            backends = remote_backends(settings, self.actors)
        collect_rarely()  # what was imported stays to the end: to walk through it again and again took a fifth of a run
        return Batch(
            rubrics=configured(settings),
            backends=backends,
            at_most=judge.concurrency if judge is not None else _IN_FLIGHT,
            max_wait_s=judge.max_wait.seconds if judge is not None else 0.0,
            router=Router(settings.routes, settings.scenarios),
            scenarios=settings.scenarios,
            chosen=self.chosen,
            # Where the configuration names none they are run_health, which is for traces.
            default=settings.default_rubrics if "default_rubrics" in settings.model_fields_set else (),
            remarks=remarks,
            by_task=not settings.routes,
            repeat=self.repeat,
            keep_outputs=self.keep_outputs,
        )


def fingerprint(settings: Config) -> str:
    """A digest of all that verdicts depend on: the settings, and the versions of the rubrics."""
    versions = sorted((name, rubric.version) for name, rubric in configured(settings).items())
    return hashlib.sha256(f"{settings!r}{versions}".encode()).hexdigest()


class ChunkJudge:
    """Judges chunks by one batch, which is built once in the process that it is for.

    Raises:
        OtherConfigError: The configuration has changed since the run began, or cannot be read here.
    """

    def __init__(self, request: ScoreRequest) -> None:
        self._batch = request.batch(request.settings(), RecordedRemarks())
        self._batch.in_groups = True

    def judge(self, lines: Sequence[NumberedLine]) -> JudgedChunk:
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


def judging(request: ScoreRequest) -> Callable[[Sequence[NumberedLine]], JudgedChunk]:
    """What judges chunks in the process in which it is called."""
    return ChunkJudge(request).judge
