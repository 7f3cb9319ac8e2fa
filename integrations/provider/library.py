"""litellm, loaded when it is first needed, in a thread with an event loop of its own.

Its import takes seconds and 150 MB, its first call half a second more, and each call some milliseconds of computing:
none of that may hold up the loop that takes traces in. What it leaves behind (a logging task, open connections) lives
in the thread's loop and ends with it. One object serves the judge and remote embeddings alike.

litellm makes the coroutine of a call in a thread of its loop and awaits it when the thread is done. A call that is
given up in between leaves it behind, and Python would warn on whatever terminal there is that it was never awaited: so
the loop has an executor that closes such a coroutine.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from types import ModuleType
from typing import Any, Final, ParamSpec, TypeVar, cast

from .errors import ProviderError, ProviderErrorKind

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


_ENVIRONMENT: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else its import asks the network for prices
    "LITELLM_MODE": "PRODUCTION",  # else its import reads a .env file from somewhere above
}
_NOTHING: Final = [{"role": "user", "content": "nothing"}]
_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


class LiteLLM:
    """litellm behind one door. Making it does nothing; ``start`` or the first ``run`` loads it; ``close`` ends it.

    Only to be used from one event loop; after ``close`` it may be started again.
    """

    def __init__(self) -> None:
        self._starting: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._module: ModuleType | None = None

    async def start(self) -> None:
        """Load it, now rather than with the first case. Raises ``ProviderError`` where it is not installed."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(asyncio.to_thread(self._load))
        try:
            await asyncio.shield(self._starting)
        except ProviderError:
            self._starting = None
            raise

    async def run(self, work: Callable[[ModuleType], Awaitable[T]]) -> T:
        """Await ``work(litellm)`` in the thread. What it raises is raised here; cancelling cancels it there."""
        await self.start()
        module = self._module
        assert self._loop is not None and module is not None  # noqa: S101, PT018  # start has made both

        async def working() -> T:
            return await work(module)

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(working(), self._loop))

    async def close(self) -> None:
        """Close its connections and end the thread; idempotent. Calls that run are cancelled."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._loop is not None and self._thread is not None and self._module is not None:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = self._starting = None
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_tidy(self._module), loop))
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join)

    def _load(self) -> None:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its own code, which only its authors can mend
            try:
                module: Any = import_module("litellm")  # its attributes are set, which no type of a module has
            except ModuleNotFoundError as error:
                raise ProviderError(ProviderErrorKind.NOT_INSTALLED, "pip install 'sidejudge[judge]'") from error
            # A call that asks nobody, for it loads half of itself with the first.
            module.completion(model="openai/gpt-4o-mini", messages=_NOTHING, api_key="none", mock_response="nothing")
        module.telemetry = False  # older versions have it
        module.DEFAULT_MAX_RETRIES = 0  # embeddings take a max_retries of 0 for none given, and then this
        module.suppress_debug_info = True  # it prints advice to standard output
        # Pydantic's warnings about what a provider answered quote it.
        warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
        for name in _LOGGERS:  # they would log requests, which hold contents of traces
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._module = module
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(Executor(thread_name_prefix="sidejudge-provider"))
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="sidejudge-provider", daemon=True)
        self._thread.start()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _tidy(module: ModuleType) -> None:
    """Cancel what runs in this loop and close the connections that litellm keeps for it."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    closing = getattr(module, "close_litellm_async_clients", None)
    if closing is None:
        cleanup = import_module("litellm.llms.custom_httpx.async_client_cleanup")
        closing = cleanup.close_litellm_async_clients
    await closing()
    module.in_memory_llm_clients_cache.flush_cache()
    await asyncio.sleep(0.05)  # transports close in the loop's next turns
