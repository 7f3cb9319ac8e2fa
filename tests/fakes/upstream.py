"""A server to forward to: it answers as it is told, byte for byte, and remembers what it was sent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n"


@dataclass(slots=True)
class SeenRequest:
    """One request as it came over the wire. ``body`` is put together from its chunks."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


Speak: TypeAlias = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Upstream:
    """``answer`` is sent to every request, or does what it likes with the connection."""

    url: str = ""
    answer: bytes | Speak = OK
    requested: list[SeenRequest] = field(default_factory=list)
    connections: int = 0
    largest: int = 0
    keep_bodies: bool = True
    close_after_answer: bool = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = [tuple(line.split(": ", 1)) for line in head[1:] if line]
                request = SeenRequest(head[0], [(key, value) for key, value in headers], b"")
                request.body = await self._body(reader, request)
                self.requested.append(request)
                if isinstance(self.answer, bytes):
                    writer.write(self.answer)
                    await writer.drain()
                else:
                    await self.answer(writer)
                if self.close_after_answer or writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _body(self, reader: asyncio.StreamReader, request: SeenRequest) -> bytes:
        parts: list[bytes] = []

        async def take(left: int) -> None:
            while left:
                part = await reader.read(min(left, 1 << 16))
                if not part:
                    raise ConnectionError
                left -= len(part)
                self.largest += len(part)
                if self.keep_bodies:
                    parts.append(part)

        if request.header("transfer-encoding") == "chunked":
            while size := int((await reader.readline()).split(b";")[0], 16):
                await take(size)
                await reader.readline()
            await reader.readline()
        else:
            await take(int(request.header("content-length") or 0))
        return b"".join(parts)


@asynccontextmanager
async def upstream(answer: bytes | Speak = OK) -> AsyncIterator[Upstream]:
    """A server on a port of its own; what hangs in it is ended with it."""
    made = Upstream(answer=answer)
    under_way: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError):  # the test is over
                await made._serve(reader, writer)
        finally:
            under_way.discard(task)
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await server.wait_closed()
