"""Books: what an ending changes, on disk first and then everywhere that counts.

``commit`` writes each ending, its verdicts and what is owed to others in one transaction. ``record`` tells ledger,
metrics, windows and alerts of it after that; ``restore`` tells them after a restart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from integrations.jsonl import JsonLines
from integrations.prometheus.exporter import Exporter
from integrations.store.sqlite import FinishedTrace, Store, StoredTurn, StoreError
from monitor.alerting.observation import observe, observe_stored
from monitor.alerting.schedule import EvaluationSchedule
from monitor.alerting.watch import Watch
from monitor.alerting.windows import Windows
from monitor.deliver.langfuse.sink import ScoresOut
from monitor.evaluate.result import TraceResult
from monitor.ingest.assembler import Assembler
from monitor.ingest.outcomes import Reason, TraceOutcomes
from monitor.runtime.metric_labels import NOT_WRITTEN
from monitor.sessions.windows import Identity, SessionWindows, StoredTurnHead


class Commit:
    """The books of one monitor. All of it runs in the event loop."""

    def __init__(
        self,
        *,
        store: Store,
        sessions: SessionWindows | None,
        assembler: Assembler,
        ledger: TraceOutcomes,
        exporter: Exporter,
        windows: Windows,
        watch: Watch,
        rounds: EvaluationSchedule,
        scores_out: ScoresOut | None,
        lines: JsonLines | None,
    ) -> None:
        self._store, self._sessions, self._assembler = store, sessions, assembler
        self._ledger, self._exporter, self._windows = ledger, exporter, windows
        self._watch, self._rounds, self._scores_out, self._lines = watch, rounds, scores_out, lines

    async def commit(self, endings: Sequence[TraceResult]) -> dict[bytes, StoreError]:
        """Write endings, each on its own; returns once they are on disk: those that the store refused, by trace id."""
        whole = [ending for ending in endings if ending.reason is not Reason.LATE]
        answers = await self._store.finish_each([self._finished(ending) for ending in whole])
        refused = {ending.trace_id: error for ending, error in zip(whole, answers, strict=True) if error is not None}
        for ending in endings:
            if ending.reason is Reason.LATE:
                try:
                    await self._store.dismiss(ending.trace_id, ending.chunks)
                except StoreError as error:
                    refused[ending.trace_id] = error
        return refused

    def _finished(self, ending: TraceResult) -> FinishedTrace:
        turn = self._join(ending)
        session = turn.key if turn is not None else ending.turn.former if ending.turn is not None else None
        return FinishedTrace(
            trace_id=ending.trace_id,
            service=ending.service,
            reason=ending.reason.value,
            completion=ending.completion,
            revision=ending.revision,
            story=ending.details if session is None else {**ending.details, "session": session.hex()},
            verdicts=ending.verdicts_json,
            closed_ns=ending.ended_ns if ending.place_ns is None else ending.place_ns,
            written_ns=ending.ended_ns,
            chunks=ending.chunks,
            scores=self._scores_out.outgoing(ending) if self._scores_out else None,
            turn=turn,
            referred=ending.lookups,
        )

    def _join(self, ending: TraceResult) -> StoredTurn | None:
        """The session that the trace joins; what is not committed after that joins again."""
        if self._sessions is None or ending.turn is None:
            return None
        identity, text = ending.turn.identity, ending.turn.text
        key = self._sessions.join(identity, ending.trace_id, len(text), ending.ended_ns, former=ending.turn.former)
        return StoredTurn(key=key, turn=text, **identity._asdict()) if key is not None else None

    def record(self, ending: TraceResult) -> None:
        """Ledger, metrics and windows learn of an ending that is committed."""
        if not ending.session:  # the books are of traces
            self._ledger.ended(ending.service, ending.reason, revision=ending.revision)
        if ending.reason is Reason.LATE:
            self._assembler.refuse(ending.trace_id)
        if ending.verdicts and ending.revision == 1 and not ending.session:
            self._exporter.trace_kept(ending.service, ending.verdicts[0].selection)
        for rubric in ending.withdrawn:
            self._windows.withdraw(ending.trace_id.hex(), rubric)
        for verdict in ending.changed:
            key, seen = observe(verdict, ending.place_ns)
            if seen.at_ns > ending.ended_ns - self._windows.window_ns:
                self._windows.add(key, seen)
            self._watch.learn(key, seen)
            self._exporter.verdict(verdict)
            if verdict.revision == 1:
                for kind in verdict.violations:
                    self._exporter.workflow_violation(ending.scenario or "inline", kind, verdict.trace_id)
        if ending.changed and ending.last_span_ns is not None and ending.place_ns is None:
            lag_s = (ending.ended_ns - ending.last_span_ns) / 1e9
            self._exporter.evaluation_lag(ending.service, lag_s)
            self._rounds.lagged(ending.ended_ns, lag_s)
        self._write(ending)

    def restore(self, now_ns: int) -> None:
        """Fill windows and sessions again, and let the watch learn what was judged after it last remembered."""
        self._rounds.restore()
        begin_ns, known_ns = now_ns - self._windows.window_ns, self._watch.cursor_ns
        for key, seen in observe_stored(self._store.verdicts_since(min(begin_ns, known_ns or begin_ns))):
            if seen.at_ns > begin_ns:
                self._windows.add(key, seen)
            if seen.at_ns > known_ns:
                self._watch.learn(key, seen)
        if self._sessions is not None:
            self._sessions.restore(map(_turn_head, self._store.recover_turns()))

    def _write(self, ending: TraceResult) -> None:
        """Verdicts as JSON lines. The file is a copy for people; the store keeps the truth."""
        if self._lines and ending.changed:
            said = zip(ending.verdicts, ending.verdicts_json, strict=True)
            failed = self._lines.write([told for verdict, told in said if verdict in ending.changed])
            self._exporter.exported("jsonl", len(ending.changed), at_s=None if failed else ending.ended_ns / 1e9)
            self._exporter.export_failed("jsonl", NOT_WRITTEN, failed)


def _turn_head(row: Sequence[Any]) -> StoredTurnHead:
    trace_id, key, service, environment, session_id, *rest = row
    closed_ns, done, size, revision, judged_ns = rest
    identity = Identity(service, environment, session_id)
    return StoredTurnHead(trace_id, key, identity, closed_ns, bool(done), size, revision, judged_ns)
