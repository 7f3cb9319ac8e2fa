"""``init``: what it proposes from traces is valid, and gives verdicts on the same traces."""

from __future__ import annotations

import json
import time
from pathlib import Path

import orjson
import pytest
import yaml

from sidejudge.integrations.otlp.wire.decode import decode_spans
from sidejudge.monitor.api.inspect import inspect_spans
from sidejudge.monitor.cli import init as command
from sidejudge.monitor.config import resolve
from sidejudge.monitor.config.rubrics import configured
from sidejudge.monitor.demo.traffic import SampleTraffic
from sidejudge.monitor.offline.init.sample import from_files, from_store
from sidejudge.monitor.route.router import NotARun, Route, Router
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.result.result import Scored
from sidejudge.scoring.verdict.verdict import State
from tests.fakes.langfuse.observations import Observations, observations_of
from tests.fakes.langfuse.otel_in import rows_of
from tests.fakes.langfuse.server import PUBLIC_KEY, SECRET_KEY, FakeLangfuse, Mode
from tests.otlp_requests import S, request, span, trace

RUN = {"langfuse.observation.type": "agent", "langfuse.observation.input": "Hi", "langfuse.observation.output": "Ho"}

RECORDED = Path(__file__).parents[2] / "data" / "otlp"
CLIENTS = (
    "openinference-openai", "openinference-langchain", "langfuse-5", "langfuse-5-langchain", "otel-genai-openai",
    "openllmetry-langgraph", "openinference-smolagents", "pydantic-ai", "google-adk-2", "openlit-openai",
)  # fmt: skip
JUDGE = "openai/gpt-4o-mini-2024-07-18"


def recorded(client: str) -> list[Path]:
    return sorted(file for file in (RECORDED / client).rglob("*.pb") if ".logs" not in file.name)


def judged(path: Path, cases) -> list:
    """The verdicts that the file's routes and rubrics give by words alone."""
    config = resolve(path, {}).config
    router = Router(config.routes, config.scenarios, default=config.default_rubrics)
    found = []
    for case in cases:
        route = router.route(case)
        assert isinstance(route, Route | NotARun), case.name
        if isinstance(route, Route):
            drawn = case.drawn(1.0, route.scenario)
            found += [score(drawn, configured(config)[name], created_at="") for name in route.rubrics]
    return found


def agent_run(number: int, **more) -> bytes:
    """A run of an agent that looks an order up, then refunds it."""
    attributes = {"langfuse.observation.input": "Refund order 7", "langfuse.observation.output": "Done."}
    tid = trace(number)
    steps = [
        S(trace_id=tid, span_id=span(1), name="refund", attributes={**attributes, "langfuse.observation.type": "agent"})
    ]
    for at, tool in enumerate(("find_order", "pay_back")):
        steps.append(
            S(trace_id=tid, span_id=span(2 + at), parent_id=span(1), name=tool, start_ns=1_100 + 100 * at,
              end_ns=1_150 + 100 * at,
              attributes={"langfuse.observation.type": "tool", "langfuse.observation.input": '{"id": 7}',
                          "langfuse.observation.output": '"ok"'})
        )  # fmt: skip
    return request(steps, {"service.name": "shop [eu]", **more})


@pytest.mark.parametrize("client", CLIENTS)
def test_what_it_writes_passes_check_and_gives_verdicts_on_the_same_traces(call, tmp_path, client):
    files, out = recorded(client), tmp_path / "sidejudge.yaml"
    assert files
    done = call("init", *(part for file in files for part in ("--from-traces", file)), "--out", out)
    assert done.exit_code == 0, done.stderr
    checked = call("check", out)
    assert checked.exit_code == 0, checked.stderr
    assert "warning" not in checked.stderr
    verdicts = judged(out, from_files(files, pytest.fail))
    reached = [verdict for verdict in verdicts if verdict.state is not State.INCOMPLETE]
    assert len(reached) >= len(verdicts) / 2, [(v.rubric, v.reason) for v in verdicts]


@pytest.fixture
def runs(tmp_path) -> list[Path]:
    files = []
    for number in range(14):
        files.append(tmp_path / f"{number:02}.pb")
        files[-1].write_bytes(agent_run(number))
    return files


def test_runs_that_agree_give_a_scenario_whose_signs_they_keep_and_another_run_does_not(call, tmp_path, runs):
    out = tmp_path / "sidejudge.yaml"
    done = call("init", *(part for file in runs for part in ("--from-traces", file)), "--out", out)
    assert done.exit_code == 0, done.stderr
    stated = yaml.safe_load(out.read_text())
    assert stated["routes"][0] == {
        "match": {"service": "shop [[]eu]", "name": "refund"}, "rubrics": ["workflow", "run_health"],
        "scenario": "refund",
    }  # fmt: skip
    assert set(stated["scenarios"]["refund"]["signs"]["tools_should_include"]) == {"find_order", "pay_back"}
    assert "learned from 14 good runs; every line is a sign and fails no run" in out.read_text()
    cases = list(from_files(runs, pytest.fail))
    workflow = [habit(verdict) for verdict in judged(out, cases) if verdict.rubric == "workflow"]
    assert workflow == [1.0] * 14
    other = [orjson.loads(orjson.dumps(found.to_json())) for found in inspect_spans(decode_spans(agent_run(99)))]
    other[0]["tools_used"] = other[0]["tools_used"][1:]
    (tmp_path / "other.jsonl").write_text(json.dumps(other[0]))
    (other,) = [
        verdict for verdict in judged(out, from_files([tmp_path / "other.jsonl"], pytest.fail))
        if verdict.rubric == "workflow"
    ]  # fmt: skip
    assert habit(other) == 0.0
    assert other.passed is None


def habit(verdict) -> float | None:
    (found,) = [score.result for score in verdict.scores if score.metric == "habits"]
    return found.value if isinstance(found, Scored) else None


def test_a_running_monitor_and_its_store_give_the_same_as_the_files(call, tmp_path, serving, runs):
    monitor = serving()
    for file in runs:
        monitor.http.post(
            f"{monitor.otlp}/v1/traces", content=file.read_bytes(), headers={"content-type": "application/x-protobuf"}
        ).raise_for_status()
    monitor.settled(14)
    texts = {}
    store = tmp_path / "state.sqlite"
    store = store if store.exists() else monitor.folder / "state.sqlite"
    for kind, sources in (("url", [monitor.api]), ("store", [store]), ("files", runs)):
        out = tmp_path / f"{kind}.yaml"
        done = call("init", *(part for source in sources for part in ("--from-traces", source)), "--out", out)
        assert done.exit_code == 0, done.stderr
        texts[kind] = yaml.safe_load(out.read_text())
    assert texts["url"] == texts["store"] == texts["files"]
    assert len(list(from_store(store))) == 14


def test_langfuse_is_read_and_the_file_reads_from_it(call, tmp_path, monkeypatch):
    with FakeLangfuse(Mode.NEW, parts=[Observations.part]) as server:
        traffic = SampleTraffic(1)
        for number in range(6):
            body = traffic.next(time.time_ns() - (3600 + number) * 10**9, wrong=0.0).body
            observations_of(server).put(*rows_of(decode_spans(body)))
        keys = {"LANGFUSE_PUBLIC_KEY": PUBLIC_KEY, "LANGFUSE_SECRET_KEY": SECRET_KEY}
        for name, value in {"LANGFUSE_BASE_URL": server.base_url, **keys}.items():
            monkeypatch.setenv(name, value)
        out = tmp_path / "sidejudge.yaml"
        done = call("init", "--from-traces", "langfuse", "--out", out)
        assert done.exit_code == 0, done.stderr
        assert "from 6 traces of langfuse" in out.read_text()
        config = resolve(out, keys).config
    assert config.sources.langfuse is not None
    assert config.sinks.langfuse is not None
    assert config.routes
    assert SECRET_KEY not in out.read_text()


@pytest.mark.parametrize(
    ("fields", "rubric"),
    [
        ({}, "answer-relevance"), ({"context": ["It was shipped."]}, "faithfulness"),
        ({"tools_used": ["find"]}, "agent"),
    ],
)  # fmt: skip
def test_with_a_judge_a_rubric_for_it_is_proposed_by_what_the_traces_carry(call, tmp_path, fields, rubric):
    cases, out = tmp_path / "c.jsonl", tmp_path / "s.yaml"
    case = {"input": "Where?", "model_output": "Shipped.", "service": "shop", "agents_called": [], **fields}
    cases.write_text("\n".join([json.dumps(case)] * 3))
    done = call("init", "--from-traces", cases, "--out", out, "--judge", JUDGE)
    assert done.exit_code == 0, done.stderr
    config = resolve(out, {"OPENAI_API_KEY": "k"}).config
    assert [rubric in route.rubrics for route in config.routes] == [True]
    assert config.evaluators.judge is not None
    assert config.evaluators.judge.budget_usd_per_hour == 1.0
    assert set(config.declared) == ({rubric} - {"agent"})


def test_names_that_are_as_frequent_stand_in_the_order_of_their_use(call, tmp_path):
    cases, out, names = tmp_path / "c.jsonl", tmp_path / "s.yaml", ["f", "b", "e", "a", "d", "c"]
    cases.write_text(json.dumps({"model_output": "x", "service": "shop", "agents_called": names, "tools_used": names}))
    assert call("init", "--from-traces", cases, "--out", out).exit_code == 0
    assert "agents f, b, e, a, d, c; tools f, b, e, a, d, c." in out.read_text()


def test_a_file_that_is_there_is_kept(call, tmp_path):
    out = tmp_path / "sidejudge.yaml"
    out.write_text("mine")
    done = call("init", "--yes", "--out", out)
    assert (done.exit_code, out.read_text()) == (2, "mine")
    assert "--force" in done.stderr
    assert call("init", "--yes", "--out", out, "--force").exit_code == 0
    assert out.read_text() != "mine"
    (tmp_path / "compose.yaml").write_text("mine")
    assert call("init", "--yes", "--out", tmp_path / "new.yaml", "--compose").exit_code == 2
    assert not (tmp_path / "new.yaml").exists(), "all or nothing"


def test_without_a_terminal_it_asks_nothing_and_says_what_to_add(call, tmp_path):
    done = call("init", "--out", tmp_path / "s.yaml")
    assert done.exit_code == 2
    assert "--yes" in done.stderr


def test_the_questions_have_answers_that_suit_most(call, tmp_path, monkeypatch):
    out = tmp_path / "sidejudge.yaml"
    answers = f"shop\n{JUDGE}\n2.5\nhttps://langfuse.example.com\n\n"
    monkeypatch.setattr(command, "_at_a_terminal", lambda: True)
    done = call("init", "--out", out, input=answers)
    assert done.exit_code == 0, done.stderr
    stated = yaml.safe_load(out.read_text())
    assert stated["routes"] == [{"match": {"service": "shop"}, "rubrics": ["run_health", "answer-relevance"]}]
    assert call("check", out).exit_code == 2, "the keys of Langfuse are not set yet"
    assert stated["evaluators"]["judge"]["budget_usd_per_hour"] == 2.5
    assert stated["sinks"]["langfuse"]["base_url"] == "https://langfuse.example.com"


@pytest.mark.parametrize("name", ['a"b', "x: {y", "line\nbreak # c", "*", "ünï", "a\u2028b", "${HOME}", "- a", "null"])
def test_names_from_traces_neither_break_the_file_nor_leave_their_place(call, tmp_path, name):
    case = {"case_id": "1", "model_output": "yes", "service": name, "name": name, "agents_called": [name],
            "tools_used": [{"name": name, "result": "r"}], "input": "q"}  # fmt: skip
    cases, out = tmp_path / "c.jsonl", tmp_path / "s.yaml"
    cases.write_text("\n".join(json.dumps({**case, "case_id": str(number)}) for number in range(12)))
    done = call("init", "--from-traces", cases, "--out", out)
    assert done.exit_code == 0, done.stderr
    assert set(yaml.safe_load(out.read_text())) <= {"sampling", "routes", "default_rubrics", "scenarios", "alerts"}
    assert all(verdict.rubric for verdict in judged(out, from_files([cases], pytest.fail)))


def test_traces_without_a_service_take_no_route_from_those_with_one(call, tmp_path):
    plain = {"model_output": "yes", "name": "chat", "agents_called": ["a"], "input": "q"}
    named = [{**plain, "service": "web", "tools_used": ["find"], "case_id": f"w{n}"} for n in range(12)]
    nameless = [{**plain, "tools_used": ["pay"], "case_id": f"n{n}"} for n in range(20)]
    cases, out = tmp_path / "c.jsonl", tmp_path / "s.yaml"
    cases.write_text("\n".join(map(json.dumps, [*nameless, *named])))
    assert call("init", "--from-traces", cases, "--out", out).exit_code == 0
    config = resolve(out, {}).config
    router = Router(config.routes, config.scenarios)
    found = {case.service: router.route(case) for case in from_files([cases], pytest.fail)}
    expected = {
        service: config.scenarios[route.scenario_name]["signs"]["tools_should_include"]
        for service, route in found.items()
    }
    assert expected == {"web": ["find"], None: ["pay"]}


def test_compose_mounts_the_file_and_passes_the_variables_that_it_names(call, tmp_path):
    out = tmp_path / "sidejudge.yaml"
    done = call("init", "--yes", "--out", out, "--compose", "--judge", JUDGE, "--forward", "http://collector:4318")
    assert done.exit_code == 0, done.stderr
    service = yaml.safe_load((tmp_path / "compose.yaml").read_text())["services"]["sidejudge"]
    assert service["volumes"][0].startswith("./sidejudge.yaml:")
    assert set(service["environment"]) == {"OPENAI_API_KEY"}
    assert yaml.safe_load(out.read_text())["forward"] == {"url": "http://collector:4318"}


def test_a_folder_of_recordings_is_read_and_a_made_up_name_of_a_service_gets_no_route(call, tmp_path: Path) -> None:
    folder, out = tmp_path / "recorded" / "deep", tmp_path / "out"
    folder.mkdir(parents=True)
    for number in range(3):
        run = S(trace_id=trace(number), span_id=span(1), attributes=RUN, service="unknown_service:python")
        (folder / f"{number}.pb").write_bytes(request([run]))
    (folder / "manifest.json").write_text("{}")
    done = call("init", "--from-traces", str(tmp_path / "recorded"), "--out", str(out / "sidejudge.yaml"), "--compose")
    assert done.exit_code == 0, done.output
    written = yaml.safe_load((out / "sidejudge.yaml").read_text())
    assert "routes" not in written
    assert "3 traces" in (out / "sidejudge.yaml").read_text()
    assert "OTEL_SERVICE_NAME" in done.output
    (service,) = yaml.safe_load((out / "compose.yaml").read_text())["services"].values()
    assert "environment" not in service
