"""Calls to a sink or a notifier of an installed package: in a thread of their own, one at a time, with a time limit.

Code of other packages may block, raise or never return. None of that reaches the event loop: a call that takes too long
is given up, and until its thread has ended no other call is begun. A thread cannot be stopped; it is a daemon, so that
the process ends without it.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.trace.span import Json

CALL_S: Final = 30.0
"""Seconds that one call may take, the making of the object included."""
_LIMIT: Final = 300


class PluginObject:
    """One method of an object that ``factory(**arguments)`` makes at the first call.

    Args:
        name: What it is called in messages.
        factory: The object of the entry point: a class, or a function that returns an object.
        arguments: What the configuration gives it.
        method: The method that is called, with one argument.
        timeout_s: Seconds that a call may take; above 0.
    """

    def __init__(
        self, name: str, factory: object, arguments: Mapping[str, Json], method: str, *, timeout_s: float = CALL_S
    ) -> None:
        self.name, self._factory, self._arguments, self._method = name, factory, dict(arguments), method
        self._timeout_s = timeout_s
        self._call: Callable[[object], object] | None = None
        self._busy = False

    async def call(self, argument: object) -> object:
        """Call the method, and return what it returns; a coroutine has an event loop of its own for each call.

        Raises:
            RefusedError: The plugin refuses the argument for good.
            DestinationUnreachableError: Anything else that it raises, and a call that takes too long.
        """
        if self._busy:
            raise DestinationUnreachableError(f"{self.name} has not returned from its last call")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

        def settle(returned: object, raised: BaseException | None) -> None:
            if not done.done():
                done.set_result((returned, raised))

        def work() -> None:
            returned, raised = None, None
            try:
                returned = self._made()(argument)
                if inspect.iscoroutine(returned):
                    returned = asyncio.run(returned)
            except BaseException as error:  # noqa: BLE001  # whatever a plugin raises is its own failure
                raised = error
            self._busy = False
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, returned, raised)

        self._busy = True
        threading.Thread(target=work, daemon=True, name=f"plugin {self.name}").start()
        try:
            returned, raised = await asyncio.wait_for(done, self._timeout_s)
        except TimeoutError:
            raise DestinationUnreachableError(f"{self.name} took longer than {self._timeout_s:g} s") from None
        if isinstance(raised, DestinationUnreachableError | RefusedError):
            raise raised
        if raised is not None:
            cause = f"{type(raised).__name__}: {label(str(raised), _LIMIT)}"
            raise DestinationUnreachableError(f"{self.name}: {cause}") from raised
        return returned

    def _made(self) -> Callable[[object], object]:
        if self._call is None:
            if not callable(self._factory):
                raise TypeError(f"is no class and no function, but {type(self._factory).__name__}")
            self._call = getattr(self._factory(**self._arguments), self._method)
        return self._call
