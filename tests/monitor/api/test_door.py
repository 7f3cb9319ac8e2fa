"""The door answers probes and metrics itself; the API is loaded when it is first asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

import httpx
import pytest

from sidejudge.monitor.api.door import door
from tests.monitor.api.test_routes import View

PROGRAM = """
import asyncio, json, sys
import httpx
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.model import StoreSection
from sidejudge.monitor.runtime.app import Monitor

def loaded():
    heavy = ("fastapi", "starlette", "jinja2", "sidejudge.dashboards.pages.status_page")
    return [name for name in heavy if name in sys.modules]

async def main():
    free = {"sources": {"otlp": {"http": "127.0.0.1:0"}}, "api": {"listen": "127.0.0.1:0"}}
    monitor = Monitor(Config(store=StoreSection(path=sys.argv[1]), **free))
    addresses = await monitor.start()
    async with httpx.AsyncClient(base_url=addresses["api"], trust_env=False, timeout=60) as client:
        asked = {path: (await client.get(path)).status_code for path in ("/livez", "/readyz", "/startupz", "/metrics")}
        head = await client.head("/livez")
        other = await client.options("/livez")
        assert (other.status_code, other.headers["allow"], other.json()["remedy"]) == (
            405, "GET, HEAD", "this path answers GET, HEAD and nothing else",
        )  # fmt: skip
        before = loaded()
        pages = {path: (await client.get(path)).status_code for path in ("/", "/v1/status")}
    await monitor.stop()
    print(json.dumps([asked, [head.status_code, head.text], before, pages, loaded()]))

asyncio.run(main())
"""


def test_a_monitor_that_is_asked_for_probes_and_metrics_alone_loads_no_framework(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "s.sqlite")], capture_output=True, text=True, check=True
    )
    asked, head, before, pages, after = json.loads(run.stdout.splitlines()[-1])
    assert set(asked.values()) | {head[0]} == {200}
    assert head[1] == ""
    assert before == []
    assert set(pages.values()) == {200}
    assert len(after) == 4


@pytest.mark.parametrize("path", ["/livez", "/metrics"])
async def test_probes_and_metrics_are_answered_while_the_api_is_loaded(path):
    def slow():
        time.sleep(0.5)
        raise RuntimeError("not now")

    app = door(View(), slow)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://monitor") as client:
        page = asyncio.create_task(client.get("/v1/status"))
        await asyncio.sleep(0.05)
        assert (await client.get(path)).status_code == 200
        assert not page.done()
        assert (await page).status_code == 500


async def test_an_api_that_could_not_be_loaded_is_loaded_by_the_next_request():
    tries = []

    async def answers(scope, receive, send):
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def load():
        tries.append(1)
        if len(tries) == 1:
            raise MemoryError
        return answers

    transport = httpx.ASGITransport(door(View(), load), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://monitor") as client:
        codes = [(await client.get("/")).status_code for _ in range(3)]
    assert codes == [500, 204, 204]
    assert len(tries) == 2
