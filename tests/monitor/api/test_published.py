"""The API of a real monitor, encrypted and behind credentials."""

from __future__ import annotations

import asyncio
import ssl

import httpx
import pytest

from sidejudge.monitor.cli.ask import TOKEN, ask
from sidejudge.monitor.cli.errors import CommandError
from sidejudge.monitor.config import load
from sidejudge.monitor.ingest.listeners import CertificateError
from sidejudge.monitor.runtime.app import Monitor
from tests.certificates import make


async def test_an_api_with_certificate_and_credentials_is_for_those_who_have_both(configured, tmp_path):
    made = make(tmp_path)
    api = {
        "listen": "127.0.0.1:0", "auth": {"bearer": ["t0ken"]},
        "tls": {"certificate": made.server, "key": made.server_key},
    }  # fmt: skip
    monitor = Monitor(configured(api=api))
    addresses = await monitor.start()
    try:
        assert addresses["api"].startswith("https://")
        trusted = ssl.create_default_context(cafile=made.ca)
        async with httpx.AsyncClient(verify=trusted) as client:
            assert (await client.get(addresses["api"] + "/livez")).status_code == 200
            assert (await client.get(addresses["api"] + "/v1/status")).status_code == 401
            known = {"authorization": "Bearer t0ken"}
            assert (await client.get(addresses["api"] + "/v1/status", headers=known)).status_code == 200
            # The OTLP address is not encrypted, so it does not answer for the API.
            assert (await client.get(addresses["otlp"] + "/v1/status", headers=known)).status_code == 404
    finally:
        await monitor.stop()


def test_a_certificate_that_cannot_be_used_is_named_before_anything_listens(configured, tmp_path):
    made = make(tmp_path)
    tls = {"certificate": "nowhere.pem", "key": made.server_key}
    with pytest.raises(CertificateError, match=r"api\.tls\.certificate: .*nowhere\.pem"):
        Monitor(configured(api={"listen": "127.0.0.1:0", "tls": tls}))


async def test_the_commands_send_the_token_of_the_environment(configured, monkeypatch):
    monitor = Monitor(configured(api={"listen": "127.0.0.1:0", "auth": {"bearer": ["t0ken"]}}))
    addresses = await monitor.start()
    try:
        monkeypatch.delenv(TOKEN, raising=False)
        with pytest.raises(CommandError, match="401"):
            await asyncio.to_thread(ask, addresses["api"], "/v1/status")
        monkeypatch.setenv(TOKEN, "t0ken")
        assert (await asyncio.to_thread(ask, addresses["api"], "/v1/status"))["services"] == []
    finally:
        await monitor.stop()


def test_what_the_environment_says_of_image_and_token_is_no_key_of_the_configuration(tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text("")
    assert load(path, {TOKEN: "t0ken", "SIDEJUDGE_REVISION": "abc"}) == load(path, {})
