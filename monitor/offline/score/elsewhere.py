"""Elsewhere: the lines of a run, judged by an engine's processes, and the actors that these ask on Ray."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sidejudge.monitor.config import Config
from sidejudge.monitor.offline.engine.engine import Engine
from sidejudge.monitor.offline.engine.ray_cluster import RayCluster

from .chunk_judge import judging
from .chunks import CHUNK_LINES, JudgedChunk, chunks
from .expense import Expense
from .lines import NumberedLine
from .request import ScoreRequest
from .run import Elsewhere

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
        return engine.map(judging, request, chunks(lines, most))

    return judged


def expense_of(request: ScoreRequest) -> Expense | None:
    """What the judge of a run on Ray has cost; None without one."""
    from .ray_backends import expense_of_run  # noqa: PLC0415  # it imports Ray, an extra

    return expense_of_run() if request.actors is not None and request.actors.judge else None
