"""Place: the folder or bucket that holds a history, as named files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
from pyarrow import fs, parquet

from sidejudge.scoring.errors import SidejudgeError

_T = TypeVar("_T")
_HIDDEN: Final = "."
"""A file that is being written begins with it: readers of Parquet leave such files out."""


class NotOursError(SidejudgeError):
    """A file that no history has written, or that is damaged."""


class Place:
    """Files under ``path``: a directory, or a URI that pyarrow reads (``s3://bucket/folder?region=…``, ``gs://…``).

    Methods raise ``OSError`` where the place cannot be reached or written.
    """

    def __init__(self, path: str, mode: int = 0o600) -> None:
        """``mode``: who may read files that are made in a local directory."""
        self._mode = mode
        self.local = "://" not in path
        if self.local:
            self._system, self._root = fs.LocalFileSystem(), str(Path(path).absolute())
        else:
            try:
                self._system, self._root = fs.FileSystem.from_uri(path)
            except (pa.ArrowException, ValueError) as error:
                raise OSError(f"{path.partition('?')[0]}: {error}") from None

    def names(self, folder: str) -> dict[str, int]:
        """The Parquet files under a folder with their sizes in bytes, by their names from the root, sorted."""
        chosen = fs.FileSelector(f"{self._root}/{folder}", recursive=True, allow_not_found=True)
        found = {
            info.path[len(self._root) + 1 :]: info.size
            for info in self._system.get_file_info(chosen)
            if info.is_file and info.extension == "parquet" and not info.base_name.startswith(_HIDDEN)
        }
        return dict(sorted(found.items()))

    def each(self, names: Iterable[str], read: Callable[[str], _T]) -> Iterator[_T]:
        """What ``read`` returns for each file; for one that was merged meanwhile, for the file that its rows are in."""
        left = list(names)
        known = set(left)
        for name in left:
            try:
                found = read(name)
            except FileNotFoundError:
                later = self.names(name.rpartition("/")[0]).keys() - known
                left += sorted(later)
                known |= later
            else:
                yield found

    def read(self, name: str) -> pa.Table:
        """The rows of a file. Raises ``NotOursError`` for a file that is no Parquet, or is cut off."""
        with self._system.open_input_file(f"{self._root}/{name}") as file:
            try:
                return parquet.read_table(file)
            except pa.ArrowInvalid as error:
                raise NotOursError(f"{name}: {str(error)[:200]}") from None

    def columns(self, name: str, schema: pa.Schema, needed: Sequence[str]) -> pa.Table:
        """Some columns of a file, whose others are not read; one that an older version did not write is null.

        Raises:
            NotOursError: The file is no Parquet, lacks a column that is ``needed``, or holds another type in one.
        """
        with self._system.open_input_file(f"{self._root}/{name}") as file:
            try:
                whole = parquet.ParquetFile(file)
                there = set(whole.schema_arrow.names)
                if missing := set(needed) - there:
                    raise NotOursError(f"{name}: there is no column {min(missing)}")
                found = whole.read(columns=[each for each in schema.names if each in there])
                own = [found[each.name].cast(each.type) if each.name in there else None for each in schema]
                nulls = [pa.nulls(len(found), each.type) for each in schema]
                return pa.table([o if o is not None else n for o, n in zip(own, nulls, strict=True)], schema=schema)
            except pa.ArrowException as error:
                raise NotOursError(f"{name}: {str(error)[:200]}") from None

    def metadata(self, name: str) -> Mapping[bytes, bytes]:
        """The file's own metadata. Raises ``NotOursError`` likewise."""
        with self._system.open_input_file(f"{self._root}/{name}") as file:
            try:
                return parquet.read_schema(file).metadata or {}
            except pa.ArrowInvalid as error:
                raise NotOursError(f"{name}: {str(error)[:200]}") from None

    def write(self, name: str, rows: pa.Table) -> None:
        """Write a file, or replace it."""
        whole = pa.BufferOutputStream()  # for a stream that fails half-way would be closed as an object that is cut off
        parquet.write_table(rows, whole, compression="zstd")
        self.put(name, whole.getvalue())

    def get(self, name: str) -> bytes:
        """The bytes of a file. Raises ``FileNotFoundError`` without one."""
        with self._system.open_input_file(f"{self._root}/{name}") as file:
            return bytes(file.read())

    def put(self, name: str, body: bytes | pa.Buffer) -> None:
        """Write the bytes of a file, or replace them, all at once."""
        path = f"{self._root}/{name}"
        if not self.local:  # an object appears when its last byte is there
            with self._system.open_output_stream(path) as file:
                file.write(body)
            return
        folder, _, base = path.rpartition("/")
        self._system.create_dir(folder, recursive=True)
        beside = Path(f"{folder}/{_HIDDEN}{base}.tmp")
        beside.unlink(missing_ok=True)  # what a kill or somebody else left there has a mode and a target of its own
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._mode)
        with os.fdopen(descriptor, "wb") as new:
            new.write(body)
            new.flush()
            os.fsync(new.fileno())  # what is here is deleted elsewhere
        beside.replace(path)

    def delete(self, name: str) -> None:
        """Delete a file; one that is gone already is no error."""
        try:
            self._system.delete_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return

    def check(self) -> None:
        """Raise ``OSError`` where a directory cannot be written; an object store is not asked."""
        if self.local:
            self._system.create_dir(self._root, recursive=True)
            probe = Path(self._root) / f"{_HIDDEN}writable"
            probe.touch()
            probe.unlink()
