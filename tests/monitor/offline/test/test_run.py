"""The run: what is asked, what is kept, what is not asked again; over real agents."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from sidejudge.integrations.agents import AgentError, AgentReply, Request
from sidejudge.integrations.agents.http import HttpAgent
from sidejudge.integrations.cases.fields import case_of
from sidejudge.monitor.config import Config
from sidejudge.monitor.offline.score.resume import AnotherRunError
from sidejudge.monitor.offline.test.judge import RunJudge
from sidejudge.monitor.offline.test.run import AgentUnreachableError, FinishedTest, ResultsFile, Runner
from sidejudge.scoring.rubrics import RUBRICS
from tests.running import free_port

SEARCH = {"tools_should_include": ["search"]}


def judge(
    *chosen: str, scenarios: Mapping | None = None, routes: list | None = None, judged: str | None = None,
    **changes: float,
) -> RunJudge:  # fmt: skip
    evaluators = {"judge": {"model": judged}} if judged else {}
    stated = {"routes": routes or [], "scenarios": scenarios or {}, "evaluators": evaluators}
    config = Config.model_validate(stated)
    rubrics = {name: rubric.with_overrides(**changes) if changes else rubric for name, rubric in RUBRICS.items()}
    return RunJudge(config, chosen, rubrics=rubrics)


def set_of(*inputs: object, **fields: object) -> list[dict]:
    return [
        {"id": f"t{number}", "input": given, "complexity": "medium", "task": "workflow", "scenario": SEARCH, **fields}
        for number, given in enumerate(inputs)
    ]


class Scripted:
    """Answers with the input, after as many turns of the loop as it says; raises what is an exception."""

    name = "scripted"

    def __init__(self) -> None:
        self.requested: list[object] = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def ask(self, request: Request) -> AgentReply:
        self.requested.append(request.input)
        if isinstance(request.input, dict) and "turns" in request.input:
            for _ in range(request.input["turns"]):
                await asyncio.sleep(0)
        if request.input == "error":
            raise AgentError("out of order")
        return AgentReply(stated={"output": request.input, "tools_used": ["search"]}, latency_ms=1.5)


async def run(agent, tests: list[dict], out: Path | None = None, *, repeat: int = 1, limit_s: float = 20,
              at_a_time: int = 4, by: RunJudge | None = None) -> list[FinishedTest]:  # fmt: skip
    """One call of the command with this ``--out``."""
    with ResultsFile(out, "a") as results:
        runner = Runner(
            agent=agent, judge=by or judge(), results=results, concurrency=at_a_time, timeout_s=limit_s
        )  # fmt: skip
        return await runner.run(tests, repeat)


def kept(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_results_come_in_the_order_of_the_tests_whichever_finished_first() -> None:
    tests = set_of(*({"turns": turns} for turns in (500, 0, 50, 3)))
    found = await run(Scripted(), tests, repeat=2)
    assert [(one.outcome.test["id"], one.outcome.run) for one in found] == [
        (f"t{number}", times) for times in (1, 2) for number in range(4)
    ]
    assert all(one.outcome.evaluation.passed for one in found)


async def test_no_more_tests_are_asked_at_a_time_than_was_said(fake) -> None:
    await run(HttpAgent(fake.url + "/text", 3), set_of(*map(str, range(20))), at_a_time=3)
    assert len(fake.requested) == 20
    assert 1 <= fake.most_at_a_time <= 3


async def test_the_case_is_made_of_the_test_and_of_the_answer(fake, tmp_path: Path) -> None:
    answer = {
        "output": {"x": 1},
        "tools_used": [{"name": "search", "arguments": {"q": 1}}],
        "model": "m@1",
        "cost_usd": 0.5,
    }
    tests = set_of(answer, expected={"x": 1}, tags=["a"], metadata={"team": "b"}, own="mine")
    (found,) = await run(HttpAgent(fake.url + "/reported", 1), tests, tmp_path / "r")
    (stated,) = kept(tmp_path / "r")
    case = case_of(stated["case"])
    assert (case.case_id, case.input, case.expected_outcome, case.tags) == ("t0", answer, {"x": 1}, ("a",))
    assert (case.model_output, case.tools_used[0].name, case.model, case.cost_usd) == ({"x": 1}, "search", "m@1", 0.5)
    assert case.latency_e2e_ms == stated["latency_e2e_ms"] > 0
    assert fake.requested[0]["metadata"] == {"team": "b"}
    assert [verdict["rubric"] for verdict in stated["verdicts"]] == ["workflow"]
    assert found.outcome.output == {"x": 1}


@pytest.mark.parametrize(
    ("answer", "given", "context"),
    [
        ("It is Paris.", {}, ()),
        ({"output": "It is Paris."}, {}, ()),
        ({"output": "It is Paris.", "tools_used": []}, {}, ()),
        ("It is Paris.", {"context": ["Paris is the capital."]}, ("Paris is the capital.",)),
        ({"output": "It is Paris.", "context": ["a"]}, {"context": ["b"]}, ("a",)),
        ({"output": "It is Paris.", "tools_used": ["search"]}, {}, None),
        ({"output": "It is Paris.", "trace_id": "1" * 32}, {}, None),
    ],
)
async def test_an_answer_that_names_no_source_has_none(answer, given, context, tmp_path: Path) -> None:
    class Agent(Scripted):
        async def ask(self, request: Request) -> AgentReply:
            self.requested.append(request.input)
            return AgentReply(stated=answer, latency_ms=1.5)

    await run(Agent(), set_of("Capital of France?", **given), tmp_path / "r")
    (stated,) = kept(tmp_path / "r")
    assert case_of(stated["case"]).context == context


async def test_a_time_out_is_kept_with_its_attempts(tmp_path: Path) -> None:
    class Agent(Scripted):
        async def ask(self, request: Request) -> AgentReply:
            request.attempts += 2
            raise TimeoutError

    await run(Agent(), set_of("x"), tmp_path / "r")
    (stated,) = kept(tmp_path / "r")
    assert (stated["timed_out"], stated["attempts"]) == (True, 2)


async def test_a_time_out_is_kept_with_the_time_it_took(fake, tmp_path: Path) -> None:
    (found,) = await run(HttpAgent(fake.url + "/slow", 1), set_of("x"), tmp_path / "r", limit_s=0.2)
    (stated,) = kept(tmp_path / "r")
    assert (stated["timed_out"], stated["case"], stated["verdicts"]) == (True, None, [])
    assert stated["latency_e2e_ms"] >= 200
    assert found.outcome.error == stated["error"]
    assert re.fullmatch(r"timed out after \d+\.\d s", stated["error"])
    assert found.outcome.evaluation.passed is False


@pytest.mark.parametrize("path", ["broken", "garbage", "endless", "reset", "cut", "much_later", "reported"])
async def test_an_agent_that_misbehaves_costs_its_test_and_no_other(fake, path) -> None:
    found = await run(HttpAgent(f"{fake.url}/{path}", 4), set_of({"no": "output"}, {"no": "output"}))
    assert [one.outcome.evaluation.passed for one in found] == [False, False]
    assert all(one.outcome.error for one in found)


async def test_an_agent_that_is_never_reached_ends_the_run_early(tmp_path: Path) -> None:
    agent = HttpAgent(f"http://127.0.0.1:{free_port()}/", 2)
    with pytest.raises(AgentUnreachableError, match="Connection refused"):
        await run(agent, set_of(*map(str, range(1000))), tmp_path / "r", at_a_time=2)
    assert len(kept(tmp_path / "r")) < 4
    with pytest.raises(AgentUnreachableError):
        await run(HttpAgent(agent.name, 1), set_of("only one"))


async def test_an_agent_that_is_lost_on_the_way_costs_the_tests_that_are_left() -> None:
    class Lost(Scripted):
        async def ask(self, request: Request) -> AgentReply:
            if len(self.requested) >= 2:
                raise AgentError("cannot connect", unreachable=True)
            return await super().ask(request)

    found = await run(Lost(), set_of(*map(str, range(9))), at_a_time=1)
    assert [one.outcome.error for one in found] == [None] * 2 + ["cannot connect"] * 7


async def test_what_was_answered_is_not_asked_again_and_what_was_not_is(tmp_path: Path) -> None:
    tests, path = set_of("a", "error", "c"), tmp_path / "r"
    for requested, lines in ((["a", "error", "c"], 3), (["error"], 4)):
        agent = Scripted()
        found = await run(agent, tests, path, at_a_time=1)
        assert agent.requested == requested
        assert len(kept(path)) == lines
        assert [one.outcome.evaluation.passed for one in found] == [True, False, True]
    assert [one.resumed for one in found] == [True, False, True]


async def test_a_test_that_changed_is_asked_again_and_the_last_line_holds(tmp_path: Path) -> None:
    path, agent = tmp_path / "r", Scripted()
    for tests in (set_of("a", "b"), set_of("a", "B"), set_of("a", "b"), set_of("a", "b")):
        found = await run(agent, tests, path, at_a_time=1)
        assert [one.outcome.output for one in found] == [test["input"] for test in tests]
    assert agent.requested == ["a", "b", "B", "b"]


async def test_where_the_judge_has_changed_the_answer_is_judged_again_and_not_asked_for(tmp_path: Path) -> None:
    path, agent, tests = tmp_path / "r", Scripted(), set_of("a", scenario="call")
    other = {"tools_should_include": ["other"]}
    judges = (
        (judge(scenarios={"call": SEARCH}), ["workflow"], True),
        (judge(scenarios={"call": other}), ["workflow"], False),
        (judge(scenarios={"call": other}), ["workflow"], False),
        (judge("answer", scenarios={"call": other}), ["answer"], None),
        (judge("answer", scenarios={"call": other}, min_coverage=0.5), ["answer"], None),
        (judge("answer", judged="openai/a-1", min_coverage=0.5), ["answer"], None),
        (judge("answer", judged="openai/a-1", min_coverage=0.5), ["answer"], None),
        (judge("answer", judged="openai/b-1", min_coverage=0.5), ["answer"], None),
    )
    for by, rubrics, passed in judges:
        (found,) = await run(agent, tests, path, by=by)
        assert [verdict["rubric"] for verdict in found.verdicts] == rubrics
        assert found.outcome.evaluation.passed is passed
    assert agent.requested == ["a"]
    assert len(kept(path)) == 6, "what stood was not written again"


@pytest.mark.parametrize("given", ["half \ud800 a pair", 2**70, {"a": [1.5, None, "\x00\x1b"]}, "\u2028\u0085\r\n", ""])
async def test_any_json_is_kept_and_read_again_as_it_was(tmp_path: Path, given) -> None:
    agent, tests = Scripted(), set_of(given, expected=given)
    for _ in range(2):
        (found,) = await run(agent, tests, tmp_path / "r")
        assert (found.outcome.output, found.outcome.evaluation.passed) == (given, True)
    assert agent.requested == [given]
    assert found.resumed


async def test_repeats_are_kept_apart(tmp_path: Path) -> None:
    agent = Scripted()
    for repeat in (2, 3):
        await run(agent, set_of("a"), tmp_path / "r", repeat=repeat)
    assert agent.requested == ["a"] * 3
    assert [stated["run"] for stated in kept(tmp_path / "r")] == [1, 2, 3]


@pytest.mark.parametrize("cut", [1, 100, 400])
async def test_half_a_line_is_cut_away_and_its_test_asked_again(tmp_path: Path, cut: int) -> None:
    path, agent = tmp_path / "r", Scripted()
    await run(agent, set_of("a", "b"), path, at_a_time=1)
    path.write_bytes(path.read_bytes()[:-cut])
    await run(agent, set_of("a", "b"), path)
    assert agent.requested == ["a", "b", "b"]
    assert [stated["id"] for stated in kept(path)] == ["t0", "t1"]


@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"id": "a", "run": 1}'])
def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / "r").write_text(line + "\n")
    with pytest.raises(AnotherRunError, match="line 1: is not the result of a test"), ResultsFile(tmp_path / "r", "a"):
        pass
    assert (tmp_path / "r").read_text() == line + "\n"


async def test_answers_of_another_agent_are_never_mixed_in(tmp_path: Path) -> None:
    await run(Scripted(), set_of("a"), tmp_path / "r")
    with pytest.raises(AnotherRunError, match="is an answer of a, not of two"), ResultsFile(tmp_path / "r", "two"):
        pass


@pytest.mark.parametrize(
    ("fields", "rubrics"),
    [
        ({}, ["dimensions"]),
        ({"scenario": SEARCH}, ["dimensions", "workflow"]),
        ({"task": "qa"}, ["qa"]),
        ({"task": "qa", "scenario": SEARCH}, ["qa", "workflow"]),
        ({"task": "poetry"}, ["dimensions"]),
        ({"metadata": {"task": "answer"}}, ["answer"]),
        ({"tags": ["sidejudge"]}, ["dimensions"]),
        ({"service": "sidejudge"}, ["dimensions"]),
    ],
)
async def test_the_task_names_the_rubric_and_dimensions_judges_the_rest(fields, rubrics) -> None:
    found = await judge().verdicts({"case_id": "a", "model_output": "x", "tools_used": [], **fields}, [])
    assert [verdict["rubric"] for verdict in found] == rubrics


@pytest.mark.parametrize(("tags", "rubrics"), [(["gold"], ["answer"]), (["out"], ["dimensions"]), ([], ["dimensions"])])
async def test_configured_routes_come_first_and_what_they_do_not_choose_is_judged_all_the_same(tags, rubrics) -> None:
    routes = [{"match": {"tags": ["gold"]}, "rubrics": ["answer"]}, {"match": {"tags": ["out"]}, "rubrics": []}]
    fields = {"case_id": "a", "model_output": "x", "tags": tags}
    assert [verdict["rubric"] for verdict in await judge(routes=routes).verdicts(fields, [])] == rubrics
    assert [verdict["rubric"] for verdict in await judge("qa", routes=routes).verdicts(fields, [])] == ["qa"]
