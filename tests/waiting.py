"""Waiting for what a running monitor does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Return once the condition holds; it must within this long."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # what is waited for knows nothing of the test
            await asyncio.sleep(0.02)
