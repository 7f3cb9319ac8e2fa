"""From a file and the environment to a configuration, or to everything that is wrong with them.

Scenarios are written in place or in a file beside it, each checked before anything starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from sidejudge.scoring.trace.span import Json

from .document import Document, Location, Place, read_document
from .environment import Overrides, read_environment
from .errors import UNREADABLE, ConfigError, Problem, path_of
from .model import Config
from .read_files import ReadFiles
from .renamed import RENAMED, rename_keys, rename_keys_in_lists
from .rubric_declarations import Declarations, read_declarations
from .rubric_sources import LangfusePrompts, sources
from .validation_messages import problem_of, reported_once


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A configuration and the source of each value."""

    config: Config
    file: Path | None
    lines: Mapping[Location, int]
    variables: Mapping[tuple[str, ...], str]
    declared: Declarations
    prompts: LangfusePrompts
    renamed: tuple[tuple[str, str], ...] = ()
    """Old names that were read, each with the name that replaces it."""

    @property
    def files(self) -> ReadFiles:
        """Every file that it was read from."""
        return self.declared.files

    def origin(self, path: Sequence[str]) -> str:
        """Where the value at a path comes from: ``default``, a variable's name, or ``line N`` of the file."""
        for depth in range(len(path), 0, -1):
            variable = self.variables.get(tuple(path[:depth]))
            if variable is not None:
                return variable
        if (elsewhere := self.declared.place(path)) is not None:
            return "{}, line {}".format(*elsewhere)
        line = self.lines.get(tuple(path))
        return f"line {line}" if line is not None else "default"


def load(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The configuration in force: embedded defaults, over them the file, over it the environment.

    Raises ``ConfigError`` with every problem at once.
    """
    return resolve(path, environ).config


def load_config(path: Path | str | None = None) -> Config:
    """The configuration of a file under this process's environment; without a file the defaults.

    Raises:
        ConfigError: With everything that is wrong, each with its place.
    """
    return load(None if path is None else Path(path), os.environ)


def resolve(path: Path | None, environ: Mapping[str, str], prompts: LangfusePrompts | None = None) -> Loaded:
    """Like ``load``, with the source of each value.

    Args:
        path: The file; None for the defaults.
        environ: The environment, which wins over the file.
        prompts: The prompts of the previous reading. Their texts stay where Langfuse cannot be asked now.

    Raises:
        ConfigError: With every problem at once.
    """
    files = ReadFiles()
    document = _read_file(path, environ, files) if path is not None else Document()
    renamed = [(old, RENAMED[old]) for old in rename_keys(document, str(path))]
    renamed += rename_keys_in_lists(document, str(path))
    overrides = read_environment(environ)
    problems = [*document.problems, *overrides.problems]
    data = _merged(document, overrides, problems, path)
    folder = path.parent if path is not None else Path()
    place = _Place(document, overrides, path)
    scenarios, found = read_scenarios(data, folder, environ, place, files)
    problems += found
    texts = LangfusePrompts(data, prompts)
    declared = read_declarations(data, folder, environ, place, lambda: sources(folder, texts), files=files)
    problems += declared.problems

    config = None
    try:
        context = {"scenarios": scenarios.names, "rubrics": declared.names, "declared": declared.rubrics}
        config = Config.model_validate(declared.in_place_of(scenarios.in_place_of(data)), context=context)
    except ValidationError as error:
        place = _Place(document, overrides, path, declared)
        refused = [problem_of(each, place.spoken_of(each["loc"]), place) for each in error.errors(include_url=False)]
        problems += reported_once(refused, problems)
    if problems or config is None:
        raise ConfigError(problems, files)
    return Loaded(
        config=config,
        file=path,
        lines=document.lines,
        declared=declared,
        prompts=texts,
        variables=overrides.names,
        renamed=(*renamed, *overrides.renamed),
    )


def forwarding(path: Path | None, environ: Mapping[str, str], *, stay: bool = False) -> Config | None:
    """The parts of a refused configuration on where to listen and where to forward to; None where nothing is forwarded.

    Valid parts of the other sections are used; the rest has its defaults. With ``stay`` there is always one; by default
    it listens on this machine alone.
    """
    document = _read_file(path, environ, ReadFiles()) if path is not None else Document()
    rename_keys(document, str(path))
    data = _merged(document, read_environment(environ), [], path)
    if data.get("forward") is None and not stay:
        return None
    sources = data.get("sources")
    otlp = sources.get("otlp") if isinstance(sources, dict) else None
    # Who may send, and over which address, is never left out: a mistake there is no reason to let everybody in.
    door: dict[str, Json] = {}
    if isinstance(otlp, dict):
        door = {key: value for key, value in otlp.items() if key in ("http", "grpc", "tls", "auth")}
    choices: tuple[Json, ...] = (sources, {"otlp": otlp}, {"otlp": door}) if sources else ({},)
    onward: tuple[dict[str, Json], ...] = ({"forward": data["forward"]},) if data.get("forward") is not None else ()
    onward += ({},) if stay else ()
    tried = (_valid({**way, "sources": choice}) for way in onward for choice in choices)
    sections = next((each for each in tried if each is not None), None)
    if sections is None and stay:
        sections = {"sources": {"otlp": {"http": "127.0.0.1:4318"}}}
    if sections is None:
        return None
    for name in ("api", "log"):
        if name in data:
            sections = _valid(sections | {name: data[name]}) or sections
    return Config.model_validate(sections)


def _valid(sections: dict[str, Json]) -> dict[str, Json] | None:
    try:
        Config.model_validate(sections)
    except ValidationError:
        return None
    return sections


def _read_file(path: Path, environ: Mapping[str, str], files: ReadFiles) -> Document:
    try:
        text = files.read(path)
    except UnicodeDecodeError as error:
        problem = Problem(path="", message=f"is not UTF-8: {error.reason} at byte {error.start}", source=str(path))
        return Document(problems=[problem])
    except OSError as error:
        message = f"{UNREADABLE}: {error.strerror or error}"
        return Document(problems=[Problem(path="", message=message, source=str(path))])
    return read_document(text, environ, str(path))


def _merged(document: Document, overrides: Overrides, problems: list[Problem], path: Path | None) -> dict[str, Json]:
    if document.value is None:
        data: dict[str, Json] = {}
    elif isinstance(document.value, dict):
        data = dict(document.value)
    else:
        kind = "a list" if isinstance(document.value, list) else "a single value"
        message = f"must be a map of keys such as 'sampling:' at its top, got {kind}"
        problems.append(Problem(path="", message=message, source=str(path), line=document.lines.get(())))
        data = {}
    for where, value in overrides.values.items():
        _set(data, where, value)
    return data


def _set(data: dict[str, Json], where: tuple[str, ...], value: Json) -> None:
    for part in where[:-1]:
        inner = data.get(part)
        # Copied on the way down: the file's values stay as they were read.
        fresh = dict(inner) if isinstance(inner, dict) else {}
        data[part] = fresh
        data = fresh
    data[where[-1]] = value


@dataclass(frozen=True, slots=True)
class _Place:
    """From a location in the configuration to its source and line."""

    document: Document
    overrides: Overrides
    path: Path | None
    declared: Declarations | None = None

    def __call__(self, location: Sequence[str | int]) -> tuple[str | None, int | None]:
        where = tuple(location)
        if self.declared is not None and (elsewhere := self.declared.place(where)) is not None:
            return elsewhere
        for depth in range(len(where), 0, -1):
            names = tuple(str(part) for part in where[:depth])
            if names in self.overrides.names:
                return self.overrides.names[names], None
        return str(self.path) if self.path is not None else None, self.document.line_of(where)

    def spoken_of(self, location: Sequence[str | int]) -> Location:
        """The location as written: a single text that stands for a list of one has no index."""
        where = tuple(part for part in location if part != "[key]")
        lines = self.document.lines
        if where and isinstance(where[-1], int) and where not in lines and where[:-1] in lines:
            return where[:-1]
        return where


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
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else why
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
    from sidejudge.scoring.scenario.reading import parse_scenario  # noqa: PLC0415  # only where there are scenarios
    from sidejudge.scoring.scenario.scenario import ScenarioError  # noqa: PLC0415  # only where there are scenarios

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
