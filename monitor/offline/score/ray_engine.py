"""Ray engine: the chunks of a run as tasks of a Ray cluster, or of this machine; results come in the chunks' order.

A chunk that a worker or a node takes down with it is judged again elsewhere: its verdicts exist only once they have
come here. What stands in the file of verdicts is the record of a run, so that one whose driver was killed goes on.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final

from .chunks import ElsewhereError, JudgedChunk, chunks
from .lines import NumberedLine
from .request import ChunkJudge, ScoreRequest

_AHEAD: Final = 4
"""Chunks a processor that are sent ahead of the one that is waited for."""
_RETRIES: Final = 3
"""How often a chunk is judged again whose worker or node was lost."""


class RayEngine:
    """Judges on the cluster at ``address``; None starts Ray on this machine for the run, with ``count`` processors."""

    def __init__(self, address: str | None, count: int | None, request: ScoreRequest) -> None:
        self._address, self._count, self._request = address, count, request

    def judged(self, lines: Iterator[NumberedLine]) -> Iterator[JudgedChunk]:
        """The results of all lines, in their order.

        Raises:
            ElsewhereError: Ray is missing or out of reach, or a chunk was lost again and again.
            OtherConfigError: A worker reads another configuration.
        """
        ray = self._started()
        try:
            cpus = int(ray.cluster_resources().get("CPU", 1))
            work = ray.remote(num_cpus=1, max_retries=_RETRIES)(_work)
            request, ahead = ray.put(self._request), max(1, self._count or cpus) * _AHEAD
            waiting: deque[Any] = deque()
            for chunk in chunks(lines):
                waiting.append(work.remote(request, chunk))
                if len(waiting) > ahead:
                    yield ray.get(waiting.popleft())
            while waiting:
                yield ray.get(waiting.popleft())
        except ray.exceptions.RayTaskError:
            raise  # an error of ours is of its own class too
        except ray.exceptions.RayError as error:
            raise ElsewhereError(
                f"a chunk was lost {_RETRIES + 1} times: {type(error).__name__}",
                "look at the cluster's memory, and call again: what was judged stands, and the run goes on from there",
            ) from None
        finally:
            ray.shutdown()

    def _started(self) -> Any:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
        try:
            import ray  # noqa: PLC0415  # an extra
        except ImportError:
            raise ElsewhereError("Ray is not installed", "pip install 'sidejudge[ray]'") from None
        ours = {name: value for name, value in os.environ.items() if name.startswith("SIDEJUDGE_")}
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "runtime_env": {"env_vars": ours}}
        if self._address is None:
            options |= {"address": "local", "include_dashboard": False, "num_cpus": self._count}
        else:
            options |= {"address": self._address}
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ElsewhereError(
                f"Ray cannot be reached at {self._address or 'this machine'}: {str(error)[:300]}",
                "name the head's address, such as auto or ray-head:6379, or leave out --address",
            ) from None
        return ray


@cache
def _judge(request: ScoreRequest) -> ChunkJudge:
    return ChunkJudge(request)


def _work(request: ScoreRequest, lines: Sequence[NumberedLine]) -> JudgedChunk:
    """Judge a chunk in a process of Ray, which keeps the rubrics from one chunk to the next."""
    return _judge(request).judge(lines)
