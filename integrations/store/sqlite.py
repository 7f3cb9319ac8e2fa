"""Store: the working state of one monitor in one SQLite file.

What is sampled is committed before its request is answered (WAL, ``synchronous=NORMAL``: it survives the process being
killed at any point; a power cut may take the last moments). Finishing a trace is one transaction: its details, its
verdicts, and up to which of its chunks it was evaluated. Chunks stay, as they were written, until late spans can no
longer come.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

from sidejudge.scoring.trace.span import JsonRecord
from sidejudge.scoring.verdict.documents import TraceDocument, VerdictDocument

from .archive import finished, stored_verdict, trace_document
from .bounded_read import ComparedFilter, ComparedVerdict, read_compared
from .connection import Lock, bounded_read, connect, identity, migrate, queries, reading, select
from .contents import ContentsTable, JudgeCallTable
from .errors import StoreCorrupt, StoreError, StoreUnavailable, changed, explain
from .health import SLICE, Capacity, StoreHealth, give_back
from .notification_outbox import NotificationOutbox
from .outbox import Outbox, Untaken, mark
from .part import JudgeCacheTable, KeyValueTable, Lru, Part, as_written, with_checksum
from .pulled import LateReferenceTable, Pulled
from .stored import FinishedTrace, Storable, StoredChunk, StoredTurn, finish, id_bytes, json_text
from .writer import Writer

__all__ = ["FinishedTrace", "Store", "StoreCorrupt", "StoreError", "StoreUnavailable", "StoredChunk", "StoredTurn"]

_PAGE: Final = 1_000
"""Rows read at a time where there may be many."""
_LAST_KEY: Final = b"\xff" * 16
_DELETED_EARLY: Final = "deleted_early"


class Store(Part):
    """One file, one writing thread, one connection for reading. Methods that write are async and return once committed.

    Raises :class:`StoreUnavailable` for what may pass, :class:`StoreCorrupt` for what needs a person.
    """

    def __init__(self, path: Path | str, *, max_bytes: int | None = None) -> None:
        self.path, sql = Path(path), queries()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"store {self.path}: its folder cannot be made ({error}); set store.path") from None
        self._one = Lock(self.path)
        # It holds contents: only its owner may read it. SQLite gives its other files the same mode. What fails here
        # fails again below, with a remedy.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self.health: Final = StoreHealth()
        """What does not work now, and why."""
        try:
            writing = connect(self.path)
        except StoreError:
            self._one.release()
            raise
        try:
            migrate(writing, self.path)
            writing.execute(sql["spared_table"])
            self._capacity = Capacity(writing, max_bytes, self.path.parent)
            self._reading = connect(self.path)
        except (sqlite3.Error, StoreError) as error:
            writing.close()
            self._one.release()
            raise (explain(error, self.path) if isinstance(error, sqlite3.Error) else error) from error
        self._lock = threading.RLock()
        self._write_connection = writing
        self._file = identity(self.path)
        self._writer = Writer(writing, self.path, check=self._check_file, health=self.health)
        super().__init__(write=self._writer.do, read=self._rows_of)
        self.judged: Final = JudgeCacheTable(write=self._writer.do, read=self._rows_of)
        """What judges answered, and what they cost."""
        self.judge_calls: Final = JudgeCallTable(write=self._writer.do, read=self._rows_of)
        """What judges were sent and answered, where that is kept."""
        self.contents: Final = ContentsTable(write=self._writer.do, read=self._rows_of)
        """Spans of ended traces that are kept longer than their chunks."""
        self.outbox: Final = Outbox(write=self._writer.do, read=self._rows_of)
        """Scores on their way out."""
        self.vectors: Final = Lru[bytes]("vectors", write=self._writer.do, read=self._rows_of)
        """Vectors of texts: float32, little-endian."""
        self.kept: Final = KeyValueTable(write=self._writer.do, read=self._rows_of)
        """The state of the watch over statuses and alerts."""
        self.notifications: Final = NotificationOutbox(write=self._writer.do, read=self._rows_of)
        """Entries to be delivered to others."""
        self.pulled: Final = Pulled(write=self._writer.do, read=self._rows_of)
        """Traces that were read out of Langfuse."""
        self.late_references: Final = LateReferenceTable(write=self._writer.do, read=self._rows_of)
        """Traces that are to be read and judged once more, for a reference came late."""
        self.untaken: Final = Untaken(write=self._writer.do, read=self._rows_of)
        """Traces that upstream has not taken."""
        self._deleted_before_ns: int | None = None

    def _check_file(self) -> None:
        """SQLite goes on writing to a file that has no name any more: what is committed there ends with the process."""
        if identity(self.path) != self._file:
            raise StoreUnavailable(
                f"store {self.path}: the file was removed or replaced while it is in use\n"
                "put it back, or restart the monitor: it makes an empty one, and traces that were open are lost"
            )
        self._one.check()

    @property
    def trouble(self) -> str | None:
        """Why spans cannot be kept or something cannot be read now; None while all can."""
        return self.refusal or self.health.trouble

    @property
    def refusal(self) -> str | None:
        """Why spans cannot be kept now; None while they can, whatever cannot be read."""
        refusal = self._capacity.refusal
        return self.health.refusal if refusal is None else f"store {self.path}: {refusal}"

    async def try_again(self) -> None:
        """Write a little, where the last write failed, to find out whether it is over. Raises ``StoreError`` if not."""
        if self.health.trouble is not None:
            await self.keep_fact("written_again", {})

    async def append(self, chunks: Sequence[Storable], received_ns: int, *, untaken: bool = False) -> None:
        """Commit chunks. When this returns, a crash cannot lose them.

        ``untaken``: they are to go on, and whether they are taken there is not known yet.
        """
        if not chunks:
            return
        if (refusal := self._capacity.refusal) is not None:
            raise StoreUnavailable(f"store {self.path}: {refusal}")

        if untaken:
            self.untaken.begin()

        def work(connection: sqlite3.Connection) -> None:
            if untaken:
                mark(connection, (chunk.trace_id for chunk in chunks), received_ns)
            connection.executemany(self._sql["append"], _rows(chunks, received_ns, held=False))
            self._capacity.measure(connection)

        await self._writer.do(work)

    async def hold(self, chunks: Sequence[Storable], received_ns: int) -> None:
        """Commit chunks that are only of use once others of their trace come; until then they keep nothing open."""
        await self._do_each("append", _rows(chunks, received_ns, held=True))

    async def redraw(self, thresholds: Mapping[bytes, int]) -> None:
        """Commit that these traces were drawn once more, each at its threshold."""
        each = [{"trace_id": trace_id, "threshold": limit} for trace_id, limit in thresholds.items()]
        await self._do_each("redraw", each)

    async def finish(self, finished: FinishedTrace) -> None:
        """Write a trace's end, all of it or nothing. Doing it again changes nothing; a later revision replaces it."""
        await self._writer.do(partial(finish, self._sql, finished))

    async def finish_each(self, several: Sequence[FinishedTrace]) -> list[StoreError | None]:
        """Write several ends, each of them on its own; why each was refused, None where it was not."""
        return await self._writer.do_each([partial(finish, self._sql, finished) for finished in several])

    async def dismiss(self, trace_id: bytes | str, chunks: int) -> None:
        """Delete the first ``chunks`` chunks of a trace unread; its result and verdicts stay."""
        await self._do("dismiss", (id_bytes(trace_id), chunks))

    async def purge(
        self,
        before_ns: int,
        *,
        chunks_before_ns: int | None = None,
        referred_before_ns: int | None = None,
        spared: Sequence[bytes] = (),
    ) -> None:
        """Delete traces and verdicts that were closed before ``before_ns``.

        Chunks go when their trace was closed before ``chunks_before_ns`` (default: the same), and what a verdict was
        held against when it was closed before ``referred_before_ns`` (default: with the chunks). Nothing of a trace
        that waits to be evaluated is deleted, and no chunk of the traces that are ``spared``. A trace goes with all its
        verdicts at once, so that no reader finds some of them. Whose it was stays known while anything of it is held.
        """
        await self._writer.do(partial(self._spare, spared))
        chunks_before_ns = before_ns if chunks_before_ns is None else chunks_before_ns
        referred_before_ns = chunks_before_ns if referred_before_ns is None else referred_before_ns
        for name, before, limit in (
            ("purge_chunks", chunks_before_ns, SLICE),
            ("purge_traces", before_ns, SLICE // 4),  # with several verdicts each
            ("purge_verdicts", before_ns, SLICE),
            ("purge_outbox", before_ns, SLICE),
            ("purge_whose", before_ns, SLICE),
            ("referred_forget", referred_before_ns, SLICE),
            ("belated_forget", referred_before_ns, SLICE),
        ):
            # In slices, so that requests that wait for their commit do not wait for all of it.
            while await self._writer.do(partial(self._purge_slice, name, before, limit)) == limit:
                pass
        while await self._writer.do(give_back):
            pass
        await self._writer.do(self._capacity.measure)

    def _purge_slice(self, name: str, before_ns: int, limit: int, connection: sqlite3.Connection) -> int:
        gone = connection.execute(self._sql[name], {"before": before_ns, "limit": limit})
        if name != "purge_traces":
            return gone.rowcount
        rows = [dict(zip(("trace_id", "closed_ns", "details"), row, strict=True)) for row in gone.fetchall()]
        connection.executemany(self._sql["whose_put"], rows)
        connection.executemany(self._sql["forget_verdicts"], [(row["trace_id"],) for row in rows])
        return len(rows)

    def _spare(self, trace_ids: Sequence[bytes], connection: sqlite3.Connection) -> None:
        connection.execute(self._sql["spare_none"])
        connection.executemany(self._sql["spare"], [(trace_id,) for trace_id in trace_ids])

    def completions(self, limit: int) -> list[tuple[str | None, str]]:
        """Service and completion of the traces that ended last: at most ``limit``, latest first."""
        return self._read("completions", (limit,))

    def chunks(self, trace_id: bytes | str) -> list[bytes]:
        """The payloads of a trace in order of arrival, earlier revisions included."""
        return [payload for (payload,) in self._read("chunks", (id_bytes(trace_id),))]

    def chunks_and_stories(self, trace_ids: Iterable[bytes]) -> list[tuple[list[bytes], TraceDocument | None]]:
        """Return ``chunks`` and ``details`` of each of these traces, read in one transaction, in half the time."""
        with self._at_one_time():
            return [self._chunks_and_story(trace_id) for trace_id in trace_ids]

    @contextmanager
    def _at_one_time(self) -> Iterator[None]:
        """Have all that is read within be of one moment, whatever is written meanwhile."""
        with self._lock:
            self._read("begin", ())
            try:
                yield
            finally:
                if self._reading.in_transaction:  # an error may have ended it
                    self._read("commit", ())

    def _chunks_and_story(self, trace_id: bytes) -> tuple[list[bytes], TraceDocument | None]:
        rows = self._read("chunks_and_whether_ended", {"trace_id": trace_id})
        ended = not rows or rows[0][1]  # where no chunk is held there is no row
        return [payload for payload, _ in rows], self._details(trace_id) if ended else None

    def referred(self, since_ns: int) -> Iterator[tuple[int, bytes, bytes, bytes | None]]:
        """When closed, key, trace and what was found there, of every trace closed since then, the oldest first."""
        closed_ns, key, trace_id = since_ns - 1, _LAST_KEY, b""
        while rows := self._read(
            "referred_page", {"closed_ns": closed_ns, "key": key, "trace_id": trace_id, "limit": _PAGE}
        ):
            yield from rows
            closed_ns, key, trace_id, _ = rows[-1]

    def referred_of(self, trace_id: bytes) -> list[tuple[bytes, bytes | None]]:
        """Key, and what was found there, of everything that a trace was held against."""
        return self._read("referred_of", (trace_id,))

    async def purge_turns(self, before_ns: int, abandoned_ns: int) -> None:
        """Delete turns of sessions judged before ``before_ns``, and unjudged ones from before ``abandoned_ns``.

        These are sessions whose last turn came before ``abandoned_ns``.
        """
        more = {"before": before_ns, "abandoned": abandoned_ns, "limit": SLICE}
        while await self._do("purge_turns", more) == SLICE:
            pass

    def turns(self, key: bytes) -> list[tuple[int, JsonRecord]]:
        """The turns of a session, each with its number, in order of writing."""
        return [(seq, json.loads(turn)) for seq, turn in self._read("turns", (key,))]

    def recover_turns(self) -> list[tuple[Any, ...]]:
        """For each held turn, session by session: trace id, key of the session, its service, environment and id.

        Then when the trace was judged, when its session was judged with it or went on since (or None), bytes of the
        turn, and revision and time of the session's last judging or None.
        """
        return self._read("recover_turns", ())

    def holds_judged(self, trace_id: bytes | str) -> bool:
        """Whether chunks that were evaluated when the trace ended are still held."""
        return bool(self._read("holds_judged", (id_bytes(trace_id),)))

    def ended_and_purged(self, limit: int) -> list[bytes]:
        """Traces that ended and have no chunk left: at most ``limit``, latest first."""
        return [trace_id for (trace_id,) in self._read("ended_and_purged", (limit,))]

    def recover(self, trace_ids: Iterable[bytes] | None = None) -> Iterator[StoredChunk]:
        """Everything that is still held, trace by trace, oldest chunk first: what a restart resumes from.

        With ``trace_ids`` of these alone.
        """
        connection = connect(self.path)
        try:
            wanted: Iterable[bytes | None] = (None,) if trace_ids is None else trace_ids
            for row in chain.from_iterable(
                connection.execute(
                    self._sql["recover" if each is None else "recover_of"], () if each is None else (each,)
                )
                for each in wanted
            ):
                trace_id, received_ns, done, *more = row
                yield StoredChunk(trace_id, received_ns, bool(done), *more)
        except sqlite3.Error as error:
            raise explain(error, self.path) from error
        finally:
            connection.close()

    def open_traces(self) -> set[bytes]:
        """Ids of the traces with chunks that wait to be evaluated."""
        return {chunk.trace_id for chunk in self.recover() if not chunk.done}

    def details(self, trace_id: bytes | str) -> TraceDocument | None:
        """What happened to a finished trace, with its verdicts; ``None`` for one that is unknown here."""
        with self._at_one_time():
            return self._details(id_bytes(trace_id))

    def _details(self, wanted: bytes) -> TraceDocument | None:
        rows = self._read("story", (wanted,))
        with self._as_written():
            return trace_document(wanted.hex(), rows[0], self._read("verdicts_of_trace", (wanted,))) if rows else None

    def traces(
        self,
        *,
        reason: str | None = None,
        service: str | None = None,
        since_ns: int | None = None,
        after: tuple[int, str] | None = None,
        limit: int = 100,
    ) -> list[TraceDocument]:
        """The traces that ended last, newest first: how each ended, and its verdicts in short.

        ``after`` is where the page before ended: its last trace's ``closed_ns`` and trace id. Raises ``StoreError``,
        ``SearchTooLong``.
        """
        after_ns, after_id = after or (None, None)
        wanted = {
            "reason": reason, "service": service, "since": since_ns, "limit": limit,
            "after_ns": after_ns, "after_id": id_bytes(after_id) if after_id else None,
        }  # fmt: skip
        with bounded_read(self.path) as connection:  # few that match may take a look at all: nothing waits for it
            return [finished(row) for row in connection.execute(self._sql["recent_traces"], wanted)]

    def verdicts(
        self,
        *,
        rubric: str | None = None,
        service: str | None = None,
        environment: str | None = None,
        trace_id: str | None = None,
        passed: Literal["true", "false", "none"] | None = None,
        state: str | None = None,
        since_ns: int | None = None,
        after: tuple[int, str, str] | None = None,
        limit: int = 100,
        bounded: bool = False,
    ) -> list[VerdictDocument]:
        """The latest verdicts, newest first, as JSON objects with ``closed_ns`` added.

        ``passed`` "none" asks for those that neither passed nor failed. ``after`` is where the page before ended: its
        last verdict's ``closed_ns``, trace id and rubric. Raises ``StoreError``; ``bounded``: ``SearchTooLong`` too.
        """
        after_ns, after_id, after_rubric = after or (None, None, None)
        wanted = {
            "rubric": rubric, "service": service, "environment": environment, "passed": passed, "state": state,
            "trace_id": id_bytes(trace_id) if trace_id else None, "since": since_ns, "limit": limit,
            "after_ns": after_ns, "after_id": id_bytes(after_id) if after_id else None, "after_rubric": after_rubric,
        }  # fmt: skip
        with (bounded_read if bounded else reading)(self.path) as connection:  # likewise
            return [stored_verdict(text, at) for text, at in select(connection, "recent_verdicts", wanted)]

    def compared(self, wanted: ComparedFilter) -> list[ComparedVerdict]:
        """Verdicts with their fields for comparisons, newest first. Raises ``StoreError``, ``SearchTooLong``."""
        return read_compared(self.path, wanted)

    def verdicts_since(
        self, since_ns: int, needed: Callable[[str | None, str | None, str, int], bool] | None = None
    ) -> Iterator[VerdictDocument]:
        """All verdicts of traces closed since then, oldest first, one by one: windows are filled with them at start.

        ``cluster`` is what their trace belongs to, None for nothing; ``slices`` are its values of ``alerts.slices``.
        ``needed``: of which service, environment and rubric they are, and since when, in ns; None: of all.
        """
        with reading(self.path) as connection:
            if needed is not None:
                connection.create_function("needed", 4, needed)
            query = self._sql["verdicts_since" if needed is None else "verdicts_needed"]
            for text, at, cluster, slices in connection.execute(query, (since_ns,)):
                named = json.loads(slices) if slices else {}
                yield {**stored_verdict(text, at), "cluster": cluster, "slices": named}

    def weights_since(
        self, since_ns: int
    ) -> Iterator[tuple[str | None, str | None, str, str | None, int, int | None, float | None]]:
        """What counts of these verdicts, newest first; no verdict is parsed for it.

        Returns:
            Service, environment, rubric, its version, when the trace was closed, passed, probability of being sampled.
        """
        with reading(self.path) as connection:
            yield from connection.execute(self._sql["weights_since"], (since_ns,))

    def unreached_since(self, since_ns: int) -> Iterator[tuple[str | None, str | None, str, float, int]]:
        """What a spent budget left without an answer, oldest first.

        Returns:
            Service, environment, rubric, how many traces stand for it, and the time, for each minute.
        """
        with reading(self.path) as connection:
            yield from connection.execute(self._sql["unreached_since"], (since_ns,))

    def figures_since(self, since_ns: int) -> Iterator[tuple[str, str | None, TraceDocument, int, int]]:
        """What traces closed since then took, oldest first: what windows of figures are filled with at start.

        Returns:
            Trace id in hex, service, details (figures, sampling, cluster, environment), when it was closed, revision.
        """
        with reading(self.path) as connection:
            for trace_id, service, text, at, revision in connection.execute(self._sql["figures_since"], (since_ns,)):
                yield trace_id.hex(), service, json.loads(text), at, revision

    def fact(self, name: str) -> JsonRecord | None:
        """The stored finding of this name, as JSON; None for none yet."""
        known = as_written(self._read("fact", (name,))).get(name)
        with self._as_written():
            return None if known is None else json.loads(known)

    async def keep_fact(self, name: str, value: Mapping[str, object]) -> None:
        """Keep a finding under a name; it replaces the earlier one."""
        await self._do("fact_put", with_checksum(name, json_text(value)))

    async def delete_early(self, before_ns: int) -> None:
        """Record, before it is done, that verdicts closed before then are deleted however long they were to be kept.

        It may be read by any thread, and outlives the process.
        """
        if before_ns > self._deleted_early_ns():
            self._deleted_before_ns = before_ns
            await self.keep_fact(_DELETED_EARLY, {"before_ns": before_ns})

    def kept_since_ns(self, retention_ns: int, now_ns: int) -> int:
        """Since when all verdicts are held that were made, where they are kept for so long at most."""
        early_ns = self._deleted_early_ns()
        return max(now_ns - retention_ns, early_ns if early_ns <= now_ns else 0)  # the clock may have been ahead

    def _deleted_early_ns(self) -> int:
        if self._deleted_before_ns is None:
            self._deleted_before_ns = int((self.fact(_DELETED_EARLY) or {}).get("before_ns", 0))
        return self._deleted_before_ns

    @property
    def fullness(self) -> float:
        """Used share of ``max_bytes``; 0 where there is none."""
        return self._capacity.fullness

    @property
    def size(self) -> int:
        """Bytes on disk, write-ahead log included."""
        total = 0
        for name in (self.path, self.path.with_name(self.path.name + "-wal")):
            try:
                total += name.stat().st_size
            except OSError:
                continue
        return total

    def close(self) -> None:
        """Commit what is queued and close; idempotent. Later requests are refused."""
        self._writer.close()
        with self._lock:
            self._reading.close()
            self._write_connection.close()
            self._one.release()

    @contextmanager
    def _as_written(self) -> Iterator[None]:
        """Report stored text that is not JSON as damage."""
        try:
            yield
        except ValueError as error:
            raise changed(self.path) from error

    def _rows_of(self, name: str, wanted: Sequence[object] | Mapping[str, object]) -> list[Any]:
        with self._lock:
            try:
                rows = self._reading.execute(self._sql[name], wanted).fetchall()
            except sqlite3.ProgrammingError:
                raise StoreUnavailable(f"store {self.path}: it is closed; the monitor is shutting down") from None
            except sqlite3.Error as error:
                meant = explain(error, self.path)
                self.health.failed(name, meant)
                raise meant from error
            self.health.worked(name)
            return rows


def _rows(chunks: Sequence[Storable], received_ns: int, *, held: bool) -> list[tuple[object, ...]]:
    return [
        (c.trace_id, received_ns, held, c.origin.service, c.origin.environment, c.origin.threshold, c.payload)
        for c in chunks
    ]
