"""The story of a reference that is written down the day after."""

from __future__ import annotations

import json

import pytest

from tests.fakes.langfuse.server import Mode


@pytest.mark.parametrize("mode", [Mode.V3, Mode.NEW], ids=lambda mode: mode.value, indirect=True)
async def test_an_item_added_the_next_day_revises_yesterdays_verdict(opened):
    scene = await opened()

    # Monday: a trace is judged, and nobody has said yet what it ought to have answered.
    await scene.judge()
    await scene.delivered()
    monday, before = scene.verdict(), scene.scores()
    # Of the entities that it names one is not configured: that fails it whatever the answer ought to have been.
    assert (monday["revision"], monday["state"], monday["composite"]) == (1, "disqualified", None)

    # By the next day its spans have been let go. Somebody adds it to the dataset, with the right answer.
    await scene.pass_by(hours=26)
    assert scene.monitor.store.chunks(bytes.fromhex(monday["trace_id"])) == []
    scene.expect(scene.right[1])
    await scene.look()

    # The trace is read again from Langfuse, judged against that, and the verdict of Monday is revised where it stood.
    tuesday = scene.verdict()
    assert (tuesday["revision"], tuesday["passed"]) == (2, False)
    assert tuesday["composite"] is not None or tuesday["state"] == "invalid"
    assert (tuesday["closed_ns"], tuesday["rubric"]) == (monday["closed_ns"], monday["rubric"])
    story = await scene.story()
    assert (story["revision"], story["reference"]) == (2, "dataset golden")

    # In Langfuse each score stands once, under the id, the name and the time that it had; the number tells.
    await scene.delivered()
    after = scene.scores()
    for name, row in before.items():
        assert (after[name]["id"], after[name]["timestamp"]) == (row["id"], row["timestamp"])
    assert (before["entity_state"]["value"], after["entity_state"]["value"]) == ("counted", "counted")
    assert after["entity_state"]["metadata"]["revision"] in (2, "2")

    # And nothing is owed any more.
    assert await scene.monitor.references.refresh() == 0
    status = (await scene.get("/v1/status"))["belated"]
    assert (status["state"], status["revised"], status["waiting"], status["given_up"]) == ("ok", 1, 0, 0)


async def test_so_does_a_correction_that_somebody_writes_the_next_day(opened):
    scene = await opened(references=[{"langfuse_corrections": True}])
    await scene.judge(wrong=False)
    assert scene.verdict()["passed"] is None
    await scene.pass_by(hours=26)
    scene.correct(json.dumps(scene.right[1]))
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (2, True)
    assert (await scene.story())["reference"] == "corrections"

    # It is not taken for gone when a restart asks for corrections anew.
    await scene.restart()
    await scene.look()
    assert scene.verdict()["revision"] == 2


async def test_so_does_a_line_that_comes_into_a_file_the_next_day(opened, tmp_path):
    path = tmp_path / "golden.jsonl"
    path.write_text("")
    scene = await opened(references=[{"file": str(path), "key": "trace_id"}])
    await scene.judge(wrong=False)
    await scene.pass_by(hours=26)
    path.write_text(json.dumps({"trace_id": scene.verdict()["trace_id"], "expected_outcome": scene.right[1]}) + "\n")
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (2, True)
    assert (await scene.story())["reference"] == f"file {path}"
