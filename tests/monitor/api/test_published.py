"""The API of a real monitor, encrypted and behind credentials."""

from __future__ import annotations

import ssl

import httpx
import pytest

from monitor.ingest.tls import CertificateError
from monitor.runtime.app import Monitor
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
