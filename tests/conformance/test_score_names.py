"""Every score has a name of its own that Langfuse takes; metrics and rubrics to come are found by themselves."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from sidejudge.scoring.rubrics import RUBRICS
from sidejudge.scoring.verdict.rubric import all_criteria
from sidejudge.scoring.verdict.score import composite_name, pass_name, score_name, state_name

ALL = [(rubric, c.metric) for rubric in RUBRICS.values() for c in all_criteria(rubric)]


@pytest.mark.parametrize(("rubric", "metric"), ALL, ids=lambda each: each.id)
def test_a_score_name_is_valid_and_begins_with_its_rubric(rubric, metric):
    name = score_name(rubric.id, metric)
    assert re.fullmatch(r"[a-z0-9_.-]{1,35}", name)
    assert name.startswith(f"{rubric.id}_")


def test_no_two_scores_share_a_name():
    names = [score_name(rubric.id, metric) for rubric, metric in ALL]
    for rubric in RUBRICS:
        names += [composite_name(rubric), pass_name(rubric), state_name(rubric)]
    assert [name for name, count in Counter(names).items() if count > 1] == []


@pytest.mark.parametrize(("rubric", "metric"), ALL, ids=lambda each: each.id)
def test_a_name_that_fits_is_not_shortened(rubric, metric):
    full = f"{rubric.id}_{metric.id}"
    assert (score_name(rubric.id, metric) == full) is (len(full) <= 35)


def test_a_short_form_stands_only_where_one_is_needed():
    needed = {metric.id for rubric, metric in ALL if len(f"{rubric.id}_{metric.id}") > 35}
    assert {metric.id for _, metric in ALL if metric.short is not None} == needed


def test_the_names_of_seed_003_hold():
    names = {score_name(rubric.id, metric) for rubric, metric in ALL}
    assert names >= {"workflow_agents", "workflow_tools"}
    assert names >= {"quality_answer_quality", "quality_factual_correctness", "quality_completeness"}
    assert (pass_name("workflow"), composite_name("qa")) == ("workflow_pass", "qa_score")


def test_a_metric_without_a_short_form_that_needs_one_is_told_what_to_add():
    _, metric = ALL[0]
    with pytest.raises(ValueError, match=r"35 are allowed: give the metric 'x{40}' a short= of at most"):
        score_name("qa", replace(metric, id="x" * 40, short=None))
    with pytest.raises(ValueError, match="no score name"):
        score_name("qa", replace(metric, id="Größe"))
