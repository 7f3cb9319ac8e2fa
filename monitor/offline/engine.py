"""Engine: processes the pieces of a command's input in this process, in several processes, or on a Ray cluster.

Results and their order are the same everywhere. A piece whose worker or Ray node is lost is processed again elsewhere:
its result counts only once it has arrived here. The driver's output is the record of a run, so that a run with a killed
driver goes on.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice, repeat
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread
from typing import Any, Final, Protocol, Self, TypeVar, cast
from urllib.parse import urlsplit

from sidejudge.scoring.errors import RemediedError

P = TypeVar("P")
R = TypeVar("R")

AHEAD: Final = 8
"""Pieces for each processor that are submitted before the oldest result is there: a slow piece stops none."""


class ElsewhereError(RemediedError):
    """Other processes cannot work."""


class WorkersLostError(ElsewhereError):
    """Other worker processes were lost: their earlier results stay, and the same command goes on."""


class Engine(Protocol):
    """Processes pieces. At most ``AHEAD`` pieces for each processor are held at a time."""

    def map(self, work: Callable[[P], R], pieces: Iterable[P]) -> Iterator[R]:
        """The results of all pieces, in the order of the pieces.

        Args:
            work: Called with each piece. It is sent to each process once, and keeps there what it makes.
            pieces: They and their results are pickled where other processes work.

        Raises:
            ElsewhereError: The other processes cannot start.
            WorkersLostError: They were lost while they worked.
        """
        ...


class Here:
    """This process alone."""

    def map(self, work: Callable[[P], R], pieces: Iterable[P]) -> Iterator[R]:
        """See ``Engine.map``."""
        return map(work, pieces)


_work: Callable[[Any], Any] | None = None


class Processes:
    """``count`` processes of this machine, started with the first piece."""

    def __init__(self, count: int) -> None:
        self._count = count

    def map(self, work: Callable[[P], R], pieces: Iterable[P]) -> Iterator[R]:
        """See ``Engine.map``."""
        pool = ProcessPoolExecutor(self._count, get_context("spawn"), _begin, (work,))
        waiting: deque[Future[R]] = deque()
        try:
            for piece in pieces:
                waiting.append(cast("Future[R]", pool.submit(_done, piece)))
                while waiting and (len(waiting) > self._count * AHEAD or waiting[0].done()):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise WorkersLostError(
                "a worker process has ended before its work was done: it was killed, or memory ran out",
                "fewer --workers need less memory",
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _begin(work: Callable[[Any], Any]) -> None:
    """Prepare a worker: it leaves interrupts to the process that started it, and ends with it."""
    global _work  # noqa: PLW0603  # a pool has no other place for what a worker keeps
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _work = work


def _end_with_parent() -> None:
    # A pool's worker waits at a pipe of which it holds both ends, so that it would outlive a parent that was killed.
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _done(piece: object) -> object:
    if _work is None:
        raise RuntimeError("the worker was not prepared")
    return _work(piece)


_KNOCK_S: Final = 5.0
LOOK_S: Final = 2.0
"""How long to wait for a result before checking whether the cluster still answers, in s."""
_LOST_S: Final = 10.0
"""The cluster counts as lost when its head has not answered, or has had no processor, for this many seconds.

Ray itself ends the process after a minute, with an exit code that means something else.
"""
_LATEST: Final = Path("/tmp/ray/ray_current_cluster")  # noqa: S108  # where Ray keeps what ``auto`` stands for
_PIECES: Final = 4
"""Pieces in one task: a worker idles for about 10 ms between two tasks, a tenth of the time that one piece takes."""
_RETRIES: Final = 3
"""How often a piece is retried after its worker or node was lost."""


class RayCluster:
    """Works on the cluster at ``address``; None starts Ray on this machine, with ``count`` processors."""

    def __init__(self, address: str | None, count: int | None) -> None:
        self._address, self._count = address, count
        self._ray: Any = None
        self._head, self._missing_s = "", 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ray is not None:
            self._ray.shutdown()

    def map(self, work: Callable[[P], R], pieces: Iterable[P]) -> Iterator[R]:
        """See ``Engine.map``. Ray starts with the first call."""
        self.start()
        ray = self._ray
        try:
            cpus = int(ray.cluster_resources().get("CPU", 1))
            remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_done_on_ray)
            name, held, workers = uuid.uuid4().hex, [ray.put(work)], max(1, self._count or cpus)
            waiting: deque[tuple[int, Any]] = deque()
            for task in _tasks(pieces, workers):
                waiting.append((len(task), remote.remote(name, held, *task)))
                while sum(count for count, _ in waiting) > workers * AHEAD:
                    yield from self._results(waiting.popleft()[1])
            while waiting:
                yield from self._results(waiting.popleft()[1])
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            raise WorkersLostError(
                f"a piece was lost {_RETRIES + 1} times: {type(error).__name__}", "look at the cluster's memory"
            ) from None

    def _results(self, task: object) -> list[R]:
        """The results of a task. Waits for as long as the cluster is there."""
        while True:
            try:
                return cast("list[R]", self._ray.get(task, timeout=LOOK_S))
            except self._ray.exceptions.GetTimeoutError:
                self.look()

    def look(self) -> None:
        """Check whether the cluster is there. Raises ``WorkersLostError`` after ``_LOST_S`` without it."""
        try:
            _knock(self._head)
            missing = "" if self._ray.cluster_resources().get("CPU") else "has no processor left"
        except OSError:
            missing = "does not answer any more"
        if not missing:
            self._missing_s = 0.0
        elif not self._missing_s:
            self._missing_s = time.monotonic()
        elif time.monotonic() - self._missing_s > _LOST_S:
            raise WorkersLostError(f"the cluster at {self._head} {missing}", "look at its head and nodes")

    def start(self) -> None:
        """Start Ray, or find its cluster, unless that is done. Raises ``ElsewhereError``."""
        if self._ray is not None:
            return
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
            _knock(self._address)
            ray.init(**options)
        except (OSError, RuntimeError, ValueError) as error:
            raise ElsewhereError(
                f"Ray cannot be reached at {self._address or 'this machine'}: {str(error)[:300]}",
                "name the head's address, such as auto or ray-head:6379, or leave out --address",
            ) from None
        self._ray = ray
        self._head = self._address or ray.get_runtime_context().gcs_address


def _knock(address: str | None) -> None:
    """Raise ``OSError`` where nothing listens, because Ray itself tries for minutes, uninterruptibly."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or (_LATEST.read_text() if _LATEST.is_file() else None)
    if address is None:
        return
    place = urlsplit(address if "://" in address else f"//{address}")
    if place.hostname and place.port:
        socket.create_connection((place.hostname, place.port), timeout=_KNOCK_S).close()


def _tasks(pieces: Iterable[P], workers: int) -> Iterator[Sequence[P]]:
    """The pieces in tasks: first two of one piece for each worker, so that few pieces reach all; then larger ones."""
    rest = iter(pieces)
    for size in chain(repeat(1, 2 * workers), repeat(_PIECES)):
        if not (task := list(islice(rest, size))):
            return
        yield task


_held: dict[str, Callable[[Any], Any]] = {}
"""The function that a Ray process applies, by the name of its call of ``map``. It holds the last one only."""


def _done_on_ray(name: str, held: Sequence[Any], *task: object) -> list[object]:
    """Process the pieces of one task in a Ray process. The function stays in the process for the next task."""
    if name not in _held:
        import ray  # noqa: PLC0415  # an extra

        _held.clear()
        _held[name] = ray.get(held[0])
    return [_held[name](piece) for piece in task]
