"""House rules that no linter holds: one name for one idea, a sentence for each room, a reason for each exception."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
PACKAGES = ("scoring", "integrations", "monitor", "dashboards", "sidejudge")
PRODUCT = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MOST_ANY = 119
"""Lines of the product that use ``Any`` as a type; lower it when some have gone."""
EXCEPTION = re.compile(r"#\s*(noqa|type: ignore)\b")
WITH_REASON = re.compile(r"# (noqa: [A-Z]+[0-9]+(, [A-Z]+[0-9]+)*|type: ignore\[[a-z-]+(,[a-z-]+)*\]) +[#-] +\S")


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Names, imports and classes of a file: what the tests below look for. Each file is parsed once."""
    wanted = (ast.Name, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Call, ast.Attribute)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, wanted)]


def public_classes(paths: list[Path]) -> dict[str, list[str]]:
    """Where each public class of these files is defined, by its name."""
    found = defaultdict(list)
    for path in paths:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_no_public_class_name_stands_for_two_ideas() -> None:
    assert {name: places for name, places in public_classes(PRODUCT).items() if len(places) > 1} == {}


def imported_files(path: Path) -> set[Path]:
    """The files of the product that a file imports, for their types alone or within a function too."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.ImportFrom):
            names = [each.name for each in node.names]
        else:
            continue
        folder = path.parents[node.level - 1] if node.level else ROOT
        for name in names:
            file = folder.joinpath(*name.removeprefix("sidejudge.").split(".")).with_suffix(".py")
            if file.is_file() and file != path:
                found.add(file)
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    graph = {path: imported_files(path) for path in PRODUCT}
    assert sum(map(len, graph.values())) > 3000
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(str(path.relative_to(ROOT)) for path in reversed(error.args[1])))


def test_a_section_of_a_docstring_has_its_heading_on_a_line_of_its_own() -> None:
    flat = re.compile(r"^ *(?:Args|Returns|Raises): \S", re.MULTILINE)
    assert [str(path.relative_to(ROOT)) for path in PRODUCT if flat.search(path.read_text())] == []


def test_a_file_that_a_text_names_is_there() -> None:
    texts = [*PRODUCT, *(ROOT / "tests").rglob("*.py"), ROOT / "ARCHITECTURE.md"]
    there = {f"/{path.relative_to(ROOT)}" for path in texts}
    named = {(path, name) for path in texts for name in re.findall(r"`([\w/]+\.py)\b", path.read_text())}
    assert len(named) > 50
    assert {
        f"{path.relative_to(ROOT)}: {name}" for path, name in named if not any(f.endswith(f"/{name}") for f in there)
    } == set()


@pytest.mark.parametrize("room", [str(path.relative_to(ROOT)) for path in PRODUCT if path.name == "__init__.py"])
def test_a_room_opens_with_one_sentence(room: str) -> None:
    stated = ast.get_docstring(ast.parse((ROOT / room).read_text()))
    assert stated, "its docstring: what comes in and what goes out"
    assert re.fullmatch(r"[A-Z`].*[.]", stated.split("\n\n")[0], re.DOTALL)


def test_errors_have_one_root() -> None:
    builtin = {name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, Exception)}
    apart = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in PRODUCT
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if node.name not in ("SidejudgeError", "CommandError")
        if node.bases and isinstance(first := node.bases[0], ast.Name) and first.id in builtin
    ]
    assert apart == [], "SidejudgeError comes first among the bases"


def test_nothing_lies_beside_the_rooms() -> None:
    assert {path.name for path in (ROOT / "monitor").glob("*.py")} == {"__init__.py"}
    assert {path.name for path in (ROOT / "scoring").glob("*.py")} == {"__init__.py", "errors.py"}, "a root, no room"
    assert {path.name for path in (ROOT / "integrations" / "otlp").glob("*.py")} == {"__init__.py"}


@pytest.mark.parametrize(
    ("line", "reasoned"),
    [
        ("x = 1  # noqa: S101  # a test", True),
        ("x = 1  # noqa: S101, PLC0415 - only here", True),
        ("x = 1  # type: ignore[arg-type,misc]  # its stubs are wrong", True),
        ("x = 1  # noqa", False),
        ("x = 1  # noqa: S101", False),
        ("x = 1  # type: ignore[misc]", False),
        ("x = 1  # type: ignore", False),
    ],
)
def test_an_exception_with_its_reason_is_recognised(line: str, *, reasoned: bool) -> None:
    assert EXCEPTION.search(line)
    assert bool(WITH_REASON.search(line)) is reasoned


def test_every_exception_to_a_rule_carries_its_reason() -> None:
    files = [*PRODUCT, *(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))]
    without = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if EXCEPTION.search(line) and not WITH_REASON.search(line)
    ]
    assert without == []


def test_any_stays_rare() -> None:
    lines = {
        (path, node.lineno)
        for path in PRODUCT
        for node in nodes(path)
        if isinstance(node, ast.Name) and node.id == "Any"
    }
    assert len(lines) <= MOST_ANY, "give it a type: object where nothing looks inside, Json or JsonRecord, a Protocol"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_every_path_that_a_page_names_exists(page: str) -> None:
    named = re.findall(
        r"`((?:scoring|integrations|monitor|dashboards|tests|helm|docs)/[\w./-]*)`", (ROOT / page).read_text()
    )
    assert named
    placeholders = re.compile(r"\b(NAME|RUBRIC)\b")
    assert [path for path in named if not placeholders.search(path) and not (ROOT / path).exists()] == []


def test_no_module_is_imported_under_a_second_name() -> None:
    """From the repository's root each room could be imported by its folder's name as well."""
    # Parsing all tests takes seconds: those are parsed that may have such an import, by their words.
    likely = re.compile(rf"\b(from|import|import_module|files)\b[ (].*\n?.*(?<![\w.])({'|'.join(PACKAGES[:-1])})\b")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if likely.search(path.read_text())]
    second = [
        f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        for path in [*PRODUCT, *tests]
        for node in nodes(path)
        for name in imported(node)
        if name.partition(".")[0] in PACKAGES[:-1]
    ]
    assert second == [], "import sidejudge.…"


def imported(node: ast.AST) -> list[str]:
    """The absolute names of modules that a statement imports, written out or passed to ``import_module``."""
    match node:
        case ast.Import():
            return [each.name for each in node.names]
        case ast.ImportFrom(level=0, module=str(name)):
            return [name]
        case ast.Call(
            func=ast.Name("import_module" | "files") | ast.Attribute(attr="import_module" | "files"),
            args=[ast.Constant(str(name)), *_],
        ):
            return [name]
    return []


@pytest.mark.parametrize(
    "line", ["import monitor.cli", "from scoring import case", "import_module('dashboards')", "files('scoring')"]
)
def test_a_second_name_is_seen(line: str) -> None:
    assert next(name for node in ast.walk(ast.parse(line)) for name in imported(node)).partition(".")[0] in PACKAGES


def test_coverage_measures_what_is_imported_of_each_room(tmp_path: Path) -> None:
    some = ("dashboards/yaml_text.py", "integrations/backoff.py", "monitor/config/errors.py", "scoring/errors.py")
    program, found = tmp_path / "program.py", tmp_path / "found"
    program.write_text("".join(f"import sidejudge.{path[:-3].replace('/', '.')}\n" for path in some))
    command = [sys.executable, "-m", "coverage", "run", "--data-file", found, program]
    subprocess.run(command, cwd=ROOT, check=True)
    data = CoverageData(str(found))
    data.read()
    assert {str(ROOT / path) for path in some} <= data.measured_files()


def test_the_tree_of_errors_is_drawn_in_one_docstring() -> None:
    drawn = (ROOT / "scoring" / "errors.py").read_text().split("::", 1)[1].split('"""', 1)[0]
    there = {
        node.name
        for path in PRODUCT
        for node in nodes(path)
        if isinstance(node, ast.ClassDef) and node.bases and re.fullmatch(r"[A-Z]\w*Error", node.name)
    }
    assert set(re.findall(r"\b[A-Z]\w*Error\b", drawn)) - {"ValueError"} == there, "scoring/errors.py draws it"
