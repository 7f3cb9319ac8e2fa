"""Validation errors in plain words, with the place and the nearest valid key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sidejudge.scoring.lexical.ratio import ratio_meant

from .errors import Problem, nearest, path_of
from .shape import keys_of, section_at, walk

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Place = Callable[[Sequence[str | int]], tuple[str | None, int | None]]
"""From a location to the source that sets it (a file, a variable) and the line in that file."""

_REQUIRED = "is required"
_SECRET = frozenset(
    {
        "api_key", "auth", "authorization", "database", "handover_key", "headers", "password", "randomness_key",
        "secret", "token",
    }
)  # fmt: skip
"""Keys at or below which secrets stand: what was given there is never shown."""
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
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
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
        stated, choices = error["input"], tuple(valid.split(",")) if valid else ()
        near = nearest(stated, choices) if isinstance(stated, str) else None
        if message.startswith(("must be in (0, 1]", "must be in [0, 1]")):
            message += ratio_meant(stated)
        return Problem(
            path=path, message=message, source=source, line=line, nearest=near, valid=() if near else choices
        )
    return Problem(path=path, message=_wanted(error), source=source, line=line)


def reported_once(refused: Sequence[Problem], known: Sequence[Problem]) -> list[Problem]:
    """Refusals without those that only repeat another mistake.

    A key that is required is not missed where it was misspelled; a value is not complained of where reading it failed
    already.
    """
    unreadable = {problem.path for problem in known}
    excused = {f"{_parent(problem.path)}.{problem.nearest}" for problem in refused if problem.nearest is not None}
    return [
        problem
        for problem in refused
        if problem.path not in unreadable
        and not (problem.message == _REQUIRED and (problem.path in excused or _parent(problem.path) in excused))
    ]


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _wanted(error: ErrorDetails) -> str:
    keys = [str(key) for key in error["loc"] if not isinstance(key, int)]
    hidden = _SECRET.intersection(keys) or _ADDRESSES.intersection(keys[-1:])
    got = "something else" if hidden else _shown(error["input"])
    context: Mapping[str, object] = error.get("ctx", {})
    if error["type"] in _WANTED:
        meant = ratio_meant(error["input"]) if error["type"] == "float_type" and not hidden else ""
        return f"{_WANTED[error['type']]}, got {got}{meant}"
    if error["type"] == "literal_error":
        return f"must be one of {context.get('expected')}, got {got}"
    return f"{error['msg'].replace('Input should be', 'must be')}, got {got}"


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
    elsewhere = [".".join(other) for other in found if len(other) == len(found[0])]
    near = elsewhere[0] if len(elsewhere) == 1 else nearest(key, valid)
    return Problem(
        path=path, message="is not a key", source=source, line=line, nearest=near, valid=() if near else valid
    )
