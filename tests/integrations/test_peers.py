"""Where the names of other monitors lead, and what comes of a message."""

from __future__ import annotations

import pytest

from sidejudge.integrations.addresses import port_of
from sidejudge.integrations.peers import MOST_BYTES, PeerClient, parsed, plain, resolve
from tests.fakes.receiver import receiving


async def test_a_name_stands_for_its_addresses_over_http_and_for_itself_over_https():
    assert await resolve("http://localhost:4318") == {"http://127.0.0.1:4318": "127.0.0.1"}
    assert await resolve("https://localhost") == {"https://localhost": "127.0.0.1"}
    assert await resolve("http://[::1]:4318") == {"http://[::1]:4318": "::1"}
    for name in ("no-such-host.invalid", "a" * 64):
        with pytest.raises(OSError):  # noqa: PT011  # whatever the resolver calls it
            await resolve(f"http://{name}:4318")


def test_addresses_and_messages_are_read_as_they_are_written():
    assert [port_of(url) for url in ("http://a:1", "http://a", "https://a")] == [1, 80, 443]
    assert plain("::ffff:127.0.0.1") == "127.0.0.1"
    bodies = (b'{"name": "a"}', b"[]", b"no", b"", b"[" * MOST_BYTES)
    assert [parsed(body) for body in bodies] == [{"name": "a"}, None, None, None, None]


async def test_what_is_no_answer_of_a_monitor_is_none():
    client = PeerClient({"authorization": "Bearer x"})
    with receiving() as receiver:
        assert await client.post(receiver.url, {"name": "a"}) is None, "it answers something else"
        (sent,) = receiver.taken
        assert sent.json == {"name": "a"}
        assert sent.headers["authorization"] == "Bearer x"
    assert await client.post("http://127.0.0.1:9", {"name": "a"}) is None
    assert await client.post("http://[fe80::1%eth0]:x", {"name": "a"}) is None
    await client.close()
