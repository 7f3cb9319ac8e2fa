"""The plugin for pytest: tests of a stranger's repository, run by a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from tests.needs import OTLP_EXPORTER

pytestmark = OTLP_EXPORTER.mark

APP = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

OWN = TracerProvider()

def run(tool="find_order", failed=False, provider=None):
    tracer = trace.get_tracer("app", tracer_provider=provider)
    with tracer.start_as_current_span("GET /health"):
        pass
    ran = {"gen_ai.operation.name": "invoke_agent", "output.value": "Done."}
    with tracer.start_as_current_span("run", attributes=ran):
        call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        with tracer.start_as_current_span("call", attributes=call) as span:
            if failed:
                span.set_status(trace.Status(trace.StatusCode.ERROR, "timeout"))
"""
TESTS = """
import pytest
from app import OWN, run

mark = pytest.mark.sidejudge
CONTRACT = {"tools_should_include": ["find_order"], "closed": False}

@mark(rubric="run_health")
def test_good(): run()

@mark("run_health")
def test_failed_tool(): run(failed=True)

def test_unmarked(): run(failed=True)

@mark(rubric="run_health")
def test_good_after_a_failure_of_another(): run()

@mark(rubric="workflow", scenario=CONTRACT)
def test_contract(): run("web_search")

@mark(rubric=["run_health", "workflow"], scenario=CONTRACT)
class TestTwo:
    def test_both(self): run()
    def test_second(self): run(); run("web_search")

@mark(rubric="run_health")
def test_silent(): pass

@mark(rubric="run_health")
def test_of_another_provider(): run(provider=OWN)

@mark(rubric="run_health")
def test_own_assertion(): run(failed=True); assert 1 == 2

@mark(rubric="run_helth")
def test_misspelt(): run()

@mark(rubrik="run_health")
def test_misused(): run()

@mark(rubric="own", config="own.yaml")
def test_not_judged(): run()

@mark(rubric="polite")
def test_of_the_configuration(): run()

def test_fixture(sidejudge_traces):
    run(failed=True)
    sidejudge_traces.clear()
    run()
    (trace,) = sidejudge_traces.traces
    assert [each.trace_id for each in sidejudge_traces.judge("run_health")] == [trace.trace_id]
"""
FAILURES = {
    "test_failed_tool": "run_health failed: tool_success: 1 of 1 tool calls failed: find_order",
    "test_contract": "workflow failed: tools: missing: find_order",
    "test_second": "workflow failed: tools: missing: find_order",
    "test_silent": "no trace was captured; does the code under test make spans",
    "test_of_another_provider": "no trace was captured",
    "test_own_assertion": "assert 1 == 2",
    "test_misspelt": "there is no rubric 'run_helth'; did you mean 'run_health'?",
    "test_misused": "the mark knows no 'rubrik'; it takes rubric, config",
    "test_not_judged": "own could not be judged: ",
    "test_of_the_configuration": "polite failed: thanks",
}


def outcomes(folder, *arguments):
    """Of each test: the first line of its failure, None where it passed."""
    command = [sys.executable, "-m", "pytest", "-q", "--junit-xml=report.xml", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280, check=False)
    assert (folder / "report.xml").exists(), done.stdout + done.stderr
    cases = ET.parse(folder / "report.xml").iter("testcase")  # written by the command above
    return {each.get("name"): next((str(part.get("message")) for part in each), None) for each in cases}


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "test_app.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["sidejudge.testing.pytest"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nsidejudge_config = sidejudge.yaml\n")
    (tmp_path / "sidejudge.yaml").write_text(
        "rubrics: {polite: {metrics: [{id: thanks, check: {icontains: thank}, on: tools}]}}\n"
    )
    (tmp_path / "own.yaml").write_text("rubrics: {own: {metrics: [{id: kind, ask: 'Is it kind?', answer: boolean}]}}\n")
    return tmp_path


def test_a_marked_test_fails_with_the_reason_of_its_verdict_and_no_other_does(repository):
    found = outcomes(repository)
    assert found.keys() == FAILURES.keys() | {
        "test_good", "test_unmarked", "test_good_after_a_failure_of_another", "test_both", "test_fixture",
    }  # fmt: skip
    wrong = {name: told for name, told in found.items() if FAILURES.get(name, "\0") not in (told or "\0")}
    assert wrong == {}


def test_a_provider_of_the_applications_own_is_captured_where_a_fixture_returns_it(repository):
    with (repository / "conftest.py").open("a") as conftest:
        conftest.write(
            "import app, pytest\n@pytest.fixture(scope='session')\ndef sidejudge_tracer_provider(): return app.OWN\n"
        )
    found = outcomes(repository, "-k", "provider or good")
    assert found.pop("test_of_another_provider") is None
    assert all("no trace was captured" in str(told) for told in found.values()), found


def test_a_part_of_the_extra_that_is_missing_is_one_line_with_the_remedy(repository):
    (repository / "conftest.py").write_text(
        "import sys\nsys.modules['opentelemetry.exporter.otlp.proto.common'] = None\n"
        'pytest_plugins = ["sidejudge.testing.pytest"]\n'
    )
    found = outcomes(repository, "-k", "test_good")
    assert all("pip install 'sidejudge[otel]'" in str(told) for told in found.values()), found
