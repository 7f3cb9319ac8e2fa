from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents import FakeAgent


@pytest.fixture
def fake() -> Iterator[FakeAgent]:
    agent = FakeAgent()
    yield agent
    agent.close()
