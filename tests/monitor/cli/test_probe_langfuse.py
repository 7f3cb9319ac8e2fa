"""``doctor`` and ``check --probe`` ask Langfuse for what a configuration names there."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.fakes.langfuse import datasets
from tests.fakes.langfuse.queues import queues
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, answer


@pytest.fixture
def fake():
    with FakeLangfuse(parts=[datasets.part, queues]) as server:
        datasets.datasets_of(server)["golden"] = []
        server.queues.add("doubtful")
        server.routes.append(
            ("GET", "/v2/prompts/tone", lambda _: answer({"prompt": "Is {{output}} polite?", "version": 3}))
        )
        yield server


@pytest.fixture
def config(tmp_path, fake):
    def write(*, dataset="golden", queue="doubtful", prompt="tone", secret=SECRET_KEY):
        stated = {
            "sinks": {"langfuse": {
                "base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": secret,
                "annotation_queue": {"name": queue},
            }},
            "references": [{"langfuse_dataset": dataset}],
            "rubrics": {"own": {"metrics": [{"id": "polite", "ask": {"langfuse_prompt": prompt}}]}},
        }  # fmt: skip
        path = tmp_path / "sidejudge.yaml"
        path.write_text(yaml.safe_dump(stated))
        return path

    return write


@pytest.mark.parametrize(
    ("wrong", "subject", "stated"),
    [
        ({}, None, ""),
        ({"dataset": "silver"}, "dataset silver", "is not in the project"),
        ({"queue": "unsure"}, "annotation queue unsure", "is not in the project"),
        ({"prompt": "tune"}, "prompt tune", "there is no such prompt"),
        ({"secret": "sk-wrong"}, "sinks.langfuse", "keys refused"),
    ],
    ids=str,
)
def test_what_is_named_and_not_there_is_found_by_name(call, config, wrong, subject, stated):
    done = call("check", config(**wrong), "--probe", "--format", "json")
    rows = {each["what"]: each for each in json.loads(done.stdout)["probed"]}
    failed = [what for what, each in rows.items() if each["grade"] == "fail"]
    assert done.exit_code == int(subject is not None), done.stderr
    if subject is None:
        assert failed == []
        assert "project Test Project" in rows["sinks.langfuse"]["found"]
        assert {"dataset golden", "annotation queue doubtful", "prompt tone", "clock of Langfuse"} <= rows.keys()
    else:
        assert subject in failed
        assert stated in rows[subject]["found"]
        assert rows[subject]["remedy"]


@pytest.mark.parametrize(
    ("held", "subject", "stated"),
    [
        ({"name": "own_pass", "dataType": "CATEGORICAL"}, "score config own_pass", "type CATEGORICAL, its scores are"),
        ({"name": "own_score", "dataType": "NUMERIC", "maxValue": 0.5}, "score config own_score", "does not allow"),
        ({"name": "own_score", "dataType": "NUMERIC"}, "score configs", "1 with another description than ours"),
        ({"name": "of_somebody", "dataType": "CATEGORICAL"}, None, ""),
    ],
    ids=str,
)
def test_score_configs_of_an_earlier_version_are_a_warning_and_no_failure(call, config, fake, held, subject, stated):
    plain = {"minValue": None, "maxValue": None, "categories": None, "description": "as it was", "isArchived": False}
    fake.configs.all.append({"id": "c1", "createdAt": fake.now, **plain, **held})
    done = call("check", config(), "--probe", "--format", "json")
    rows = {each["what"]: each for each in json.loads(done.stdout)["probed"]}
    warned = {what for what, each in rows.items() if each["grade"] == "warn" and what.startswith("score config")}
    assert done.exit_code == 0
    assert warned == ({subject} if subject else set())
    assert subject is None or (stated in rows[subject]["found"] and "archive" in rows[subject]["remedy"])
    assert fake.requested("POST", "/score-configs") == [], "looking changes nothing"


def test_clocks_that_differ_are_told(call, config, fake):
    fake.standing_fault = lambda request: (
        answer({"status": "OK", "version": "4.62.0"}, date="Sun, 22 Nov 2020 10:00:00 GMT")
        if request.path == "/health"
        else None
    )
    done = call("check", config(), "--probe")
    assert done.exit_code == 1
    assert "s behind ours" in " ".join(done.stdout.split())
