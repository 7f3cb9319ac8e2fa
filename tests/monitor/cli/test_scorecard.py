"""``sidejudge scorecard``: real verdict files, costs, weights, revisions, bad lines and wrong calls."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidejudge.scoring.runs.final import TASKS
from tests.forked import peak_kb
from tests.verdict_lines import json_lines, metric_line, verdict_line


def all_tasks(composite: float, n: int = 3, **changes: object) -> list[dict]:
    return [verdict_line(f"c{i}", task, composite, **changes) for i in range(n) for task in TASKS]


def reported(result) -> dict:
    return json.loads(result.stdout)


def cell(card: dict, title: str, model: str = "A") -> dict:
    return next(row["cells"][model] for row in card["rows"] if row["title"] == title and row["cells"])


def test_two_models_are_compared_with_score_b_cost_and_rank(call, tmp_path: Path) -> None:
    a = json_lines(tmp_path / "a.jsonl", all_tasks(0.9))
    b = json_lines(tmp_path / "b.jsonl", all_tasks(0.8, cost_usd=0.001))
    done = call("scorecard", f"A={a}", f"B={b}", "--cost", "A=4", "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    card = reported(done)
    assert card["models"] == ["A", "B"]
    assert [cell(card, "Final Score (without benchmarks)", model)["value"] for model in "AB"] == [0.9, 0.8]
    assert [cell(card, "Cost per 1000 calls", model)["value"] for model in "AB"] == [4.0, 1.0]
    assert card["cost_efficiency"] == {"A": 0.225, "B": 0.8}
    assert [cell(card, "Cost-Adjusted Rank", model)["value"] for model in "AB"] == [2, 1]
    assert card["cases"]["A"]["qa"]["valid"] == 3


def test_markdown_is_what_is_written_without_being_asked(call, tmp_path: Path) -> None:
    a = json_lines(tmp_path / "a.jsonl", all_tasks(0.9))
    done = call("scorecard", f"A={a}")
    assert done.exit_code == 0
    assert "| Metric | A | Threshold |" in done.stdout
    assert "| Final Score (without benchmarks) | 0.900 | Option B |" in done.stdout


def test_out_takes_the_page_and_standard_output_stays_empty(call, tmp_path: Path) -> None:
    a = json_lines(tmp_path / "a.jsonl", all_tasks(0.9))
    done = call("scorecard", f"A={a}", "--format", "html", "--out", tmp_path / "card.html")
    assert (done.exit_code, done.stdout) == (0, "")
    assert (tmp_path / "card.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_weights_are_the_workloads_split(call, tmp_path: Path) -> None:
    lines = [verdict_line("1", "qa", 0.9), verdict_line("1", "text", 0.5)]
    a = json_lines(tmp_path / "a.jsonl", lines)
    done = call("scorecard", f"A={a}", "--weight", "qa=0.75", "--weight", "text=0.25", "--format", "json")
    card = reported(done)
    assert cell(card, "Final Score (without benchmarks)")["value"] == 0.8
    assert card["options"]["A"]["weights"]["benchmarks"] == 0.3
    assert card["options"]["B"]["weights"]["entity"] == 0


def test_bad_lines_are_reported_with_their_numbers_and_the_rest_counts(call, tmp_path: Path) -> None:
    lines = [
        verdict_line("1"),
        "{not json",
        "",
        "[]",
        {**verdict_line("2"), "composite": "high", "composite_norm": None},
    ]
    a = json_lines(tmp_path / "a.jsonl", lines)
    done = call("scorecard", f"A={a}", "--format", "json")
    assert done.exit_code == 1
    assert cell(reported(done), "QA Score")["n"] == 1
    for number, what in ((2, "is not JSON"), (4, "is not an object"), (5, "composite")):
        assert f"line {number}: {what}" in done.stderr
    assert "line 3:" not in done.stderr
    assert "lines that are no verdicts, and were skipped: 3" in done.stderr


def test_a_revision_replaces_what_it_revises(call, tmp_path: Path) -> None:
    lines = [
        verdict_line("a", composite=0.2, trace_id="t1"),
        verdict_line("b", composite=0.6, trace_id="t2"),
        verdict_line("a", composite=1.0, trace_id="t1", revision=2),
    ]
    done = call("scorecard", f"A={json_lines(tmp_path / 'a.jsonl', lines)}", "--format", "json")
    assert done.exit_code == 0
    assert cell(reported(done), "QA Score")["value"] == 0.8
    assert "replaced by a later revision: 1" in done.stderr


def test_a_case_that_stands_twice_counts_twice_and_is_told(call, tmp_path: Path) -> None:
    lines = [verdict_line("a", composite=0.2), verdict_line("a", composite=0.6), verdict_line("a", "text", 0.5)]
    done = call("scorecard", f"A={json_lines(tmp_path / 'a.jsonl', lines)}", "--format", "json")
    assert cell(reported(done), "QA Score")["n"] == 2
    assert "verdict of the same rubric already; all count: 1" in done.stderr


def test_runs_of_a_batch_that_repeats_are_no_mistake(call, tmp_path: Path) -> None:
    lines = [verdict_line("a", composite=0.2, run=1), verdict_line("a", composite=0.6, run=2)]
    done = call("scorecard", f"A={json_lines(tmp_path / 'a.jsonl', lines)}", "--format", "json")
    assert (cell(reported(done), "QA Score")["value"], done.stderr) == (0.4, "")


def test_several_versions_of_a_rubric_are_warned_of(call, tmp_path: Path) -> None:
    lines = [verdict_line("a"), verdict_line("b", rubric_version="qa@ffffffff")]
    done = call("scorecard", f"A={json_lines(tmp_path / 'a.jsonl', lines)}")
    assert done.exit_code == 0
    assert "warning: verdicts of several versions of qa are put together: qa@00000000, qa@ffffffff" in done.stderr


def test_verdicts_of_other_rubrics_are_counted_and_named(call, tmp_path: Path) -> None:
    lines = [
        verdict_line("a"),
        verdict_line("a", "workflow", 1.0),
        verdict_line("a", "agent", 80.0, composite_norm=0.8),
    ]
    done = call("scorecard", f"A={json_lines(tmp_path / 'a.jsonl', lines)}")
    assert done.exit_code == 0
    assert "(agent, workflow): 2" in done.stderr


def test_a_verdict_that_quotes_half_a_surrogate_pair_is_read(call, tmp_path: Path) -> None:
    line = verdict_line("a", scores=[metric_line("score_gap_accuracy", None, "unavailable", "\ud800")])
    done = call("scorecard", f"A={json_lines(tmp_path / 'a.jsonl', [line])}", "--format", "html")
    assert done.exit_code == 0
    assert "unavailable in 1 case (?)" in done.stdout


def test_terminal_escapes_of_a_line_reach_no_terminal(call, tmp_path: Path) -> None:
    evil = "\x1b[2J<b>|`"
    line = verdict_line("a", state=evil)
    good = verdict_line("b", rubric_version=evil, scores=[metric_line("score_gap_accuracy", None, "error", evil)])
    lines = [line, good, verdict_line("c"), verdict_line("d", evil)]
    done = call("scorecard", f"A={json_lines(tmp_path / 'a.jsonl', lines)}")
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout + done.stderr


def test_wrong_calls_exit_2_with_cause_and_remedy(call, tmp_path: Path) -> None:
    a = json_lines(tmp_path / "a.jsonl", [verdict_line("1")])
    empty = json_lines(tmp_path / "empty.jsonl", [])
    other = json_lines(tmp_path / "other.jsonl", [verdict_line("1", "workflow", 1.0)])
    for arguments, cause in (
        ((a,), "is not NAME=VALUE"),
        ((f"={a}",), "is not NAME=VALUE"),
        ((f"A={a}", f"A={a}"), "given twice"),
        ((f"A={tmp_path / 'none.jsonl'}",), "does not exist"),
        ((f"A={tmp_path}",), "is no regular file"),
        ((f"A={empty}",), "no verdict that the scorecard shows"),
        ((f"A={other}",), "no verdict that the scorecard shows"),
        ((f"A={a}", "--cost", "B=1"), "there is no model 'B'"),
        ((f"A={a}", "--cost", "A=0"), "is not a cost"),
        ((f"A={a}", "--cost", "A=nan"), "is not a cost"),
        ((f"A={a}", "--weight", "poetry=1"), "no call task"),
        ((f"A={a}", "--weight", "qa=0.5"), "sum to 0.5"),
        ((f"A={a}", "--out", a), "is the verdicts of A"),
        (("x" * 61 + f"={a}",), "a name of 61 characters"),
    ):
        before = a.read_bytes()
        done = call("scorecard", *arguments)
        assert done.exit_code == 2, arguments
        assert cause in done.stderr
        assert done.stderr.splitlines()[-1].startswith("remedy: ")
        assert done.stdout == ""
        assert a.read_bytes() == before


def test_verdicts_as_score_writes_them_fill_the_card(call, tmp_path: Path) -> None:
    reason = "At 00:05 the agent said 'I have verified your account'."
    question = {"question_id": "Q1", "score": 5, "max_score": 5, "type": "PASS_FAIL", "reason": reason}
    wrong = {**question, "score": 0}
    cases = [
        {
            "case_id": f"call-{n}", "task": "qa", "cost_usd": 0.002, "model_output": {"questions": [question]},
            "transcript": "[00:05] Agent: I have verified your account.", "expected_outcome": {"questions": [expected]},
        }
        for n, expected in enumerate((question, question, wrong))
    ]  # fmt: skip
    scored = call("score", json_lines(tmp_path / "cases.jsonl", cases), "--out", tmp_path / "v.jsonl")
    assert scored.exit_code == 0, scored.stderr
    card = reported(call("scorecard", f"A={tmp_path / 'v.jsonl'}", "--format", "json"))
    rate = cell(card, "Compliance False Pass Rate")
    assert (round(rate["value"], 9), rate["rating"], rate["blocked"]) == (round(1 / 3, 9), "blocker", 1)
    assert round(cell(card, "Question Score Accuracy")["value"], 9) == round(2 / 3, 9)
    assert cell(card, "Cost per 1000 calls")["value"] == 2.0
    assert cell(card, "Any Blocker Triggered?")["value"] is True


@pytest.mark.parametrize("what", ["final", "final_score"])
def test_the_final_score_is_explained_with_its_weights(call, what: str) -> None:
    done = call("explain", what)
    assert done.exit_code == 0
    assert "qa 25%, entity 20%, text 15%, translation 10%, benchmarks 30%" in done.stdout
    assert "qa 35%, entity 30%, text 20%, translation 15%" in done.stdout


def test_the_final_score_is_listed_among_the_metrics(call) -> None:
    assert "final_score" in call("metrics").stdout
    listed = json.loads(call("metrics", "--rubric", "final", "--format", "json").stdout)
    assert [each["id"] for each in listed] == ["final_score", "cost_efficiency"]
    assert listed[0]["weights"]["Option B"]["qa"] == 0.35


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """The memory that a small file needs, with 25 MB more, is enough for one of 65 MB."""
    scores = [metric_line(f"question_{n}", 0.9, reason="x" * 3000) for n in range(4)]
    line = json.dumps(verdict_line("{}", scores=scores))
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    small.write_text(line + "\n")
    with large.open("w") as file:
        for n in range(5000):
            file.write(line.replace("{}", str(n), 1) + "\n")

    def peak(path: Path) -> int:
        return peak_kb("scorecard", f"A={path}", "--format", "json", "--out", tmp_path / "out.json")

    assert large.stat().st_size > 60e6
    assert peak(large) - peak(small) < 25_000
