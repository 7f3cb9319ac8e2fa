"""Contents are shown to who may read the store: through a link that is opened once, or by the file beside the store.

Between a caller and the monitor stands a reverse proxy on the monitor's machine, which speaks HTTP/1.1, asks for the
monitor's loopback address and adds no header, as ``proxy_pass http://127.0.0.1:8790;`` alone may do.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from click.testing import CliRunner

from sidejudge.monitor.api.contents_token import HEADER, ContentsToken, read_token
from sidejudge.monitor.cli import main
from sidejudge.monitor.cli.ask import ask
from sidejudge.monitor.cli.errors import CommandError
from tests.fakes import openai
from tests.monitor.api.still import SAID
from tests.monitor.cli.conftest import monitor_at  # noqa: F401  # a fixture
from tests.otlp_requests import HIGH, S, request, span, trace

TRACE = trace(1, HIGH).hex()
CONTENTS = ("/", "/verdicts", f"/traces/{TRACE}", "/v1/verdicts", f"/v1/traces/{TRACE}", f"/v1/traces/{TRACE}/spans",
            f"/v1/traces/{TRACE}/judge")  # fmt: skip
OPEN = {
    "scenarios": {"any": {"tools_should_include": ["lookup"]}},
    "routes": [{"rubrics": ["workflow"], "scenario": "any"}],
}
_HOP = ("host", "connection", "keep-alive", "transfer-encoding", "content-length")


@pytest.fixture
def proxied():
    """Starts a reverse proxy before an address, and returns the proxy's."""
    servers = []

    def start(upstream: str) -> str:
        class Proxy(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                there = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=30)
                there.request(
                    "GET", self.path, headers={k: v for k, v in self.headers.items() if k.lower() not in _HOP}
                )
                answer = there.getresponse()
                body = answer.read()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in _HOP:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                there.close()

            def log_message(self, *_: object) -> None:
                return

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Proxy))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
async def judged(started):
    async def begin(**sections):
        running = await started(**OPEN, assembly={"grace": "0s", "idle": "300ms", "late": "1h"}, **sections)
        spans = [
            S(trace_id=trace(1, HIGH), span_id=span(2), attributes={**SAID, "langfuse.observation.input": "zqcanary"})
        ]
        assert (await running.post(request(spans))).status_code == 200
        await running.settled(1)
        return running

    return begin


async def shown(client: httpx.AsyncClient, address: str, **headers: str) -> list[str]:
    """The paths whose answers hold what the user wrote."""
    answers = [await client.get(address + path, headers=headers) for path in CONTENTS]
    assert {each.status_code for each in answers} <= {200, 403}
    return [path for path, each in zip(CONTENTS, answers, strict=True) if "zqcanary" in each.text]


async def test_a_proxy_that_adds_nothing_shows_contents_to_nobody(judged, proxied):
    running = await judged()
    through = proxied(running.api)
    async with httpx.AsyncClient(timeout=30) as client:
        assert await shown(client, through) == []
        assert await shown(client, running.api) == [], "nor does the address alone"
        token_file = (await client.get(through + "/-/contents")).json()["token_file"]
        for given in ("", "x", token_file, "0" * 43):
            assert await shown(client, through, **{HEADER: given}) == []
            assert (await client.get(through + "/-/open", params={"token": given})).status_code == 403


async def test_the_link_that_serve_prints_begins_a_session(judged):
    running = await judged()
    async with httpx.AsyncClient(timeout=30) as browser:
        opened = await browser.get(running.page)
        assert (opened.status_code, opened.headers["location"]) == (303, "/"), "the token leaves the address"
        cookie = opened.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert running.page.rpartition("=")[2] not in opened.headers["set-cookie"]
        assert f"/traces/{TRACE}" in await shown(browser, running.api)
        assert await shown(browser, running.api, host="rebound.example:8790") == []
        assert await shown(browser, running.api, **{"x-forwarded-for": "10.0.0.1"}) == []


async def test_a_session_outlives_a_restart_and_ends_with_the_token(judged, tmp_path):
    running = await judged()
    file = tmp_path / "state.sqlite.token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert ContentsToken.beside(tmp_path / "state.sqlite").link(running.api) == running.page
    file.unlink()
    assert ContentsToken.beside(tmp_path / "state.sqlite").link(running.api) != running.page


@pytest.mark.parametrize("made", ["others", "link", "folder", "garbage", "pipe"])
def test_a_file_that_others_could_read_or_wrote_is_no_token(tmp_path: Path, made: str):
    file, elsewhere = tmp_path / "s.token", tmp_path / "x"
    elsewhere.write_text("a" * 43)
    elsewhere.chmod(0o600)
    {
        "others": lambda: (file.write_text("a" * 43), file.chmod(0o644)),
        "link": lambda: file.symlink_to(elsewhere),
        "folder": file.mkdir,
        "garbage": lambda: (file.write_bytes(b"\xff" * 43), file.chmod(0o600)),
        "pipe": lambda: os.mkfifo(file, 0o600),
    }[made]()
    token = ContentsToken.beside(tmp_path / "s")
    assert token.value != "a" * 43
    assert (token.file is None) is (made == "folder")
    assert made == "folder" or (read_token(file) == token.value and file.stat().st_mode & 0o777 == 0o600)
    assert elsewhere.read_text() == "a" * 43


async def test_commands_on_this_machine_read_the_file(judged, monkeypatch, tmp_path):
    running = await judged()
    monkeypatch.delenv("SIDEJUDGE_CONTENTS_TOKEN", raising=False)
    case = (await asyncio.to_thread(ask, running.api, f"/v1/traces/{TRACE}"))["case"]
    assert case["input"] == "zqcanary"
    found = await asyncio.to_thread(
        CliRunner().invoke,
        main,
        ["testcase", TRACE, "--url", running.api, "--expected", "x", "--into", str(tmp_path / "t.yaml")],
    )
    assert found.exit_code == 0, found.output


async def test_behind_a_port_forward_the_token_is_given_by_a_variable(judged, monkeypatch, tmp_path):
    running = await judged()
    (tmp_path / "state.sqlite.token").unlink()  # the store is on another machine
    assert (await asyncio.to_thread(ask, running.api, f"/v1/traces/{TRACE}")).get("case") is None
    ask.__globals__["_contents_token"].cache_clear()
    monkeypatch.setenv("SIDEJUDGE_CONTENTS_TOKEN", running.page.rpartition("=")[2])
    assert (await asyncio.to_thread(ask, running.api, f"/v1/traces/{TRACE}"))["case"]["input"] == "zqcanary"


def test_a_server_that_names_another_file_is_given_nothing(monitor_at, tmp_path, monkeypatch):  # noqa: F811  # the fixture
    monkeypatch.delenv("SIDEJUDGE_CONTENTS_TOKEN", raising=False)
    secret = tmp_path / "id.token"
    secret.write_text("-----BEGIN KEY-----")
    url = monitor_at({"/-/contents": {"token_file": str(secret)}, "/v1/verdicts": {}})
    assert ask.__globals__["_contents_token"](url) == {}
    assert ask(url, "/v1/verdicts") == {}


def test_a_command_sends_its_tokens_to_no_other_host(monkeypatch):
    monkeypatch.setenv("SIDEJUDGE_API_TOKEN", "api-token")
    monkeypatch.setenv("SIDEJUDGE_CONTENTS_TOKEN", "contents-token")
    with openai.Provider(openai.raw(b"{}")) as there, openai.Provider() as here:
        url = here.url.removesuffix("/v1")
        here.standing = lambda _: openai.Act(302, headers={"location": f"{there.url}/verdicts"})
        with pytest.raises(CommandError, match="answered 302") as refused:
            ask(url, "/v1/verdicts")
        assert "name the monitor's own address with --url" in refused.value.remedy
        assert not there.seen
        here.standing = openai.raw(b"{}")
        here.will(lambda _: openai.Act(307, headers={"location": "/behind/v1/verdicts"}))
        assert ask(url, "/v1/verdicts") == {}
        assert here.seen[-1].headers["authorization"] == "Bearer api-token"


async def test_without_the_need_of_a_token_there_is_none(judged, tmp_path):
    running = await judged(api={"listen": "127.0.0.1:0", "contents": "always"})
    assert running.page == ""
    assert not (tmp_path / "state.sqlite.token").exists()
    async with httpx.AsyncClient(timeout=30) as client:
        assert await shown(client, running.api) != []
        assert (await client.get(running.api + "/-/open?token=x")).headers["location"] == "/"
