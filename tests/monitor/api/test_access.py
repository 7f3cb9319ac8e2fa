"""Who is let in, and who counts as being on this machine."""

from __future__ import annotations

import base64

import httpx
import pytest
from fastapi import Request

from sidejudge.integrations.addresses import Credentials
from sidejudge.monitor.api.access import AccessRules, is_same_machine
from sidejudge.monitor.api.contents_token import ContentsToken
from tests.monitor.api.still import api
from tests.monitor.api.test_routes import View


def requested(caller: str | None = "127.0.0.1", http_version: str = "1.1", **headers: str) -> Request:
    named = {"host": "localhost:8790", **{name.replace("_", "-"): value for name, value in headers.items()}}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    client = None if caller is None else (caller, 1)
    return Request(
        {"type": "http", "method": "GET", "path": "/", "headers": raw, "client": client, "http_version": http_version}
    )


@pytest.mark.parametrize(
    ("caller", "local"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("0:0:0:0:0:0:0:1", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:7f00:1", True),
        ("127.0.0.2", False),
        ("127.0.0.6", False),
        ("127.8.9.10", False),
        ("::ffff:127.0.0.6", False),
        ("::ffff:10.0.0.1", False),
        ("10.0.0.1", False),
        ("0.0.0.0", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("8.8.8.8", False),
        ("localhost", False),
        ("127.1", False),
        ("127.0.0.1 ", False),
        ("127.0.0.1:80", False),
        ("testclient", False),
        ("", False),
        (None, False),
    ],
)
def test_only_the_loopback_address_itself_is_this_machine(caller, local):
    assert is_same_machine(requested(caller)) is local


@pytest.mark.parametrize(
    ("headers", "local"),
    [
        ({}, True),
        ({"host": "127.0.0.1:8790"}, True),
        ({"host": "[::1]:8790"}, True),
        ({"host": "LOCALHOST"}, True),
        ({"origin": "http://localhost:8790"}, True),
        ({"sec_fetch_site": "same-origin"}, True),
        ({"sec_fetch_site": "none"}, True),
        ({"host": ""}, False),
        ({"host": "rebound.example:8790"}, False),
        ({"host": "localhost.rebound.example"}, False),
        ({"host": "127.0.0.1.rebound.example"}, False),
        ({"host": "127.0.0.6:8790"}, False),
        ({"host": "10.0.0.5"}, False),
        ({"origin": "http://rebound.example"}, False),
        ({"origin": "null"}, False),
        ({"sec_fetch_site": "cross-site"}, False),
        ({"x_forwarded_for": "127.0.0.1"}, False),
        ({"x_forwarded_for": ""}, False),
        ({"x_forwarded_host": "localhost"}, False),
        ({"forwarded": "for=127.0.0.1"}, False),
        ({"via": "1.1 proxy"}, False),
        ({"x_real_ip": "127.0.0.1"}, False),
        ({"x_envoy_external_address": "8.8.8.8"}, False),
        ({"x_amzn_trace_id": "Root=1"}, False),
        ({"fly_client_ip": "8.8.8.8"}, False),
        ({"host": "127.0.0.1:8790", "connection": "close", "http_version": "1.0"}, False),  # nginx: proxy_pass alone
    ],
)
def test_a_request_for_another_name_through_a_proxy_or_for_another_page_is_from_elsewhere(headers, local):
    assert is_same_machine(requested(**headers)) is local


@pytest.mark.parametrize(("contents", "near", "far"), [("loopback", 1, 0), ("always", 1, 1), ("never", 0, 0)])
def test_contents_are_for_this_machine_for_everybody_or_for_nobody(contents, near, far):
    rules = AccessRules(contents=contents, token=ContentsToken("t" * 43))
    given = {"x_sidejudge_contents_token": "t" * 43}
    shown = [rules.shows_contents(requested(caller, **given)) for caller in ("127.0.0.1", "10.0.0.1")]
    assert shown == [bool(near), bool(far)]


@pytest.mark.parametrize("given", ["", "t" * 42, "t" * 44, "T" * 43, "t" * 42 + "\xe9"])
def test_without_the_token_nobody_on_this_machine_is_shown_contents(given):
    rules = AccessRules(token=ContentsToken("t" * 43))
    name, _ = ContentsToken("t" * 43).cookie
    assert not rules.shows_contents(requested(x_sidejudge_contents_token=given))
    assert not rules.shows_contents(requested(cookie=f"{name}={given}"))
    assert not rules.shows_contents(requested(cookie=f"{name}={'t' * 43}")), "the token is no session"
    assert not AccessRules().shows_contents(requested(x_sidejudge_contents_token=given)), "there is no token"


BASIC = "Basic " + base64.b64encode(b"anna:pa:ss").decode()


@pytest.fixture
async def guarded():
    app = api(View(), rules=AccessRules(credentials=Credentials(tokens=["t0ken"], users={"anna": "pa:ss"})))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/verdicts", "/v1/status", "/metrics", "/openapi.json", "/docs", "/nothing"])
@pytest.mark.parametrize(
    "given", ["", "Bearer no", "Bearer", "Basic t0ken", "Basic " + "A" * 9, "t0ken", "bearer T0KEN"]
)
async def test_nothing_is_answered_without_known_credentials(guarded, path, given):
    response = await guarded.get(path, headers={"authorization": given} if given else {})
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Basic ")
    assert "content-security-policy" in response.headers
    assert "api.auth" in response.json()["remedy"]


@pytest.mark.parametrize("given", ["Bearer t0ken", "bearer t0ken", BASIC])
async def test_known_credentials_are_let_in(guarded, given):
    for path in ("/", "/v1/status", "/metrics"):
        assert (await guarded.get(path, headers={"authorization": given})).status_code == 200


async def test_probes_need_no_credentials(guarded):
    for path in ("/livez", "/readyz", "/startupz"):
        assert (await guarded.get(path)).status_code in (200, 503)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_nothing_can_be_changed_through_the_api(guarded, method):
    for path in ("/", "/v1/status", "/v1/verdicts", "/traces", "/metrics"):
        response = await guarded.request(method, path, headers={"authorization": "Bearer t0ken"})
        assert response.status_code == 405
