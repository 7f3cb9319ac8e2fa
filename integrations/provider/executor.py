"""The executor of litellm's loop: a coroutine that was made in a thread and that nobody comes for is closed.

litellm makes the coroutine of a call in a thread of its loop and awaits it when the thread is done. A call that is
given up in between leaves it behind, and Python warns that it was never awaited, on whatever terminal there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class Executor(ThreadPoolExecutor):
    """Threads for a loop; coroutines that they return are closed when they are let go unstarted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        def work() -> Any:
            made = fn(*args, **kwargs)
            return _Kept(made) if asyncio.iscoroutine(made) else made

        return super().submit(work)


class _Kept(Coroutine[Any, Any, Any]):
    """A coroutine that is closed when nobody holds it any more."""

    def __init__(self, made: Coroutine[Any, Any, Any]) -> None:
        self._made = made

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._made.__await__()

    def send(self, value: Any) -> Any:
        return self._made.send(value)

    def throw(self, *what: Any) -> Any:
        return self._made.throw(*what)

    def close(self) -> None:
        self._made.close()

    def __del__(self) -> None:
        self._made.close()
