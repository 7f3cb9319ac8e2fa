"""Sink: writing scores back to one Langfuse, put together from the configuration."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping

from integrations.langfuse.backoff import Backoff
from integrations.langfuse.client import Langfuse
from integrations.langfuse.probe import LangfuseServer, trace_url
from integrations.langfuse.scores import declared
from integrations.store.outbox import ScoreRow
from integrations.store.sqlite import Store, StoreError
from monitor.config.langfuse import LangfuseSink
from monitor.evaluate.result import TraceResult
from scoring.status.export_snapshot import ExportSnapshot
from scoring.verdict.rubric import Rubric

from .delivery import Overtaken, ScoreCounters, ScoreDelivery
from .score_rows import outgoing

log = logging.getLogger("sidejudge.langfuse")

TRACE_LINK = "trace_link"
"""Name of the fact that says what stands before a trace's id in the address of its page."""
_FLUSH_S = 5.0
"""How long a stop waits for scores that could still be sent; the others are sent after the next start."""


class ScoresOut:
    """Scores of endings go into the store with them, and from there to Langfuse, in a task of its own."""

    def __init__(
        self,
        config: LangfuseSink,
        *,
        langfuse: Langfuse,
        store: Store,
        rubrics: Mapping[str, Rubric],
        counted: ScoreCounters,
        clock_ns: Callable[[], int],
        overtaken: Overtaken | None = None,
    ) -> None:
        self._web_url = config.web_url or config.base_url
        self._store = store
        self._rubrics = rubrics
        self._langfuse = langfuse
        self._delivery = ScoreDelivery(
            outbox=store.outbox,
            langfuse=langfuse,
            declared=[each for rubric in rubrics.values() for each in declared(rubric)],
            counted=counted,
            remember=self._remember,
            clock_ns=clock_ns,
            patience=Backoff(random.random),
            overtaken=overtaken,
        )
        known = store.fact(TRACE_LINK)
        self._prefix: str | None = known["prefix"] if known and known["base_url"] == config.base_url else None
        self._base_url = config.base_url
        self._task: asyncio.Task[None] | None = None

    def outgoing(self, ending: TraceResult) -> list[ScoreRow]:
        """The scores that belong to an ending."""
        return outgoing(ending, self._rubrics)

    def trace_url(self, trace_id: str) -> str | None:
        """The address of a trace's page; None until the project is known."""
        return None if self._prefix is None else self._prefix + trace_id

    def standing(self) -> ExportSnapshot:
        return self._delivery.standing()

    @property
    def langfuse(self) -> Langfuse:
        """The connection, for others that ask the same project: they share its budget."""
        return self._langfuse

    @property
    def server(self) -> LangfuseServer | None:
        """Who answers there; None until it has, and while nobody does."""
        return self._delivery.server

    @property
    def working(self) -> bool:
        """Whether the task that sends still runs."""
        return self._task is None or not self._task.done()

    def start(self) -> None:
        self._task = asyncio.create_task(self._delivery.run())

    async def stop(self) -> None:
        """Send for a moment what can be sent; what is left waits in the store."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            try:
                async with asyncio.timeout(_FLUSH_S):
                    await self._delivery.flush()
            except (TimeoutError, StoreError):
                log.info("scores are left to be sent after the next start")
        await self._langfuse.close()

    async def _remember(self, server: LangfuseServer) -> None:
        self._prefix = trace_url(self._web_url, server.project_id, "")
        await self._store.keep_fact(TRACE_LINK, {"base_url": self._base_url, "prefix": self._prefix})
