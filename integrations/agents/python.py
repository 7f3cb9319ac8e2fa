"""An agent that is a Python callable: ``python:module:function``, called with the test's input.

What is named may be a function, synchronous or asynchronous, or an object with a method ``run`` (as in seed 004). A
synchronous one runs in a thread of its own. A thread cannot be stopped: one that outlasts its time limit goes on by
itself, and after 64 of them nothing more is called, so that a callable that always hangs does not fill the machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Self

from sidejudge.scoring.lexical.nearest import nearest
from sidejudge.scoring.lexical.shown_text import label, struck

from . import AgentError, AgentReply, NoSuchAgentError, Request

MAX_ABANDONED = 64
"""Calls that have not returned and that nobody waits for any more."""
PREFIX = "python:"


class PythonAgent:
    """Calls a callable of this process with each input."""

    def __init__(self, spec: str) -> None:
        self.name = spec
        self._call = _found(spec)
        self._abandoned = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def ask(self, request: Request) -> AgentReply:
        """The callable's result; ``AgentError`` when it raises."""
        if self._abandoned >= MAX_ABANDONED:
            raise AgentError(f"not called: {MAX_ABANDONED} earlier calls have not returned")
        started = time.perf_counter()
        try:
            if inspect.iscoroutinefunction(self._call):
                stated = await self._call(request.input)
            else:
                stated = await self._in_thread(partial(self._call, request.input))
                if inspect.isawaitable(stated):
                    stated = await stated
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise _raised(error) from None  # something of its own was cancelled, not this call
        except AgentError:
            raise
        except (Exception, SystemExit) as error:
            raise _raised(error) from error
        return AgentReply(stated=stated, latency_ms=(time.perf_counter() - started) * 1000)

    async def _in_thread(self, call: Callable[[], object]) -> object:
        """Call in a thread that does not keep the process from ending."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[object] = loop.create_future()
        context = contextvars.copy_context()

        def settle(settled: Callable[[], None]) -> None:
            if done.done():
                self._abandoned -= 1
            else:
                settled()

        def work() -> None:
            try:
                settled = partial(done.set_result, context.run(call))
            except BaseException as error:  # noqa: BLE001  # whatever a stranger's code raises belongs to this call
                settled = partial(done.set_exception, _raised(error))
            with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits for this any more
                loop.call_soon_threadsafe(settle, settled)

        threading.Thread(target=work, name="agent", daemon=True).start()
        try:
            return await done
        finally:
            self._abandoned += done.cancelled()


def _raised(error: BaseException) -> AgentError:
    return AgentError(f"it raised {type(error).__name__}: {label(struck(str(error)), 300)}")


def _found(spec: str) -> Callable[..., object]:
    module_name, _, path = spec.removeprefix(PREFIX).partition(":")
    if not module_name or not path:
        raise NoSuchAgentError(f"{spec!r} does not name a module and a function", "write python:module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last, so that nothing of the folder takes the place of what we import ourselves
    try:
        found: object = import_module(module_name)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise NoSuchAgentError(
                f"there is no module {error.name!r}", f"looked in {here} and where Python looks; set PYTHONPATH"
            ) from None
        raise NoSuchAgentError(
            f"the module {module_name!r} cannot be imported: {type(error).__name__}: {error}", "mend the module"
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            names = tuple(each for each in dir(found) if not each.startswith("_"))
            raise NoSuchAgentError(
                f"{module_name!r} has no {path!r}{nearest(name, names) if names else ''}",
                "write python:module:function",
            )
        found = getattr(found, name)
    if inspect.isclass(found):
        raise NoSuchAgentError(f"{spec!r} is a class", "name a function, or an object with a method run")
    call: Callable[..., object] | None = found if callable(found) else getattr(found, "run", None)
    if not callable(call):
        raise NoSuchAgentError(f"{spec!r} is {type(found).__name__} and cannot be called", "name a function")
    return call
