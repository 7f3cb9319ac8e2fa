"""Rows: a verdict and an outcome in frequently used columns, and whole in the column ``record`` (JSON)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, get_args

import pyarrow as pa

from sidejudge.scoring.trace.span import JsonRecord

Kind: TypeAlias = Literal["verdicts", "outcomes"]
KINDS: Final[Sequence[Kind]] = get_args(Kind)
_TIME: Final = pa.timestamp("us", tz="UTC")
_TEXT, _REAL, _TRUTH, _WHOLE = pa.string(), pa.float64(), pa.bool_(), pa.int64()
_SCORE: Final = pa.struct([
    ("metric", _TEXT), ("status", _TEXT), ("value", _REAL), ("weight", _REAL), ("reason", _TEXT),
])  # fmt: skip
SCHEMAS: Final[Mapping[Kind, pa.Schema]] = {
    "verdicts": pa.schema([
        ("trace_id", _TEXT), ("case_id", _TEXT), ("rubric", _TEXT), ("rubric_version", _TEXT), ("revision", _WHOLE),
        ("service", _TEXT), ("environment", _TEXT), ("session_id", _TEXT), ("created_at", _TIME), ("state", _TEXT),
        ("rating", _TEXT), ("passed", _TRUTH), ("composite", _REAL), ("composite_norm", _REAL),
        ("sampling_probability", _REAL), ("selection", _TEXT), ("blockers", pa.list_(_TEXT)),
        ("scores", pa.list_(_SCORE)), ("record", _TEXT),
    ]),
    "outcomes": pa.schema([
        ("trace_id", _TEXT), ("revision", _WHOLE), ("service", _TEXT), ("environment", _TEXT), ("name", _TEXT),
        ("user", _TEXT), ("session_id", _TEXT), ("reason", _TEXT), ("completion", _TEXT), ("session", _TRUTH),
        ("ended_at", _TIME), ("withdrawn", pa.list_(_TEXT)), ("record", _TEXT),
    ]),
}  # fmt: skip
KEYS: Final[Mapping[Kind, Sequence[str]]] = {
    "verdicts": ("trace_id", "case_id", "rubric", "revision"),
    "outcomes": ("trace_id", "revision"),
}
"""The columns that name a row: two rows with the same ones are one that was delivered twice."""


def table(kind: Kind, records: Sequence[JsonRecord]) -> pa.Table:
    """Rows of records; a field that a record lacks, or holds in another type, is null."""
    schema = SCHEMAS[kind]
    rows = [{field.name: _value(field, record) for field in schema} for record in records]
    return pa.Table.from_pylist(rows, schema=schema)


def _value(field: pa.Field, record: JsonRecord) -> object:
    if field.name == "record":
        return json.dumps(record, ensure_ascii=True)  # which holds halves of surrogate pairs too
    value = record.get(field.name)
    if field.name == "scores":
        return [{each.name: _fitting(each.type, score.get(each.name)) for each in _SCORE} for score in value or ()]
    if field.name in ("blockers", "withdrawn"):
        return [_fitting(_TEXT, str(each)) for each in value or ()]
    return _fitting(field.type, value)


def _fitting(kind: pa.DataType, value: object) -> object:
    if kind == _TIME:
        return _instant(value)
    if kind == _REAL:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
    if kind == _WHOLE:
        return value if type(value) is int and abs(value) < 1 << 63 else None
    if kind == _TRUTH:
        return value if isinstance(value, bool) else None
    return value.encode(errors="replace").decode() if isinstance(value, str) else None


def _instant(value: object) -> datetime | None:
    """A time as ``created_at`` has it, or ns since the epoch."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        return datetime.fromtimestamp(value / 1e9, UTC) if isinstance(value, int) else None
    except (ValueError, OverflowError):
        return None
