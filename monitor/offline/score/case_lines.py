"""Case lines: reads a file of cases (JSON Lines, CSV or Parquet) as lines of JSON, each of bounded length."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final, Literal, TextIO, TypeAlias, get_args

import orjson

from sidejudge.integrations.cases.fields import TEXT_FIELDS
from sidejudge.integrations.cases.lines import CaseError, plain, read_case, repeated_key
from sidejudge.integrations.cases.names import OTHER_NAMES
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import RemediedError
from sidejudge.scoring.lexical.shown_text import label
from sidejudge.scoring.trace.jsontext import no_constant
from sidejudge.scoring.trace.span import Json

MAX_LINE = 64 * 2**20
"""Bytes of one case. A longer line is not held in memory: it is reported and skipped."""


@dataclass(frozen=True, slots=True)
class NumberedLine:
    """A line of a file: its ``number`` from 1, its bytes (``text``), and how many bytes were ``read`` up to its end.

    ``text`` is ``None`` for a line that cannot be read; ``fault`` is the reason. ``case`` is the case of a recorded
    trace, with its spans, which the case format does not hold.
    """

    number: int
    text: bytes | None
    read: int
    case: Case | None = None
    fault: str = ""


def lines(file: BinaryIO, limit: int = MAX_LINE) -> Iterator[NumberedLine]:
    """Every line that is not blank. A byte order mark at the start of the file is no part of the first."""
    number = read = 0
    while chunk := file.readline(limit + 1):
        number += 1
        read += len(chunk)
        too_long = len(chunk) > limit
        if number == 1:
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        while too_long and chunk and not chunk.endswith(b"\n"):
            chunk = file.readline(limit)
            read += len(chunk)
        if too_long:
            yield NumberedLine(number, None, read, fault=f"is longer than {limit} bytes")
        elif chunk.strip():
            yield NumberedLine(number, chunk, read)


def read_cases(lines: Iterable[NumberedLine], complain: Callable[[str], None]) -> Iterator[Case]:
    """The cases on these lines. ``complain`` gets one line of text for each line that is no case."""
    for line in lines:
        if line.text is None:
            complain(f"line {line.number}: {line.fault}")
            continue
        try:
            yield read_case(line.text, line.number)
        except CaseError as error:
            complain(str(error))


def json_of(line: NumberedLine, fault: type[Exception]) -> object:
    """The contents of a line; where it is too long, is no JSON, or has a key twice, a ``fault`` that states it."""
    if line.text is None:
        raise fault(line.fault)
    try:
        found = loaded(line.text)
    except orjson.JSONDecodeError as error:
        raise fault(f"is not JSON: {error.msg}") from None
    if (key := repeated_key(line.text, found)) is not None:
        raise fault(f"{label(key)}: stands twice in one object")
    return found


def loaded(text: bytes) -> Json:
    """A line of JSON, also with halves of surrogate pairs, which a verdict may quote; ``orjson.JSONDecodeError``."""
    try:
        found: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            found = json.loads(text, parse_constant=no_constant)
        except (ValueError, RecursionError):
            pass
        else:
            return found
        raise
    return found


TABLES: Final = (".csv", ".tsv", ".parquet")
"""Endings of files whose rows are cases."""
RECORDED: Final = (".pb", ".json", ".gz")
"""Endings of files that may hold recorded OTLP requests."""
Format: TypeAlias = Literal["jsonl", "csv", "tsv", "parquet", "otlp"]
"""How a file of cases is written."""
_ROWS: Final = 256
"""Rows of Parquet in memory at a time."""
_NUMBERS: Final = frozenset({
    "latency_e2e_ms", "latency_model_ms", "input_tokens", "output_tokens", "cost_usd", "token_cost",
    "sampling_probability",
})  # fmt: skip
_COUNTS: Final = frozenset({"input_tokens", "output_tokens"})
_EXACT: Final = 2**53
_ANSWERS: Final = frozenset({"model_output", *OTHER_NAMES["model_output"]})
_NO_JSON: Final = TEXT_FIELDS | {"id"}
"""Fields that hold a text and nothing else."""
_TEXTS: Final = _NO_JSON | _ANSWERS
"""Fields whose cell is a text, also where it reads as JSON."""
_TRUTHS: Final = frozenset({"timed_out", "complete", "content_captured"})
_LISTS: Final = frozenset({"context", "contexts", "retrieval_context", "retrieved_contexts", "tags", "agents_called"})
"""Fields whose cell holds one text where it holds no JSON list."""
_TRUE: Final[Mapping[str, bool]] = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


class TableError(RemediedError):
    """A table that cannot be read as cases."""


@contextmanager
def case_lines(path: Path) -> Iterator[Iterator[NumberedLine]]:
    """The lines of a file of cases, written as its ending names. Raises ``TableError``."""
    with (
        path.open("rb", buffering=1 << 20) as file,
        closing(lines_of(file, str(path), form_of(str(path)), path.stat().st_size)) as found,
    ):
        yield found


def lines_of(file: BinaryIO, name: str, form: Format, size: int | None) -> Generator[NumberedLine, None, None]:
    """The lines of an open file of ``size`` bytes; it is left open. Raises ``TableError``."""
    if form == "parquet":
        yield from _parquet(file, name, size or 0)
    elif form == "jsonl":
        yield from lines(file)
    else:
        # What is no UTF-8 becomes halves of surrogate pairs, so that the line that holds it is known.
        text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            yield from _csv(text, name, "\t" if form == "tsv" else ",")
        finally:
            text.detach()  # standard input stays open


def form_of(name: str) -> Format:
    """How a file is written, by the ending of its name: JSON Lines without one that is known."""
    ending = PurePosixPath(name).suffix.lower().removeprefix(".")
    return "otlp" if ending == "pb" else next((form for form in get_args(Format) if form == ending), "jsonl")


def _csv(text: TextIO, path: str, delimiter: str) -> Iterator[NumberedLine]:
    """A line for each row; the number is the row's last line in the file. An empty cell is a field that is missing."""
    csv.field_size_limit(MAX_LINE)
    number = read = 0
    remedy = "write it as UTF-8 CSV with a row of names; a quote within a quoted cell is doubled"

    def counted() -> Iterator[str]:
        nonlocal read
        for at, line in enumerate(text, 1):
            try:
                read += len(line.encode())
            except UnicodeEncodeError:
                raise TableError(f"{path}: line {at}: is not UTF-8", remedy) from None
            yield line

    try:
        # Strictly, because a quote that is never closed would take all rows after it into one cell.
        rows = csv.reader(counted(), delimiter=delimiter, strict=True)
        head = next(rows, [])
        if len(set(head)) != len(head):
            raise TableError(f"{path}: two columns have one name", "name each column once")
        if len(head) == 1 and (other := next((each for each in ";\t,|" if each in head[0]), None)):
            raise TableError(
                f"{path}: its cells are parted by {other!r}, not {delimiter!r}",
                "write it with commas, or with tabs and the ending .tsv",
            )
        for row in rows:
            number = rows.line_num
            if any(row[len(head) :]):
                fault = f"has {len(row)} cells for {len(head)} columns; quote a cell that holds {delimiter!r}"
                yield NumberedLine(number, None, read, fault=fault)
            elif any(row):
                yield _row(number, dict(zip(head, row, strict=False)), read)
    except csv.Error as error:
        raise TableError(f"{path}: after line {number}: {error}", remedy) from None


def _row(number: int, cells: Mapping[str, str], read: int) -> NumberedLine:
    try:
        fields = {name: _cell(name, cell) for name, cell in cells.items() if cell}
    except CaseError as error:
        return _no_case(number, read, error)
    return NumberedLine(number, orjson.dumps(_answered(fields, cells)), read)


def _no_case(number: int, read: int, error: CaseError) -> NumberedLine:
    return NumberedLine(number, None, read, fault=f"{error.field}: {error.message}; {error.remedy}")


def _answered(fields: Mapping[str, object], columns: Iterable[str]) -> Mapping[str, object]:
    """The fields of a row, with null for an answer that has a column and no value: none came."""
    column = next((name for name in columns if name in _ANSWERS), None)
    return fields if column is None or not _ANSWERS.isdisjoint(fields) else {**fields, column: None}


def _cell(name: str, cell: str) -> Json:
    """A cell as its field requires: texts unchanged, anything else read as JSON, a number or a truth value.

    Raises ``CaseError``, without the line, where a key stands twice in one object.
    """
    text = cell.strip()
    if text[:1] in {"[", "{"} and name not in _TEXTS:
        try:
            found: Json = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            _refuse_repeated_key(text, found, name)
            turns = isinstance(found, list) and all(isinstance(each, dict) for each in found)
            return cell if name == "transcript" and not turns else found
    if name in _LISTS and _encloses(text):
        raise CaseError(0, name, "is a list, but no JSON", 'write it as JSON, ["one", "two"], such as by json.dumps')
    if name in _NUMBERS:
        try:
            number = float(text)
        except ValueError:
            return cell
        return cell if math.isinf(number) else _number(name, number, whole=text.isdecimal())
    if name in _TRUTHS:
        return _TRUE.get(text.lower(), cell)
    return [cell] if name in _LISTS else cell


def _refuse_repeated_key(text: str, read: Json, name: str) -> None:
    if (key := repeated_key(text.encode(), read)) is not None:
        raise CaseError(0, f"{name}.{label(key)}", "stands twice in one object", "keep one of the two")


def _encloses(text: str) -> bool:
    """Whether brackets stand around all of a text, as where pandas and DuckDB write a list into CSV.

    >>> [_encloses(each) for each in ("[one, two]", "['a] b', 'c']", "[1] one [2]")]
    [True, True, False]
    """
    if text[:1] != "[" or text[-1:] != "]":
        return False
    depths = accumulate((each == "[") - (each == "]") for each in text)
    return text[1:2] in {"'", '"'} or next((at for at, depth in enumerate(depths, 1) if not depth), 0) in {0, len(text)}


def _number(name: str, value: float, *, whole: bool) -> float:
    """A number as its field requires: a table with gaps writes a count as 12.0."""
    return int(value) if (whole or name in _COUNTS) and value.is_integer() and abs(value) < _EXACT else value


def _parquet(source: BinaryIO, path: str, size: int) -> Iterator[NumberedLine]:
    """A line for each row, numbered from 1. Null and NaN are as an empty cell; null in an object is a missing key."""
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra, needed by this alone
        from pyarrow import parquet  # noqa: PLC0415  # as above
    except ImportError:
        raise TableError(f"{path}: Parquet is not read here", "pip install 'sidejudge[parquet]'") from None
    try:
        with parquet.ParquetFile(source) as file:
            total, number = max(1, file.metadata.num_rows), 0
            kinds = {each.name: each.type for each in file.schema_arrow}
            for batch in file.iter_batches(batch_size=_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    read = size * number // total
                    try:
                        fields = {
                            name: _number(name, value, whole=False)
                            if isinstance(value, float)
                            else _stated(value, kinds[name], name)
                            for name, value in row.items()
                            if _is_stated(value)
                        }
                    except CaseError as error:
                        yield _no_case(number, read, error)
                        continue
                    yield NumberedLine(number, json.dumps(_answered(fields, row), default=plain).encode(), read)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{path}: {error}", "give a Parquet file with a column for each field") from None


def _is_stated(value: object) -> bool:
    return value is not None and value == value  # noqa: PLR0124  # NaN differs from itself


def _stated(value: object, kind: object, name: str) -> object:
    """A value without the keys that are null or NaN: in a struct each object has the keys of all other rows' too.

    Text that its column (``kind``, Arrow's type) marks as JSON, as DuckDB writes what differs by row, is what it holds;
    where the field is a text, such as an id, a number or an object is its own text, as in a cell of CSV.
    Raises ``CaseError``, without the line, where a key stands twice in one object of it.
    """
    if isinstance(value, str) and getattr(kind, "extension_name", None) == "arrow.json":
        try:
            found = loaded(value.encode())
        except orjson.JSONDecodeError:
            return value
        _refuse_repeated_key(value, found, name)
        return value if name in _NO_JSON and not isinstance(found, str | None) else found
    stored = getattr(kind, "storage_type", kind)  # of any other type that extends one of Arrow's
    within, inner = getattr(stored, "field", None), getattr(stored, "value_type", None)
    if isinstance(value, dict) and within is not None:
        return {key: _stated(each, within(key).type, name) for key, each in value.items() if _is_stated(each)}
    return [_stated(each, inner, name) for each in value] if isinstance(value, list) else value
