"""``doctor`` shows what is kept for upstream, and which scores wait for their trace."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3

import pytest
import yaml

from sidejudge.integrations.store.kept_requests import KeptRequest, KeptRequests, beside
from sidejudge.integrations.store.outbox import ScoreRow, mark, replace_scores
from sidejudge.integrations.store.sqlite import Store
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse

REQUEST = KeptRequest(signal="traces", target=b"/v1/traces", headers=[], trusted=True, body=b"x" * 100, lane=0)


@pytest.fixture
def checked(call, tmp_path):
    path = tmp_path / "sidejudge.yaml"

    def check(buffer="1MiB", store="s.sqlite"):
        with FakeLangfuse() as fake:
            stated = {
                "forward": {"url": fake.base_url, "buffer": buffer},
                "sinks": {"langfuse": {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY}},
                "store": {"path": str(tmp_path / store)},
                "sources": {"otlp": {"http": "127.0.0.1:0"}},
                "api": {"listen": "127.0.0.1:0"},
            }
            path.write_text(yaml.safe_dump(stated))
            done = call("doctor", "--config", path, "--format", "json")
        return {each["what"]: each for each in json.loads(done.stdout)}

    return check


def test_doctor_shows_what_is_kept_for_upstream(checked, tmp_path):
    found = checked()["forward.buffer"]
    assert (found["grade"], "nothing is kept" in found["found"]) == ("ok", True)
    assert not beside(tmp_path / "s.sqlite").exists()
    kept = KeptRequests(beside(tmp_path / "s.sqlite"), 1 << 20)
    asyncio.run(kept.put(REQUEST))
    kept.close()
    found = checked()["forward.buffer"]
    assert found["grade"] == "warn"
    assert found["found"].startswith("1 requests are kept in")


def test_doctor_warns_of_a_buffer_that_the_disk_has_no_room_for(checked):
    found = checked("4000000GiB")["forward.buffer"]
    assert found["grade"] == "warn"
    assert "of the disk are free" in found["found"]
    assert "lower forward.buffer" in found["remedy"]


def test_doctor_counts_the_scores_that_wait_for_their_trace(checked, tmp_path):
    Store(tmp_path / "s.sqlite").close()
    assert "held back" not in checked()["scores in Langfuse"]["found"]
    with contextlib.closing(sqlite3.connect(tmp_path / "s.sqlite")) as connection, connection:
        mark(connection, [b"t" * 16], 1)
        replace_scores(connection, b"t" * 16, [ScoreRow(id=name, at_ns=1, body="{}") for name in ("a", "b")], 1)
        replace_scores(connection, b"u" * 16, [ScoreRow(id="c", at_ns=1, body="{}")], 1)
    found = checked()["scores in Langfuse"]
    assert (found["grade"], found["found"]) == (
        "warn", "2 are held back: upstream has not taken their 1 traces",
    )  # fmt: skip


def test_a_store_that_is_a_folder_cannot_be_used(checked, tmp_path):
    assert checked()["store.path"]["grade"] == "ok"
    (tmp_path / "folder").mkdir()
    found = checked(store="folder")["store.path"]
    assert (found["grade"], found["found"]) == ("fail", f"{tmp_path / 'folder'} is a folder")
