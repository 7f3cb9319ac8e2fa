"""What somebody wants to remember across restarts: texts by name, changed together or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from .part import Part


class KeyValueTable(Part):
    """``change`` returns once committed. Raises ``StoreError``."""

    def all(self) -> dict[str, str]:
        """Everything that is kept."""
        return dict(self._read("kept", ()))

    async def change(self, values: Mapping[str, str | None]) -> None:
        """Keep these, all or none; ``None`` lets a name go."""
        if not values:
            return
        kept = [(name, value) for name, value in values.items() if value is not None]
        gone = [(name,) for name, value in values.items() if value is None]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["keep"], kept)
            connection.executemany(self._sql["let_go"], gone)

        await self._write(work)
