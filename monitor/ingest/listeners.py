"""The listeners that applications send to: receivers of both protocols, and forwarding (sidecar mode)."""

from __future__ import annotations

import os
import socket
from typing import Protocol

from integrations.otlp.proxy.forward import Forward
from integrations.otlp.proxy.upstream import Upstream
from integrations.otlp.proxy.web_pages import WebPages
from integrations.otlp.server.active_requests import ActiveRequests
from integrations.otlp.server.admission import Admission
from integrations.otlp.server.body import Receive
from integrations.otlp.server.cors import Cors
from integrations.otlp.server.grpc_receiver import GrpcReceiver
from integrations.otlp.server.paths import signal_of
from integrations.otlp.server.receiver import AsgiApp, OtlpReceiver, Scope
from integrations.otlp.server.response import Send
from integrations.otlp.server.traffic import Forwarding, Receiving
from integrations.otlp.wire.receipt import Encoding, Receipt
from integrations.peers import PATH as PEERS
from monitor.config import Config
from monitor.config.forward import ForwardSection
from monitor.config.sources import OtlpSection

from .http_connection import ConnectionLimits, half_of_open_files
from .intake import IntakeCounts
from .server import DRAIN_S, AddressError, HttpServer, bind
from .tls import check_authority, read

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # a name for it, not a bind

PROBES = frozenset({"/livez", "/readyz", "/startupz"})
"""Paths that the OTLP address always answers, and that need no credentials: they show nothing but yes or no."""


class RequestConsumer(Protocol):
    """Takes requests for spans and for log records, as the intake does."""

    async def consume(self, body: bytes, encoding: Encoding, /) -> Receipt: ...
    async def consume_logs(self, body: bytes, encoding: Encoding, /) -> Receipt: ...


class Listeners:
    """Receivers of exports, and the server of the OTLP address. ``active`` counts forwarded requests under way."""

    def __init__(self, config: Config, intake: RequestConsumer, active: ActiveRequests) -> None:
        otlp = config.sources.otlp
        self._config = config
        self.peers: AsgiApp | None = None
        """The ASGI application that other monitors talk to; None where there are none."""
        self.certificates = read(otlp.tls) if otlp.tls else None
        if config.api.tls:
            read(config.api.tls, "api.tls")
        cors = Cors(otlp.cors_origins) if otlp.cors_origins else None
        self.receiver = OtlpReceiver(
            intake.consume,
            otlp.max_request_bytes,
            logs=intake.consume_logs,
            gate=_gate(otlp),
            cors=cors,
        )
        self.forward = _forward(config.forward, self.receiver, cors, active) if config.forward else None
        self._grpc = (
            GrpcReceiver(
                self.receiver,
                intake.consume,
                intake.consume_logs,
                self.forward,
                idle_s=otlp.idle_timeout.seconds,
                handshake_s=otlp.head_timeout.seconds,
                body_s=otlp.body_timeout.seconds,
            )
            if otlp.grpc
            else None
        )

    @property
    def scheme(self) -> str:
        """``https`` if the OTLP address is encrypted."""
        return "https" if self.certificates else "http"

    def http_server(self, api: AsgiApp, listener: socket.socket, *, whole: bool) -> HttpServer:
        """The server of the OTLP address, on a socket that is bound to it; arguments as for ``app``."""
        otlp = self._config.sources.otlp
        limits = ConnectionLimits(
            idle_s=otlp.idle_timeout.seconds,
            head_s=otlp.head_timeout.seconds,
            body_s=otlp.body_timeout.seconds,
            connections=min(otlp.max_connections, half_of_open_files()),
        )
        app = self.app(api, whole=whole)
        return HttpServer(app, listener, otlp.tls, limits, self.receiver.count_refusal)

    def app(self, api: AsgiApp, *, whole: bool) -> AsgiApp:
        """Build the ASGI application of the OTLP address.

        Exports go to the receiver or upstream; probes go to the API, so that a sidecar with one published port answers
        them there; with ``whole`` all other paths go to the API too.
        """
        receiver, forward = self.receiver, self.forward

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope.get("path", "")
            if path in PROBES:
                await api(scope, receive, send)
            elif path == PEERS and self.peers is not None and scope["type"] == "http":
                await self.peers(scope, receive, send)
            elif forward is not None and forward.serves(path, scope.get("raw_path")):
                await forward(scope, receive, send)
            elif whole and scope["type"] == "http" and signal_of(path) is None:
                await api(scope, receive, send)
            else:
                await receiver(scope, receive, send)

        return app

    def receiving(self, counts: IntakeCounts) -> Receiving:
        """Return what has come in, by these counts of the intake."""
        receiver = self.receiver
        return Receiving(
            protocols=("http", "grpc") if self._grpc else ("http",),
            encrypted=self.certificates is not None,
            authenticated=receiver.gate.authenticates,
            requests=counts.requests,
            spans=counts.spans,
            log_records=counts.logs,
            refused=dict(receiver.refused),
            dropped=receiver.dropped.total(),
        )

    def forwarding(self) -> Forwarding | None:
        """Return what was forwarded; ``None`` if nothing is."""
        forward = self.forward
        if forward is None:
            return None
        return Forwarding(
            upstream=forward.upstream.name,
            requests=dict(forward.requests),
            answers=dict(forward.answers),
            failed=dict(forward.failed),
            unjudged=dict(forward.unjudged),
            withheld=forward.withheld,
            last_failure=forward.last_failure,
        )

    async def start(self) -> dict[str, str]:
        """Listen for gRPC, if configured; return its address. Raises ``AddressError``."""
        wanted = self._config.sources.otlp.grpc
        if self._grpc is None or wanted is None:
            return {}
        bind(str(wanted), "sources.otlp.grpc").close()  # the library reports less of the cause, and logs it twice
        try:
            port = await self._grpc.start(str(wanted), self.certificates)
        except OSError as error:
            raise AddressError(f"sources.otlp.grpc: cannot listen on {wanted}: {error}") from error
        host = _ANY.get(wanted.host, wanted.host)
        return {"grpc": f"[{host}]:{port}" if ":" in host else f"{host}:{port}"}

    async def stop(self) -> None:
        """Accept nothing more over gRPC, and let requests under way end."""
        if self._grpc is not None:
            await self._grpc.stop(DRAIN_S)

    async def close(self) -> None:
        """Once nothing more comes: wait for copies that are being judged, and close connections to upstream."""
        if self.forward is not None:
            await self.forward.close(DRAIN_S)


def _gate(otlp: OtlpSection) -> Admission:
    auth = otlp.auth
    return Admission(
        tokens=[token.get_secret_value() for token in auth.bearer] if auth else (),
        users={name: password.get_secret_value() for name, password in auth.basic.items()} if auth else {},
        requests_per_second=otlp.requests_per_second,
    )


def _forward(section: ForwardSection, receiver: OtlpReceiver, cors: Cors | None, active: ActiveRequests) -> Forward:
    if section.ca is not None:
        check_authority(section.ca, "forward.ca")
    replaced = {name: value.get_secret_value() for name, value in section.headers.items()}
    if section.authorization is not None:
        replaced["authorization"] = section.authorization.get_secret_value()
    upstream = Upstream(
        section.url,
        timeout_s=section.timeout.seconds,
        replaced=replaced,
        ca=str(section.ca) if section.ca is not None else None,
    )
    return Forward(
        upstream,
        receiver,
        signals=section.signals,
        otlp_path=section.otlp_path,
        passthrough=section.passthrough,
        active=active,
        pages=WebPages(section.hosts, cors, in_cluster="KUBERNETES_SERVICE_HOST" in os.environ),
    )
