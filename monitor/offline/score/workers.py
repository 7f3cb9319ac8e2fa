"""Workers: processes of this machine that judge the chunks of a run; their results come in the order of the chunks."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Final

from .chunks import ElsewhereError, JudgedChunk, chunks
from .lines import NumberedLine
from .request import ChunkJudge, ScoreRequest

_AHEAD: Final = 4
"""Chunks a worker that are sent ahead of the one that is waited for, so that a slow one keeps no other waiting."""

_request: ScoreRequest | None = None
"""What a worker process is asked for."""


class Workers:
    """``count`` processes, started with the first chunk. Memory holds some chunks a worker, however large the file."""

    def __init__(self, count: int, request: ScoreRequest) -> None:
        self._count, self._request = count, request

    def judged(self, lines: Iterator[NumberedLine]) -> Iterator[JudgedChunk]:
        """The results of all lines, in their order.

        Raises:
            ElsewhereError: A worker was killed, or cannot start.
            OtherConfigError: A worker reads another configuration.
        """
        pool = ProcessPoolExecutor(self._count, get_context("spawn"), _begin, (self._request,))
        waiting: deque[Future[JudgedChunk]] = deque()
        try:
            for chunk in chunks(lines):
                waiting.append(pool.submit(_work, chunk))
                while len(waiting) > self._count * _AHEAD or waiting[0].done():
                    yield waiting.popleft().result()
                    if not waiting:
                        break
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise ElsewhereError(
                "a worker process has ended before its work was done: it was killed, or memory ran out",
                "call again: what was judged stands, and the run goes on from there; fewer --workers need less memory",
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(request: ScoreRequest) -> None:
    """Prepare a worker: it leaves interrupts to the process that started it, and ends with it."""
    global _request  # noqa: PLW0603  # a pool has no other place for what a worker keeps
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _request = request


def _end_with_parent() -> None:
    # A pool's worker waits at a pipe of which it holds both ends, so that it would outlive a parent that was killed.
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


@cache
def _judge() -> ChunkJudge:
    # Built with the first chunk, for what fails while a worker is prepared only breaks the pool.
    if _request is None:
        raise RuntimeError("the worker was not prepared")
    return ChunkJudge(_request)


def _work(lines: Sequence[NumberedLine]) -> JudgedChunk:
    return _judge().judge(lines)
