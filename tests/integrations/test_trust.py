"""What clients of HTTPS trust is read once, and anew where the environment names other authorities."""

from __future__ import annotations

from sidejudge.integrations.addresses import trusted
from tests.certificates import make


def test_clients_share_one_context_and_the_environment_gives_another(tmp_path, monkeypatch):
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    everybody = trusted()
    assert trusted() is everybody
    monkeypatch.setenv("SSL_CERT_FILE", make(tmp_path).ca)
    (only,) = trusted().get_ca_certs()
    assert only["subject"] == ((("commonName", "tests"),),)
    assert len(trusted(trust_env=False).get_ca_certs()) > 1
