"""An HTTP server on a socket that is bound already, inside an event loop that is not its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import uvicorn

from sidejudge.integrations.otlp.server.admission import ConnectionLimits
from sidejudge.integrations.otlp.server.receiver import AsgiApp
from sidejudge.monitor.config.sources import TlsSection
from sidejudge.monitor.config.units import Address
from sidejudge.scoring.errors import SidejudgeError

from .http_connection import HttpConnection, OpenConnections

log = logging.getLogger("sidejudge")

DRAIN_S: Final = 1
"""Seconds that open requests get when the monitor ends; a sidecar has about two in all."""
_SWEEP_S: Final = 1.0
"""Seconds between two checks of the connections' deadlines."""
_NO_FILES_S: Final = 0.1
"""Seconds until a connection is accepted again after one that could not be."""


class AddressError(SidejudgeError):
    """An address that cannot be listened on: in use, not of this machine, or not permitted."""


def bind(listen: str, key: str) -> socket.socket:
    """Bind a listening socket to ``host:port``. Raises ``AddressError`` with the configuration key ``key``."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(1024)
        listener.setblocking(False)
    except (OSError, TypeError) as error:  # TypeError: the name of the host cannot be encoded
        listener.close()
        raise AddressError(f"{key}: cannot listen on {listen}: {getattr(error, 'strerror', error)}") from error
    return listener


def address(listener: socket.socket, scheme: str = "http") -> str:
    """Return ``http://host:port`` as a person on this machine would type it."""
    host, port = listener.getsockname()[:2]
    return f"{scheme}://{Address(host, port).local}"


class HttpServer:
    """One ASGI application on one bound socket. ``start`` returns once it accepts; ``stop`` drains and closes.

    ``on_refused`` is called with status and cause of each request that is refused before the application sees it.
    """

    def __init__(
        self,
        app: AsgiApp,
        listener: socket.socket,
        tls: TlsSection | None = None,
        limits: ConnectionLimits | None = None,
        on_refused: Callable[[int, str], None] | None = None,
    ) -> None:
        limits = limits or ConnectionLimits()
        self.connections = OpenConnections(limits, on_refused)
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            # A caller's address decides what it is shown: a header that anybody can send must not replace it.
            proxy_headers=False,
            timeout_keep_alive=math.ceil(limits.idle_s),
            timeout_graceful_shutdown=DRAIN_S,
            backlog=1024,
            ssl_certfile=tls.certificate if tls else None,
            ssl_keyfile=tls.key if tls else None,
            ssl_ca_certs=str(tls.client_ca) if tls and tls.client_ca else None,
            ssl_cert_reqs=ssl.CERT_REQUIRED if tls and tls.client_ca else ssl.CERT_NONE,
        )
        self._server = _Server(config, self.connections)
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


class _Certificate:
    """Has a server show the certificate that its files hold now: they are renewed while it runs."""

    def __init__(self, config: uvicorn.Config) -> None:
        self._config = config
        self._files = [Path(file) for file in (config.ssl_certfile, config.ssl_keyfile) if file]
        self._seen: list[int] = []
        self._seen = self._stamps()

    def _stamps(self) -> list[int]:
        with contextlib.suppress(OSError):  # one is just being replaced
            return [file.stat().st_mtime_ns for file in self._files]
        return self._seen

    def renew(self) -> None:
        """Read files that have changed; new connections see them. Those that do not fit leave the old in force."""
        context, stamps = self._config.ssl, self._stamps()
        if context is None or stamps == self._seen:
            return
        self._seen = stamps
        try:
            for each in (ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), context):
                each.load_cert_chain(self._files[0], self._files[-1])
        except (OSError, ValueError) as error:
            log.warning(
                "a certificate that has changed cannot be used; the one before stays in force",
                extra={"file": str(self._files[0]), "cause": str(error)[:200]},
            )
        else:
            log.info("a certificate has changed and is in force", extra={"file": str(self._files[0])})


class _TlsListener:
    """Accepts connections over TLS. They are bounded from then on, not from the end of their greetings."""

    def __init__(
        self,
        listener: socket.socket,
        connection: Callable[[], HttpConnection],
        context: ssl.SSLContext,
        connections: OpenConnections,
    ) -> None:
        self._listener, self._connection, self._context = listener, connection, context
        self._connections = connections
        self._accepting = asyncio.create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(self._listener)
            except OSError:  # it has gone already, or there are no files for it
                await asyncio.sleep(_NO_FILES_S)
                continue
            self._connections.greets(loop.create_task(self._greet(accepted)), str(peer[0]))
            await asyncio.sleep(0)  # a flood of them is accepted one at a time

    async def _greet(self, accepted: socket.socket) -> None:
        timeout_s = self._connections.limits.head_s
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._connection, accepted, ssl=self._context, ssl_handshake_timeout=timeout_s
            )
        except OSError:  # it is no greeting, took too long, or the peer has gone
            accepted.close()

    def close(self) -> None:
        for each in (self._accepting, *self._connections.greetings):
            each.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._accepting, *self._connections.greetings, return_exceptions=True)


class _Server(uvicorn.Server):
    """Leaves signals to the monitor, which ends its parts in their order, and bounds connections.

    uvicorn's own loop wakes ten times a second to update headers that are not sent here; this one wakes once.
    """

    def __init__(self, config: uvicorn.Config, connections: OpenConnections) -> None:
        super().__init__(config)
        self._connections = connections
        self._certificate = _Certificate(config)
        self._ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        loop, config, connections = asyncio.get_running_loop(), self.config, self._connections

        def connection() -> HttpConnection:
            return HttpConnection(
                config=config, server_state=self.server_state, app_state={}, _loop=loop, connections=connections
            )

        self.servers = [
            _TlsListener(each, connection, config.ssl, connections)  # type: ignore[misc]  # all that is asked of it
            if config.ssl
            else await loop.create_server(connection, sock=each, backlog=config.backlog)
            for each in sockets or ()
        ]
        self.started = True

    async def main_loop(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            self._connections.expire(loop.time())
            self._certificate.renew()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _SWEEP_S)

    def end(self) -> None:
        """Accept no more requests, answer the open ones, and end."""
        self.should_exit = True
        self._ending.set()
