"""Pull: lists Langfuse's traces repeatedly, and has complete ones taken, each once.

No listing shows the changes since the last one, so the start times of the last ``look_back`` are listed anew, the
latest more often. The store keeps the time up to which listing is complete; traces that are not dealt with hold it
back. After a kill the same window is listed again, and the store or the intake recognises the traces taken before.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Literal

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse import legacy, observations
from sidejudge.integrations.langfuse.client import Connections, Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.pages import Row
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.otlp.wire.receipt import Overloaded
from sidejudge.integrations.store.errors import StoreError
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.langfuse import LangfuseSource
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.intake import Intake
from sidejudge.monitor.ingest.outcomes import TraceOutcomes
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.scoring.status.snapshots import PullSnapshot, PullState
from sidejudge.scoring.trace.time_units import DAY_NS, HOUR_NS, MINUTE_NS

from .deletions import DeletedTraces
from .fetch import Share, TraceFetcher, introduced
from .listed_trace import ListedTrace, trace_of
from .pending import Pending

log = logging.getLogger("sidejudge.langfuse")

ELSEWHERE: Final = "other monitors of the fleet read them"
PULL: Final = "langfuse_pull"
"""Name of the fact that holds up to where start times need not be listed any more."""
MOST_PENDING: Final = 20_000
"""Traces that are held in mind at once; with more of them listing stops until some were read."""
SLICE_NS: Final = 10 * MINUTE_NS
"""Start times that are listed in one go, where there is much to catch up with."""
AHEAD_NS: Final = MINUTE_NS
"""How far clocks of applications may run ahead of Langfuse's."""
_MOST_OFF_NS: Final = DAY_NS
"""How far Langfuse's clock is believed to be off ours: beyond that it is wrong rather than ours."""
INTRODUCED_NS: Final = HOUR_NS
"""How often a server is asked again for its version and the keys' project."""
REASONS: Final = (*(kind.value for kind in LangfuseErrorKind), "overloaded", "store", "error")
"""Why a poll may end early, as metrics name it."""
MOST_WAITING: Final = 500
"""Closed traces that may wait for judging before reading pauses."""
_FULL_SHARE: Final = 10
"""The whole look-back is listed this many times within its length."""
_TOO_MUCH: Final = "more traces wait for judging than are read ahead"


class Pull:
    """One Langfuse, read in polls. ``busy`` returns whether too much waits for judging already.

    ``share`` is this monitor's part, where others read the same. ``rootless_ns`` is how long a trace without a root
    must have been quiet. What is deleted there within ``retention_ns`` is erased here.
    """

    def __init__(
        self,
        *,
        langfuse: Langfuse,
        source: LangfuseSource,
        store: Store,
        intake: Intake,
        outcomes: TraceOutcomes,
        sampler: Sampler,
        busy: Callable[[], bool],
        clock_ns: Callable[[], int],
        patience: Backoff,
        rootless_ns: int,
        retention_ns: int,
        share: Share | None = None,
    ) -> None:
        poll_ns, settle_ns, look_back_ns = source.poll.ns, source.settle.ns, source.look_back.ns
        self.poll_s: Final = source.poll.seconds
        """How often ``poll`` is to be called, in s."""
        self.pending: Final = Pending(pulled=store.pulled, outcomes=outcomes, sampler=sampler, clock_ns=clock_ns)
        """Traces that were seen and are not dealt with."""
        self._taking = TraceFetcher(
            langfuse=langfuse, pending=self.pending, intake=intake, busy=busy, clock_ns=clock_ns, patience=patience,
            settle_ns=settle_ns, look_back_ns=look_back_ns, share=share,
        )  # fmt: skip
        self._share = share
        self._shards: frozenset[int] = frozenset()
        self._langfuse, self._store = langfuse, store
        self._busy, self._clock_ns, self._patience = busy, clock_ns, patience
        self._settle_ns, self._look_back_ns, self._rootless_ns = settle_ns, look_back_ns, rootless_ns
        self._near_ns = max(2 * (poll_ns + settle_ns), MINUTE_NS)
        self._full_every_ns = max(poll_ns, look_back_ns // _FULL_SHARE)
        self._deleted = DeletedTraces(
            langfuse=langfuse, store=store, pages=self._pages, clock_ns=clock_ns, oldest_ns=retention_ns,
            newest_ns=look_back_ns,
        )  # fmt: skip
        self._keep_ns = max(look_back_ns, retention_ns)
        self._server: LangfuseServer | None = None
        self._introduced_ns = self._from_ns = 0
        self._full_ns: int | None = None
        self._left: frozenset[str] = frozenset()
        self._rests_until_ns = self._polled_ns = 0
        self._state: PullState = "starting"
        self._reason = ""
        self._read_ns: int | None = None
        self._rows = 0
        self._errors: Counter[str] = Counter()

    def trace_url(self, trace_id: str) -> str | None:
        """The address of a trace's page there; None until the project is known."""
        return None if self._server is None else self._server.trace_url(trace_id)

    async def poll(self) -> None:
        """List and read once, as far as possible. Never raises for errors of Langfuse or the store."""
        now_ns = self._clock_ns()
        if now_ns < self._polled_ns:
            self._set_back(now_ns)
        self._polled_ns = now_ns
        if now_ns < self._rests_until_ns:
            return
        try:
            await self._poll()
        except LangfuseError as error:
            self._failed(error)
        except Overloaded:
            self._errors["overloaded"] += 1
            self._set_state("waiting", "the store takes no spans now")
        except StoreError as error:
            self._errors["store"] += 1
            self._set_state("retrying", str(error))
        except Exception:
            log.exception("reading traces from Langfuse ended early for a reason of our own")
            self._errors["error"] += 1
            self._set_state("retrying", "an error of our own; the log has it")

    def snapshot(self) -> PullSnapshot:
        """Where it stands."""
        now_ns, server = self._clock_ns(), self._server
        whole = self._settled()
        waited_ns = max((now_ns - each.changed_ns for each in whole), default=0)
        unread_ns = now_ns - self._read_ns if self._read_ns is not None else None
        return PullSnapshot(
            state=self._state,
            reason=self._reason,
            server=f"Langfuse {server.version or ''}".strip() if server else None,
            project=server.project_name if server else None,
            reads=None if server is None else _reads(server),
            pending=len(self.pending),
            lag_s=None if unread_ns is None else max(unread_ns, waited_ns, 0) / 1e9,
            read_s=None if self._read_ns is None else self._read_ns / 1e9,
            rows=self._rows + self._taking.rows,
            taken=self._taking.traces,
            errors=tuple(sorted((self._errors + self._taking.errors).items())),
        )

    def _set_back(self, now_ns: int) -> None:
        """The clock was set back: nothing waits for a time that was wrong."""
        self._rests_until_ns, self._introduced_ns, self._full_ns = 0, 0, None
        self.pending.set_back(now_ns)
        self._deleted.set_back()

    async def _poll(self) -> None:
        if self._share is not None and not self._share.shards:
            self.pending.keep(lambda _: False)
            self._shards = frozenset()
            self._set_state("waiting", ELSEWHERE)
            return
        server = self._server
        if server is None or self._clock_ns() - self._introduced_ns >= INTRODUCED_NS:
            server = await self._introduce()
        if self._share is not None:
            self._divide(self._share)
        if self._busy():
            self._set_state("waiting", _TOO_MUCH)
        elif await self._list(server):
            self._read_ns = self._clock_ns()
            self._patience.succeeded()
            await self._deleted.look(server)
            failing = self._taking.failing
            self._set_state("retrying" if failing else "ok", failing)

    def _divide(self, share: Share) -> None:
        """Read this monitor's present share, from where its listing stopped."""
        self.pending.keep(share.mine)
        gained, self._shards = share.shards - self._shards, share.shards
        if gained:
            self._full_ns = None
        # Each time: a share may have been lost and gained again since.
        self._from_ns = min(self._from_ns, share.cursor(self._shards, self._clocks_ns()[0] - self._look_back_ns))
        share.from_ns = self._from_ns

    async def _introduce(self) -> LangfuseServer:
        server, before = await introduced(self._langfuse), self._server
        self._introduced_ns = self._clock_ns()
        if server == before:
            return server
        known = self._store.fact(PULL)
        if known is None or known["project"] != server.project_id:
            self._from_ns, self._deleted.since_ns = self._clocks_ns()[0] - self._look_back_ns, 0
            # What was seen or read of another project is not missing in this one.
            self.pending.keep(lambda _: False)
            await self._store.pulled.forget(self._clocks_ns()[1] + AHEAD_NS)
            await self._save(server)
        else:
            same = known.get("reads", _reads(server)) == _reads(server)
            self._from_ns = self._from_ns or int(known["from_ns"])
            self._deleted.since_ns = int(known.get("since_ns", 0)) if same else self._clock_ns()
        self._server, self._full_ns = server, None
        log.info("traces are read from Langfuse", extra={"version": server.version, "project": server.project_name})
        return server

    async def _list(self, server: LangfuseServer) -> bool:
        """One round; False when it was cut short because too much waits."""
        # What was whole when reading paused comes first: else it is listed again for each few that are read.
        if self._left and await self._take_left(server):
            return False
        now_ns, (begun_ns, latest_ns) = self._clock_ns(), self._clocks_ns()
        self._from_ns = min(self._from_ns, begun_ns - self._look_back_ns)  # later only by a clock that was wrong
        full = self._full_ns is None or now_ns - self._full_ns >= self._full_every_ns
        if full:
            from_ns, until_ns = self._from_ns, latest_ns + AHEAD_NS
        else:
            present_ns = self._langfuse_ns()
            from_ns, until_ns = max(self._from_ns, present_ns - self._near_ns), present_ns + AHEAD_NS
        while from_ns < until_ns:
            to_ns = until_ns if until_ns - from_ns <= 2 * SLICE_NS else from_ns + SLICE_NS
            async for page in self._pages(server, Window(from_ns=from_ns, to_ns=to_ns)):
                self._rows += len(page)
                share = self._share
                own = page if share is None else [row for row in page if share.mine(trace_of(row))]
                await self.pending.note(own)
                if len(self.pending) > MOST_PENDING and not await self._make_room(server):
                    if not self._paused():
                        self._set_state("waiting", f"more than {MOST_PENDING} traces are not whole yet")
                    return False
            await self._take(server)
            from_ns = to_ns
            if full:
                await self._advance(server, min(to_ns, begun_ns - self._look_back_ns))
            if self._paused():
                return False
        if full:
            self._full_ns = now_ns
            # A trace is longer than one of its rows; what is held of one is known to have been there.
            await self._store.pulled.forget(min(self._from_ns - self._look_back_ns, begun_ns - self._keep_ns))
        return True

    def _clocks_ns(self) -> tuple[int, int]:
        """Now by our clock and by Langfuse's, the earlier first. A proxy may state Langfuse's time wrongly."""
        ours_ns, theirs_ns = self._clock_ns(), self._langfuse_ns()
        return min(ours_ns, theirs_ns), max(ours_ns, theirs_ns)

    def _langfuse_ns(self) -> int:
        """The present by Langfuse's clock: start times are by clocks that rather agree with its than with ours."""
        off_ns = int((self._langfuse.ahead_s - self._langfuse.behind_s) * 1e9)
        return self._clock_ns() + max(-_MOST_OFF_NS, min(off_ns, _MOST_OFF_NS))

    def _pages(self, server: LangfuseServer, window: Window) -> AsyncIterator[Sequence[Row]]:
        read = observations.pages if server.observations_v2 else legacy.pages
        return read(self._langfuse, window)

    async def _take(self, server: LangfuseServer) -> None:
        await self._taking.take(server, self._settled())

    async def _take_left(self, server: LangfuseServer) -> bool:
        left, self._left = self._left, frozenset()
        await self._taking.take(server, [each for each in self._settled() if each.trace_id in left])
        return self._paused()

    def _paused(self) -> bool:
        """Whether too much waits here for more to be read; what is whole by now is remembered then."""
        if not self._busy():
            return False
        self._left = frozenset(each.trace_id for each in self._settled())
        self._set_state("waiting", _TOO_MUCH)
        return True

    def _settled(self) -> list[ListedTrace]:
        return self.pending.settled(self._settle_ns, self._rootless_ns, int(self._langfuse.behind_s * 1e9))

    async def _make_room(self, server: LangfuseServer) -> bool:
        await self._take(server)
        return len(self.pending) <= MOST_PENDING

    async def _advance(self, server: LangfuseServer, to_ns: int) -> None:
        """Save the time up to which listing is complete; unfinished traces hold it back."""
        held_ns = self.pending.start_ns
        from_ns = max(self._from_ns, to_ns if held_ns is None else min(to_ns, held_ns))
        if from_ns != self._from_ns or self._full_ns is None:
            self._from_ns = from_ns
            await self._save(server)

    async def _save(self, server: LangfuseServer) -> None:
        fact = {"project": server.project_id, "from_ns": self._from_ns, "reads": _reads(server)}
        await self._store.keep_fact(PULL, {**fact, "since_ns": self._deleted.since_ns})

    def _failed(self, error: LangfuseError) -> None:
        self._errors[error.kind.value] += 1
        needs_somebody = not error.kind.transient
        rests_s = self._patience.after_failure(error.retry_after_s, needs_somebody=needs_somebody)
        self._rests_until_ns = self._clock_ns() + int(rests_s * 1e9)
        if needs_somebody:
            self._server = None
            self._set_state("stopped", f"{error}; {_REMEDIES.get(error.kind, _CHECK)}")
        else:
            self._set_state("retrying", str(error))

    def _set_state(self, state: PullState, reason: str) -> None:
        if state != self._state:
            level = {"ok": logging.INFO, "stopped": logging.ERROR}.get(state, logging.WARNING)
            log.log(level, "reading traces from Langfuse: %s", state, extra={"cause": reason})
        self._state, self._reason = state, reason


def _reads(server: LangfuseServer) -> Literal["v2", "legacy"]:
    """By which read it is read."""
    return "v2" if server.observations_v2 else "legacy"


_CHECK: Final = "check sources.langfuse.base_url"
_REMEDIES: Final = {
    LangfuseErrorKind.KEYS_REFUSED: (
        "check public_key and secret_key of sources.langfuse, and that base_url is where they belong"
    ),
    LangfuseErrorKind.FORBIDDEN: "these keys may not read traces; see the project's settings",
}


def traces_in(
    config: Config,
    connections: Connections,
    *,
    store: Store,
    intake: Intake,
    outcomes: TraceOutcomes,
    sampler: Sampler,
    assembler: Assembler,
    waiting: Callable[[], int],
    clock_ns: Callable[[], int],
    share: Share | None = None,
) -> Pull | None:
    """The reader of the configured Langfuse; None where none is configured.

    It pauses while traces wait that could not be judged as fast as they came.
    ``share`` is its part, where others read too.
    """
    source = config.sources.langfuse
    if source is None:
        return None
    most_open = config.assembly.max_open_traces // 2

    def busy() -> bool:
        return waiting() > MOST_WAITING or assembler.open_traces > most_open

    return Pull(
        langfuse=connections.to(source.access), source=source, store=store, intake=intake, outcomes=outcomes,
        sampler=sampler, busy=busy, clock_ns=clock_ns, patience=Backoff(random.random),
        rootless_ns=config.assembly.deadline.ns, retention_ns=config.kept_for.ns, share=share,
    )  # fmt: skip
