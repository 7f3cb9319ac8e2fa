"""Every command, configuration and program in the documentation runs, page by page, as a reader would run it."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
import yaml

from sidejudge.monitor.config import load
from tests.docs.blocks import KINDS, PAGES, ROOT, Block, blocks, pattern
from tests.fakes.judge import judges
from tests.fakes.openai import Act, Provider, Seen, states
from tests.forked import Forked
from tests.running import free_port

GIVEN = {
    name: "postgresql://given@db.example.org/fleet" if name.endswith("_DATABASE") else "https://hooks.example.org/given"
    for page in PAGES
    for name in re.findall(r"\$\{([A-Z_]+)[:}]", page.read_text(encoding="utf-8"))
}
"""What configurations in the documentation read from the environment."""
RUNS = [page for page in PAGES if any(block.language in ("sh", "python", "yaml") for block in blocks(page))]


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """A judge and a model: an endpoint that speaks OpenAI's protocol."""
    judge, model = judges(), states("An invoice is a request for payment.")

    def act(seen: Seen) -> Act:
        return (judge if "response_format" in seen.body else model)(seen)

    with Provider(act) as fake:
        yield fake.url


class Reader:
    """Somebody who follows one page in an empty folder, with the ports of the page moved to free ones."""

    def __init__(self, folder: Path, provider: str) -> None:
        self.folder = folder
        self.otlp, self.api = free_port(), free_port()
        self.commands: list[Forked] = []
        self.background = False
        self.output = ""
        self.asked: Block | None = None
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SIDEJUDGE_", "COVERAGE_", "OTEL_"))}
        self.environ = kept | GIVEN | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}", "HOME": str(folder), "COLUMNS": "160",
            "OPENAI_BASE_URL": provider, "OPENAI_API_BASE": provider, "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "NO_COLOR": "1", "SIDEJUDGE_URL": f"http://127.0.0.1:{self.api}",
        }  # fmt: skip

    def moved(self, text: str) -> str:
        """A text of the page with the ports that this reader may use."""
        text = re.sub(r"\b(4318)\b", str(self.otlp), re.sub(r"\b(8790)\b", str(self.api), text))
        return text.replace("monitor/offline/test/example", str(ROOT / "monitor/offline/test/example"))

    def follow(self, block: Block) -> None:
        if block.title:
            (self.folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.title).write_text(self.moved(block.text))
        match block.language, block.kind:
            case "sh", "background":
                self.start(block)
            case "sh", "":
                self.shell(block)
                self.asked = block if self.background and block.text.startswith("sidejudge status") else None
            case "python", "app" if not all(map(available, imported(block.text))):
                compile(block.text, block.title or "page", "exec")
            case "python", _ if not block.title:
                self.each([["-c", self.moved(block.text)]], block)
            case "text", "output":
                self.compare(pattern(self.moved(block.text)))
            case "yaml", _:
                check_yaml(block, self.folder)
            case "json", _:
                json.loads(block.text.replace("…", ""))
            case "jsonl", _:
                [json.loads(line) for line in block.text.splitlines()]

    def compare(self, expected: re.Pattern[str]) -> None:
        """The last output is as the page shows it; a reader asks for a status again while the traces are on the way."""
        end = time.monotonic() + 60
        while not expected.search(re.sub(r"[ \t]+", " ", self.output)):
            assert self.asked is not None, self.output
            assert time.monotonic() < end, self.output
            time.sleep(0.2)
            self.shell(self.asked)

    def shell(self, block: Block) -> None:
        """Run the block: by bash, unless all of it are plain commands. The output of ours goes to a file at most."""
        text = self.moved(block.text).replace("\\\n", " ")
        commands = [shlex.split(line, comments=True) for line in text.splitlines() if line.strip()]
        plain = not re.search(r"[|<&;$*?`]|>>|\d>", text) and all(
            shutil.which(words[0], path=self.environ["PATH"]) for words in commands
        )
        if not plain or any(">" in words[:-2] for words in commands):
            self.run(["bash", "-euo", "pipefail", "-c", text], block)
        else:
            self.each(commands, block)

    def each(self, commands: list[list[str]], block: Block) -> None:
        """Run commands, ours and programs without a start of their own."""
        self.settle()
        output = self.folder / ".output"
        output.write_bytes(b"")
        codes = []
        for words in commands:
            if words[0] not in ("sidejudge", "-c"):
                with output.open("ab") as end:
                    codes.append(subprocess.call(words, cwd=self.folder, env=self.environ, stdout=end, stderr=end))
                continue
            arguments, stdout = words[words[0] == "sidejudge" :], output
            if ">" in words:
                arguments, stdout = arguments[:-2], self.folder / words[-1]
                stdout.write_bytes(b"")
            codes.append(self.command(arguments, stdout, output).wait(timeout=120))
        self.output = output.read_text()
        if extra := re.search(r"needs the extra '(\w+)' \(([\w-]+)\), which is not installed", self.output):
            pytest.skip(f"{extra[2]} is missing; pip install 'sidejudge[{extra[1]}]'")
        expected = [*(0 for _ in commands[1:]), block.exit]
        assert codes == expected, f"line {block.line}: exit {codes}\n{self.output[-2000:]}"

    def command(self, arguments: list[str], stdout: Path, stderr: Path) -> Forked:
        made = Forked(*arguments, cwd=self.folder, env=self.environ, stdout=stdout, stderr=stderr)
        self.commands.append(made)
        return made

    def run(self, command: list[str], block: Block) -> None:
        self.settle()
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, timeout=120, check=False
        )
        self.output = done.stdout + done.stderr
        assert done.returncode == block.exit, f"line {block.line}: exit {done.returncode}\n{self.output[-2000:]}"

    def start(self, block: Block) -> None:
        self.environ |= {
            "SIDEJUDGE_SOURCES__OTLP__HTTP": f"127.0.0.1:{self.otlp}", "SIDEJUDGE_API__LISTEN": f"127.0.0.1:{self.api}",
            "SIDEJUDGE_ASSEMBLY__GRACE": "200ms",
        }  # fmt: skip
        log = self.folder / ".background"
        words = shlex.split(self.moved(block.text), comments=True)
        self.command(words[1:], log, log)
        self.background = True
        end = time.monotonic() + 60
        while not self.ready():
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)

    def ready(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.api}/readyz", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    def settle(self) -> None:
        """Wait, as a reader does without noticing, until what was sent has been judged."""
        end = time.monotonic() + 30
        while self.background and time.monotonic() < end:
            outcomes = httpx.get(f"http://127.0.0.1:{self.api}/v1/status", timeout=5).json()["outcomes"]
            if not outcomes["open"]:
                return
            time.sleep(0.1)

    def close(self) -> None:
        for each in self.commands:
            each.kill()


def imported(program: str) -> list[str]:
    """The modules that a program imports."""
    tree = ast.parse(program)
    named = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return named + [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]


def available(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def check_yaml(block: Block, folder: Path) -> None:
    """A configuration is valid; other YAML is what its kind says."""
    if block.kind == "":
        path = folder / (block.title or ".block.yaml")
        path.write_text(block.text)
        load(path, GIVEN)
    elif block.kind == "rubrics":
        (folder / ".rubrics.yaml").write_text(yaml.safe_dump({"rubrics": yaml.safe_load(block.text)}))
        load(folder / ".rubrics.yaml", GIVEN)
    elif block.kind == "scenarios":
        (folder / ".scenarios.yaml").write_text(yaml.safe_dump({"scenarios": yaml.safe_load(block.text)}))
        load(folder / ".scenarios.yaml", GIVEN)
    elif block.kind == "values":
        (folder / ".values.yaml").write_text(yaml.safe_dump(yaml.safe_load(block.text).get("config", {})))
        load(folder / ".values.yaml", GIVEN)
    else:
        assert yaml.safe_load(block.text)


@pytest.mark.parametrize("page", RUNS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_example_of_a_page_runs(page: Path, provider: str, tmp_path: Path) -> None:
    reader = Reader(tmp_path, provider)
    try:
        for block in blocks(page):
            reader.follow(block)
    finally:
        reader.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_has_a_kind_that_is_known(page: Path) -> None:
    for block in blocks(page):
        assert block.language in KINDS, f"line {block.line}: {block.language!r}"
        assert block.kind in KINDS[block.language], f"line {block.line}: {block.kind!r}"


def test_most_commands_of_the_documentation_run() -> None:
    """Those that need a cluster, or an installation, are few beside those that run here."""
    kinds = Counter(block.kind for page in PAGES for block in blocks(page) if block.language == "sh")
    assert kinds[""] + kinds["background"] > 2 * kinds["elsewhere"], kinds


@pytest.mark.parametrize(
    ("expected", "output", "found"),
    [("a  b", "x a b y", True), ("a … c", "a b\nc", True), ("a … d", "a b c", False), ("1.5", "125", False)],
)
def test_output_is_compared_word_by_word(expected: str, output: str, *, found: bool) -> None:
    assert bool(pattern(expected).search(output)) is found
