"""Reading: the traces of a listing, one by one, with as many requests to Langfuse as they need."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from sidejudge.integrations.backoff import Backoff
from sidejudge.integrations.langfuse import legacy, observations
from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.langfuse.observations import Window
from sidejudge.integrations.langfuse.probe import LangfuseServer
from sidejudge.integrations.raw import RawSpan
from sidejudge.monitor.ingest.langfuse.listed_trace import ListedTrace
from sidejudge.monitor.ingest.langfuse.rows import PERHAPS_ITS, UnreadError, spans_of

__all__ = ["MOST_ATTEMPTS", "Reader", "UnreadError"]

MOST_ATTEMPTS: Final = 5
"""Attempts that may fail for one trace in a way that may be its own fault."""
_Read = TypeVar("_Read")


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

    async def spans(self, sighting: ListedTrace) -> list[RawSpan]:
        """The spans of a trace that begins in the window.

        Raises ``UnreadError`` for this trace, ``LangfuseError`` for what only a person can mend.
        """
        around = Window(
            from_ns=max(0, sighting.start_ns - self.around_ns),
            to_ns=max(sighting.end_ns, sighting.last_ns) + self.around_ns,
        )
        try:
            spans = await self.patiently(
                lambda: spans_of(self.langfuse, self.server, sighting.trace_id, window=around), most=MOST_ATTEMPTS
            )
        except LangfuseError as error:
            if error.kind in PERHAPS_ITS:
                raise UnreadError(f"not read: {error.kind.value}") from None
            raise
        if not spans:
            raise UnreadError("without spans")
        if min(span.start_ns for span in spans) < self.window.from_ns:
            raise UnreadError("begun before --from")
        return spans

    async def traces_of(self, session_id: str, windows: Iterable[Window]) -> set[str]:
        """Ids of traces that bear a session's id and have rows in these times. Raises ``LangfuseError``."""
        ask = observations.traces_of_session if self.server.observations_v2 else legacy.traces_of_session
        found: set[str] = set()
        for window in windows:
            found |= await self.patiently(partial(ask, self.langfuse, session_id, window=window), most=MOST_ATTEMPTS)
        return found

    async def patiently(self, ask: Callable[[], Awaitable[_Read]], *, most: int | None = None) -> _Read:
        """Ask again for as long as waiting may help; at most so often where it may be the question's fault."""
        patience, attempts = Backoff(random.random), 0
        while True:
            try:
                return await ask()
            except LangfuseError as error:
                attempts += error.kind in PERHAPS_ITS
                if not error.kind.transient or (most is not None and attempts >= most):
                    raise
                await self.sleep(patience.after_failure(error.retry_after_s))
