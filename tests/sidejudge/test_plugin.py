"""The example of a plugin: built into a wheel, installed in an environment of its own, and used there."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from tests import forked
from tests.otlp_requests import S, request, span, trace
from tests.running import Running

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "tests" / "plugin"
CONFIG = "routes: [{rubrics: [acme-support]}]\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A fresh environment with the plugin's wheel in it, beside this installation."""
    folder = tmp_path_factory.mktemp("plugin")
    source = folder / "source"
    subprocess.run(["cp", "-r", str(PLUGIN), str(source)], check=True)
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (target,) = environment.glob("lib/python*/site-packages")
    # By uv, which takes a fifth of pip's time; by pip where it cannot.
    installers = (["uv", "pip", "install"], ["pip", "install"])
    commands = ([sys.executable, "-m", *each, "-q", "--no-deps", "--target", target, source] for each in installers)
    if all(subprocess.run(each, capture_output=True, check=False, timeout=120).returncode for each in commands):
        pytest.skip("hatchling cannot be had, which builds the plugin's wheel")
    (target / "sidejudge.pth").write_text(f"{ROOT / '.ci' / 'editable'}\n{sysconfig.get_paths()['purelib']}\n")
    return environment / "bin" / "python"


def run(python, program, cwd):
    """A program that finds the plugin where the environment has it, without a start of its own."""
    (target,) = python.parents[1].glob("lib/python*/site-packages")
    beside = f"import sys; sys.path.append({str(target)!r})\n"
    return forked.sidejudge("-c", beside + program, cwd=cwd, env={"SIDEJUDGE_STORE__PATH": str(cwd / "store.sqlite")})


def sidejudge(python, *args, cwd):
    return run(python, f"sys.argv[1:] = {args!r}\nfrom sidejudge.monitor.cli import main; main()", cwd)


def test_its_rubric_judges_with_its_metric_and_what_is_broken_is_left_out(python, tmp_path):
    (tmp_path / "sidejudge.yaml").write_text(CONFIG)
    cases = [{"case_id": "1", "model_output": "Thank you, it is on its way."}, {"case_id": "2", "model_output": "No."}]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    # Anew: metrics are known from the first import on.
    command = ["-P", "-m", "sidejudge", "score", "cases.jsonl", "--config", "sidejudge.yaml", "--out", "out.jsonl"]
    done = subprocess.run([python, *command], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120)
    verdicts = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [each["state"] for each in verdicts] == ["valid", "incomplete"], done.stderr
    assert verdicts[0]["scores"][0]["reason"] == "it thanks"
    assert "needs a judge" in verdicts[1]["reason"]


def test_doctor_lists_the_plugins_each_with_its_package(python, tmp_path):
    stated = sidejudge(python, "doctor", cwd=tmp_path).stdout
    for plugin in (
        "metrics.acme_politeness", "rubrics.acme-support", "dialects.acme", "sinks.acme_lines", "notifiers.acme_pager",
    ):  # fmt: skip
        assert plugin in stated
    assert "acme-sidejudge 1.0.0" in stated
    assert "NOT_THERE" in stated
    assert "No module named 'acme_sidejudge.gone'" in stated


def test_a_running_monitor_judges_delivers_and_notifies_by_it_and_each_failure_is_alone(python, tmp_path):
    monitor = Running(
        tmp_path,
        {
            "routes": [{"rubrics": ["acme-support"]}],
            "sinks": {
                "plugins": {
                    "warehouse": {"use": "acme_lines", "arguments": {"path": "verdicts", "again": True}},
                    "others": {"use": "acme_lines", "arguments": {"path": "others", "only": "answer"}},
                    "acme_broken": {},
                }
            },
            "alerts": {
                "min_samples": 1, "min_failures": 1, "mode": "point", "look": "1s",
                "hysteresis": {"needed": 1, "looks": 1},
                "notify": [
                    {"plugin": {"use": "acme_pager", "arguments": {"path": "pages"}}},
                    {"plugin": {"use": "acme_gone"}},
                ],
            },
        },
        python=str(python),
    )  # fmt: skip
    try:
        monitor.start()
        now = time.time_ns()
        attributes = {"output.value": "Thank you. " * 40, "openinference.span.kind": "LLM"}
        monitor.post(request([S(
            trace_id=trace(1), span_id=span(1), start_ns=now - 10**9, end_ns=now, attributes=attributes
        )]))  # fmt: skip
        monitor.until((tmp_path / "pages").exists, "the notifier was not called")
        monitor.until((tmp_path / "verdicts").exists, "the sink was not called")
        (verdict,) = map(json.loads, (tmp_path / "verdicts").read_text().splitlines())
        assert (verdict["rubric"], verdict["passed"]) == ("acme-support", False)
        page = json.loads((tmp_path / "pages").read_text().splitlines()[0])
        assert "acme-support" in page["title"]
        exports = {each["destination"]: each for each in monitor.get("/v1/status")["exports"]}
        assert (exports["warehouse"]["state"], exports["warehouse"]["waiting"]) == ("ok", 0)
        assert (exports["others"]["state"], exports["others"]["reason"]) == ("stopped", "another rubric")
        assert (exports["acme_broken"]["state"], exports["acme_broken"]["waiting"]) == ("retrying", 1)
        assert "OSError: no such host" in exports["acme_broken"]["reason"]
        assert "No module named" in exports["acme_gone"]["reason"]
        metrics = monitor.http.get(monitor.api + "/metrics").text
        assert 'sidejudge_exports_total{destination="warehouse"} 1' in metrics
        assert monitor.stop() == 0
    finally:
        monitor.close()


def test_a_sink_that_is_not_installed_is_refused_with_those_that_are(python, tmp_path):
    (tmp_path / "sidejudge.yaml").write_text("sinks: {plugins: {acme_line: {}}}\n")
    done = sidejudge(python, "serve", "--config", "sidejudge.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "sinks.plugins.acme_line: no installed package has the entry point 'acme_line'" in done.stderr
    assert "acme_broken, acme_lines" in done.stderr


def test_doctor_has_its_notifier_send_a_test(python, tmp_path):
    notify = "alerts: {notify: [{plugin: {use: acme_pager, arguments: {path: pages}}}, {plugin: {use: acme_gone}}]}\n"
    (tmp_path / "sidejudge.yaml").write_text(notify)
    stated = sidejudge(python, "doctor", "--notify", "--config", "sidejudge.yaml", cwd=tmp_path).stdout
    assert json.loads((tmp_path / "pages").read_text())["kind"] == "test"
    assert "took a test notice" in stated
    assert "cannot be loaded" in stated


def test_its_dialect_normalises_its_own_spans(python, tmp_path):
    program = (
        "from sidejudge.monitor.config.plugins import install_dialects; from sidejudge.integrations import dialects;"
        "from sidejudge.integrations.raw import RawSpan; install_dialects();"
        "span = RawSpan(trace_id='1'*32, span_id='2'*16, parent_id=None, name='x', start_ns=1, end_ns=2,"
        " scope_name='acme.tracing'); print(dialects.normalise(span).dialect)"
    )
    done = run(python, program, tmp_path)
    assert done.stdout.strip() == "acme", done.stderr


def test_its_author_runs_the_conformance_kit(python, tmp_path):
    program = (
        "from acme_sidejudge.metrics import LENGTH; from acme_sidejudge.dialect import DIALECT;"
        "from acme_sidejudge.delivery import Lines, Pager; from sidejudge.integrations.raw import RawSpan;"
        "from sidejudge.testing import check_dialect, check_metric, check_notifier, check_sink;"
        "check_metric(LENGTH); check_sink(Lines('verdicts', again=True)); check_notifier(Pager('pages'));"
        "check_dialect(DIALECT, [RawSpan(trace_id='1'*32, span_id='2'*16, parent_id=None, name='x', start_ns=1,"
        " end_ns=2, scope_name='acme.tracing')])"
    )
    done = run(python, program, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_kit_checks_the_rubrics_that_it_is_given_and_no_others_that_are_installed(python, tmp_path):
    program = "from sidejudge.testing import check_rubric; check_rubric({})"
    done = run(python, program, tmp_path)
    assert "the map declares no rubric" in done.stderr
    assert "plugin acme-broken of acme-sidejudge 1.0.0 cannot be loaded: AttributeError: " in done.stderr
