"""Place: the folder or bucket that holds a history, as named files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs, parquet

_HIDDEN: Final = "."
"""A file that is being written begins with it: readers of Parquet leave such files out."""


class Place:
    """Files under ``path``: a directory, or a URI that pyarrow reads (``s3://bucket/folder?region=…``, ``gs://…``).

    Methods raise ``OSError`` where the place cannot be reached or written.
    """

    def __init__(self, path: str) -> None:
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

    def read(self, name: str) -> pa.Table:
        """The rows of a file."""
        with self._system.open_input_file(f"{self._root}/{name}") as file:
            return parquet.read_table(file)

    def column(self, name: str, column: str) -> list[Any]:
        """One column of a file; its other columns are not read."""
        with self._system.open_input_file(f"{self._root}/{name}") as file:
            return list(parquet.read_table(file, columns=[column])[column].to_pylist())

    def metadata(self, name: str) -> Mapping[bytes, bytes]:
        """What the file says of itself."""
        with self._system.open_input_file(f"{self._root}/{name}") as file:
            return parquet.read_schema(file).metadata or {}

    def write(self, name: str, rows: pa.Table) -> None:
        """Write a file, or replace it."""
        path = f"{self._root}/{name}"
        if not self.local:  # an object appears when its last byte is there
            with self._system.open_output_stream(path) as file:
                parquet.write_table(rows, file, compression="zstd")
            return
        folder, _, base = path.rpartition("/")
        self._system.create_dir(folder, recursive=True)
        beside = f"{folder}/{_HIDDEN}{base}.tmp"
        parquet.write_table(rows, beside, compression="zstd")
        Path(beside).replace(path)

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
