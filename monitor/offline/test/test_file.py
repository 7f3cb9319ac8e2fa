"""The file of a test set: YAML, JSON or JSON Lines by its name, read strictly, with everything wrong in it at once.

``--tag`` and ``--where`` select tests of it; one more test can be put at its end, and all else, comments too, stays as
it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sidejudge.dashboards.yaml_text import readable
from sidejudge.integrations.cases.fields import field_errors, near_field
from sidejudge.monitor.config.document import Document, Location, plain_value, read_document
from sidejudge.monitor.config.errors import UNREADABLE, Problem, nearest, path_of
from sidejudge.monitor.offline.whole_file import write_whole
from sidejudge.scoring.errors import SidejudgeError
from sidejudge.scoring.runs.test_set import DEFAULT_COMPLEXITY, TestSet
from sidejudge.scoring.scenario.reading import parse_scenario
from sidejudge.scoring.scenario.scenario import ScenarioError
from sidejudge.scoring.trace.jsontext import no_constant
from sidejudge.scoring.trace.span import Json

from .judge import not_plain

CASE_FIELDS = (
    "task", "input", "transcript", "config", "scenario", "context", "system_prompt", "tags", "metadata", "name",
    "evaluation_criteria_override", "session_id", "user_id", "service", "environment",
)  # fmt: skip
"""Fields of a case that a test may carry, beside ``id``, ``expected`` and ``complexity``."""
TEST_FIELDS = ("id", "expected", "complexity", *CASE_FIELDS)
ANSWERED = (
    "model_output", "agents_called", "tools_used", "latency_e2e_ms", "latency_model_ms", "timed_out", "input_tokens",
    "output_tokens", "cost_usd", "model", "trace_id", "root_span_id", "handoffs", "error", "repeats",
)  # fmt: skip
"""Fields of a case that the agent's answer makes."""
_OTHER_NAMES = {"case_id": "id", "expected_outcome": "expected"}
_OF_OTHER_TOOLS = {
    "expected_output": "expected", "expectedOutput": "expected", "expected_response": "expected",
    "ground_truth": "expected", "retrieval_context": "context", "retrieved_contexts": "context", "contexts": "context",
}  # fmt: skip
"""Their names for a field, which cases are read by; beside ours it is a field of the author's own."""
_TOP = ("name", "tests")
_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")


class TestSetError(SidejudgeError):
    """The file is no test set; ``problems`` holds every mistake that was found, in file order."""

    __test__ = False  # it is no test

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        super().__init__("\n".join(map(str, self.problems)))


def read_test_set(path: Path, scenarios: Iterable[str]) -> TestSet:
    """The test set of a file; ``TestSetError`` lists all that is wrong. ``scenarios`` are the names that are known.

    Every test has an ``id`` (``test-0001``, by its place, where it gives none) and a ``complexity`` afterwards; a null
    field is one that is not there, except ``expected``, which may expect null.
    """
    if path.suffix.lower() not in _SUFFIXES:
        raise TestSetError([Problem(path="", message=f"{path}: must end with one of {', '.join(_SUFFIXES)}")])
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise TestSetError([Problem(path="", message=f"{UNREADABLE}: {why}", source=str(path))]) from None
    document = _document(path, text)
    if document.problems:
        raise TestSetError(document.problems)
    reader = _Reader(str(path), document.lines, frozenset(scenarios))
    found = reader.read(document.value, path.stem)
    if reader.problems:
        raise TestSetError(reader.problems)
    return found


def _document(path: Path, text: str) -> Document:
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return read_document(text, None, str(path))
    document = Document()
    if suffix == ".json":
        document.value = _json(text, document, str(path), None)
        return document
    tests: list[Json] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            document.lines["tests", len(tests)] = number
            tests.append(_json(line, document, str(path), number))
    document.value = {"name": path.stem, "tests": tests}
    return document


def _json(text: str, document: Document, source: str, line: int | None) -> Json:
    """The value, or ``None`` and a problem. A key that stands twice and NaN are mistakes."""
    try:
        value: Json = json.loads(text, object_pairs_hook=_once, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        at = line if line is not None else error.lineno
        document.problems.append(Problem(path="", message=f"is not JSON: {error.msg}", source=source, line=at))
    except (ValueError, RecursionError) as error:
        document.problems.append(Problem(path="", message=f"is not JSON: {error}", source=source, line=line))
    else:
        return value
    return None


def _once(pairs: Sequence[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(name for name in names if names.count(name) > 1)[:80]!r} stands twice")
    return found


class _Reader:
    """Checks a document; ``problems`` collects what is wrong."""

    def __init__(self, source: str, lines: Mapping[Location, int], scenarios: frozenset[str]) -> None:
        self._source, self._lines, self._scenarios = source, lines, scenarios
        self.problems: list[Problem] = []
        self._first: dict[str, str] = {}

    def read(self, value: Json, stem: str) -> TestSet:
        if not isinstance(value, dict):
            self._complain((), "must be a map with name and tests")
            return TestSet(name=stem, tests=())
        for key in value:
            if key not in _TOP:
                self._complain((key,), "unknown key", near=nearest(key[:80], _TOP), valid=_TOP)
        name = value.get("name", stem)
        if not isinstance(name, str) or not name.strip():
            self._complain(("name",), "must be text")
        tests = value.get("tests")
        if not isinstance(tests, list):
            self._complain(("tests",), "must be a list of tests" if "tests" in value else "is required")
            tests = []
        elif not tests:
            self._complain(("tests",), "is empty; a test set needs a test")
        return TestSet(name=str(name), tests=tuple(self._test(test, place) for place, test in enumerate(tests)))

    def _test(self, value: Json, place: int) -> dict[str, Json]:
        at: Location = ("tests", place)
        if not isinstance(value, dict):
            self._complain(at, "must be a map of fields with input")
            return {}
        if (why := not_plain(value)) is not None:
            self._complain(at, why)
            return {}
        test = {name: field for name, field in value.items() if field is not None or name == "expected"}
        for name in value:
            self._name(name, value, at)
        if "input" not in test:
            meant = [name for name in test if name not in TEST_FIELDS and nearest(name[:80], ("input",))]
            if meant:
                self._complain((*at, meant[0][:80]), "unknown key", near="input")
            else:
                self._complain((*at, "input"), "is required")
        for wrong in field_errors({name: field for name, field in test.items() if name in CASE_FIELDS}):
            self._complain((*at, wrong.field), f"{wrong.message}; {wrong.remedy}")
        for name in ("id", "complexity"):
            field = test.get(name)
            if name in test and (not isinstance(field, str) or not field.strip()):
                self._complain((*at, name), "must be text; put it in quotation marks")
        self._scenario(test.get("scenario"), at)
        test_id = test.get("id", f"test-{place + 1:04d}")
        if isinstance(test_id, str):
            self._unique(test_id, at)
        return {**test, "id": test_id, "complexity": test.get("complexity", DEFAULT_COMPLEXITY)}

    def _name(self, name: str, test: Mapping[str, Json], at: Location) -> None:
        """A name of the format, one of the author's own, or a mistake."""
        if name in TEST_FIELDS:
            return
        if name in ANSWERED:
            self._complain((*at, name[:80]), "is what the agent answers; a test does not have it")
        elif name in _OTHER_NAMES:
            self._complain((*at, name), "has another name in a test", near=_OTHER_NAMES[name])
        elif (ours := _OF_OTHER_TOOLS.get(name)) is not None and ours not in test and test[name] is not None:
            self._complain((*at, name), "has another name in a test", near=ours)
        elif (near := near_field(name, TEST_FIELDS)) not in (None, "input") and near not in test:
            self._complain((*at, name[:80]), "unknown key", near=near)

    def _scenario(self, scenario: Json, at: Location) -> None:
        if isinstance(scenario, str) and scenario not in self._scenarios:
            known = tuple(sorted(self._scenarios))
            near = nearest(scenario[:80], known)
            why = f"there is no scenario {scenario[:80]!r}" + ("" if known else "; --config names the file that has it")
            self._complain((*at, "scenario"), why, near=near, valid=known[:20])
        elif isinstance(scenario, dict):
            try:
                parse_scenario("inline", scenario)
            except ScenarioError as error:
                for stated in error.problems:
                    self._complain((*at, "scenario"), stated)

    def _unique(self, test_id: str, at: Location) -> None:
        first = self._first.setdefault(test_id, path_of(at))
        if first != path_of(at):
            self._complain((*at, "id"), f"{test_id[:80]!r} is the id of {first} already; every test needs its own")

    def _complain(self, at: Location, message: str, near: str | None = None, valid: tuple[str, ...] = ()) -> None:
        lines = [self._lines[at[:depth]] for depth in range(len(at), -1, -1) if at[:depth] in self._lines]
        line = lines[0] if lines else None
        self.problems.append(
            Problem(path=path_of(at), message=message, source=self._source, line=line, nearest=near, valid=valid)
        )


_ITEM = re.compile(r"^( *)- ", re.MULTILINE)
_OWNER_ONLY = 0o600


def append_test(path: Path, test: Mapping[str, Json], scenarios: Iterable[str]) -> int:
    """Append the test to the file; a new file is readable by its owner alone.

    The file is replaced as a whole, after the new one was read as a test set: a mistake leaves it untouched.

    Args:
        path: ends with ``.yaml``, ``.yml``, ``.json``, ``.jsonl`` or ``.ndjson``.
        test: as a line of a test set.
        scenarios: names that are known.

    Returns:
        The number of tests.

    Raises:
        TestSetError: The file is no test set, or would be none with this test.
    """
    before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    if before:
        read_test_set(path, scenarios)
    found: list[TestSet] = []
    write_whole(
        path, _with(before, test, path), new_mode=_OWNER_ONLY,
        check=lambda fresh: found.append(read_test_set(fresh, scenarios)),
    )  # fmt: skip
    return len(found[0].tests)


def _with(before: str, test: Mapping[str, Json], path: Path) -> str:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return before.rstrip("\n") + ("\n" if before else "") + json.dumps(test, ensure_ascii=False) + "\n"
    if path.suffix.lower() == ".json":
        whole = json.loads(before) if before else {"name": path.stem, "tests": []}
        return json.dumps({**whole, "tests": [*whole["tests"], test]}, ensure_ascii=False, indent=2) + "\n"
    head = before.removesuffix("\n") if before else f"name: {path.stem}\ntests:"
    indents = _ITEM.findall(head.partition("\ntests:")[2] if not head.startswith("tests:") else head)
    indent = min(indents, key=len, default="  ")
    lines = readable([dict(test)], width=110).splitlines()
    return "\n".join([head, *(indent + line for line in lines)]) + "\n"


class SelectionError(SidejudgeError, ValueError):
    """A tag or a field that no test has."""


def selected(tests: TestSet, tags: Sequence[str], where: Sequence[tuple[str, str]]) -> TestSet:
    """The tests with all of these tags and field values, in order.

    A value is compared as it is written and as YAML reads it (``3``, ``true``, ``null``); a key with a dot looks into a
    map (``metadata.language``) unless a field has that very name.
    """
    index = tests.tags
    for tag in tags:
        if tag not in index:
            raise SelectionError(f"--tag: no test carries {tag!r}{_meant(tag, index)}")
    kept = set(range(len(tests.tests))).intersection(*(index[tag] for tag in tags))
    for key, value in where:
        fields = [_field(test, key) for test in tests.tests]
        if not any(fields):
            raise SelectionError(
                f"--where: no test has {key!r}{_meant(key, {name for t in tests.tests for name in t})}"
            )
        flat = TestSet(name=tests.name, tests=tuple(fields))
        wanted = {id(test) for given in (value, plain_value(value)) for test in flat.filter(field=given)}
        kept &= {place for place, test in enumerate(fields) if id(test) in wanted}
    return TestSet(name=tests.name, tests=tuple(tests.tests[place] for place in sorted(kept)))


def _field(test: Mapping[str, Json], key: str) -> dict[str, Json]:
    """The values of a test under a key, as a test of one ``field``; empty without any."""
    if key in test:
        return {"field": test[key]}
    head, dot, rest = key.partition(".")
    inner = test.get(head)
    return _field(inner, rest) if dot and isinstance(inner, dict) else {}


def _meant(word: str, known: Iterable[str]) -> str:
    names = sorted(known)
    near = nearest(word, names)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(names[:20])}" if names else ""
