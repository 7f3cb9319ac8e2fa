"""OTLP over gRPC: the same requests and the same consumers as over HTTP, with gRPC's status codes.

Rules: opentelemetry-proto docs/specification.md, "OTLP/gRPC". A client repeats a request after ``UNAVAILABLE``, and
after ``RESOURCE_EXHAUSTED`` only if a ``RetryInfo`` gives a delay. Messages are handled as bytes: the library neither
parses nor inflates them, because it inflates to the end before it checks the size.

The library reads a message to its end before anybody can refuse it. On the wire a stream of one message is the same as
one message, so the methods are declared as streams: credentials are checked first, and few messages are read at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from sidejudge.integrations.otlp.proxy.forward import Forward
from sidejudge.integrations.otlp.proxy.forward_grpc import export
from sidejudge.integrations.otlp.wire.receipt import Consume, Receipt

from .admission import ConnectionLimits
from .body import BodyShare, inflate, inflater
from .receiver import OtlpReceiver
from .response import CODES, Refusal, Signal, rpc_status, shutting_down, success
from .turns import Turns

_log = logging.getLogger("sidejudge.receiver")

_SERVICES: Final[dict[Signal, str]] = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
}
_STREAMS: Final = 16
"""Requests that one connection may have under way. Each unread one holds at most 64 KiB of memory."""
MESSAGES: Final = 4
"""Messages that are read at a time, each of the largest size at most."""
_HEADROOM: Final = 1024
_MOST: Final = (1 << 31) - 1
"""The largest value of an option: 2 GiB of a message, 24 days of idling."""
_CONTESTED_S: Final = 2.0


class GrpcContext(Protocol):
    """One request, as the library hands it over."""

    def invocation_metadata(self) -> Sequence[tuple[str, str | bytes]] | None: ...
    def peer(self) -> str: ...
    async def read(self) -> object: ...
    async def abort(
        self, code: object, details: str, trailing_metadata: Sequence[tuple[str, str | bytes]], /
    ) -> NoReturn: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM: the server's key and certificate chain, and the authority of clients' certificates if they need one."""

    key: bytes
    chain: bytes
    client_ca: bytes | None = None


class GrpcReceiver:
    """A server beside ``receiver``, with its limits, credentials and counts. ``forward`` sends requests on.

    A connection without requests is closed after ``idle_s`` of the ``limits``, one that does not begin as HTTP/2 after
    ``head_s``. A message that has not come after ``body_s`` is refused, or after two seconds while others wait to be
    read. Beyond ``connections`` a further one is closed at once.
    """

    def __init__(
        self,
        receiver: OtlpReceiver,
        traces: Consume,
        logs: Consume,
        limits: ConnectionLimits,
        forward: Forward | None = None,
    ) -> None:
        self._body_s = limits.body_s
        self._turns = Turns(MESSAGES, _CONTESTED_S)
        self._options = [
            ("grpc.max_connection_idle_ms", round(limits.idle_s * 1000)),
            ("grpc.server_handshake_timeout_ms", round(limits.head_s * 1000)),
            ("grpc.max_allowed_incoming_connections", limits.connections),  # 15 KiB each
        ]
        self._receiver = receiver
        self._forward = forward
        self._consumers: dict[Signal, Consume] = {"traces": traces, "logs": logs}
        self._server: Any = None

    async def start(self, address: str, certificates: Certificates | None = None) -> int:
        """Listen on ``host:port`` and return the port. Raises ``OSError`` when the address cannot be bound."""
        import grpc  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415  # optional, and slow to import

        options = (
            ("grpc.max_receive_message_length", self._receiver.memory.max_bytes + _HEADROOM),
            ("grpc.max_concurrent_streams", _STREAMS),
            ("grpc.per_message_decompression", 0),
            ("grpc.http2.bdp_probe", 0),  # it would let megabytes come of each message that is not read yet
            ("grpc.so_reuseport", 0),  # two monitors on one port would each get some of the requests
            *self._options,
        )
        self._server = server = grpc.aio.server(options=[(name, min(value, _MOST)) for name, value in options])
        for signal, service in _SERVICES.items():
            handler = grpc.stream_unary_rpc_method_handler(self._handler(signal))
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
        try:
            if certificates is None:
                port = server.add_insecure_port(address)
            else:
                pair = (certificates.key, certificates.chain)
                ca = certificates.client_ca
                port = server.add_secure_port(address, grpc.ssl_server_credentials([pair], ca, ca is not None))
        except RuntimeError as error:
            raise OSError(f"{error}") from None
        await server.start()
        return int(port)

    async def stop(self, grace_s: float) -> None:
        """Accept no new requests, let open ones end, and close."""
        if self._server is not None:
            await self._server.stop(grace_s)

    def _handler(self, signal: Signal) -> Callable[[object, GrpcContext], Awaitable[bytes]]:
        async def export(_: object, context: GrpcContext) -> bytes:
            import grpc  # noqa: PLC0415  # it is loaded by now

            try:
                return await self._receive(signal, context)
            except Refusal as error:
                refusal = error
            except Exception as error:  # noqa: BLE001  # the boundary: whatever happens inside, a client gets a response
                refusal = self._receiver.refusal_of(error)
            refusal.__traceback__ = refusal.__context__ = None  # they hold the message until garbage is collected
            self._receiver.count_refusal(refusal.status, refusal.message)
            code = CODES.get(refusal.status, 2)
            status = next(status for status in grpc.StatusCode if status.value[0] == code)
            await context.abort(status, refusal.message, details_of(refusal, code))
            raise refusal  # abort does not return

        return export

    async def _receive(self, signal: Signal, context: GrpcContext) -> bytes:
        receiver = self._receiver
        sent: dict[str, str | bytes] = dict(context.invocation_metadata() or ())
        sender = receiver.gate.admit(str(sent.get("authorization", "")).encode(), _host(context.peer()))
        if not receiver.accepting:
            raise shutting_down()
        share = receiver.memory.share(sender)
        try:
            body = await self._read(context, sender)
            share.grow(len(body))
            if self._forward is not None and self._forward.serves(f"/v1/{signal}"):
                return await export(self._forward, signal, body, _encoding(body), sent)
            consume = self._consumers.get(signal)
            if consume is None:
                receiver.dropped[_SERVICES[signal]] += 1
                return b""
            body = await self._inflated(body, share)
            receipt = await consume(body, "protobuf") if body else Receipt()
        finally:
            share.release()
        return success(receipt, signal, "protobuf")

    async def _read(self, context: GrpcContext, sender: bytes) -> bytes:
        """The message of a request.

        Raises:
            Refusal: There is none, or it did not come in time.
        """
        try:
            async with asyncio.timeout(self._body_s), self._turns.one_of(sender, context.peer()):
                message = await context.read()
        except TimeoutError:
            late = "the message did not come in time (sources.otlp.body_timeout; sooner while others wait)"
            raise Refusal(503, late) from None
        if not isinstance(message, bytes):
            raise Refusal(400, "the request holds no message")
        return message

    async def _inflated(self, body: bytes, share: BodyShare) -> bytes:
        """Decompress the message if it is compressed."""
        memory = self._receiver.memory
        engine = inflater(_encoding(body), memory.max_bytes)
        if engine is None:
            return body
        with memory.refusing():
            await inflate(engine, body, share)
            return engine.finish()


def details_of(refusal: Refusal, code: int) -> Sequence[tuple[str, bytes]]:
    """Build the trailing metadata of a refusal: its whole status, with the delay after which to send again."""
    return (("grpc-status-details-bin", rpc_status(code, refusal.message, refusal.retry_after_s)),)


def _encoding(body: bytes) -> str:
    """Recognise the compression of a message by its first bytes; no export request begins with these."""
    if body[:2] == b"\x1f\x8b":
        return "gzip"
    return "deflate" if body[:1] == b"x" and int.from_bytes(body[:2], "big") % 31 == 0 else ""


def _host(peer: str) -> str:
    """``ipv4:127.0.0.1:4317`` and ``ipv6:%5B::1%5D:4317`` without the port, which changes with each connection."""
    return peer.rpartition(":")[0]
