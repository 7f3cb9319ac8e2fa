"""Engine: where the pieces of a command's input are worked on. Results and their order are the same everywhere."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any, Final, Protocol, TypeVar, cast

from sidejudge.scoring.errors import RemediedError

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

AHEAD: Final = 8
"""Pieces a processor that are sent ahead of the one that is waited for, so that a slow one keeps no other waiting."""


class ElsewhereError(RemediedError):
    """Other processes cannot work."""


class WorkersLostError(ElsewhereError):
    """Other processes worked, and were lost: what came of them before stands, and the same command goes on."""


class Engine(Protocol):
    """Works on pieces. At most ``AHEAD`` pieces a processor are held, however many there are."""

    def map(self, make: Callable[[S], Callable[[P], R]], stated: S, pieces: Iterable[P]) -> Iterator[R]:
        """The results of all pieces, in the order of the pieces.

        Args:
            make: Called once with ``stated`` in each process that works; returns what is called with each piece.
                A function or a class of a module, for other processes import it.
            stated: What all pieces need. It is sent to each process once.
            pieces: They and their results are pickled where other processes work.

        Raises:
            ElsewhereError: The other processes cannot start.
            WorkersLostError: They were lost while they worked.
        """
        ...


class Here:
    """This process alone."""

    def map(self, make: Callable[[S], Callable[[P], R]], stated: S, pieces: Iterable[P]) -> Iterator[R]:
        """See ``Engine.map``."""
        return map(make(stated), pieces)


_wanted: tuple[Callable[[Any], Callable[[Any], Any]], Any] | None = None
"""What a process makes its work of, with the first piece."""
_work: Callable[[Any], Any] | None = None


class Processes:
    """``count`` processes of this machine, started with the first piece."""

    def __init__(self, count: int) -> None:
        self._count = count

    def map(self, make: Callable[[S], Callable[[P], R]], stated: S, pieces: Iterable[P]) -> Iterator[R]:
        """See ``Engine.map``."""
        pool = ProcessPoolExecutor(self._count, get_context("spawn"), _begin, (make, stated))
        waiting: deque[Future[R]] = deque()
        try:
            for piece in pieces:
                waiting.append(cast("Future[R]", pool.submit(_done, piece)))
                while len(waiting) > self._count * AHEAD or waiting[0].done():
                    yield waiting.popleft().result()
                    if not waiting:
                        break
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise WorkersLostError(
                "a worker process has ended before its work was done: it was killed, or memory ran out",
                "fewer --workers need less memory",
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(make: Callable[[Any], Callable[[Any], Any]], stated: object) -> None:
    """Prepare a worker: it leaves interrupts to the process that started it, and ends with it."""
    global _wanted  # noqa: PLW0603  # a pool has no other place for what a worker keeps
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _wanted = make, stated


def _end_with_parent() -> None:
    # A pool's worker waits at a pipe of which it holds both ends, so that it would outlive a parent that was killed.
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _done(piece: object) -> object:
    global _work  # noqa: PLW0603  # as above
    if _work is None:  # made with the first piece, for what fails while a worker is prepared only breaks the pool
        if _wanted is None:
            raise RuntimeError("the worker was not prepared")
        make, stated = _wanted
        _work = make(stated)
    return _work(piece)
