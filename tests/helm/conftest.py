"""The engine, once for all tests of the charts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helm.engine import Engine
from tests.helm.generate import LIBRARY
from tests.helm.readme import fenced
from tests.needs import HELM_ENGINE


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    HELM_ENGINE.path()
    started = Engine()
    yield started
    started.close()


@pytest.fixture
def shown(engine: Engine, tmp_path: Path) -> Path:
    """The application's chart of the library's README, with the library where ``helm dependency update`` puts it."""
    chart = tmp_path / "shop"
    for text in fenced(LIBRARY / "README.md", "yaml"):
        name = text.partition("\n")[0].removeprefix("# ")
        (chart / name).parent.mkdir(parents=True, exist_ok=True)
        (chart / name).write_text(text.replace("REGISTRY", "r.example"))
    (chart / "charts").mkdir()
    engine.ask(do="package", chart=str(LIBRARY), folder=str(chart / "charts"))
    return chart
