"""A StatefulSet of several Pods gets a Collector in front that keeps the spans of a trace together."""

from __future__ import annotations

import pytest
import yaml

from tests.helm.engine import Refused
from tests.helm.generate import CHART

FLEET = {"gateway": {"kind": "StatefulSet", "replicaCount": 3}}


def gateway_config(rendered):
    return yaml.safe_load(rendered.one("ConfigMap", "rel-sidejudge")["data"]["sidejudge.yaml"])


def test_three_pods_of_a_stateful_set_are_routed_to_by_trace_id(engine):
    rendered = engine.render(CHART, FLEET)
    collector = yaml.safe_load(rendered.one("ConfigMap", "rel-sidejudge-router")["data"]["collector.yaml"])
    exporter = collector["exporters"]["loadbalancing"]
    assert exporter["routing_key"] == "traceID"
    headless = rendered.one("Service", "rel-sidejudge-headless")
    host, port = exporter["resolver"]["dns"]["hostname"], int(exporter["resolver"]["dns"]["port"])
    assert host == f"rel-sidejudge-headless.{headless['metadata']['namespace']}.svc"
    assert headless["spec"]["clusterIP"] == "None"
    assert port in {each["port"] for each in headless["spec"]["ports"]}
    pipelines = collector["service"]["pipelines"]
    assert pipelines["traces"]["processors"] == ["memory_limiter", "groupbytrace"]
    for pipeline in pipelines.values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) <= collector[kind].keys()
    stateful = rendered.one("StatefulSet", "rel-sidejudge")["spec"]
    assert (stateful["replicas"], stateful["serviceName"]) == (3, "rel-sidejudge-headless")
    config = gateway_config(rendered)
    assert config["sources"]["otlp"]["grpc"] == f"0.0.0.0:{port}"
    router = rendered.one("Service", "rel-sidejudge-router")
    ports = {each["port"] for each in router["spec"]["ports"]}
    assert config["drain"]["to"] == f"http://rel-sidejudge-router.{router['metadata']['namespace']}.svc:4318"
    assert {4317, 4318} <= ports


def test_sessions_are_routed_by_their_attribute_and_settings_of_ones_own_win(engine):
    values = {
        **FLEET, "router": {"attributes": ["session.id"], "gather": "30s"},
        "config": {"drain": {"timeout": "9s"}, "sources": {"otlp": {"grpc": "0.0.0.0:4400"}}},
    }  # fmt: skip
    rendered = engine.render(CHART, values)
    collector = yaml.safe_load(rendered.one("ConfigMap", "rel-sidejudge-router")["data"]["collector.yaml"])
    exporter = collector["exporters"]["loadbalancing"]
    assert (exporter["routing_key"], exporter["routing_attributes"]) == ("attributes", ["session.id"])
    assert exporter["resolver"]["dns"]["port"] == "4400"
    assert collector["processors"]["groupbytrace"]["wait_duration"] == "30s"
    assert gateway_config(rendered)["drain"]["timeout"] == "9s"
    assert gateway_config(rendered)["drain"]["to"].endswith("-router.shop.svc:4318")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"gateway": {"replicaCount": 3}},
        {**FLEET, "router": {"enabled": False}},
        {"gateway": {"kind": "StatefulSet", "replicaCount": 1}},
    ],
)
def test_elsewhere_there_is_no_router_unless_it_is_asked_for(engine, values):
    names = {each["metadata"]["name"] for each in engine.render(CHART, values).objects}
    assert "rel-sidejudge-router" not in names
    asked = engine.render(CHART, {**values, "router": {"enabled": True}})
    assert asked.one("Deployment", "rel-sidejudge-router")


def test_the_database_of_a_fleet_stands_in_no_config_map(engine):
    with pytest.raises(Refused, match="holds a secret in the open"):
        engine.render(CHART, {**FLEET, "config": {"fleet": {"database": "postgresql://a:b@db/fleet"}}})
