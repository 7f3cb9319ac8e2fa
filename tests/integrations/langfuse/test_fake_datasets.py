"""Reads of dataset items get what was recorded."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse

READS = ("dataset-item-list", "dataset-item-list-by-source-trace", "dataset-item-list-unknown-dataset")
GIVEN = ("input", "sourceTraceId", "sourceObservationId", "metadata")
WRITES = ("dataset-item-create", "dataset-item-create-no-id", "dataset-item-create-unknown-trace")


@pytest.fixture
def recorded(shared) -> dict[str, dict[str, Any]]:
    folder = shared / "contracts" / "langfuse-recordings"
    return {name: json.loads((folder / f"{name}.dual.json").read_text()) for name in (*READS, *WRITES)}


@pytest.mark.parametrize("name", READS)
def test_a_recorded_read_of_items_is_answered_as_it_was(recorded, name):
    with (
        FakeLangfuse(parts=(datasets.part,)) as fake,
        httpx.Client(base_url=fake.base_url, auth=(PUBLIC_KEY, SECRET_KEY)) as http,
    ):
        for write in WRITES:  # what had been written before the reads, in that order
            body = recorded[write]["request"]["body"]
            kept = {key: body[key] for key in GIVEN if key in body}
            datasets.datasets_of(fake).setdefault(body["datasetName"], []).append(
                datasets.item(body["expectedOutput"], **kept)
            )
        requested, reported = recorded[name]["request"], recorded[name]["response"]
        got = http.request(requested["method"], requested["path"], params=requested["query"])
    assert got.status_code == reported["status"]
    if reported["status"] != 200:
        assert got.json() == reported["body"]
        return
    ours, theirs = got.json(), reported["body"]
    assert ours["meta"] == theirs["meta"]
    assert [sorted(each) for each in ours["data"]] == [sorted(each) for each in theirs["data"]]
    same = ("datasetName", "status", "sourceTraceId", "sourceObservationId", "metadata", "input", "mediaReferences")
    assert [{key: each[key] for key in same} for each in ours["data"]] == [
        {key: each[key] for key in same} for each in theirs["data"]
    ]
