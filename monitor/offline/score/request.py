"""What a run is asked for, in a form that goes to other processes, and the batch that does it there."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from monitor.config import Config, ConfigError, resolve
from monitor.config.plugins import install_dialects
from monitor.config.rubrics import configured
from monitor.evaluate.build import build_backends
from monitor.evaluate.judge.observer import JudgeObserver
from monitor.route.router import Router

from .chunks import ChunkVerdicts, JudgedChunk
from .gaps import Gaps
from .lines import NumberedLine
from .remarks import RecordedRemarks, Remarks
from .run import Batch
from .tally import ScoreTally
from .transient import MOST_VECTORS, Transient, TransientShelf

_IN_FLIGHT = 8
"""Cases under way at a time where only embeddings are waited for: what they compare is embedded together."""


class OtherConfigError(Exception):
    """The configuration that a process reads is not the one that the run began with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """The file of the configuration, the rubrics that somebody named, and the options of ``Batch``.

    Declared rubrics hold functions, which cannot be sent: each process reads the file itself, and ``fingerprint``
    shows whether it has read the same.
    """

    config: Path | None
    fingerprint: str
    chosen: tuple[str, ...] = ()
    repeat: int | None = None
    keep_outputs: bool = False

    def batch(self, settings: Config, remarks: Remarks, observer: JudgeObserver | None = None) -> Batch:
        """The batch that judges so; ``observer`` is called with each request to a judge."""
        judge = settings.evaluators.judge
        return Batch(
            rubrics=configured(settings),
            backends=build_backends(
                settings,
                # What is judged again, to see how much the judge varies, must not come out of the cache.
                memory=Transient(forgetful=self.repeat is not None),
                vectors=TransientShelf(MOST_VECTORS),
                observer=observer,
                clock_ns=time.time_ns,
            ),
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
        install_dialects()
        try:
            settings = resolve(request.config, os.environ).config
        except ConfigError as error:
            raise OtherConfigError(f"the configuration cannot be read by a worker: {error}") from None
        if fingerprint(settings) != request.fingerprint:
            raise OtherConfigError(f"{request.config} has changed since the run began")
        self._batch = request.batch(settings, RecordedRemarks())

    def judge(self, lines: Sequence[NumberedLine]) -> JudgedChunk:
        """Judge the lines of one chunk, at least one."""
        remarks, tally, verdicts = RecordedRemarks(), ScoreTally(gaps=Gaps(most=math.inf)), ChunkVerdicts()
        self._batch.remarks, self._batch.tally = remarks, tally
        self._batch.run(lines, verdicts, lambda _: None)
        return JudgedChunk(verdicts=b"".join(verdicts.blocks), remarks=remarks, tally=tally, read=lines[-1].read)
