"""The engine, once for all tests of the charts."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.helm.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    if find_spec("helm_sdkpy") is None:
        pytest.skip(
            "the Helm engine is not installed: pip install --ignore-requires-python -r tests/helm/engine.lock, and cffi"
        )
    started = Engine()
    yield started
    started.close()
