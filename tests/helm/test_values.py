"""What the chart refuses, and that every value does what it says."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from sidejudge.integrations.prometheus.families import FAMILIES
from sidejudge.monitor.config import Config
from sidejudge.monitor.config.document import read_document
from sidejudge.monitor.config.environment import read_environment
from tests.helm.checks import containers, pod_specs
from tests.helm.engine import Refused
from tests.helm.generate import CHART, LIBRARY, cases

DIGEST = "sha256:" + "0" * 64


def deployment(rendered) -> dict[str, Any]:
    return rendered.one("Deployment")


def checksum(rendered) -> str:
    return deployment(rendered)["spec"]["template"]["metadata"]["annotations"]["checksum/config"]


@pytest.mark.parametrize(
    ("values", "states"),
    [
        ({"gatway": {}}, "'gatway' not allowed"),
        ({"gateway": {"replicas": 2}}, "'replicas' not allowed"),
        ({"image": {"digest": "latest"}}, "does not match pattern"),
        ({"image": {"variant": "gpu"}}, "must be one of"),
        ({"gateway": {"kind": "DaemonSet"}}, "must be one of"),
        ({"gateway": {"state": {"sizeLimit": "much"}}}, "does not match pattern"),
        ({"monitoring": {"rules": {"enabled": "perhaps"}}}, "must be one of"),
        ({"secrets": {"judge": {"existingSecret": "a", "values": {}}}}, "'values' not allowed"),
        ({"secrets": {"judge": {"keys": {}}}}, "missing property 'existingSecret'"),
        ({LIBRARY.name: {"no": 1}}, "'no' not allowed"),
        ({"config": {"log": {"level": "debug"}}, "existingConfigMap": {"name": "b"}}, "both set"),
        ({"config": {"store": {"max_bytes": "5GiB"}}}, "must be less than state.sizeLimit"),
        ({"config": {"forward": {"url": "http://up", "buffer": "3GiB"}}}, "together must be less than state.sizeLimit"),
        ({"gateway": {"state": {"sizeLimit": "1Gi"}}, "config": {
            "store": {"max_bytes": "0.6GiB"}, "forward": {"url": "http://up", "buffer": "0.6GiB"},
        }}, "together must be less than state.sizeLimit"),
        ({"config": {"sinks": {"langfuse": {"secret_key": "sk-lf-1"}}}}, "langfuse.secret_key holds a secret"),
        ({"config": {"sources": {"otlp": {"auth": {"bearer": ["${A}", "b"]}}}}}, r"auth.bearer\[1\] holds"),
        ({"config": {"alerts": {"notify": [{"slack": {"url": "https://x"}}]}}}, r"notify\[0\].slack.url holds"),
        ({"config": {"sources": {"otlp": {"auth": {"basic": {"me": "pw"}}}}}}, r"auth.basic.me holds"),
        ({"config": {"alerts": {"notify": [{"webhook": {"secret": "x"}}]}}}, r"notify\[0\].webhook.secret holds"),
        ({"router": {"enabled": True}, "config": {"sources": {"otlp": {"auth": {"bearer": ["${A}"]}}}}},
         "sources.otlp.auth asks for credentials, and the Collector in front sends none"),
        ({"router": {"enabled": True}, "config": {"sources": {"otlp": {"tls": {"certificate": "/c", "key": "/k"}}}}},
         "sources.otlp.tls asks for TLS"),
        ({"monitoring": {"podMonitor": {"enabled": True}, "serviceMonitor": {"enabled": True}}}, "scraped twice"),
        ({"httpRoute": {"enabled": True, "hostnames": ["a"]}}, r"httpRoute\.parentRefs is empty"),
        ({"gateway": {"autoscaling": {"kind": "hpa", "minReplicas": 8}}}, r"minReplicas \(8\) is above .*maxReplicas"),
        ({"gateway": {"autoscaling": {"kind": "keda", "maxReplicas": 1}}}, r"minReplicas \(2\) is above .*\(1\)"),
        ({"config": {"api": {"listen": "127.0.0.1:8790"}}}, r"config\.api\.listen .* gateway\.probes"),
        ({"config": {"api": {"tls": {"certificate": "/c", "key": "/k", "client_ca": "/ca"}}}},
         r"config\.api\.tls\.client_ca asks for certificates"),
        ({"config": {"sources": {"otlp": {"http": "[::1]:4318"}}}}, r"config\.sources\.otlp\.http .* 0\.0\.0\.0"),
        ({"config": {"sources": {"otlp": {"grpc": "0.0.0.0:4318"}}}}, r"otlp\.grpc .* 8790, 4318, 4318"),
        ({"config": {"api": {"listen": "0.0.0.0:${PORT}"}}}, r"config\.api\.listen .* states no port"),
        ({"config": {"sources": {"otlp": {"http": "0.0.0.0:0"}}}}, r"sources\.otlp\.http .* states no port"),
        ({"router": {"enabled": True}, "config": {"sources": {"otlp": {"grpc": None}}}}, "grpc is null"),
        ({"config": {"store": {"max_bytes": None}}}, r"config\.store\.max_bytes is null"),
        ({"extraVolumes": [{"name": "sidejudge-tmp", "emptyDir": {}}]}, r"extraVolumes: sidejudge-tmp .* another name"),
        ({"gateway": {"kind": "StatefulSet"}, "extraVolumes": [{"name": "sidejudge-state", "emptyDir": {}}]},
         r"extraVolumes: sidejudge-state .* another name"),
        ({"extraVolumes": [{"name": "a", "emptyDir": {}}, {"name": "a", "secret": {"secretName": "a"}}]},
         r"extraVolumes: a .* another name"),
        ({"extraVolumeMounts": [{"name": "a", "mountPath": "/etc/sidejudge/"}]},
         r"extraVolumeMounts: /etc/sidejudge/ .* another path"),
        ({"extraContainers": [{"name": "sidejudge", "image": "a"}]}, r"a container sidejudge .* another name"),
        ({"extraContainers": [{"name": "a", "image": "a"}], "initContainers": [{"name": "a", "image": "a"}]},
         r"a container a .* another name"),
        ({"config": {"drain": {"timeout": "1m"}}}, r"drain\.timeout \(1m\) .*terminationGracePeriodSeconds \(30\)"),
        ({"config": {"drain": {"timeout": "1m30s"}}}, r"drain\.timeout \(1m30s\) .*GracePeriodSeconds \(30\)"),
        ({"secrets": {name: {"existingSecret": name, "keys": {"K": "k"}} for name in "ab"}},
         r"secrets\.b\.keys\.K: secrets\.a sets"),
        ({"secrets": {"a": {"existingSecret": "s", "keys": {"K": "k"}}}, "extraEnv": [{"name": "K", "value": "v"}]},
         r"extraEnv: secrets\.a\.keys\.K"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_name(engine, values, states):
    with pytest.raises(Refused, match=states):
        engine.render(CHART, values)


def test_umbrella_charts_may_hand_down_global_and_enabled(engine):
    values = {"global": {"imageRegistry": "mirror.example.com", "anything": {"else": 1}}, "enabled": True}
    (pod,) = pod_specs(deployment(engine.render(CHART, values)))
    assert pod["containers"][0]["image"].startswith("mirror.example.com/")


def test_a_secret_by_reference_is_let_through_and_lies_in_no_config_map(engine):
    rendered = engine.render(
        CHART,
        {
            "config": {
                "sinks": {"langfuse": {"secret_key": "${LANGFUSE_SECRET_KEY}"}},
                "scenarios": {"a": {"max_tokens": 5, "token": ""}},
            },
            "secrets": {"langfuse": {"existingSecret": "keys", "keys": {"LANGFUSE_SECRET_KEY": "secret-key"}}},
        },
    )
    text = rendered.configuration["sidejudge.yaml"]
    assert yaml.safe_load(text)["sinks"]["langfuse"]["secret_key"] == "${LANGFUSE_SECRET_KEY}"
    (pod,) = pod_specs(deployment(rendered))
    reference = {"secretKeyRef": {"name": "keys", "key": "secret-key"}}
    assert {"name": "LANGFUSE_SECRET_KEY", "valueFrom": reference} in pod["containers"][0]["env"]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ({"registry": "r.io"}, "r.io/sidejudge/sidejudge:0.2.0"),
        ({"registry": ""}, "sidejudge/sidejudge:0.2.0"),
        ({"repository": "mine"}, "registry.example.com/mine:0.2.0"),
        ({"tag": "1.2"}, "registry.example.com/sidejudge/sidejudge:1.2"),
        ({"variant": "judge"}, "registry.example.com/sidejudge/sidejudge:0.2.0-judge"),
        ({"tag": "1.2", "digest": DIGEST}, f"registry.example.com/sidejudge/sidejudge@{DIGEST}"),
    ],
)
def test_every_part_of_the_image_can_be_set_and_all_containers_have_it(engine, image, name):
    rendered = engine.render(CHART, {"image": {**image, "pullPolicy": "Always"}})
    used = {
        (container["image"], container["imagePullPolicy"])
        for obj in rendered.everything
        for pod in pod_specs(obj)
        for container in containers(pod)
    }
    assert used == {(name, "Always")}


def test_the_checksum_changes_with_the_configuration_and_with_nothing_else(engine):
    before = checksum(engine.render(CHART))
    assert checksum(engine.render(CHART, {"config": {"sampling": {"rate": 0.5}}})) != before
    assert checksum(engine.render(CHART, {"gateway": {"state": {"sizeLimit": "8Gi"}}})) != before, "it sets the cap"
    assert checksum(engine.render(CHART, {"podLabels": {"a": "b"}, "gateway": {"replicaCount": 3}})) == before
    assert checksum(engine.render(CHART, {"config": {"api": {"listen": "0.0.0.0:8790"}}})) == before


def test_what_the_monitor_reloads_by_itself_rolls_no_pod_unless_that_is_off(engine):
    rubrics = {
        "rubrics": {"own": {"metrics": [{"id": "a", "check": {"contains": "x"}}]}}, "routes": [{"rubrics": ["own"]}],
        "default_rubrics": ["own"], "scenarios": {"s": {"tools_should_include": ["a"]}},
    }  # fmt: skip
    off = {"reload": {"watch": False}}
    assert checksum(engine.render(CHART, {"config": rubrics})) == checksum(engine.render(CHART))
    assert checksum(engine.render(CHART, {"config": rubrics | off})) != checksum(engine.render(CHART, {"config": off}))
    (written,) = engine.render(CHART, {"config": rubrics}).one("ConfigMap", "rel-sidejudge")["data"].values()
    assert read_document(written, None, "file").value["reload"] == {"watch": True}


def test_a_configmap_of_ones_own_is_watched_unless_that_is_off(engine):
    def watched(**more):
        rendered = engine.render(CHART, {"existingConfigMap": {"name": "mine", **more}})
        (pod,) = pod_specs(deployment(rendered))
        env = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
        return env["SIDEJUDGE_RELOAD__WATCH"]

    assert (watched(), watched(watch=False)) == ("true", "false")


@pytest.mark.parametrize(
    ("more", "of"),
    [
        ({"ingress": {"enabled": True, "hosts": ["a.example"]}}, {("drain", "timeout"): "25s"}),
        ({"gateway": {"kind": "StatefulSet", "replicaCount": 3}}, {
            ("drain", "to"): "http://rel-sidejudge-router.shop.svc:4318", ("sources", "otlp", "grpc"): "0.0.0.0:4317",
            ("peers", "addresses"): ["http://rel-sidejudge-headless.shop.svc:4318"],
        }),
    ],
)  # fmt: skip
def test_what_the_surroundings_decide_is_set_beside_a_configmap_of_ones_own(engine, more, of):
    rendered = engine.render(CHART, {"existingConfigMap": {"name": "mine"}, **more})
    (pod,) = pod_specs(rendered.one(more.get("gateway", {}).get("kind", "Deployment"), "rel-sidejudge"))
    read = read_environment({each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]})
    assert read.problems == []
    assert of.items() <= read.values.items()
    assert ("alerts", "links", "runbooks") not in read.values, "the file may name others"


@pytest.mark.parametrize(
    "config", [{"store": {"max_bytes": "${N}"}}, {"forward": {"url": "http://up", "buffer": "${N}"}}]
)
def test_a_size_may_come_from_the_environment(engine, config):
    assert "${N}" in engine.render(CHART, {"config": config}).configuration["sidejudge.yaml"]


def test_a_configuration_arrives_as_it_was_written(engine):
    stated = {
        "assembly": {"max_open_bytes": 12345678901, "grace": "2s"}, "sampling": {"rate": 1e-05},
        "routes": [{"match": {"latency_ms": ">2000", "name": "a: b # c"}, "rubrics": []}],
        "scenarios": {"ü": {"x": None, "y": "it's \"so\"", "z": "line\nline"}},
        "api": {"listen": "0.0.0.0:8790", "reload": False},
    }  # fmt: skip
    text = engine.render(CHART, {"config": copy.deepcopy(stated)}).configuration["sidejudge.yaml"]
    read = read_document(text, {}, "")
    assert read.problems == []
    assert {name: read.value[name] for name in stated} == stated


def test_ports_follow_the_configuration_everywhere(engine):
    config = {"api": {"listen": "[::]:9001"}, "sources": {"otlp": {"http": ":9002", "grpc": "0.0.0.0:9003"}}}
    route = {"enabled": True, "parentRefs": [{"name": "gateway"}]}
    rendered = engine.render(CHART, {"config": config, "networkPolicy": {"enabled": True}, "httpRoute": route})
    (pod,) = pod_specs(deployment(rendered))
    (container,) = pod["containers"]
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {
        "sidejudge-api": 9001, "sidejudge-otlp": 9002, "sidejudge-grpc": 9003,
    }  # fmt: skip
    probes = [container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("liveness", "readiness", "startup")]
    assert probes == [9001] * 3
    for name in ("rel-sidejudge", "rel-sidejudge-headless"):
        ports = rendered.one("Service", name)["spec"]["ports"]
        assert [port["port"] for port in ports] == [port["targetPort"] for port in ports] == [9002, 9003, 9001]
    rules = rendered.one("NetworkPolicy")["spec"]["ingress"]
    assert [port["port"] for rule in rules for port in rule["ports"]] == [9002, 9003, 9001]
    assert rendered.one("HTTPRoute")["spec"]["rules"][0]["backendRefs"][0]["port"] == 9001


@pytest.mark.parametrize(
    ("gateway", "cap"),
    [
        ({"state": {"sizeLimit": "1Gi"}}, 512),
        ({"kind": "StatefulSet", "persistence": {"size": "10Gi"}}, 5120),
        ({"state": {"sizeLimit": "1500M"}}, 715),
    ],
)
def test_the_monitor_keeps_within_half_of_its_volume(engine, gateway, cap):
    text = engine.render(CHART, {"gateway": gateway}).configuration["sidejudge.yaml"]
    assert yaml.safe_load(text)["store"]["max_bytes"] == f"{cap}MiB"


UP = {"url": "http://up"}


@pytest.mark.parametrize(
    ("gateway", "forward", "buffer"),
    [
        ({}, UP, "1GiB"),
        ({"kind": "StatefulSet"}, UP, "1GiB"),
        ({"state": {"sizeLimit": "1Gi"}}, UP, "256MiB"),
        ({"state": {"sizeLimit": "256Mi", "medium": "Memory"}}, UP, None),
        ({"kind": "StatefulSet", "state": {"medium": "Memory"}}, UP, "1GiB"),
        ({}, {**UP, "buffer": "64MiB"}, "64MiB"),
        ({}, {**UP, "buffer": None}, None),
    ],
    ids=str,
)
def test_a_gateway_keeps_what_upstream_does_not_take_unless_it_is_told_otherwise(engine, gateway, forward, buffer):
    text = engine.render(CHART, {"gateway": gateway, "config": {"forward": forward}}).configuration["sidejudge.yaml"]
    assert yaml.safe_load(text)["forward"].get("buffer") == buffer


def test_a_gateway_that_forwards_nothing_has_no_buffer(engine):
    text = engine.render(CHART, {}).configuration["sidejudge.yaml"]
    assert "forward" not in yaml.safe_load(text)


def test_selectors_stay_whatever_else_changes(engine):
    def selectors(rendered):
        objects = [
            obj
            for obj in rendered.objects
            if obj["kind"] in ("Deployment", "Service", "PodDisruptionBudget", "PodMonitor")
        ]
        return {(obj["kind"], obj["metadata"]["name"]): obj["spec"]["selector"] for obj in objects}

    before = selectors(engine.render(CHART, {"gateway": {"pdb": {"enabled": True}}}))
    changed = {
        "image": {"tag": "9.9.9"}, "commonLabels": {"app.kubernetes.io/name": "x", "app.kubernetes.io/version": "y"},
        "podLabels": {"app.kubernetes.io/component": "z"}, "config": {"sampling": {"rate": 0.3}},
        "gateway": {"replicaCount": 7, "pdb": {"enabled": True}},
        "service": {"labels": {"app.kubernetes.io/instance": "w"}},
    }  # fmt: skip
    rendered = engine.render(CHART, changed)
    assert selectors(rendered) == before
    wanted = deployment(rendered)["spec"]["selector"]["matchLabels"]
    for labels in (
        deployment(rendered)["spec"]["template"]["metadata"]["labels"],
        rendered.one("Service", "rel-sidejudge")["metadata"]["labels"],
    ):
        assert wanted.items() <= labels.items()


@pytest.mark.parametrize("case", cases())
def test_every_selector_selects_what_it_is_for(engine, case):
    rendered = engine.render(CHART, cases()[case])
    workloads = [obj for obj in rendered.objects if obj["kind"] in ("Deployment", "StatefulSet")]
    services = {obj["metadata"]["name"]: obj for obj in rendered.all("Service")}
    for workload in workloads:
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()
        own = [each for each in services.values() if each["spec"]["selector"].items() <= labels.items()]
        assert own, "a Service leads to it"
        if labels["app.kubernetes.io/component"] == "router":
            continue
        assert {each["metadata"]["name"] for each in services.values()} - {
            each["metadata"]["name"] for each in own
        } <= {f"{each['metadata']['name']}-router" for each in own}
        if workload["kind"] == "StatefulSet":
            assert workload["spec"]["serviceName"] in services
        names = {
            port["name"]
            for container in workload["spec"]["template"]["spec"]["containers"]
            for port in container.get("ports", ())
        }
        for monitor in rendered.all("PodMonitor"):
            assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= names
    for monitor in rendered.all("ServiceMonitor"):
        selected = [
            service for service in services.values()
            if monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
            and "sidejudge.io/headless" not in service["metadata"]["labels"]
        ]  # fmt: skip
        assert len(selected) == 1
        assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in selected[0]["spec"]["ports"]}
    for kind in ("HorizontalPodAutoscaler", "ScaledObject"):
        for scaler in rendered.all(kind):
            (workload,) = workloads
            target = scaler["spec"]["scaleTargetRef"]
            assert (target["kind"], target["name"]) == (workload["kind"], workload["metadata"]["name"])
            assert "replicas" not in workload["spec"], "it would undo the scaler's work at each upgrade"


def test_no_label_of_a_target_takes_the_place_of_one_of_a_metric(engine):
    """What the operator puts on each target: a label of a metric with the same name would become ``exported_…``."""
    of_pods = {"job", "namespace", "pod", "container", "endpoint", "instance"}
    for kind, endpoints, given in (
        ("PodMonitor", "podMetricsEndpoints", of_pods), ("ServiceMonitor", "endpoints", {*of_pods, "service"}),
    ):  # fmt: skip
        enabled = {"podMonitor": {"enabled": kind == "PodMonitor"}, "serviceMonitor": {"enabled": kind != "PodMonitor"}}
        monitor = engine.render(CHART, {"monitoring": {**enabled, "sidecars": {"enabled": False}}}).one(kind)
        (endpoint,) = monitor["spec"][endpoints]
        dropped = {each["regex"] for each in endpoint.get("relabelings", ()) if each["action"] == "labeldrop"}
        own = {label for family in FAMILIES for label in family.labels}
        assert not own & (given - dropped), kind


def test_long_names_stay_within_what_dns_allows(engine):
    rendered = engine.render(CHART, {"nameOverride": "n" * 60}, release="r" * 50)
    for obj in rendered.everything:
        # Rules and dashboards are named by nobody but Prometheus' operator and Grafana's sidecar.
        most = 253 if obj["metadata"]["labels"]["app.kubernetes.io/component"] in ("rules", "dashboards") else 63
        assert len(obj["metadata"]["name"]) <= most
        assert all(len(str(value)) <= 63 for value in obj["metadata"]["labels"].values())


def test_a_service_account_of_another_name_changes_nothing_else(engine):
    rendered = engine.render(CHART, {"serviceAccount": {"name": "judge"}}, release="sidejudge")
    account = rendered.one("ServiceAccount")["metadata"]
    assert (account["name"], account["labels"]["app.kubernetes.io/name"]) == ("judge", "sidejudge")
    (pod,) = pod_specs(deployment(rendered))
    assert pod["serviceAccountName"] == "judge"
    (pod,) = pod_specs(deployment(engine.render(CHART, {"serviceAccount": {"create": False}})))
    assert pod["serviceAccountName"] == "default"


def test_an_ingress_without_hosts_is_refused(engine):
    with pytest.raises(Refused, match=r"ingress\.hosts is empty"):
        engine.render(CHART, {"ingress": {"enabled": True}})


def test_a_number_as_the_command_line_gives_it_is_admitted_where_a_number_is_wanted(engine):
    rendered = engine.render(CHART, {"config": {"sampling": {"rate": "0.05"}}})
    (text,) = [each["data"]["sidejudge.yaml"] for each in rendered.all("ConfigMap") if "sidejudge.yaml" in each["data"]]
    assert Config.model_validate({"sampling": yaml.safe_load(text)["sampling"]}).sampling.rate == 0.05
    with pytest.raises(Refused, match="rate"):
        engine.render(CHART, {"config": {"sampling": {"rate": "much"}}})


@pytest.mark.parametrize(
    ("values", "states"),
    [
        ({"gateway": {"resources": {"limits": {"memory": "1G1"}}}}, r"gateway\.resources\.limits\.memory: \"1G1\""),
        ({"gateway": {"resources": {"requests": {"cpu": "1,5"}}}}, r"gateway\.resources\.requests\.cpu"),
        ({"gateway": {"resources": {"limits": {"memory": "256Mi"}}}}, r"limits\.memory \(256Mi\) is below"),
        ({"gateway": {"resources": {"limits": {"cpu": 0.2}}}}, r"limits\.cpu \(0\.2\) is below"),
        ({"gateway": {"kind": "StatefulSet", "replicaCount": 2}, "router": {"resources": {"limits": {"memory": "1"}}}},
         r"router\.resources\.limits\.memory"),
        ({"gateway": {"state": {"sizeLimit": "1G1"}}}, "does not match pattern"),
        ({"injection": {"enabled": True}, LIBRARY.name: {"resources": {"limits": {"memory": "100Mi"}}}},
         r"sidejudge-sidecar\.resources\.limits\.memory"),
        ({"config": {"api": {"auth": {"bearer": ["${TOKEN}"]}}}, "monitoring": {"podMonitor": {"enabled": True}}},
         r"monitoring\.podMonitor\.authorization"),
    ],
)  # fmt: skip
def test_what_no_cluster_would_run_is_refused_with_its_name(engine, values, states):
    with pytest.raises(Refused, match=states):
        engine.render(CHART, values, kube="v1.36.0")


@pytest.mark.parametrize(
    "values",
    [
        {"config": {"drain": {"timeout": "29s"}}},
        {"config": {"drain": {"timeout": "1m"}}, "gateway": {"kind": "StatefulSet"}},
        {"gateway": {"terminationGracePeriodSeconds": 1}},
        {"gateway": {"autoscaling": {"kind": "hpa", "minReplicas": 6}}},
        {"config": {"sources": {"otlp": {"http": "127.0.0.1:4318"}}}, "extraContainers": [{"name": "c", "image": "c"}]},
        {"config": {"api": {"listen": "127.0.0.1:8790"}},
         "gateway": {"probes": {"liveness": None, "readiness": None, "startup": None}}},
        {"secrets": {"a": {"existingSecret": "s", "keys": {"K": "k"}}}, "extraEnv": [{"name": "HOME", "value": "/h"}]},
    ],
)  # fmt: skip
def test_what_is_unusual_and_has_a_sense_is_admitted(engine, values):
    assert engine.render(CHART, values).objects


@pytest.mark.parametrize("cpu", [1, "1", "1.5", "1500m", 2.5, "1e3"])
def test_quantities_are_read_as_kubernetes_reads_them(engine, cpu):
    values = {"gateway": {"resources": {"requests": {"cpu": "999m", "memory": "1.0Gi"}, "limits": {"cpu": cpu}}}}
    assert engine.render(CHART, values).objects


@pytest.mark.parametrize("kind", ["podMonitor", "serviceMonitor"])
def test_a_scrape_is_encrypted_and_has_credentials_where_the_api_asks_for_them(engine, kind):
    secret = {"credentials": {"name": "scrape", "key": "token"}}
    values = {
        "config": {
            "api": {"tls": {"certificate": "/tls/tls.crt", "key": "/tls/tls.key"}, "auth": {"bearer": ["${T}"]}}
        },
        "monitoring": {
            "podMonitor": {"enabled": False},
            kind: {"enabled": True, "authorization": secret, "tlsConfig": {"serverName": "sidejudge.shop.svc"}},
        },
    }
    name = kind[0].upper() + kind[1:]
    (spec,) = [
        each["spec"] for each in engine.render(CHART, values).all(name) if each["metadata"]["name"] == "rel-sidejudge"
    ]
    (endpoint,) = spec["podMetricsEndpoints" if kind == "podMonitor" else "endpoints"]
    assert (endpoint["scheme"], endpoint["authorization"]) == ("https", secret)
    assert endpoint["tlsConfig"] == {"serverName": "sidejudge.shop.svc"}
    plain = engine.render(
        CHART, {"monitoring": {kind: {"enabled": True}, "podMonitor": {"enabled": kind == "podMonitor"}}}
    )
    assert "scheme" not in str(plain.all(name)[0]["spec"])


@pytest.mark.parametrize("encrypted", [False, True])
def test_probes_and_the_test_of_the_release_speak_tls_where_the_api_does(engine, encrypted):
    config = {"api": {"tls": {"certificate": "/tls/tls.crt", "key": "/tls/tls.key"}}} if encrypted else {}
    rendered = engine.render(CHART, {"config": config})
    container = deployment(rendered)["spec"]["template"]["spec"]["containers"][0]
    schemes = {container[f"{kind}Probe"]["httpGet"].get("scheme") for kind in ("liveness", "readiness", "startup")}
    assert schemes == ({"HTTPS"} if encrypted else {None})
    (asked,) = rendered.one("Pod")["spec"]["containers"]
    assert asked["args"][-1].partition(":")[0] == ("https" if encrypted else "http")
    ports = rendered.one("Service", "rel-sidejudge")["spec"]["ports"]
    stated = {each["name"]: each["appProtocol"] for each in ports}
    assert stated == {"otlp-http": "http", "api": "https" if encrypted else "http"}


def test_probes_can_be_made_to_speak_tls_beside_a_config_map_of_ones_own(engine):
    values = {
        "existingConfigMap": {"name": "own"},
        "gateway": {"probes": {"readiness": {"httpGet": {"scheme": "HTTPS"}}}},
    }
    container = deployment(engine.render(CHART, values))["spec"]["template"]["spec"]["containers"][0]
    readiness = {"path": "/readyz", "port": 8790, "scheme": "HTTPS"}
    assert container["readinessProbe"] == {
        "httpGet": readiness, "periodSeconds": 5, "timeoutSeconds": 3, "failureThreshold": 2,
    }  # fmt: skip
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": 8790}


def test_an_api_that_asks_for_certificates_goes_without_probes(engine):
    config = {"api": {"tls": {"certificate": "/c", "key": "/k", "client_ca": "/ca"}}}
    probes = dict.fromkeys(("liveness", "readiness", "startup"))
    container = deployment(engine.render(CHART, {"config": config, "gateway": {"probes": probes}}))["spec"]["template"]
    assert "httpGet" not in str(container)
