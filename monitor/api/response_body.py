"""The base of the response schemas: a body holds what is declared and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Final, Self, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

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

_Body = TypeVar("_Body", bound=BaseModel)
_COUNTS: Final[Mapping[object, object]] = {
    int: Count, Mapping[str, int]: Counts, Mapping[int, int]: Counts, tuple[tuple[str, int], ...]: Counts,
}  # fmt: skip


def body_of(record: type, *, less: tuple[str, ...] = (), sparse: bool = False) -> Callable[[type[_Body]], type[_Body]]:
    """Have a body hold the fields of a record (``less`` some): a snapshot, or a document.

    A text beside the type of a field is what the schema says of it. A body itself declares what differs: another type,
    a default, another name (with the record's as ``validation_alias``), and what the record has not, at its end.

    Args:
        record: A dataclass, or a ``TypedDict``.
        less: What of it the body does not hold, or at another place.
        sparse: Each field may be absent, which is null.
    """

    def made(body: type[_Body]) -> type[_Body]:
        own = {str(field.validation_alias or name): (name, field) for name, field in body.model_fields.items()}
        counts = _COUNTS if issubclass(body, ResponseBody) else {}
        fields: dict[str, tuple[object, FieldInfo]] = {}
        for name, stated in get_type_hints(record, include_extras=True).items():
            if name not in less:
                kind, *text = get_args(stated) if get_origin(stated) is Annotated else (stated, None)
                kind = counts.get(kind, kind)
                new = FieldInfo(default=None if sparse else ..., description=text[0])
                shown, field = own.pop(name, (name, new))
                field.description = field.description or text[0]
                fields[shown] = (field.annotation or (kind | None if sparse else kind), field)
        fields |= {name: (field.annotation, field) for name, field in own.values()}
        about = {"__base__": body.__base__, "__doc__": body.__doc__, "__module__": body.__module__}
        made: type[_Body] = create_model(body.__name__, **about, **fields)  # type: ignore[call-overload]  # fields of any type
        return made

    return made
