"""The front: certificates, cautions, what is shown and counted of traffic, and that it is light."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
import threading

import httpx
import pytest
from prometheus_client import CollectorRegistry

from sidejudge.integrations.otlp.server.traffic import Forwarding, Receiving
from sidejudge.integrations.prometheus.exporter import Exporter
from sidejudge.integrations.prometheus.labels import KnownLabels
from sidejudge.monitor.cli.doctor_checks import examine
from sidejudge.monitor.config import resolve
from sidejudge.monitor.config.extras import Extra, installed, missing
from sidejudge.monitor.config.warnings import cautions
from sidejudge.monitor.ingest.listeners import CertificateError
from sidejudge.monitor.runtime.app import Monitor
from tests.certificates import another, make
from tests.dashboards.pages.rendered import card
from tests.fakes.upstream import OK, upstream
from tests.otlp_requests import HIGH, S, request, span, trace

PROTOBUF = {"content-type": "application/x-protobuf"}


def one(number=1) -> bytes:
    return request([S(trace_id=trace(number, HIGH), span_id=span(1))])


def test_a_monitor_that_is_asked_for_none_of_it_loads_none_of_it():
    heavy = ("grpc", "httpcore", "h11", "backports.zstd")
    code = f"import sys, sidejudge.monitor.runtime.app; print([m for m in {heavy} if m in sys.modules])"
    reported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert reported.stdout.strip() == "[]"


async def test_encrypted_over_http(started, tmp_path):
    made = make(tmp_path)
    app = await started(
        sources={"otlp": {"http": "127.0.0.1:0", "tls": {"certificate": made.server, "key": made.server_key}}}
    )
    assert app.otlp.startswith("https://127.0.0.1:")
    import ssl  # noqa: PLC0415  # only this test needs it

    async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=made.ca)) as http:
        assert (await http.post(app.otlp + "/v1/traces", content=one(), headers=PROTOBUF)).status_code == 200
        assert (await http.get(app.otlp + "/livez")).status_code == 200
    with pytest.raises(httpx.HTTPError):
        await app.http.get(app.otlp + "/livez")  # whose authority is not ours
    assert (await app.get("/v1/status"))["receiving"]["encrypted"] is True


@pytest.mark.parametrize(
    ("broken", "stated"),
    [
        ({"certificate": "nowhere.pem"}, r"sources\.otlp\.tls\.certificate: .*nowhere\.pem: No such file"),
        ({"key": "client_key.pem"}, r"sources\.otlp\.tls: .* cannot be used together"),
        ({"client_ca": "ca_key.pem"}, r"sources\.otlp\.tls\.client_ca: .*ca_key\.pem holds no certificates"),
        ({"key": "encrypted.pem"}, r"sources\.otlp\.tls: .* \(the key is encrypted\)"),
    ],
)
def test_certificates_that_cannot_be_used_are_named_before_anything_listens(configured, tmp_path, broken, stated):
    made = make(tmp_path)
    subprocess.run(["openssl", "pkey", "-in", made.server_key, "-aes128", "-passout", "pass:secret", "-out",
                    str(tmp_path / "encrypted.pem")], check=True, capture_output=True)  # fmt: skip
    tls = {"certificate": made.server, "key": made.server_key, **{k: str(tmp_path / v) for k, v in broken.items()}}
    config = configured(sources={"otlp": {"http": "127.0.0.1:0", "tls": tls}})
    for _ in range(2):  # the store is let go
        with pytest.raises(CertificateError, match=stated):
            Monitor(config)
    reported = examined(tmp_path / "sidejudge.yaml")["sources.otlp.tls"]
    assert (reported.grade, bool(reported.remedy)) == ("fail", True)


def test_a_certificate_that_has_expired_is_named_and_used_all_the_same(configured, tmp_path, caplog):
    made = another(make(tmp_path), "old", "IP:127.0.0.1", days=-1)
    ours = {"certificate": made.server, "key": made.server_key}
    old = {"certificate": made.old, "key": made.old_key}
    config = configured(
        sources={"otlp": {"http": "127.0.0.1:0", "tls": old}}, api={"listen": "127.0.0.1:0", "tls": ours}
    )
    Monitor(config).store.close()
    assert examined(tmp_path / "sidejudge.yaml")["sources.otlp.tls"].grade == "warn"
    found = [(each.key, each.cause) for each in caplog.records if each.message == "callers will refuse the certificate"]
    assert found == [("sources.otlp.tls.certificate", "certificate has expired")]
    configured(sources={"otlp": {"tls": ours}}, api={"listen": "127.0.0.1:0", "tls": old})
    reported = examined(tmp_path / "sidejudge.yaml")
    assert (reported["sources.otlp.tls"].grade, reported["api.tls"].grade) == ("ok", "warn")


async def test_encrypted_on_the_way_to_upstream(started, tmp_path):
    import ssl  # noqa: PLC0415  # only this test needs it

    made = make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.server, made.server_key)

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    trusting = await started(forward={"url": url, "ca": made.ca})
    assert (await trusting.post(one())).status_code == 200
    await trusting.monitor.stop()
    wary = await started(forward={"url": url})
    answer = await wary.post(one())
    assert (answer.status_code, b"certificate" in answer.content.lower()) == (502, True)
    server.close()
    await server.wait_closed()


async def test_what_is_under_way_is_answered_though_the_monitor_ends(configured):
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(writer):
        arrived.set()
        await go.wait()
        writer.write(OK)

    async with upstream(slow) as up, httpx.AsyncClient(timeout=10) as http:
        monitor = Monitor(configured(forward={"url": up.url}))
        addresses = await monitor.start()
        requested = asyncio.create_task(http.post(addresses["otlp"] + "/v1/traces", content=one(), headers=PROTOBUF))
        await arrived.wait()
        ending = asyncio.create_task(monitor.stop())
        await asyncio.sleep(0)
        go.set()
        assert (await requested).status_code == 200
        await ending


def cautioned(configured, **sections) -> list[str]:
    return [cause.split(":")[0] for cause, _ in cautions(configured(routes=[], **sections))]


def test_check_warns_of_credentials_that_reach_whom_they_are_not_for(configured):
    here, anywhere = {"http": "127.0.0.1:4318"}, {"http": "0.0.0.0:4318"}
    auth = {"auth": {"bearer": ["secret"]}}
    plain, own = {"url": "http://up"}, {"url": "http://up", "authorization": "Basic x"}
    assert cautioned(configured, sources={"otlp": here}, forward=own) == []
    assert cautioned(configured, sources={"otlp": anywhere}, forward=plain) == []
    assert cautioned(configured, sources={"otlp": anywhere}, forward=own) == ["forward.authorization"]
    assert cautioned(configured, sources={"otlp": {**anywhere, **auth}}) == ["sources.otlp.auth"]
    assert cautioned(configured, sources={"otlp": {**here, **auth}}, forward=plain) == ["sources.otlp.auth"]
    assert cautioned(configured, sources={"otlp": {**here, **auth}}, forward=own) == []


def test_check_warns_of_own_telemetry_that_nobody_takes_or_that_there_is_none_of(configured):
    def at(endpoint, **more):
        return cautioned(configured, sinks={"otel_events": {"endpoint": endpoint, **more}})

    signals = ["sinks.otel_events.signals"]
    assert at("http://collector:4318") == []
    assert at("https://cloud.langfuse.com/api/public/otel") == signals
    assert at("https://cloud.langfuse.com/api/public/otel", signals=["logs"]) == signals
    assert at("http://collector:4318", signals=["traces"]) == signals, "there is no judge"


def examined(path) -> dict:
    return {finding.subject: finding for finding in examine(resolve(path, {}), None)}


def test_doctor_looks_at_the_port_for_grpc_and_at_upstream(configured, tmp_path):
    path = tmp_path / "sidejudge.yaml"  # what ``configured`` writes
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        configured(sources={"otlp": {"grpc": address}})
        grpc = examined(path)["sources.otlp.grpc"]
        assert (grpc.grade, "in use" in grpc.found) == ("fail", True)
        configured(forward={"url": f"http://{address}"})
        assert examined(path)["forward.url"].grade == "ok"
    gone = examined(path)["forward.url"]
    assert (gone.grade, "cannot be reached" in gone.found) == ("fail", True)


def test_doctor_looks_at_the_certificate_of_upstream(configured, tmp_path):
    made = make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.server, made.server_key)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            for _ in range(3):
                taken, _ = listener.accept()
                with contextlib.suppress(OSError):
                    context.wrap_socket(taken, server_side=True).close()
                taken.close()

        serving = threading.Thread(target=serve)
        serving.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        grades = []
        for at, ca in ((url, made.ca), (url, made.client), (url, None)):
            configured(forward={"url": at, **({"ca": ca} if ca else {})})
            grades.append(examined(tmp_path / "sidejudge.yaml")["forward.url"])
        serving.join()
    assert [each.grade for each in grades] == ["ok", "fail", "fail"]
    assert "certificate verify failed" in grades[2].found
    assert "forward.ca" in grades[2].remedy


def test_grpc_needs_its_extra(configured):
    config = configured(sources={"otlp": {"grpc": "127.0.0.1:0"}})
    ((cause, remedy),) = missing(config, has=lambda extra: False)
    assert cause == "sources.otlp.grpc: needs the extra 'grpc' (grpc), which is not installed"
    assert remedy == "install it: pip install 'sidejudge[grpc]'"


def test_own_telemetry_needs_its_extra(configured):
    config = configured(sinks={"otel_events": {"endpoint": "http://127.0.0.1:9"}})
    ((cause, remedy),) = missing(config, has=lambda extra: False)
    assert cause.startswith("sinks.otel_events: needs the extra 'otel'")
    assert remedy == "install it: pip install 'sidejudge[otel]'"
    assert not installed(Extra("x", "no_such_package.below.it", "nothing"))


SECRETS = """
sources: {otlp: {auth: {bearer: [s3cret-a], basic: {pk: s3cret-b}}}}
forward: {url: "http://up", authorization: s3cret-c, headers: {x-key: s3cret-d}}
sinks: {otel_events: {endpoint: "http://up", authorization: s3cret-e, headers: {x-key: s3cret-f}}}
"""


def test_secrets_are_shown_nowhere(tmp_path):
    from sidejudge.monitor.config.summary import summary  # noqa: PLC0415  # only this test needs it

    path = tmp_path / "c.yaml"
    path.write_text(SECRETS)
    loaded = resolve(path, {})
    assert "s3cret" not in repr(summary(loaded)) + repr(loaded.config) + loaded.config.model_dump_json()


def test_the_card_shows_what_comes_in_and_what_goes_on_and_escapes_what_others_say():
    receiving = Receiving(protocols=("http", "grpc"), encrypted=True, authenticated=True, requests=1234, spans=5,
                          log_records=6, refused={413: 7}, dropped=0)  # fmt: skip
    forwarding = Forwarding(upstream="http://up", requests={"traces": 8}, answers={"2xx": 9}, failed={"reset": 1},
                            unjudged={"too_large": 2}, withheld=2,
                            last_failure="<script>alert(1)</script>")  # fmt: skip
    shown = card("traffic", receiving=receiving, forwarding=forwarding)
    for text in ("over HTTP and gRPC, encrypted, by credential", "1,234", "refused, 413", "not judged, too large"):
        assert text in shown
    assert "<script>" not in shown
    assert "Forwarding" not in card("traffic", receiving=receiving, forwarding=None)
    assert card("traffic", receiving=None, forwarding=None) == ""


def test_series_of_forwarding_are_zero_from_the_start_where_requests_go_on_and_absent_elsewhere():
    def text(**known):
        exporter = Exporter(CollectorRegistry(), KnownLabels(rubrics=(), ended_reasons=(), **known))
        return exporter.exposition("")()[0].decode()

    there = text(forward_failures=("connect",), forward_unjudged=("error",))
    for line in ('forwarded_requests_total{signal="other"} 0.0', 'forwarded_answers_total{code="5xx"} 0.0',
                 'forwarded_requests_failed_total{reason="connect"} 0.0',
                 'forwarded_requests_unjudged_total{reason="error"} 0.0',
                 'log_records_ignored_total{reason="plain"} 0.0'):  # fmt: skip
        assert f"sidejudge_{line}" in there
    assert "forwarded_requests_total{" not in text()


async def test_metrics_tell_what_came_in_and_what_went_on(started):
    async with upstream() as up:
        app = await started(forward={"url": up.url})
        await app.post(one())
        await app.post(b"\xff")
        await app.settled(1)
        for _ in range(2):  # counted once, however often it is asked
            text = (await app.http.get(app.api + "/metrics")).text
        for line in ('requests_total{signal="traces"} 2.0', 'answers_total{code="2xx"} 2.0',
                     'requests_unjudged_total{reason="undecodable"} 1.0'):  # fmt: skip
            assert f"sidejudge_forwarded_{line}" in text
        assert "Forwarding" in (await app.http.get(app.api + "/")).text


@pytest.mark.parametrize(("path", "kind"), [
    ("/", "x-protobuf"), ("/", "json"), ("/v1", "x-protobuf"), ("/api/public/otel", "x-protobuf"),
])  # fmt: skip
async def test_an_export_to_a_wrong_path_is_refused_with_the_right_ones(started, path, kind):
    """The API answers other paths of the OTLP address; exporters came there too: an address without a path is usual."""
    app = await started()
    found = await app.http.post(app.otlp + path, content=one(), headers={"content-type": f"application/{kind}"})
    assert (found.status_code, "/v1/traces" in found.text) == (404, True)
    assert (await app.get("/v1/status"))["receiving"]["refused"] == {"404": 1}
    assert (await app.http.get(app.otlp + "/v1/status")).status_code == 200
