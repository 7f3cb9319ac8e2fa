"""``sidejudge test`` as it is called: what it prints, how it ends, and going on after it was killed."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.agents import FakeAgent
from tests.fakes.openai import Provider, page
from tests.forked import Forked, sidejudge
from tests.needs import LITELLM
from tests.running import free_port

SET = """\
name: capitals
tests:
  - {id: paris, input: France, tags: [geo, easy], complexity: low, task: workflow, scenario: &with_atlas
      {tools_should_include: [atlas]}}
  - {id: rome, input: Italy, tags: [geo], task: workflow, scenario: {tools_should_include: [globe]}}
  - {id: bern, input: Switzerland, task: workflow, scenario: *with_atlas}
"""
BOT = """
import time
def ask(country):
    print("thinking about", country)
    if country == "Nowhere":
        raise LookupError("no such \\x1b[31mplace")
    return {"output": f"The capital of {country}", "tools_used": ["atlas"], "agents_called": ["orchestrator"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "set.yaml").write_text(SET)
    (tmp_path / "bot.py").write_text(BOT)
    return tmp_path


@pytest.fixture
def fake():
    agent = FakeAgent()
    yield agent
    agent.close()


def run(folder: Path, *arguments: object, name: str = "set.yaml") -> subprocess.CompletedProcess[str]:
    return sidejudge("test", name, *arguments, cwd=folder)


def cells(reported: str) -> list[list[str]]:
    return [line.split() for line in reported.splitlines()]


def test_a_table_by_rubric_by_tag_and_by_complexity_and_the_failures_with_their_reasons(folder: Path) -> None:
    done = run(folder, "--agent", "python:bot:ask")
    assert done.returncode == 1, done.stderr
    rows = cells(done.stdout)
    assert rows[0] == ["RUBRIC", "N", "PASSED", "FAILED", "INCOMPLETE", "PASS", "RATE"]
    for row in (
        ["workflow", "3", "2", "1", "0", "66.7", "%"],
        ["geo", "2", "1", "1", "0", "50.0", "%"],
        ["easy", "1", "1", "0", "0", "100.0", "%"],
        ["low", "1", "1", "0", "0", "100.0", "%"],
        ["medium", "2", "1", "1", "0", "50.0", "%"],
        ["FAILED", "(1)"],
    ):
        assert row in rows
    assert "  rome: workflow: tools: missing: globe; unexpected: atlas" in done.stdout
    assert done.stdout.splitlines()[-1] == "capitals: 3 run: 2 passed, 1 failed, 0 incomplete"
    assert "thinking about" not in done.stdout, "what an agent prints is not our result"
    assert "thinking about" in done.stderr


def test_json_is_the_summary_and_nothing_else(folder: Path) -> None:
    reported = json.loads(run(folder, "--agent", "python:bot:ask", "--format", "json").stdout)
    assert list(reported) == [
        "total_tests", "passed", "failed", "pass_rate", "dimension_averages", "failures", "incomplete", "errors",
    ]  # fmt: skip
    assert (reported["total_tests"], reported["passed"], reported["failed"], reported["pass_rate"]) == (
        3,
        2,
        1,
        pytest.approx(2 / 3),
    )
    (failure,) = reported["failures"]
    assert (failure["test"]["id"], failure["output"]) == ("rome", "The capital of Italy")
    assert failure["evaluation"]["passed"] is False


def test_tags_and_fields_choose_and_all_passed_is_0(folder: Path) -> None:
    done = run(folder, "--agent", "python:bot:ask", "--tag", "geo", "--where", "complexity=low")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "capitals: 1 run: 1 passed, 0 failed, 0 incomplete")


def test_an_agent_that_raises_is_a_failed_test_and_its_words_are_harmless(folder: Path) -> None:
    (folder / "set.yaml").write_text(SET + "  - {id: no, input: Nowhere}\n")
    done = run(folder, "--agent", "python:bot:ask", "--where", "id=no")
    assert done.returncode == 1
    assert "no: no output: it raised LookupError: no such place" in done.stdout
    assert "\x1b" not in done.stdout
    assert "1 failed (1 without an output)" in done.stdout


def test_without_a_judge_it_is_said_plainly_with_a_remedy(folder: Path) -> None:
    (folder / "set.jsonl").write_text(json.dumps({"input": "France", "expected": "Paris"}) + "\n")
    done = run(folder, "--agent", "python:bot:ask", name="set.jsonl")
    assert done.returncode == 1
    assert ["dimensions", "1", "0", "0", "1", "-"] in cells(done.stdout)
    assert "needs a judge" in done.stdout
    assert "remedy: configure a judge (evaluators.judge); rubrics that need none (--rubric NAME) are qa," in done.stdout


@LITELLM.mark
def test_who_waits_for_a_judge_sees_which_and_why(folder: Path) -> None:
    with Provider(page(503)) as provider:
        judge = {"model": "openai/gpt-4.1-mini", "api_base": provider.url, "api_key": "sk", "max_wait": "1s"}
        (folder / "judged.yaml").write_text(json.dumps({"evaluators": {"judge": judge}}))
        done = run(folder, "--agent", "python:bot:ask", "--config", "judged.yaml", "--rubric", "answer")
    assert done.returncode == 1
    assert "the judge is unreachable; traces that need it wait: openai/gpt-4.1-mini: overloaded" in done.stderr
    assert "error: evaluators.judge: openai/gpt-4.1-mini: overloaded" in done.stderr


def test_three_repeats_tell_mean_and_standard_deviation(folder: Path) -> None:
    done = run(folder, "--agent", "python:bot:ask", "--repeat", 3, "--format", "json")
    reported = json.loads(done.stdout)
    assert reported["total_tests"] == 9
    assert reported["repeats"]["runs"] == 3
    assert reported["repeats"]["pass_rate"]["mean"] == pytest.approx(2 / 3)
    assert reported["repeats"]["pass_rate"]["sd"] == 0
    shown = run(folder, "--agent", "python:bot:ask", "--repeat", 3)
    assert ["pass", "rate", "0.667", "0.000", "0.667", "0.667", "0.667"] in cells(shown.stdout)


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("--agent", "python:nothing_here:f"), "--agent: there is no module 'nothing_here'"),
        (("--agent", "python:bot:aks"), "--agent: 'bot' has no 'aks'; did you mean ask?"),
        (("--agent", "ftp://x"), "--agent: 'ftp://x' is no agent"),
        (("--agent", "http://"), "--agent: 'http://' names no host"),
        (("--agent", "python:bot:ask", "--timeout", "60"), "--timeout: must be a duration"),
        (("--agent", "python:bot:ask", "--timeout", "0s"), "--timeout: must be more than 0"),
        (("--agent", "python:bot:ask", "--tag", "goe"), "--tag: no test carries 'goe'; did you mean geo?"),
        (("--agent", "python:bot:ask", "--where", "geo"), "--where: 'geo' is not KEY=VALUE"),
        (("--agent", "python:bot:ask", "--where", "complexity=hard"), "no test of set.yaml is all of these"),
        (("--agent", "python:bot:ask", "--rubric", "poetry"), "--rubric: there is no rubric 'poetry'"),
        (("--agent", "python:bot:ask", "--out", "set.yaml"), "--out: set.yaml is the test set itself"),
        (("--agent", "python:bot:ask", "--out", "bot.py"), "bot.py, line 1: is not the result of a test"),
        ((), "Missing option '--agent'"),
    ],
)
def test_a_wrong_call_is_told_in_two_lines_and_exits_2(folder: Path, arguments, cause) -> None:
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("error: ")
    assert cause in first
    assert second.startswith("remedy: ")


def test_mistakes_of_the_set_are_told_all_at_once(folder: Path) -> None:
    (folder / "set.yaml").write_text("name: x\ntests:\n  - {inptu: a}\n  - {input: b, scenario: nowhere}\n")
    done = run(folder, "--agent", "python:bot:ask")
    assert done.returncode == 2
    assert [line.split()[1] for line in done.stderr.splitlines()[:-1]] == ["tests[0].inptu", "tests[1].scenario"]
    assert "help reference/test-sets" in done.stderr.splitlines()[-1]
    missing = run(folder, "--agent", "python:bot:ask", name="none.yaml")
    assert (missing.returncode, missing.stderr.splitlines()) == (
        2,
        ["error: none.yaml: cannot be read: No such file or directory", "remedy: check the path and the permissions"],
    )


def test_an_agent_that_nobody_can_reach_is_said_early_and_exits_2(folder: Path) -> None:
    done = run(folder, "--agent", f"http://127.0.0.1:{free_port()}/ask")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no agent answers at http://127.0.0.1:" in done.stderr
    assert "Connection refused" in done.stderr


def test_a_time_limit_holds_for_an_agent_that_hangs(folder: Path, fake: FakeAgent) -> None:
    done = run(folder, "--agent", fake.url + "/slow", "--timeout", "200ms", "--out", "r.jsonl")
    assert done.returncode == 1
    assert re.search(r"paris: no output: timed out after \d\.\d s", done.stdout)
    assert all(json.loads(line)["timed_out"] for line in (folder / "r.jsonl").read_text().splitlines())


def test_a_run_that_is_killed_again_and_again_asks_nothing_that_was_answered_and_ends_whole(
    folder: Path, fake: FakeAgent
) -> None:
    tests = [{"id": f"t{n}", "input": {"output": n}, "task": "workflow", "scenario": {}} for n in range(400)]
    (folder / "set.json").write_text(json.dumps({"name": "many", "tests": tests}))
    out = folder / "r.jsonl"
    agent = fake.url + "/reported"
    command = ["test", "set.json", "--agent", agent, "--out", "r.jsonl", "--concurrency", "2"]

    kills, size = 0, 0
    for _ in range(3):
        process = Forked(*command, cwd=folder)
        # Killed as soon as it has written something new, so that every run is cut off in the middle of its work.
        while process.poll() is None and (out.stat().st_size if out.exists() else 0) <= size:
            time.sleep(0.002)
        process.kill()
        kills += process.wait() == -9
        size = out.stat().st_size
    assert kills >= 2, "the runs ended before they could be killed"

    done = sidejudge(*command, cwd=folder)
    stated = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(each["id"] for each in stated) == sorted(test["id"] for test in tests), "each once, none lost"
    assert {each["id"]: each["case"]["model_output"] for each in stated} == {f"t{n}": n for n in range(400)}
    requested = [body["test_id"] for body in fake.requested]
    assert len(requested) - len(set(requested)) <= 2 * kills, (
        "only what was under way when it was killed is asked again"
    )
    assert "400 run" in done.stdout
    assert "stood already and were not run again" in done.stdout

    before = out.read_bytes()
    again = sidejudge(*command, cwd=folder)
    assert again.stdout.splitlines()[:-1] == done.stdout.splitlines()[:-1]
    assert len(fake.requested) == len(requested)
    assert out.read_bytes() == before
