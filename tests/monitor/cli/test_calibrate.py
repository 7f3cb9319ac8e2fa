"""``sidejudge calibrate``: from labels and verdicts in files to figures and an exit code."""

from __future__ import annotations

import json

import pytest

from tests.verdict_lines import json_lines, metric_line, verdict_line


@pytest.fixture
def file(tmp_path):
    def write(name, *lines):
        return json_lines(tmp_path / name, lines)

    return write


def label(case_id, stated, **more):
    return {"case_id": case_id, "rubric": "qa", "label": stated, "by": "ann", **more}


def pairs(hit=20, slipped=10, missed=5, rejected=15):
    """Labels and verdicts of one confusion table."""
    cells = [(True, True)] * hit + [(False, True)] * slipped + [(True, False)] * missed + [(False, False)] * rejected
    labels = [label(f"c{i}", people) for i, (people, _) in enumerate(cells)]
    return labels, [verdict_line(f"c{i}", passed=ours) for i, (_, ours) in enumerate(cells)]


def test_labels_and_verdicts_become_figures(call, file):
    labels, verdicts = pairs()
    unlabelled = [verdict_line(f"u{i}") for i in range(50)]
    done = call(
        "calibrate", file("l.jsonl", *labels), "--verdicts", file("v.jsonl", *verdicts, *unlabelled), "--format", "json"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    (qa,) = json.loads(done.stdout)
    assert (qa["rubric"], qa["metric"], qa["n"]) == ("qa", "pass", 50)
    assert qa["confusion"] == {"rows": "people", "columns": "verdicts", "counts": [[15, 10], [5, 20]]}
    assert (qa["raw_agreement"]["value"], qa["kappa"]["value"]) == pytest.approx((0.7, 0.4))
    assert (qa["true_positive_rate"]["value"], qa["true_negative_rate"]["value"]) == pytest.approx((0.8, 0.6))
    assert qa["pass_rate"]["value"] == pytest.approx(0.8)
    assert qa["pass_rate_corrected"]["value"] == pytest.approx(min(1, (0.8 + 0.6 - 1) / 0.4))
    assert all(
        qa[name]["lower"] <= qa[name]["value"] <= qa[name]["upper"]
        for name in ("raw_agreement", "kappa", "pass_rate", "pass_rate_corrected")
    )


def test_runs_after_the_first_add_no_cases(call, file):
    labels, verdicts = pairs()
    once, thrice = (
        call("calibrate", file("l.jsonl", *labels), "--verdicts", file("v.jsonl", *lines), "--format", "json")
        for lines in (verdicts, [{**each, "run": run} for each in verdicts for run in (1, 2, 3)])
    )
    assert thrice.stdout == once.stdout
    assert thrice.stderr == "verdicts of runs after the first, which are left out: each case counts once: 100\n"
    twice = call("calibrate", file("l.jsonl", *labels), "--verdicts", file("v.jsonl", *verdicts, verdicts[0]))
    assert "verdicts on a case that has one by its rubric already" in twice.stderr


def test_a_table_shows_every_figure_and_the_confusion(call, file):
    labels, verdicts = pairs()
    done = call("calibrate", file("l.jsonl", *labels), "--verdicts", file("v.jsonl", *verdicts))
    assert done.exit_code == 0
    assert "qa · pass · 50 pairs" in done.stdout
    for name in ("raw_agreement", "kappa", "ac1", "true_positive_rate", "pass_rate_corrected", "PEOPLE \\ VERDICTS"):
        assert name in done.stdout


def test_a_judge_that_tells_nothing_apart_has_no_corrected_rate(call, file):
    labels, verdicts = pairs(hit=5, slipped=5, missed=5, rejected=5)
    done = call("calibrate", file("l.jsonl", *labels), "--verdicts", file("v.jsonl", *verdicts), "--format", "json")
    (qa,) = json.loads(done.stdout)
    assert (done.exit_code, qa["pass_rate_corrected"]["value"]) == (0, None)
    assert "not above 0" in qa["pass_rate_corrected"]["reason"]


def test_lines_may_state_our_verdict_themselves(call, file):
    path = file("l.jsonl", label("a", True, verdict=True), label("b", 3, metric="m", verdict=3), label("c", False))
    done = call("calibrate", path)
    assert done.exit_code == 1
    assert f"{path}, line 3: verdict: is missing, and no file of verdicts is named" in done.stderr
    assert "qa · m · 1 pairs" in done.stdout


def test_every_bad_line_is_told_by_its_number_and_the_others_count(call, file):
    labels, verdicts = pairs()
    labels[3:3] = ["{", '{"case_id": "c1", "rubric": "qa"}']
    verdicts[1:1] = ["[]"]
    done = call("calibrate", file("l.jsonl", *labels), "--verdicts", file("v.jsonl", *verdicts))
    assert done.exit_code == 1
    for cause in (
        "l.jsonl, line 4: is not JSON",
        "l.jsonl, line 5: label: is missing",
        "v.jsonl, line 2: is not an obj",
    ):
        assert cause in done.stderr
    assert "skipped: 3" in done.stderr
    assert "50 pairs" in done.stdout


def test_a_revised_verdict_replaces_the_one_before(call, file):
    verdicts = [verdict_line("a", passed=False), verdict_line("a", revision=2), verdict_line("b", passed=False)]
    done = call(
        "calibrate", file("l.jsonl", label("a", True), label("b", False)), "--verdicts", file("v.jsonl", *verdicts)
    )
    assert "raw_agreement        1.0000" in done.stdout


def test_verdicts_of_several_versions_or_judges_are_named(call, file):
    def by(name, model, version="qa@1", **more):
        score = {**metric_line("m", 1.0), "judge": {"model": model}} if model else metric_line("m", 1.0)
        return verdict_line(name, scores=[score], rubric_version=version, **more)

    labels = file("l.jsonl", *(label(name, True) for name in "abcd"))

    def noted(*verdicts):
        return call("calibrate", labels, "--verdicts", file("v.jsonl", *verdicts)).stderr

    cascade = {"cascade": {"judge": "strong", "cause": "doubt"}}
    assert "put together" not in noted(by("a", "x"), by("b", "x"), by("c", None), by("d", "y", **cascade))
    assert "verdicts of several versions of qa are put together: qa@1, qa@2\n" in noted(
        by("a", "x"), by("b", "x", "qa@2"), verdict_line("c", "text", rubric_version="text@9")
    )
    assert "verdicts of several judges of qa are put together: x, y\n" in noted(by("a", "y"), by("b", "x"))


def test_labels_that_meet_no_verdict_are_counted(call, file):
    done = call(
        "calibrate", file("l.jsonl", label("a", True), label("z", True)), "--verdicts", file("v", verdict_line("a"))
    )
    assert (done.exit_code, "without a verdict by their rubric: 1" in done.stderr) == (0, True)


@pytest.mark.parametrize("lines", [[], [label("z", True)]])
def test_labels_that_tell_nothing_are_a_wrong_call(call, file, lines):
    done = call("calibrate", file("l.jsonl", *lines), "--verdicts", file("v.jsonl", verdict_line("a")))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "error: LABELS: " in done.stderr
    assert "remedy: " in done.stderr


def test_files_that_are_not_there_are_a_wrong_call(call, file, tmp_path):
    there = file("l.jsonl", label("a", True))
    for arguments in ((tmp_path / "no",), (there, "--verdicts", tmp_path / "no"), (tmp_path,)):
        done = call("calibrate", *arguments)
        assert done.exit_code == 2
        assert len(done.stderr.splitlines()) == 2


def test_foreign_text_cannot_write_on_the_terminal(call, file):
    path = file("l.jsonl", label("a", "\x1b[31mred", metric="m\x1b[2J", verdict="x\ny"))
    done = call("calibrate", path)
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert "x\ny" not in done.stdout


def test_a_score_that_is_missing_is_no_disagreement(call, file):
    verdicts = [verdict_line("a", scores=[metric_line("m", None, status="unavailable", reason="no judge")])]
    done = call("calibrate", file("l.jsonl", label("a", 1, metric="m")), "--verdicts", file("v.jsonl", *verdicts))
    assert "0 pairs, 1 without a value of ours" in done.stdout
