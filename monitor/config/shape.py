"""The shape of the configuration: which keys exist where."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel

from .match import MatchSection
from .model import Config


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
