"""The request of a run, in a form for other processes, and its memory.

Judged answers, their cost and vectors stay in bounded memory, or in a store beside the verdicts. The store of
``store.path`` belongs to a running monitor; a run over a file has its own memory. A run that is called again in the
same way goes on where it ended, and so must its judge: otherwise each call would spend the hourly budget anew.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from sidejudge.integrations.provider.attempt import JudgeObserver
from sidejudge.monitor.config import Config, ConfigError, resolve
from sidejudge.monitor.config.plugins import install_dialects
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.evaluate.build import EvaluationBackends, build_backends
from sidejudge.scoring.errors import SidejudgeError

if TYPE_CHECKING:
    from sidejudge.monitor.evaluate.judge.judge_backend import JudgeStorage

V = TypeVar("V", str, bytes)

MOST_VECTORS: Final = 10_000
"""Vectors that a run keeps: some 30 MB of 768 dimensions each."""


class LruCache(Generic[V]):
    """Things by key, the least lately used forgotten first; never more than ``most``."""

    def __init__(self, most: int | None = None) -> None:
        self._held: dict[str, V] = {}
        self._most = most
        self._one = Lock()  # it is read in several threads

    def get(self, keys: Sequence[str], now_ns: int) -> dict[str, V]:  # noqa: ARG002  # the order is by age
        with self._one:
            found = {key: self._held.pop(key) for key in keys if key in self._held}
            self._held.update(found)
        return found

    async def put(self, things: Mapping[str, V], now_ns: int, most: int) -> None:  # noqa: ARG002  # likewise
        most = most if self._most is None else min(most, self._most)
        with self._one:
            self._held.update(things)
            for key in list(islice(self._held, max(0, len(self._held) - most))):
                del self._held[key]


class Transient(LruCache[str]):
    """A cache of judged answers, and dollars by the hour."""

    def __init__(self) -> None:
        super().__init__()
        self._spent: dict[int, float] = {}

    async def spend(self, hour_s: int, usd: float) -> None:
        self._spent[hour_s] = self._spent.get(hour_s, 0.0) + usd

    def spent_since(self, since_s: int) -> dict[int, float]:
        return {hour_s: usd for hour_s, usd in self._spent.items() if hour_s >= since_s}


def memory_of(out: str) -> Path | None:
    """Where the judge of a run that writes there remembers; None where nothing of a run stays on this machine."""
    if out == "-" or "://" in out:
        return None
    path = Path(out).absolute()
    return path.with_name(f"{path.name}.judge") if path.is_file() or path.is_dir() or not path.exists() else None


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
        """The backends of this process; ``observer`` is called with each request to a judge."""
        store = None
        if self.memory is not None and settings.evaluators.judge is not None:
            from sidejudge.integrations.store.sqlite import Store  # noqa: PLC0415  # SQLite only where a judge is asked

            store = Store(self.memory)
        made = run_backends(settings, observer, forgetful=False, memory=store.judged if store else None)
        return replace(made, memory=store)

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
    settings: Config, observer: JudgeObserver | None = None, *, forgetful: bool, memory: JudgeStorage | None = None,
    vectors: LruCache[bytes] | None = None,
) -> EvaluationBackends:  # fmt: skip
    """Who answers in this process; what was answered is in ``memory`` and ``vectors``, or else known until it ends.

    ``forgetful``: a judge is asked each time. ``observer`` is called with each request to a judge.
    """
    section = settings.evaluators
    if forgetful and section.judge is not None:
        section = section.model_copy(update={"judge": section.judge.model_copy(update={"cache_entries": 0})})
    return build_backends(
        settings.model_copy(update={"evaluators": section}), memory=memory or Transient(), observer=observer,
        vectors=vectors or LruCache(MOST_VECTORS), clock_ns=time.time_ns,
    )  # fmt: skip


class Waits(NamedTuple):
    """How long a case waits for a judge, and for embeddings, that are out of reach, in s."""

    judge_s: float = 0.0
    embedding_s: float = 0.0


def waits_of(settings: Config) -> Waits:
    """How long a judge and embeddings that are out of reach are waited for; 0 without them."""
    judge, embedding = settings.evaluators.judge, settings.evaluators.embedding
    return Waits(
        judge_s=judge.max_wait.seconds if judge is not None else 0.0,
        embedding_s=embedding.max_wait.seconds if embedding is not None else 0.0,
    )


def fingerprint(settings: Config) -> str:
    """A digest of all that verdicts depend on: the settings, and the versions of the rubrics."""
    versions = sorted((name, rubric.version) for name, rubric in configured(settings).items())
    return hashlib.sha256(f"{settings!r}{versions}".encode()).hexdigest()
