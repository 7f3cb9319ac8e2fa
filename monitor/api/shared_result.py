"""Shared result: what many callers ask for, made once for all of them, and kept in proportion to what it costs."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

_REST = 10
"""What took t seconds is kept for 10 t: at most a tenth of one processor, however many callers there are."""
_LONGEST_NS = 5 * 10**9
_QUESTIONS = 32

T = TypeVar("T")


class SharedResult(Generic[T]):
    """One result. Callers that come while it is made wait for it; ``clock_ns`` is read before and after."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._made: T | None = None
        self._due_ns = 0
        self._making = asyncio.Lock()

    async def get(self, make: Callable[[], Awaitable[T]]) -> T:
        """The result that is kept, else that of ``make``."""
        async with self._making:
            began_ns = self._clock_ns()
            # A clock that was set back makes it anew.
            if self._made is None or not self._due_ns - _LONGEST_NS <= began_ns < self._due_ns:
                self._made = await make()
                ended_ns = self._clock_ns()
                self._due_ns = ended_ns + min(_LONGEST_NS, _REST * max(0, ended_ns - began_ns))
            return self._made


class SharedResults(Generic[T]):
    """Results by what was asked, the latest ``_QUESTIONS`` of them."""

    def __init__(self, clock_ns: Callable[[], int]) -> None:
        self._clock_ns = clock_ns
        self._of: OrderedDict[Hashable, SharedResult[T]] = OrderedDict()

    async def get(self, asked: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """The result that is kept for this question, else that of ``make``."""
        found = self._of.setdefault(asked, SharedResult(self._clock_ns))
        self._of.move_to_end(asked)
        if len(self._of) > _QUESTIONS:
            self._of.popitem(last=False)
        return await found.get(make)
