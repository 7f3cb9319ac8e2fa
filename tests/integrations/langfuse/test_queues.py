"""Annotation queues: found by name, looked into, put into; the fake is held to what was recorded."""

from __future__ import annotations

import json

import httpx
import pytest

from sidejudge.integrations.langfuse.annotations import holds, put, queues_named
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from tests.fakes.langfuse.queues import queues
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse


@pytest.fixture
def fake():
    with FakeLangfuse(parts=[queues]) as server:
        yield server


async def test_a_queue_is_found_by_its_name_among_many(fake, client):
    wanted = fake.queues.add("doubtful")
    for number in range(150):
        fake.queues.add(f"queue {number}")
    assert await queues_named(client(), "doubtful") == [wanted]
    assert await queues_named(client(), "Doubtful") == []
    twin = fake.queues.add("doubtful")
    assert set(await queues_named(client(), "doubtful")) == {wanted, twin}


async def test_what_was_put_in_is_found_again_however_much_came_after_it(fake, client):
    queue, langfuse = fake.queues.add("doubtful"), client()
    assert not await holds(langfuse, queue, "t0")
    await put(langfuse, queue, "t0", "TRACE")
    for number in range(1, 130):
        fake.queues.items.append({**fake.queues.items[0], "objectId": f"t{number}"})
    assert await holds(langfuse, queue, "t0")
    assert fake.queues.objects()[0] == ("TRACE", "t0")


async def test_a_queue_that_is_gone_is_told(fake, client):
    with pytest.raises(LangfuseError) as reported:
        await put(client(), "gone", "t0", "TRACE")
    assert reported.value.kind is LangfuseErrorKind.NOT_FOUND


def test_the_fake_answers_as_the_recorded_server_did(shared, fake):
    folder, ids = shared / "contracts" / "langfuse-recordings", {}
    auth = httpx.BasicAuth(PUBLIC_KEY, SECRET_KEY)
    with httpx.Client(base_url=fake.base_url, auth=auth) as http:
        for name in ("queue-create", "queue-item-create", "queues-list", "queue-items-list"):
            stated = (folder / f"annotation-{name}.dual.json").read_text()
            for recorded, made in ids.items():
                stated = stated.replace(recorded, made)
            exchange = json.loads(stated)
            requested, reported = exchange["request"], exchange["response"]
            got = http.request(
                requested["method"], requested["path"], params=requested["query"], json=requested["body"]
            )
            assert got.status_code == reported["status"]
            assert shape(got.json()) == shape(reported["body"]), name
            if "id" in reported["body"]:
                ids[reported["body"]["id"]] = got.json()["id"]


def shape(body):
    if isinstance(body, dict):
        return {key: shape(value) for key, value in body.items()}
    return [shape(body[0])] if isinstance(body, list) and body else type(body).__name__
