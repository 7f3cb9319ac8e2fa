"""Labels met with verdicts: kinds of labels, who gave them, and what is compared with what."""

from __future__ import annotations

import pytest

from sidejudge.scoring.calibration.calibration import Calibration
from sidejudge.scoring.calibration.paired_judges import JudgedCases, compare, grouped
from sidejudge.scoring.result.result import Unavailable
from sidejudge.scoring.runs.label_line import LabelLineError, read_label
from sidejudge.scoring.runs.verdict_line import read_verdict
from tests.verdict_lines import metric_line, verdict_line


def label(case_id="c1", stated=1, **more):
    return read_label({"case_id": case_id, "rubric": "qa", "label": stated, "by": "ann", **more})


def calibrated(labels, verdicts):
    found = Calibration()
    for each in labels:
        found.take(each)
    for each in verdicts:
        found.add(read_verdict(each))
    return found


def test_pass_labels_are_compared_with_whether_the_verdict_passed():
    found = calibrated(
        [label("a"), label("b", False), label("c", 0), label("d")],
        [verdict_line("a"), verdict_line("b", passed=False), verdict_line("c"), verdict_line("d"), verdict_line("e")],
    )
    (qa,) = found.report()
    assert (qa.rubric, qa.metric, qa.n, qa.scale, list(qa.categories)) == ("qa", "pass", 4, "binary", [False, True])
    assert qa.confusion.counts == ((1, 1), (0, 2))
    assert qa.figures["raw_agreement"].value == 0.75
    assert (qa.figures["true_positive_rate"].value, qa.figures["true_negative_rate"].value) == (1.0, 0.5)
    assert qa.figures["pass_rate"].value == 0.8  # of all verdicts, not of the labelled
    assert qa.figures["pass_rate_corrected"].rate == pytest.approx((0.8 + 0.5 - 1) / 0.5)


def test_an_incomplete_verdict_is_neither_agreement_nor_disagreement():
    found = calibrated([label("a")], [verdict_line("a", composite=None, state="incomplete", passed=None)])
    (qa,) = found.report()
    assert (qa.n, qa.undecided, found.unmet) == (0, 1, 0)
    assert qa.figures["kappa"] == Unavailable("there are no pairs")
    assert qa.figures["pass_rate"] == qa.figures["pass_rate_corrected"]
    assert isinstance(qa.figures["raw_agreement"], Unavailable)


def test_a_rare_verdict_weighs_as_many_as_it_stands_for():
    found = calibrated([label("a")], [verdict_line("a", sampling_probability=0.1), verdict_line("b", passed=False)])
    assert found.report()[0].figures["pass_rate"].value == pytest.approx(10 / 11)


def test_numbers_of_a_metric_are_an_ordinal_scale():
    lines = [verdict_line(str(i), scores=[metric_line("grade", ours)]) for i, ours in enumerate((1, 2, 3, 3))]
    labels = [label(str(i), stated, metric="grade") for i, stated in enumerate((1, 2, 2, 3))]
    (grade,) = calibrated(labels, lines).report()
    assert (grade.scale, list(grade.categories)) == ("ordinal", [1.0, 2.0, 3.0])
    assert grade.figures["kappa"].value < grade.figures["kappa_linear"].value < grade.figures["kappa_quadratic"].value
    assert "true_positive_rate" not in grade.figures


def test_numbers_are_compared_to_nine_decimals():
    lines = [verdict_line(str(i), scores=[metric_line("m", ours)]) for i, ours in enumerate((1 - 0.9, 0.1 + 0.2, 0.5))]
    (found,) = calibrated(
        [label(str(i), stated, metric="m") for i, stated in enumerate((0.1, 0.3, 0.5))], lines
    ).report()
    assert (list(found.categories), found.figures["raw_agreement"].value) == ([0.1, 0.3, 0.5], 1.0)


def test_a_category_is_compared_with_the_metrics_rating():
    rated = {**metric_line("m", 0.9), "rating": "acceptable"}
    unrated = metric_line("m", 0.9)
    found = calibrated(
        [label("a", "acceptable", metric="m"), label("b", "critical", metric="m"), label("c", "critical", metric="m")],
        [verdict_line("a", scores=[rated]), verdict_line("b", scores=[rated]), verdict_line("c", scores=[unrated])],
    )
    (m,) = found.report()
    assert (m.scale, list(m.categories), m.n, m.undecided) == ("nominal", ["acceptable", "critical"], 2, 1)
    assert m.confusion.counts == ((1, 0), (1, 0))


def test_measurements_are_no_categories():
    lines = [verdict_line(str(i), scores=[metric_line("m", i / 100)]) for i in range(30)]
    (m,) = calibrated([label(str(i), i / 100, metric="m") for i in range(30)], lines).report()
    assert m.figures["raw_agreement"].value == 1.0
    assert "rating" in m.figures["kappa"].reason
    assert m.to_json()["confusion"]["value"] is None


def test_labels_are_found_by_trace_or_by_case():
    verdict = verdict_line("a", trace_id="ab" * 16)
    for given in (label("a"), label(None, trace_id="ab" * 16), label("other", trace_id="ab" * 16)):
        assert calibrated([given], [verdict]).report()[0].n == 1
    assert calibrated([label("ab" * 16)], [verdict]).unmet == 1


def test_the_last_label_of_one_person_counts_and_those_of_two_count_both():
    found = calibrated([label(), label(stated=False), label(by="bob")], [verdict_line("c1")])
    assert (found.labels, found.replaced) == (2, 1)
    assert found.report()[0].confusion.counts == ((0, 1), (0, 1))


def test_of_several_labels_on_one_verdict_the_last_that_was_given_measures_its_errors():
    found = calibrated([label(), label(stated=False, by="bob"), label(stated=True)], [verdict_line("c1")])
    (qa,) = found.report()
    assert (qa.n, qa.labels.n, qa.labels.both, qa.labels.judge_only) == (2, 1, 1.0, 0.0)


@pytest.mark.parametrize("first", [{"case_id": "a"}, {"case_id": None, "trace_id": "ab" * 16}])
def test_of_labels_that_name_the_case_and_labels_that_name_the_trace_the_last_counts(first):
    verdict = verdict_line("a", trace_id="ab" * 16)
    second = {"case_id": None, "trace_id": "ab" * 16} if first["case_id"] else {"case_id": "a"}
    found = calibrated([label(**first), label(**second, stated=False)], [verdict])
    (qa,) = found.report()
    assert (qa.confusion.counts, found.unmet) == (((0, 1), (0, 0)), 0)
    labels = [label(**first), label(**second, by="bob"), label(**first, stated=False)]
    (of_two,) = calibrated(labels, [verdict]).report()
    assert (of_two.n, of_two.labels.judge_only) == (2, 1.0)


@pytest.mark.parametrize("order", [1, -1])
def test_two_judges_are_compared_once_on_a_case_that_is_labelled_by_its_case_and_by_its_trace(order):
    cases = {name: name * 32 for name in "0123456789ab"}
    given = [each for name in cases for each in (label(name), label(None, False, trace_id=cases[name]))]
    labels = grouped(given[::order])
    a, b = JudgedCases(labels), JudgedCases(labels)
    for name, trace_id in cases.items():
        a.add(read_verdict(verdict_line(name, trace_id=trace_id)))
        b.add(read_verdict(verdict_line(name, trace_id=trace_id, passed=False)))
    (found,) = compare(a, b)
    assert (found.n, found.missing, a.cases) == (12, (0, 0), 12)
    assert (found.a, found.b) == ((0.0, 1.0) if order == 1 else (1.0, 0.0)), "the last label counts"


def test_a_stated_verdict_is_one_however_many_people_labelled_it():
    found = Calibration()
    for case_id, by, stated in (("a", "ann", False), ("b", "ann", True), ("a", "bob", True), ("a", "eve", True)):
        found.take(label(case_id, stated, by=by, verdict=case_id == "a"))
    found.add_stated()
    (qa,) = found.report()
    assert qa.confusion.counts == ((0, 1), (1, 2))
    assert (qa.figures["pass_rate"].value, qa.figures["pass_rate"].n) == (0.5, 2)
    assert (qa.labels.n, qa.labels.both, qa.labels.people_only, qa.labels.judge_only) == (2, 1.0, 1.0, 0.0)


def test_verdicts_of_other_rubrics_meet_no_label():
    found = calibrated([label()], [verdict_line("c1", rubric="entity")])
    assert (found.unmet, found.report()[0].n) == (1, 0)


def test_stated_verdicts_are_compared_line_by_line():
    found = Calibration()
    for case_id, stated, ours in (("a", True, True), ("b", False, False), ("c", True, None)):
        found.take(label(case_id, stated, verdict=ours))
    found.add_stated()
    (qa,) = found.report()
    assert (qa.n, qa.undecided, qa.figures["pass_rate"].value) == (2, 1, 0.5)


def test_categories_and_numbers_of_one_metric_do_not_mix():
    found = Calibration()
    found.take(label(stated=1, metric="m"))
    with pytest.raises(LabelLineError, match="before it are numbers"):
        found.take(label("b", "good", metric="m"))
    with pytest.raises(LabelLineError, match="verdict: is not of the kind"):
        found.take(label("b", 2, metric="m", verdict="good"))


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ([], "is not an object"),
        ({"rubric": "qa", "label": True}, "case_id: is missing"),
        ({"case_id": 7, "rubric": "qa", "label": True}, "case_id: must be text"),
        ({"case_id": "a", "label": True}, "rubric: is missing"),
        ({"case_id": "a", "rubric": "qa"}, "label: is missing"),
        ({"case_id": "a", "rubric": "qa", "label": "pass"}, "without a metric it must be true or false"),
        ({"case_id": "a", "rubric": "qa", "label": 2}, "without a metric it must be true or false"),
        ({"case_id": "a", "rubric": "qa", "label": []}, "without a metric it must be true or false"),
        ({"case_id": "a", "rubric": "qa", "metric": "m", "label": {}}, "neither true or false"),
        ({"case_id": "a", "rubric": "qa", "metric": "m", "label": float("nan")}, "neither true or false"),
        ({"case_id": "a", "rubric": "qa", "metric": "", "label": 1}, "metric: must be text"),
        ({"case_id": "a", "rubric": "qa", "label": True, "by": 3}, "by: must be text"),
        ({"case_id": "a", "rubric": "qa", "label": True, "verdict": "yes"}, "verdict: is 'yes'"),
    ],
)
def test_what_is_no_label_is_refused_by_its_field(line, cause):
    with pytest.raises(LabelLineError, match=cause):
        read_label(line)


def test_labels_of_a_part_of_the_verdicts_narrow_what_people_would_pass_of_all():
    verdicts = [verdict_line(f"c{n}", passed=n % 5 > 0) for n in range(600)]
    labels = [label(f"c{n}", n % 5 > 0 and n % 40 != 4) for n in range(0, 600, 4)]
    (qa,) = calibrated(labels, verdicts).report()
    found, plain = qa.figures["pass_rate_ppi"], qa.figures["pass_rate"]
    assert found.rate == pytest.approx(sum(each.stated == 1 for each in labels) / len(labels), abs=0.01)
    assert found.lower < found.rate < plain.value < found.upper + 0.05
    (only_labelled,) = calibrated(labels, verdicts[::4]).report()
    assert "every verdict is labelled" in only_labelled.figures["pass_rate_ppi"].reason
