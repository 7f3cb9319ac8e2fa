"""The fake Langfuse is held to the recordings: replayed requests get the recorded status, headers and shape of body."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fakes.langfuse.server import (
    PUBLIC_KEY,
    SECRET_KEY,
    FakeLangfuse,
    Mode,
    database_away,
    rate_limited,
    store_away,
)

MODES = {"dual": Mode.DUAL, "events_only": Mode.EVENTS_ONLY}
ENDPOINTS = r"/api/public/(scores(/.*)?|v3/scores|score-configs(/.*)?|health|ready|projects|ingestion|does-not-exist)"
HEADERS = ("content-type", "retry-after", "x-ratelimit-limit", "x-ratelimit-remaining")
NOT_HERE = {
    # What hangs on data or parts that this fake does not have.
    "score-annotation-queue-score": "queues", "score-get-v1": "v1 reads", "score-get-v1-session-scope": "v1 reads",
    "score-list-v1": "v1 reads", "health-recent-events-stale": "time", "broken-health-db": "three servers",
    "sdk-experiment-3": "wrapped by a proxy",
    "score-list-v3-page2": "a cursor into another server's data",
}  # fmt: skip
AUTH = {
    "none": None, "basic-project-key": httpx.BasicAuth(PUBLIC_KEY, SECRET_KEY), "malformed": "Basic !!!",
    "basic-wrong-secret": httpx.BasicAuth(PUBLIC_KEY, "sk-wrong"),
    "basic-unknown-key": httpx.BasicAuth("pk-no", "sk-no"),
    "bearer-public-key": f"Bearer {PUBLIC_KEY}",
}  # fmt: skip


def recordings(shared: Path, mode: str) -> Iterator[dict[str, Any]]:
    """In the order in which they were made: reads depend on the writes before them."""
    folder = shared / "contracts" / "langfuse-recordings"
    found = [json.loads(path.read_text()) for path in folder.glob(f"*.{mode}.json")]
    for each in sorted(found, key=order):
        if re.fullmatch(ENDPOINTS, each["request"]["path"]) and each["name"] not in NOT_HERE:
            if mode == "events_only" and each["name"] == "score-config-results-read":
                continue  # the writes before it were not kept, being as in the other mode
            yield each


def order(exchange: dict[str, Any]) -> tuple[str, bool, bool, bool, str]:
    """When it was made, to the second; within one, what is numbered goes by its numbers, the rest wrote, then read."""
    name = exchange["name"]
    reads = exchange["request"]["method"] == "GET" and not re.search(r"-\d(-|$)", name)
    creates = reads or not name.startswith("score-config-create")
    return exchange["recorded_at"], name != "score-config-list-empty", creates, reads, name


def content(body: Any) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, dict) and "$text" in body:
        return body["$text"].encode()
    stated = json.dumps(body).replace("Infinity", "1e400")
    return re.sub(r"<(\d+) x '(.)'>", lambda m: m[2] * int(m[1]), stated).encode()


def replay(http: httpx.Client, exchange: dict[str, Any], ids: dict[str, str]) -> httpx.Response:
    requested = exchange["request"]
    auth = AUTH[requested["auth"]]
    headers = {k: v for k, v in requested["headers"].items() if k == "content-type"}
    if isinstance(auth, str):
        headers["authorization"], auth = auth, None
    text = json.dumps([requested["path"], requested["query"], requested["body"]])
    for recorded, made in ids.items():
        text = text.replace(recorded, made)
    path, query, body = json.loads(text)
    return http.request(requested["method"], path, params=query, content=content(body), headers=headers, auth=auth)


def shape(body: Any) -> Any:
    """Keys and types; of a list, the shape of what it holds."""
    if isinstance(body, dict):
        if "message" in body:
            return {"message": body["message"], **{k: shape(v) for k, v in body.items() if k != "message"}}
        free = {k: {} for k in ("metadata",) if k in body}
        return {k: shape(v) for k, v in body.items()} | free
    if isinstance(body, list):
        return sorted({json.dumps(shape(each), sort_keys=True) for each in body})
    if isinstance(body, int | float) and not isinstance(body, bool):
        return "number"
    return type(body).__name__


def rules(body: Any) -> Any:
    """Of a refusal by the schema, the first broken rule; how a refusal of a union unfolds is the library's business."""
    first = body["error"][0]
    return {"message": body["message"], "code": first["code"], "path": first["path"], "said": first["message"]}


LOOSE = {
    "score-config-bad-no-categories", "ingestion-batch-207-mixed", "score-list-v3-page1", "score-list-v3-by-trace",
    "score-config-list", "cloud-429-score-create",
}  # fmt: skip
"""Held to status and headers only: an issue of a nested union, pages over data of other recordings, the first two
of many that were written within a second, a moment in time."""


def difference(name: str, reported: dict[str, Any], got: httpx.Response) -> str | None:
    """What differs from what was recorded."""
    if got.status_code != reported["status"]:
        return f"{name}: {got.status_code} {got.text[:200]}, recorded {reported['status']}"
    headers = {h: reported["headers"].get(h) for h in HEADERS}
    if {h: got.headers.get(h) for h in HEADERS} != headers:
        return f"{name}: headers {dict(got.headers)}, recorded {headers}"
    body = reported["body"]
    if name in LOOSE or body is None or (isinstance(body, dict) and "$html" in body):
        return None
    if isinstance(body, dict) and "$text" in body:
        return None if got.text == body["$text"] else f"{name}: {got.text}, recorded {body['$text']}"
    read = rules if reported["status"] == 400 and isinstance(body.get("error"), list) else shape
    same = read(got.json()) == read(body)
    return None if same else f"{name}:\n   {read(got.json())}\n   {read(body)} recorded"


@pytest.mark.parametrize(("mode", "at_least"), [("dual", 150), ("events_only", 50)])
def test_the_fake_answers_recorded_requests_as_they_were_answered(shared, mode, at_least):
    wrong, seen = [], 0
    with FakeLangfuse(MODES[mode]) as fake, httpx.Client(base_url=fake.base_url) as http:
        ids: dict[str, str] = {}
        for exchange in recordings(shared, mode):
            name, reported = exchange["name"], exchange["response"]
            seen += 1
            fake.visible_after_s = 3600 if name == "score-get-v3-immediately-after-create" else 0
            time.sleep(0.002)  # of two writes in one millisecond Langfuse keeps either
            got = replay(http, exchange, ids)
            wrong.append(difference(name, reported, got))
            if isinstance(reported["body"], dict) and isinstance(reported["body"].get("id"), str) and got.is_success:
                ids[reported["body"]["id"]] = got.json()["id"]
    assert not any(wrong), "\n".join(filter(None, wrong))
    assert seen >= at_least


@pytest.mark.parametrize(
    ("mode", "name", "fault"),
    [
        ("dual-cloud-region", "cloud-429-score-create", rate_limited(60, 30)),
        ("dual-badpg", "broken-score-create", database_away()),
        ("dual-badpg", "broken-scores-v3", database_away()),
        ("dual-badstore", "broken-score-create", store_away()),
    ],
)
def test_its_faults_are_the_recorded_ones(shared, mode, name, fault):
    (exchange,) = [each for each in recordings(shared, mode) if each["name"] == name]
    with FakeLangfuse() as fake, httpx.Client(base_url=fake.base_url) as http:
        fake.fails(fault)
        assert difference(name, exchange["response"], replay(http, exchange, {})) is None
