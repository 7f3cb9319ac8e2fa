"""Section: what all sections of the configuration have in common."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, GetPydanticSchema
from pydantic_core import core_schema

from scoring.trace.span import Json

GIVEN_AS_LIST = Field(strict=False)  # YAML knows lists, the immutable configuration holds tuples
# JSON that has a parser of its own (a scenario, a metric, a judge's configuration): the schema only has a map.
JsonMap: TypeAlias = Annotated[
    dict[str, Json], GetPydanticSchema(lambda _source, _handler: core_schema.dict_schema(strict=True))
]


class Section(BaseModel):
    """**Base of all sections**: immutable, exact types, no key that is not declared."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", validate_default=True)
