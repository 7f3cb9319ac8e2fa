"""Mistakes in ``config`` fail where the chart is installed, and secrets in the open are refused, whatever their key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helm.config_schema import secrets
from tests.helm.engine import Refused
from tests.helm.generate import CHART, HELM

OPEN = {"webhook", "public_key"}
"""What may be shown: an address or a header that holds a secret or does not, and a key that is public."""


def nested(path: tuple[str, ...], value: str) -> dict[str, Any]:
    made: Any = value
    for name in reversed(path):
        made = [made] if name == "0" else {"any" if name == "*" else name: made}
    return {"config": made}


@pytest.mark.parametrize(
    ("config", "states"),
    [
        ({"samplng": {"rate": 1.0}}, "samplng"),
        ({"sampling": {"rate": 7}}, "rate"),
        ({"sampling": {"rate": "often"}}, "rate"),
        ({"api": {"listen": "8790"}}, "listen"),
        ({"api": {"contents": "sometimes"}}, "contents"),
        ({"alerts": {"notify": [{"pagerdty": {}}]}}, "pagerdty"),
        ({"routes": {"rubrics": ["qa"]}}, "routes"),
        ({"evaluators": {"judge": {"model": "openai/gpt-5.2", "retires": 3}}}, "retires"),
    ],
)
def test_a_mistake_in_the_configuration_fails_before_there_is_a_pod(engine, config, states):
    with pytest.raises(Refused, match=states):
        engine.render(CHART, {"config": config})


@pytest.mark.parametrize(
    "config",
    [
        {"sampling": {"rate": "${RATE}"}, "api": {"contents": "${WHO}", "reload": "${RELOAD:-true}"}},
        {"drain": None, "store": {"retention": "2h"}},
        {"scenarios": "scenarios.yaml", "alerts": {"thresholds": {"warning": 0.9, "critical": 0.8}}},
        {"evaluators": {"judge": {"timeout": "20s"}}},  # the model may come from the environment
    ],
)
def test_references_to_the_environment_and_what_it_may_bring_are_let_through(engine, config):
    assert engine.render(CHART, {"config": config}).configuration


def test_no_key_that_holds_a_secret_is_let_through_in_the_open(engine):
    paths = [path for path in secrets() if not OPEN & set(path) and path[-1] != "*"]
    assert {path[-1] for path in paths} >= {"routing_key", "key", "password", "token", "secret_key", "authorization"}
    for path in paths:
        with pytest.raises(Refused, match="holds a secret in the open") as refusal:
            engine.render(CHART, nested(path, "s3cret-in-the-open"))
        assert "s3cret-in-the-open" not in str(refusal.value)


def test_a_volume_in_memory_that_would_end_the_container_is_refused(engine):
    too_large = {"gateway": {"state": {"sizeLimit": "2Gi", "medium": "Memory"}}}
    with pytest.raises(Refused, match="counts against the memory limit"):
        engine.render(CHART, too_large)
    assert engine.render(
        CHART, {**too_large, "gateway": {**too_large["gateway"], "resources": {"limits": {"memory": "8Gi"}}}}
    )
    sidecar = {"sidejudge-sidecar": {"state": {"medium": "Memory"}}}  # 1Gi by default, of 512Mi
    with pytest.raises(Refused, match="counts against the memory limit"):
        engine.render(HELM / "examples" / "otel-app", sidecar)


@pytest.mark.parametrize("release", ["123", "1e5", "true", "null", "0x1f"])
def test_a_release_may_be_called_what_yaml_reads_otherwise(engine, release):
    for chart in (CHART, HELM / "examples" / "otel-app"):
        for each in engine.render(chart, {}, release=release).everything:
            stated = each["metadata"]
            texts = [stated["name"], stated.get("namespace", ""), *(stated.get("labels") or {}).values()]
            assert all(isinstance(text, str) for text in texts), (each["kind"], texts)
            assert each["kind"] != "Service" or stated["name"][0].isalpha()


def test_the_notes_say_where_the_rules_cannot_follow_the_configuration(engine):
    alerts = {"window": "30m", "mode": "point"}
    elsewhere = {"existingConfigMap": {"name": "mine"}}
    said = "the chart does not see what mine holds"
    assert said in engine.render(CHART, elsewhere).notes
    assert said not in engine.render(CHART, elsewhere | {"monitoring": {"alerts": alerts}}).notes
    followed = engine.render(CHART, {"config": {"alerts": alerts}}).notes
    assert "WARNING" not in followed
    assert "Rules and boards are made for the defaults" not in followed
