"""The one transaction that ends a trace, and the update of the traffic's records after it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sidejudge.integrations.store.erasure import erase
from sidejudge.integrations.store.errors import SpansErased
from sidejudge.integrations.store.sqlite import FinishedTrace, Store, StoredTurn, StoreError
from sidejudge.monitor.evaluate.result import SessionIdentity, TraceResult
from sidejudge.monitor.ingest.assembler import Assembler
from sidejudge.monitor.ingest.outcomes import EndReason, TraceOutcomes
from sidejudge.monitor.sessions.windows import SessionWindows, StoredTurnHead

from .sinks import Sinks

log = logging.getLogger("sidejudge")


@dataclass(slots=True, kw_only=True)
class Commit:
    """Commits results and passes them on to ``listeners``. All of it runs in the event loop."""

    store: Store
    sessions: SessionWindows | None
    assembler: Assembler
    outcomes: TraceOutcomes
    sinks: Sinks
    listeners: Sequence[Callable[[TraceResult], None]]
    keeps_contents: Callable[[TraceResult], bool]
    _erased: set[bytes] = field(default_factory=set)
    """Traces that were forgotten while they were judged: their results were not written."""

    async def commit(self, results: Sequence[TraceResult]) -> dict[bytes, StoreError]:
        """Write results, each in its own transaction: its verdicts, and its deliveries.

        Returns:
            Once they are on disk, why the store refused a result, by trace id; the others are committed. What was
            forgotten meanwhile is not written, and ends.
        """
        whole = [result for result in results if result.reason is not EndReason.LATE]
        answers = await self.store.finish_each([self._finished(result) for result in whole])
        refused = {result.trace_id: error for result, error in zip(whole, answers, strict=True) if error is not None}
        forgotten = [trace_id for trace_id, error in refused.items() if isinstance(error, SpansErased)]
        if forgotten:
            await self._erase_again(forgotten, results[0].ended_ns)
            for trace_id in forgotten:
                del refused[trace_id]
        for result in results:
            if result.reason is EndReason.LATE:
                try:
                    await self.store.dismiss(result.trace_id, result.chunks)
                except StoreError as error:
                    refused[result.trace_id] = error
        return refused

    async def _erase_again(self, trace_ids: Sequence[bytes], now_ns: int) -> None:
        """Erase what was kept since of traces that were forgotten: prompts of judges and their answers."""
        try:
            await asyncio.to_thread(erase, self.store.path, trace_ids, scores=None, now_ns=now_ns)
        except StoreError as error:
            log.warning(
                "what a judge was asked about a forgotten trace could not be erased", extra={"cause": str(error)}
            )
        self._erased.update(trace_ids)

    def committed(self, result: TraceResult) -> None:
        """Record a result that is on disk: outcomes first, then listeners, then sinks."""
        if result.trace_id in self._erased:
            self._erased.remove(result.trace_id)
            result = result.erased
        if self.sessions is not None:
            self.sessions.ended(result.trace_id)
        if not result.session:  # outcomes are of traces
            self.outcomes.ended(result.service, result.reason, revision=result.revision)
        if result.reason is EndReason.LATE:
            self.assembler.refuse(result.trace_id)
        for listener in self.listeners:
            listener(result)
        self.sinks.committed(result)

    def restore(self, now_ns: int) -> None:
        """Take up the sessions that the last run left open."""
        if self.sessions is not None:
            self.sessions.restore(map(_turn_head, self.store.recover_turns()), now_ns)

    def _finished(self, result: TraceResult) -> FinishedTrace:
        turn = self._join(result)
        session = turn.key if turn is not None else result.turn.former if result.turn is not None else None
        return FinishedTrace(
            trace_id=result.trace_id,
            service=result.service,
            reason=result.reason.value,
            completion=result.completion,
            revision=result.revision,
            details=result.details if session is None else {**result.details, "session": session.hex()},
            verdicts=result.verdicts_json,
            closed_ns=result.ended_ns if result.place_ns is None else result.place_ns,
            written_ns=result.ended_ns,
            chunks=result.chunks,
            scores=self.sinks.scores(result),
            entries=self.sinks.entries(result),
            turn=turn,
            goes_on=self._goes_on(result) if turn is None else None,
            referred=result.lookups,
            keep_contents=self.keeps_contents(result),
        )

    def _join(self, result: TraceResult) -> StoredTurn | None:
        """The session that the trace joins; a trace that is not committed after that joins again."""
        if self.sessions is None or result.turn is None:
            return None
        identity, text = result.turn.identity, result.turn.text
        key = self.sessions.join(identity, result.trace_id, len(text), result.ended_ns, former=result.turn.former)
        return StoredTurn(key=key, turn=text, **identity._asdict()) if key is not None else None

    def _goes_on(self, result: TraceResult) -> bytes | None:
        """The session that this trace belongs to although it takes no more turns; None otherwise."""
        if self.sessions is None or result.turn is None:
            return None
        return self.sessions.full(result.turn.identity)


def _turn_head(row: Sequence[Any]) -> StoredTurnHead:
    trace_id, key, service, environment, session_id, *rest = row
    return StoredTurnHead(trace_id, key, SessionIdentity(service, environment, session_id), *rest)
