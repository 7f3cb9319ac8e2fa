"""The receiver behind a real HTTP server: what ASGI alone does not show."""

# ruff: noqa: ASYNC110  # neither server nor receiver has an event to wait for

from __future__ import annotations

import asyncio
import socket

import pytest
import uvicorn

from integrations.otlp.server.receiver import OtlpReceiver
from integrations.otlp.wire.receipt import Receipt

HEAD = "POST /v1/traces HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-protobuf\r\n"


@pytest.fixture
async def served():
    taken = []

    async def consume(body: bytes, encoding: str) -> Receipt:
        taken.append(body)
        return Receipt()

    receiver = OtlpReceiver(consume, max_bytes=100_000)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(receiver, http="httptools", ws="none", lifespan="off", access_log=False, log_config=None)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    yield receiver, taken, listener.getsockname()[1]
    server.should_exit = True
    await serving
    listener.close()


async def answer(reader: asyncio.StreamReader) -> int:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)
    return int(head[9:12])


async def test_a_connection_lives_on_after_a_body_that_was_too_large(served):
    _, taken, port = served
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{HEAD}Content-Length: 5000000\r\n\r\n".encode() + bytes(5_000_000))
    assert await answer(reader) == 413
    writer.write(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
    writer.write((b"10000\r\n" + bytes(0x10000) + b"\r\n") * 5 + b"0\r\n\r\n")
    assert await answer(reader) == 413
    writer.write(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".encode())
    assert await answer(reader) == 200
    assert taken == [b"abcde"]
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_hangs_up_in_the_middle_leaves_nothing_behind(served):
    receiver, taken, port = served
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{HEAD}Content-Length: 1000\r\n\r\nabc".encode())
    await writer.drain()
    while not receiver.memory.held:
        await asyncio.sleep(0.01)
    writer.close()
    await writer.wait_closed()
    while receiver.memory.held:
        await asyncio.sleep(0.01)
    assert taken == []
