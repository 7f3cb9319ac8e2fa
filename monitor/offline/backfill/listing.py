"""Lists the traces of a time range that are to be judged, without their contents; then reads them one by one.

A trace is read with as many requests to Langfuse as it needs.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.dialects import normalise
from sidejudge.integrations.langfuse import legacy, observations
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from sidejudge.integrations.langfuse.normalise import is_trace_id
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.match import MatchSection
from sidejudge.monitor.evaluate.references.lookup import References
from sidejudge.monitor.ingest.langfuse.fetch import UnreadError, introduced, spans_of
from sidejudge.monitor.ingest.langfuse.listed_trace import (
    ListedTrace,
    grouped,
    left_out_at_once,
    left_out_once_settled,
    may_match,
)
from sidejudge.monitor.ingest.outcomes import EndReason
from sidejudge.monitor.ingest.sampler import Sampler
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.case.extract import REFERENCE_KEYS, extract
from sidejudge.scoring.trace.time_units import MINUTE_NS
from sidejudge.scoring.trace.trace import Trace

AROUND_NS: Final = 30 * MINUTE_NS
"""How far from the listed times rows are searched, where `sources.langfuse.look_back` is not set."""
OTHER = "other than --filter"
FOREIGN = "no W3C trace id"
NOT_READ: Final = "not read"
"""How the reason begins why Langfuse gives a trace in the listing, and not by its id."""


def case_of_spans(spans: Sequence[RawSpan], reference_keys: Sequence[str] = REFERENCE_KEYS) -> Case:
    """The case of one trace's spans, at least one."""
    trace = Trace.of(spans[0].trace_id, [normalise(span) for span in spans], "batch")
    return extract(trace, reference_keys=reference_keys)


def case_of(config: Config, spans: Sequence[RawSpan], references: References | None = None) -> Case:
    """The case that spans are, as the configuration reads it."""
    case = case_of_spans(spans, config.reference_keys)
    return case if references is None else replace(case, expected_outcome=references.find(case).value)


def sampler_of(config: Config, wanted: MatchSection) -> Sampler:
    """The sampler. For sessions every trace is read; a filter excludes sessions, which need all their turns."""
    return Sampler(config.sampling, whatever=config.sessions is not None and wanted == MatchSection())


@dataclass(slots=True)
class Listing:
    """The traces that are drawn, the oldest first, and why the others are not, by how many."""

    drawn: list[ListedTrace] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def seen(self) -> int:
        """Traces in all."""
        return len(self.drawn) + self.left_out.total()


async def list_traces(
    langfuse: Langfuse, server: LangfuseServer, window: Window, sampler: Sampler, wanted: MatchSection
) -> Listing:
    """List a window. A trace that a listing does not decide is drawn, and decided once it is read.

    Raises ``LangfuseError``.
    """
    by_id: dict[str, ListedTrace] = {}
    unwanted: dict[str, str] = {}
    read = observations.pages if server.observations_v2 else legacy.pages
    async for page in read(langfuse, window):
        for trace_id, rows in grouped(page).items():
            if trace_id in unwanted:
                continue
            listed = by_id.setdefault(trace_id, ListedTrace.of(trace_id, 0))
            listed.add(rows, 0)
            why = left_out_at_once(sampler, bytes.fromhex(trace_id), listed) if is_trace_id(trace_id) else FOREIGN
            if why is not None:
                unwanted[trace_id] = why.value if isinstance(why, EndReason) else why
                del by_id[trace_id]
    listing = Listing(left_out=Counter(unwanted.values()))
    for listed in sorted(by_id.values(), key=lambda each: (each.start_ns, each.trace_id)):
        why = left_out_once_settled(sampler, bytes.fromhex(listed.trace_id), listed)
        if why is not None:
            listing.left_out[why.value] += 1
        elif not may_match(wanted, listed):
            listing.left_out[OTHER] += 1
        else:
            listing.drawn.append(listed)
    return listing


_BUSY: Final = frozenset({LangfuseErrorKind.RATE_LIMITED, LangfuseErrorKind.SERVER_ERROR})
MET_WITHIN_S: Final = 900.0
"""How long a Langfuse may be busy before anything of it was read, in s."""


_Read = TypeVar("_Read")


async def met(
    ask: Callable[[], Awaitable[_Read]], note: Callable[[str], None], *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> _Read:  # fmt: skip
    """Langfuse's first answer; it is asked again while it is busy. Raises ``LangfuseError``.

    One that does not answer is not waited for: its address may be wrong. ``note`` gets a line for each wait.
    """
    patience, left_s = Backoff(random.random), MET_WITHIN_S
    while True:
        try:
            return await ask()
        except LangfuseError as error:
            wait_s = patience.after_failure(error.retry_after_s)
            left_s -= wait_s
            if error.kind not in _BUSY or left_s < 0:
                raise
            note(f"Langfuse: {error}; it is asked again in {wait_s:.0f} s")
            await sleep(wait_s)


MOST_ATTEMPTS: Final = 5
"""Attempts that may fail for one trace in a way that may be its own fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads traces of one project. ``around_ns`` is how far from what the listing saw rows are looked for.

    ``sleep`` waits for seconds.
    """

    langfuse: Langfuse
    server: LangfuseServer
    window: Window
    around_ns: int
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def listing(self, sampler: Sampler, wanted: MatchSection) -> Listing:
        """List the window, again for as long as waiting may help. Raises ``LangfuseError``."""
        return await self.patiently(
            lambda: list_traces(self.langfuse, self.server, self.window, sampler, wanted), most=MOST_ATTEMPTS
        )

    async def spans(self, listed: ListedTrace) -> list[RawSpan]:
        """The spans of a trace that begins in the window.

        Raises ``UnreadError`` for this trace, ``LangfuseError`` for what only a person can mend for all.
        """
        around = listed.around(self.around_ns)
        spans = await self._of_one(lambda: spans_of(self.langfuse, self.server, listed.trace_id, window=around))
        if not spans:
            raise UnreadError("without spans")
        if min(span.start_ns for span in spans) < self.window.from_ns:
            raise UnreadError("begun before --from")
        return spans

    async def readable(
        self, traces: Iterable[ListedTrace], unread: Callable[[str, UnreadError], None] = lambda *_: None
    ) -> AsyncIterator[list[RawSpan]]:
        """The spans of each trace that can be read; ``unread`` gets the id of any other, and the reason."""
        for listed in traces:
            try:
                spans = await self.spans(listed)
            except UnreadError as error:
                unread(listed.trace_id, error)
            else:
                yield spans

    async def traces_of(self, session_id: str, windows: Iterable[Window]) -> set[str]:
        """Ids of traces that bear a session's id and have rows in these times. Raises as ``spans``."""
        ask = observations.traces_of_session if self.server.observations_v2 else legacy.traces_of_session
        found: set[str] = set()
        for window in windows:
            found |= await self._of_one(partial(ask, self.langfuse, session_id, window=window))
        return found

    async def _of_one(self, ask: Callable[[], Awaitable[_Read]]) -> _Read:
        """An answer about one trace or session. Only while Langfuse answers others is it blamed for a failure."""
        while True:
            try:
                return await self.patiently(ask, most=MOST_ATTEMPTS)
            except LangfuseError as error:
                if not error.perhaps_its:
                    raise
                if await self._answers_others():
                    raise UnreadError(f"{NOT_READ}: {error.kind.value}") from None

    async def _answers_others(self) -> bool:
        """Whether Langfuse answers; if not, it is waited for. Raises ``LangfuseError`` where waiting cannot help."""
        try:
            await introduced(self.langfuse)
        except LangfuseError as error:
            if not error.kind.transient:
                raise
            await self.patiently(partial(introduced, self.langfuse))
            return False
        return True

    async def patiently(self, ask: Callable[[], Awaitable[_Read]], *, most: int | None = None) -> _Read:
        """Ask again for as long as waiting may help; at most so often where it may be the question's fault."""
        patience, attempts = Backoff(random.random), 0
        while True:
            try:
                return await ask()
            except LangfuseError as error:
                attempts += error.perhaps_its
                if not error.kind.transient or (most is not None and attempts >= most):
                    raise
                await self.sleep(patience.after_failure(error.retry_after_s))
