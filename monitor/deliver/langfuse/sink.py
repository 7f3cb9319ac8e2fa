"""The sink that writes scores to one Langfuse, put together from the configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from sidejudge.integrations.langfuse.client import Langfuse
from sidejudge.integrations.langfuse.declared_scores import ScoreSelection, declared
from sidejudge.integrations.langfuse.probe import LangfuseServer, trace_url
from sidejudge.integrations.langfuse.scores import score_id, scores_of
from sidejudge.integrations.store.outbox import ScoreRow
from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config.langfuse import LangfuseSink
from sidejudge.monitor.deliver.dispatcher import DeliveryCounters
from sidejudge.monitor.deliver.langfuse.delivery import Overtaken, ScoreDelivery
from sidejudge.monitor.deliver.sink import Sink, SinkParts
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.verdict.rubric import Rubric

TRACE_LINK: Final = "trace_link"
"""Name of the fact that holds the project that scores go to, and the beginning of the address of a trace's page."""


def time_of(result: TraceResult) -> int:
    """The time of a result's scores: the end of the trace's last span, the same wherever and whenever it is judged."""
    return result.ended_ns if result.last_span_ns is None else result.last_span_ns


def outgoing(
    result: TraceResult,
    rubrics: Mapping[str, Rubric],
    which: ScoreSelection,
    *,
    judge_traces: bool = False,
    link_base: str | None = None,
) -> list[ScoreRow]:
    """The selected scores of all its verdicts, changed or not: the store finds the new and the withdrawn ones.

    For a session, scores that it lacks are rows too: an earlier session under its id may have had them.
    """
    at_ns = time_of(result)
    rows = {
        body["id"]: ScoreRow(id=body["id"], at_ns=at_ns, body=json.dumps(body, separators=(",", ":"), allow_nan=False))
        for verdict in result.verdicts
        for body in scores_of(verdict, rubrics[verdict.rubric], which, judge_traces=judge_traces, link_base=link_base)
    }
    every = [
        score_id(verdict.session_id, each.name)
        for verdict in result.verdicts if result.session and verdict.session_id
        for each in declared(rubrics[verdict.rubric])
    ]  # fmt: skip
    return [*rows.values(), *(ScoreRow(id=name, at_ns=at_ns, body=None) for name in every if name not in rows)]


def langfuse_sink(section: LangfuseSink, parts: SinkParts) -> LangfuseScores:
    """The configured sink, not started yet."""
    own = parts.config.sinks.otel_events
    return LangfuseScores(
        section, langfuse=parts.connections.to(section.access), store=parts.store, rubrics=parts.rubrics,
        counters=parts.counters, clock_ns=parts.clock_ns, judge_traces=own is not None and "traces" in own.signals,
    )  # fmt: skip


class LangfuseScores(Sink):
    """Scores of results are committed with them, and go from there to Langfuse in a task of their own.

    ``overtaken`` is for callers that share scores with a monitor that may have written meanwhile. ``judge_traces``: the
    monitor sends traces of its own about its judging.
    """

    def __init__(
        self,
        config: LangfuseSink,
        *,
        langfuse: Langfuse,
        store: Store,
        rubrics: Mapping[str, Rubric],
        counters: DeliveryCounters,
        clock_ns: Callable[[], int],
        overtaken: Overtaken | None = None,
        judge_traces: bool = False,
    ) -> None:
        self._which, self._judge_traces, self._link_base = config.scores, judge_traces, config.link_base
        self._web_url = config.web_url or config.base_url
        self._store, self._rubrics = store, rubrics
        known = store.fact(TRACE_LINK)
        self.langfuse = langfuse
        """The connection, for others that ask the same project: they share its budget."""
        self._delivery = ScoreDelivery(
            outbox=store.outbox,
            langfuse=langfuse,
            declared=[each for rubric in rubrics.values() for each in declared(rubric)],
            counters=counters,
            remember=self._remember,
            clock_ns=clock_ns,
            overtaken=overtaken,
            untaken=store.untaken,
            project=None if known is None or "project" not in known else tuple(known["project"]),
        )
        self.deliveries = (self._delivery,)
        self.look_early = self._delivery.reading_back.look_early
        self._prefix: str | None = known["prefix"] if known and known["base_url"] == config.base_url else None
        self._base_url = config.base_url

    def take_rubrics(self, rubrics: Iterable[Rubric]) -> None:
        """Declare the scores of further rubrics; the rubrics themselves are shared with whoever made the sink."""
        self._delivery.configs.declare(each for rubric in rubrics for each in declared(rubric))

    def scores(self, result: TraceResult) -> list[ScoreRow]:
        """The scores that belong to a result."""
        return outgoing(result, self._rubrics, self._which, judge_traces=self._judge_traces, link_base=self._link_base)

    def trace_url(self, trace_id: str) -> str | None:
        """The address of a trace's page; None until the project is known."""
        return None if self._prefix is None else self._prefix + trace_id

    def undelivered(self) -> int:
        counts = self._store.outbox.counts()
        return counts.waiting - counts.held

    @property
    def server(self) -> LangfuseServer | None:
        """The answering server; None until one has answered, and while none does."""
        return self._delivery.reading_back.server

    async def _remember(self, server: LangfuseServer) -> None:
        self._prefix = trace_url(self._web_url, server.project_id, "")
        project = [server.project_id, server.project_name]
        fact = {"base_url": self._base_url, "prefix": self._prefix, "project": project}
        await self._store.keep_fact(TRACE_LINK, fact)
