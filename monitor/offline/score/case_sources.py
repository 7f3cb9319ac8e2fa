"""Case sources: reads all files that one argument names as one file of cases, wherever they are.

A name is a file, a folder, a pattern (``calls/*.jsonl``), each on this machine or in an object store (``s3://``,
``gs://``), or '-' for standard input. Files come in the order of their names; their lines are counted on and on.
"""

from __future__ import annotations

import io
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final

import orjson

from sidejudge.integrations.otlp.wire.recording import RecordedFile, RecordingError, recorded_traces
from sidejudge.monitor.api.inspect import inspect_spans

from .case_lines import TABLES, Format, NumberedLine, TableError, form_of, lines_of

_ENDINGS: Final = (".jsonl", ".ndjson", ".pb", *TABLES)
"""Endings of the files of a folder that are read."""
_JSON: Final = ".json"
_PACKED: Final = (".gz", ".zst", ".bz2", ".xz")
"""Endings of compressed files: they are refused, for a folder without them would be judged in part."""
_REQUEST: Final = re.compile(rb'\s*\{\s*"resource(?:Spans|Logs)"')
"""How an OTLP request in JSON begins."""
_HEAD: Final = 1_000
"""Bytes of a file that are looked at."""


@dataclass(frozen=True, slots=True)
class CaseFile:
    """One file: its name, its size in bytes (None for standard input), how to open it, and the format of its contents.

    ``form`` is None where the ending of the name decides it.
    """

    name: str
    size: int | None
    open: Callable[[], BinaryIO]
    form: Format | None = None


@dataclass(slots=True)
class CaseSources:
    """The files that ``given`` names, in the order of their names.

    Raises:
        TableError: There is none, or the place cannot be reached.
    """

    given: str
    form: Format | None = None
    files: Sequence[CaseFile] = field(init=False)
    _begins: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = _remote(self.given) if "://" in self.given else _local(self.given, self.form)
        if packed := [each.name for each in self.files if each.name.lower().endswith(_PACKED)]:
            raise TableError(f"{packed[0]}: is compressed", "unpack it, for compressed files are not read")
        if not self.files and Path(self.given).is_dir():
            raise TableError(
                f"{self.given}: the folder holds neither cases nor recorded requests",
                "name a folder with .jsonl, .csv, .tsv, .parquet or .pb, or with OTLP requests in .json",
            )
        if not self.files:
            raise TableError(f"{self.given}: there is no such file", "name a file, a folder or a pattern in quotes")

    @property
    def size(self) -> int | None:
        """Bytes of all files; None where that is not known."""
        sizes = [each.size for each in self.files]
        return None if None in sizes else sum(each or 0 for each in sizes)

    def lines(self) -> Iterator[NumberedLine]:
        """The lines of all files, numbered through. Raises ``TableError``."""
        recorded = [each for each in self.files if self._form(each) == "otlp"]
        if recorded:
            if len(recorded) < len(self.files):
                raise TableError(f"{self.given}: holds requests and cases", "name them apart, or give --format")
            yield from _recorded(recorded)
            return
        numbered = read = 0
        for each in self.files:
            self._begins.append(numbered)
            last = NumberedLine(0, None, 0)
            try:
                with each.open() as file, closing(lines_of(file, each.name, self._form(each), each.size)) as found:
                    for last in found:
                        yield replace(last, number=numbered + last.number, read=read + last.read)
            except OSError as error:
                raise TableError(
                    f"{each.name}: {(error.strerror or str(error))[:300]}", "check the file and who may read it"
                ) from None
            numbered, read = numbered + last.number, read + last.read

    def located(self, message: str) -> str:
        """A message on a line by its number (``line 7: …``) with the file's name where there are several files."""
        head, colon, rest = message.partition(":")
        number = head.removeprefix("line ")
        if len(self.files) < 2 or not self._begins or not number.isdecimal():
            return message
        at = bisect_right(self._begins, int(number) - 1) - 1
        return f"{self.files[at].name}, line {int(number) - self._begins[at]}{colon}{rest}"

    def _form(self, file: CaseFile) -> Format:
        return self.form or file.form or form_of(file.name)


def _local(given: str, form: Format | None) -> Sequence[CaseFile]:
    if given == "-":
        return (CaseFile("-", None, lambda: sys.stdin.buffer),)
    path = Path(given)
    found = [path]
    if has_magic(given) and not path.exists():
        found = [Path(each) for each in glob(given, recursive=True)]  # noqa: PTH207  # it may be absolute
    if path.is_dir():
        found = [each for each in path.rglob("*") if _ending(each.name) in (*_ENDINGS, _JSON)]
    files = [_file(each) for each in sorted(found) if not each.is_dir() and (each.exists() or each == path)]
    if path.is_dir() and form != "otlp":  # of JSON in a folder only requests are read
        return [each for each in files if each.form or not each.name.lower().endswith(_JSON)]
    return files


def _is_request(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _REQUEST.match(file.read(_HEAD)) is not None
    except OSError:
        return False  # reading it names the reason


def _file(path: Path) -> CaseFile:
    recorded = path.suffix.lower() == _JSON and path.is_file() and _is_request(path)
    size = path.stat().st_size if path.is_file() else None
    return CaseFile(str(path), size, lambda: path.open("rb", 1 << 20), "otlp" if recorded else None)


def _remote(given: str) -> Sequence[CaseFile]:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        from pyarrow import fs  # noqa: PLC0415  # as above
    except ImportError:
        raise TableError(f"{given}: is not read here", "pip install 'sidejudge[parquet]'") from None
    address, question, options = given.partition("?")
    scheme, _, place = address.partition("://")
    parts = place.split("/")
    fixed = next((at for at, part in enumerate(parts) if has_magic(part)), len(parts))
    try:
        system, root = fs.FileSystem.from_uri(f"{scheme}://{'/'.join(parts[:fixed])}{question}{options}")
        info = system.get_file_info(root)
        infos = [info] if info.is_file else system.get_file_info(fs.FileSelector(root, recursive=True))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{address}: {str(error)[:300]}", "check the address, and the credentials") from None
    pattern = place.rpartition("@")[2]  # keys may stand before a bucket
    wanted = [
        each
        for each in infos
        if each.is_file and (each.path == root or _wanted(each.path, pattern, magic=fixed < len(parts)))
    ]
    return [_stored(system, each, scheme) for each in sorted(wanted, key=lambda each: str(each.path))]


def _wanted(path: str, pattern: str, *, magic: bool) -> bool:
    if magic:
        return fnmatchcase(path, pattern)
    return _ending(path) in _ENDINGS


def _ending(name: str) -> str:
    """The ending of a name that states what the file holds, compressed or not."""
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in _PACKED else path.suffix


def _stored(system: Any, info: Any, scheme: str) -> CaseFile:
    def opened() -> BinaryIO:
        return io.BufferedReader(system.open_input_file(info.path), 1 << 20)

    return CaseFile(f"{scheme}://{info.path}", int(info.size), opened)


def _recorded(files: Sequence[CaseFile]) -> Iterator[NumberedLine]:
    """The cases of recorded OTLP requests, one a trace, which may be in several files."""
    total = sum(each.size or 0 for each in files)
    try:
        for number, spans in enumerate(recorded_traces(RecordedFile(each.name, each.open) for each in files), 1):
            for found in inspect_spans(spans):
                yield NumberedLine(number, orjson.dumps(found.to_json()), total, found.case)
    except RecordingError as error:
        raise TableError(str(error)[:500], "give files that each hold one OTLP export request") from None
