"""Values that several sections of the configuration have in common: rates, shares, names of rubrics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationInfo, WithJsonSchema

FilePath: TypeAlias = Annotated[Path, Field(strict=False)]
"""A path, written as text."""


def _is_rate(rate: float) -> float:
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"must be in (0, 1], got {rate:g}")
    return rate


def _is_share(share: float) -> float:
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"must be in [0, 1], got {share:g}")
    return share


def as_tuple(value: object) -> object:
    """One text stands for a list of one."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _named_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("names a judge twice; each comes once, the cheapest first")
    return names


STRING_OR_LIST: Final[dict[str, object]] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}


RUBRIC_ALIASES: Mapping[str, str] = {"call-qa": "qa"}
"""Names that are read for a rubric: `qa` scores quality assurance of calls, which its name does not say.

Verdicts and scores bear the rubric's own name.
"""


def rubric_named(name: str) -> str:
    """The rubric that a name stands for: itself, unless it is an alias."""
    return RUBRIC_ALIASES.get(name, name)


def _is_known_rubric(name: str, info: ValidationInfo) -> str:
    from sidejudge.scoring.rubrics import RUBRICS  # noqa: PLC0415  # the catalogue is only needed once a rubric is named

    declared = (info.context or {}).get("rubrics", ())
    name = name if name in declared else rubric_named(name)
    if name not in RUBRICS and name not in declared:
        raise ValueError(f"is not a rubric: {name!r}\x00{','.join((*RUBRICS, *declared))}")
    return name


DestinationName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
JudgeName: TypeAlias = DestinationName
JudgeNames: TypeAlias = Annotated[
    tuple[JudgeName, ...], BeforeValidator(as_tuple), AfterValidator(_named_once), Field(min_length=1, max_length=4),
    WithJsonSchema(STRING_OR_LIST),
]  # fmt: skip
"""One judge, or a cascade of them."""
DEFAULT_JUDGE: Final = "default"
"""The name of the judge that `evaluators.judge` configures."""
Rate: TypeAlias = Annotated[
    float, AfterValidator(_is_rate), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
]
Share: TypeAlias = Annotated[
    float, AfterValidator(_is_share), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
RubricName: TypeAlias = Annotated[str, AfterValidator(_is_known_rubric)]
