"""The sink that keeps verdicts and outcomes as Parquet, by day: through the outbox, merged as they grow many."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sidejudge.integrations.backoff import DestinationUnreachableError, RefusedError
from sidejudge.integrations.jsonl import SinkError
from sidejudge.integrations.store.notification_outbox import ERASURE, NotificationOutbox, PendingNotice
from sidejudge.monitor.config.sinks import ParquetSink
from sidejudge.monitor.deliver.dispatcher import StoredQueue
from sidejudge.monitor.deliver.sink import FILE_TERMS, ErasureRequest, ResultSink, SinkParts, day_of
from sidejudge.monitor.evaluate.result import TraceResult
from sidejudge.scoring.trace.span import JsonRecord

if TYPE_CHECKING:
    from sidejudge.integrations.history.history import History


log = logging.getLogger("sidejudge.parquet")

PARQUET: Final = "parquet"
_WRITER: Final = "parquet_writer"
"""The note that names this store's files among those of other monitors."""
_COMPACT_S: Final = 600.0


class PacedQueue(StoredQueue):
    """Shows nothing until it is ``asked``; then all waiting results, so that a file holds many."""

    def __init__(self, outbox: NotificationOutbox, destination: str) -> None:
        super().__init__(outbox, destination)
        self._asked, self._answered, self._shown = 1, 0, 0
        self._left: set[int] = set()

    def ask(self) -> None:
        """Show the waiting results from now on."""
        self._asked += 1

    def waiting(self, limit: int) -> list[PendingNotice]:
        if self._answered == self._asked:
            return []
        found = super().waiting(limit)
        self._shown = self._asked if len(found) < limit else self._answered
        self._left = {each.seq for each in found}
        if not found:
            self._answered = self._shown
        return found

    async def settle(self, delivered: Collection[int], refused: Mapping[int, str]) -> None:
        await super().settle(delivered, refused)
        self._left -= {*delivered, *refused}
        if not self._left:  # else it ends before a request to erase: the rest is shown again
            self._answered = self._shown  # what was asked for meanwhile is still to be shown


class ParquetHistory(ResultSink):
    """Each result is one entry: rows of its outcome and of its new or changed verdicts."""

    batch = 1024

    def __init__(self, section: ParquetSink, parts: SinkParts) -> None:
        self._queue = PacedQueue(parts.store.notifications, PARQUET)
        shown = parts.config.api.contents
        contents = shown == "always" or (shown == "loopback" and "://" not in section.path)
        super().__init__(PARQUET, parts, FILE_TERMS, contents=contents, queue=self._queue)
        self._section, self._notes = section, parts.store.notifications
        self._clock_ns = parts.clock_ns
        self._history: History | None = None
        self._since_wake = 0
        self._timer: asyncio.TimerHandle | None = None
        self._compacted_s = 0.0

    def committed(self, _result: TraceResult) -> None:
        """Have it written within ``every``, or sooner where many wait: few files are better than many."""
        self._since_wake += 1
        if self._since_wake >= self.batch:
            self._write()
        else:
            self.look()

    def look(self) -> None:
        """Have what waits written within ``every``."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._section.every.seconds, self._write)

    async def deliver(self, entries: Sequence[PendingNotice]) -> Mapping[int, str]:
        """Write the rows; see ``Destination``."""
        try:
            await asyncio.to_thread(self._deliver, entries)
        except OSError as error:
            cause = f"{self._section.path.partition('?')[0]}: {str(error)[:300]}"
            raise DestinationUnreachableError(f"sinks.parquet.path: {cause}") from None
        except (ValueError, KeyError, TypeError) as error:  # a row that has no form; its text may quote a trace
            raise RefusedError(f"sinks.parquet: a row cannot be written: {type(error).__name__}") from None
        return {}

    async def start(self) -> None:
        from sidejudge.integrations.history.history import History  # noqa: PLC0415  # pyarrow only where it is configured
        from sidejudge.integrations.history.place import Place  # noqa: PLC0415  # as above

        try:
            place = Place(self._section.path, mode=int(self._section.mode, 8))
            await asyncio.to_thread(place.check)
        except OSError as error:
            raise SinkError(f"sinks.parquet.path: {error}") from None
        notes = self._notes.notes()
        writer = json.loads(notes[_WRITER]) if _WRITER in notes else secrets.token_hex(4)
        if _WRITER not in notes:
            await self._notes.put((), self._clock_ns(), {_WRITER: json.dumps(writer)})
        self._history = History(place, writer, self._complain)
        await super().start()

    async def stop(self) -> None:
        self._write()
        await super().stop()

    def _complain(self, text: str) -> None:
        log.warning("a file among those of the history is none, and is left out", extra={"cause": text})

    def _write(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._since_wake, self._timer = 0, None
        self._queue.ask()
        self._dispatcher.wake()

    def _deliver(self, entries: Sequence[PendingNotice]) -> None:
        from sidejudge.integrations.history.history import Row  # noqa: PLC0415  # pyarrow only where it is configured

        if self._history is None:
            raise OSError("the sink has not started")
        if entries[0].id.startswith(ERASURE):
            erased = self._history.erase(ErasureRequest.from_json(entries[0].body).names)
            log.info("rows of the history were erased", extra={"rows": erased})
            return
        rows: list[Row] = []
        for entry in entries:
            body: JsonRecord = json.loads(entry.body)
            rows.append(Row(kind="outcomes", day=body["day"], seq=entry.seq, record=body["outcome"]))
            rows += [Row(kind="verdicts", day=body["day"], seq=entry.seq, record=each) for each in body["verdicts"]]
        written = self._history.write(rows)
        if time.monotonic() - self._compacted_s >= _COMPACT_S:
            self._compacted_s = time.monotonic()
            self._history.compact(day_of(self._clock_ns()), written)
