"""Asked: deletions that were asked for and that Langfuse may not have done yet, in a file beside the store."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

KEPT_S: Final = 7 * 24 * 3600.0
"""How long an id is remembered: a queue of one deletion in two minutes does 5,000 in that time."""


class AskedDeletions:
    """The ids of scores of one Langfuse whose deletion was asked for, over several calls of the command.

    A file that cannot be read or written costs no more than a second request for the same deletion.
    """

    def __init__(self, store: Path, base_url: str) -> None:
        self._path, self._base_url = store.with_name(f"{store.name}.deletions.json"), base_url
        self._known = self._read()

    def __contains__(self, score_id: object) -> bool:
        return score_id in self._known

    def add(self, ids: Iterable[str]) -> None:
        """Remember these too."""
        self._known |= dict.fromkeys(ids, time.time())
        try:
            self._path.write_text(json.dumps({"base_url": self._base_url, "asked": self._known}), "utf-8")
        except OSError:
            return

    def _read(self) -> dict[str, float]:
        try:
            held = json.loads(self._path.read_text("utf-8"))
            if held["base_url"] != self._base_url:
                return {}
            return {str(name): float(at_s) for name, at_s in held["asked"].items() if at_s > time.time() - KEPT_S}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}
