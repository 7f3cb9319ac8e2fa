"""Rubrics that the configuration declares, in place or in files, compiled before anything starts."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from sidejudge.scoring.trace.span import Json

from .document import Document, Location, Place, read_document
from .errors import UNREADABLE, Problem, path_of
from .plugins import RUBRICS, plugins
from .read_files import ReadFiles
from .rubric_sources import RubricLabels

if TYPE_CHECKING:
    from sidejudge.scoring.declared.metric import Sources
    from sidejudge.scoring.declared.reading import Fault
    from sidejudge.scoring.verdict.rubric import Rubric

log = logging.getLogger("sidejudge.plugins")


MAX_FILES: Final = 500
_WITH_SCHEMA: Final = ("is-json", "not-is-json", "contains-json", "not-contains-json")
_CHANGES: Final = frozenset({"pass_mark", "min_coverage", "judge_config", "judge", "metric_judges", "trajectory"})
_TOOLS: Final = ("tool-args", "not-tool-args")


@dataclass(slots=True)
class Declarations:
    """All sections on rubrics by name, where each stands, and what is wrong with them.

    ``rubrics`` are the completely declared ones, compiled; the other sections change built-in rubrics. ``folders``
    is where their files are looked for, ``documents`` the parsed rubric files, with the keys above their rubrics.
    """

    sections: dict[str, Json] = field(default_factory=dict)
    rubrics: dict[str, Rubric] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    folders: dict[str, Path] = field(default_factory=dict)
    documents: dict[str, tuple[Document, Path, Location]] = field(default_factory=dict)
    files: ReadFiles = field(default_factory=ReadFiles)

    @property
    def names(self) -> tuple[str, ...]:
        """Names that a route may use; also those of rubrics that cannot be compiled, for which no route is to blame."""
        named = (name for name, section in self.sections.items() if _declares(section) or _is_empty(section))
        return tuple(dict.fromkeys((*named, *self.rubrics)))

    def in_place_of(self, data: dict[str, Json]) -> dict[str, Json]:
        """The configuration with all sections, those of files too."""
        return {**data, "rubrics": self.sections} if self.sections else data

    def place(self, location: Sequence[str | int]) -> tuple[str | None, int | None] | None:
        """File and line of a location below ``rubrics`` that a rubric file sets; None for any other."""
        if len(location) < 2 or location[0] != "rubrics" or str(location[1]) not in self.documents:
            return None
        document, file, above = self.documents[str(location[1])]
        return str(file), document.line_of((*above, *location[1:]))


def read_declarations(
    data: Mapping[str, Json],
    folder: Path,
    environ: Mapping[str, str],
    place: Place,
    sources: Callable[[], Sources],
    *,
    files: ReadFiles,
) -> Declarations:
    """The sections that ``data`` gives or points to; ``sources`` is called where a rubric is declared."""
    found = Declarations(files=files)
    given = data.get("rubrics")
    if isinstance(given, dict):
        for name, section in given.items():
            found.sections[name] = section
            found.folders[name] = folder
    elif given is not None:
        return found  # the model reports what is wrong with it
    _read_files(data.get("rubric_files"), folder, environ, place, found)
    _compile_plugins(found, folder, sources)
    whole = {name: section for name, section in found.sections.items() if _declares(section)}
    for name in (name for name, section in found.sections.items() if _is_empty(section)):
        at = ("rubrics", name)
        source, line = found.place(at) or place(at)
        message = "declares nothing: a rubric of your own has metrics, or extends another"
        found.problems.append(Problem(path=path_of(at), message=message, source=source, line=line))
    if whole:
        _compile(whole, found, place, sources())
    return found


def _compile_plugins(found: Declarations, folder: Path, sources: Callable[[], Sources]) -> None:
    """Rubrics of installed packages; a faulty one is left out without affecting others."""
    from sidejudge.scoring.verdict.rubric import Rubric  # noqa: PLC0415  # only where there are plugins

    for plugin in plugins(RUBRICS):
        if plugin.name in found.sections or plugin.error is not None:
            continue
        faults: list[Fault] = []
        if isinstance(plugin.value, Rubric):
            found.rubrics[plugin.name] = replace(plugin.value, id=plugin.name)
        elif isinstance(plugin.value, dict):
            declared = Declarations(folders={plugin.name: folder})
            _compile_one(plugin.name, plugin.value, declared, sources(), faults.append)
            found.rubrics |= declared.rubrics
        if faults or plugin.name not in found.rubrics:
            cause = faults[0].message if faults else "is neither a Rubric nor a map that declares one"
            log.warning("the rubric of a plugin cannot be used", extra={"plugin": plugin.name, "cause": cause})


def _declares(section: Json) -> bool:
    return isinstance(section, dict) and ("metrics" in section or "extends" in section)


def _is_empty(section: Json) -> bool:
    """Whether it looks like a rubric of somebody's own that has no metrics, not like a change to one that ships."""
    return isinstance(section, dict) and not _declares(section) and not section.keys() & _CHANGES


def _read_files(
    patterns: Json, folder: Path, environ: Mapping[str, str], place: Place, found: Declarations
) -> None:  # fmt: skip
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, list):
        return
    for at, pattern in enumerate(listed):
        if not isinstance(pattern, str):
            continue
        source, line = place(("rubric_files", at))
        files = found.files.match(folder, pattern)
        if not files or len(files) > MAX_FILES:
            message = (
                f"{pattern!r} names no file in {folder.absolute()}"
                if not files
                else f"names more than {MAX_FILES} files"
            )
            found.problems.append(Problem(path=f"rubric_files[{at}]", message=message, source=source, line=line))
            continue
        for file in files:
            _read_file(file, environ, found)


def _read_file(file: Path, environ: Mapping[str, str], found: Declarations) -> None:
    try:
        document = read_document(found.files.read(file), environ, str(file))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        found.problems.append(Problem(path="", message=f"{UNREADABLE}: {why}", source=str(file)))
        return
    found.problems += document.problems
    if document.problems or document.value is None:
        return
    if not isinstance(document.value, dict):
        found.problems.append(Problem(path="", message="must be a map of rubrics by name", source=str(file)))
        return
    given, above = document.value, cast("Location", ())
    # As in a configuration, from which it may have been taken. A rubric may be called so, too.
    inner = given.get("rubrics")
    if len(given) == 1 and isinstance(inner, dict) and not _declares(inner):
        given, above = inner, ("rubrics",)
    for name, section in given.items():
        if name in found.sections:
            line = document.lines.get((*above, name))
            found.problems.append(Problem(path=name, message="is declared twice", source=str(file), line=line))
            continue
        found.sections[name] = section
        found.folders[name], found.documents[name] = file.parent, (document, file, above)


def _compile(whole: dict[str, Json], found: Declarations, place: Place, sources: Sources) -> None:
    """Compile what is declared, what is extended before what extends it."""
    from sidejudge.scoring.declared.reading import Fault  # noqa: PLC0415  # only where rubrics are declared
    from sidejudge.scoring.declared.rubric import shared_names  # noqa: PLC0415  # only where rubrics are declared
    from sidejudge.scoring.rubrics import RUBRICS as SHIPPED  # noqa: PLC0415  # only where rubrics are declared

    def complain(name: str, fault: Fault) -> None:
        at = ("rubrics", name, *fault.path)
        source, line = found.place(at) or place(at)
        found.problems.append(Problem(path=path_of(at), message=fault.message, source=source, line=line))

    waiting = dict(whole)
    while waiting:
        ready = [name for name, section in waiting.items() if _extends(section) not in waiting]
        if not ready:
            for name in waiting:
                complain(name, Fault(("extends",), "extends itself, by way of others"))
            return
        for name in ready:
            section = waiting.pop(name)
            if name in SHIPPED:
                message = f"is a rubric that ships; take another name, and extends: {name} for its metrics"
                complain(name, Fault((), message))
            elif _extends(section) not in whole or _extends(section) in found.rubrics:
                # What extends a rubric at fault is not blamed for it.
                _compile_one(name, section, found, sources, partial(complain, name))
    for fault in shared_names({**SHIPPED, **found.rubrics}):
        complain(str(fault.path[0]), Fault((), fault.message))


def _compile_one(
    name: str, section: Json, found: Declarations, sources: Sources, complain: Callable[[Fault], None]
) -> None:  # fmt: skip
    from sidejudge.scoring.declared.reading import DeclarationError  # noqa: PLC0415  # as above
    from sidejudge.scoring.declared.rubric import declared_rubric  # noqa: PLC0415  # only where rubrics are declared

    found.sections[name] = section = _with_files(section, found, found.folders[name], complain)
    labels = section.get("labels") if isinstance(section, dict) else None
    labelled = RubricLabels(name, labels, found.folders[name], found.files)
    known = replace(sources, rubrics={**sources.rubrics, **found.rubrics}, labelled=labelled)
    try:
        found.rubrics[name] = declared_rubric(name, cast("dict[str, Json]", section), known)
    except DeclarationError as error:
        for fault in error.faults:
            complain(fault)


def _extends(section: Json) -> str | None:
    extends = section.get("extends") if isinstance(section, dict) else None
    return extends if isinstance(extends, str) else None


def _read_schema(file: Path, files: ReadFiles, at: Location, complain: Callable[[Fault], None]) -> Json:
    from sidejudge.scoring.declared.reading import Fault  # noqa: PLC0415  # as above

    try:
        text = files.read(file)
        if file.suffix == ".json":
            return cast("Json", json.loads(text))
    except (OSError, ValueError, RecursionError) as error:
        why = (error.strerror or "it cannot be opened") if isinstance(error, OSError) else "it is not JSON"
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else why
        complain(Fault(at, f"{UNREADABLE}: {file}: {why}"))
        return {}
    document = read_document(text, None, str(file))
    for problem in document.problems:
        complain(Fault(at, f"{UNREADABLE}: {problem}"))
    return {} if document.problems else document.value


def _with_files(section: Json, found: Declarations, folder: Path, complain: Callable[[Fault], None]) -> Json:
    """A section with the schemas themselves in place of the paths of their files."""

    def read(path: str, *at: str | int) -> Json:
        return _read_schema(folder / path, found.files, at, complain)

    def with_schema(check: Json, at: int) -> Json:
        if not isinstance(check, dict):
            return check
        made = dict(check)
        for name, argument in check.items():
            if not isinstance(argument, dict):
                continue
            if name in _WITH_SCHEMA and isinstance(argument.get("schema"), str):
                made[name] = {
                    **argument,
                    "schema": read(str(argument["schema"]), "metrics", at, "check", name, "schema"),
                }
            elif name in _TOOLS:
                made[name] = {
                    tool: read(schema, "metrics", at, "check", name, tool) if isinstance(schema, str) else schema
                    for tool, schema in argument.items()
                }
        return made

    metrics = section.get("metrics") if isinstance(section, dict) else None
    if not isinstance(section, dict) or not isinstance(metrics, list):
        return section
    return {
        **section,
        "metrics": [
            {**each, "check": with_schema(each["check"], at)} if isinstance(each, dict) and "check" in each else each
            for at, each in enumerate(metrics)
        ],
    }
