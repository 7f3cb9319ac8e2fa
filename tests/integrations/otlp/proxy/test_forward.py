"""A response that nobody waits for any more gives its place back: there are a hundred."""

from __future__ import annotations

import asyncio

import pytest

from sidejudge.integrations.otlp.proxy.forward import Forward
from sidejudge.integrations.otlp.server.receiver import OtlpReceiver
from sidejudge.integrations.otlp.server.traffic import ActiveRequests
from sidejudge.integrations.otlp.wire.receipt import Receipt
from tests.waiting import until

PROTOBUF = [(b"content-type", b"application/x-protobuf")]
LARGE = bytes(1 << 20)


class Response:
    """What upstream answers; it must be closed once."""

    def __init__(self, status):
        self.status, self.headers, self.retry_after_s, self.whole = status, [], None, True
        self.is_for_now = status >= 500
        self.given = self.closed = 0

    async def parts(self):
        yield b""

    def close(self):
        self.closed += 1


class FakeUpstream:
    name = "http://upstream"

    def __init__(self, status):
        self.came, self.response = asyncio.Event(), Response(status)

    async def send(self, *_, **__):
        await self.came.wait()
        self.response.given += 1
        return self.response


class Buffer:
    """Keeps everything, and follows what is under way."""

    def __init__(self):
        self.followed = []

    def is_away(self, _):
        return False

    def took(self, _): ...

    async def keep(self, _request, _body, *, under_way=None, **_):
        if under_way is not None:
            self.followed.append(under_way)
        return True


async def taken(*_):
    return Receipt()


def forwarding(status=200):
    return Forward(FakeUpstream(status), OtlpReceiver(taken), active=ActiveRequests(), buffer=Buffer())


def begun(forward, *messages, send=None):
    """A request under way; after these messages the application says nothing more, or leaves."""
    waiting = list(messages)

    async def receive():
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0)

    async def unheard(_): ...

    scope = {"type": "http", "method": "POST", "path": "/v1/traces", "headers": PROTOBUF}
    return asyncio.create_task(forward.relay(scope, dict(PROTOBUF), receive, send or unheard))


def part(body, *, more):
    return {"type": "http.request", "body": body, "more_body": more}


async def test_an_application_that_leaves_before_what_upstream_refused_is_whole(caplog):
    forward = forwarding(503)
    forward.upstream.came.set()
    await begun(forward, part(LARGE, more=True), {"type": "http.disconnect"})
    assert forward.upstream.response.closed == 1


@pytest.mark.parametrize("turns", range(5))
async def test_an_application_that_leaves_at_the_moment_of_the_answer(turns):
    forward = forwarding()
    relaying = begun(forward, part(b"x", more=False))
    await asyncio.sleep(0.01)
    forward.upstream.came.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    relaying.cancel()
    await asyncio.gather(relaying, return_exceptions=True)
    await asyncio.sleep(0.01)
    assert forward.upstream.response.closed == forward.upstream.response.given == 1


async def test_what_the_buffer_follows_goes_on_though_the_application_leaves_before_it_is_answered(monkeypatch):
    monkeypatch.setattr("sidejudge.integrations.otlp.proxy.forward._PATIENCE_S", 0.01)

    async def never(_):
        await asyncio.Event().wait()

    forward = forwarding()
    relaying = begun(forward, part(b"x", more=False), send=never)
    await until(lambda: forward._buffer.followed)
    await asyncio.sleep(0.01)
    relaying.cancel()
    await asyncio.gather(relaying, return_exceptions=True)
    forward.upstream.came.set()
    response = await forward._buffer.followed[0]
    assert response.closed == 0, "whoever follows it reads it, and closes it"
