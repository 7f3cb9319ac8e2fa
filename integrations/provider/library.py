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
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast
from urllib.request import getproxies_environment

from sidejudge.integrations.addresses import stays
from sidejudge.scoring.lexical.shown_text import label

from .errors import HTTP_CLIENTS, ProviderError, ProviderErrorKind

if TYPE_CHECKING:
    import httpx

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
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # else the first call to a Claude asks it for names of headers
    "LITELLM_MODE": "PRODUCTION",  # else its import reads a .env file from somewhere above
}
_NOTHING: Final = [{"role": "user", "content": "nothing"}]
_LOGGERS: Final = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_THREADS: Final = "sidejudge-provider"
_MOST_REDIRECTS: Final = 5
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")


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
        _pass_proxies_by()
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
        for name in HTTP_CLIENTS:
            if name in sys.modules:
                _keep_to_host(sys.modules[name])
        self._module = module
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(Executor(thread_name_prefix=_THREADS))
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name=_THREADS, daemon=True)
        self._thread.start()


def _pass_proxies_by() -> None:
    """Requests to this machine take no proxy of the environment, as those of our own clients."""
    known = getproxies_environment()
    if not known or (without := known.get("no", "")) == "*":
        return
    name = "no_proxy" if "no_proxy" in os.environ else "NO_PROXY"
    os.environ[name] = ",".join(filter(None, dict.fromkeys([*without.replace(" ", "").split(","), *_THIS_MACHINE])))


def _keep_to_host(library: ModuleType) -> None:
    """Follow redirects of litellm's requests on the host that was asked alone, with each of its clients.

    They would take contents to any host, and keys that have a header of their own (Anthropic, Azure, Gemini).
    Requests of other threads, and those that follow none, stay as they are.
    """
    at_once, waiting = library.Client.send, library.AsyncClient.send
    if getattr(at_once, "keeps_to_host", False):
        return

    def send(client: httpx.Client, request: httpx.Request, **options: object) -> httpx.Response:
        if not _may_follow(client, options):
            plain: httpx.Response = at_once(client, request, **options)
            return plain
        for _ in range(_MOST_REDIRECTS):
            response: httpx.Response = at_once(client, request, **{**options, "follow_redirects": False})
            if response.next_request is None:
                return response
            response.close()
            request = _on_the_same_host(request, response.next_request)
        raise _redirected("over and over again")

    async def send_async(client: httpx.AsyncClient, request: httpx.Request, **options: object) -> httpx.Response:
        if not _may_follow(client, options):
            plain: httpx.Response = await waiting(client, request, **options)
            return plain
        for _ in range(_MOST_REDIRECTS):
            response: httpx.Response = await waiting(client, request, **{**options, "follow_redirects": False})
            if response.next_request is None:
                return response
            await response.aclose()
            request = _on_the_same_host(request, response.next_request)
        raise _redirected("over and over again")

    send.keeps_to_host = True  # type: ignore[attr-defined]  # a mark on a function
    library.Client.send, library.AsyncClient.send = send, send_async


def _may_follow(client: httpx.Client | httpx.AsyncClient, options: Mapping[str, object]) -> bool:
    """Whether a request is litellm's, and its client is to follow redirects."""
    stated = options.get("follow_redirects")
    follows = stated if isinstance(stated, bool) else client.follow_redirects
    return follows and threading.current_thread().name.startswith(_THREADS)


def _on_the_same_host(request: httpx.Request, following: httpx.Request) -> httpx.Request:
    """The request that follows. Raises ``ProviderError`` where it leads to another host or port, or away from TLS."""
    if not stays(str(request.url), str(following.url)):
        named = f"{following.url.scheme}://{following.url.netloc.decode()}"
        raise _redirected(f"to {label(named, 100)}, to which nothing is sent")
    return following


def _redirected(where: str) -> ProviderError:
    why = f"it redirects {where}; set api_base to the final address"
    return ProviderError(ProviderErrorKind.UNREACHABLE, connection=why)


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
