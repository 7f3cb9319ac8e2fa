"""The executor of litellm's loop: a coroutine that was made in a thread and that nobody comes for is closed.

litellm makes the coroutine of a call in a thread of its loop and awaits it when the thread is done. A call that is
given up in between leaves it behind, and Python warns that it was never awaited, on whatever terminal there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")


class Executor(ThreadPoolExecutor):
    """Threads for a loop; coroutines that they return are closed when they are let go unstarted."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        def work() -> T:
            made = fn(*args, **kwargs)
            return cast("T", _Kept(made)) if asyncio.iscoroutine(made) else made  # it is awaited as the coroutine is

        return super().submit(work)


class _Kept(Coroutine[object, object, object]):
    """A coroutine that is closed when nobody holds it any more."""

    def __init__(self, made: Coroutine[object, object, object]) -> None:
        self._made = made

    def __await__(self) -> Generator[object, object, object]:
        return self._made.__await__()

    def send(self, value: object) -> object:
        return self._made.send(value)

    def throw(self, *what: Any) -> object:  # one to three arguments, in forms that Python gives up
        return self._made.throw(*what)

    def close(self) -> None:
        self._made.close()

    def __del__(self) -> None:
        self._made.close()
