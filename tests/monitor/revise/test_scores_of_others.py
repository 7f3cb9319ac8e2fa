"""What people and other programs score in Langfuse, hours and days after a trace was judged."""

from __future__ import annotations

from typing import Any

from tests.fakes.langfuse.observations import at_ns
from tests.monitor.revise.conftest import HOUR_NS, Scene, trace

RUBRICS = {"reported": {"metrics": [
    {"name": "Helpful", "good": 0.8, "acceptable": 0.6, "weight": 0.5},
    {"name": "Tone", "good": 0.8, "acceptable": 0.6, "weight": 0.5},
], "min_coverage": 0.5}}  # fmt: skip
ASKED: dict[str, Any] = {"rubrics": RUBRICS, "routes": [{"rubrics": ["reported"]}], "references": []}


def give(scene: Scene, value: float, number: int = 1, *, by: str = "ann", name: str = "Helpful", **more: Any) -> str:
    """Somebody scores a trace, now; the id of the score."""
    id_ = f"{name}-{by}-{number}"
    scene.fake.scores.add(
        id=id_, traceId=trace(number), name=name, value=value, dataType="NUMERIC", source="ANNOTATION",
        authorUserId=by, timestamp=at_ns(scene.now_ns), **more,
    )  # fmt: skip
    return id_


def helpful(scene: Scene, number: int = 1) -> dict[str, Any]:
    return next(each for each in scene.verdict(number)["scores"] if each["metric"] == "helpful")


async def test_a_score_given_changed_and_deleted_the_next_day_revises_yesterdays_verdict(opened):
    scene = await opened(**ASKED)
    await scene.judge()
    monday = scene.verdict()
    assert (monday["revision"], monday["state"], helpful(scene)["status"]) == (1, "incomplete", "unavailable")
    await scene.pass_by(hours=26)
    assert scene.monitor.store.chunks(bytes.fromhex(monday["trace_id"])) == []

    given = give(scene, 0.9)
    await scene.look()
    first = scene.verdict()
    assert (first["revision"], first["passed"], helpful(scene)["value"]) == (2, True, 0.9)
    assert helpful(scene)["details"]["by"] == ["ann (langfuse)"]
    assert first["closed_ns"] == monday["closed_ns"], "windows have it where it was"
    await scene.delivered()
    assert scene.scores()["reported_pass"]["value"] in (1, True)

    await scene.restart()
    await scene.look()
    assert scene.verdict()["revision"] == 2, "a restart revises nothing"

    scene.fake.scores.edit(given, value=0.2)
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict()["passed"]) == (3, False)
    await scene.delivered()
    assert scene.scores()["reported_pass"]["value"] in (0, False)

    scene.fake.scores.remove(given)
    await scene.look()
    gone = scene.verdict()
    assert (gone["revision"], gone["state"], gone["passed"]) == (4, "incomplete", None)
    await scene.until(lambda: "reported_pass" not in scene.scores())


async def test_what_comes_later_than_reevaluate_within_and_what_we_wrote_changes_nothing(opened):
    scene = await opened(**ASKED)
    keys = {**scene.sections["sinks"]["langfuse"], "reevaluate_within": "30h"}
    await scene.restart(sinks={"langfuse": keys})
    await scene.judge()
    await scene.judge(2)
    await scene.pass_by(hours=26)
    give(scene, 0.9, metadata={"written": "2026-01-01T00:00:00.000Z"})
    give(scene, 0.9, by="bob", name="Taste")
    await scene.look()
    assert scene.verdict()["revision"] == 1
    give(scene, 0.9, number=2)
    await scene.look()
    assert scene.verdict(2)["passed"] is True
    scene.now_ns += 5 * HOUR_NS
    give(scene, 0.1, number=2)
    give(scene, 0.1)
    await scene.look()
    assert (scene.verdict()["revision"], scene.verdict(2)["revision"]) == (1, 2)
    assert (await scene.get("/v1/status"))["late_references"]["revised"] == 1


async def test_what_came_with_the_spans_stays_where_they_are_read_again(opened):
    """Langfuse has no events of spans: what others reported there is with the verdict."""
    scene = await opened(**ASKED)
    await scene.judge_with_event("Tone", 0.9, "ragas")
    assert scene.verdict()["passed"] is True
    await scene.pass_by(hours=26)
    give(scene, 0.1)
    await scene.look()
    scores = {each["metric"]: each.get("value") for each in scene.verdict()["scores"]}
    assert (scores, scene.verdict()["revision"]) == ({"helpful": 0.1, "tone": 0.9}, 2)
    assert "reported" not in await scene.story(), "it is content"


async def test_a_rubric_that_asks_from_a_reload_on_has_scores_that_come_then(opened):
    scene = await opened(**{**ASKED, "rubrics": {}, "routes": [{"rubrics": ["run_health"]}]})
    assert (await scene.get("/v1/status"))["late_references"] is None
    config = scene.configured(**{**scene.sections, **ASKED})
    scene.monitor.take_config(config, {"reported": config.declared["reported"]})
    await scene.judge()
    give(scene, 0.9)
    assert scene.monitor.references is not None
    await scene.monitor.references.refresh()
    await scene.until(lambda: scene.verdict()["passed"] is True)
    await scene.pass_by(hours=26)
    give(scene, 0.1, by="bob")
    await scene.look()
    assert (scene.verdict()["passed"], helpful(scene)["value"]) == (False, 0.5)
