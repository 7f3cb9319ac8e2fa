from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sidejudge.integrations.postgres import schema
from sidejudge.integrations.postgres.database import Database
from tests.postgres_server import PostgresServer


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    """A database with the tables of this version."""
    found = Database(postgres.url(postgres.new_database()))
    await schema.migrate(found)
    yield found
    found.close()
