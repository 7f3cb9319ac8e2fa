"""The file of results: one line for each test that was run, in the order in which they finished.

The last line of a test (and of its run, where every test runs several times) is the one that holds; earlier ones stay.
Nothing is rewritten, so that whatever moment the process is killed at, what was finished is there; half a line at the
end is cut away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sidejudge.integrations.jsonl import line
from sidejudge.monitor.offline.score.append_file import AnotherRunError, AppendFile
from sidejudge.scoring.trace.span import JsonRecord


class ResultsFile:
    """Results by test id and run. ``agent`` is whose answers the file holds: those of another are never mixed in."""

    def __init__(self, path: Path, agent: str) -> None:
        self._path = path
        self._agent = agent
        self._file: AppendFile
        self._existing: dict[tuple[str, int], JsonRecord] = {}

    def __enter__(self) -> Self:
        self._file = AppendFile(self._path)
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def existing(self, test_id: str, run: int, digest: str) -> JsonRecord | None:
        """The result that holds for this test, unless the test has changed since; ``None`` when there is none."""
        record = self._existing.get((test_id, run))
        return record if record is not None and record.get("digest") == digest else None

    def append(self, result: Mapping[str, object]) -> None:
        """Add a result; it is in the file when this returns."""
        self._file.write(line({"agent": self._agent, **result}))

    def _read(self) -> None:
        if not self._path.is_file():  # a pipe or a device: nothing stands in it
            return
        kept = 0
        with self._path.open("rb") as old:
            for number, text in enumerate(old, 1):
                if not text.endswith(b"\n"):
                    self._file.cut(kept)
                    break
                kept += len(text)
                record = self._result(text, number)
                self._existing[record["id"], record["run"]] = record

    def _result(self, text: bytes, number: int) -> dict[str, Any]:
        try:
            record = json.loads(
                text
            )  # it reads all that it writes: halves of surrogate pairs, whole numbers of any size
        except (ValueError, RecursionError):
            record = None
        if (
            not isinstance(record, dict)
            or not isinstance(record.get("id"), str)
            or type(record.get("run")) is not int
            or not isinstance(record.get("case", ""), dict | None)
            or not isinstance(record.get("verdicts"), list)
            or not isinstance(record.get("error"), str | None)
            or (record["case"] is None) is (record["error"] is None)
        ):
            raise AnotherRunError(f"{self._path}, line {number}: is not the result of a test")
        if record.get("agent") != self._agent:
            raise AnotherRunError(
                f"{self._path}, line {number}: is an answer of {str(record.get('agent'))[:200]}, not of {self._agent}"
            )
        return record


class NoResults:
    """Where results are not kept: nothing stands, and nothing is written."""

    def existing(self, test_id: str, run: int, digest: str) -> None:  # noqa: ARG002  # the signature of the other output
        return None

    def append(self, result: Mapping[str, object]) -> None:  # noqa: ARG002  # the signature of the other output
        return
