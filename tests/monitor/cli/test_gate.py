"""``sidejudge gate``: from files of verdicts to an exit code, on the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sidejudge.scoring.case.case import Case
from sidejudge.scoring.evaluators.score import score
from sidejudge.scoring.questions.question import Answer
from sidejudge.scoring.result.result import Method
from sidejudge.scoring.rubrics import RUBRICS
from tests.verdict_lines import json_lines, verdict_line

GOOD_GRADE = (2, 2)


def verdict(number=0, grade=GOOD_GRADE, rubric="answer", **about):
    given = {"latency_e2e_ms": 1000.0, "input_tokens": 500, "output_tokens": 100, **about}

    def answer(*_):
        value = {"accuracy_score": grade[0], "faithfulness_score": grade[1], "rationale": "Because."}
        return Answer(value=value if grade[0] is not None else "no JSON", method=Method.JUDGE)

    case = Case(case_id=f"c{number}", model_output="Paris", **given)
    return score(case, RUBRICS[rubric], answer=answer, created_at="2026-11-21T00:00:00Z").to_json()


@pytest.fixture
def file(tmp_path: Path):
    """Writes verdicts to a file."""

    def write(*verdicts, name="v.jsonl"):
        return json_lines(tmp_path / name, verdicts)

    return write


@pytest.fixture
def metadata(tmp_path: Path):
    """Writes complete run metadata with changes; what is changed to None is left out."""

    def write(**changes):
        stated = {
            "run_id": "r", "timestamp_utc": "2026-11-21T00:00:00Z", "dataset_id": "d", "dataset_version_or_hash": "v3",
            "model_id": "o/m@1", "model_version": "1", "evaluator_model_id": "o/j@1", "evaluator_model_version": "1",
            "prompt_template_id": "p", "prompt_template_version_or_hash": "v1",
            "evaluator_prompt_template_version_or_hash": "v1",
            "generation_params": {"temperature": 0, "top_p": 1, "max_tokens": 1024, "seed": 42},
            "code_version": "0a1b2c3", "environment": "eu/py311",
        } | changes  # fmt: skip
        path = tmp_path / "run.json"
        path.write_text(json.dumps({name: value for name, value in stated.items() if value is not None}, indent="\t"))
        return path

    return write


def reported(result):
    return json.loads(result.stdout)


def test_a_good_run_is_release_ready_and_every_gate_is_shown_with_value_and_bound(call, file):
    done = call("gate", file(*(verdict(n) for n in range(20))))
    assert done.exit_code == 0, done.output
    for gate in ("aggregate_score", "pass_rate", "faithfulness_failure_rate", "latency_e2e_p95_ms"):
        assert any(gate in row and row.startswith("ok") for row in done.stdout.splitlines())
    for bound in (">= 0.8", ">= 0.85", "<= 0.05", "<= 10000"):
        assert bound in done.stdout
    assert done.stdout.splitlines()[-1] == "release-ready"
    assert "warning: the gates alone decide: a release needs the run's metadata too" in done.stderr


def test_json_carries_every_figure_exactly(call, file):
    verdicts = [verdict(n, (n % 3, 2), latency_e2e_ms=100.0 * n) for n in range(1, 31)]
    done = call("gate", file(*verdicts), "--format", "json")
    assert (done.exit_code, reported(done)["release_ready"]) == (1, False)
    (run,) = reported(done)["runs"]
    assert run["aggregates"]["accuracy_mean"] == 1.0
    assert run["aggregates"]["latency_e2e_p95_ms"] == pytest.approx(2855)
    assert run["aggregates"]["tokens_per_correct_answer"] == 600 * 30 / 10
    unmet = {gate["gate"] for gate in run["gates"] if not gate["met"]}
    assert unmet == {"aggregate_score", "pass_rate"}
    assert done.stderr == ""


@pytest.mark.parametrize(("broken", "code"), [(1, 0), (2, 1)])
def test_more_than_five_in_a_hundred_samples_without_a_grade_are_not_released(call, file, broken, code):
    good, bad = [verdict(n) for n in range(20 - broken)], [verdict(n, (None, None)) for n in range(broken)]
    done = call("gate", file(*good, *bad))
    assert done.exit_code == code
    assert (f"{broken} of 20 samples have no grade; the first: accuracy_score error: parse_error" in done.stdout) is (
        code == 1
    )


def test_verdicts_of_other_rubrics_are_left_out_and_told(call, file):
    done = call("gate", file(verdict(), verdict(rubric="qa"), verdict(1)))
    assert done.exit_code == 0
    assert "verdicts by other rubrics are left out: 1" in done.stderr


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ([], "holds no verdict of 'answer'"),
        ([verdict(rubric="qa")], "holds no verdict of 'answer'"),
        ([verdict(), "{"], "line 2: is not JSON"),
        ([verdict(), "[]"], "line 2: is not a verdict"),
        ([{"case_id": "a", "model_output": "x"}], "line 1: is not a verdict"),
        ([{**verdict(), "scores": 1}], "line 1: scores"),
        ([{**verdict(), "passed": "true"}], "line 1: passed"),
        ([{**verdict(), "run": 0}], "line 1: run"),
        ([{**verdict(), "run": True}], "line 1: run"),
        ([{**verdict(), "run": 1}, verdict()], "line 2: run: some verdicts"),
        ([{**verdict(), "revision": 2}], "line 1: revision"),
        ([verdict(), verdict_line("c", "answer", None, state="incomplete")], "line 2: passed: is true where state"),
        ([{**verdict(), "passed": None}], "line 1: passed: is null where state is valid"),
        ([{**verdict(), "pass_mark": 0.99, "composite": 0.5}], "line 1: passed: is true where composite is 0.5, below"),
        ([{**verdict(), "state": "disqualified"}], "line 1: passed: is true where state is disqualified"),
        ([{name: of for name, of in verdict().items() if name != "passed"}], "line 1: passed: is missing"),
        ([json.dumps(verdict())[:-1] + ', "passed": true}'], "line 1: passed: stands twice in one object"),
        ([json.dumps(verdict()).replace('"value": 2', '"value": 0, "value": 2')], "line 1: value: stands twice"),
        ([verdict() | {"scores": verdict()["scores"] * 2}], "line 1: scores: accuracy_score stands twice"),
    ],
)
def test_what_holds_no_verdicts_is_unusable(call, file, lines, cause):
    done = call("gate", file(*lines))
    assert done.exit_code == 2
    assert cause in done.stderr
    assert "remedy: name a file that 'sidejudge score --rubric answer' wrote" in done.stderr
    assert done.stdout == ""


def test_a_file_that_is_cut_off_is_unusable_and_says_so(call, file):
    path = file(verdict(), verdict(1))
    path.write_bytes(path.read_bytes()[:-20])
    done = call("gate", path)
    assert done.exit_code == 2
    assert "line 2" in done.stderr
    assert "cut off" in done.stderr


def test_wrong_calls_exit_2(call, file, tmp_path):
    path = file(verdict())
    for arguments in ((), (tmp_path / "none.jsonl",), (tmp_path,), (path, path), (path, "--release")):
        done = call("gate", *arguments)
        assert done.exit_code == 2, arguments
        assert "remedy:" in done.stderr


def test_a_case_that_stands_twice_in_a_run_is_named(call, file):
    lines = [verdict(0), verdict(1), verdict(1)]
    assert "verdicts on a case that has one in the same run already; all count: 1" in call("gate", file(*lines)).stderr
    apart = [{**verdict(0), "run": run} for run in (1, 2)]
    assert "same run" not in call("gate", file(*apart)).stderr


def test_runs_within_a_file_are_judged_each_and_summed_up(call, file):
    verdicts = [{**verdict(n, latency_e2e_ms=1000.0 * run), "run": run} for n in range(5) for run in (1, 2, 3)]
    done = call("gate", file(*verdicts), "--format", "json")
    assert done.exit_code == 0
    stated = reported(done)
    assert [run["aggregates"]["n"] for run in stated["runs"]] == [5, 5, 5]
    assert stated["repeats"]["latency_e2e_p95_ms"] == {"mean": 2000, "sd": 1000, "reason": ""}


def test_several_files_are_several_runs_and_the_worst_decides(call, file):
    good = [file(*(verdict(n) for n in range(4)), name=f"{name}.jsonl") for name in "ab"]
    bad = file(*(verdict(n, (0, 2)) for n in range(4)), name="c.jsonl")
    done = call("gate", *good)
    assert done.exit_code == 0
    assert "needs at least 3 runs, there are 2" in done.stdout
    done = call("gate", *good, bad)
    assert done.exit_code == 1
    assert "run 3: aggregate_score: " in done.stdout
    assert "of 3 runs" in done.stdout


def test_complete_metadata_of_pinned_models_is_released(call, file, metadata):
    done = call("gate", file(verdict()), "--run-metadata", metadata(), "--release")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""


def test_every_missing_field_is_named_and_the_run_is_not_ready(call, file, metadata):
    path = metadata(run_id=None, code_version=None, generation_params={"temperature": 0})
    done = call("gate", file(verdict()), "--run-metadata", path)
    assert done.exit_code == 1
    for field in ("run_id", "code_version", "generation_params.top_p", "generation_params.max_tokens"):
        assert f"refused: {field} is missing" in done.stdout


def test_a_floating_model_is_a_warning_and_in_a_release_a_refusal(call, file, metadata):
    path = metadata(model_id="openai/gpt-latest")
    done = call("gate", file(verdict()), "--run-metadata", path)
    assert done.exit_code == 0
    assert "warning: model_id 'openai/gpt-latest' is a floating alias" in done.stderr
    done = call("gate", file(verdict()), "--run-metadata", path, "--release")
    assert done.exit_code == 1
    assert "refused: model_id 'openai/gpt-latest' is a floating alias" in done.stdout


def test_metadata_may_be_yaml_with_variables(call, file, metadata, tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_SHA", "0a1b2c3d")
    stated = json.loads(metadata().read_text()) | {"code_version": "${GIT_SHA}"}
    path = tmp_path / "run.yaml"
    path.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in stated.items()))
    assert call("gate", file(verdict()), "--run-metadata", path, "--release").exit_code == 0


@pytest.mark.parametrize("stated", [b"", b"[]", b"a: [", b"{", b"just text", b"\xff\xfe\x00", b"a: 1\na: 2"])
def test_metadata_that_cannot_be_read_is_a_wrong_call(call, file, tmp_path, stated):
    path = tmp_path / "run.yaml"
    path.write_bytes(stated)
    done = call("gate", file(verdict()), "--run-metadata", path)
    assert done.exit_code == 2
    assert "run.yaml" in done.stderr
    assert "--metadata-template" in done.stderr
    assert call("gate", file(verdict()), "--run-metadata", tmp_path / "none.yaml").exit_code == 2


def test_the_template_knows_what_the_verdicts_tell(call, file, tmp_path):
    judged = {**verdict(), "judge": {"model": "openai/judge@3", "prompt_version": "9f2c", "cost_usd": 0, "calls": 1}}
    done = call("gate", "--metadata-template", file(judged))
    assert done.exit_code == 0
    assert 'timestamp_utc: "2026-11-21T00:00:00Z"' in done.stdout
    assert 'evaluator_model_id: "openai/judge@3"' in done.stdout
    path = tmp_path / "run.yaml"
    path.write_text(call("gate", "--metadata-template").stdout)
    done = call("gate", file(verdict()), "--run-metadata", path)
    assert done.exit_code == 1
    assert "refused: run_id is empty; give a name of this run that no other has" in done.stdout
    assert "refused: generation_params.seed is not a whole number" in done.stdout


def test_text_of_a_verdict_reaches_the_terminal_harmless(call, file):
    evil = verdict(0, (None, None))
    evil["scores"][0]["reason"] = "\x1b[2Jgone\nrelease-ready"
    done = call("gate", file(evil))
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout
    assert done.stdout.splitlines().count("release-ready") == 0


@pytest.mark.parametrize(("least", "printed"), [("0.8421", "0.8421"), ("0.842104", "0.84211"), ("0.842106", "0.8421")])
def test_a_printed_value_is_on_the_side_of_its_bound_that_decides(call, file, least, printed):
    lines = [verdict_line(f"c{n}", "quality", passed=n >= 3) for n in range(19)]  # 16 of 19: 0.84210526
    done = call("gate", file(*lines), "--rubric", "quality", "--pass-rate", least)
    met, _, _, _, value, _, bound = next(row.split() for row in done.stdout.splitlines() if "pass_rate " in row)
    assert (value, met == "ok") == (printed, float(value) >= float(bound))


def test_a_verdict_counts_with_the_inverse_of_the_probability_of_its_draw(call, file):
    rare = {"sampling_probability": 0.05}
    lines = [verdict_line(f"c{n}", "quality", passed=n < 18) | (rare if n == 19 else {}) for n in range(20)]
    done = call("gate", file(*lines), "--rubric", "quality")  # 18 of 20 pass, and 18 of 39 cases
    assert done.exit_code == 1
    assert "run 1: pass_rate: 0.4615 is below 0.85" in done.stdout
    assert "drawn with different probabilities: each counts with the inverse of its own" in done.stderr
    lines[19] |= {"passed": None, "state": "incomplete", "composite": None, "composite_norm": None}
    assert "1 of 20 samples (51.3% by weight) neither pass nor fail" in (
        call("gate", file(*lines), "--rubric", "quality").stdout
    )


def test_verdicts_that_quote_half_a_surrogate_pair_or_a_very_long_number_are_read(call, file):
    lines = [verdict(n) | {"task": "\ud800", "metadata": 10**30} for n in range(3)]
    assert call("gate", file(*lines)).exit_code == 0


@pytest.mark.parametrize("least", ["nan", "inf", "1.01"])
def test_a_pass_rate_is_a_finite_number_from_0_to_1(call, file, least):
    assert call("gate", file(verdict(rubric="quality")), "--rubric", "quality", "--pass-rate", least).exit_code == 2


def test_gate_stands_in_the_overview_after_score(call):
    rows = [row.split()[0] for row in call("--help").stdout.splitlines() if row.startswith("  ")]
    assert rows.index("gate") > rows.index("score")
