"""What clients take from the environment: certificates, read once and anew where it names others, and proxies."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from sidejudge.integrations.addresses import trusted
from sidejudge.integrations.backoff import DestinationUnreachableError
from sidejudge.integrations.langfuse.client import Access, Langfuse
from sidejudge.integrations.langfuse.errors import LangfuseError
from sidejudge.integrations.post import Poster
from tests.certificates import make
from tests.fakes.langfuse.server import FakeLangfuse
from tests.fakes.receiver import receiving
from tests.forked import sidejudge


def test_clients_share_one_context_and_the_environment_gives_another(tmp_path, monkeypatch):
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    everybody = trusted()
    assert trusted() is everybody
    monkeypatch.setenv("SSL_CERT_FILE", make(tmp_path).ca)
    (only,) = trusted().get_ca_certs()
    assert only["subject"] == ((("commonName", "tests"),),)


def test_authorities_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    for named in (tmp_path / "none.pem", Path(make(tmp_path).ca_key), tmp_path):
        monkeypatch.setenv("SSL_CERT_FILE", str(named))
        with pytest.raises(OSError, match="SSL_CERT_FILE names no certificates that can be read") as refused:
            trusted()
        assert refused.value.filename == str(named)


async def test_authorities_of_the_environment_hold_for_a_receiver_on_this_machine(tmp_path, monkeypatch):
    made = make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.server, made.server_key)
    with receiving() as fake:
        fake.encrypt(context)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        with pytest.raises(DestinationUnreachableError, match="SSL_CERT_FILE"):
            await Poster(fake.url).post(b"{}")
        monkeypatch.setenv("SSL_CERT_FILE", made.ca)
        await Poster(fake.url).post(b"{}")
        assert len(fake.got) == 1


@pytest.fixture
def proxies(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch.setenv


@pytest.mark.parametrize(
    ("name", "value"),
    [("ALL_PROXY", "socks6://proxy:1"), ("HTTP_PROXY", "ftp://me:secret@proxy:21"), ("HTTPS_PROXY", "http://proxy:port"),
     ("NO_PROXY", "localhost,[fe80::1]")],
)  # fmt: skip
async def test_a_proxy_that_no_client_can_use_ends_a_start_with_its_cause_and_no_request_to_this_machine(
    proxies, tmp_path, name, value
):
    proxies(name, value)
    with pytest.raises(DestinationUnreachableError, match="or NO_PROXY cannot be used: ") as refused:
        await Poster("http://receiver.example/x").post(b"{}")
    assert "secret" not in str(refused.value)
    with receiving() as fake:
        await Poster(fake.url).post(b"{}")
        assert len(fake.got) == 1
    config = tmp_path / "sidejudge.yaml"
    keys = "public_key: pk-lf-1, secret_key: sk-lf-1"
    config.write_text(f"sinks: {{langfuse: {{base_url: http://langfuse.example, {keys}}}}}")
    done = sidejudge("serve", "--config", str(config), cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot be used: " in done.stderr
    assert "remedy: give a proxy as http://HOST:PORT" in done.stderr


async def test_a_proxy_that_is_away_is_named_and_this_machine_needs_none(proxies):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        proxies("HTTP_PROXY", f"http://127.0.0.1:{bound.getsockname()[1]}")
        access = {"public_key": "pk", "secret_key": "sk"}
        async with Langfuse(Access(base_url="http://langfuse.example", **access)) as client:
            with pytest.raises(LangfuseError, match="Connection refused, by way of the proxy that HTTP_PROXY names"):
                await client.get("health")
        with FakeLangfuse() as fake:
            async with Langfuse(Access(base_url=fake.base_url, **access)) as client:
                assert await client.get("health")
