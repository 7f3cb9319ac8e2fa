"""Match: a condition on a trace, in routes and in sampling rules. All keys that are given must hold."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from sidejudge.scoring.case.case import Case, asked_words
from sidejudge.scoring.case.feedback import negative
from sidejudge.scoring.trace.span import Json

from .section import STRING_OR_LIST, as_tuple

_LATENCY = re.compile(r"\s*(<=|>=|<|>)\s*(\d+(?:\.\d+)?)\s*")
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_PREFIX = "metadata."
_SPECIAL = re.compile(r"([*?\[])")


def _valid_glob(glob: str) -> str:
    """Refuse what fnmatch would silently take literally: an empty glob, a ``[`` that is never closed."""
    if not glob:
        raise ValueError("must not be an empty glob; leave the key out to match anything, or write '*'")
    at = 0
    while (start := glob.find("[", at)) >= 0:
        # As in fnmatch, a ']' straight after '[' or '[!' stands for itself.
        first = start + 2 if glob[start + 1 : start + 2] == "!" else start + 1
        end = glob.find("]", first + 1)
        if end < 0:
            raise ValueError(f"is not a valid glob: '[' at character {start + 1} of {glob!r} is never closed")
        at = end + 1
    return glob


def _valid_latency(text: str) -> str:
    if not _LATENCY.fullmatch(text):
        raise ValueError(f"must compare with a number of milliseconds, such as '>2000' or '<=150', got {text!r}")
    return text.replace(" ", "")


def _as_text(value: object) -> object:
    """Metadata values are compared as text: ``3`` and ``true`` in YAML mean the strings a trace carries."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def literal(name: str) -> str:
    """A name as a glob that matches it alone."""
    return _SPECIAL.sub(r"[\1]", name)


Glob: TypeAlias = Annotated[str, AfterValidator(_valid_glob)]
Globs: TypeAlias = Annotated[tuple[Glob, ...], BeforeValidator(as_tuple), WithJsonSchema(STRING_OR_LIST)]


class MatchSection(BaseModel):
    """A condition on a trace; every key that is given must hold, and no key matches everything.

    Globs are ``*``, ``?`` and ``[…]``, case-sensitive; a list of globs holds when one of them does (for ``tags``:
    when each of them finds a tag). An absent value matches no glob, not even ``*``.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Globs = ()
    """name of the trace, glob or list of globs (any of)"""
    tags: Globs = ()
    """tags that must all be there, globs"""
    service: Globs = ()
    """`service.name` of the resource, glob or list of globs (any of)"""
    environment: Globs = ()
    """deployment environment, glob or list of globs (any of)"""
    task: Globs = ()
    """task of the case, else its `metadata.task`, glob or list of globs (any of)"""
    metadata: Mapping[str, Annotated[Glob, BeforeValidator(_as_text)]] = Field(default_factory=dict)
    """`metadata.KEY: glob` for a key of the trace's metadata; dots go deeper"""
    asked: Globs = ()
    """a word of the run's input in any letter case, glob or list of globs (any of); words have three letters or more"""
    level: Literal["error"] | None = None
    """`error`: a step of the trace ended in an error"""
    feedback: Literal["negative", "positive", "any"] | None = None
    """a user's feedback on the answer (`metadata.feedback`, or where clients write it): thumbs down, thumbs up, or
    anything that is understood"""
    latency_ms: Annotated[str, AfterValidator(_valid_latency)] | None = None
    """end-to-end latency in milliseconds compared with a number, such as `'>2000'`"""

    @model_validator(mode="before")
    @classmethod
    def _gather_metadata(cls, data: object) -> object:
        """``metadata.task: qa`` is short for ``metadata: {task: qa}``."""
        if not isinstance(data, dict):
            return data
        short = {k[len(_PREFIX) :]: v for k, v in data.items() if isinstance(k, str) and k.startswith(_PREFIX)}
        if not short:
            return data
        rest = {k: v for k, v in data.items() if not (isinstance(k, str) and k.startswith(_PREFIX))}
        given = rest.get("metadata", {})
        return {**rest, "metadata": {**given, **short}} if isinstance(given, dict) else data

    @property
    def needs_content(self) -> bool:
        """Whether the decision needs more than the resource of a span (service, environment)."""
        return any(getattr(self, key) for key in type(self).model_fields if key not in ("service", "environment"))

    def matches(self, case: Case) -> bool:
        """Whether all of it holds for an assembled case."""
        return (
            _any(self.service, case.service)
            and _any(self.environment, case.environment)
            and _any(self.name, case.name)
            and (not self.task or _any(self.task, task_of(case)))
            and (not self.tags or all(any(fnmatchcase(tag, glob) for tag in case.tags) for glob in self.tags))
            and all(_any((glob,), metadata_text(case.metadata, key)) for key, glob in self.metadata.items())
            and (not self.asked or _is_asked(self.asked, case.once(asked_words)))
            and (self.level is None or case.error is not None)
            and (self.feedback is None or _fed_back(self.feedback, negative(case.metadata)))
            and (self.latency_ms is None or _slow(self.latency_ms, case.latency_e2e_ms))
        )

    def unmet(self, case: Case) -> str:
        """The conditions that do not hold for a case, in one line; empty when it matches."""
        given = {key: getattr(self, key) for key in type(self).model_fields if key != "metadata"}
        parts = [MatchSection.model_construct(**{key: value}) for key, value in given.items() if value]
        parts += [MatchSection.model_construct(metadata={key: glob}) for key, glob in self.metadata.items()]
        return ", ".join(part.describe() for part in parts if not part.matches(case))

    def describe(self) -> str:
        """The condition in one line, as in the configuration; ``anything`` when it has no keys."""
        stated = self.model_dump(exclude_defaults=True)
        stated |= {f"{_PREFIX}{key}": glob for key, glob in stated.pop("metadata", {}).items()}
        texts = (f"{key}: {'|'.join(v) if isinstance(v, tuple) else v}" for key, v in stated.items())
        return ", ".join(texts) or "anything"


def task_of(case: Case) -> str | None:
    """The task that a case names itself, else the one its trace's metadata names."""
    if case.task is not None:
        return case.task
    named = case.metadata.get("task")
    return named if isinstance(named, str) else None


def _any(globs: tuple[str, ...], value: str | None) -> bool:
    return not globs or (value is not None and any(fnmatchcase(value, glob) for glob in globs))


def _is_asked(globs: tuple[str, ...], words: frozenset[str]) -> bool:
    return any(any(fnmatchcase(word, glob) for word in words) for glob in map(str.casefold, globs))


def metadata_text(metadata: Mapping[str, Json], key: str) -> str | None:
    """The scalar under a key as text: the key as it stands first, then its dots as steps into nested objects."""
    value: Json = metadata.get(key)
    if value is None and "." in key:
        value = dict(metadata)
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    text = _as_text(value)
    return text if isinstance(text, str) else None


def _fed_back(wanted: Literal["negative", "positive", "any"], complaint: bool | None) -> bool:  # noqa: FBT001  # the one argument, named by the function
    if complaint is None:
        return False
    return wanted == "any" or complaint == (wanted == "negative")


def _slow(condition: str, latency_ms: float | None) -> bool:
    found = _LATENCY.fullmatch(condition)
    if found is None or latency_ms is None:
        return False
    return bool(_COMPARE[found[1]](latency_ms, float(found[2])))
