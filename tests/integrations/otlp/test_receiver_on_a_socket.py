"""The receiver behind a real HTTP server: what ASGI alone does not show."""

# ruff: noqa: ASYNC110  # neither server nor receiver has an event to wait for

from __future__ import annotations

import asyncio
import gzip
import socket
import sys
from pathlib import Path

import pytest
import uvicorn

from sidejudge.integrations.otlp.server.receiver import OtlpReceiver
from sidejudge.integrations.otlp.wire.receipt import Receipt

HEAD = "POST /v1/traces HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-protobuf\r\n"


@pytest.fixture
async def served(request):
    taken = []

    async def consume(body: bytes, encoding: str, passage: object = None) -> Receipt:
        taken.append(body)
        return Receipt()

    receiver = OtlpReceiver(consume, max_bytes=getattr(request, "param", 100_000))
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


@pytest.mark.parametrize("served", [16 << 20], indirect=True)
async def test_compressed_bodies_that_stall_keep_nobody_else_out(served):
    receiver, taken, port = served
    bomb = gzip.compress(bytes(15 << 20), 9)
    stalled = [await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0)) for _ in range(6)]
    for _, writer in stalled:
        writer.write(f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode() + bomb[:-8])
    while receiver.memory.held < 8 << 20 or len(receiver.refused) == 0:
        await asyncio.sleep(0.01)
    for size, address in ((500_000, "127.0.0.2"), (8 << 20, "127.0.0.1")):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        writer.write(f"{HEAD}Content-Length: {size}\r\n\r\n".encode() + bytes(size))
        assert await answer(reader) == 200
        writer.close()
        await writer.wait_closed()
    assert [len(body) for body in taken] == [500_000, 8 << 20]
    for _, writer in stalled:
        writer.close()
        await writer.wait_closed()


SMALL_MEMORY = """
import asyncio, resource, socket, sys, uvicorn
from sidejudge.integrations.otlp.server.receiver import OtlpReceiver
from sidejudge.integrations.otlp.wire.receipt import Receipt

async def consume(body, encoding, passage=None):
    return Receipt()

async def main():
    listener = socket.create_server(("127.0.0.1", 0))
    receiver = OtlpReceiver(consume, 1 << 30)
    config = uvicorn.Config(receiver, http="httptools", ws="none", lifespan="off", log_config=None)
    print(listener.getsockname()[1], flush=True)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (60 << 20),) * 2)
    await uvicorn.Server(config).serve(sockets=[listener])

asyncio.run(main())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is bounded as Linux does it")
async def test_a_body_for_which_there_is_no_memory_may_be_sent_again():
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SMALL_MEMORY, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        port = int(await process.stdout.readline())
        bomb = gzip.compress(bytes(50 << 20), 9)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode() + bomb)
        assert await answer(reader) == 503
        writer.write(f"{HEAD}Content-Length: 5\r\n\r\nhello".encode())
        assert await answer(reader) == 200
        writer.close()
        await writer.wait_closed()
    finally:
        process.kill()
        await process.wait()


async def test_a_request_that_the_end_cuts_short_is_one_to_send_again():
    begun = asyncio.Event()

    async def consume(body: bytes, encoding: str, passage: object = None) -> Receipt:
        begun.set()
        await asyncio.sleep(60)
        return Receipt()

    receiver = OtlpReceiver(consume)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        receiver, http="httptools", ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    writer.write(f"{HEAD}Content-Length: 5\r\n\r\nspans".encode())
    await begun.wait()
    receiver.accepting = False
    server.should_exit = True
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 1" in head.lower()
    await serving
    writer.close()
    listener.close()
