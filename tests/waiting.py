"""Waiting for what a running monitor does by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Return once the condition holds; it must within this long."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # what is waited for knows nothing of the test
            await asyncio.sleep(0.02)


async def answered(ask: Callable[[], Awaitable[T]], wanted: Callable[[T], bool], seconds: float = 30) -> T:
    """The first answer that is as wanted; it must come within this long."""
    async with asyncio.timeout(seconds):
        while not wanted(answer := await ask()):  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.02)
    return answer
