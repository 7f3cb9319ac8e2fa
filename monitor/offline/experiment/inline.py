"""Inline judging: one output under one rubric, from any thread and any event loop.

What judges lives on an event loop of its own, in a daemon thread that begins with the first call: the callers' loops
come and go.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

from sidejudge.integrations.embed import EmbeddingError
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.errors import nearest
from sidejudge.monitor.config.load import load_config
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.offline.score.chunks import JudgeOutError
from sidejudge.monitor.offline.score.request import MOST_VECTORS, LruCache, Transient, Waits, fingerprint, run_backends
from sidejudge.monitor.offline.test.judge import RunJudge, read_answer
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.span import Json
from sidejudge.scoring.verdict.rubric import Rubric
from sidejudge.scoring.verdict.verdict import Verdict

_T = TypeVar("_T")


class _Loop:
    """An event loop in a daemon thread, begun with the first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[object, object, _T]) -> Future[_T]:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="sidejudge-inline", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)


_LOOP = _Loop()


_WAITED: Final[set[str]] = set()
"""Configurations whose judge or embeddings were waited for in vain: the next call, as of many tests, waits no more."""


@lru_cache(maxsize=8)
def _remembered(_fingerprint: str) -> tuple[Transient, LruCache[bytes]]:
    """Answers, dollars and vectors of all calls with one configuration: one that failed is called again."""
    return Transient(), LruCache(MOST_VECTORS)


class InlineJudge:
    """Judges by one rubric. ``config`` is a file, a configuration, or None for the embedded defaults.

    ``waits``: a judge, or embeddings, that are out of reach are waited for, as ``config`` has it; else a verdict that
    needs them fails at once. Raises ``ConfigError`` for a file that is wrong, and ``ValueError`` for a rubric that
    there is not.
    """

    def __init__(self, rubric: Rubric | str, config: Config | Path | str | None = None, *, waits: bool = True) -> None:
        self._waits = waits
        self._settings = config if isinstance(config, Config) else load_config(config)
        self._fingerprint = fingerprint(self._settings)
        self.rubric = rubric_of(rubric, self._settings)
        self._judge: RunJudge | None = None
        self._starting = asyncio.Lock()

    def verdict(
        self,
        *,
        input: Json,  # noqa: A002  # the SDK's name
        output: object,
        expected: Json = None,
        metadata: object = None,
    ) -> Future[Verdict]:
        """The verdict on an output: text, JSON, or an answer of an agent with ``output`` and ``tools_used``."""
        return _LOOP.run(self._reach(fields_of(input, output, expected, metadata)))

    def judge(self, case: Case) -> Future[Verdict]:
        """The verdict on a case."""
        return _LOOP.run(self._reach(case))

    async def _reach(self, given: Case | Mapping[str, Json]) -> Verdict:
        async with self._starting:
            if self._judge is None:
                self._judge = await self._begin()
        try:
            (verdict,) = await self._judge.reach(given)
        except (JudgeOutError, EmbeddingError):
            if self._waits:
                _WAITED.add(self._fingerprint)
            raise
        _WAITED.discard(self._fingerprint)
        return verdict

    async def _begin(self) -> RunJudge:
        answers, vectors = _remembered(self._fingerprint)
        backends = run_backends(self._settings, forgetful=False, memory=answers, vectors=vectors)
        name = self.rubric.id
        judge = RunJudge(
            self._settings, (name,), backends=backends, rubrics={name: self.rubric},
            waits=None if self._waits and self._fingerprint not in _WAITED else Waits(),
        )  # fmt: skip
        await judge.start()
        return judge


def rubric_of(rubric: Rubric | str, config: Config | Path | str | None) -> Rubric:
    """A rubric, or the one of this name. Raises ``ValueError`` where there is none, and ``ConfigError``."""
    if isinstance(rubric, Rubric):
        return rubric
    rubrics = configured(config if isinstance(config, Config) else load_config(config))
    if rubric not in rubrics:
        near = nearest(rubric, list(rubrics))
        meant = f"did you mean {near!r}? " if near else ""
        raise ValueError(f"there is no rubric {rubric!r}; {meant}choose from {', '.join(rubrics)}")
    return rubrics[rubric]


def fields_of(input: Json, output: object, expected: Json, metadata: object) -> dict[str, Json]:  # noqa: A002  # as above
    """The fields of a case. ``task`` and ``scenario`` are read from the metadata of an item.

    Raises:
        ValueError: The output cannot be judged.
    """
    answered = output if isinstance(output, Mapping) and "output" in output else {"output": output}
    held = dict(metadata) if isinstance(metadata, Mapping) else {}
    fields: dict[str, Json] = {"case_id": "inline", "input": input, "metadata": held, **read_answer(answered)}
    if expected is not None:
        fields["expected_outcome"] = expected
    return fields | {key: held[key] for key in ("task", "scenario") if held.get(key) is not None}
