"""Section: the base of all sections of the configuration, and value types that several share: rates, names."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    SecretStr,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import core_schema

from sidejudge.scoring.checks.redaction import Redaction
from sidejudge.scoring.trace.span import Json

GIVEN_AS_LIST = Field(strict=False)  # YAML knows lists, the immutable configuration holds tuples
# JSON that has a parser of its own (a scenario, a metric, a judge's configuration): the schema only has a map.
JsonMap: TypeAlias = Annotated[
    dict[str, Json], GetPydanticSchema(lambda _source, _handler: core_schema.dict_schema(strict=True))
]


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"names {twice!r} twice; once is enough")
    return names


NAMED_ONCE: Final = AfterValidator(_each_once)
"""A list of names without repeats."""
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
        return {name: as_number(value, cls._kinds(name)) for name, value in given.items()}

    @classmethod
    def _kinds(cls, name: object) -> tuple[object, ...]:
        """The values that a key may hold, by its declaration."""
        declared = cls.model_fields.get(str(name))
        return () if declared is None else tuple(_named(declared.annotation))


@cache
def meanings(section: type[BaseModel]) -> Mapping[str, str]:
    """The meaning of each key of a section, in one line: the text below its declaration, read from the source file.

    Only the reference and the JSON Schema use it, so a start does not wait for it. Without source files, as in some
    images, the schema has no meanings.
    """
    texts: dict[str, str] = {}
    for each in reversed(section.__mro__):
        if issubclass(each, BaseModel) and each is not BaseModel:
            try:
                source = inspect.getsource(each)
            except OSError:
                continue
            [declared] = ast.parse(textwrap.dedent(source)).body
            for field, below in pairwise(declared.body if isinstance(declared, ast.ClassDef) else ()):
                match field, below:
                    case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                        texts[name] = " ".join(text.split())
    return texts | {name: each.description for name, each in section.model_fields.items() if each.description}


def _named(annotation: object) -> Iterator[object]:
    """The types in an annotation, including its parts' types."""
    yield annotation
    for part in get_args(annotation):
        yield from _named(part)


def as_number(value: object, kinds: tuple[object, ...]) -> object:
    """The number in a numeric text if the field takes numbers and no text; else the value unchanged."""
    if not isinstance(value, str) or str in kinds or not _NUMBER.fullmatch(value):
        return value
    if int in kinds and value.lstrip("+-").isdigit():
        return int(value)
    return float(value) if float in kinds else value


def is_url(url: str) -> str:
    """The address itself. Raises ``ValueError`` unless it is http or https with a host."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound or any(char.isspace() for char in url):
        raise ValueError("must be an address such as https://example.com/path")
    return url


Url: TypeAlias = Annotated[str, AfterValidator(is_url)]
FilePath: TypeAlias = Annotated[Path, Field(strict=False)]
"""A path, written as text."""
Secret: TypeAlias = Annotated[SecretStr, Field(min_length=1)]
PersonalData: TypeAlias = Annotated[tuple[Literal["email", "phone", "iban", "card", "key"], ...], GIVEN_AS_LIST]
"""Kinds of what is replaced in texts."""


def _usable_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    Redaction((), patterns)
    return patterns


Patterns: TypeAlias = Annotated[tuple[str, ...], GIVEN_AS_LIST, AfterValidator(_usable_patterns)]
"""What is replaced besides, in RE2's syntax."""


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


def _one_key_a_rubric(given: object, info: ValidationInfo) -> object:
    """Of two keys that name one rubric the later would hold without a word."""
    declared = (info.context or {}).get("rubrics", ())
    keys = set(given) if isinstance(given, Mapping) else set()
    for alias, name in RUBRIC_ALIASES.items():
        if {alias, name} <= keys and alias not in declared:
            raise ValueError(f"names one rubric by two keys, {alias!r} and {name!r}; keep one")
    return given


BY_RUBRIC: Final = BeforeValidator(_one_key_a_rubric)
"""A mapping by ``RubricName``."""
