"""The base of the response schemas: a body holds what is declared and nothing else."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Ratio = Annotated[float, Field(ge=0, le=1)]


class ResponseBody(BaseModel):
    """A body, or a part of one, with exactly the fields that are declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")
