"""Readers take turns, hold a bounded memory, and are cut off when they do not read; probes never wait for them."""

from __future__ import annotations

import asyncio
import socket
from contextlib import asynccontextmanager

import httpx
import pytest

from sidejudge.integrations.otlp.server.admission import ConnectionLimits
from sidejudge.monitor.api.readers import ReaderLimits, Readers
from sidejudge.monitor.api.shared_result import SharedMetrics
from sidejudge.monitor.ingest.server import HttpServer, address, bind
from tests.waiting import until

LARGE = 3 << 20


class Application:
    """Answers ``/large`` with 3 MiB, ``/slow`` when it is let, and anything else at once."""

    def __init__(self):
        self.let, self.working, self.most = asyncio.Event(), 0, 0

    async def __call__(self, scope, receive, send):
        self.working += 1
        self.most = max(self.most, self.working)
        try:
            if scope["path"] == "/slow":
                await self.let.wait()
        finally:
            self.working -= 1
        body = b"x" * LARGE if scope["path"] == "/large" else b"ok"
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served(**limits):
    app, listener = Application(), bind("127.0.0.1:0", "api.listen")
    readers = Readers(app, ReaderLimits(**limits))
    server = HttpServer(readers, listener, limits=ConnectionLimits(body_s=60.0))
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=address(listener), timeout=20, trust_env=False) as http:
            yield app, readers, server, http
    finally:
        app.let.set()
        await server.stop()


def asks_and_does_not_read(http: httpx.AsyncClient, path: str = "/large") -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((http.base_url.host, http.base_url.port))
    client.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    client.setblocking(False)
    return client


async def test_a_few_are_worked_on_at_once_and_the_others_wait():
    async with served(working=2) as (app, _, _, http):
        asked = [asyncio.create_task(http.get("/slow")) for _ in range(10)]
        await until(lambda: app.working == 2)
        app.let.set()
        assert {answer.status_code for answer in await asyncio.gather(*asked)} == {200}
        assert app.most == 2


async def test_beyond_those_that_wait_the_answer_is_that_it_is_busy():
    async with served(working=1, waiting=2) as (app, readers, _, http):
        asked = [asyncio.create_task(http.get("/slow")) for _ in range(3)]
        await until(lambda: app.working == 1)
        await until(lambda: readers._waiting == 2)
        answer = await http.get("/other")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert "too many readers" in answer.json()["error"]
        app.let.set()
        assert [each.status_code for each in await asyncio.gather(*asked)] == [200] * 3


@pytest.mark.parametrize("probe", ["/livez", "/readyz", "/startupz"])
async def test_probes_are_answered_while_every_turn_is_taken(probe):
    async with served(working=1, waiting=1, patience_s=5.0) as (app, _, _, http):
        asked = [asyncio.create_task(http.get("/slow")) for _ in range(5)]
        await until(lambda: app.working == 1)
        assert (await http.get(probe)).status_code == 200
        app.let.set()
        await asyncio.gather(*asked)


async def test_what_nobody_reads_takes_a_bounded_memory_and_is_given_up(caplog):
    async with served(working=2, waiting=100, unread_bytes=2 * LARGE + 1, piece_s=0.5) as (_, readers, server, http):
        silent = [asks_and_does_not_read(http) for _ in range(30)]
        await until(lambda: readers._unread > 0)
        most = 0
        for _ in range(20):
            most = max(most, readers._unread)
            await asyncio.sleep(0.05)
        assert most <= 2 * LARGE + 1
        await until(lambda: readers._unread == 0)
        assert len(server.connections) <= 31, "those that did not read are closed, the busy ones may ask again"
        answer = await http.get("/large")
        assert (answer.status_code, len(answer.content)) == (200, LARGE), "who reads gets all of it"
        for client in silent:
            client.close()
    assert not caplog.records, "a caller who does not read is no error of ours"


async def test_a_question_that_takes_too_long_ends_as_busy():
    async with served(working=1, longest_s=0.2) as (_, _, _, http):
        assert (await http.get("/slow")).status_code == 503
        assert (await http.get("/other")).status_code == 200, "its turn is free again"


class Metrics:
    def __init__(self):
        self.now_s, self.written = 100.0, 0

    async def write(self, openmetrics: bool):  # noqa: FBT001  # as it is called
        self.written += 1
        return f"{self.written} {openmetrics}".encode(), "text/plain"


async def test_metrics_are_written_once_a_second_for_all_after_a_burst():
    made = Metrics()
    shared = SharedMetrics(made.write, clock_s=lambda: made.now_s)
    for _ in range(1_000):
        await shared.get(openmetrics=True, small=False)
    assert made.written <= 9
    before = made.written
    for _ in range(500):
        made.now_s += 0.01
        await asyncio.gather(*(shared.get(openmetrics=True, small=True) for _ in range(3)))
    assert made.written - before <= 5
    made.now_s += 60
    body, headers = await shared.get(openmetrics=True, small=False)
    assert body == f"{made.written} True".encode(), "a scraper alone gets those of its moment"
    assert "content-encoding" not in headers


async def test_each_format_has_metrics_of_its_own():
    made = Metrics()
    shared = SharedMetrics(made.write, clock_s=lambda: made.now_s)
    assert (await shared.get(openmetrics=True, small=False))[0].endswith(b"True")
    assert (await shared.get(openmetrics=False, small=False))[0].endswith(b"False")
    _, headers = await shared.get(openmetrics=False, small=True)
    assert headers["content-encoding"] == "gzip"


async def test_a_format_is_of_its_moment_however_often_the_other_is_asked_for():
    made = Metrics()
    shared = SharedMetrics(made.write, clock_s=lambda: made.now_s)
    await shared.get(openmetrics=False, small=False)
    for _ in range(60):
        made.now_s += 1
        await asyncio.gather(*(shared.get(openmetrics=True, small=False) for _ in range(20)))
    before = made.written
    assert (await shared.get(openmetrics=False, small=False))[0] == f"{before + 1} False".encode()


@pytest.mark.parametrize("working", [2, 1], ids=["while it is worked on", "while it waits for its turn"])
async def test_a_question_that_the_end_of_the_server_cuts_short_is_answered_503(working):
    async with served(working=working) as (app, readers, server, http):
        questions = [asyncio.create_task(http.get("/slow")) for _ in range(2)]
        await until(lambda: app.working == working and app.working + readers._waiting == 2)
        await server.stop()
        assert [(await each).status_code for each in questions] == [503, 503]
