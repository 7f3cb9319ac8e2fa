"""A monitor that starts while Langfuse is away asks with the prompt that was read last, and shows so."""

from __future__ import annotations

import json

from sidejudge.integrations.store.archive import read_fact
from sidejudge.monitor.config.rubric_sources import FACT
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, answer, database_away


def test_the_last_prompt_outlives_the_process_and_the_fallback_is_shown(serving, call):
    with FakeLangfuse() as fake:
        fake.routes.append(
            ("GET", "/v2/prompts/tone", lambda _: answer({"prompt": "Is {{output}} fine?", "version": 3}))
        )
        sink = {"base_url": fake.base_url, "public_key": PUBLIC_KEY, "secret_key": SECRET_KEY, "timeout": "2s"}
        monitor = serving(
            sinks={"langfuse": sink},
            rubrics={"own": {"metrics": [{"id": "polite", "ask": {"langfuse_prompt": "tone", "label": "live"}}]}},
        )
        prompts = lambda: monitor.get("/v1/status")["prompts"]  # noqa: E731  # read in three places
        assert prompts() == [
            {"name": "tone", "requested": "label live", "used": "tone v3", "state": "read", "reason": ""}
        ]
        monitor.until(lambda: 'connection="langfuse_prompts",state="ok"} 1.0' in metrics(monitor), "no metric")
        store = monitor.folder / "state.sqlite"
        monitor.until(lambda: read_fact(store, FACT) is not None, "the prompt was not kept")
        monitor.stop()
        fake.standing_fault = database_away()
        monitor.start()
        (prompt,) = prompts()
        assert (prompt["state"], prompt["used"]) == ("fallback", "tone v3")
        assert 'connection="langfuse_prompts",state="retrying"} 1.0' in metrics(monitor)
        config = str(monitor.folder / "sidejudge.yaml")
        assert "tone v3, read before, is used" in call("status", "--url", monitor.api).output
        rows = json.loads(call("doctor", "--config", config, "--format", "json").stdout)
        (row,) = [each for each in rows if each["what"] == "prompt tone"]
        assert row["grade"] == "warn"
        assert "tone v3, read before, is used" in row["found"]


def metrics(monitor):
    return monitor.http.get(monitor.api + "/metrics").text
