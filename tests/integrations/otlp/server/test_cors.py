"""CORS: nothing unless origins are named, and then only for these."""

from __future__ import annotations

from sidejudge.integrations.otlp.server.receiver import Cors, OtlpReceiver
from tests.integrations.otlp.server.test_receiver import Taken, ask

PAGE = "https://shop.example.org"


async def test_without_origins_a_page_is_told_nothing():
    receiver = OtlpReceiver(Taken())
    assert (await ask(receiver, method="OPTIONS", origin=PAGE))[0] == 405
    assert "access-control-allow-origin" not in (await ask(receiver, origin=PAGE))[1]


async def test_a_page_of_a_named_origin_may_send_and_read_the_answer():
    receiver = OtlpReceiver(Taken(), cors=Cors(["https://*.example.org"]))
    status, headers, _ = await ask(
        receiver, b"", method="OPTIONS", origin=PAGE, access_control_request_headers="content-type,x-team"
    )
    assert (status, headers["access-control-allow-origin"]) == (204, PAGE)
    assert headers["access-control-allow-headers"] == "content-type,x-team"
    assert headers["access-control-allow-methods"] == "POST"
    for kind in ("application/json", "text/plain"):
        answered = (await ask(receiver, b"{}", kind=kind, origin=PAGE))[1]
        assert (answered["access-control-allow-origin"], answered["vary"]) == (PAGE, "origin")


async def test_a_page_of_another_origin_is_told_nothing():
    receiver = OtlpReceiver(Taken(), cors=Cors(["https://*.example.org"]))
    for origin in ("https://example.com", "http://shop.example.org", "null", "https://example.org.evil.com"):
        for method in ("OPTIONS", "POST"):
            assert "access-control-allow-origin" not in (await ask(receiver, method=method, origin=origin))[1]
