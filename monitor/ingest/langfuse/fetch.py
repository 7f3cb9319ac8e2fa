"""Fetching: reads whole traces and passes them to the intake as if an exporter had sent them.

A reading counts when it finds the rows that the listings found, or else those of the reading before: two reads that
agree. A trace that fails while others are read does not delay them, and is given up in the end (``shed``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse import legacy
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.normalise import raw_spans, span_id
from sidejudge.integrations.langfuse.observations import TraceTooLarge, Window, of_trace
from sidejudge.integrations.langfuse.pages import Row
from sidejudge.integrations.langfuse.probe import LangfuseServer, probe
from sidejudge.integrations.otlp.wire.encode import encode_spans
from sidejudge.integrations.otlp.wire.receipt import Undecodable
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.scoring.errors import SidejudgeError

from .listed_trace import ListedTrace, all_own
from .pending import Pending

log = logging.getLogger("sidejudge.langfuse")

MOST_READINGS: Final = 5
"""Readings of one trace that find other rows than expected before it is taken as it is, or that fail before it is given
up."""
AT_ONCE: Final = 4
"""Traces that are read at the same time."""


class Share(Protocol):
    """This monitor's share of the traces, where several read one Langfuse."""

    from_ns: int
    """The time up to which this monitor need not list again, ns since the epoch; its successor gets it."""

    @property
    def shards(self) -> frozenset[int]: ...
    def mine(self, trace_id: str) -> bool: ...
    def cursor(self, shards: Collection[int], before_ns: int) -> int: ...
    async def claim(self, trace_ids: Sequence[str]) -> tuple[set[str], set[str]]: ...
    async def done(self, trace_ids: Collection[str]) -> None: ...


class UnreadError(SidejudgeError):
    """A trace that cannot be judged as it was read: the message has the reason."""


async def introduced(langfuse: Langfuse) -> LangfuseServer:
    """The server that answers there. Raises ``LangfuseError``, for a server that answers no read of traces as well."""
    server = await probe(langfuse)
    if not (server.observations_v2 or server.legacy_reads):
        raise LangfuseError(
            LangfuseErrorKind.NOT_FOUND, "this server answers neither v2/observations nor the legacy reads"
        )
    return server


async def rows_of(
    langfuse: Langfuse, server: LangfuseServer, trace_id: str, *, window: Window | None = None
) -> list[Row]:
    """All rows of a trace with their contents, by the reads that the server answers.

    Raises ``LangfuseError`` and ``TraceTooLarge``.
    """
    if server.observations_v2:
        return await of_trace(langfuse, trace_id, window=window)
    return await legacy.of_trace(langfuse, trace_id)


async def spans_of(
    langfuse: Langfuse, server: LangfuseServer, trace_id: str, *, window: Window | None = None
) -> list[RawSpan]:
    """The spans of a trace, none where it is not there.

    Raises ``UnreadError`` for a trace that must not be judged, and ``LangfuseError``.
    """
    try:
        rows = await rows_of(langfuse, server, trace_id, window=window)
    except TraceTooLarge:
        raise UnreadError("too large") from None
    spans = await asyncio.to_thread(raw_spans, rows)
    if spans and all_own(spans):
        raise UnreadError("a monitor's own")
    return spans


@dataclass(kw_only=True)
class TraceFetcher:
    """Reads traces out of ``pending``. ``rows``, ``traces`` and ``errors`` count since the start."""

    langfuse: Langfuse
    pending: Pending
    intake: Intake
    busy: Callable[[], bool]
    clock_ns: Callable[[], int]
    patience: Backoff
    settle_ns: int
    look_back_ns: int
    share: Share | None = None
    errors: Counter[str] = field(default_factory=Counter, init=False)
    rows: int = field(default=0, init=False)
    traces: int = field(default=0, init=False)
    _read: int = field(default=0, init=False)
    _alone: tuple[str, str] | None = field(default=None, init=False)

    @property
    def failing(self) -> str:
        """Why the last trace could not be read, if it was tried alone; empty if it was read."""
        return self._alone[1] if self._alone is not None and self.pending.holds(self._alone[0]) else ""

    async def take(self, server: LangfuseServer, settled: Sequence[ListedTrace]) -> None:
        """Read these, several at a time, until too much waits here. Raises ``LangfuseError`` and ``Overloaded``."""
        wanted = await self.pending.drawn(settled)
        for at in range(0, len(wanted), AT_ONCE):
            if self.busy():
                return
            batch = await self._own(wanted[at : at + AT_ONCE])
            if not batch:
                continue
            outcomes = await asyncio.gather(*(self._take(server, each) for each in batch), return_exceptions=True)
            if self.share is not None:
                await self.share.done([each.trace_id for each in batch if not self.pending.holds(each.trace_id)])
            errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            for error in errors:
                # One that fails alone, or while others are read, waits by itself.
                its = isinstance(error, LangfuseError) and error.perhaps_its
                if not its or 1 < len(errors) == len(outcomes):
                    raise error
            found = [error for error in errors if isinstance(error, LangfuseError)]
            self.errors.update(error.kind.value for error in found)
            self._alone = (batch[0].trace_id, str(found[0])) if len(found) == len(outcomes) else None

    async def _own(self, batch: list[ListedTrace]) -> list[ListedTrace]:
        """The traces that no other monitor reads; open ones are checked later."""
        share = self.share
        if share is None:
            return batch
        fresh = [each for each in batch if not each.taken]
        mine, elsewhere = await share.claim([each.trace_id for each in fresh]) if fresh else (set(), set())
        await self.pending.leave([each for each in fresh if each.trace_id in elsewhere])
        for each in fresh:
            if each.trace_id not in mine:
                each.retry_ns = self.clock_ns() + self.settle_ns
        return [each for each in batch if each.taken or each.trace_id in mine]

    async def _take(self, server: LangfuseServer, listed: ListedTrace) -> None:
        try:
            rows = await rows_of(self.langfuse, server, listed.trace_id, window=listed.around(self.look_back_ns))
        except TraceTooLarge:
            await self.pending.end([(listed, EndReason.SHED)])
            return
        except LangfuseError as error:
            if not self._blamed(listed, error):
                raise
            await self.pending.end([(listed, EndReason.SHED)])
            return
        self._read += 1
        self.rows += len(rows)
        found = frozenset(map(_span, rows))
        if found != listed.spans | listed.taken and listed.disagreed < MOST_READINGS:
            # It is being written, or a listing saw only a part of it: the next reading is compared with this one.
            now_ns = self.clock_ns()
            listed.add(rows, now_ns)
            listed.disagreed += 1
            listed.retry_ns = now_ns + self.settle_ns
            return
        if self.share is not None and not listed.taken and not self.share.mine(listed.trace_id):
            return  # this monitor was slow, or stopped for a while: another may have read it by now
        reason = await self._handed_in(listed, rows)
        if reason is not None:
            await self.pending.end([(listed, reason)])
        else:
            await self.pending.done(listed, found)
            self.traces += 1

    def _blamed(self, listed: ListedTrace, error: LangfuseError) -> bool:
        """Count a failure that may be due to the trace, and let it wait; True after ``MOST_READINGS`` of them."""
        if not error.perhaps_its:
            return False
        # A failure counts only if others could be read since the one before.
        listed.failures += self._read > listed.others_read
        listed.others_read = self._read
        listed.retry_ns = self.clock_ns() + self.patience.postponed_ns(listed.failures)
        return listed.failures >= MOST_READINGS

    async def _handed_in(self, listed: ListedTrace, rows: Sequence[Row]) -> EndReason | None:
        """Pass new rows to the intake; return why the trace is not taken, or None if it is."""
        if not rows:
            return EndReason.DELETED
        try:
            read = await asyncio.to_thread(raw_spans, rows)  # whose step is whose shows in all of them
            spans = [span for span in read if bytes.fromhex(span.span_id) not in listed.taken]
            body = await asyncio.to_thread(encode_spans, spans)
        except Exception:  # a bug must cost one trace its verdict, not the others theirs
            log.exception("could not read a trace of Langfuse")
            return EndReason.ERROR
        if not spans:
            return EndReason.UNDECODABLE
        self.pending.services.learn(listed, spans)
        if all_own(spans):
            return EndReason.EXCLUDED
        try:
            await self.intake.consume(body)
        except Undecodable:
            return EndReason.UNDECODABLE
        return None


def _span(row: Row) -> bytes:
    return bytes.fromhex(span_id(str(row.get("id"))))
