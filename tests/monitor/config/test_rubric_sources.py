"""A prompt that cannot be read is replaced by the one that was read last, in this process or in one before it."""

from __future__ import annotations

import pytest

from sidejudge.integrations.store.sqlite import Store
from sidejudge.monitor.config import resolve
from sidejudge.monitor.config.rubric_sources import FACT
from sidejudge.monitor.config.rubrics import configured
from sidejudge.scoring.case.case import Case
from sidejudge.scoring.result.result import Unavailable
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, answer, error, only

PATH = "/v2/prompts/tone"


@pytest.fixture
def fake():
    with FakeLangfuse() as server:
        server.version = 3
        server.routes.append(
            ("GET", PATH, lambda _: answer({"prompt": "Is {{output}} polite?", "version": server.version}))
        )
        yield server


@pytest.fixture
def read(tmp_path, fake):
    """Reads a configuration with one question, as a process that has just begun."""

    def read(label="production", key=PUBLIC_KEY, before=None):
        path = tmp_path / "sidejudge.yaml"
        path.write_text(
            f"store: {{path: {tmp_path / 'state.sqlite'}}}\n"
            f"sinks: {{langfuse: {{base_url: '{fake.base_url}', public_key: {key}, secret_key: {SECRET_KEY}}}}}\n"
            f"rubrics: {{own: {{metrics: [{{id: m, ask: {{langfuse_prompt: tone, label: {label}}}}}]}}}}\n"
        )
        return resolve(path, {}, before)

    return read


@pytest.fixture
async def stored(tmp_path, read):
    """What a process leaves in the store."""
    store = Store(tmp_path / "state.sqlite")
    await store.keep_fact(FACT, read().prompts.to_json())
    store.close()


def metric(loaded):
    return configured(loaded.config)["own"].criteria[0].metric


def shown(loaded):
    (prompt,) = loaded.prompts.snapshots()
    return prompt.state, prompt.used, prompt.reason


WRONG = [error(404, "no such prompt"), error(500, "away"), error(401, "wrong keys")]


@pytest.mark.parametrize("wrong", WRONG, ids=["gone", "down", "refused"])
def test_a_process_that_starts_while_it_cannot_be_read_uses_the_last_one_and_reports_it(fake, read, stored, wrong):
    assert shown(read()) == ("read", "tone v3", "")
    fake.standing_fault = only("GET", PATH, wrong)
    loaded = read()
    assert metric(loaded).source == "Langfuse prompt tone v3"
    state, used, reason = shown(loaded)
    assert (state, used) == ("fallback", "tone v3")
    assert "the prompt tone cannot be read" in reason
    assert loaded.prompts.to_json()["texts"]  # it is left for the next process as well
    fake.standing_fault = None
    assert loaded.prompts.changed() == []
    assert shown(loaded) == ("read", "tone v3", "")


def test_what_another_project_or_label_had_is_nothing_to_fall_back_on(fake, read, stored):
    fake.standing_fault = only("GET", PATH, error(500, "away"))
    for loaded in (read(key="pk-lf-other"), read(label="staging")):
        assert shown(loaded)[:2] == ("missing", None)
        assert isinstance(metric(loaded).measure(Case(case_id="c", model_output="x")), Unavailable)


def test_a_running_process_reports_the_fallback_and_its_end(fake, read):
    loaded = read()
    fake.standing_fault = only("GET", PATH, error(500, "away"))
    assert loaded.prompts.changed() == []
    assert shown(loaded)[:2] == ("fallback", "tone v3")
    again = read(before=loaded.prompts)
    assert shown(again)[:2] == ("fallback", "tone v3")
    fake.standing_fault, fake.version = None, 4
    assert again.prompts.changed() == ["tone"]
    assert shown(read(before=again.prompts)) == ("read", "tone v4", "")


@pytest.mark.parametrize("text", ["", "no database at all"])
def test_a_store_that_cannot_be_read_is_no_store(tmp_path, fake, read, text):
    (tmp_path / "state.sqlite").write_text(text)
    fake.standing_fault = only("GET", PATH, error(500, "away"))
    assert shown(read())[0] == "missing"
