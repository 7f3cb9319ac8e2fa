"""Forward requests as they are, return upstream's own response, and judge a copy.

Forwarding and judging are independent. A body is forwarded while it comes in; a copy is kept up to the size that a
request may have. Failures of the copy (too large, not readable, store full, an error inside) are counted and change
nothing for the application.

A copy of a request that upstream refuses is not judged, because a verdict on its trace could not be looked up anywhere.
After 5xx, 408 and 429 the application sends again, and that copy is judged. Without any response judging goes on,
because a dead upstream must not leave an application unwatched. The price: a refusal that takes longer than a second
comes too late. The judging side knows whether a trace has arrived upstream (``Passage``).

With a ``buffer``, requests that upstream does not accept for now are kept, answered 200 and sent later. Exporters wait
some seconds and then give up, so a request with a late response is kept as well, and dropped once upstream has accepted
it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from sidejudge.integrations.otlp.server.body import Disconnected, Receive
from sidejudge.integrations.otlp.server.paths import LANGFUSE, is_unambiguous, signal_of
from sidejudge.integrations.otlp.server.receiver import OtlpReceiver, Scope, media_type
from sidejudge.integrations.otlp.server.response import (
    ABORT,
    KINDS,
    Message,
    Refusal,
    Send,
    Signal,
    answer,
    refuse,
    shutting_down,
    success,
)
from sidejudge.integrations.otlp.server.traffic import ActiveRequests
from sidejudge.integrations.otlp.wire.handover import HEADER
from sidejudge.integrations.otlp.wire.receipt import Receipt

from .passing_body import PassingBody
from .upstream import OnwardRequest, RequestBuffer, Upstream, UpstreamError, UpstreamResponse
from .web_pages import WebPages

_log = logging.getLogger("sidejudge.forward")

HANDED_OVER: Final = HEADER.encode()
_BESIDE_S: Final = 1.0
"""How long a copy waits for upstream's response."""
_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
UNJUDGED: Final = (
    "too_large", "memory", "undecodable", "unsupported", "overloaded", "error", "upstream_refused", "upstream_failed",
)  # fmt: skip
"""Why a forwarded request was not judged."""
_PATIENCE_S: Final = 3.0
"""How long a response may take before its request is kept: Langfuse's SDK gives up after 5 s, others after 10."""
_WHY: Final = {
    "upstream_refused": "upstream refused it for good",
    "upstream_failed": "upstream failed; it is judged when the application sends it again",
}
_REMEDIES: Final = {
    "connect": "see forward.url and, where its certificate is refused, forward.ca; 'sidejudge doctor' tries both",
    "timeout": "see whether upstream is overloaded, or raise forward.timeout",
    "reset": "see upstream's own log; one that asks for a certificate of ours is not supported",
    "protocol": "let forward.url name an address for OTLP over HTTP/1.1, such as port 4318; 4317 is for gRPC",
    "busy": "see why upstream takes so long to answer",
}
"""What to do about no response, by its reason."""
_BY_STATUS: Final = {400: "undecodable", 413: "too_large", 415: "unsupported", 503: "overloaded"}


class _BrokenOff(Exception):  # noqa: N818  # it never leaves this file
    """Upstream's response broke off, and so does ours."""


class Forward:
    """ASGI application that forwards: OTLP requests of ``signals``, and paths that begin with one of ``passthrough``.

    ``requests`` counts requests by signal (or ``other``), ``answers`` upstream's responses by class of status,
    ``failed`` requests without a response by reason, ``unjudged`` those that were not judged by reason.

    Args:
        upstream: Where requests go.
        receiver: Admits requests, and takes their copies.
        signals: Signals that are forwarded.
        otlp_path: Prefix of the protocol's own paths upstream.
        passthrough: Prefixes of other paths that are forwarded.
        active: Counts requests under way.
        handed_over: Whether a request with this header of a handover comes from a monitor.
        pages: Recognises requests of web pages.
        buffer: Keeps what upstream does not take for now.
    """

    def __init__(
        self,
        upstream: Upstream,
        receiver: OtlpReceiver,
        *,
        signals: Collection[Signal] = ("traces", "logs", "metrics"),
        otlp_path: str = "",
        passthrough: Sequence[str] = ("/api/public/",),
        active: ActiveRequests,
        pages: WebPages | None = None,
        handed_over: Callable[[bytes], bool] = lambda _: False,
        buffer: RequestBuffer | None = None,
    ) -> None:
        self._buffer = buffer
        self._handed_over = handed_over
        self.upstream = upstream
        self._receiver = receiver
        self._signals = frozenset(signals)
        self._otlp_path = otlp_path.encode()
        self._passthrough = tuple(passthrough)
        self._judging: set[asyncio.Task[None]] = set()
        self._active = active
        self._pages = pages or WebPages()
        self.withheld = 0
        """Requests that went on without the configured credentials: a web page may have made them."""
        self.requests: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.unjudged: Counter[str] = Counter()
        self.last_failure = ""
        """Why there was last no response, in words."""

    def serves(self, path: str, raw_path: bytes | None = None) -> bool:
        """Whether a request is forwarded: ``path`` is decoded, ``raw_path`` as it was written."""
        signal = signal_of(path)
        if signal is not None:
            return signal in self._signals
        raw = path if raw_path is None else raw_path.decode("latin-1")
        return path.startswith(self._passthrough) and raw.startswith(self._passthrough) and is_unambiguous(raw)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        try:
            sender = self._receiver.admit(scope, headers)
        except Refusal as refusal:
            self._receiver.count_refusal(refusal.status, refusal.message)
            await refuse(send, refusal, media_type(headers))
            return
        if scope["method"] == "TRACE":  # its answer would show the operator's credentials to the caller
            await refuse(send, Refusal(405, "TRACE is not forwarded"), media_type(headers))
            return
        proof = headers.get(HANDED_OVER)
        if proof is not None and signal_of(scope["path"]) is not None and self._handed_over(proof):
            # It went on where it came from.
            await self._receiver(scope, receive, send)
            return
        await self.relay(scope, headers, receive, send, sender)

    async def relay(
        self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send, sender: bytes = b""
    ) -> None:
        """Forward a request that was admitted, return the response, and judge a copy."""
        signal = signal_of(scope["path"])
        self.requests[signal or "other"] += 1
        exported = signal is not None and scope["method"] == "POST"
        copied = exported and signal != "metrics"
        kept = self._buffer is not None and exported and media_type(headers) in KINDS
        memory = self._receiver.memory
        share = memory.share(sender) if copied or kept else None
        body = PassingBody(receive, share, memory.max_bytes, copied=copied, kept=kept)
        body.sender = sender

        def judge_beside() -> None:
            # The response goes first; but if upstream takes long, judging does not wait for it.
            self._judge(scope, headers, body)
            if body.ended:
                body.watch(relaying)

        relaying = asyncio.current_task()
        late = asyncio.get_running_loop().call_later(_BESIDE_S, judge_beside)
        self._active.begin()
        try:
            await self._relay(scope, headers, body, send)
        except Disconnected:
            pass
        except _BrokenOff:
            abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)
            if abort is not None:
                abort()
        except asyncio.CancelledError:
            if not body.left or relaying is None:
                raise
            relaying.uncancel()  # the application has gone away
        finally:
            self._active.end()
            late.cancel()
            self._judge(scope, headers, body)
            body.close()

    async def _relay(self, scope: Scope, headers: dict[bytes, bytes], body: PassingBody, send: Send) -> None:
        signal = signal_of(scope["path"])
        trusted = self._is_trusted(scope["method"], headers, otlp=signal is not None)
        target, own = self._target(scope), scope["headers"]
        request = OnwardRequest(signal=signal or "other", target=target, headers=own, trusted=trusted)
        exchange = _Exchange(request, body, send, media_type(headers))
        try:
            came = await self._response(scope["method"], exchange)
        except UpstreamError as error:
            await self._failed(error, exchange)
            return
        except Disconnected:
            raise
        except asyncio.CancelledError:
            if self._receiver.accepting or body.left:
                raise
            await refuse(send, shutting_down(), exchange.kind)  # the server waits no longer
            return
        except Exception as error:  # noqa: BLE001  # the boundary: the application gets a response
            _log.exception("forwarding a request failed")
            cause = UpstreamError(502, "protocol", f"the request could not be forwarded ({type(error).__name__})")
            await self._failed(cause, exchange)
            return
        if came is not None:
            await self._pass_back(came, exchange)

    async def _response(self, method: str, exchange: _Exchange) -> UpstreamResponse | None:
        """Upstream's response; None where the request was kept, and answered, before it came."""
        request, body = exchange.request, exchange.body
        first, more = await body.begin()
        if self._buffer is not None and self._buffer.is_away(request) and await self._kept(exchange):
            return None
        sending = self.upstream.send(
            method,
            request.target,
            request.headers,
            body.rest(first) if more else first,
            repeatable=method in _IDEMPOTENT or request.signal != "other",
            credentials=request.trusted,
        )
        if more or not body.kept:
            return await sending
        task = asyncio.create_task(sending)
        try:
            await asyncio.wait({task}, timeout=_PATIENCE_S)
            if not task.done() and await self._kept(exchange, under_way=task):
                return None
            return await task
        except asyncio.CancelledError:
            if not body.followed:
                task.cancel()
                task.add_done_callback(_let_go)
            raise

    async def _pass_back(self, came: UpstreamResponse, exchange: _Exchange) -> None:
        """Return a response, or keep the request if that is a refusal that may pass."""
        self._active.go_on()
        self.answers[f"{came.status // 100}xx"] += 1
        body = exchange.body
        try:
            passes = came.is_for_now or came.is_of_a_login
            if passes and await self._kept(exchange, wait_s=came.retry_after_s):
                return
            body.passage.settle(taken=came.status < 300)
            if self._buffer is not None and came.status < 300 and not passes:
                self._buffer.took(exchange.request)
            if came.status >= 400:
                body.refused("upstream_failed" if came.is_for_now else "upstream_refused")
            await self._return(came, exchange.send, body)
        finally:
            came.close()
        await exchange.send({"type": "http.response.body", "body": b""})

    async def _kept(
        self,
        exchange: _Exchange,
        *,
        wait_s: float | None = None,
        under_way: asyncio.Task[UpstreamResponse] | None = None,
    ) -> bool:
        """Keep a request for later and answer it; False, and no answer, where it cannot be kept."""
        if self._buffer is None or not exchange.body.kept:
            return False
        body = await exchange.body.whole()
        if not await self._buffer.keep(exchange.request, body, wait_s=wait_s, under_way=under_way):
            exchange.body.kept = False  # it is tried once, and counted once
            return False
        exchange.body.followed = under_way is not None
        self._active.go_on()
        await answer(exchange.send, 200, exchange.kind, success(Receipt(), "traces", KINDS[exchange.kind]))
        return True

    async def _return(self, came: UpstreamResponse, send: Send, body: PassingBody) -> None:
        """Return a response while it comes. If it breaks off, so does ours: half of it must not look whole."""
        try:
            await send({"type": "http.response.start", "status": came.status, "headers": came.headers})
            if not came.whole:  # most are by now
                body.watch(asyncio.current_task())
            async for part in came.parts():
                await send({"type": "http.response.body", "body": part, "more_body": True})
        except UpstreamError as error:
            self._note(error)
            raise _BrokenOff from None

    async def _failed(self, error: UpstreamError, exchange: _Exchange) -> None:
        """Answer a request that upstream did not answer; it may be kept for later."""
        self._note(error)
        if await self._kept(exchange):
            return
        message = f"{self.upstream.name}: {error}"
        if exchange.kind in KINDS:
            await refuse(exchange.send, Refusal(error.status, message, retry_after_s=1), exchange.kind)
        else:
            body = json.dumps({"error": "upstream", "message": message}).encode()
            await answer(exchange.send, error.status, "application/json", body)

    def _note(self, error: UpstreamError) -> None:
        self.last_failure = str(error)
        if not self.failed[error.reason]:  # the first of its kind; the counter has the others
            remedy = _REMEDIES[error.reason]
            about = {"upstream": self.upstream.name, "cause": str(error), "remedy": remedy}
            _log.warning("upstream gave no response", extra=about)
        self.failed[error.reason] += 1

    def _is_trusted(self, method: str, headers: dict[bytes, bytes], *, otlp: bool) -> bool:
        """Whether a request goes on with the operator's credentials in place of its own."""
        if self._receiver.gate.authenticates:
            return True
        cause = self._pages.suspicion(method, headers, otlp=otlp)
        if cause is None:
            return True
        self.withheld += 1
        if str(self.withheld).rstrip("0") == "1":  # the first, the tenth, the hundredth …
            _log.warning(
                "requests went on without forward.authorization", extra={"cause": cause, "count": self.withheld}
            )
        return False

    def _target(self, scope: Scope) -> bytes:
        """Return the path of a signal, or another path as it was written, and the query."""
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        if signal_of(scope["path"]) is not None:
            path = scope["path"].encode()
            if not path.startswith(LANGFUSE.encode()):
                path = self._otlp_path + path
        query: bytes = scope.get("query_string", b"")
        return path + b"?" + query if query else path

    def _judge(self, scope: Scope, headers: dict[bytes, bytes], body: PassingBody) -> None:
        """Judge the copy of a body once it is whole, in a task of its own."""
        if not body.ended or not body.copied:
            return
        parts = body.take()
        if parts is None:
            self._unjudged(body.why, _WHY.get(body.why, "there was no room for a copy of it"))
            return
        task = asyncio.create_task(self._take(scope, headers, parts, body))
        self._judging.add(task)
        task.add_done_callback(self._judging.discard)

    async def _take(self, scope: Scope, headers: dict[bytes, bytes], parts: list[bytes], body: PassingBody) -> None:
        messages: list[Message] = [
            {"type": "http.request", "body": part, "more_body": n < len(parts)} for n, part in enumerate(parts, 1)
        ]
        messages.reverse()

        async def replay() -> Message:
            return messages.pop()

        try:
            await self._receiver.take(scope, headers, replay, body.sender, body.passage)
        except Refusal as refusal:
            self._unjudged(_BY_STATUS.get(refusal.status, "error"), str(refusal))
        except Exception as error:  # noqa: BLE001  # the boundary: judging must not affect forwarding
            _log.exception("judging a forwarded request failed")
            self._unjudged("error", type(error).__name__)

    def _unjudged(self, why: str, cause: str) -> None:
        if not self.unjudged[why]:
            _log.warning("a forwarded request was not judged", extra={"reason": why, "cause": cause})
        self.unjudged[why] += 1

    async def close(self, grace_s: float = 1.0) -> None:
        """Wait at most ``grace_s`` seconds for copies to be committed, and close the connections."""
        if self._judging:
            await asyncio.wait(self._judging, timeout=grace_s)
        self.upstream.close()


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A request on its way through, and where its answer goes; ``kind`` is its content type."""

    request: OnwardRequest
    body: PassingBody
    send: Send
    kind: str


def _let_go(task: asyncio.Task[UpstreamResponse]) -> None:
    """Close a response that came at the moment when nobody waited for it any more."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()
