"""Pull: takes traces out of Langfuse, each once, and hands them to the intake as if an exporter had sent them.

A poll lists what there is and then reads what is whole. No listing tells what was written since the last one, so the
start times of the last ``look_back`` are listed again and again, the latest more often. A trace is read when nothing
was added to it for ``settle`` and its root has ended (longer without one), and taken when that reading finds
the rows that the listings found: two reads that agree. Rows that come later are taken too, and make a revision.

What is drawn is decided before contents are read. What was dealt with is in the store before it is forgotten
here: after a kill the same window is listed again, and what was taken already is known there or to the intake.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, Protocol

from integrations.langfuse import legacy, observations
from integrations.langfuse.client import Langfuse
from integrations.langfuse.errors import Kind, LangfuseError
from integrations.langfuse.lift import is_trace_id, raw_spans, span_id
from integrations.langfuse.observations import Row, Window
from integrations.langfuse.probe import Server, probe
from integrations.otlp.encode import encode_spans
from integrations.store.errors import StoreError
from integrations.store.pulled import Pulled, Taken
from monitor.intake import Overloaded, Undecodable
from monitor.ledger import Ledger, Reason
from monitor.sampler import Sampler
from scoring.pull_standing import PullStanding, PullState

from .patience import Patience
from .reading import rows_of
from .selecting import all_own, at_sight, once_settled
from .sighting import Sighting, grouped

log = logging.getLogger("sidejudge.langfuse")

PULL: Final = "langfuse_pull"
"""Name of the fact that says up to where start times need not be listed any more."""
MOST_PENDING: Final = 20_000
"""Traces that are held in mind at once; with more of them listing stops until some were read."""
MOST_READINGS: Final = 5
"""Readings of one trace that find other rows than expected before it is taken as it is, or that fail before it is given
up."""
AT_ONCE: Final = 4
"""Traces that are read at the same time."""
SLICE_NS: Final = 600 * 10**9
"""Start times that are listed in one go, where there is much to catch up with."""
AHEAD_NS: Final = 60 * 10**9
"""How far clocks of applications may run ahead of ours."""
REASONS: Final = (*(kind.value for kind in Kind), "overloaded", "store")
"""Why a poll may end early, as metrics name it."""
_FULL_SHARE: Final = 10
"""The whole look-back is listed this many times within its length."""


class Consuming(Protocol):
    """What it asks of the intake."""

    async def consume(self, body: bytes) -> Any: ...


class Facts(Protocol):
    """What it asks of the store besides the traces."""

    def fact(self, name: str) -> Any: ...
    async def keep_fact(self, name: str, value: dict[str, object]) -> None: ...


class Pull:
    """One Langfuse, read in polls. ``busy`` says whether too much waits for judging already.

    ``settle_ns``, ``look_back_ns`` and ``rootless_ns`` (how long a trace without a root must have been quiet) are
    durations; ``poll_ns`` is how often ``poll`` is called.
    """

    def __init__(
        self,
        *,
        langfuse: Langfuse,
        pulled: Pulled,
        facts: Facts,
        intake: Consuming,
        ledger: Ledger,
        sampler: Sampler,
        busy: Callable[[], bool],
        clock_ns: Callable[[], int],
        patience: Patience,
        poll_ns: int,
        settle_ns: int,
        look_back_ns: int,
        rootless_ns: int,
    ) -> None:
        self._langfuse = langfuse
        self._pulled = pulled
        self._facts = facts
        self._intake = intake
        self._ledger = ledger
        self._sampler = sampler
        self._busy = busy
        self._clock_ns = clock_ns
        self._patience = patience
        self._settle_ns, self._look_back_ns, self._rootless_ns = settle_ns, look_back_ns, rootless_ns
        self.poll_s: Final = poll_ns / 1e9
        """How often ``poll`` is to be called, in s."""
        self._near_ns = max(2 * (poll_ns + settle_ns), 60 * 10**9)
        self._full_every_ns = max(poll_ns, look_back_ns // _FULL_SHARE)
        self._server: Server | None = None
        self._pending: dict[str, Sighting] = {}
        self._from_ns = 0
        self._full_ns: int | None = None
        self._rests_until_ns = 0
        self._state: PullState = "starting"
        self._reason = ""
        self._read_ns: int | None = None
        self._rows = self._taken = self._bodies = 0
        self._errors: Counter[str] = Counter()

    async def poll(self) -> None:
        """List and read once, as far as it goes. Never raises for what Langfuse or the store may do."""
        if self._clock_ns() < self._rests_until_ns:
            return
        try:
            await self._poll()
        except LangfuseError as error:
            self._failed(error)
        except Overloaded:
            self._errors["overloaded"] += 1
            self._say("waiting", "the store takes no spans now")
        except StoreError as error:
            self._errors["store"] += 1
            self._say("retrying", str(error))

    def standing(self) -> PullStanding:
        """Where it stands."""
        now_ns, server = self._clock_ns(), self._server
        whole = [s for s in self._pending.values() if s.settled(now_ns, self._settle_ns, self._rootless_ns)]
        waited_ns = max((now_ns - s.changed_ns for s in whole), default=0)
        unread_ns = now_ns - self._read_ns if self._read_ns is not None else None
        return PullStanding(
            state=self._state,
            reason=self._reason,
            server=f"Langfuse {server.version or ''}".strip() if server else None,
            project=server.project_name if server else None,
            reads=None if server is None else "v2" if server.observations_v2 else "legacy",
            pending=len(self._pending),
            lag_s=None if unread_ns is None else max(unread_ns, waited_ns, 0) / 1e9,
            read_s=None if self._read_ns is None else self._read_ns / 1e9,
            rows=self._rows,
            taken=self._taken,
            errors=tuple(sorted(self._errors.items())),
        )

    async def _poll(self) -> None:
        server = self._server or await self._introduce()
        if self._busy():
            self._say("waiting", "more traces wait for judging than are read ahead")
            return
        if await self._list(server):
            self._read_ns = self._clock_ns()
            self._patience.succeeded()
            self._say("ok", "")

    async def _introduce(self) -> Server:
        server = await probe(self._langfuse)
        if not (server.observations_v2 or server.legacy_reads):
            raise LangfuseError(Kind.NOT_FOUND, "this server answers neither v2/observations nor the legacy reads")
        known = self._facts.fact(PULL)
        same = known is not None and known["project"] == server.project_id
        first_ns = self._clock_ns() - self._look_back_ns
        self._from_ns = int(known["from_ns"]) if same else first_ns
        self._server, self._full_ns = server, None
        log.info("traces are read from Langfuse", extra={"version": server.version, "project": server.project_name})
        return server

    async def _list(self, server: Server) -> bool:
        """One round; False when it was cut short because too much waits."""
        begun_ns = self._clock_ns()
        full = self._full_ns is None or begun_ns - self._full_ns >= self._full_every_ns
        from_ns = self._from_ns if full else max(self._from_ns, begun_ns - self._near_ns)
        until_ns = begun_ns + AHEAD_NS
        while from_ns < until_ns:
            to_ns = until_ns if until_ns - from_ns <= 2 * SLICE_NS else from_ns + SLICE_NS
            async for page in self._pages(server, Window(from_ns=from_ns, to_ns=to_ns)):
                self._rows += len(page)
                await self._note(page)
                if len(self._pending) > MOST_PENDING:
                    await self._read(server)
                    if len(self._pending) > MOST_PENDING:
                        self._say("waiting", f"more than {MOST_PENDING} traces are not whole yet")
                        return False
            await self._read(server)
            from_ns = to_ns
            if full:
                await self._advance(server, min(to_ns, begun_ns - self._look_back_ns))
            if self._busy():
                self._say("waiting", "more traces wait for judging than are read ahead")
                return False
        if full:
            self._full_ns = begun_ns
            await self._pulled.forget(self._from_ns - self._look_back_ns)  # a trace is longer than one of its rows
        return True

    async def _pages(self, server: Server, window: Window) -> AsyncIterator[Sequence[Row]]:
        read = observations.pages if server.observations_v2 else legacy.pages
        async for page in read(self._langfuse, window):
            yield page

    async def _advance(self, server: Server, to_ns: int) -> None:
        """Keep up to where nothing needs to be listed again: what is not read yet holds it back."""
        held_ns = min((s.start_ns for s in self._pending.values()), default=to_ns)
        from_ns = max(self._from_ns, min(to_ns, held_ns))
        if from_ns != self._from_ns or self._full_ns is None:
            await self._facts.keep_fact(PULL, {"project": server.project_id, "from_ns": from_ns})
            self._from_ns = from_ns

    async def _note(self, page: Sequence[Row]) -> None:
        """Take note of a page; what has nothing to be read for is settled at once."""
        now_ns = self._clock_ns()
        traces = grouped(page)
        fresh = [trace_id for trace_id in traces if trace_id not in self._pending]
        known = await asyncio.to_thread(self._pulled.known, fresh)
        ended: list[tuple[Sighting, Reason]] = []
        for trace_id, rows in traces.items():
            reason, taken = known.get(trace_id, (None, frozenset()))
            if reason is not None:
                continue
            sighting = self._pending.get(trace_id) or Sighting.of(trace_id, now_ns, taken)
            sighting.add(rows, now_ns)
            if not sighting.grown:
                continue
            why = Reason.UNDECODABLE
            if is_trace_id(trace_id):
                found = None if sighting.taken else at_sight(self._sampler, bytes.fromhex(trace_id), sighting)
                if found is None:
                    self._pending[trace_id] = sighting
                    continue
                why = found
            ended.append((sighting, why))
        await self._end(ended)

    async def _end(self, ended: Sequence[tuple[Sighting, Reason]]) -> None:
        """These end unread; in the books once it is in the store."""
        await self._pulled.put(
            [Taken(trace_id=s.trace_id, last_ns=s.last_ns, reason=reason.value) for s, reason in ended]
        )
        for sighting, reason in ended:
            self._pending.pop(sighting.trace_id, None)
            if reason is Reason.SAMPLED_OUT:
                self._ledger.sampled_out(None, {bytes.fromhex(sighting.trace_id)})
            else:
                self._ledger.seen()
                self._ledger.ended(None, reason)

    async def _read(self, server: Server) -> None:
        """Read what is whole, oldest first, several at a time."""
        now_ns = self._clock_ns()
        ready = [s for s in self._pending.values() if s.settled(now_ns, self._settle_ns, self._rootless_ns)]
        unread: list[tuple[Sighting, Reason]] = []
        wanted: list[Sighting] = []
        for sighting in sorted(ready, key=lambda s: s.start_ns):
            reason = None
            if not sighting.taken:
                reason = once_settled(self._sampler, bytes.fromhex(sighting.trace_id), sighting)
            if reason is None:
                wanted.append(sighting)
            else:
                unread.append((sighting, reason))
        await self._end(unread)
        for at in range(0, len(wanted), AT_ONCE):
            if self._busy():
                return
            outcomes = await asyncio.gather(
                *(self._take(server, s) for s in wanted[at : at + AT_ONCE]), return_exceptions=True
            )
            errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            for error in errors:
                # One that fails while others are read waits by itself.
                if len(errors) == len(outcomes) or not isinstance(error, LangfuseError):
                    raise error
                if error.kind not in _PERHAPS_ITS:
                    raise error
                self._errors[error.kind.value] += 1

    async def _take(self, server: Server, sighting: Sighting) -> None:
        window = Window(
            from_ns=max(0, sighting.start_ns - self._look_back_ns),
            to_ns=max(sighting.end_ns, sighting.last_ns) + self._look_back_ns,
        )
        try:
            rows = await rows_of(self._langfuse, server, sighting.trace_id, window=window)
        except observations.TraceTooLarge:
            await self._give_up(sighting, Reason.SHED)
            return
        except LangfuseError as error:
            if self._blamed(sighting, error):
                await self._give_up(sighting, Reason.SHED)
                return
            raise
        self._bodies += 1
        self._rows += len(rows)
        expected = sighting.spans | sighting.taken
        found = frozenset(map(_span, rows))
        if found != expected and sighting.disagreed < MOST_READINGS:
            # It is being written, or a listing saw only a part of it: the next reading is compared with this one.
            now_ns = self._clock_ns()
            sighting.add(rows, now_ns)
            sighting.disagreed += 1
            sighting.retry_ns = now_ns + self._settle_ns
            return
        reason = await self._handed_in([row for row in rows if _span(row) not in sighting.taken])
        if reason is not None:
            await self._give_up(sighting, reason)
        else:
            await self._done(sighting, found)

    def _blamed(self, sighting: Sighting, error: LangfuseError) -> bool:
        """After a failure that may be one trace's fault it lets others by; True when that was so often enough."""
        if error.kind not in _PERHAPS_ITS:
            return False
        # While no other can be read either, it says nothing about this one.
        sighting.failures += self._bodies > sighting.others_read
        sighting.others_read = self._bodies
        sighting.retry_ns = self._clock_ns() + self._patience.postponed_ns(sighting.failures)
        return sighting.failures >= MOST_READINGS

    async def _give_up(self, sighting: Sighting, reason: Reason) -> None:
        """It ends unread; what was taken of it before stands."""
        if sighting.taken:
            await self._done(sighting, frozenset(sighting.spans))
        else:
            await self._end([(sighting, reason)])

    async def _done(self, sighting: Sighting, spans: frozenset[bytes]) -> None:
        taken = Taken(trace_id=sighting.trace_id, last_ns=sighting.last_ns, reason=None, spans=spans | sighting.taken)
        await self._pulled.put([taken])
        self._pending.pop(sighting.trace_id, None)
        self._taken += 1

    async def _handed_in(self, rows: Sequence[Row]) -> Reason | None:
        """Give rows to the intake; why a trace is not taken, None when it is."""
        spans = await asyncio.to_thread(raw_spans, rows)
        if not spans:
            return Reason.UNDECODABLE
        if all_own(spans):
            return Reason.EXCLUDED
        try:
            await self._intake.consume(await asyncio.to_thread(encode_spans, spans))
        except Undecodable:
            return Reason.UNDECODABLE
        return None

    def _failed(self, error: LangfuseError) -> None:
        self._errors[error.kind.value] += 1
        needs_somebody = not error.kind.passing
        rests_s = self._patience.after_failure(error.retry_after_s, needs_somebody=needs_somebody)
        self._rests_until_ns = self._clock_ns() + int(rests_s * 1e9)
        if needs_somebody:
            self._server = None
            self._say("stopped", f"{error}; {_REMEDIES.get(error.kind, _CHECK)}")
        else:
            self._say("retrying", str(error))

    def _say(self, state: PullState, reason: str) -> None:
        if state != self._state:
            level = {"ok": logging.INFO, "stopped": logging.ERROR}.get(state, logging.WARNING)
            log.log(level, "reading traces from Langfuse: %s", state, extra={"cause": reason})
        self._state, self._reason = state, reason


def _span(row: Row) -> bytes:
    return bytes.fromhex(span_id(str(row.get("id"))))


_PERHAPS_ITS: Final = (Kind.SERVER_ERROR, Kind.TIMEOUT, Kind.TOO_EXPENSIVE, Kind.REFUSED)
_CHECK: Final = "check sources.langfuse.base_url"
_REMEDIES: Final = {
    Kind.KEYS_REFUSED: "check public_key and secret_key of sources.langfuse, and that base_url is where they belong",
    Kind.FORBIDDEN: "these keys may not read traces; see the project's settings",
}
