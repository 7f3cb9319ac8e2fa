"""``sidejudge score`` with a live judge: several cases in flight, verdicts in order, resumable, honest in an outage."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.fakes.judge import judges
from tests.fakes.openai import Provider, error, hangs, raw, states, unauthorised
from tests.forked import sidejudge
from tests.needs import LITELLM

pytestmark = LITELLM.mark

KEY = "sk-not-to-be-shown-1234567890"


@pytest.fixture
def provider():
    with Provider(judges(delay_s=0.05)) as running:
        yield running


def score(
    folder: Path, provider: Provider, cases: int, *options: str, strong: str | None = None, **judge
) -> subprocess.CompletedProcess[str]:
    section = {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": KEY, "retries": 0}
    config = {"evaluators": {"judge": {**section, **judge}}}
    if strong is not None:
        config["evaluators"]["judges"] = {"strong": {"model": strong}}
        config["rubrics"] = {"quality": {"judge": ["default", "strong"]}}
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    lines = [
        {
            "case_id": f"case-{n}", "input": f"When does order {n} come?", "model_output": f"Order {n} comes tomorrow.",
            "context": ["All orders come tomorrow."],
        }
        for n in range(cases)
    ]  # fmt: skip
    (folder / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ("cases.jsonl", "--out", "v.jsonl", "--config", "c.yaml", "--rubric", "quality", *options)
    return sidejudge("score", *given, cwd=folder)


def verdicts(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "v.jsonl").read_text().splitlines()]


def test_a_judge_that_fails_at_every_case_is_no_run_that_went_well(tmp_path, provider):
    provider.standing = states("not JSON")
    reported = score(tmp_path, provider, 3)
    assert reported.returncode == 1
    assert "quality: not one case could be judged; each ended in an error" in reported.stderr
    assert "remedy: " in reported.stderr
    assert {v["judge"]["calls"] for v in verdicts(tmp_path)} == {2}, "what came to nothing was paid for"
    assert all(v["judge"]["cost_usd"] > 0 for v in verdicts(tmp_path))
    again = provider.seen[0]
    provider.standing = lambda seen: (judges() if seen.raw == again.raw else states("not JSON"))(seen)
    assert score(tmp_path, provider, 3, "--overwrite").returncode == 0, "one verdict is something to go on"


def test_several_cases_are_in_flight_and_their_verdicts_stand_in_order(tmp_path, provider):
    reported = score(tmp_path, provider, 40, concurrency=6)
    assert reported.returncode == 0, reported.stderr
    assert [v["case_id"] for v in verdicts(tmp_path)] == [f"case-{n}" for n in range(40)]
    assert {v["judge"]["calls"] for v in verdicts(tmp_path)} == {1}
    cost = sum(v["judge"]["cost_usd"] for v in verdicts(tmp_path))
    assert f"judge: 40 requests, {sum(v['judge']['input_tokens'] for v in verdicts(tmp_path)):,} + " in reported.stderr
    assert reported.stderr.strip().endswith(f"tokens, {cost:.4f} USD")
    assert 2 <= provider.most_at_once <= 6


def test_calls_under_way_when_a_key_is_refused_are_paid_for_once(tmp_path, provider):
    answered = []

    def late(seen):
        answered.append(seen.raw)
        return judges(delay_s=0.5)(seen)

    provider.next.extend([unauthorised(), late, late, late])
    ended = score(tmp_path, provider, 4, concurrency=4)
    assert (ended.returncode, len(answered)) == (1, 3), ended.stderr
    assert score(tmp_path, provider, 4, concurrency=4).returncode == 0
    assert len(provider.seen) == 5, "the refused one alone is asked again"


@pytest.mark.parametrize(
    ("options", "remedy"),
    [((), "with --out FILE a run goes on where it ended"), (("--out", "r.jsonl"), "what was judged stands in --out")],
)
def test_a_test_run_whose_judge_is_out_names_what_is_kept(tmp_path, provider, options, remedy):
    provider.standing = unauthorised()
    section = {"model": "openai/gpt-4.1-mini-2025-04-14", "api_base": provider.url, "api_key": KEY, "retries": 0}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"evaluators": {"judge": section}}))
    tests = [{"id": "one", "input": "When?", "expected": "Tomorrow.", "rubrics": ["quality"]}]
    (tmp_path / "t.yaml").write_text(yaml.safe_dump({"tests": tests}))
    agent = ("--agent", "python:sidejudge.monitor.offline.test.example.desk:answer")
    ended = sidejudge("test", "t.yaml", *agent, "--config", "c.yaml", *options, cwd=tmp_path)
    assert (ended.returncode, remedy in ended.stderr) == (1, True), ended.stderr


@pytest.mark.parametrize(
    ("answer", "status", "stated"),
    [
        (unauthorised(), 1, "error: evaluators.judge: openai/gpt-4.1-2025-04-14: authentication failed"),
        (states("no JSON"), 0, "asked about 2 of 2 and turned 0; 2 times it gave no answer"),
    ],
)
def test_a_stronger_judge_that_gives_no_answer_is_named(tmp_path, provider, answer, status, stated):
    strong = "openai/gpt-4.1-2025-04-14"
    near = judges(lambda _, field: 0.7 if field.endswith(("quality", "correctness", "completeness")) else None)
    provider.standing = lambda seen: (answer if strong.endswith(seen.body["model"]) else near)(seen)
    ended = score(tmp_path, provider, 2, strong=strong)
    assert (ended.returncode, stated in ended.stderr) == (status, True), ended.stderr


def test_a_run_that_an_outage_ended_goes_on_where_it_stopped(tmp_path, provider):
    provider.next.extend([judges()] * 10)
    provider.standing = unauthorised()
    reported = score(tmp_path, provider, 20, concurrency=1)
    assert reported.returncode == 1
    cost, cause, remedy = reported.stderr.strip().splitlines()[-3:]
    assert cost.startswith("judge: 11 requests (1 in vain), "), "what was paid so far"
    assert cause.startswith("error: evaluators.judge: openai/gpt-4.1-mini-2025-04-14: authentication failed")
    assert remedy.startswith("remedy: mend it and call again")
    assert KEY not in reported.stdout + reported.stderr
    assert len(verdicts(tmp_path)) == 10

    provider.standing = judges()
    again = score(tmp_path, provider, 20, concurrency=4)
    assert again.returncode == 0, again.stderr
    assert "10 verdicts stood already" in again.stderr
    assert [v["case_id"] for v in verdicts(tmp_path)] == [f"case-{n}" for n in range(20)]
    assert {v["state"] for v in verdicts(tmp_path)} == {"valid"}


def test_repeats_ask_the_judge_each_time_and_pay_for_no_answer_twice(tmp_path, provider):
    answered = []

    def act(seen):
        answered.append(seen.raw)
        return judges()(seen)

    provider.next.extend([act] * 7)
    provider.standing = unauthorised()
    assert score(tmp_path, provider, 4, "--repeat", "3", concurrency=4).returncode == 1
    assert len(answered) == 7
    provider.standing = act
    again = score(tmp_path, provider, 4, "--repeat", "3", concurrency=4)
    assert again.returncode == 0, again.stderr
    assert sorted(Counter(answered).values()) == [3] * 4
    assert [(v["case_id"], v["run"]) for v in verdicts(tmp_path)] == [
        (f"case-{n}", run) for n in range(4) for run in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        (
            {"model": "openai/gpt-4.1-2025-04-14"},
            "evaluators.judge.model has changed (was 'openai/gpt-4.1-mini-2025-04-14'",
        ),
        ({"temperature": 0.5}, "evaluators.judge.temperature has changed (was not set, now 0.5)"),
        ({"redact": ["email"]}, "evaluators.judge.redact has changed (was not set, now ['email'])"),
    ],
)
@pytest.mark.parametrize("out", [(), ("--shards", "jsonl", "--out", "shards")])
def test_a_run_does_not_go_on_with_another_judge(tmp_path, provider, changes, cause, out):
    assert score(tmp_path, provider, 2, *out).returncode == 0
    before = {each: each.read_bytes() for each in tmp_path.rglob("*.json*") if "judge" not in each.name}
    done = score(tmp_path, provider, 2, *out, **changes)
    assert done.returncode == 2
    assert cause in done.stderr
    assert "--overwrite" in done.stderr
    assert {each: each.read_bytes() for each in before} == before
    assert score(tmp_path, provider, 2, *out, "--overwrite", **changes).returncode == 0
    assert score(tmp_path, provider, 2, *out, **changes, concurrency=2, timeout="30s").returncode == 0


def test_a_judge_that_is_out_of_reach_for_a_while_is_waited_for(tmp_path, provider):
    provider.will(*[error(503, "overloaded")] * 6)
    reported = score(tmp_path, provider, 6, concurrency=3)
    assert reported.returncode == 0, reported.stderr
    assert {v["state"] for v in verdicts(tmp_path)} == {"valid"}
    stated = [seen.messages[-1]["content"] for seen in provider.seen[6:]]
    order = [int(found[1]) for text in stated if (found := re.search(r"Order (\d+) comes", text))]
    assert len(stated) - len(order) <= 1  # a greeting found out that it is back
    assert Counter(order) == dict.fromkeys(range(6), 1)


PRICED = {"price": {"input_usd_per_million": 1000.0, "output_usd_per_million": 100.0}}


def test_the_budget_and_the_answers_of_a_run_outlive_it(tmp_path, provider):
    spent = []
    for _ in range(3):
        reported = score(tmp_path, provider, 30, concurrency=2, budget_usd_per_hour=12.0, **PRICED)
        assert reported.returncode == 1
        assert "over budget: the budget for judging is spent: " in reported.stderr
        assert "of 12.0000 USD this hour, and the next call may cost " in reported.stderr
        spent.append(len(provider.seen))
    assert spent[0] > 3
    assert spent[0] == spent[1] == spent[2], "the same command spends nothing again within the hour"
    judged = len(verdicts(tmp_path))

    (tmp_path / "v.jsonl").unlink()
    score(tmp_path, provider, 30, concurrency=2, budget_usd_per_hour=12.0, **PRICED)
    assert len(provider.seen) == spent[0], "what was answered is not asked again"
    assert len(verdicts(tmp_path)) == judged


def test_calls_under_way_are_waited_for_where_only_what_is_set_aside_for_them_fills_the_budget(tmp_path, provider):
    # A call costs about 1 USD and has 1.1 set aside: eight at once would exceed the budget that all twelve fit into.
    reported = score(tmp_path, provider, 6, concurrency=6, budget_usd_per_hour=8.0, **PRICED)
    total = sum(v["judge"]["cost_usd"] for v in verdicts(tmp_path))
    assert reported.returncode == 0, (reported.stderr, total)
    assert total < 8.0


def test_calls_under_way_when_a_run_is_killed_count_as_spent(tmp_path, provider):
    provider.standing = hangs()
    score(tmp_path, provider, 0, **PRICED)  # writes the configuration and no case
    config = yaml.safe_load((tmp_path / "c.yaml").read_text())
    config["evaluators"]["judge"] |= {"budget_usd_per_hour": 4.0, "concurrency": 2, **PRICED}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "cases.jsonl").write_text(
        "".join(json.dumps({"case_id": f"{n}", "input": "a", "model_output": f"b {n}", "context": ["c"]}) + "\n"
                for n in range(6))
    )  # fmt: skip
    given = ("score", "cases.jsonl", "--out", "v.jsonl", "--config", "c.yaml", "--rubric", "quality")
    running = subprocess.Popen([sys.executable, "-m", "sidejudge", *given], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(provider.seen) == 2)
    finally:
        running.kill()
        running.wait()
    with closing(sqlite3.connect(tmp_path / "v.jsonl.judge")) as store:
        ((spent,),) = store.execute("SELECT SUM(usd) FROM judge_spend").fetchall()
    assert spent > 1.5, "both calls were under way"


def test_the_cause_of_an_endpoint_that_always_fails_is_reported(tmp_path, provider):
    provider.standing = raw(b'{"id": "x", "choices": null, "note": "no model is loaded"}')
    reported = score(tmp_path, provider, 12, concurrency=1, max_wait="1s")
    assert reported.returncode == 1
    assert "bad answer: " in reported.stderr, reported.stderr
    assert "choices" in reported.stderr


def until(holds, *, within_s: float = 30.0):
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
