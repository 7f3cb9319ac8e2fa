"""Section: what all sections of the configuration have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema, model_validator
from pydantic_core import core_schema

from sidejudge.scoring.trace.span import Json

GIVEN_AS_LIST = Field(strict=False)  # YAML knows lists, the immutable configuration holds tuples
# JSON that has a parser of its own (a scenario, a metric, a judge's configuration): the schema only has a map.
JsonMap: TypeAlias = Annotated[
    dict[str, Json], GetPydanticSchema(lambda _source, _handler: core_schema.dict_schema(strict=True))
]


_NUMBER: Final = re.compile(r"[+-]?\d{1,20}(\.\d{1,20})?([eE][+-]?\d{1,3})?")


class Section(BaseModel):
    """**Base of all sections**: immutable, exact types, no key that is not declared.

    A number may be written as a text of its digits alone: `helm --set config.sampling.rate=0.05` gives one.
    """

    # Validated as a part of the configuration, whose validator holds it; one of its own for each takes 5 MB in all.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", validate_default=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        return {name: _as_number(value, cls._kinds(name)) for name, value in given.items()}

    @classmethod
    def _kinds(cls, name: object) -> tuple[object, ...]:
        """What a key may hold, by its declaration."""
        declared = cls.model_fields.get(str(name))
        return () if declared is None else tuple(_named(declared.annotation))


def _named(annotation: object) -> Iterator[object]:
    """The types of an annotation, those of its parts included."""
    yield annotation
    for part in get_args(annotation):
        yield from _named(part)


def _as_number(value: object, kinds: tuple[object, ...]) -> object:
    """The number of a numeric text, where a number and no text is wanted; else the value as it is."""
    if not isinstance(value, str) or str in kinds or not _NUMBER.fullmatch(value):
        return value
    if int in kinds and value.lstrip("+-").isdigit():
        return int(value)
    return float(value) if float in kinds else value
