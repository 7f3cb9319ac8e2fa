"""Fixtures that every test may use."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import cache
from importlib import import_module
from pathlib import Path

import httpx
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from sidejudge.integrations.addresses import trusted
from sidejudge.integrations.store import sqlite
from sidejudge.integrations.store.connection import connect, migrate
from tests import forked, passed
from tests.needs import POSTGRES, PSYCOPG, SENTENCE_TRANSFORMERS, print_table
from tests.postgres_server import PostgresServer
from tests.running import Running

# How fast a test is depends on what else the machine does. A third of the usual examples: the campaign tries many more.
settings.register_profile("calm", deadline=None, max_examples=30)
settings.load_profile("calm")

collect_ignore = [
    "imported_for_forks.py",  # importing it is what it is for
    "plugin/peers",  # imports what only an environment of its own holds
]

LONGEST_FIRST = (
    "tests/image", "tests/dashboards/rules", "tests/end_to_end/test_own_traces.py",
    "tests/monitor/revise/test_belated", "tests/dashboards/test_real", "tests/end_to_end/test_bad_input.py",
    "tests/faults", "tests/end_to_end/test_degrading", "tests/end_to_end", "tests/simulation", "tests/helm",
    "tests/docs/test_examples.py", "tests/scoring/learning", "tests/scoring/test_hostile_texts.py",
    "tests/monitor/ingest/test_sidecar.py", "tests/monitor/ingest/langfuse", "tests/monitor/cli",
    "tests/monitor/evaluate", "tests/integrations/embed", "tests/integrations/otlp/test_upstream_tls.py",
    "tests/monitor", "tests/integrations", "tests/sidejudge", "tests/scoring/evaluators", "tests/scoring/judging",
    "tests/conformance",
)  # fmt: skip
"""The slowest files and folders, in the order of the time that they took in a run of the whole suite.

A process that gets one of them last keeps the others waiting at the end.
"""


MANY_MODULES = 300
MANY_TESTS = 2_000
_settled = [0]
"""How many modules were imported when what is alive was last left out of collections of garbage."""


def _create_ssl_context(verify: object = True, cert: object = None, trust_env: bool = True) -> object:  # noqa: FBT001, FBT002  # as httpx calls it
    """Whom a client trusts that is given nobody. It is read once: 20 ms of CPU for each of some thousand clients."""
    if verify is True and cert is None:
        return trusted()
    return httpx.create_ssl_context(verify=verify, cert=cert, trust_env=trust_env)


@cache
def _new_store() -> bytes:
    """A store's file with all steps of its schema and nothing in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "state.sqlite")
        with closing(connect(path)) as made:
            migrate(made, path)
        return path.read_bytes()


def _connect(path: Path) -> sqlite3.Connection:
    """A new store begins with what its schema makes of it: 5 of 7 ms of CPU for each of some thousand stores."""
    if path.is_file() and not path.stat().st_size:
        path.write_bytes(_new_store())
    return connect(path)


def pytest_configure(config: pytest.Config) -> None:
    httpx._transports.default.create_ssl_context = _create_ssl_context
    sqlite.connect = _connect
    if named := os.environ.get(passed.VARIABLE):
        config.pluginmanager.register(passed.Passed(Path(named)))


def pytest_collection(session: pytest.Session) -> None:
    """What commands are forked from imports what it needs while this process collects the whole suite."""
    if session.config.getoption("--forks", 0) and session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        forked.share()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of tests and modules stay until the end: no collection of garbage needs to walk through them.

    What many tests import is imported before the processes of a large run fork: litellm alone takes four seconds.
    """
    if session.config.getoption("--forks", 0) and len(session.items) > MANY_TESTS:
        import_module("tests.imported_for_forks")
        forked.share()
    _settle()


def pytest_runtest_logfinish() -> None:
    """What a test has imported stays as well: once torch is there, each collection takes half a second."""
    if len(sys.modules) > _settled[0] + MANY_MODULES:
        _settle()


def _settle() -> None:
    gc.collect()
    gc.freeze()
    _settled[0] = len(sys.modules)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    @cache
    def rank(file: str) -> int:
        return next((n for n, start in enumerate(LONGEST_FIRST) if file.startswith(start)), len(LONGEST_FIRST))

    items.sort(key=lambda item: rank(item.nodeid.partition("::")[0]))  # stable: within a folder the order stays random


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests stand in the product. Looking for some in each file of tests as well takes a second in each process."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    print_table(terminalreporter)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded traffic and specifications that lies beside a development checkout.

    It is not part of the product: a test that reads it skips, saying so, where it is absent.
    """
    folder = Path(os.environ.get("SIDEJUDGE_SHARED", Path(__file__).parents[1] / ".." / "shared")).resolve()
    if not (folder / "corpus").is_dir():
        pytest.skip("the recorded traffic is missing; set SIDEJUDGE_SHARED to its folder")
    return folder


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts monitors in processes of their own; ends what a test leaves running."""
    started: list[Running] = []

    def serve(*, anew: bool = False, **config: object) -> Running:
        folder = tmp_path / f"monitor-{len(started)}"
        folder.mkdir()
        started.append(Running(folder, config, anew=anew))
        return started[-1].start()

    yield serve
    for running in started:
        running.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL, started once; tests take a new database of it."""
    POSTGRES.path()
    PSYCOPG.path()
    server = PostgresServer()
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture(scope="session")
def embedding_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small real embedding model, made with the library."""
    SENTENCE_TRANSFORMERS.path()
    from tests.fakes import sentence_model  # noqa: PLC0415  # loads nothing before it is needed

    return sentence_model.save(tmp_path_factory.mktemp("embedding") / "model")


@pytest.fixture(scope="session")
def installed(request: pytest.FixtureRequest) -> Path:
    """The environment that the base image holds; skips where packages cannot be had."""
    return _image(request, "base")


@pytest.fixture(scope="session")
def installed_judge(request: pytest.FixtureRequest) -> Path:
    """Likewise of the variant ``judge``."""
    return _image(request, "judge")


def _image(request: pytest.FixtureRequest, variant: str) -> Path:
    """An image's environment, made by the image's own steps.

    It is made anew whenever anything that goes into it has changed, and else taken from pytest's cache.
    """
    root = Path(__file__).parents[1]
    given = [root / "pyproject.toml", root / ".ci" / "image.sh", root / ".ci" / "image" / f"{variant}.lock"]
    for package in ("scoring", "integrations", "monitor", "dashboards", "sidejudge"):
        given += sorted(path for path in (root / package).rglob("*") if path.is_file() and path.suffix != ".pyc")
    digest = hashlib.sha256(sys.version.encode())
    for path in given:
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    kept = Path(request.config.cache.mkdir(f"image-{variant}"))
    target = kept / digest.hexdigest()[:16]
    with (kept.parent / f"image-{variant}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of the processes that share the suite makes it, the others wait
        if not target.exists():
            _make_image(root, variant, kept, target)
    return target


def _make_image(root: Path, variant: str, kept: Path, target: Path) -> None:
    """By uv, which takes a fifth of pip's time; by pip, as the Dockerfile does it, where uv reaches nothing."""
    new = kept / "new"
    uv = f"{sys.executable} -m uv pip install --quiet --compile-bytecode --python {new}/bin/python"
    path = f"{Path(sys.base_prefix) / 'bin'}:{os.environ['PATH']}"  # the sandbox holds the Python that runs the tests
    for installer in (uv, ""):
        shutil.rmtree(kept)
        made = subprocess.run(
            ["sh", str(root / ".ci" / "image.sh"), str(new), variant],
            cwd=root, env={**os.environ, "PATH": path, "INSTALLER": installer},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not made.returncode:
            break
    if made.returncode and any(sign in made.stderr for sign in ("onnection", "Could not find a version", "timed out")):
        pytest.skip("the image's dependencies cannot be fetched; give pip an index that has them")
    assert made.returncode == 0, made.stderr
    new.rename(target)
