"""Under which names a monitor may be addressed and still add the operator's credentials."""

from __future__ import annotations

import pytest

from sidejudge.integrations.otlp.proxy.web_pages import WebPages


def suspicion(host, *, hosts=(), in_cluster=False):
    headers = {b"host": host.encode(), b"content-type": b"application/x-protobuf"}
    return WebPages(hosts, in_cluster=in_cluster).suspicion("POST", headers, otlp=True)


@pytest.mark.parametrize(
    ("host", "outside", "in_cluster"),
    [
        ("localhost:4318", True, True), ("127.0.0.1:4318", True, True), ("[::1]:4318", True, True),
        ("sidejudge:4318", True, True), ("sidejudge.monitoring.svc:4318", True, True),
        ("sidejudge.monitoring:4318", False, True), ("evil.example.com:4318", False, False),
        ("sidejudge.monitoring.example:4318", False, False),
    ],
)  # fmt: skip
def test_a_name_that_a_page_cannot_have_is_ours(host, outside, in_cluster):
    assert (suspicion(host) is None) is outside
    assert (suspicion(host, in_cluster=True) is None) is in_cluster


def test_a_configured_name_is_ours():
    assert suspicion("otel.example.com", hosts=("*.example.com",)) is None
