"""Where the verdicts of a run go: a file, a stream, or shards of a folder or a bucket, with a manifest.

A file is also the record of how far the run came: there is no side file that could disagree with it. Cases are judged
in order, so the existing verdicts are walked in step with the cases: none is judged again, and work goes on at the
first missing one. A partial last line is removed. After a kill at any moment the result is the same file.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal, Self, TypeAlias, cast

import msgspec
import orjson

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import JsonRecord

from .case_lines import NumberedLine, loaded
from .case_sources import CaseSources
from .judged_with import JUDGED_WITH, changed, judged_with, stated_settings
from .request import ScoreRequest
from .resume import AnotherRunError, AppendFile, Wanted
from .tally import ScoreTally

if TYPE_CHECKING:
    from sidejudge.integrations.history.place import Place

ShardForm: TypeAlias = Literal["jsonl", "parquet"]
SHARD_BYTES: Final = 16 * 2**20
SHARD_S: Final = 30.0
"""A shard ends when it is this large or this old: a kill costs at most this much work."""
_MANIFEST: Final = "manifest.json"
BLOCK_BYTES = 256 * 1024
BLOCK_S = 0.5
"""Verdicts are written when a block is full or this old: a kill costs at most this much work, never a verdict twice."""


class VerdictOutput:
    """A destination for verdicts. By default it holds none yet, and needs no note of the input read so far.

    ``walked``: the verdicts that stand have come to their end; ``resumed`` is how many there were.
    """

    walked = True
    resumed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Write what waits."""

    def append(self, verdict: bytes) -> None:
        """Add whole lines, each with its line break."""
        raise NotImplementedError

    def existing(self, wanted: Wanted) -> Mapping[str, object] | None:  # noqa: ARG002  # see the class
        """The verdict that stands next, where it is the wanted one; None once they have come to their end."""
        return None

    def all_walked(self) -> None:
        """Check that no verdict follows the last case."""

    def counted(self, tally: ScoreTally) -> None:
        """Count the verdicts that stand, unless they are walked beside the cases."""

    def left(
        self,
        lines: Iterator[NumberedLine],
        passed_over: Callable[[NumberedLine], None],  # noqa: ARG002  # see the class
    ) -> Iterator[NumberedLine]:
        """The lines that are still to be read; ``passed_over`` gets each of the others."""
        return lines

    def reached(self, read: int, number: int, tally: ScoreTally) -> None:
        """All verdicts on the input up to there have been appended: ``read`` bytes, lines up to ``number``."""


class VerdictFile(VerdictOutput):
    """Appends verdicts to a file, after existing ones; ``anew`` removes these."""

    def __init__(self, path: Path, *, anew: bool = False) -> None:
        self._path, self._anew = path, anew
        self._old: BinaryIO | None = None
        self._new: AppendFile
        self._kept = 0
        self._line = 0
        self._block: list[bytes] = []
        self._size = 0
        self._since = time.monotonic()
        self.walked = False

    def __enter__(self) -> Self:
        self._new = AppendFile(self._path)
        if self._path.is_file():
            if self._anew:
                self._new.cut(0)  # once it is locked: another process may be writing it
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
        """Write the waiting lines."""
        block, self._block, self._size = b"".join(self._block), [], 0
        self._new.write(block)
        self._since = time.monotonic()

    def _next(self) -> Mapping[str, object] | None:
        if self._old is None:
            self.walked = True
            return None
        line = self._old.readline()
        if not line.endswith(b"\n"):  # the end, or a line that was cut off: from here on it is ours to write
            self._new.cut(self._kept)
            self._old.close()
            self._old = None
            self.walked = True
            return None
        self._line += 1
        try:
            stated = loaded(line)
        except orjson.JSONDecodeError:
            stated = None
        if not isinstance(stated, dict):
            raise AnotherRunError(f"{self._path}, line {self._line}: is not a verdict")
        self._kept += len(line)
        return stated


class VerdictStream(VerdictOutput):
    """Standard output, or a pipe: it holds no earlier verdicts, and nothing can be undone."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def __exit__(self, *_: object) -> None:
        self._file.flush()

    def append(self, verdict: bytes) -> None:
        self._file.write(verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shard:
    """One shard by its name in the folder, and the counts of the input up to ``read`` bytes.

    ``number`` is that of the last line. Rows of Parquet may end at one byte, and recorded traces do; a manifest of
    version 0.2.0 has bytes alone.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"\Ashard-\d{6,9}\.(jsonl|parquet)\Z")]
    verdicts: int
    read: int
    number: int | None = None
    bad_lines: int
    unrouted: int
    excluded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """What a run depends on, whether it has come to its end, and its shards."""

    run: object = None
    complete: bool = False
    shards: list[_Shard]


class VerdictShards(VerdictOutput):
    """Writes verdicts to ``place``. ``run`` is what a run depends on: another one is refused.

    A shard is written whole, and then the manifest names it, with how far the input was read. A run that was killed
    goes on from there: what the manifest does not name is written anew under the same name, so that no verdict is lost
    or doubled.
    """

    def __init__(
        self, place: Place, form: ShardForm, run: Mapping[str, object], clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._place, self._form, self._run, self._clock_s = place, form, dict(run), clock_s
        self._shards: list[_Shard] = []
        self._open: list[bytes] = []
        self._whole: list[bytes] = []
        self._size = 0
        self._reached: dict[str, int] = {}
        self._since = 0.0

    def begin(self, *, anew: bool) -> None:
        """Read the manifest; ``anew`` forgets it. Raises ``OSError``, and ``AnotherRunError`` for another run's."""
        self._since = self._clock_s()
        try:
            stated = msgspec.json.decode(self._place.get(_MANIFEST), type=_Manifest)
        except FileNotFoundError:
            return
        except msgspec.DecodeError:
            raise AnotherRunError(f"{_MANIFEST}: is no manifest of verdicts") from None
        if anew:
            self._place.delete(_MANIFEST)
            for shard in stated.shards:
                self._place.delete(shard.name)
        elif stated.run != self._run:
            was = stated.run if isinstance(stated.run, dict) else {}
            setting = changed(was.get(JUDGED_WITH), self._run.get(JUDGED_WITH))
            why = f"{setting} since it began" if setting else "is of another input, configuration or choice of rubrics"
            raise AnotherRunError(f"{_MANIFEST}: {why}")
        else:
            self._shards = stated.shards

    def counted(self, tally: ScoreTally) -> None:
        """Count the existing verdicts."""
        for shard in self._shards:
            for verdict in self._verdicts(shard.name):
                tally.add(verdict)
                self.resumed += 1
        if self._shards:
            last = self._shards[-1]
            tally.bad_lines, tally.unrouted, tally.excluded = last.bad_lines, last.unrouted, last.excluded

    def left(
        self, lines: Iterator[NumberedLine], passed_over: Callable[[NumberedLine], None]
    ) -> Iterator[NumberedLine]:
        """The lines that the manifest does not cover."""
        if not self._shards:
            return lines
        read, number = self._shards[-1].read, self._shards[-1].number

        def is_covered(line: NumberedLine) -> bool:
            covered = line.read <= read if number is None else line.number <= number
            if covered:
                passed_over(line)
            return covered

        return dropwhile(is_covered, lines)

    def __exit__(self, *_: object) -> None:
        self._cut()

    def all_walked(self) -> None:
        self._cut()
        self._write_manifest(complete=True)

    def append(self, verdict: bytes) -> None:
        self._open.append(verdict)

    def reached(self, read: int, number: int, tally: ScoreTally) -> None:
        """All verdicts on the input up to there have been appended."""
        self._whole += self._open
        self._size += sum(map(len, self._open))
        self._open = []
        counts = {"bad_lines": tally.bad_lines, "unrouted": tally.unrouted, "excluded": tally.excluded}
        self._reached = {"read": read, "number": number, **counts}
        if self._size >= SHARD_BYTES or self._clock_s() - self._since >= SHARD_S:
            self._cut()

    def _cut(self) -> None:
        if not self._reached:
            return
        body, self._whole, self._size = b"".join(self._whole), [], 0
        name = f"shard-{len(self._shards):06d}.{self._form}"
        if self._form == "parquet":
            from sidejudge.integrations.history.rows import table  # noqa: PLC0415  # pyarrow only where it is asked for

            verdicts = cast("list[JsonRecord]", [loaded(line) for line in body.splitlines()])  # as they were appended
            self._place.write(name, table("verdicts", verdicts))
        else:
            self._place.put(name, body)
        self._shards.append(_Shard(name=name, verdicts=body.count(b"\n"), **self._reached))
        self._reached = {}
        self._write_manifest(complete=False)
        self._since = self._clock_s()

    def _write_manifest(self, *, complete: bool) -> None:
        stated = _Manifest(run=self._run, complete=complete, shards=self._shards)
        self._place.put(_MANIFEST, orjson.dumps(stated, option=orjson.OPT_INDENT_2))

    def _verdicts(self, name: str) -> Iterator[JsonRecord]:
        if self._form == "parquet":
            texts = self._place.read(name)["record"].to_pylist()
        else:
            texts = self._place.get(name).splitlines()
        for text in texts:
            found = loaded(text)
            if not isinstance(found, dict):
                raise AnotherRunError(f"{name}: holds a line that is no verdict")
            yield found


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
) -> VerdictOutput:
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
    return VerdictFile(Path(out), anew=overwrite)


def _run(sources: CaseSources, request: ScoreRequest, settings: Config) -> dict[str, object]:
    """All that the verdicts of a run depend on, except the contents of the files."""
    versions = sorted((name, rubric.version) for name, rubric in configured(settings).items())
    judges = {key: value for each in judged_with(settings).values() for key, value in each.items()}
    chosen: tuple[object, ...] = (versions, settings.scenarios, settings.routes, settings.default_rubrics)
    if settings.budgets:
        chosen += (settings.budgets,)
    return {
        "cases": [[each.name, each.size] for each in sources.files],
        "rubrics": list(request.chosen),
        "configuration": hashlib.sha256(repr(chosen).encode()).hexdigest()[:16],
        "repeat": request.repeat,
        "keep_outputs": request.keep_outputs,
        **stated_settings(judges),
    }
