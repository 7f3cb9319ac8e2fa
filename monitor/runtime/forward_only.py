"""Forwarding without judging: the mode of a sidecar whose other parts cannot start.

An application that exports through the monitor loses its telemetry with it, and one whose sidecar ends again and again
is taken out of its Service. So requests are forwarded even if something keeps judging from starting (a mistake in the
configuration, a damaged or full store, a missing package, the API's address); log, page and metrics show why they are
not judged. Price: judging starts only with the next start of the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from html import escape
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from sidejudge.integrations.otlp.server.body import Receive
from sidejudge.integrations.otlp.server.receiver import Scope
from sidejudge.integrations.otlp.server.response import Send, answer, header
from sidejudge.integrations.otlp.server.traffic import ActiveRequests
from sidejudge.integrations.otlp.wire.receipt import Encoding, Overloaded, Passage, Receipt
from sidejudge.integrations.prometheus.exposition import expose
from sidejudge.integrations.prometheus.families import CONFIG_VALID
from sidejudge.monitor.api.errors import SecurityHeaders
from sidejudge.monitor.config import Config
from sidejudge.monitor.ingest.listeners import PROBES, Listeners
from sidejudge.monitor.ingest.server import AddressError, HttpServer, address, bind

log = logging.getLogger("sidejudge")

_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>sidejudge: not judging</title></head>
<body><h1>{title}</h1>
<p>Judging could not start. Mend this and restart the monitor:</p>
<pre>{cause}</pre></body></html>
"""


class ForwardOnly:
    """Forwards by ``config`` and judges nothing. ``config_valid`` is whether ``cause`` is no mistake in it."""

    def __init__(self, config: Config, cause: str, *, config_valid: bool) -> None:
        self.config, self.cause = config, cause
        self.listeners = Listeners(config, _NotJudged(cause), ActiveRequests())
        self._registry = CollectorRegistry()
        Gauge(CONFIG_VALID.name, CONFIG_VALID.help, registry=self._registry).set(config_valid)
        self._servers: list[HttpServer] = []

    async def start(self) -> Mapping[str, str]:
        """Listen and return the addresses. Raises ``AddressError`` only where requests cannot be received."""
        log.error("judging could not start; %s", self._instead, extra={"cause": self.cause})
        api = SecurityHeaders(self._api)
        otlp_socket = bind(str(self.config.sources.otlp.http), "sources.otlp.http")
        try:
            addresses = {"otlp": address(otlp_socket, self.listeners.scheme), **await self.listeners.start()}
        except AddressError:
            otlp_socket.close()
            raise
        whole = self.config.sources.otlp.http.host == self.config.api.listen.host
        self._servers = [self.listeners.http_server(api, otlp_socket, whole=whole)]
        try:
            api_socket = bind(str(self.config.api.listen), "api.listen")
        except AddressError as error:
            log.warning("probes and metrics are served on the OTLP address alone", extra={"cause": str(error)})
            addresses["api"] = addresses["otlp"]
        else:
            addresses["api"] = address(api_socket)
            self._servers.append(HttpServer(api, api_socket))
        for server in self._servers:
            await server.start()
        log.info("forwarding" if self.config.forward else "refusing requests", extra=addresses)
        return addresses

    @property
    def _instead(self) -> str:
        return "requests are forwarded and not judged" if self.config.forward else "requests are refused"

    async def stop(self) -> None:
        """End in order: open requests are forwarded."""
        await asyncio.gather(*(server.stop() for server in self._servers), self.listeners.stop())
        await self.listeners.close()

    async def _api(self, scope: Scope, _: Receive, send: Send) -> None:
        """Probes report that the process works and takes requests: a restart or less traffic would help nobody."""
        if scope["type"] != "http":
            return
        status, kind = 200, "text/plain; charset=utf-8"
        if scope["path"] in PROBES:
            body = f"ok: {self._instead}\n".encode()
        elif scope["path"] == "/metrics":
            body, kind = expose(self._registry, header(scope, b"accept"))
        else:
            status, kind, body = (
                503,
                "text/html; charset=utf-8",
                _PAGE.format(title=self._instead.capitalize(), cause=escape(self.cause)).encode(),
            )
        await answer(send, status, kind, body)


class _NotJudged:
    """Copies no request; one that is not forwarded is refused and may be sent again."""

    def __init__(self, cause: str) -> None:
        self._cause = cause.partition("\n")[0]

    async def consume(self, _: bytes, __: Encoding = "protobuf", ___: Passage | None = None) -> Receipt:
        raise Overloaded(60.0, f"judging could not start: {self._cause}")

    consume_logs = consume

    async def sent_on(self, _: bytes, __: Encoding = "protobuf", ___: Passage | None = None) -> Receipt:
        return Receipt()
