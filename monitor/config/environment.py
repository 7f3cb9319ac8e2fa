"""Configuration from the environment: ``SIDEJUDGE_SAMPLING__RATE=0.5`` sets ``sampling.rate``.

Two underscores go one level down; the value is YAML, so lists and maps can be given whole. The environment wins over
the file. A variable that sets nothing is a mistake, because it was meant to set something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_origin

from pydantic import BaseModel, SecretStr

from sidejudge.scoring.trace.span import Json

from .document import Document, read_document
from .errors import Problem, nearest
from .model import Config
from .renamed import RENAMED
from .units import Address, Duration
from .validation_messages import bare, item_of, walk

PREFIX = "SIDEJUDGE_"
NOT_KEYS = frozenset({
    "SIDEJUDGE_API_TOKEN", "SIDEJUDGE_CONFIG", "SIDEJUDGE_CONTENTS_TOKEN", "SIDEJUDGE_REVISION", "SIDEJUDGE_SHARED",
    "SIDEJUDGE_URL",
})  # fmt: skip
"""Variables of ours that are no configuration keys: the file to read, the monitor to ask, the corpus for tests."""

_TEXTS = (str, Path, Address, Duration, SecretStr)
# Kubernetes puts these into every pod of a namespace that has a Service whose name begins with "sidejudge".
_SERVICE_LINK = re.compile(
    r"SIDEJUDGE(_[A-Z0-9]+)*?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9]+)*|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


@dataclass(slots=True)
class Overrides:
    """Values of the environment: values by path, the variable of each, and what is wrong."""

    values: dict[tuple[str, ...], Json] = field(default_factory=dict)
    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    """Variables with an old name, each with the variable that replaces it."""


def name_of(path: tuple[str, ...]) -> str:
    """``("sampling", "rate")`` as ``SIDEJUDGE_SAMPLING__RATE``."""
    return PREFIX + "__".join(part.upper() for part in path)


def read_environment(environ: Mapping[str, str]) -> Overrides:
    """Find every variable of ours and what it sets, outer ones before inner ones."""
    found = Overrides()
    for name in sorted(environ, key=lambda name: (name.count("__"), name)):
        if not name.startswith(PREFIX) or name in NOT_KEYS or _SERVICE_LINK.fullmatch(name):
            continue
        path = tuple(part.lower() for part in name[len(PREFIX) :].split("__"))
        if (new := RENAMED.get(path[0])) is not None:
            path = (new, *path[1:])
            found.renamed.append((name, name_of(path)))
        if path in found.names:
            message = f"sets the same key as {found.names[path]}; unset the one with the old name"
            found.problems.append(Problem(path=name, message=message, source=name))
            continue
        target = _target(name, path)
        if isinstance(target, Problem):
            found.problems.append(target)
            continue
        document = _value(environ[name], target, environ, name)
        if document.problems:
            found.problems.extend(document.problems)
            continue
        found.values[path], found.names[path] = document.value, name
    return found


def _value(text: str, target: object, environ: Mapping[str, str], name: str) -> Document:
    if not text.strip():
        return Document(problems=[Problem(path=name, message="is empty; give it a value, or unset it", source=name)])
    if (target in _TEXTS or get_origin(target) is Literal) and text.strip()[0] not in "'\"" and "${" not in text:
        return Document(text.strip())  # "[::1]:8790" and "a: b" need no quotes where only text can be meant
    document = read_document(text, environ, name)
    document.problems = [
        Problem(path=name, message=" ".join((f"at {p.path}:" if p.path else "", p.message)).strip(), source=name)
        for p in document.problems
    ]
    return document


def _target(name: str, path: tuple[str, ...]) -> object:
    """The annotation at a path, or the problem that there is none."""
    current: object = Config
    for depth, part in enumerate(path):
        if isinstance(current, type) and issubclass(current, BaseModel):
            declared = current.model_fields.get(part)
            if declared is None:
                near = nearest(name, [name_of(each) for each, _ in walk()])
                return Problem(path=name, message="sets no key of the configuration", source=name, nearest=near)
            current = bare(declared.annotation)
        elif isinstance(item := item_of(current), type) and issubclass(item, BaseModel) and _is_map(current):
            current = item
        else:
            whole = name_of(path[:depth])
            return Problem(path=name, message=f"goes too deep; give the whole value, as YAML, in {whole}", source=name)
    return current


def _is_map(annotation: object) -> bool:
    origin = getattr(annotation, "__origin__", None)
    return isinstance(origin, type) and issubclass(origin, Mapping)
