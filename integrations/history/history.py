"""History: rows that are written in parts, merged when there are many, and erased when a person asks for it.

A part is named by the writer and the place of its first row in the writer's outbox. A repeated delivery after a kill
begins with the same row and holds at least the same rows, so that it replaces the part. A file of merged parts names
them in its metadata: parts that a kill has left are deleted first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from .place import NotOursError, Place
from .rows import KEYS, KINDS, SCHEMAS, Kind, table

MANY: Final = 32
"""Parts of one day that are merged into one file while the day lasts."""
MOST_BYTES: Final = 8 * 2**20
"""A file of this size is not merged any more: its rows take some ten times as much memory."""
_REPLACES: Final = b"sidejudge.replaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row to write: its kind, its day (``2026-11-22``), its place in the outbox, and the record itself."""

    kind: Kind
    day: str
    seq: int
    record: Mapping[str, object]


class History:
    """Writes to one place as one ``writer``. Methods raise ``OSError`` where the place cannot be reached.

    ``complain`` gets one line of text for each file that is no part of a history or is damaged; it is left as it is.
    """

    def __init__(self, place: Place, writer: str, complain: Callable[[str], None] = lambda _: None) -> None:
        self._place, self._writer, self._complain = place, writer, complain

    def write(self, rows: Sequence[Row]) -> set[str]:
        """Write rows that begin where the rows before have ended; the names of the parts."""
        parts: dict[tuple[Kind, str], list[Row]] = {}
        for row in rows:
            parts.setdefault((row.kind, row.day), []).append(row)
        names = set()
        for (kind, day), own in parts.items():
            name = f"{kind}/day={day}/part-{self._writer}-{own[0].seq:016d}.parquet"
            self._place.write(name, table(kind, [row.record for row in own]))
            names.add(name)
        return names

    def compact(self, today: str, apart_from: Collection[str] = ()) -> int:
        """Merge files of this writer: all of a day that is over, and of ``today`` once there are many.

        Args:
            today: The day that goes on.
            apart_from: Parts that may be written once more.

        Returns:
            How many files were merged into others.
        """
        merged = 0
        for kind in KINDS:
            days: dict[str, dict[str, int]] = {}
            for name, size in self._place.names(kind).items():
                if f"-{self._writer}-" in name and name not in apart_from and size < MOST_BYTES:
                    days.setdefault(name.split("/")[1], {})[name] = size
            for folder, sizes in days.items():
                over = folder < f"day={today}"
                if len(sizes) < 2 or not (over or sum("/part-" in name for name in sizes) >= MANY):
                    continue
                merged += sum(self._merge(kind, folder, names) for names in _groups(self._without_left_over(sizes)))
        return merged

    def erase(self, names_row: Callable[[Mapping[str, object]], bool]) -> int:
        """Remove the rows of every trace and session with a named outcome or verdict; return the number of rows.

        ``names_row`` gets the record of each row. Every file is read, those of other writers too.
        """
        named = (record for kind in KINDS for record in self.records(kind) if names_row(record))
        erased = {str(record["trace_id"] or record.get("case_id")) for record in named}
        count = 0
        if erased:
            wanted = pa.array(sorted(erased))
            for kind in KINDS:
                count += sum(self._place.each(self._place.names(kind), lambda name: self._erase(name, wanted)))
        return count

    def records(self, kind: Kind, since_day: str = "") -> Iterator[dict[str, object]]:
        """The records of all writers, day by day, each once."""
        for folder, names in groupby(self._place.names(kind), lambda name: name.split("/")[1]):
            if folder < f"day={since_day}":
                continue
            seen: set[tuple[object, ...]] = set()
            for name, texts in self._place.each(names, self._texts_of):
                for record in self._read(name, texts):
                    key = tuple(record.get(column) for column in KEYS[kind])
                    if key not in seen:
                        seen.add(key)
                        yield record

    def _texts_of(self, name: str) -> tuple[str, Sequence[str | None]]:
        schema = pa.schema([("record", pa.string())])
        try:
            return name, self._place.columns(name, schema, schema.names)["record"].to_pylist()
        except NotOursError as error:
            self._complain(str(error))
            return name, ()

    def _read(self, name: str, texts: Sequence[str | None]) -> Iterator[dict[str, object]]:
        for text in texts:
            try:
                record = json.loads(text or "null")
            except ValueError:
                record = None
            if not isinstance(record, dict) or "trace_id" not in record:
                self._complain(f"{name}: a row holds no record")
                return
            yield record

    def _without_left_over(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The files that are still valid. Files that a merge replaced before a kill are deleted."""
        replaced: set[str] = set()
        for name in sizes:
            if "/merged-" in name:
                with suppress(NotOursError):  # it is named where it is to be merged
                    replaced.update(json.loads(self._place.metadata(name).get(_REPLACES, b"[]")))
        for name in replaced & sizes.keys():
            self._place.delete(name)
        return {name: size for name, size in sizes.items() if name not in replaced}

    def _merge(self, kind: Kind, folder: str, names: Sequence[str]) -> int:
        """Merge the files that are whole, and return their number."""
        parts: dict[str, pa.Table] = {}
        for name in names:
            try:  # An older version has written fewer columns; what they would hold is in the record.
                parts[name] = self._place.columns(name, SCHEMAS[kind], KEYS[kind])
            except NotOursError as error:
                self._complain(str(error))
        if len(parts) < 2:
            return 0
        rows = _each_once(kind, pa.concat_tables(parts.values()))
        stated = {_REPLACES: json.dumps([*parts]).encode()}
        digest = hashlib.sha256(stated[_REPLACES]).hexdigest()[:16]
        merged = f"{kind}/{folder}/merged-{self._writer}-{digest}.parquet"
        self._place.write(merged, rows.replace_schema_metadata(stated))
        for name in parts:
            self._place.delete(name)
        return len(parts)

    def _erase(self, name: str, wanted: pa.Array) -> int:
        try:
            rows = self._place.read(name)
        except NotOursError as error:
            self._complain(str(error))
            return 0
        types = {field.name: field.type for field in rows.schema}
        if types.get("trace_id") != pa.string():
            return 0
        # The verdict on a session has no trace id: its case has the id that the session's outcome has.
        ids = [rows[name] for name in ("trace_id", "case_id") if types.get(name) == pa.string()]
        kept = rows.filter(pc.invert(pc.is_in(pc.coalesce(*ids), value_set=wanted)))
        if kept.num_rows == rows.num_rows:
            return 0
        if kept.num_rows:
            self._place.write(name, kept)
        else:
            self._place.delete(name)
        return int(rows.num_rows - kept.num_rows)


def _each_once(kind: Kind, rows: pa.Table) -> pa.Table:
    """The rows in order, without duplicates from repeated deliveries; the last of each is kept."""
    keys = [str(key) for key in zip(*(rows[column].to_pylist() for column in KEYS[kind]), strict=True)]
    last = {key: at for at, key in enumerate(keys)}
    return rows if len(last) == rows.num_rows else rows.take(sorted(last.values()))


def _groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Names in groups of bounded size; a name alone needs no merging."""
    group: list[str] = []
    held = 0
    for name, size in sizes.items():
        if held + size > MOST_BYTES and group:
            if len(group) > 1:
                yield group
            group, held = [], 0
        group.append(name)
        held += size
    if len(group) > 1:
        yield group
