"""The listeners that applications send to: receivers of both protocols, and forwarding (sidecar mode)."""

from __future__ import annotations

import logging
import os
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from sidejudge.integrations.otlp.proxy.forward import Forward
from sidejudge.integrations.otlp.proxy.upstream import Upstream
from sidejudge.integrations.otlp.proxy.web_pages import WebPages
from sidejudge.integrations.otlp.server.admission import Admission, ConnectionLimits
from sidejudge.integrations.otlp.server.body import Receive
from sidejudge.integrations.otlp.server.grpc_receiver import Certificates, GrpcReceiver
from sidejudge.integrations.otlp.server.paths import signal_of
from sidejudge.integrations.otlp.server.receiver import AsgiApp, Cors, OtlpReceiver, Scope, media_type
from sidejudge.integrations.otlp.server.response import PROTOBUF, Message, Refusal, Send
from sidejudge.integrations.otlp.server.traffic import ActiveRequests, Forwarding, Receiving
from sidejudge.integrations.otlp.wire.handover import HandoverKeys
from sidejudge.integrations.otlp.wire.receipt import Encoding, Passage, Receipt
from sidejudge.integrations.store.kept_requests import KeptRequest, beside
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.sources import ForwardSection, OtlpSection, TlsSection
from sidejudge.monitor.config.units import Address
from sidejudge.scoring.errors import SidejudgeError

from .forward_buffer import ForwardBuffer
from .http_connection import half_of_open_files
from .intake import IntakeCounts
from .server import DRAIN_S, AddressError, HttpServer, bind

_NOT_YET_VALID, _EXPIRED = 9, 10  # openssl/x509_vfy.h
_log = logging.getLogger("sidejudge.forward")

PROBES = frozenset({"/livez", "/readyz", "/startupz"})
"""Paths that the OTLP address always answers, and that need no credentials: they show nothing but yes or no."""


class RequestConsumer(Protocol):
    """Takes requests for spans and for log records, as the intake does."""

    async def consume(self, body: bytes, encoding: Encoding, passage: Passage | None = None, /) -> Receipt: ...
    async def consume_logs(self, body: bytes, encoding: Encoding, passage: Passage | None = None, /) -> Receipt: ...

    async def sent_on(self, body: bytes, encoding: Encoding, passage: Passage | None = None, /) -> Receipt:
        """Upstream took a request that was kept for it."""


class Listeners:
    """Receivers of exports, and the server of the OTLP address. ``active`` counts forwarded requests under way."""

    def __init__(
        self, config: Config, intake: RequestConsumer, active: ActiveRequests, keys: HandoverKeys | None = None
    ) -> None:
        otlp = config.sources.otlp
        self._config = config
        self.also: dict[str, AsgiApp] = {}
        """Further ASGI applications of the OTLP address, by path."""
        self.certificates = read_certificates(otlp.tls) if otlp.tls else None
        if config.api.tls:
            read_certificates(config.api.tls, "api.tls")
        for key, tls in (("sources.otlp.tls", otlp.tls), ("api.tls", config.api.tls)):
            if tls is not None and (why := out_of_date(tls)):
                _log.warning("callers will refuse the certificate", extra={"key": f"{key}.certificate", "cause": why})
        cors = Cors(otlp.cors_origins) if otlp.cors_origins else None
        self.receiver = OtlpReceiver(
            intake.consume, otlp.max_request_bytes, logs=intake.consume_logs, gate=_gate(otlp), cors=cors
        )
        self._sent_on = OtlpReceiver(intake.sent_on, otlp.max_request_bytes)
        self.buffer: ForwardBuffer | None = None
        """Requests that upstream does not take for now; None where these are not kept."""
        self.forward = self._forwarding_by(config.forward, cors, active, keys) if config.forward else None
        self._limits = ConnectionLimits(
            idle_s=otlp.idle_timeout.seconds,
            head_s=otlp.head_timeout.seconds,
            body_s=otlp.body_timeout.seconds,
            connections=min(otlp.max_connections, half_of_open_files()),
        )
        taking = (self.receiver, intake.consume, intake.consume_logs)
        self._grpc = GrpcReceiver(*taking, self._limits, self.forward) if otlp.grpc else None

    @property
    def scheme(self) -> str:
        """``https`` if the OTLP address is encrypted."""
        return "https" if self.certificates else "http"

    def http_server(self, api: AsgiApp, listener: socket.socket, *, whole: bool) -> HttpServer:
        """The server of the OTLP address, on a socket that is bound to it; arguments as for ``app``."""
        app, tls = self.app(api, whole=whole), self._config.sources.otlp.tls
        return HttpServer(app, listener, tls, self._limits, self.receiver.count_refusal)

    def app(self, api: AsgiApp, *, whole: bool) -> AsgiApp:
        """Build the ASGI application of the OTLP address.

        Exports go to the receiver or upstream; probes go to the API, so that a sidecar with one published port answers
        them there; with ``whole`` all other paths go to the API too, except an export to a wrong path.
        """
        receiver, forward = self.receiver, self.forward

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope.get("path", "")
            if path in PROBES:
                await api(scope, receive, send)
            elif path in self.also and scope["type"] == "http":
                await self.also[path](scope, receive, send)
            elif forward is not None and forward.serves(path, scope.get("raw_path")):
                await forward(scope, receive, send)
            elif whole and scope["type"] == "http" and signal_of(path) is None and not _is_export(scope):
                await api(scope, receive, send)
            else:
                await receiver(scope, receive, send)

        return app

    def receiving(self, counts: IntakeCounts) -> Receiving:
        """The receiver's state for people, with these counts of the intake."""
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
        """The forwarding's state for people; ``None`` if nothing is forwarded."""
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
            buffer=self.buffer.snapshot() if self.buffer is not None else None,
        )

    async def start(self) -> dict[str, str]:
        """Take up what is kept for upstream; listen for gRPC, if configured: its address. Raises ``AddressError``."""
        if self.buffer is not None:
            await self.buffer.open()
        wanted = self._config.sources.otlp.grpc
        if self._grpc is None or wanted is None:
            return {}
        bind(str(wanted), "sources.otlp.grpc").close()  # the library reports less of the cause, and logs it twice
        try:
            port = await self._grpc.start(str(wanted), self.certificates)
        except OSError as error:
            raise AddressError(f"sources.otlp.grpc: cannot listen on {wanted}: {error}") from error
        return {"grpc": str(Address(wanted.host, port).local)}

    async def stop(self) -> None:
        """Accept no more requests over gRPC, and let open ones end."""
        if self._grpc is not None:
            await self._grpc.stop(DRAIN_S)

    async def close(self) -> None:
        """After the last request: wait for copies that are being judged, and close connections to upstream."""
        if self.forward is not None:
            await self.forward.close(DRAIN_S)
        if self.buffer is not None:
            await self.buffer.close()

    def _forwarding_by(
        self, section: ForwardSection, cors: Cors | None, active: ActiveRequests, keys: HandoverKeys | None
    ) -> Forward:
        upstream = _upstream(section)
        if section.buffer is not None:
            path = beside(self._config.store.path)
            self.buffer = ForwardBuffer(path, section.buffer, upstream, sent=self._sent)
        return Forward(
            upstream,
            self.receiver,
            signals=section.signals,
            otlp_path=section.otlp_path,
            passthrough=section.passthrough,
            active=active,
            handed_over=keys.proves if keys is not None else lambda _: False,
            pages=WebPages(section.hosts, cors, in_cluster="KUBERNETES_SERVICE_HOST" in os.environ),
            buffer=self.buffer,
        )

    async def _sent(self, request: KeptRequest) -> None:
        """Upstream took a request that was kept: what it holds is there from now on."""
        if request.signal != "traces":
            return
        scope = {"type": "http", "method": "POST", "path": "/v1/traces", "headers": request.headers}
        messages: list[Message] = [{"type": "http.request", "body": request.body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop()

        try:
            await self._sent_on.take(scope, dict(request.headers), replay)
        except Refusal as refusal:
            _log.warning("whose spans were sent on cannot be read", extra={"cause": str(refusal)})


def _is_export(scope: Scope) -> bool:
    """Whether an exporter sent this, to whatever path: the API takes no protobuf, and nothing is posted to its root."""
    return scope["method"] == "POST" and (scope["path"] == "/" or media_type(dict(scope["headers"])) == PROTOBUF)


def _gate(otlp: OtlpSection) -> Admission:
    auth = otlp.auth
    return Admission(
        tokens=[token.get_secret_value() for token in auth.bearer] if auth else (),
        users={name: password.get_secret_value() for name, password in auth.basic.items()} if auth else {},
        requests_per_second=otlp.requests_per_second,
    )


def _upstream(section: ForwardSection) -> Upstream:
    if section.ca is not None:
        check_authority(section.ca, "forward.ca")
    replaced = {name: value.get_secret_value() for name, value in section.headers.items()}
    if section.authorization is not None:
        replaced["authorization"] = section.authorization.get_secret_value()
    return Upstream(
        section.url,
        timeout_s=section.timeout.seconds,
        replaced=replaced,
        ca=str(section.ca) if section.ca is not None else None,
    )


class CertificateError(SidejudgeError):
    """A certificate or key that cannot be used; the message names the configuration key."""


def read_certificates(tls: TlsSection, key: str = "sources.otlp.tls") -> Certificates:
    """Read the files of a ``tls`` section. Raises :class:`CertificateError`."""
    made = Certificates(
        chain=_bytes(tls.certificate, f"{key}.certificate"),
        key=_bytes(tls.key, f"{key}.key"),
        client_ca=_bytes(tls.client_ca, f"{key}.client_ca") if tls.client_ca else None,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(f"{key}: {tls.certificate} and {tls.key} cannot be used together ({error})") from None
    if tls.client_ca:
        check_authority(tls.client_ca, f"{key}.client_ca")
    return made


def out_of_date(tls: TlsSection) -> str:
    """What is wrong with the dates of a certificate that can be used otherwise; empty: nothing.

    It is shown to a client that trusts it: Python reads no dates of a certificate that nobody has shown.
    """
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(tls.certificate, tls.key, password=_no_password)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(tls.certificate)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking, showing = client.wrap_bio(down, up), server.wrap_bio(up, down, server_side=True)
    try:
        for end in (asking, showing, asking):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return error.verify_message if error.verify_code in {_NOT_YET_VALID, _EXPIRED} else ""
    except ssl.SSLError:
        pass  # a client would see what
    return ""


def check_authority(path: Path, key: str) -> None:
    """Raise :class:`CertificateError` unless the file holds certificates."""
    _bytes(path, key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise CertificateError(f"{key}: {path} holds no certificates ({error})") from None


def _bytes(path: Path, key: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{key}: {path}: {error.strerror or error}") from None


def _no_password() -> str:
    raise ValueError("the key is encrypted")
