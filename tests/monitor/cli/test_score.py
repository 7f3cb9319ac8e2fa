"""``sidejudge score``: routing, reports, exit codes, and going on exactly where a run was cut off."""

from __future__ import annotations

import io
import json
import logging
import subprocess
from pathlib import Path

import pytest

from sidejudge.monitor.cli.score import CausesShown
from sidejudge.monitor.offline.score.case_lines import lines
from sidejudge.monitor.offline.score.resume import AnotherRunError
from sidejudge.monitor.offline.score.verdict_file import VerdictFile
from tests.forked import peak_kb, sidejudge
from tests.verdict_lines import json_lines


def qa_case(number: int, *, right: bool = True) -> dict[str, object]:
    """A call with two questions, of which the model gets one wrong when it is not right."""
    reason = "At 00:05 the agent said 'I have verified your account'."
    reference = [
        {"question_id": "Q1", "score": 5, "max_score": 5, "type": "PASS_FAIL", "reason": reason},
        {"question_id": "Q2", "score": 4, "max_score": 5, "type": "SCORE", "reason": reason},
    ]
    given = [reference[0], {**reference[1], "score": 4 if right else 1}]
    return {
        "case_id": f"call-{number}",
        "task": "qa",
        "transcript": "[00:00] Agent: Hello.\n[00:05] Agent: I have verified your account.",
        "model_output": {"questions": given},
        "expected_outcome": {"questions": reference},
    }


def verdicts(path: Path) -> list[dict[str, object]]:
    """The verdicts of a file, without the time of judging."""
    lines = path.read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "created_at"} for line in lines]


def score(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return sidejudge("score", *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> tuple[Path, list[dict[str, object]]]:
    """Two hundred cases with some that are none, and the verdicts of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("many")
    cases: list[object] = [qa_case(n, right=n % 3 != 0) for n in range(200)]
    cases[50], cases[150] = "{not json", {"case_id": "no output"}
    path = json_lines(folder / "cases.jsonl", cases)
    done = score(path, "--out", folder / "whole.jsonl", "--rubric", "qa", "--rubric", "answer")
    assert done.returncode == 1, done.stderr
    return path, verdicts(folder / "whole.jsonl")


def test_each_case_and_rubric_is_one_verdict_in_order(many) -> None:
    _, whole = many
    assert len(whole) == 198 * 2
    assert [(each["case_id"], each["rubric"]) for each in whole[:3]] == [
        ("call-0", "qa"), ("call-0", "answer"), ("call-1", "qa"),
    ]  # fmt: skip


def test_bad_lines_are_reported_with_number_and_field_and_skipped(tmp_path: Path) -> None:
    cases = json_lines(
        tmp_path / "c.jsonl",
        [qa_case(1), "{not json", "", {"case_id": "x"}, {"case_id": 7, "model_output": 1}, qa_case(2)],
    )
    done = score(cases, "--out", tmp_path / "v.jsonl")
    assert done.returncode == 1
    assert [each["case_id"] for each in verdicts(tmp_path / "v.jsonl")] == ["call-1", "call-2"]
    stated = done.stderr
    assert "line 2" in stated
    assert "line 4" in stated
    assert "model_output" in stated
    assert "line 5" in stated
    assert "case_id" in stated
    assert "line 3" not in stated
    assert "3 lines are no cases and were skipped" in stated


def test_a_good_run_exits_0_and_sums_up_on_standard_error(tmp_path: Path) -> None:
    cases = json_lines(tmp_path / "c.jsonl", [qa_case(1), qa_case(2, right=False)])
    done = score(cases, "--out", tmp_path / "v.jsonl")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    head, row = done.stderr.splitlines()[:2]
    assert head.split() == ["RUBRIC", "N", "PASSED", "FAILED", "INCOMPLETE", "PASS", "RATE", "MEAN", "COMPOSITE"]
    reported = verdicts(tmp_path / "v.jsonl")
    passed = sum(each["passed"] is True for each in reported)
    assert row.split()[:4] == ["qa", "2", str(passed), str(2 - passed)]


def test_a_dash_is_standard_input_and_output(tmp_path: Path) -> None:
    done = score("-", "--out", "-", stdin=json.dumps(qa_case(7)) + "\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["case_id"] == "call-7"


def test_a_task_without_a_rubric_is_reported(tmp_path: Path) -> None:
    cases = json_lines(tmp_path / "c.jsonl", [{"case_id": "a", "task": "poetry", "model_output": "x"}])
    done = score(cases, "--out", tmp_path / "v.jsonl")
    assert done.returncode == 1
    assert (
        "line 1: task: this version has no rubric for 'poetry' (it has one for qa, entity, text, translation, "
        "answer, workflow, agent, quality, dimensions)" in done.stderr
    )
    assert (tmp_path / "v.jsonl").read_bytes() == b""


def test_configured_routes_choose_and_what_they_do_not_choose_is_no_error(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("routes: [{match: {tags: [gold]}, rubrics: [answer]}]\nrubrics: {answer: {min_coverage: 0.5}}")
    cases = json_lines(tmp_path / "c.jsonl", [{**qa_case(1), "tags": ["gold"]}, qa_case(2)])
    done = score(cases, "--out", tmp_path / "v.jsonl", "--config", config)
    assert done.returncode == 0, done.stderr
    assert [(each["case_id"], each["rubric"]) for each in verdicts(tmp_path / "v.jsonl")] == [("call-1", "answer")]
    assert "1 case has no rubric" in done.stderr


def test_scenarios_of_the_configuration_are_found_by_name(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("scenarios: {call: {tools_should_include: [search]}}")
    case = {"case_id": "a", "model_output": "x", "scenario": "call", "agents_called": [], "tools_used": ["search"]}
    cases = json_lines(tmp_path / "c.jsonl", [case, {**case, "case_id": "b", "tools_used": []}])
    done = score(cases, "--out", tmp_path / "v.jsonl", "--config", config, "--rubric", "workflow")
    assert done.returncode == 0, done.stderr
    assert [each["passed"] for each in verdicts(tmp_path / "v.jsonl")] == [True, False]


def test_wrong_calls_exit_2_and_touch_nothing(tmp_path: Path) -> None:
    cases = json_lines(tmp_path / "c.jsonl", [qa_case(1)])
    for arguments in (
        (cases, "--out", tmp_path / "v.jsonl", "--rubric", "poetry"),
        (cases, "--out", cases),
        (tmp_path / "missing.jsonl", "--out", tmp_path / "v.jsonl"),
        (cases, "--out", tmp_path),
    ):
        before = cases.read_bytes()
        done = score(*arguments)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 2, done.stderr
        assert cases.read_bytes() == before


@pytest.mark.parametrize("cut", [0, 1, 700, 5000, 20_001])
def test_a_file_that_was_cut_off_anywhere_is_completed_exactly(many, tmp_path: Path, cut: int) -> None:
    cases, whole = many
    out = tmp_path / "v.jsonl"
    out.write_bytes((cases.parent / "whole.jsonl").read_bytes()[:cut])
    done = score(cases, "--out", out, "--rubric", "qa", "--rubric", "answer")
    assert done.returncode == 1
    assert "2 lines are no cases" in done.stderr
    assert verdicts(out) == whole


def test_a_complete_file_stays_as_it_is(many, tmp_path: Path) -> None:
    cases, whole = many
    out = tmp_path / "v.jsonl"
    before = (cases.parent / "whole.jsonl").read_bytes()
    out.write_bytes(before)
    done = score(cases, "--out", out, "--rubric", "qa", "--rubric", "answer")
    assert out.read_bytes() == before
    assert f"{len(whole)} verdicts stood already" in done.stderr


def test_verdicts_of_something_else_are_never_overwritten(many, tmp_path: Path) -> None:
    cases, _ = many
    out = tmp_path / "v.jsonl"
    for stated in (b'{"case_id": "other", "rubric": "qa"}\n', b"not a verdict\n", b"[]\n"):
        out.write_bytes(stated)
        done = score(cases, "--out", out, "--rubric", "qa")
        assert done.returncode == 2
        assert "--overwrite" in done.stderr
        assert out.read_bytes() == stated
    score(cases, "--out", out, "--rubric", "qa", "--overwrite")
    config = tmp_path / "c.yaml"
    config.write_text("rubrics: {qa: {pass_mark: 0.5}}")
    done = score(cases, "--out", out, "--rubric", "qa", "--config", config)
    assert done.returncode == 2, "verdicts of two versions of a rubric must not be mixed"

    fewer = json_lines(tmp_path / "few.jsonl", [qa_case(0, right=False)])
    done = score(fewer, "--out", out, "--rubric", "qa")
    assert "goes on after the last of these cases" in done.stderr


def test_a_case_that_has_changed_since_its_verdict_is_never_reported_as_judged(tmp_path: Path) -> None:
    cases, out = json_lines(tmp_path / "c.jsonl", [qa_case(1), qa_case(2)]), tmp_path / "v.jsonl"
    assert score(cases, "--out", out).returncode == 0
    before = out.read_bytes()
    json_lines(cases, [qa_case(1), qa_case(2, right=False)])
    done = score(cases, "--out", out)
    assert done.returncode == 2
    assert "line 2: case 'call-2', its scenario or its budget has changed since this verdict was reached" in done.stderr
    assert "--overwrite" in done.stderr
    assert out.read_bytes() == before
    done = score(cases, "--out", out, "--overwrite")
    assert [each["passed"] for each in verdicts(out)] == [True, False]

    # The same content in another spelling is the same case.
    json_lines(cases, [json.dumps(dict(reversed(qa_case(1).items())), indent=None, separators=(" , ", " : "))])
    out.write_bytes(out.read_bytes().splitlines(keepends=True)[0])
    assert "1 verdict stood already" in score(cases, "--out", out).stderr


def test_a_run_goes_on_after_a_verdict_that_quotes_half_a_surrogate_pair(tmp_path: Path) -> None:
    cases, out = json_lines(tmp_path / "c.jsonl", [qa_case(1), qa_case(2)]), tmp_path / "v.jsonl"
    score(cases, "--out", out)
    first, second = verdicts(out)
    out.write_text(json.dumps({**first, "reason": "the judge wrote \ud800"}) + "\n")
    done = score(cases, "--out", out)
    assert (done.returncode, verdicts(out)[1]["case_id"]) == (0, second["case_id"])


def test_verdicts_that_carry_no_digest_are_not_taken_for_this_run_s(tmp_path: Path) -> None:
    cases, out = json_lines(tmp_path / "c.jsonl", [qa_case(1)]), tmp_path / "v.jsonl"
    score(cases, "--out", out)
    stated = json.loads(out.read_bytes())
    assert len(stated.pop("case_digest")) == 16
    out.write_text(json.dumps(stated) + "\n")
    assert score(cases, "--out", out).returncode == 2


@pytest.mark.parametrize("chosen", [(), ("--rubric", "workflow")])
@pytest.mark.parametrize("routes", ["", "routes: [{rubrics: [workflow], scenario: call}]\n"])
def test_verdicts_against_a_scenario_that_has_changed_are_not_kept(tmp_path: Path, chosen, routes: str) -> None:
    config, out = tmp_path / "c.yaml", tmp_path / "v.jsonl"
    case = {"case_id": "a", "model_output": "x", "agents_called": [], "tools_used": ["search"]}
    cases = json_lines(tmp_path / "c.jsonl", [case if routes else {**case, "scenario": "call"}])
    arguments = (cases, "--out", out, "--config", config, *chosen)
    config.write_text(routes + "scenarios: {call: {tools_should_include: [search]}}")
    assert score(*arguments).returncode == 0
    assert score(*arguments).returncode == 0
    config.write_text(routes + "scenarios: {call: {tools_should_include: [other]}}")
    done = score(*arguments)
    assert done.returncode == 2
    assert "its scenario or its budget has changed" in done.stderr


def test_a_scenario_that_nobody_knows_is_what_the_verdict_blames(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("scenarios: {call: {tools_should_include: [search]}}")
    case = {"case_id": "a", "task": "chat", "model_output": "x", "scenario": "cal", "tools_used": ["search"]}
    done = score(json_lines(tmp_path / "c.jsonl", [case]), "--out", tmp_path / "v.jsonl", "--config", config)
    assert "task" not in done.stderr
    (reported,) = verdicts(tmp_path / "v.jsonl")
    assert (reported["rubric"], reported["state"]) == ("workflow", "incomplete")
    assert "scenario 'cal' is not in the scenario file" in str(reported["reason"])


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_a_case_is_wrong_data(tmp_path: Path, content: str) -> None:
    cases = tmp_path / "c.jsonl"
    cases.write_text(content)
    done = score(cases, "--out", tmp_path / "v.jsonl")
    assert done.returncode == 1
    assert [line.split(": ")[0] for line in done.stderr.splitlines()] == ["no verdicts", "error", "remedy"]
    assert "c.jsonl: holds no case" in done.stderr


def test_a_run_in_which_the_routes_choose_nothing_is_wrong(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("routes: [{match: {tags: [gold]}, rubrics: [qa]}]")
    done = score(json_lines(tmp_path / "c.jsonl", [qa_case(1)]), "--out", tmp_path / "v.jsonl", "--config", config)
    assert done.returncode == 1
    assert "no case was judged" in done.stderr


def test_a_byte_order_mark_does_not_cost_the_first_case(tmp_path: Path) -> None:
    cases = json_lines(tmp_path / "c.jsonl", [qa_case(1), qa_case(2)])
    cases.write_bytes(b"\xef\xbb\xbf" + cases.read_bytes())
    done = score(cases, "--out", tmp_path / "v.jsonl")
    assert (done.returncode, len(verdicts(tmp_path / "v.jsonl"))) == (0, 2)


def test_a_case_id_that_stands_twice_is_told_once_with_both_lines_and_judged(tmp_path: Path) -> None:
    cases = json_lines(tmp_path / "c.jsonl", [qa_case(1), qa_case(2), "", qa_case(1), qa_case(2)])
    done = score(cases, "--out", tmp_path / "v.jsonl")
    assert (done.returncode, len(verdicts(tmp_path / "v.jsonl"))) == (0, 4)
    stated = done.stderr
    assert stated.count("warning") == 1
    assert "line 4: case_id: 'call-1' stands on line 1 already" in stated
    assert "2 lines repeat a case_id" in stated


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    out = tmp_path / "v.jsonl"
    with VerdictFile(out) as first:
        first.append(b"{}\n")
        first.flush()
        for anew in (False, True):
            with (
                pytest.raises(AnotherRunError, match="is being written by another process"),
                VerdictFile(out, anew=anew),
            ):
                pass
    with VerdictFile(out):
        pass
    assert out.read_bytes() == b"{}\n"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        line = json.dumps({**qa_case(0), "transcript": "x" * 20_000}) + "\n"
        path = tmp_path / f"{count}.jsonl"
        with path.open("w") as file:
            for _ in range(count):
                file.write(line)
        return peak_kb("score", path, "--out", f"{path}.out", "--rubric", "answer")

    assert peak(2500) < peak(300) + 30_000  # 50 MB and 6 MB of cases; 20 MB are held at most


def test_a_line_too_long_to_hold_is_skipped_and_the_next_is_read() -> None:
    found = list(lines(io.BytesIO(b"a\n" + b"x" * 100 + b"\n\n  \nb"), limit=10))
    assert [(line.number, line.text) for line in found] == [(1, b"a\n"), (2, None), (5, b"b")]
    assert found[-1].read == 108


def test_each_case_is_judged_as_often_as_asked_and_each_verdict_says_its_run(tmp_path: Path) -> None:
    cases, out = json_lines(tmp_path / "c.jsonl", [qa_case(1), qa_case(2)]), tmp_path / "v.jsonl"
    assert score(cases, "--out", out, "--rubric", "qa", "--rubric", "answer", "--repeat", 2).returncode == 0
    assert [(each["case_id"], each["run"], each["rubric"]) for each in verdicts(out)] == [
        (case, run, rubric) for case in ("call-1", "call-2") for run in (1, 2) for rubric in ("qa", "answer")
    ]
    plain = tmp_path / "plain.jsonl"
    score(cases, "--out", plain, "--rubric", "qa", "--rubric", "answer")
    assert not any({"run", "model_output"} & set(each) for each in verdicts(plain))


@pytest.mark.parametrize("cut", [1, 2500, 7000])
def test_repeats_that_were_cut_off_go_on_in_the_run_where_they_were(tmp_path: Path, cut: int) -> None:
    cases, out = json_lines(tmp_path / "c.jsonl", [qa_case(n) for n in range(3)]), tmp_path / "v.jsonl"
    arguments = (cases, "--out", out, "--repeat", 3, "--keep-outputs")
    score(*arguments)
    whole = verdicts(out)
    assert len(whole) == 9
    out.write_bytes(out.read_bytes()[:cut])
    assert score(*arguments).returncode == 0
    assert verdicts(out) == whole


def test_repeats_are_not_mixed_with_what_was_judged_otherwise(tmp_path: Path) -> None:
    cases, out = json_lines(tmp_path / "c.jsonl", [qa_case(1)]), tmp_path / "v.jsonl"
    assert score(cases, "--out", out, "--repeat", 2).returncode == 0
    for arguments, cause in (
        ((), "in run 1, where case 'call-1'"),
        (("--repeat", 1), "goes on after the last"),
        (("--repeat", 2, "--keep-outputs"), "was written without --keep-outputs"),
    ):
        done = score(cases, "--out", out, *arguments)
        assert done.returncode == 2
        assert cause in done.stderr
    assert score(cases, "--out", out, "--repeat", 0).returncode == 2


def test_outputs_are_kept_as_they_were_where_asked(tmp_path: Path) -> None:
    outputs = [{"questions": [{"a": None}]}, "text ₹४९ \u0000", None, 1.5]
    cases = [{"case_id": str(n), "task": "qa", "model_output": output} for n, output in enumerate(outputs)]
    out = tmp_path / "v.jsonl"
    deep = '{"case_id": "deep", "task": "qa", "model_output": ' + "[" * 300 + "]" * 300 + "}"
    done = score(json_lines(tmp_path / "c.jsonl", [*cases, deep]), "--out", out, "--keep-outputs")
    assert [each["model_output"] for each in verdicts(out)] == outputs
    assert done.returncode == 1
    assert "line 5: model_output: is nested too deeply to be kept" in done.stderr


def test_whoever_waits_for_a_judge_sees_why():
    record = logging.LogRecord("sidejudge.judge", logging.WARNING, __file__, 1, "the judge is unreachable", None, None)
    assert CausesShown().format(record) == "the judge is unreachable"
    record.cause = "overloaded: boom"
    assert CausesShown().format(record) == "the judge is unreachable: overloaded: boom"


def test_a_configured_budget_limits_runs_and_another_one_is_another_run(tmp_path) -> None:
    run = {
        "case_id": "a",
        "model_output": "ok",
        "input": "q",
        "tools_used": [],
        "input_tokens": 100,
        "output_tokens": 9,
    }
    cases, config, out = json_lines(tmp_path / "c.jsonl", [run]), tmp_path / "s.yaml", tmp_path / "v.jsonl"
    arguments = (cases, "--out", out, "--rubric", "run_health", "--config", config)
    config.write_text("budgets: [{tokens: 50}]")
    assert score(*arguments).returncode == 0
    assert score(*arguments).returncode == 0, "the same run goes on"
    (verdict,) = verdicts(out)
    (found,) = [each for each in verdict["scores"] if each["metric"] == "within_budget"]
    assert (verdict["passed"], found["value"], found["reason"]) == (False, 0.0, "tokens 109 > 50")
    config.write_text("budgets: [{tokens: 500}]")
    done = score(*arguments)
    assert (done.returncode, "its budget has changed since" in done.stderr) == (2, True)
    tried = sidejudge("try", "run_health", cases, "--config", config)
    assert "tokens" not in tried.stdout
    config.write_text("budgets: [{tokens: 50}]")
    assert "tokens 109 > 50" in sidejudge("try", "run_health", cases, "--config", config).stdout
