"""The variant with a judge, from its lock: nothing is resolved, nothing but /tmp and the state is written."""

from __future__ import annotations

import os
import time

import httpx
import pytest

from sidejudge.monitor.demo.traffic import SampleTrace, SampleTraffic
from tests.fakes.judge import judges
from tests.fakes.openai import Provider
from tests.image.container import ANSWERS_S, Container, send
from tests.image.sandbox import missing

pytestmark = [
    pytest.mark.skipif("IMAGE" not in os.environ, reason="half a minute for the image with a judge; make image"),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.timeout(600),  # its environment is made here, of 300 MB of wheels
]

PATIENCE_S = 180
"""litellm takes its time to load where others want the machine too."""


class AgentTraffic(SampleTraffic):
    """Runs of agents alone: what their tools returned is the source that an answer is judged by."""

    def next(self, now_ns: int, wrong: float) -> SampleTrace:
        while True:
            sent = super().next(now_ns, wrong)
            if sent.service == "research-assistant":
                return sent


@pytest.fixture
def provider():
    with Provider(judges()) as running:
        yield running


@pytest.fixture
def container(tmp_path, installed_judge, provider):
    made = Container(tmp_path, installed_judge)
    judge = {"model": "openai/gpt-4o-mini", "api_base": provider.url, "api_key": "none"}
    made.configure({"evaluators": {"judge": judge}, "routes": [{"rubrics": ["quality"]}]})
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.wait()


def story(container: Container, trace_id: str):
    return httpx.get(f"{container.api}/v1/traces/{trace_id}", trust_env=False, timeout=ANSWERS_S).json()


def test_a_judge_is_asked_from_a_read_only_root(container):
    container.start()
    trace_id, status = send(container.otlp, AgentTraffic(5))
    assert status == 200
    assert container.settled(PATIENCE_S)["ended"]["scored"] == 1
    verdicts = story(container, trace_id)["verdicts"]
    assert "judge" in {score["method"] for verdict in verdicts for score in verdict["scores"]}
    assert container.end() == 0
    assert {path.name.split(".")[0] for path in container.state.rglob("*") if path.is_file()} == {"sidejudge"}


def test_killed_while_a_judge_is_asked_it_asks_again_and_nothing_that_was_acknowledged_is_lost(container, provider):
    provider.standing = judges(delay_s=60)
    container.start()
    traffic = AgentTraffic(5)
    acknowledged = [trace_id for trace_id, status in (send(container.otlp, traffic) for _ in range(5)) if status == 200]
    assert len(acknowledged) == 5
    end = time.monotonic() + PATIENCE_S
    while not provider.seen:
        assert time.monotonic() < end, container.log.read_text()
        time.sleep(0.05)
    container.end(grace_s=2.0)
    provider.standing = judges()
    container.start()
    container.settled(PATIENCE_S)
    assert {story(container, trace_id)["reason"] for trace_id in acknowledged} == {"scored"}
