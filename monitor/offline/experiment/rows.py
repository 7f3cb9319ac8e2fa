"""Rows: records, maps and tables as Python has them in, cases out.

A table's types are not JSON's: its numbers are numpy's, a column of whole numbers with a gap holds decimals, ids are
numbers. What means the same in the format of cases is written so; everything else is left for its reader to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from math import isnan
from typing import Final, Protocol, TypeAlias, cast, runtime_checkable

from sidejudge.integrations.case_names import in_our_names
from sidejudge.integrations.cases import CaseError, FieldError, case_of
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.trace.span import Json

Row: TypeAlias = Case | Mapping[str, Json]

_TO_ROWS: Final = (("to_dicts", ()), ("to_pylist", ()), ("to_dict", ("records",)))
"""How tables give their rows as maps: polars, Arrow, pandas."""
_NO_VALUE: Final = frozenset({"NAType", "NaTType"})
_WHOLE: Final = frozenset({"input_tokens", "output_tokens"})
_REMEDY: Final = 'give a map with the fields of a case, such as {"model_output": "…"}, or a Case'


@runtime_checkable
class DataFrame(Protocol):
    """A table: of pandas, polars or Arrow. It has columns, and gives its rows as maps."""

    @property
    def columns(self) -> object:
        """The columns, or their names."""


def rows_of(given: Iterable[Row] | DataFrame) -> tuple[Iterable[Row], int | None]:
    """The rows, and how many there are, None where nobody knows.

    Raises:
        CaseError: It holds no rows.
    """
    if isinstance(given, DataFrame):
        method, arguments = next((each for each in _TO_ROWS if hasattr(given, each[0])), _TO_ROWS[-1])
        rows: list[Row] = getattr(given, method)(*arguments)
        return rows, len(rows)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise CaseError(1, "$", f"a {type(given).__name__} is no row of cases", _REMEDY)
    return given, len(given) if isinstance(given, Sized) else None


def read_row(row: Row, number: int) -> Case:
    """A row as a case. One without an id has its number, from 1.

    Raises:
        CaseError: It violates the format of cases; the message names row, field and remedy.
    """
    if isinstance(row, Case):
        return row
    if not isinstance(row, Mapping):
        raise CaseError(number, "$", f"a {type(row).__name__} is no row of cases", _REMEDY)
    fields = in_our_names({str(key): _as_json(value) for key, value in row.items()})
    for name in _WHOLE & fields.keys():
        fields[name] = _whole(fields[name])
    id_ = _whole(fields.get("case_id"))
    if id_ is None or isinstance(id_, int | float):
        fields["case_id"] = str(number if id_ is None else id_)
    try:
        return case_of(fields)
    except FieldError as error:
        raise CaseError(number, error.field, str(error), error.remedy) from None


def _as_json(value: object) -> Json:
    """A cell as JSON has it: numpy's scalars and arrays as numbers and lists, a gap as null."""
    if type(value).__name__ in _NO_VALUE or (isinstance(value, float) and isnan(value)):
        return None
    if hasattr(value, "tolist"):
        return _as_json(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return cast("Json", value)  # whatever it is, the reader of its field names it


def _whole(value: Json) -> Json:
    """A number without decimals as a whole one: a gap in its column made it one with decimals."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
