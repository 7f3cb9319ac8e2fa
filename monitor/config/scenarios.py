"""Scenarios of the configuration: written in place or in a file beside it, each checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sidejudge.scoring.trace.span import Json

from .document import Document, Location, Place, read_document
from .errors import UNREADABLE, Problem, path_of
from .read_files import ReadFiles


@dataclass(frozen=True, slots=True)
class Scenarios:
    """Scenarios by name; ``found`` is ``None`` where what was given is not usable; the problems are why."""

    found: dict[str, Json] | None

    @property
    def names(self) -> frozenset[str] | None:
        """The names a route may use; ``None`` when they cannot be known, so that no route is blamed for it."""
        return None if self.found is None else frozenset(self.found)

    def in_place_of(self, data: dict[str, Json]) -> dict[str, Json]:
        """The configuration with the scenarios themselves in place of the path of their file."""
        return {**data, "scenarios": dict(self.found or {})} if "scenarios" in data else data


def read_scenarios(
    data: Mapping[str, Json], folder: Path, environ: Mapping[str, str], place: Place, files: ReadFiles
) -> tuple[Scenarios, list[Problem]]:
    """The scenarios that ``data`` gives or points to, and what is wrong with them."""
    given = data.get("scenarios")
    if given is None and "scenarios" not in data:
        return Scenarios({}), []
    source, line = place(("scenarios",))
    if isinstance(given, dict):
        return Scenarios(given), _check(given, ("scenarios",), place)
    if not isinstance(given, str):
        message = "must be a map of scenarios by name, or the path of a YAML file of them"
        return Scenarios(None), [Problem(path="scenarios", message=message, source=source, line=line)]
    file = folder / given
    try:
        document = read_document(files.read(file), environ, str(file))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"{UNREADABLE}: {file}: {why}"
        return Scenarios(None), [Problem(path="scenarios", message=message, source=source, line=line)]
    return _from_document(document, file)


def _from_document(document: Document, file: Path) -> tuple[Scenarios, list[Problem]]:
    value = document.value if document.value is not None else {}
    if document.problems:
        return Scenarios(value if isinstance(value, dict) and value else None), document.problems
    if not isinstance(value, dict):
        return Scenarios(None), [Problem(path="", message="must be a map of scenarios by name", source=str(file))]

    return Scenarios(value), _check(value, (), lambda location: (str(file), document.line_of(location)))


def _check(given: Mapping[str, Json], at: Location, place: Place) -> list[Problem]:
    from sidejudge.scoring.scenario.scenario import ScenarioError, parse_scenario  # noqa: PLC0415  # only where there are scenarios

    problems: list[Problem] = []
    for name, scenario in given.items():
        try:
            parse_scenario(name, scenario)
        except ScenarioError as error:
            problems.extend(_problem(stated, (*at, name), place) for stated in error.problems)
    return problems


def _problem(stated: str, at: Location, place: Place) -> Problem:
    """A scenario's own problem (``field.path: what is wrong``) with its place in the file."""
    field, colon, message = stated.partition(": ")
    if not colon:
        field, message = "", stated
    source, line = place((*at, *field.split(".")))
    path = path_of(at) + (f".{field}" if field else "")
    return Problem(path=path, message=message, source=source, line=line)
