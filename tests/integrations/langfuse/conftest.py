"""A fake Langfuse, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from sidejudge.integrations.langfuse.client import Access, Langfuse, RequestBudget
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse

UNBOUNDED = 1_000_000


@pytest.fixture
def fake() -> Iterator[FakeLangfuse]:
    with FakeLangfuse() as server:
        yield server


@pytest.fixture
async def client(fake: FakeLangfuse) -> AsyncIterator[Callable[..., Langfuse]]:
    """Makes clients of the fake; ends them."""
    made: list[Langfuse] = []

    def make(*, secret_key: str = SECRET_KEY, timeout_s: float = 5.0, budget: RequestBudget | None = None) -> Langfuse:
        access = Access(base_url=fake.base_url, public_key=PUBLIC_KEY, secret_key=secret_key)
        made.append(Langfuse(access, budget=budget or RequestBudget(UNBOUNDED), timeout_s=timeout_s))
        return made[-1]

    yield make
    for each in made:
        await each.close()
