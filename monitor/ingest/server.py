"""Server: uvicorn on addresses that were bound beforehand, inside an event loop that is not its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import uvicorn

from monitor.config.sources import TlsSection

DRAIN_S = 1
"""Seconds that open requests get when the monitor ends; a sidecar has about two in all."""


class AddressError(Exception):
    """An address to listen on that cannot be had: taken, not ours, or not permitted."""


def bind(listen: str, key: str) -> socket.socket:
    """A listening socket on ``host:port``; ``key`` is the configuration key, for the error message."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(1024)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise AddressError(f"{key}: cannot listen on {listen}: {error.strerror}") from error
    return listener


def address(listener: socket.socket, scheme: str = "http") -> str:
    """``http://host:port`` as a person on this machine would type it."""
    host, port = listener.getsockname()[:2]
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - a name for it, not a bind
    host = local.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class HttpServer:
    """One ASGI application on one bound socket. ``start`` returns once it accepts; ``stop`` drains and closes."""

    def __init__(self, app: Any, listener: socket.socket, tls: TlsSection | None = None) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=DRAIN_S,
            backlog=1024,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
            ssl_ca_certs=str(tls.client_ca) if tls and tls.client_ca else None,
            ssl_cert_reqs=ssl.CERT_REQUIRED if tls and tls.client_ca else ssl.CERT_NONE,
        )
        self._server = _Quiet(config)
        self._listener = listener
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
                raise RuntimeError("the server ended while it started")
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        self._server.end()
        if self._serving:
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving


class _Quiet(uvicorn.Server):
    """Leaves signals to the monitor, which ends its parts in their order, and sleeps until then.

    uvicorn looks ten times a second whether it is to end; there is nothing else that it would do with our settings.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self._ending.wait()

    def end(self) -> None:
        """Take nothing more, let out what is under way, and end."""
        self.should_exit = True
        self._ending.set()
