"""Connecting: one address that leads nowhere does not keep the others from being tried, and no socket is left over."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from sidejudge.integrations.otlp.proxy import connection
from sidejudge.integrations.otlp.proxy.connection import Lookup, _interleaved, connected


class Resolving:
    """An event loop that finds these addresses for every name."""

    found: tuple[tuple[str, int], ...] = ()

    async def getaddrinfo(self, host, port, **more):
        if host != "any":  # uvloop asks for addresses too
            return await super().getaddrinfo(host, port, **more)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", each) for each in self.found]


class OnAsyncio(Resolving, asyncio.SelectorEventLoop):
    pass


class OnUvloop(Resolving, uvloop.Loop):
    pass


@pytest.fixture(params=[OnAsyncio, OnUvloop])
def run(request):
    def run(coroutine, *found):
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.get_loop().found = found
            return runner.run(coroutine)

    return run


@pytest.fixture
def listening():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        yield listener.getsockname()


@pytest.fixture
def refusing():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening
        yield taken.getsockname()


@pytest.fixture
def silent():
    """An address that takes no more connections and does not say so, as one behind a firewall."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        while True:
            waiting.append(socket.socket())
            waiting[-1].settimeout(0.2)
            try:
                waiting[-1].connect(listener.getsockname())
            except TimeoutError:
                break
        yield listener.getsockname()
        for each in waiting:
            each.close()


async def reached():
    with await connected(await Lookup("any", 0).addresses()) as made:
        return made.getpeername(), made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_the_first_that_answers_is_taken(run, listening, refusing, silent):
    for found in [(listening,), (refusing, listening), (silent, listening), (silent, refusing, silent, listening)]:
        assert run(reached(), *found) == (listening, True)


def test_where_none_answers_the_first_refusal_is_told(run, refusing):
    with pytest.raises(ConnectionRefusedError):
        run(reached(), refusing, refusing)


def test_who_stops_waiting_leaves_nothing_open(run, silent):
    async def briefly():
        async with asyncio.timeout(0.4):
            await reached()

    with pytest.raises(TimeoutError):
        run(briefly(), silent, silent)


def test_two_that_answer_at_once_are_not_both_kept(run, listening, silent):
    for _ in range(5):
        assert run(reached(), silent, *[listening] * 4)[0] == listening


def test_the_families_take_turns():
    six, four = socket.AF_INET6, socket.AF_INET
    reported = [(six, "a"), (six, "b"), (four, "c"), (six, "d")]
    found = [(family, socket.SOCK_STREAM, 6, "", to) for family, to in reported]
    assert [to for _, _, to in _interleaved(found)] == ["a", "c", "b", "d"]


async def test_a_name_that_nobody_knows_is_told():
    with pytest.raises(socket.gaierror):
        await Lookup("nowhere.invalid", 80).addresses()


async def test_a_name_whose_lookup_hangs_is_looked_up_once_for_all_and_anew_after_a_while(monkeypatch):
    loop, asked, over = asyncio.get_running_loop(), [], asyncio.Event()

    async def hangs(host, _port, **_more):
        asked.append(host)
        await over.wait()
        return [("found", len(asked))]

    monkeypatch.setattr(loop, "getaddrinfo", hangs)
    lookup = Lookup("any", 80)

    async def given_up():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lookup.addresses(), 0.01)

    await asyncio.gather(*(given_up() for _ in range(100)))
    await given_up()
    assert asked == ["any"]
    monkeypatch.setattr(connection, "_ANEW_S", 0.0)
    waiting = asyncio.create_task(lookup.addresses())
    await asyncio.sleep(0.01)
    over.set()
    assert await waiting == [("found", 2)]
    monkeypatch.undo()
    assert (await Lookup("127.0.0.1", 80).addresses())[0][4] == ("127.0.0.1", 80)


async def test_a_lookup_that_failed_is_tried_again_by_the_next(monkeypatch):
    answers = iter([socket.gaierror("no"), [1], [2]])

    async def answer(*_given, **_more):
        found = next(answers)
        if isinstance(found, OSError):
            raise found
        return found

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", answer)
    lookup = Lookup("any", 80)
    with pytest.raises(socket.gaierror):
        await lookup.addresses()
    assert [await lookup.addresses(), await lookup.addresses()] == [[1], [2]]
