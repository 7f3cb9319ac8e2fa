"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

from tests.running import Running

settings.register_profile("calm", deadline=None)  # how fast a test is depends on what else the machine does
settings.load_profile("calm")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded traffic and specifications that lies beside a development checkout.

    It is not part of the product: a test that reads it skips, saying so, where it is absent.
    """
    folder = Path(os.environ.get("SIDEJUDGE_SHARED", Path(__file__).parents[1] / ".." / "shared")).resolve()
    if not (folder / "corpus").is_dir():
        pytest.skip(f"no recorded corpus at {folder} (set SIDEJUDGE_SHARED to run this test)")
    return folder


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts monitors in processes of their own; ends what a test leaves running."""
    started: list[Running] = []

    def serve(**config: object) -> Running:
        folder = tmp_path / f"monitor-{len(started)}"
        folder.mkdir()
        started.append(Running(folder, config))
        return started[-1].start()

    yield serve
    for running in started:
        running.close()


@pytest.fixture(scope="session")
def embedding_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small real embedding model, made with the library."""
    if find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed (the extra `embeddings`)")
    from tests.fakes import sentence_model  # noqa: PLC0415  # loads nothing before it is needed

    return sentence_model.save(tmp_path_factory.mktemp("embedding") / "model")
