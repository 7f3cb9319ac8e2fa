"""The variant with a judge, from its lock: nothing is resolved, nothing but /tmp and the state is written."""

from __future__ import annotations

import httpx
import pytest

from monitor.demo.traffic import Traffic
from tests.fakes.judge import judges
from tests.fakes.openai import Provider
from tests.image.container import Container, send
from tests.image.sandbox import missing

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.timeout(600),  # its environment is made here, of 300 MB of wheels
]


def test_a_judge_is_asked_from_a_read_only_root(tmp_path, installed_judge):
    container = Container(tmp_path, installed_judge)
    with Provider(judges()) as provider:
        judge = {"model": "openai/gpt-4o-mini", "api_base": provider.url, "api_key": "none"}
        container.configure({"answerers": {"judge": judge}, "routes": [{"rubrics": ["quality"]}]})
        container.start()
        try:
            trace_id, status = send(container.otlp, Traffic(5))
            assert status == 200
            assert container.settled()["ended"]["scored"] == 1
            story = httpx.get(f"{container.api}/v1/traces/{trace_id}", trust_env=False).json()
            assert "judge" in {score["method"] for verdict in story["verdicts"] for score in verdict["scores"]}
            assert container.end() == 0
        finally:
            container.process.kill()
            container.process.wait()
    assert {path.name.split(".")[0] for path in container.state.rglob("*") if path.is_file()} == {"sidejudge"}
