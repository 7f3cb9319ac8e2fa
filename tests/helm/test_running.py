"""What is rendered runs: the command lines as they stand, with the rendered configuration, on a read-only root."""

from __future__ import annotations

import time

import httpx
import pytest

from sidejudge.monitor.demo.traffic import SampleTraffic
from tests.helm.checks import containers, pod_specs
from tests.helm.generate import CHART, HELM, LIBRARY, cases
from tests.helm.kubelet import Kubelet, expanded
from tests.image.sandbox import missing
from tests.running import free_port

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def free_ports() -> dict[str, object]:
    return {
        "api": {"listen": f"0.0.0.0:{free_port()}"}, "sources": {"otlp": {"http": f"0.0.0.0:{free_port()}"}},
        "assembly": {"grace": "100ms", "idle": "1s"}, "sampling": {"rate": 1.0},
        "routes": [{"match": {"name": "*"}, "rubrics": ["workflow"], "scenario": "$(HOME) 'any'"}],
        "scenarios": {"$(HOME) 'any'": {"tools_should_exclude": ["${FORBIDDEN:-rm}"]}},
    }  # fmt: skip


@pytest.fixture
def started(tmp_path, installed):
    made: list[Kubelet] = []

    def make(container, files=None) -> Kubelet:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Kubelet(folder, installed, container, files))
        return made[-1]

    yield make
    for each in made:
        each.close()


def judged(api: str, otlp: str) -> dict[str, int]:
    """Traces by how they ended, after some were sent."""
    traffic = SampleTraffic(3)
    for _ in range(4):
        sent = traffic.next(time.time_ns(), wrong=0.5)
        headers = {"content-type": "application/x-protobuf"}
        assert httpx.post(f"http://{otlp}/v1/traces", content=sent.body, headers=headers, trust_env=False).is_success
    end = time.monotonic() + 30
    while (outcomes := httpx.get(f"http://{api}/v1/status", trust_env=False).json()["outcomes"])["open"]:
        assert time.monotonic() < end, outcomes
        time.sleep(0.1)
    return {reason: count for reason, count in outcomes["ended"].items() if count}


def test_the_gateway_starts_answers_its_probes_judges_and_ends(engine, started):
    config = free_ports()
    rendered = engine.render(CHART, {"config": config})
    (pod,) = pod_specs(rendered.one("Deployment"))
    files = rendered.configuration
    gateway = started(pod["containers"][0], files)
    assert gateway.probe("liveness") is None
    gateway.start()
    gateway.wait()
    assert gateway.container.keys() >= {"livenessProbe", "readinessProbe", "startupProbe"}
    api = f"127.0.0.1:{gateway.container['ports'][0]['containerPort']}"
    assert set(judged(api, config["sources"]["otlp"]["http"].replace("0.0.0.0", "127.0.0.1"))) == {"scored"}

    (test,) = pod_specs(rendered.one("Pod"))
    (ask,) = test["containers"]
    arguments = [word.replace("rel-sidejudge.shop.svc", "127.0.0.1") for word in ask["args"]]
    assert arguments != ask["args"]
    reported = started(ask, files).run(*arguments)
    assert reported.returncode == 0, reported.stdout
    assert "workflow" in reported.stdout
    assert gateway.end() == 0


def test_the_helm_tests_doctor_is_content(engine, started):
    rendered = engine.render(CHART, {"config": free_ports()})
    (pod,) = pod_specs(rendered.one("Pod"))
    check, doctor = pod["initContainers"]
    for each in (check, doctor):
        reported = started(each, rendered.configuration).run(*each["args"])
        assert reported.returncode == 0, reported.stdout
    assert "/etc/sidejudge/sidejudge.yaml" in reported.stdout


@pytest.mark.parametrize(
    ("config", "states"),
    [
        ({"routes": [{"rubrics": ["wrokflow"]}]}, "wrokflow"),
        ({"routes": [{"rubrics": ["workflow"], "scenario": "nowhere"}]}, "nowhere"),
        ({"sinks": {"langfuse": {"base_url": "https://x", "public_key": "pk", "secret_key": "${GONE}"}}}, "GONE"),
    ],
)  # fmt: skip
def test_what_the_monitor_would_refuse_stops_an_installation_before_it_changes_anything(
    engine, started, config, states
):
    def asked(stated) -> tuple[int, str]:
        job = engine.render(CHART, {"image": {"registry": "r.io"}, "config": stated}).one("Job")
        assert set(job["metadata"]["annotations"]["helm.sh/hook"].split(",")) == {"pre-install", "pre-upgrade"}
        (pod,) = pod_specs(job)
        (check,) = pod["containers"]
        reported = started(check).run(*check["args"])
        return reported.returncode, reported.stdout + (reported.stderr or "")

    assert asked(free_ports())[0] == 0
    code, text = asked(free_ports() | config)
    assert code == 2
    assert states in text


def test_the_check_needs_nothing_that_the_release_itself_brings(engine):
    def jobs(**values):
        return engine.render(CHART, {"image": {"registry": "r.io"}, **values}).all("Job")

    (job,) = jobs(existingConfigMap={"name": "mine"})
    (pod,) = pod_specs(job)
    assert "serviceAccountName" not in pod
    assert [each["configMap"] for each in pod["volumes"] if "configMap" in each] == [{"name": "mine"}]
    (job,) = jobs(serviceAccount={"create": False, "name": "there"})
    assert pod_specs(job).__next__()["serviceAccountName"] == "there"
    volumes = {"extraVolumes": [{"name": "rubrics", "configMap": {"name": "rubrics"}}]}
    assert jobs(**volumes) == []
    assert len(jobs(**volumes, check={"enabled": True})) == 1
    assert jobs(check={"enabled": False}) == jobs(gateway={"enabled": False}) == []
    assert engine.render(CHART).all("Job") == [], "the placeholder can be pulled by nobody"


def test_the_sidecar_starts_with_its_configuration_in_the_environment_and_judges(engine, started):
    config = free_ports()
    rendered = engine.render(HELM / "examples" / "otel-app", {LIBRARY.name: {"config": config}})
    (pod,) = pod_specs(rendered.one("Deployment"))
    sidecar = started(pod["initContainers"][0])
    sidecar.start()
    sidecar.wait()
    api = config["api"]["listen"].replace("0.0.0.0", "127.0.0.1")
    assert set(judged(api, config["sources"]["otlp"]["http"].replace("0.0.0.0", "127.0.0.1"))) == {"scored"}
    assert sidecar.end() == 0


@pytest.mark.parametrize(
    "case", [case for case, values in cases().items() if "existingConfigMap" not in values and case != "sidecars-only"]
)
def test_every_rendered_configuration_is_one_that_the_monitor_takes(engine, started, case):
    rendered = engine.render(CHART, cases()[case])
    workloads = [obj for obj in rendered.objects if obj["kind"] in ("Deployment", "StatefulSet")]
    served = [each for workload in workloads for pod in pod_specs(workload) for each in pod["containers"]]
    (container,) = [each for each in served if "serve" in each.get("args", ())]
    files = rendered.configuration
    reported = started(container, files).run("check")
    assert reported.returncode == 0, reported.stdout
    assert "configuration ok" in reported.stdout


@pytest.mark.parametrize("chart", ["otel-app", "langfuse-app"])
def test_every_examples_configuration_is_one_that_the_monitor_takes(engine, started, chart):
    for obj in engine.render(HELM / "examples" / chart).objects:
        for pod in pod_specs(obj):
            (sidecar,) = (each for each in containers(pod) if each["name"] == "sidejudge")
            reported = started(sidecar).run("check", "--all")
            assert reported.returncode == 0, reported.stdout
            assert "512MiB" in reported.stdout


def test_the_sidecar_that_the_readme_shows_takes_its_configuration(engine, started, shown):
    (pod,) = pod_specs(engine.render(shown).one("Deployment"))
    reported = started(pod["initContainers"][0]).run("check")
    assert reported.returncode == 0, reported.stdout
    assert "warning:" not in reported.stdout


def test_variables_are_expanded_as_kubernetes_does():
    assert expanded("$(A) $$(A) $(B) $A $${A} $$$$", {"A": "1"}) == "1 $(A) $(B) $A ${A} $$"
