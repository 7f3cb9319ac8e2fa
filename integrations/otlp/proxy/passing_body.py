"""The body of a request that passes through, and a copy of it for as long as there is memory for one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from sidejudge.integrations.otlp.server.body import BodyShare, Receive, next_part
from sidejudge.integrations.otlp.server.response import Refusal
from sidejudge.integrations.otlp.wire.receipt import Passage

_WHOLE: Final = 1 << 20
"""A body that is complete within this many bytes is sent in one piece; a larger one while it comes in."""


class PassingBody:
    """The body as it comes in. ``share`` is the memory for a copy of it, None where none is wanted."""

    def __init__(self, receive: Receive, share: BodyShare | None, max_bytes: int, *, copied: bool, kept: bool) -> None:
        self._receive, self._share, self._max = receive, share, max_bytes
        self.sender = b""
        self._size = 0
        self._copy: list[bytes] | None = [] if share is not None else None
        self._all = self._copy
        self.copied = copied
        """Whether a copy is to be judged and has not been taken yet."""
        self.kept = kept
        """Whether a copy is to be kept where upstream does not take it."""
        self.followed = False
        """Whether it is kept, and who keeps it waits for upstream's response."""
        self.passage = Passage()
        self.why = "too_large"
        """Why there is no copy."""
        self.ended = False
        self.left = False
        """Whether the application went away while its request was watched."""
        self._watching: asyncio.Task[None] | None = None

    async def begin(self) -> tuple[bytes, bool]:
        """Return the body if it is short, else its beginning; and whether there is more."""
        parts: list[bytes] = []
        size, more = 0, True
        while more and size < _WHOLE:
            part, more = await self._next()
            parts.append(part)
            size += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts), more

    async def rest(self, first: bytes) -> AsyncIterator[bytes]:
        """Iterate over all of the body: its beginning, and then what comes."""
        yield first
        while not self.ended:
            part, _ = await self._next()
            if part:
                yield part

    async def _next(self) -> tuple[bytes, bool]:
        part, more = await next_part(self._receive)
        self.ended = not more
        self._size += len(part)
        if self._all is not None and self._share is not None:
            self._all.append(part)
            try:
                self._share.grow(self._size)
            except Refusal:
                self._drop("memory")
            if self._size > self._max:
                self._drop("too_large")
        return part, more

    async def whole(self) -> bytes | None:
        """All of it, once it is here; None where there was no memory for it."""
        while not self.ended:
            await self._next()
        return None if self._all is None else b"".join(self._all)

    def _drop(self, why: str) -> None:
        self._copy, self._all, self.why = None, None, why
        self.release()

    def refused(self, why: str) -> None:
        """Let the copy go, if it was not taken yet: upstream has refused the request."""
        if self.copied and self._copy is not None:
            self._drop(why)

    def take(self) -> list[bytes] | None:
        """Return the copy, once; ``None`` if there was no memory for it, or upstream refused it."""
        taken, self._copy, self.copied = self._copy, None, False
        if not self.kept:
            self._all = None
            self.release()
        return taken

    def watch(self, relaying: asyncio.Task[object] | None) -> None:
        """End the request when the application goes away; the whole body has been read."""
        if self._watching is None and relaying is not None:
            self._watching = asyncio.create_task(self._watch(relaying))

    async def _watch(self, relaying: asyncio.Task[object]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.left = True
        relaying.cancel()

    def release(self) -> None:
        """Give back the memory of the copy."""
        if self._share is not None:
            self._share.release()

    def close(self) -> None:
        """End the request."""
        self.release()
        if self._watching is not None:
            self._watching.cancel()
