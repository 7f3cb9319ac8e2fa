"""What clients of HTTPS trust is read once, and anew where the environment names other authorities."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from sidejudge.integrations.addresses import trusted
from sidejudge.integrations.backoff import DestinationUnreachableError
from sidejudge.integrations.post import Poster
from tests.certificates import make
from tests.fakes.receiver import receiving


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
