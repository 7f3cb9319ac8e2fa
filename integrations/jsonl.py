"""JSON Lines: records appended to a file, one a line."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

log = logging.getLogger("sidejudge.jsonl")


def line(record: Mapping[str, object]) -> bytes:
    """A record as one line of JSON, with its line break."""
    try:
        return orjson.dumps(record) + b"\n"
    except TypeError:  # whole numbers beyond 64 bits, halves of surrogate pairs: json can write what orjson refuses
        return json.dumps(record).encode() + b"\n"


class SinkError(Exception):
    """A file that cannot be appended to."""


class JsonLines:
    """Appends records. The file is opened for each batch, so that a log rotator may move it at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failing = False

    def check(self) -> None:
        """Raise ``SinkError`` when the file cannot be appended to, before anything relies on it."""
        try:
            self._path.open("ab").close()
        except OSError as error:
            raise SinkError(f"sinks.jsonl.path: cannot append to {self._path}: {error.strerror}") from None

    def write(self, records: Sequence[Mapping[str, object]]) -> int:
        """Append all records in one write; return how many could not be written (none or all)."""
        block = b"".join(line(record) for record in records)
        try:
            with self._path.open("ab") as file:
                file.write(block)
        except OSError as error:
            if not self._failing:  # once an outage, not once a verdict
                log.warning("cannot append verdicts", extra={"path": str(self._path), "cause": error.strerror})
            self._failing = True
            return len(records)
        self._failing = False
        return 0
