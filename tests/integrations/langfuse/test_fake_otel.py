"""The fake's OTLP endpoint is held to the recordings: the same status, the same words, the same shape of answer."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_requests import part
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode, database_away, rate_limited
from tests.integrations.langfuse.test_fake import MODES, shape

AUTH = {"basic-project-key": (PUBLIC_KEY, SECRET_KEY), "basic-wrong-secret": (PUBLIC_KEY, "sk-wrong")}
KEPT = ("content-type", "content-encoding", "x-langfuse-ingestion-version")


def exchanges(shared: Path, mode: str) -> list[dict[str, Any]]:
    folder = shared / "contracts" / "langfuse-recordings"
    found = [json.loads(path.read_text()) for path in sorted(folder.glob(f"*.{mode}.json"))]
    return [each for each in found if each["request"]["path"].startswith("/api/public/otel/")]


def sent(exchange: dict[str, Any], to: str) -> httpx.Response:
    requested = exchange["request"]
    body, headers = requested["body"], {k: v for k, v in requested["headers"].items() if k in KEPT}
    if "$protobuf" in body:  # kept as it was before it was compressed
        headers.pop("content-encoding", None)
    if "$base64" in body:
        content = base64.b64decode(body["$base64"])
    else:
        content = body["$text"].encode() if "$text" in body else json.dumps(body).encode()
    return httpx.post(to + requested["path"], content=content, headers=headers, auth=AUTH[requested["auth"]])


def difference(exchange: dict[str, Any], got: httpx.Response) -> str | None:
    """What differs from what was recorded: words of a refusal, shape of an answer, status and type of content."""
    name, reported = exchange["name"], exchange["response"]
    recorded = (reported["status"], reported["headers"]["content-type"])
    if (got.status_code, got.headers.get("content-type")) != recorded:
        return f"{name}: {got.status_code} {got.text[:200]}, recorded {recorded}"
    if "$html" in reported["body"]:
        return None
    same = got.json() == reported["body"] if reported["status"] != 200 else shape(got.json()) == shape(reported["body"])
    return None if same else f"{name}: {got.text}, recorded {reported['body']}"


@pytest.mark.parametrize("mode", ["dual", "events_only"])
def test_exports_are_answered_as_recorded(shared, mode):
    made = exchanges(shared, mode)
    with FakeLangfuse(MODES[mode], parts=[Observations.part, part]) as fake:
        wrong = [difference(each, sent(each, fake.base_url)) for each in made]
        rows = observations_of(fake).rows()
    assert not any(wrong), "\n".join(filter(None, wrong))
    assert len(made) >= 15
    assert "otel-span" in {row["name"] for row in rows}


FAULTS = [("broken-otlp.dual-badpg", database_away()), ("cloud-429-otlp.dual-cloud-region", rate_limited(1000, 52))]


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=[name for name, _ in FAULTS])
def test_its_faults_are_the_recorded_ones(shared, name, fault):
    (exchange,) = exchanges(shared, name.split(".")[1])
    with FakeLangfuse(Mode.DUAL, parts=[Observations.part, part]) as fake:
        fake.fails(fault)
        got = sent(exchange, fake.base_url)
    assert got.status_code == exchange["response"]["status"]
    assert shape(got.json()) == shape(exchange["response"]["body"])
