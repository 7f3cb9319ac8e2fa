"""The process in which users' functions run: one request at a time; at its time limit the process is killed.

A function that hangs or ends the process fails only its own metric of one case; the next call starts a new process.
After three such calls in a row the function rests for a minute, so that it does not delay the others.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from pickle import PickleError
from typing import Any, Final, TypeAlias, cast

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.questions.question import Begun, Question, Reply, Steps
from sidejudge.scoring.result.reason import Reason, own, part, quoted
from sidejudge.scoring.result.result import Failed, NotApplicable, Result, Scored, Unavailable
from sidejudge.scoring.trace.span import Json

log = logging.getLogger("sidejudge.python_metrics")

START_S: Final = 60.0
"""Seconds that the import of a function's module may take."""
_IN_A_ROW: Final = 3
_REST_S: Final = 60.0
_MOST_ROUNDS: Final = 20
"""How often a function may ask about one case: it might never end."""
_ROOT: Final = Path(__file__).parents[3]
_RESULTS: Final = (Scored, NotApplicable, Unavailable, Failed)


_Answer: TypeAlias = tuple[str, Any]  # kind and contents, as child.py describes


class FunctionError(SidejudgeError, ValueError):
    """A function that cannot be used; the message says why."""


class _LateError(Exception):
    """No answer in time."""


class FunctionProcess:
    """Runs functions of modules that are installed or lie in ``folders``."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self._folders = [str(folder.absolute()) for folder in folders]
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._end: Callable[[], object] = lambda: None
        self._generation = 0
        self._calls = 0
        self._known: set[str] = set()
        self._late: dict[str, int] = {}
        self._resting: dict[str, float] = {}

    def resolve(self, name: str) -> str:
        """Import a function and return a digest of its source; ``FunctionError`` where there is none."""
        try:
            kind, value = self._request(("resolve", name), START_S)
        except (_LateError, EOFError, OSError) as error:
            cause = "takes longer to import than a minute" if isinstance(error, _LateError) else "ends the process"
            raise FunctionError(f"{name} {cause}") from None
        if kind != "known":
            raise FunctionError(f"{name} cannot be imported: {value}")
        return str(value)

    def call(
        self, name: str, arguments: Mapping[str, Json], case: Case, *, timeout_s: float, passes: Sequence[str] = ()
    ) -> Begun:
        """A function's result on a case, or the steps to it where it asks questions."""
        now = time.monotonic()
        if self._resting.get(name, 0.0) > now:
            return Failed(
                Reason(
                    "{name} rests for a minute, after {n} calls in a row that hung or ended its process",
                    name=part(name),
                    n=_IN_A_ROW,
                )
            )
        # Without what metrics have derived of the case: it is large, and holds what cannot travel.
        clean = case.drawn(case.sampling_probability, case.scenario)

        def begin() -> tuple[int, _Answer | Failed]:
            self._calls += 1
            request = ("call", self._calls, name, dict(arguments), clean)
            return self._calls, self._requested(name, request, timeout_s)

        number, answer = begin()
        if isinstance(answer, Failed):
            return answer
        kind, value = answer
        if kind == "ask":
            return self._steps(name, number, value, begin, timeout_s=timeout_s, passes=passes)
        return result_of(value, passes)

    def _steps(
        self,
        name: str,
        number: int,
        requested: tuple[Question, ...],
        begin: Callable[[], tuple[int, _Answer | Failed]],
        *,
        timeout_s: float,
        passes: Sequence[str],
    ) -> Steps:
        """The steps of a function that asks.

        Another function may have ended the process meanwhile, which is not this one's fault: it is begun again, and
        sent the answers that it had already. Its price is a second run of what comes before its questions.
        """
        generation, given = self._generation, list[tuple[Reply, ...]]()
        while True:
            if len(given) == _MOST_ROUNDS:
                return Failed(
                    Reason("{name} was given up: it asked {n} times and asks again", name=part(name), n=_MOST_ROUNDS)
                )
            given.append(tuple((yield requested)))
            pending, answer = given[-1:], None
            if generation != self._generation or self._connection is None:
                number, answer = begin()
                generation, pending = self._generation, list(given)
            for replies in pending:
                if isinstance(answer, Failed):
                    return answer
                if answer is not None and answer[0] != "ask":
                    break
                answer = self._requested(name, ("send", number, replies), timeout_s)
            if answer is None or isinstance(answer, Failed):
                return answer or Failed(Reason("{name} was given up", name=part(name)))
            kind, value = answer
            if kind != "ask":
                return result_of(value, passes)
            requested = value

    def _requested(self, name: str, request: tuple[object, ...], timeout_s: float) -> _Answer | Failed:
        try:
            # A process that was just started imports the module again first; that is not the function's time.
            if name not in self._known:
                self._request(("resolve", name), START_S)
                self._known.add(name)
            kind, value = self._request(request, timeout_s)
        except (_LateError, EOFError, OSError) as error:
            self._late[name] = self._late.get(name, 0) + 1
            if self._late[name] >= _IN_A_ROW:
                self._late[name], self._resting[name] = 0, time.monotonic() + _REST_S
                log.warning("a function hangs or ends its process; it rests for a minute", extra={"function": name})
            late = isinstance(error, _LateError)
            if late:
                return Failed(Reason("{name} took longer than {most:g} s", name=part(name), most=timeout_s))
            return Failed(Reason("{name} ended its process", name=part(name)))
        except (TypeError, ValueError, AttributeError, RecursionError, ImportError, PickleError) as error:
            return Failed(
                Reason(
                    "{name}: the case or the answer cannot travel: {kind}",
                    name=part(name),
                    kind=own(type(error).__name__),
                )
            )
        self._late[name] = 0
        return (
            Failed(Reason("{name}: {why}", name=part(name), why=quoted(str(value))))
            if kind == "error"
            else (kind, value)
        )

    def _request(self, request: tuple[object, ...], timeout_s: float) -> _Answer:
        with self._lock:
            connection = self._connection or self._start()
            try:
                connection.send(request)
                return _received(connection, timeout_s)
            except (_LateError, EOFError, OSError):
                self._close()
                raise

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        command = [
            sys.executable,
            "-P",
            "-m",
            "sidejudge.integrations.python_metrics.child",
            str(theirs.fileno()),
            *self._folders,
        ]
        # `-P` keeps the working directory off the path, where a module may shadow one of ours; ours lie at the root.
        process = subprocess.Popen(  # noqa: S603  # this interpreter, and a module of ours
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=_environment(), start_new_session=True
        )
        theirs.close()
        self._connection = Connection(ours.detach())
        self._generation += 1
        self._end = weakref.finalize(self, _ended, self._connection, process)
        return self._connection

    def _close(self) -> None:
        self._end()
        self._connection = None
        self._known.clear()

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._close()


def _received(connection: Connection, timeout_s: float) -> _Answer:
    if not connection.poll(timeout_s):
        raise _LateError
    return cast("_Answer", connection.recv())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


def _ended(connection: Connection, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what a function has started ends with it
    process.wait()


def result_of(value: object, passes: Sequence[str] = ()) -> Result:
    """A function's return value as a result: a truth value, a number, a category (by ``passes``), or a result."""
    if isinstance(value, _RESULTS):
        return value
    if isinstance(value, bool):
        return Scored(value=float(value))
    if isinstance(value, int | float) and math.isfinite(value):
        return Scored(value=float(value))
    if isinstance(value, str) and passes:
        return Scored(value=float(value in passes), details={"category": value[:100]})
    if isinstance(value, str):
        return Failed(Reason("the function returned a text; passes has to name the categories that pass"))
    if isinstance(value, float):
        return Failed(Reason("the function returned {value}, which is no result", value=value))
    if value is None:
        return Unavailable(Reason("the function returned nothing"))
    return Failed(Reason("the function returned a {kind}, which is no result", kind=part(type(value).__name__)))
