"""Forward buffer: keeps requests on disk while upstream does not accept them, and sends them in order once it does.

Requests of one signal with the same credentials form a lane, sent one by one, the oldest first. Lanes are independent,
because a server that limits one project accepts another's requests, and may have no route for a signal. While a lane is
*away* its new requests are kept untried. Requests that upstream refuses for good are dropped and counted; but refused
credentials of the configuration may be corrected, and until then the requests answered 200 under them wait. A request
that fails repeatedly while others are accepted is set aside, so that it delays no other, and given up in the end. A
kill between upstream's answer and the deletion sends a request twice; spans have ids, so that a store keeps one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sidejudge.integrations.backoff import LONGEST_ASKED_S, Backoff, grown_s
from sidejudge.integrations.otlp.proxy.upstream import OnwardRequest, Upstream, UpstreamError, UpstreamResponse
from sidejudge.integrations.otlp.server.traffic import Buffered
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.kept_requests import BufferFull, KeptRequest, KeptRequests
from sidejudge.scoring.trace.time_units import HOUR_NS

_log = logging.getLogger("sidejudge.forward")

ENDS: Final = ("sent", "refused", "given_up")
"""The end of a kept request."""
UNKEPT: Final = ("full", "disk", "memory")
"""Why a request is not kept."""
_SIGNALS: Final = ("traces", "logs", "metrics", "other")
MOST_ATTEMPTS: Final = 8
"""Attempts that may fail for one request while others are taken."""
_SUSPECT_AFTER: Final = 3
"""Failures in a row after which the next request is tried as well: the fault may be the first one's."""
_LONGEST_S: Final = 10.0
"""The longest wait between two attempts, unless upstream asks for more."""
_ASIDE_S: Final = (10.0, 600.0)
"""How long a request is set aside the first time, doubled with each further one; and at most."""
_MOST_PAGES: Final = 150
"""Most answers from something else in upstream's place to one request: a day's worth, at ``_ASIDE_S``."""
_UNDER_WAY_NS: Final = HOUR_NS
"""A request that is under way is not sent again meanwhile; its response comes long before this."""
_MOST_BYTES: Final = 4 << 20
"""Bytes of a response that are read, at most."""
_CREDENTIALS: Final = (401, 403)
"""Statuses that refuse the credentials, not the request."""
_NO_ROUTE: Final = 404
_NO_PAGES: Final = (0, 0)
_UNWRITABLE_S: Final = 5.0
"""How long to wait where a request that was sent cannot be deleted: what follows would be sent twice too."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """``end`` is empty where a request was not accepted for now; ``by_it``: that may be its own fault.

    ``anothers``: the status with which something else answered in upstream's place; 0 where it did not.
    """

    end: str
    wait_s: float | None = None
    by_it: bool = True
    cause: str = ""
    anothers: int = 0


def _is_anothers(came: UpstreamResponse) -> bool:
    """Whether something else answers in the place of upstream: a missing route, a redirect, a page with a success."""
    return came.status == _NO_ROUTE or 300 <= came.status < 400 or came.is_of_a_login


class _Lane:
    """Requests of one signal with the same credentials. ``taken`` counts those that upstream accepted, kept or not."""

    def __init__(self) -> None:
        self.away = False
        self.not_before_s = 0.0
        """Until when upstream asked to be left alone, by the event loop's clock."""
        self.taken = 0
        self.backoff = Backoff(random.random, longest_s=_LONGEST_S)
        self.wake = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.taken_at: dict[int, int] = {}
        """By the number of a request that is set aside: how many others were taken when it failed last."""
        self.pages = _NO_PAGES
        """The number of the last request to which something else answered, and how often."""
        self.failing_since: int | None = None
        """How many requests of all lanes were taken when this one began to fail; None where it does not."""

    def worked(self) -> None:
        self.away, self.failing_since = False, None
        self.taken += 1
        self.backoff.succeeded()


class ForwardBuffer:
    """Keeps requests in a file and sends them. ``kept`` counts since start by signal, ``ended`` and ``unkept`` too.

    Args:
        path: The file.
        max_bytes: What it may take of the disk; its log comes on top.
        upstream: Where requests go.
        sent: Called with each request that upstream took, before it is forgotten.
    """

    def __init__(
        self, path: Path, max_bytes: int, upstream: Upstream, *, sent: Callable[[KeptRequest], Awaitable[None]]
    ) -> None:
        self._path, self._max_bytes, self._upstream, self._sent = path, max_bytes, upstream, sent
        self._store: KeptRequests | None = None
        self._lanes: dict[int, _Lane] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._refused_credentials = self._another_answers = False
        self._taken = 0
        self.kept: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.unkept: Counter[str] = Counter()

    async def open(self) -> None:
        """Take up what is kept. Where the file cannot be used, requests are forwarded without it."""
        try:
            self._store = await asyncio.to_thread(KeptRequests, self._path, self._max_bytes)
            for number in await asyncio.to_thread(self._store.lanes):
                self._begin(number)
        except StoreError as error:
            _log.error("what upstream does not take for now is not kept", extra={"cause": str(error)})

    async def close(self) -> None:
        """End; kept requests stay on disk."""
        tasks = {*self._settling, *(lane.task for lane in self._lanes.values() if lane.task is not None)}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._store is not None:
            self._store.close()
            self._store = None

    @property
    def waiting(self) -> int:
        """Requests that are kept."""
        return self._store.count if self._store is not None else 0

    def oldest_ns(self) -> int | None:
        """When the oldest kept request came, in ns since the epoch; None if none is kept."""
        return self._store.oldest_ns if self._store is not None else None

    def snapshot(self) -> Buffered:
        """How much is kept, and how requests that were kept have ended."""
        store, oldest_ns = self._store, self.oldest_ns()
        return Buffered(
            works=store is not None, max_bytes=self._max_bytes,
            waiting=self.waiting, bytes=store.size if store is not None else 0,
            oldest_s=None if oldest_ns is None else oldest_ns / 1e9,
            kept=dict(self.kept), ended=dict(self.ended), unkept=dict(self.unkept),
        )  # fmt: skip

    def is_away(self, request: OnwardRequest) -> bool:
        """Whether upstream did not take the last request with these credentials."""
        lane = self._lanes.get(_number(request))
        return lane is not None and lane.away and self._store is not None

    async def keep(
        self,
        request: OnwardRequest,
        body: bytes | None,
        *,
        wait_s: float | None = None,
        under_way: asyncio.Task[UpstreamResponse] | None = None,
    ) -> bool:
        """Keep a request (``RequestBuffer``)."""
        if self._store is None or body is None:
            reason, cause = ("disk", "its file cannot be used") if body is not None else ("memory", "too many at once")
            self._not_kept(reason, cause)
            return False
        number = _number(request)
        own = self._upstream.own_headers(request.headers, credentials=request.trusted)
        wanted = KeptRequest(
            signal=request.signal, target=request.target, headers=own, trusted=request.trusted, body=body, lane=number
        )
        try:
            kept = await self._store.put(wanted, due_ns=0 if under_way is None else time.monotonic_ns() + _UNDER_WAY_NS)
        except StoreError as error:
            self._not_kept("full" if isinstance(error, BufferFull) else "disk", str(error))
            return False
        self.kept[request.signal] += 1
        lane = self._begin(number)
        if under_way is not None:
            settling = asyncio.create_task(self._settle(lane, kept, under_way))
            self._settling.add(settling)
            settling.add_done_callback(self._settling.discard)
        else:
            self._away(lane, wait_s)
        return True

    def took(self, request: OnwardRequest) -> None:
        """Upstream took a request that was not kept."""
        self._taken += request.signal != "other"
        lane = self._lanes.get(_number(request))
        if lane is not None:
            lane.taken += 1

    def _away(self, lane: _Lane, wait_s: float | None) -> None:
        """Upstream did not take a request for now."""
        if wait_s is not None:
            lane.not_before_s = asyncio.get_running_loop().time() + min(wait_s, LONGEST_ASKED_S)
        if lane.failing_since is None:
            lane.failing_since = self._taken
        if not lane.away:
            lane.away = True
            _log.warning(
                "upstream does not take requests for now: they are kept", extra={"upstream": self._upstream.name}
            )

    def _report_refused_credentials(self, status: int) -> None:
        if not self._refused_credentials:
            self._refused_credentials = True
            _log.error(
                "upstream refuses the configured credentials: what is kept for it waits; correct forward.authorization "
                "or forward.headers and restart", extra={"upstream": self._upstream.name, "status": status},
            )  # fmt: skip

    def _report_another(self, cause: str) -> None:
        if not self._another_answers:
            self._another_answers = True
            _log.error(
                "something else answers in the place of upstream: what is kept for it waits; set forward.url to the "
                "final address of an OTLP endpoint", extra={"upstream": self._upstream.name, "cause": cause},
            )  # fmt: skip

    def _not_kept(self, reason: str, cause: str) -> None:
        if not self.unkept[reason]:  # the first of its kind; the counter has the others
            _log.warning("a request that upstream did not take was not kept", extra={"reason": reason, "cause": cause})
        self.unkept[reason] += 1

    def _begin(self, number: int) -> _Lane:
        lane = self._lanes.setdefault(number, _Lane())
        lane.wake.set()
        if lane.task is None or lane.task.done():
            lane.task = asyncio.create_task(self._run(number, lane))
        return lane

    async def _run(self, number: int, lane: _Lane) -> None:
        """Send a lane's requests until it is empty."""
        while self._store is not None:
            lane.wake.clear()
            pause_s = lane.not_before_s - asyncio.get_running_loop().time()
            if pause_s > 0:
                await asyncio.sleep(pause_s)
                continue
            try:
                request = await asyncio.to_thread(self._store.first, number, time.monotonic_ns())
                if request is not None:
                    await asyncio.sleep(await self._try(self._store, lane, request))
                elif not await self._more(self._store, number, lane):
                    return
            except StoreError as error:
                _log.warning("what is kept for upstream cannot be read or deleted", extra={"cause": str(error)})
                await asyncio.sleep(_UNWRITABLE_S)

    async def _more(self, store: KeptRequests, number: int, lane: _Lane) -> bool:
        """Wait until the lane may have something to send; False where it has nothing at all."""
        due_ns = await asyncio.to_thread(store.due, number)
        if due_ns is None:
            lane.away = False
            return lane.wake.is_set()
        with suppress(TimeoutError):
            await asyncio.wait_for(lane.wake.wait(), max(0.0, (due_ns - time.monotonic_ns()) / 1e9))
        return True

    async def _try(self, store: KeptRequests, lane: _Lane, request: KeptRequest) -> float:
        """Send a request; how long to rest after it, in seconds."""
        outcome = await self._send(request)
        if outcome.end:
            await self._end(store, lane, request, outcome)
            return 0.0
        if outcome.anothers == _NO_ROUTE and lane.failing_since not in (None, self._taken):
            # Upstream takes others, so that this is its own answer: new requests get it directly, as without a buffer.
            lane.away = False
            await self._set_aside(store, lane, request, replace(outcome, wait_s=_ASIDE_S[1]))
            return 0.0
        if request.seq in lane.taken_at and not lane.away:  # others go on
            await self._set_aside(store, lane, request, outcome)
            return 0.0
        if lane.backoff.failures + 1 >= _SUSPECT_AFTER and outcome.by_it:
            other = await asyncio.to_thread(store.first, request.lane, time.monotonic_ns(), request.seq)
            second = await self._send(other) if other is not None else None
            if other is not None and second is not None and second.end:
                await self._end(store, lane, other, second)
                await self._set_aside(store, lane, request, outcome)
                return 0.0
        self._away(lane, None)
        return lane.backoff.after_failure(await self._page_wait_s(store, lane, request, outcome))

    async def _page_wait_s(
        self, store: KeptRequests, lane: _Lane, request: KeptRequest, outcome: _Outcome
    ) -> float | None:
        """How long to wait at least; longer each time something else answers, which gets no request for ever."""
        if not outcome.anothers:
            return outcome.wait_s
        self._report_another(outcome.cause)
        seq, answers = lane.pages
        answers = answers + 1 if seq == request.seq else 1
        lane.pages = (request.seq, answers)
        if answers >= _MOST_PAGES:
            await self._delete(store, request, _Outcome("given_up", cause=f"{outcome.cause}, for a day"))
        if answers < _SUSPECT_AFTER:  # the next request may be taken
            return outcome.wait_s
        first_s, longest_s = _ASIDE_S
        return max(outcome.wait_s or 0.0, grown_s(answers - _SUSPECT_AFTER + 1, first_s=first_s, longest_s=longest_s))

    async def _end(self, store: KeptRequests, lane: _Lane, request: KeptRequest, outcome: _Outcome) -> None:
        lane.worked()
        lane.taken_at.pop(request.seq, None)
        if outcome.end == "sent":
            self._taken += 1
            if lane.pages != _NO_PAGES:
                lane.pages, self._another_answers = _NO_PAGES, False  # the next time is named in the log again
            await self._sent(request)
        await self._delete(store, request, outcome)

    async def _delete(self, store: KeptRequests, request: KeptRequest, outcome: _Outcome) -> None:
        """Delete a request, retrying until it succeeds, because otherwise it would be sent again."""
        if outcome.end != "sent" and not self.ended[outcome.end]:
            _log.warning(
                "a request that was kept for upstream is lost", extra={"reason": outcome.end, "cause": outcome.cause}
            )
        self.ended[outcome.end] += 1
        while True:
            try:
                await store.done(request)
            except StoreError as error:
                _log.warning("what was kept for upstream cannot be deleted", extra={"cause": str(error)})
                await asyncio.sleep(_UNWRITABLE_S)
            else:
                break

    async def _set_aside(self, store: KeptRequests, lane: _Lane, request: KeptRequest, outcome: _Outcome) -> None:
        """A request failed though others are taken: these go first, and in the end it is given up."""
        taken = self._taken if outcome.anothers == _NO_ROUTE else lane.taken
        counts = lane.taken_at.get(request.seq) != taken
        lane.taken_at[request.seq] = taken
        attempts = request.attempts + counts
        if attempts >= MOST_ATTEMPTS:
            del lane.taken_at[request.seq]
            await self._delete(store, request, _Outcome("given_up", cause=outcome.cause))
            return
        first_s, longest_s = _ASIDE_S
        wait_s = max(outcome.wait_s or 0.0, grown_s(max(1, attempts), first_s=first_s, longest_s=longest_s))
        await store.postpone(request, time.monotonic_ns() + int(wait_s * 1e9), counts=counts)

    async def _send(self, request: KeptRequest) -> _Outcome:
        try:
            came = await self._upstream.send(
                "POST", request.target, request.headers, request.body, repeatable=True, credentials=request.trusted
            )
        except UpstreamError as error:
            return _Outcome("", by_it=error.reason not in ("connect", "busy"), cause=str(error))
        return await self._read(came, request)

    async def _read(self, came: UpstreamResponse, request: KeptRequest) -> _Outcome:
        """What a response means; its body is read so that the connection can be used again."""
        size = 0
        with suppress(UpstreamError):
            async for part in came.parts():
                size += len(part)
                if size > _MOST_BYTES:
                    break
        came.close()
        if came.is_for_now:
            return _Outcome("", came.retry_after_s, by_it=came.status != 429, cause=f"HTTP {came.status}")
        if came.status in _CREDENTIALS and request.trusted and self._upstream.has_credentials:
            self._report_refused_credentials(came.status)
            return _Outcome("", came.retry_after_s, cause=f"HTTP {came.status}")
        if _is_anothers(came):
            why = f"HTTP {came.status}, not of an OTLP endpoint"
            return _Outcome("", came.retry_after_s, cause=why, anothers=came.status)
        return _Outcome("sent" if came.status < 300 else "refused", cause=f"HTTP {came.status}")

    async def _settle(self, lane: _Lane, request: KeptRequest, under_way: asyncio.Task[UpstreamResponse]) -> None:
        """Wait for the response to a request that was kept meanwhile, and forget it if that is final."""
        store = self._store
        try:
            outcome = await self._read(await under_way, request)
        except UpstreamError as error:
            outcome = _Outcome("", cause=str(error))
        if store is None:
            return
        if outcome.end:
            await self._end(store, lane, request, outcome)
            return
        self._away(lane, outcome.wait_s)
        with suppress(StoreError):  # then it is sent again after an hour, or the next start
            await store.postpone(request, 0, counts=False)
        self._begin(request.lane)


def _number(request: OnwardRequest) -> int:
    """The lane of a request: for each signal one of 256, by the credentials that it goes on with."""
    stated = b"".join(value for name, value in request.headers if name.lower() == b"authorization")
    return 256 * _SIGNALS.index(request.signal) + hashlib.sha256(stated).digest()[0]
