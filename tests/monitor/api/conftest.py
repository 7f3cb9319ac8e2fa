"""Monitors that are not started, for tests of pages and routes."""

from __future__ import annotations

import pytest

from tests.monitor.api.still import ROUTES, Still


@pytest.fixture
def still(configured):
    made = []

    def make(**sections):
        made.append(Still(configured(**{**ROUTES, **sections})))
        return made[-1]

    yield make
    for one in made:
        one.monitor.store.close()
