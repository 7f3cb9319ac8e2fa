"""``sidejudge calibrate --prompts``: two judges on the same labels, paired, with intervals and costs."""

from __future__ import annotations

import json

import pytest
from statsmodels.stats.weightstats import DescrStatsW

from sidejudge.scoring.calibration.judge_report import GoldenAnswer
from sidejudge.scoring.calibration.paired_judges import compare_answers
from sidejudge.scoring.judging.golden import GoldenQuestion
from sidejudge.scoring.questions.kinds import AskDeclared
from tests.verdict_lines import metric_line, verdict_line


@pytest.fixture
def compared(call, tmp_path):
    def run(labels, a, b, *more):
        paths = []
        for name, lines in (("l", labels), ("a", a), ("b", b)):
            paths.append(tmp_path / f"{name}.jsonl")
            paths[-1].write_text("".join(json.dumps(each) + "\n" for each in lines))
        return call("calibrate", paths[0], "--prompts", paths[1], paths[2], *more)

    return run


def cases(n, right_a, right_b):
    """Labels (every second case passes), and verdicts of two judges of which the first so many are right."""
    labels = [{"case_id": f"c{i}", "rubric": "qa", "label": i % 2 == 0, "by": "ann"} for i in range(n)]
    judged = [
        [verdict_line(f"c{i}", passed=(i % 2 == 0) == (i < right)) for i in range(n)] for right in (right_a, right_b)
    ]
    return labels, *judged


def read(done):
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    return found["metrics"][0], found


def test_a_judge_that_is_right_more_often_is_named_with_the_interval_of_the_difference(compared):
    metric, whole = read(compared(*cases(60, 35, 55), "--format", "json"))
    assert (metric["n"], metric["a"], metric["b"]) == (60, pytest.approx(35 / 60), pytest.approx(55 / 60))
    assert metric["difference"] == pytest.approx(20 / 60)
    assert 0 < metric["lower"] < metric["difference"] < metric["upper"] < 1
    assert metric["p"] < 0.001
    assert metric["better"] == "B"
    assert whole["a"]["verdicts"] == whole["b"]["verdicts"] == 60


def test_the_other_way_round_the_other_one_is_named(compared):
    assert read(compared(*cases(60, 55, 35), "--format", "json"))[0]["better"] == "A"


@pytest.mark.parametrize(("a", "b"), [(30, 30), (30, 32), (60, 60)])
def test_judges_that_cannot_be_told_apart_are_not(compared, a, b):
    metric, _ = read(compared(*cases(60, a, b), "--format", "json"))
    assert metric["better"] == "not told apart"
    assert metric["lower"] <= 0 <= metric["upper"]


def test_a_lead_that_is_usual_by_chance_names_no_judge(compared):
    # Of ten cases four differ, all in favour of B: by chance one time in eight.
    metric, _ = read(compared(*cases(10, 6, 10), "--format", "json"))
    assert (metric["p"], metric["better"]) == (0.125, "not told apart")


def test_distances_of_few_cases_have_the_interval_of_students_distribution(compared):
    labels = [{"case_id": f"c{i}", "rubric": "qa", "metric": "m", "label": 0.0, "by": "ann"} for i in range(10)]
    a, b = ([verdict_line(f"c{i}", scores=[metric_line("m", 0.3 + by * i)]) for i in range(10)] for by in (0.0, 0.02))
    metric, _ = read(compared(labels, a, b, "--format", "json"))
    low, high = DescrStatsW([0.02 * i for i in range(10)]).tconfint_mean()
    assert (metric["lower"], metric["upper"]) == pytest.approx((low, high), abs=1e-4)


def test_the_costs_are_those_of_judging_and_not_of_the_runs_that_were_judged(compared):
    labels, a, b = cases(3, 3, 3)
    a = [{**each, "cost_usd": 0.5, "judge": {"model": "x", "cost_usd": 0.25}} for each in a]
    unpriced = {**metric_line("m", 1.0), "judge": {"model": "y", "cost_usd": 0.0, "flags": ["cost not known"]}}
    b = [
        {**b[0], "cost_usd": 0.5},
        {**b[1], "judge": {"model": "y", "cost_usd": 0.0}, "scores": [unpriced]},
        {**b[2], "judge": {"model": None, "cost_usd": 0.0}},
    ]
    _, whole = read(compared(labels, a, b, "--format", "json"))
    assert whole["a"] == {"usd": 0.75, "verdicts": 3, "unpriced": 0}
    assert whole["b"] == {"usd": 0.0, "verdicts": 3, "unpriced": 2}


def test_runs_after_the_first_change_neither_figures_nor_costs(compared):
    labels, a, b = cases(60, 35, 55)
    again = [{**each, "run": run, "passed": each["passed"] is (run == 1)} for each in a for run in (1, 2)]
    done = compared(labels, again, b, "--format", "json")
    assert done.stdout == compared(labels, a, b, "--format", "json").stdout
    assert "verdicts of runs after the first, which are left out: each case counts once: 60" in done.stderr


def test_too_few_cases_say_nothing(compared):
    metric, _ = read(compared(*cases(9, 0, 9), "--format", "json"))
    assert (metric["n"], metric["difference"], metric["better"]) == (9, None, "not told apart")


def test_cases_of_one_judge_alone_count_as_missing_and_are_not_compared(compared):
    labels, a, b = cases(40, 20, 40)
    metric, _ = read(compared(labels, a[:30], b, "--format", "json"))
    assert (metric["n"], metric["missing"]) == (30, [10, 0])


def test_numbers_are_compared_by_their_distance_from_the_label(compared):
    labels = [{"case_id": f"c{i}", "rubric": "qa", "metric": "m", "label": 0.5, "by": "ann"} for i in range(30)]
    far = [verdict_line(f"c{i}", scores=[metric_line("m", 0.9 - i / 100)]) for i in range(30)]
    near = [verdict_line(f"c{i}", scores=[metric_line("m", 0.55)]) for i in range(30)]
    metric, _ = read(compared(labels, near, far, "--format", "json"))
    assert (metric["unit"], metric["better"]) == ("distance", "A")


def test_judges_that_are_equally_far_from_the_label_on_either_side_are_not_told_apart(compared):
    labels = [{"case_id": f"c{i}", "rubric": "qa", "metric": "m", "label": 0.6, "by": "ann"} for i in range(20)]
    judged = [[verdict_line(f"c{i}", scores=[metric_line("m", value)]) for i in range(20)] for value in (0.4, 0.8)]
    metric, _ = read(compared(labels, *judged, "--format", "json"))
    assert (metric["a"], metric["b"], metric["difference"], metric["p"]) == (0.2, 0.2, 0.0, 1.0)
    assert metric["better"] == "not told apart"


def test_yes_or_no_labels_of_a_graded_metric_are_compared_by_distance(compared):
    labels = [{"case_id": f"c{i}", "rubric": "qa", "metric": "m", "label": i % 2 == 0, "by": "ann"} for i in range(30)]
    a, b = (
        [verdict_line(f"c{i}", scores=[metric_line("m", near if i % 2 == 0 else 1 - near)]) for i in range(30)]
        for near in (0.9, 0.6)
    )
    metric, _ = read(compared(labels, a, b, "--format", "json"))
    assert (metric["unit"], metric["better"]) == ("distance", "A")


def test_people_get_a_table_and_a_file_that_does_not_fit_is_named(compared):
    done = compared(*cases(60, 35, 55))
    assert "PEOPLE AGREE MORE WITH" in done.stdout
    assert "0.202 to 0.443  < 0.001  B" in done.stdout
    labels, a, _ = cases(12, 6, 6)
    done = compared(labels, a, [verdict_line("another")])
    assert done.exit_code != 0
    assert "holds no verdict on a case that was labelled" in done.stderr
    assert "'sidejudge score CASES --config … --out …'" in done.stderr


CONFIG = """
rubrics:
  polite:
    title: Polite
    metrics: [{id: thanks, check: {icontains: "%s"}}]
"""


@pytest.fixture
def run_by_both(call, tmp_path):
    """Two configurations whose rubric differs in one word, labels, and the labelled cases."""

    def run(*more, words=("thank", "regards"), given=("--cases", "cases.jsonl")):
        for name, word in zip("ab", words, strict=True):
            (tmp_path / f"{name}.yaml").write_text(CONFIG % word)
        texts = [f"Number {i}{', thank you' if i % 2 else ''}" for i in range(40)]
        rows = {
            "cases.jsonl": [{"case_id": f"c{i}", "model_output": text} for i, text in enumerate(texts)],
            "labels.jsonl": [
                {"case_id": f"c{i}", "rubric": "polite", "label": i % 2 == 1, "by": "ann"} for i in range(40)
            ],
        }
        for name, lines in rows.items():
            (tmp_path / name).write_text("".join(json.dumps(each) + "\n" for each in lines))
        named = [tmp_path / each if each.endswith(".jsonl") else each for each in given]
        return call(
            "calibrate", tmp_path / "labels.jsonl", "--prompts", tmp_path / "a.yaml", tmp_path / "b.yaml", *named, *more
        )

    return run


def test_two_configurations_are_run_on_the_labelled_cases_and_compared(run_by_both, tmp_path):
    metric, _ = read(run_by_both("--format", "json"))
    assert (metric["n"], metric["a"], metric["b"], metric["better"]) == (40, 1.0, 0.5, "A")
    assert len((tmp_path / "a.verdicts.jsonl").read_text().splitlines()) == 40
    before = (tmp_path / "b.verdicts.jsonl").read_bytes()
    assert read(run_by_both("--format", "json"))[0] == metric
    assert (tmp_path / "b.verdicts.jsonl").read_bytes() == before  # judged once


def test_verdicts_of_another_wording_are_refused_and_not_compared(run_by_both):
    assert run_by_both().exit_code == 0
    again = run_by_both(words=("number", "regards"))
    assert again.exit_code != 0
    assert "a.verdicts.jsonl" in again.stderr


def test_configurations_without_cases_and_cases_without_configurations_are_refused(run_by_both, call, tmp_path):
    assert "no --cases are given" in run_by_both(given=()).stderr
    assert "--cases with --prompts" in call("calibrate", tmp_path / "labels.jsonl", "--cases", "x.jsonl").stderr
    assert "--rubric goes with --prompts" in run_by_both(given=("--rubric", "tone")).stderr


def test_answers_to_labelled_examples_are_compared_question_by_question():
    question = AskDeclared("toxic-1", "Is it?", "boolean", (), ("model_output",))

    def answers(right):
        return [
            GoldenAnswer(
                question=GoldenQuestion(name=f"toxicity.c{i}.toxic", question=question, right={"value": True},
                                        label="toxicity.toxic"),
                given=("no answer" if i == 0 else {"value": i < right},),
            )
            for i in range(41)
        ]  # fmt: skip

    (found,) = compare_answers(answers(21), answers(36))
    assert (found.rubric, found.metric, found.n, found.missing) == ("toxicity", "toxic", 40, (1, 1))
    assert (found.a, found.b, found.better) == (0.5, 35 / 40, "B")
