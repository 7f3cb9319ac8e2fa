"""What a run is asked for, in a form that goes to other processes."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from sidejudge.integrations.provider.attempt import JudgeObserver
from sidejudge.monitor.config import Config, ConfigError, resolve
from sidejudge.monitor.config.plugins import install_dialects
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.evaluate.build import EvaluationBackends, build_backends
from sidejudge.scoring.errors import SidejudgeError

from .run_memory import MOST_VECTORS, LruCache, RunMemory, Transient


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
    None: this process does. ``memory`` is the store of the judge's answers and dollars; None: they end with the run.
    """

    config: Path | None
    fingerprint: str
    chosen: tuple[str, ...] = ()
    repeat: int | None = None
    keep_outputs: bool = False
    actors: Actors | None = None
    memory: Path | None = None

    def backends(self, settings: Config, observer: JudgeObserver | None = None) -> EvaluationBackends:
        """Who answers in this process; ``observer`` is called with each request to a judge."""
        # What is judged again, to see how much the judge varies, must not come out of the cache.
        forgetful = self.repeat is not None
        kept = None
        if self.memory is not None and settings.evaluators.judge is not None:
            kept = RunMemory(self.memory, forgetful=forgetful)
        return replace(run_backends(settings, observer, forgetful=forgetful, memory=kept), memory=kept)

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


def run_backends(
    settings: Config, observer: JudgeObserver | None = None, *, forgetful: bool, memory: RunMemory | None = None
) -> EvaluationBackends:
    """Who answers in this process; what was answered is in ``memory``, or else known until it ends.

    ``forgetful``: a judge is asked each time. ``observer`` is called with each request to a judge.
    """
    return build_backends(
        settings,
        memory=memory or Transient(forgetful=forgetful),
        vectors=LruCache(MOST_VECTORS),
        observer=observer,
        clock_ns=time.time_ns,
    )


def judge_wait_s(settings: Config) -> float:
    """How long a judge that is out of reach is waited for; 0 without one."""
    judge = settings.evaluators.judge
    return judge.max_wait.seconds if judge is not None else 0.0


def fingerprint(settings: Config) -> str:
    """A digest of all that verdicts depend on: the settings, and the versions of the rubrics."""
    versions = sorted((name, rubric.version) for name, rubric in configured(settings).items())
    return hashlib.sha256(f"{settings!r}{versions}".encode()).hexdigest()
