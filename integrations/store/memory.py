"""Notes that outlive a restart: texts by name, changed together or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from .part import Part, as_written, with_checksum

_END_OF_ROOM = "\x1f"
"""Stands between the name of a room and the name that it keeps something under."""


class KeyValueTable(Part):
    """``change`` returns once committed. Raises ``StoreError``.

    What is kept under the name of a ``room`` is apart from everything else.
    """

    def all(self) -> dict[str, str]:
        """Everything that is kept, apart from what rooms keep."""
        return {name: text for name, text in as_written(self._read("kept", ())).items() if _END_OF_ROOM not in name}

    def room(self, name: str) -> KeyValueRoom:
        """The same table for the names of one room alone."""
        return KeyValueRoom(self, name + _END_OF_ROOM)

    def under(self, prefix: str) -> dict[str, str]:
        """The notes with this prefix, by the rest of the name."""
        kept = (row for row in self._read("kept", ()) if row[0].startswith(prefix))
        return {name.removeprefix(prefix): text for name, text in as_written(kept).items()}

    async def change(self, values: Mapping[str, str | None]) -> None:
        """Keep these, all or none; ``None`` lets a name go."""
        if not values:
            return
        kept = [with_checksum(name, value) for name, value in values.items() if value is not None]
        gone = [(name,) for name, value in values.items() if value is None]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["keep"], kept)
            connection.executemany(self._sql["let_go"], gone)

        await self._write(work)


class KeyValueRoom:
    """Names that one room keeps, changed together or not at all."""

    def __init__(self, table: KeyValueTable, prefix: str) -> None:
        self._table, self._prefix = table, prefix

    def all(self) -> dict[str, str]:
        """Everything that the room keeps."""
        return self._table.under(self._prefix)

    async def change(self, values: Mapping[str, str | None]) -> None:
        """Keep these, all or none; ``None`` lets a name go."""
        await self._table.change({self._prefix + name: value for name, value in values.items()})
