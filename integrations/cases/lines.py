"""Cases from JSON Lines: one strict reader of the case format.

A line is a case or an error that names its line, its field and a remedy (``fields.py``). Fields are also read
under the names of other tools (``names.py``); a line without an id is called by its number.
"""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal

import orjson

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.trace.span import Json

from .fields import FieldError, case_of, unknown_fields
from .names import in_our_names


class CaseError(SidejudgeError, ValueError):
    """A line that is not a valid case: 1-based line, field (``$`` for the line itself), cause and remedy."""

    def __init__(self, line: int, field: str, message: str, remedy: str) -> None:
        self.line = line
        self.field = field
        self.message = message
        self.remedy = remedy
        super().__init__(f"line {line}: {field}: {message}; {remedy}")


def plain(value: object) -> Json:
    """A cell of a table that JSON has no kind for: a decimal is a number, bytes are a text that was not marked as one.

    An id, a date or another object is its text.
    """
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return float(value) if isinstance(value, Decimal) else str(value)


def read_case(line: bytes | str, number: int) -> Case:
    """The case on one line of JSON; ``CaseError`` when it is none. ``number`` is the line's, from 1."""
    return read_case_with_remarks(line, number)[0]


def read_case_with_remarks(line: bytes | str, number: int) -> tuple[Case, tuple[str, ...]]:
    """The case, and the names of fields that the format does not know."""
    return read_case_line(line, number)[:2]


def read_case_line(line: bytes | str, number: int) -> tuple[Case, tuple[str, ...], bytes | None]:
    """The case, the names of unknown fields, and the line in one canonical form: sorted keys, no spaces.

    The form is ``None`` for what can be read but not written: deep nesting.
    """
    try:
        data: Json = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise CaseError(number, "$", f"not JSON ({error})", "write one JSON object a line") from None
    if not isinstance(data, dict):
        raise CaseError(number, "$", "not a JSON object", "write one JSON object a line") from None
    canonical = _canonical(data)
    if (twice := _doubled(line, canonical)) is not None:
        raise CaseError(number, twice[:80], "stands twice in one object", "keep one of the two")
    fields = {"case_id": f"line-{number}", **in_our_names(data)}
    try:
        return case_of(fields), unknown_fields(fields), canonical
    except FieldError as error:
        raise CaseError(number, error.field, error.message, error.remedy) from None


def _canonical(data: Json) -> bytes | None:
    try:
        return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return None


def repeated_key(line: bytes, read: Json) -> str | None:
    """A key that stands twice in one object of a line of JSON, at any depth; ``read`` is what orjson read of it."""
    return _doubled(line, _canonical(read))


def _proves_unique(line: bytes | str, canonical: bytes | None) -> bool:
    r"""Whether no object repeats a key: then the line has as many colons as the value that was read from it.

    A key that was dropped took the colon after it along. Where a backslash may hide a colon (``\u003a``) nothing is
    proven. Without a second reader, and with the form for its digest, a short case is read in 23 µs instead of 32.
    """
    if canonical is None:
        return False
    raw = line if isinstance(line, bytes) else line.encode()
    return b"\\u" not in raw and raw.count(b":") == canonical.count(b":")


class _DoubledError(Exception):
    """An object with this key twice."""


def _doubled(line: bytes | str, canonical: bytes | None) -> str | None:
    """A key that stands twice in one object of the line, at any depth; orjson would keep the last without a word."""
    if _proves_unique(line, canonical):
        return None
    try:
        _ONCE.decode(line if isinstance(line, str) else line.decode())
    except _DoubledError as error:
        return str(error)
    except RecursionError:  # deeper than this reader goes
        return None
    return None


def _single(pairs: list[tuple[str, Json]]) -> None:
    if len(dict(pairs)) != len(pairs):
        raise _DoubledError(Counter(key for key, _ in pairs).most_common(1)[0][0])


_ONCE = json.JSONDecoder(object_pairs_hook=_single)
