"""Exchange: what is HTTP/1.1 is understood however it is cut, and what is none ends in an error that says so."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.integrations.otlp.proxy import connection as module
from sidejudge.integrations.otlp.proxy.connection import UpstreamConnection, UpstreamError
from sidejudge.integrations.otlp.proxy.upstream import passed


class Wire(asyncio.Transport):
    """A connection on which nothing moves but what a test says."""

    def __init__(self, exchange):
        super().__init__()
        self.exchange, self.written, self.reading, self.aborted = exchange, b"", True, False
        exchange.connection_made(self)

    def get_extra_info(self, name, default=None):
        return self

    def fileno(self):
        return 0

    def write(self, data):
        self.written += data

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return self.aborted

    def abort(self):
        if not self.aborted:
            self.aborted = True
            self.exchange.connection_lost(None)

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


async def heard(parts, *, bodiless=False, closed=True):
    """Status, headers and body of what upstream says in these parts; whether another request may follow."""
    exchange = UpstreamConnection(timeout_s=30)
    wire = Wire(exchange)
    asking = asyncio.create_task(exchange.send(b"", b"", bodiless=bodiless))
    await asyncio.sleep(0)
    for part in parts:
        if not wire.aborted:
            exchange.data_received(part)
    reusable = exchange.reusable
    if closed and not wire.aborted:
        exchange.connection_lost(None)
    await asking
    body = b"".join([part async for part in exchange.parts()])
    return exchange.status, exchange.headers, body, reusable


def run(coroutine):
    with asyncio.Runner() as runner:
        return runner.run(coroutine)


GOOD = {
    "sized": b"HTTP/1.1 200 OK\r\nA: b\r\nEmpty:\r\nSet-Cookie: 1\r\nSet-Cookie: 2\r\nContent-Length: 4\r\n\r\nbody",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"2;x=y\r\nbo\r\n2\r\ndy\r\n0\r\nT: a\r\nU: b\r\n\r\n",
    "interim": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\n"
    b"HTTP/1.1 202 OK\r\nContent-Length: 1\r\n\r\nx",
    "until closed": b"HTTP/1.1 404 Not Found\r\nA: b\r\n\r\nall\r\nthat\r\ncomes",
    "old": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "old and kept": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    "nothing": b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\nETag: x\r\n\r\n",
    "upgrade offered": b"HTTP/1.1 200 OK\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nok",
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
    "odd values": b"HTTP/1.1 200 OK\r\nA: \t b  c \t\r\nB: \xff\r\nContent-Length: 0 \r\n\r\n",
}


@pytest.mark.parametrize(("stated", "status", "body", "reusable"), [
    ("sized", 200, b"body", True), ("chunked", 200, b"body", True), ("interim", 202, b"x", True),
    ("until closed", 404, b"all\r\nthat\r\ncomes", False), ("old", 200, b"ok", False),
    ("old and kept", 200, b"ok", True), ("nothing", 204, b"", True), ("not modified", 304, b"", True),
    ("upgrade offered", 200, b"ok", True), ("no reason", 200, b"", True), ("odd values", 200, b"", True),
])  # fmt: skip
def test_an_answer_is_read_to_its_end_and_no_further(stated, status, body, reusable):
    came, _, whole, again = run(heard([GOOD[stated]]))
    assert (came, whole, again) == (status, body, reusable)


def test_headers_keep_their_order_their_spelling_and_their_repetitions():
    assert run(heard([GOOD["sized"]]))[1] == [
        (b"A", b"b"), (b"Empty", b""), (b"Set-Cookie", b"1"), (b"Set-Cookie", b"2"), (b"Content-Length", b"4"),
    ]  # fmt: skip
    assert run(heard([GOOD["odd values"]]))[1][:2] == [(b"A", b"b  c"), (b"B", b"\xff")]


def test_what_concerns_the_connection_and_the_length_of_no_body_go_no_further():
    stated = [(b"Connection", b"X-Hop , close"), (b"x-hop", b"1"), (b"Keep-Alive", b"5"), (b"Set-Cookie", b"1"),
            (b"Set-Cookie", b"2"), (b"Content-Length", b"9")]  # fmt: skip
    assert passed(stated, 200) == stated[3:]
    assert passed(stated, 304) == passed(stated, 204) == stated[3:5]


@given(stated=st.sampled_from(sorted(GOOD)), data=st.data())
def test_how_an_answer_is_cut_does_not_matter(stated, data):
    whole = GOOD[stated]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1))))
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert run(heard(parts)) == run(heard([whole]))


_BITS = sorted({
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 101 X\r\n", b"HTTP/1.1 100 X\r\n", b"HTTP/1.1 999 X\r\n", b"HTTP/1.0 304 X\r\n",
    b"Content-Length: 3\r\n", b"Content-Length: 99999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n", b"Connection: upgrade\r\nUpgrade: x\r\n", b"\r\n", b"\n", b" ", b"3\r\nabc\r\n",
    b"0\r\n\r\n", b"ffffffffffffffffff\r\n", b"A: b\r\n", b"\x00",
})  # fmt: skip


@given(parts=st.lists(st.sampled_from(_BITS) | st.binary(max_size=20), max_size=20), bodiless=st.booleans())
def test_nothing_that_is_said_does_worse_than_an_error_or_an_answer_that_can_be_passed_on(parts, bodiless):
    try:
        status, headers, _, _ = run(heard(parts, bodiless=bodiless))
    except UpstreamError as error:
        status, headers = error.status, []
        reported = error.reason
    else:
        reported = "an answer"
    assert 200 <= status < 600
    assert reported in ("reset", "protocol", "an answer")
    for name, value in headers:
        assert name, "a header has a name"
        assert not set(b"\r\n\0") & set(name + value)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(("stated", "cause"), [
    (b"220 mail ready\r\n", "Expected HTTP"),
    (OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", "can't be present with"),
    (OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", "can't be present with"),
    (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "Duplicate"),
    (OK + b"Content-Length: 2, 3\r\n\r\nabc", "Content-Length"),
    (OK + b"Content-Length: -2\r\n\r\nabc", "Content-Length"),
    (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "transfer coding"),
    (OK + b"Transfer-Encoding: chunked, identity\r\n\r\nab", "transfer coding"),
    (OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "transfer coding"),
    (OK + b"A: b\r\n c: d\r\n\r\n", "whitespace after header value"),
    (b"HTTP/1.1 200 OK\nA: b\n\n", "expected CR"),
    (OK + b"A : b\r\n\r\n", "header token"),
    (OK + b"A: b\x01\r\n\r\n", "header value"),
    (b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "a status of 101"),
    (b"HTTP/1.1 999 Denied\r\n\r\n", "a status of 999"),
    (b"HTTP/1.1 012 Low\r\n\r\n", "a status of 12"),
    (b"HTTP/1.1 104 Odd\r\nContent-Length: 3\r\n\r\nabc" + OK + b"\r\n", "a body with status 104"),
])  # fmt: skip
def test_what_could_be_read_in_two_ways_is_not_passed_on_in_one(stated, cause):
    for parts in ([stated], [stated[n : n + 1] for n in range(len(stated))]):
        with pytest.raises(UpstreamError, match=cause) as reported:
            run(heard(parts))
        assert (reported.value.status, reported.value.reason) == (502, "protocol")


@pytest.mark.parametrize("stated", [
    b"", b"HTTP/1.1 200", OK, OK + b"Content-Length: 3\r\n\r\nab",
    OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
])  # fmt: skip
def test_an_answer_that_breaks_off_is_none(stated):
    with pytest.raises(UpstreamError, match="hung up") as reported:
        run(heard([stated]))
    assert reported.value.reason == "reset"


@pytest.mark.parametrize("stated", [
    OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: ",
    OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n2;x=",
    OK + b"A: ",
])  # fmt: skip
def test_what_belongs_to_no_body_has_a_bound_wherever_it_stands(stated):
    with pytest.raises(UpstreamError, match="does not end"):
        run(heard([stated, *[b"a" * 1000] * (module._HEAD // 1000 + 1)], closed=False))


async def test_what_trickles_in_is_not_waited_for_for_ever():
    exchange = UpstreamConnection(timeout_s=0.2)
    Wire(exchange)

    async def trickle():
        exchange.data_received(b"HTTP/1.1 200 OK\r\nA: ")
        while True:
            await asyncio.sleep(0.01)
            exchange.data_received(b"a")

    asking = asyncio.create_task(exchange.send(b"", b""))
    await asyncio.sleep(0)
    trickling = asyncio.create_task(trickle())
    with pytest.raises(UpstreamError) as reported:
        await asking
    assert (reported.value.status, reported.value.reason, trickling.done()) == (504, "timeout", False)
    trickling.cancel()


async def test_a_connection_that_was_lost_before_it_was_used_is_told_at_once():
    exchange = UpstreamConnection(timeout_s=30)
    Wire(exchange).abort()
    with pytest.raises(UpstreamError) as reported:
        await exchange.send(b"", b"")
    assert (reported.value.reason, exchange.stale) == ("reset", False)


async def test_a_second_answer_is_heard_by_nobody():
    exchange = UpstreamConnection(timeout_s=30)
    wire = Wire(exchange)
    asking = asyncio.create_task(exchange.send(b"", b""))
    await asyncio.sleep(0)
    exchange.data_received(GOOD["sized"])
    exchange.data_received(GOOD["old and kept"])
    await asking
    assert [part async for part in exchange.parts()] == [b"body"]
    assert (exchange.reusable, wire.aborted) == (False, True)


async def test_what_is_not_taken_yet_is_bounded_and_comes_in_one():
    exchange = UpstreamConnection(timeout_s=30)
    wire = Wire(exchange)
    asking = asyncio.create_task(exchange.send(b"", b""))
    await asyncio.sleep(0)
    exchange.data_received(OK + b"Content-Length: %d\r\n\r\n" % (module._AHEAD * 2))
    await asking
    for _ in range(4):
        assert wire.reading
        exchange.data_received(bytes(module._AHEAD // 4))
    assert not wire.reading
    parts = exchange.parts()
    assert (len(await anext(parts)), wire.reading) == (module._AHEAD, True)
    exchange.data_received(bytes(module._AHEAD))
    assert (len(await anext(parts)), exchange.reusable) == (module._AHEAD, True)
