"""Section: what all sections of the configuration have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

GIVEN_AS_LIST = Field(strict=False)  # YAML knows lists, the immutable configuration holds tuples


class Section(BaseModel):
    """**Base of all sections**: immutable, exact types, no key that is not declared."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", validate_default=True)
