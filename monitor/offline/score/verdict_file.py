"""The file of verdicts: what stands in it already, and what is appended.

There is no side file that could disagree with it. Cases are judged in order, so the verdicts that stand are walked
in step with the cases: what is there is not judged again, and the first that is missing is where the work goes on.
A last line that was cut off is cut away. Whatever moment the process was killed at, the result is the same file.

Verdict output: where the verdicts of a run go: a file, a stream, or shards of a folder or a bucket.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Literal, Self, TypeAlias

import orjson

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.errors import SidejudgeError

from .case_lines import NumberedLine
from .case_sources import CaseSources
from .request import ScoreRequest
from .resume import AnotherRunError, AppendFile, Wanted
from .tally import ScoreTally
from .verdict_shards import VerdictShards

BLOCK_BYTES = 256 * 1024
BLOCK_S = 0.5
"""Verdicts are written when a block is full or this old: a kill costs at most this much work, never a verdict twice."""


class OneFile:
    """An output in one piece: it needs no note of how far the input was read."""

    def counted(self, tally: ScoreTally) -> None:
        """See ``VerdictShards``; here verdicts that stand are walked beside the cases."""

    def left(self, lines: Iterator[NumberedLine]) -> Iterator[NumberedLine]:
        """All lines."""
        return lines

    def reached(self, read: int, tally: ScoreTally) -> None:
        """Nothing."""


class VerdictFile(OneFile):
    """Appends verdicts to a file, after those that already stand."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._old: BinaryIO | None = None
        self._new: AppendFile
        self._kept = 0
        self._line = 0
        self._block: list[bytes] = []
        self._size = 0
        self._since = time.monotonic()
        self._walked = False
        self.resumed = 0

    @property
    def walked(self) -> bool:
        """Whether the verdicts of the file have come to their end."""
        return self._walked

    def __enter__(self) -> Self:
        self._new = AppendFile(self._path)
        if self._path.is_file():
            self._old = self._path.open("rb")
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.flush()
        finally:
            if self._old is not None:
                self._old.close()
            self._new.close()

    def existing(self, wanted: Wanted) -> Mapping[str, object] | None:
        """The next verdict of the file when it is this one; ``None`` once the file has come to its end."""
        stated = self._next()
        if stated is None:
            return None
        fault = wanted.fault(stated)
        if fault is not None:
            raise AnotherRunError(f"{self._path}, line {self._line}: {fault}")
        self.resumed += 1
        return stated

    def all_walked(self) -> None:
        """Refuse a file that goes on after the last case."""
        if self._next() is not None:
            raise AnotherRunError(f"{self._path}, line {self._line}: goes on after the last of these cases")

    def append(self, verdict: bytes) -> None:
        """Add whole lines, each with its line break."""
        self._block.append(verdict)
        self._size += len(verdict)
        if self._size >= BLOCK_BYTES or time.monotonic() - self._since >= BLOCK_S:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        block, self._block, self._size = b"".join(self._block), [], 0
        self._new.write(block)
        self._since = time.monotonic()

    def _next(self) -> dict[str, object] | None:
        if self._old is None:
            self._walked = True
            return None
        line = self._old.readline()
        if not line.endswith(b"\n"):  # the end, or a line that was cut off: from here on it is ours to write
            self._new.cut(self._kept)
            self._old.close()
            self._old = None
            self._walked = True
            return None
        self._line += 1
        try:
            stated = orjson.loads(line)
        except orjson.JSONDecodeError:
            stated = None
        if not isinstance(stated, dict):
            raise AnotherRunError(f"{self._path}, line {self._line}: is not a verdict")
        self._kept += len(line)
        return stated


class VerdictStream(OneFile):
    """Standard output, or a pipe: nothing stands in it, and nothing can be taken back."""

    resumed = 0
    walked = True

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def existing(self, wanted: Wanted) -> Mapping[str, object] | None:  # noqa: ARG002  # the signature of the other output
        return None

    def all_walked(self) -> None:
        return

    def append(self, verdict: bytes) -> None:
        self._file.write(verdict)

    def flush(self) -> None:
        self._file.flush()


Output: TypeAlias = VerdictFile | VerdictStream | VerdictShards
ShardForm: TypeAlias = Literal["jsonl", "parquet"]


class OutputError(SidejudgeError):
    """The place of verdicts cannot be reached or written."""


def verdict_output(
    out: str,
    shards: ShardForm | None,
    sources: CaseSources,
    request: ScoreRequest,
    settings: Config,
    *,
    overwrite: bool,
) -> Output:
    """The output that was asked for; ``overwrite`` begins anew. Raises ``OutputError``, ``AnotherRunError``."""
    if shards is not None:
        try:
            from sidejudge.integrations.history.place import Place  # noqa: PLC0415  # pyarrow only where it is asked for

            made = VerdictShards(Place(out), shards, _run(sources, request, settings))
            made.begin(anew=overwrite)
        except ImportError:
            raise OutputError("shards are not written here: pip install 'sidejudge[parquet]'") from None
        except OSError as error:
            raise OutputError(str(error)[:300]) from None
        return made
    if out == "-":
        return VerdictStream(sys.stdout.buffer)
    if "://" in out:
        raise OutputError("one file is not written to an object store; add --shards jsonl")
    if overwrite and Path(out).is_file():
        Path(out).write_bytes(b"")
    return VerdictFile(Path(out))


def _run(sources: CaseSources, request: ScoreRequest, settings: Config) -> dict[str, object]:
    """What the verdicts of a run depend on, but for the contents of the files."""
    versions = sorted((name, rubric.version) for name, rubric in configured(settings).items())
    chosen = (versions, settings.scenarios, settings.routes, settings.default_rubrics)
    return {
        "cases": [[each.name, each.size] for each in sources.files],
        "rubrics": list(request.chosen),
        "configuration": hashlib.sha256(repr(chosen).encode()).hexdigest()[:16],
        "repeat": request.repeat,
        "keep_outputs": request.keep_outputs,
    }
