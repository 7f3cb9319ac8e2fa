"""Items are written into datasets, each once; what Langfuse refuses is reported as it refused it."""

from __future__ import annotations

import json

import httpx
import pytest

from sidejudge.integrations.langfuse.datasets import (
    NewDatasetItem,
    dataset_exists,
    delete_items,
    item_id,
    make_dataset,
    put_item,
)
from sidejudge.integrations.langfuse.errors import LangfuseError, LangfuseErrorKind
from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse

WRITES = (
    "dataset-create", "dataset-create-again", "dataset-create-bad", "dataset-get", "dataset-get-404",
    "dataset-create-2",
    "dataset-item-create", "dataset-item-create-no-id", "dataset-item-create-again-partial",
    "dataset-item-create-unknown-trace", "dataset-item-create-unknown-dataset", "dataset-item-create-missing-dataset",
    "dataset-item-same-id-other-dataset", "dataset-item-delete-404", "sdk-create-dataset", "sdk-create-dataset-item",
)  # fmt: skip


@pytest.fixture
def fake():
    with FakeLangfuse(parts=[datasets.part]) as server:
        yield server


async def test_an_item_is_written_once_however_often_it_is_put(fake, client):
    langfuse = client()
    assert not await dataset_exists(langfuse, "fail / ures")
    await make_dataset(langfuse, "fail / ures", "runs that failed")
    await make_dataset(langfuse, "fail / ures", "made once")
    assert len(fake.requested("POST", "/v2/datasets")) == 1
    name = item_id("fail / ures", "t1")
    for expected in ("a", "b"):
        put = NewDatasetItem(id=name, input={"q": 1}, expected_output=expected, source_trace_id="t1")
        assert await put_item(langfuse, "fail / ures", put) == name
    (kept,) = datasets.datasets_of(fake)["fail / ures"]
    assert (kept["id"], kept["input"], kept["expectedOutput"], kept["sourceTraceId"]) == (name, {"q": 1}, "b", "t1")
    assert item_id("other", "t1") != name


async def test_what_langfuse_refuses_is_reported(fake, client):
    langfuse = client()
    with pytest.raises(LangfuseError) as missing:
        await put_item(langfuse, "nowhere", NewDatasetItem(id="i", input=1))
    assert missing.value.kind is LangfuseErrorKind.NOT_FOUND
    for name in ("a", "b"):
        await make_dataset(langfuse, name, "")
    await put_item(langfuse, "a", NewDatasetItem(id="i", input=1))
    with pytest.raises(LangfuseError, match="already exists in another dataset"):
        await put_item(langfuse, "b", NewDatasetItem(id="i", input=1))


async def test_items_of_forgotten_traces_are_deleted_page_by_page_and_no_others(fake, client):
    langfuse = client()
    await make_dataset(langfuse, "a", "")
    for number in range(130):
        await put_item(langfuse, "a", NewDatasetItem(id=f"i{number}", input=1, source_trace_id=f"t{number}"))
    assert await delete_items(langfuse, "a", {"t0", "t129", "t200"}) == 2
    assert len(datasets.datasets_of(fake)["a"]) == 128
    assert await delete_items(langfuse, "nowhere", {"t1"}) == 0


def test_the_fake_answers_writes_as_the_recorded_server_did(shared, fake):
    folder = shared / "contracts" / "langfuse-recordings"
    with httpx.Client(base_url=fake.base_url, auth=(PUBLIC_KEY, SECRET_KEY)) as http:
        for name in WRITES:
            exchange = json.loads((folder / f"{name}.dual.json").read_text())
            requested, reported = exchange["request"], exchange["response"]
            got = http.request(requested["method"], requested["path"], json=requested["body"])
            assert got.status_code == reported["status"], name
            ours, theirs = got.json(), reported["body"]
            assert sorted(ours) == sorted(theirs), name
            assert ours.get("error") == theirs.get("error"), name
            kept = ("name", "input", "expectedOutput", "metadata", "sourceTraceId", "status", "datasetName")
            fields = [key for key in kept if key in theirs and not name.startswith("dataset-create")]
            if name != "dataset-get" and not name.startswith("sdk-create-dataset"):
                assert {key: ours[key] for key in fields} == {key: theirs[key] for key in fields}, name
