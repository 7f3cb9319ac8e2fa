"""A StatefulSet of several Pods gets a Collector in front that keeps the spans of a trace together."""

from __future__ import annotations

import copy
import subprocess

import pytest
import yaml

from sidejudge.monitor.config import load
from tests.helm.collector_keys import wrong
from tests.helm.engine import Refused
from tests.helm.generate import CHART, HELM
from tests.needs import COLLECTOR

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
    assert pipelines["traces"]["processors"] == ["memory_limiter"], "nothing is gathered that its end would lose"
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
    otlp = next(each["port"] for each in headless["spec"]["ports"] if each["name"] == "otlp-http")
    assert config["peers"]["addresses"] == [f"http://{host}:{otlp}"]


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
    assert gateway_config(rendered)["peers"]["settle"] == "45s", "what is gathered goes by the old number of Pods"
    pod = rendered.one("Deployment", "rel-sidejudge-router")["spec"]["template"]["spec"]
    slept = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert 30 < slept < pod["terminationGracePeriodSeconds"], "what is gathered goes on before it ends"


def collector_of(engine, values):
    rendered = engine.render(CHART, {**FLEET, **values})
    return yaml.safe_load(rendered.one("ConfigMap", "rel-sidejudge-router")["data"]["collector.yaml"])


@pytest.mark.parametrize("router", [{}, {"attributes": ["session.id"]}, {"gather": "5s"}])
def test_the_collector_knows_every_key_of_its_configuration(engine, router):
    assert wrong(collector_of(engine, {"router": router})) == []


def test_so_it_does_of_the_one_for_other_ways_to_install():
    assert wrong(yaml.safe_load((HELM / "collector" / "collector.yaml").read_text())) == []


def test_a_wrong_key_or_name_is_noticed(engine):
    config = collector_of(engine, {})
    for change, problem in {
        lambda each: each["exporters"]["loadbalancing"].update(retries=1): "retries is unknown",
        lambda each: each["exporters"]["loadbalancing"]["resolver"]["dns"].update(port=4317): "dns.port",
        lambda each: each["exporters"]["loadbalancing"].update(routing_key="attributes"): "go with",
        lambda each: each["exporters"]["loadbalancing"]["protocol"]["otlp"]["sending_queue"].update(
            enabled=True
        ): "lost",
        lambda each: each["service"]["pipelines"]["logs"].update(processors=["batch"]): "is not declared",
    }.items():
        changed = copy.deepcopy(config)
        change(changed)
        assert any(problem in each for each in wrong(changed)), problem


@COLLECTOR.mark
@pytest.mark.parametrize("router", [{}, {"attributes": ["session.id"]}, {"gather": "5s"}])
def test_a_collector_takes_its_configuration(engine, tmp_path, router):
    path = tmp_path / "collector.yaml"
    path.write_text(yaml.safe_dump(collector_of(engine, {"router": router})))
    done = subprocess.run(
        [COLLECTOR.path(), "validate", f"--config={path}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_gateway_takes_what_the_chart_configures_for_several_pods(engine, tmp_path):
    path = tmp_path / "sidejudge.yaml"
    path.write_text(yaml.safe_dump(gateway_config(engine.render(CHART, FLEET))))
    config = load(path, {"POD_NAME": "rel-sidejudge-0"})
    assert config.peers.settle.seconds >= 2 * 5
    grace_s = engine.render(CHART, FLEET).one("StatefulSet", "rel-sidejudge")["spec"]["template"]["spec"]
    assert config.drain.timeout.seconds < grace_s["terminationGracePeriodSeconds"]


@pytest.mark.parametrize(
    ("values", "budgets"),
    [
        ({}, set()),
        (FLEET, {"rel-sidejudge", "rel-sidejudge-router"}),
        ({**FLEET, "router": {"replicaCount": 1}}, {"rel-sidejudge"}),
        ({"gateway": {"replicaCount": 3}}, {"rel-sidejudge"}),
        ({"gateway": {**FLEET["gateway"], "pdb": {"enabled": False}}}, set()),
    ],
)
def test_several_pods_are_not_evicted_at_once(engine, values, budgets):
    objects = engine.render(CHART, values).objects
    assert {each["metadata"]["name"] for each in objects if each["kind"] == "PodDisruptionBudget"} == budgets


def test_a_network_policy_lets_the_pods_and_the_collector_talk_to_each_other(engine):
    values = {
        **FLEET,
        "networkPolicy": {"enabled": True, "otlpFrom": [{"podSelector": {"matchLabels": {"app": "shop"}}}]},
    }
    rendered = engine.render(CHART, values)
    policy = rendered.one("NetworkPolicy", "rel-sidejudge")["spec"]
    router = rendered.one("Deployment", "rel-sidejudge-router")["spec"]["template"]["metadata"]["labels"]
    (taken,) = [each for each in policy["ingress"] if {"port": 4317, "protocol": "TCP"} in each["ports"]]
    (sent,) = [each for each in policy["egress"] if "to" in each]
    for peers in (taken["from"], sent["to"]):
        assert any(each["podSelector"]["matchLabels"].items() <= router.items() for each in peers)


def test_who_may_send_is_asked_at_the_collector_in_front_too(engine):
    shop = {"podSelector": {"matchLabels": {"app": "shop"}}}
    values = {**FLEET, "networkPolicy": {"enabled": True, "otlpFrom": [shop]}}
    rendered = engine.render(CHART, values)
    router = rendered.one("Deployment", "rel-sidejudge-router")["spec"]["template"]["metadata"]["labels"]
    gateway = rendered.one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    policy = rendered.one("NetworkPolicy", "rel-sidejudge-router")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= router.items()
    assert not policy["podSelector"]["matchLabels"].items() <= gateway.items()
    (taken,) = policy["ingress"]
    assert {port["port"] for port in taken["ports"]} == {4317, 4318}
    others = [each for each in taken["from"] if each != shop]
    assert shop in taken["from"]
    assert all(each["podSelector"]["matchLabels"].items() <= gateway.items() for each in others), (
        "what gateways hand over"
    )
    assert any(each["podSelector"]["matchLabels"].items() <= gateway.items() for each in policy["egress"][1]["to"])
    open_to_all = engine.render(CHART, {**FLEET, "networkPolicy": {"enabled": True}})
    assert open_to_all.one("NetworkPolicy", "rel-sidejudge-router")["spec"]["ingress"][0]["from"][0] == {
        "podSelector": {}
    }


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
