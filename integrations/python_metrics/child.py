"""The program that runs users' functions in its own process. ``process.py`` starts it; it ends with its socket.

A request is ``("resolve", name)``, ``("call", id, name, arguments, case)`` or ``("send", id, replies)``; an answer is
``("known", digest)``, ``("result", value)``, ``("ask", questions)`` or ``("error", cause)``.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from multiprocessing.connection import Connection
from pickle import PickleError
from types import GeneratorType
from typing import Any, TypeAlias

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.metrics.metric import Metric
from sidejudge.scoring.questions.question import Question, Reply
from sidejudge.scoring.trace.span import Json

GROUP = "sidejudge.metrics"
"""Entry points whose objects are functions of a case, or metrics."""
_MOST_WAITING = 1000
"""Functions that wait for answers; beyond it the oldest is given up."""
_LIMIT, _SHOWN = 300, 60
Steps: TypeAlias = Generator[object, object, object]
"""What somebody else's function yields is checked where it arrives."""


def main() -> None:
    """Serve requests until the other end is closed."""
    connection = Connection(int(sys.argv[1]))
    sys.path += sys.argv[2:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent closes the socket
    os.dup2(2, 1)  # what a function prints is no answer
    waiting: dict[int, Steps | _Single] = {}
    while True:
        try:
            request = connection.recv()
        except (EOFError, ConnectionError):
            return
        answer = _answered(request, waiting)
        try:
            connection.send(answer)
        except (TypeError, ValueError, AttributeError, RecursionError, ImportError, PickleError) as error:
            connection.send(("error", f"what the function returned cannot travel: {type(error).__name__}"))


def _answered(request: tuple[Any, ...], waiting: dict[int, Steps | _Single]) -> tuple[str, object]:
    try:
        kind, *rest = request
        if kind == "resolve":
            return "known", _digest(_found(rest[0]))
        return _called(*rest, waiting=waiting) if kind == "call" else _sent(*rest, waiting=waiting)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a function raises is that metric's failure
        return "error", f"{type(error).__name__}: {label(str(error), _LIMIT)}"


def _called(
    number: int, name: str, arguments: Mapping[str, Json], case: Case, *, waiting: dict[int, Steps | _Single]
) -> tuple[str, object]:
    found = _found(name)
    begun = found.start(case) if isinstance(found, Metric) else found(case, **arguments)
    if inspect.iscoroutine(begun):
        from asyncio import run  # noqa: PLC0415  # most functions do without it

        begun = run(begun)
    if not isinstance(begun, GeneratorType):
        return "result", _scalar(begun)
    return _advanced(number, begun, None, waiting)


def _sent(number: int, replies: tuple[Reply, ...], *, waiting: dict[int, Steps | _Single]) -> tuple[str, object]:
    steps = waiting.pop(number, None)
    if steps is None:
        return "error", "the function was given up while it waited for answers"
    return _advanced(number, steps, replies, waiting)


def _advanced(
    number: int, steps: Steps | _Single, replies: tuple[Reply, ...] | None, waiting: dict[int, Steps | _Single]
) -> tuple[str, object]:
    """The next questions of a generator, or its result. It may yield one question, and is then sent one answer."""
    try:
        requested = next(steps) if replies is None else steps.send(replies)
    except StopIteration as done:
        return "result", _scalar(done.value)
    single = isinstance(requested, Question)
    questions = (requested,) if single else requested
    if not isinstance(questions, list | tuple) or not all(isinstance(each, Question) for each in questions):
        raise TypeError(f"the function yielded {label(repr(requested), _SHOWN)}, which is no question")
    waiting[number] = _Single(steps) if single and not isinstance(steps, _Single) else steps
    if len(waiting) > _MOST_WAITING:
        del waiting[next(iter(waiting))]
    return "ask", tuple(questions)


def _scalar(value: object) -> object:
    """The plain number or truth value of a numpy or torch scalar; anything else unchanged."""
    return item() if callable(item := getattr(value, "item", None)) else value


class _Single:
    """Adapts a generator that yields one question at a time to callers that answer several."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def __next__(self) -> object:
        return next(self._steps)

    def send(self, replies: tuple[Reply, ...]) -> object:
        return self._steps.send(replies[0])


@cache
def _found(name: str) -> Callable[..., object] | Metric:
    """The function ``module:name``, or the installed one of a name."""
    module, colon, attribute = name.partition(":")
    if colon:
        found: object = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    else:
        point = next((each for each in entry_points(group=GROUP) if each.name == name), None)
        if point is None:
            raise LookupError(f"no installed package has the entry point {name!r} in {GROUP}")
        found = point.load()
    if not callable(found) and not isinstance(found, Metric):
        raise TypeError(f"{name} is no function")
    return found


def _digest(found: Callable[..., object] | Metric) -> str:
    """A few digits of the function's source: a changed function has another version."""
    function = found.measure if isinstance(found, Metric) else found
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr(function)
    return hashlib.sha256(source.encode()).hexdigest()[:8]


if __name__ == "__main__":
    main()
