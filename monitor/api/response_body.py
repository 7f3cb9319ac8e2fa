"""The base of the response schemas: a body holds what is declared and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from sidejudge.scoring.lexical.shown_text import label

LONGEST_TEXT = 300
"""Characters of a name or a reason that may come from elsewhere."""


class ResponseBody(BaseModel):
    """A body, or a part of one, with exactly the fields that are declared.

    ``read`` takes each from the attribute of a record that has its name, or the one that ``validation_alias`` names.
    """

    # Built when it is first used: most of them never are.
    model_config = ConfigDict(
        frozen=True, extra="forbid", from_attributes=True, validate_by_name=True, defer_build=True
    )

    @classmethod
    def read(cls, record: object, **own: object) -> Self:
        """The body of a record; ``own`` are the fields without an attribute of the record."""
        if not own:
            return cls.model_validate(record)
        attributes = [
            str(field.validation_alias or name) for name, field in cls.model_fields.items() if name not in own
        ]
        return cls.model_validate({**{name: getattr(record, name) for name in attributes}, **own})


def moment(ns: int) -> datetime:
    """A time in ns since the epoch as a time of day in UTC."""
    return datetime.fromtimestamp(ns / 1e9, UTC)


def instant(ns: int | None) -> datetime | None:
    """The same, null where it is not known."""
    return None if ns is None else moment(ns)


def shown(text: str) -> str:
    """A text from elsewhere, cut, as Unicode that can be written: JSON may have carried half of a surrogate pair."""
    return label(text, LONGEST_TEXT)


# A body that was written is read as well, so what is in its final form passes through.


def _from_s(value: object) -> object:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else value


def _counts(pairs: Mapping[object, int] | Iterable[tuple[object, int]]) -> dict[str, int]:
    return {str(name): count for name, count in dict(pairs).items()}


Ratio = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Counts = Annotated[dict[str, int], BeforeValidator(_counts)]
"""Counts by name, also from pairs."""
Text = Annotated[str, BeforeValidator(shown)]
"""Text that may come from elsewhere: cut, and without half surrogate pairs."""
Instant = Annotated[datetime, BeforeValidator(_from_s)]
"""Read from s since the epoch."""
InstantNs = Annotated[datetime, BeforeValidator(lambda value: moment(value) if isinstance(value, int) else value)]
"""Read from ns since the epoch."""
SecondsNs = Annotated[float, Field(ge=0), BeforeValidator(lambda ns: ns / 1e9)]
"""Seconds, read from ns."""
