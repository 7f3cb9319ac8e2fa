"""Upstream: connections are used again where that is safe, and nothing that a server says can hang or confuse us."""

from __future__ import annotations

import asyncio
import select
import socket
import threading

import pytest

from sidejudge.integrations.otlp.proxy import upstream as module
from sidejudge.integrations.otlp.proxy.upstream import Upstream, UpstreamError
from tests.fakes.upstream import OK, upstream
from tests.waiting import until

SIZED = [(b"content-length", b"2")]


@pytest.fixture
async def to():
    made = []

    def connect(url, timeout_s=30.0):
        made.append(Upstream(url, timeout_s=timeout_s))
        return made[-1]

    yield connect
    for each in made:
        each.close()


async def reported(client, method="POST", body=b"ab", headers=SIZED, **more):
    answer = await client.send(method, b"/x", headers, body, **more)
    try:
        return answer.status, b"".join([part async for part in answer.parts()])
    finally:
        answer.close()


async def in_parts(*parts):
    for part in parts:
        yield part


async def test_a_connection_serves_one_request_after_the_other(to):
    async with upstream() as up:
        client = to(up.url)
        for _ in range(3):
            assert await reported(client) == (200, b"")
        assert (await reported(client, body=in_parts(b"a", b"b")))[0] == 200
        assert (await reported(client, body=in_parts(b"abc", b"", b"d"), headers=[]))[0] == 200
        assert [requested.body for requested in up.requested] == [b"ab"] * 4 + [b"abcd"]
        assert up.connections == 1


async def test_requests_at_once_have_a_connection_each(to):
    async with upstream() as up:
        client = to(up.url)
        await asyncio.gather(*(reported(client) for _ in range(5)))
        assert 1 < up.connections <= 5


@pytest.mark.parametrize("answer", [
    b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok" + OK,
])  # fmt: skip
async def test_one_that_the_server_has_done_with_or_speaks_out_of_turn_on_is_not_used_again(to, answer):
    async with upstream(answer) as up:
        client = to(up.url)
        assert await reported(client) == await reported(client) == (200, b"ok")
        assert up.connections == 2


async def test_the_length_of_what_head_asks_for_is_no_body(to):
    async with upstream(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n") as up:
        client = to(up.url)
        assert await reported(client, "HEAD", b"", ()) == (200, b"")
        assert up.requested[0].line == "HEAD /x HTTP/1.1"


async def test_what_is_said_before_the_answer_and_after_its_body_is_not_part_of_it(to):
    stated = (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n"
            b"2\r\nok\r\n0\r\nx-trailer: 1\r\n\r\n")  # fmt: skip
    async with upstream(stated) as up:
        client = to(up.url)
        answer = await client.send("POST", b"/x", SIZED, b"ab")
        assert (answer.status, answer.headers) == (200, [(b"x-a", b"1")])
        assert [part async for part in answer.parts()] == [b"ok"]
        answer.close()
        assert await reported(client) == (200, b"ok")
        assert up.connections == 1


async def test_an_answer_to_half_a_request_is_passed_on_and_the_rest_is_not_sent(to):
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await reader.read()
        writer.close()

    sent = 0

    async def without_end():
        nonlocal sent
        while True:
            sent += 1
            yield bytes(1 << 12)
            await asyncio.sleep(0)

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        client = to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        assert await reported(client, body=without_end(), headers=[]) == (413, b"no")
        before = sent
        await asyncio.sleep(0)
        assert (sent, len(client._idle)) == (before, 0), "what was promised was not sent: nothing may follow it"


async def test_a_head_without_end_is_cut_off(to):
    async def endless(writer):
        for _ in range(100):
            writer.write(b"x-more: " + b"x" * 10_000 + b"\r\n")
        await writer.drain()

    async def begin(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n")
        await endless(writer)
        await asyncio.Event().wait()

    async with upstream(begin) as up:
        with pytest.raises(UpstreamError, match="does not end"):
            await reported(to(up.url))


async def test_a_large_answer_waits_with_the_server_until_it_is_taken(to):
    size, sent = 64 << 20, 0

    async def much(writer):
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(size >> 16):
            writer.write(bytes(1 << 16))
            await writer.drain()
            sent += 1 << 16

    async with upstream(much) as up:
        client = to(up.url)
        answer = await client.send("POST", b"/x", SIZED, b"ab")
        await until(lambda: sent > 0)
        for _ in range(100):
            await asyncio.sleep(0)
        assert sent < size, "nobody has taken anything yet"
        taken = 0
        async for part in answer.parts():
            taken += len(part)
        answer.close()
        assert taken == size


@pytest.mark.parametrize("header", [(b"x", b"a\r\nx-forged: 1"), (b"x\n", b"a"), (b"x", b"a\0b")])
async def test_a_header_that_would_be_two_is_not_sent(to, header):
    async with upstream() as up:
        with pytest.raises(UpstreamError, match="control character"):
            await reported(to(up.url), headers=[*SIZED, header])
        with pytest.raises(UpstreamError, match="control character"):
            await to(up.url).send("POST", b"/x HTTP/1.1\r\nx-forged: 1", SIZED, b"ab")
        assert up.requested == []


async def test_more_than_there_is_room_for_are_told_so(to):
    client = to("http://127.0.0.1:9", timeout_s=0.01)
    for _ in range(module._CONNECTIONS):
        await client._room.acquire()
    with pytest.raises(UpstreamError) as refused:
        await reported(client)
    assert (refused.value.status, refused.value.reason) == (503, "busy")


async def test_what_is_given_up_leaves_its_room(to):
    async def never(writer):
        await asyncio.Event().wait()

    async with upstream(never) as up:
        client = to(up.url)
        asking = asyncio.create_task(reported(client))
        await until(lambda: up.requested)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert client._room._value == module._CONNECTIONS


async def test_connections_that_a_restarted_server_has_closed_cost_no_request(to):
    async with upstream() as up:
        client = to(up.url)
        await asyncio.gather(*(reported(client) for _ in range(4)))
        up.close_after_answer = True
        for _ in range(6):
            assert await reported(client, repeatable=True) == (200, b"")
        assert len(up.requested) >= 10


def behind_its_back(client):
    """Wait, without letting the event loop look, until the idle connection has something to tell."""
    (idle,) = client._idle
    assert select.select([idle._transport.get_extra_info("socket")], [], [], 30)[0]


async def test_a_connection_closed_in_the_very_moment_costs_no_request_even_if_it_may_not_be_repeated(to):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = []

        def serve():
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    served.append(connection.recv(1 << 16))
                    connection.sendall(OK)
                    if len(served) == 1:
                        go.wait()

        go = threading.Event()
        serving = threading.Thread(target=serve)
        serving.start()
        client = to(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert await reported(client) == (200, b"")
        go.set()
        behind_its_back(client)
        assert await reported(client) == (200, b"")
        assert len(served) == 2
        await asyncio.to_thread(serving.join)


async def test_an_answer_to_nothing_is_not_taken_for_that_to_the_next_request(to):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            for stated in (b"first", b"second"):
                connection, _ = listener.accept()
                held.append(connection)
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(stated), stated))
                if stated == b"first":
                    go.wait()
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")

        held, go = [], threading.Event()
        serving = threading.Thread(target=serve)
        serving.start()
        client = to(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert await reported(client) == (200, b"first")
        go.set()
        behind_its_back(client)
        assert await reported(client) == (200, b"second")
        await asyncio.to_thread(serving.join)
        for each in held:
            each.close()


async def test_what_is_no_answer_is_not_asked_for_again(to):
    async with upstream() as up:
        client = to(up.url)
        assert await reported(client) == (200, b"")
        up.answer = b"what?\r\n\r\n"
        with pytest.raises(UpstreamError) as refused:
            await reported(client, repeatable=True)
        assert (refused.value.reason, len(up.requested)) == ("protocol", 2)


async def test_what_concerns_the_applications_connection_is_not_sent_on(to):
    headers = [(b"Connection", b"close, X-Hop"), (b"X-Hop", b"1"), (b"TE", b"trailers"), (b"Upgrade", b"h2c"),
               (b"Expect", b"100-continue"), (b"Transfer-Encoding", b"chunked"), (b"Keep-Alive", b"5"),
               (b"Proxy-Authorization", b"x"), (b"Host", b"theirs"), (b"Cookie", b"a"), (b"Cookie", b"b")]  # fmt: skip
    async with upstream() as up:
        client = to(up.url)
        host = ("Host", up.url.removeprefix("http://"))
        cookies = [("Cookie", "a"), ("Cookie", "b")]
        await reported(client, headers=headers)
        assert up.requested[-1].headers == [host, *cookies, ("Content-Length", "2")]
        await reported(client, headers=headers, body=in_parts(b"a", b"b"))
        assert up.requested[-1].headers == [host, *cookies, ("Transfer-Encoding", "chunked")]
        await reported(client, headers=[(b"Connection", b"content-length"), (b"Content-Length", b"99")])
        assert up.requested[-1].headers == [host, ("Content-Length", "2")], (
            "a length that is not its own is not believed"
        )


async def test_a_host_that_is_configured_is_the_only_one(to):
    async with upstream() as up:
        client = Upstream(up.url, timeout_s=30, replaced={"Host": "langfuse.example"})
        assert await reported(client) == (200, b"")
        client.close()
        assert [value for name, value in up.requested[0].headers if name.lower() == "host"] == ["langfuse.example"]


async def test_who_has_waited_longest_is_next_and_all_come_through(to):
    async with upstream() as up:
        client = to(up.url)
        client._room = asyncio.Semaphore(1)
        await asyncio.gather(*(reported(client, body=b"%02d" % n) for n in range(30)))
        assert up.connections == 1
        assert [int(requested.body) for requested in up.requested] == list(range(30))


@pytest.mark.parametrize("stated", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"])
@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 50])
async def test_whenever_it_is_given_up_nothing_stays_open(to, stated, turns):
    async def hang(writer):
        writer.write(stated)
        await writer.drain()
        await asyncio.Event().wait()

    async with upstream(hang) as up:
        client = to(up.url)
        asking = asyncio.create_task(reported(client))
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns == 50:
            await until(lambda: up.requested)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (client._room._value, len(client._idle)) == (module._CONNECTIONS, 0)
        up.answer = OK
        assert await reported(client) == (200, b"")


async def test_what_ends_after_the_shutdown_is_not_kept(to):
    async with upstream() as up:
        client = to(up.url)
        answer = await client.send("POST", b"/x", SIZED, b"ab")
        client.close()
        assert [part async for part in answer.parts()] == []
        answer.close()
        assert len(client._idle) == 0
        assert answer.exchange._transport.is_closing()
