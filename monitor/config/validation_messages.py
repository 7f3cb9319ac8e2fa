"""Validation errors in plain words, with the place and the nearest valid key, from the shape of the configuration."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Union, get_args, get_origin

from pydantic import BaseModel

from sidejudge.scoring.lexical.nearest import ratio_meant
from sidejudge.scoring.lexical.shown_text import one_line

from .document import Place
from .errors import Problem, nearest, nearest_by_letters, path_of
from .match import MatchSection
from .model import Config

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_REQUIRED, _EMPTY = "is required", "must not be empty"
_MOST_SHOWN = 1_000
"""Characters of a message that repeats what was given."""
_SLIP = 0.85
"""How alike two keys are that differ by a letter: 0.89 with four of them and one more."""
_ENTRY = re.compile(r"\[\d+\]")
_SECRET = frozenset({
    "api_key", "auth", "authorization", "database", "handover_key", "headers", "password", "randomness_key", "secret",
    "token",
})  # fmt: skip
"""Keys of secrets: values at or below them are never shown."""
_ADDRESSES = frozenset({"notify", "slack", "url", "webhook"})
"""Keys that hold an address with a secret in it, or that somebody gives one by mistake."""
_WANTED = {
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "path_type": "must be the path of a file, as text",
    "tuple_type": "must be a list",
    "dict_type": "must be a map of keys",
    "mapping_type": "must be a map of keys",
    "model_type": "must be a map of keys",
    "model_attributes_type": "must be a map of keys",
    "finite_number": "must be a finite number",
    "string_too_short": _EMPTY,
    "too_short": _EMPTY,
}


def problem_of(error: ErrorDetails, location: Sequence[str | int], place: Place) -> Problem:
    """One refusal of the validator as a problem; ``location`` is where the operator wrote it."""
    source, line = place(location)
    path, kind = path_of(location), error["type"]
    if kind == "extra_forbidden":
        return _unknown(location, path, source, line)
    if kind == "missing":
        return Problem(path=path, message=_REQUIRED, source=source, line=line)
    if kind == "value_error":
        message, _, valid = error["msg"].removeprefix("Value error, ").partition("\x00")
        message = one_line(message, _MOST_SHOWN)
        stated, choices = error["input"], tuple(valid.split(",")) if valid else ()
        near = nearest(stated, choices) if isinstance(stated, str) else None
        if message.startswith(("must be in (0, 1]", "must be in [0, 1]")):
            message += ratio_meant(stated)
        return Problem(
            path=path, message=message, source=source, line=line, nearest=near, valid=() if near else choices
        )
    section = section_at(location) if kind.startswith("model_") else None
    keys = keys_of(section) if section is not None and error["input"] is not None else ()
    return Problem(path=path, message=_wanted(error), source=source, line=line, valid=keys)


def reported_once(refused: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """The refusals that do not merely repeat another mistake.

    A key that is required is not missed where it was misspelled; a value is not complained of where reading it failed
    already; a list all of whose entries are refused is not called empty.
    """
    unreadable = {problem.path for problem in known}
    listed = {problem.path[: each.start()] for problem in (*known, *refused) for each in _ENTRY.finditer(problem.path)}
    excused = {f"{_parent(problem.path)}.{problem.nearest}" for problem in refused if problem.nearest is not None}
    return [
        problem
        for problem in refused
        if problem.path not in unreadable
        and not (problem.path in listed and problem.message.startswith(_EMPTY))
        and not (problem.message == _REQUIRED and (problem.path in excused or _parent(problem.path) in excused))
    ]


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _wanted(error: ErrorDetails) -> str:
    keys = [str(key) for key in error["loc"] if not isinstance(key, int)]
    hidden = _SECRET.intersection(keys) or _ADDRESSES.intersection(keys[-1:])
    got = "something else" if hidden else _shown(error["input"])
    context: Mapping[str, object] = error.get("ctx", {})
    if isinstance(error["input"], str) and (least := context.get("min_length", 1)) != 1:
        return f"must have {least} characters at least, got {'fewer' if hidden else got}"
    if error["type"] in _WANTED:
        meant = "" if hidden else _meant(error["type"], error["input"], section_at((*error["loc"], 0)))
        return f"{_WANTED[error['type']]}, got {got}{meant}"
    if error["type"] == "literal_error":
        return f"must be one of {context.get('expected')}, got {got}"
    return f"{error['msg'].replace('Input should be', 'must be')}, got {got}"


def _meant(kind: str, given: object, item: type[BaseModel] | None) -> str:
    """The remedy, where one follows from the given value; ``item`` names a list's items unless they are plain."""
    if kind == "tuple_type" and item is None and isinstance(given, str) and len(given) <= 60 and given.isprintable():
        return f"; a list of one is [{given}]"
    return ratio_meant(given) if kind == "float_type" else ""


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _unknown(location: Sequence[str | int], path: str, source: str | None, line: int | None) -> Problem:
    key, section = str(location[-1]), section_at(location[:-1])
    valid = keys_of(section) if section is not None else ()
    found = sorted((other for other, _ in walk() if other[-1] == key), key=len)
    # The right key in the wrong place is a better hint than one of similar spelling; of several places the outermost.
    # One that differs by a letter (budget, budgets) may be a slip as well: then both are named.
    elsewhere = [".".join(other) for other in found if len(other) == len(found[0])]
    misplaced = elsewhere[0] if len(elsewhere) == 1 else None
    slip = nearest_by_letters(key, valid, alike=_SLIP) if misplaced else nearest(key, valid)
    near = slip or misplaced
    return Problem(
        path=path, message="is not a key", source=source, line=line, nearest=near,
        elsewhere=misplaced if slip else None, valid=() if near else valid,
    )  # fmt: skip


def bare(annotation: object) -> object:
    """An annotation without ``Annotated`` and without ``| None``."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, types.UnionType):
            some = [part for part in get_args(annotation) if part is not type(None)]
            if len(some) != 1:
                return annotation
            annotation = some[0]
        else:
            return annotation


def item_of(annotation: object) -> object | None:
    """The type of the items of a list (or of the values of a map); ``None`` when the annotation is neither."""
    annotation = bare(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        return bare(arguments[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return bare(arguments[1])
    return None


def section_at(location: Sequence[str | int]) -> type[BaseModel] | None:
    """The section that stands at a location, or ``None`` when a plain value stands there."""
    current: object = Config
    for part in location:
        if isinstance(current, type) and issubclass(current, BaseModel):
            declared = current.model_fields.get(str(part))
            current = bare(declared.annotation) if declared is not None else None
        else:
            current = item_of(current)
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def keys_of(section: type[BaseModel]) -> tuple[str, ...]:
    """The keys of a section as an operator writes them."""
    if section is MatchSection:
        return tuple("metadata.KEY" if name == "metadata" else name for name in section.model_fields)
    return tuple(section.model_fields)


def walk(section: type[BaseModel] = Config, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every path of keys with the annotation that stands there, sections before their contents, lists not entered."""
    for name, declared in section.model_fields.items():
        path = (*prefix, name)
        inner = bare(declared.annotation)
        yield path, declared.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from walk(inner, path)
