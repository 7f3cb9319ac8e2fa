"""A sidecar forwards whatever keeps judging from starting; a monitor that forwards nothing ends with the mistake."""

from __future__ import annotations

import asyncio
import socket

import pytest

from tests.fakes.upstream import upstream
from tests.otlp_requests import HIGH, S, request, span, trace
from tests.running import Running

BODY = request([S(trace_id=trace(1, HIGH), span_id=span(1))])


def damaged_store(running: Running) -> dict:
    (running.folder / "state.sqlite").write_bytes(b"no database " * 1000)
    return {}


def store_in_a_file(running: Running) -> dict:
    (running.folder / "file").write_text("no folder")
    return {"store": {"path": str(running.folder / "file" / "s.sqlite")}}


def sink_that_cannot_be(running: Running) -> dict:
    return {"sinks": {"jsonl": {"path": str(running.folder / "no" / "such" / "folder" / "v.jsonl")}}}


def a_typo(running: Running) -> dict:
    return {"samplng": {"rate": 0.5}}


def a_mistake_beside_the_address(running: Running) -> dict:
    otlp = running.otlp.removeprefix("http://")
    return {"sources": {"otlp": {"http": otlp, "max_request_bytes": "many"}}}


def a_missing_variable(running: Running) -> dict:
    return {"evaluators": {"judge": {"model": "openai/gpt-x", "api_key": "${NO_SUCH_KEY}"}}}


MISTAKES = (a_typo, a_mistake_beside_the_address, a_missing_variable)


@pytest.mark.parametrize("spoil", [damaged_store, store_in_a_file, sink_that_cannot_be, *MISTAKES])
async def test_requests_go_on_though_judging_cannot_start(tmp_path, spoil):
    async with upstream() as up:
        running = Running(tmp_path, {"forward": {"url": up.url}})
        running.configure(**spoil(running))
        try:
            await asyncio.to_thread(running.start)
            for probe in ("/livez", "/readyz", "/startupz"):
                assert running.answers(probe)
            answer = await asyncio.to_thread(running.post, BODY)
            assert (answer.status_code, [requested.body for requested in up.requested]) == (200, [BODY])
            page = running.http.get(running.api + "/")
            assert page.status_code == 503
            assert "Judging could not start" in page.text
            metrics = running.http.get(running.api + "/metrics").text
            assert f"sidejudge_config_valid {0 if spoil in MISTAKES else 1}.0" in metrics
            (line,) = [line for line in running.logged() if line["event"].startswith("judging could not start")]
            assert line["cause"].splitlines()[0] in page.text.replace("&#x27;", "'").replace("&quot;", '"')
            assert running.stop() == 0
        finally:
            running.close()


async def test_an_api_address_that_is_taken_costs_the_api_and_not_the_telemetry(tmp_path):
    async with upstream() as up:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            running = Running(tmp_path, {"forward": {"url": up.url}})
            running.configure(api={"listen": f"127.0.0.1:{taken.getsockname()[1]}"})
            running.api = running.otlp
            try:
                await asyncio.to_thread(running.start)
                assert (await asyncio.to_thread(running.post, BODY)).status_code == 200
                assert len(up.requested) == 1
            finally:
                running.close()


@pytest.mark.parametrize("spoil", [damaged_store, a_typo])
def test_a_monitor_that_forwards_nothing_ends_with_the_mistake(tmp_path, spoil):
    running = Running(tmp_path)
    running.configure(**spoil(running))
    with pytest.raises(AssertionError, match=r"the monitor ended with 2:\nerror: .*\nremedy: "):
        running.start()
    running.close()


async def test_who_may_send_is_not_forgotten_with_the_mistake(tmp_path):
    async with upstream() as up:
        running = Running(tmp_path, {"forward": {"url": up.url}})
        otlp = {
            "http": running.otlp.removeprefix("http://"),
            "auth": {"bearer": ["secret-token-1"]},
            "max_request_bytes": -1,
        }
        running.configure(sources={"otlp": {**otlp, "max_request_bytes": -1}})
        try:
            await asyncio.to_thread(running.start)
            assert (await asyncio.to_thread(running.post, BODY)).status_code == 401
            assert up.requested == []
            admitted = await asyncio.to_thread(lambda: running.post(BODY, authorization="Bearer secret-token-1"))
            assert admitted.status_code == 200
        finally:
            running.close()
