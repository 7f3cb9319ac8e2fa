"""JudgeConfig: selection, weights, and every mistake told at once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidejudge.scoring.metrics.judge_metrics import (
    DEFINITIONS,
    JudgeConfig,
    JudgeConfigError,
    MetricSelection,
    parse_judge_config,
)

DEFAULTS = {name: each.default_weight for name, each in DEFINITIONS.items() if each.include_in_defaults}


@pytest.mark.parametrize("data", [{}, {"metrics": None}, {"metrics": []}])
def test_without_a_selection_the_eight_defaults_are_judged(data):
    config = parse_judge_config(data)
    assert config == JudgeConfig()
    assert config.weights() == pytest.approx(DEFAULTS)
    assert (config.pass_threshold, config.model, config.provider) == (75.0, None, None)


def test_the_seeds_example_is_renormalised():
    config = parse_judge_config(
        {"metrics": [{"metric": "tool_routing", "weight": 1.0}, {"metric": "task_completion", "weight": 0.5}]}
    )
    assert config.weights() == pytest.approx({"tool_routing": 2 / 3, "task_completion": 1 / 3})


def test_a_selection_without_a_weight_takes_the_default():
    config = parse_judge_config({"metrics": [{"metric": "grounding_fidelity"}, {"metric": "tool_routing"}]})
    assert config.weights() == pytest.approx({"tool_routing": 0.15 / 0.275, "grounding_fidelity": 0.125 / 0.275})
    assert list(config.weights()) == ["tool_routing", "grounding_fidelity"]  # whatever the order of the selection


@pytest.mark.parametrize("weight", [{}, {"weight": None}])
def test_task_completion_without_an_explicit_weight_is_an_error(weight):
    with pytest.raises(JudgeConfigError, match="task_completion needs an explicit weight"):
        parse_judge_config({"metrics": [{"metric": "task_completion", **weight}]})
    with pytest.raises(JudgeConfigError, match="needs an explicit weight"):
        JudgeConfig(metrics=(MetricSelection(metric="task_completion"),))


def test_an_unknown_metric_is_an_error_that_lists_the_known_ones():
    with pytest.raises(JudgeConfigError) as refused:
        parse_judge_config({"metrics": [{"metric": "tool_routng", "weight": 1}]})
    (problem,) = refused.value.problems
    assert problem.startswith("metrics[0].metric: unknown metric 'tool_routng'; did you mean tool_routing?; known are")
    for name in DEFINITIONS:
        assert name in problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([], "must be an object"),
        ({"metric": []}, "metric: unknown key; did you mean metrics?"),
        ({"metrics": "tool_routing"}, "metrics: must be a list"),
        ({"metrics": ["tool_routing"]}, "metrics[0]: must be an object"),
        ({"metrics": [{"weight": 1}]}, "metrics[0].metric: must be the id of a metric"),
        (
            {"metrics": [{"metric": "tool_routing", "wieght": 1}]},
            "metrics[0].wieght: unknown key; did you mean weight?",
        ),
        ({"metrics": [{"metric": "tool_routing"}] * 2}, "metrics[1].metric: tool_routing is selected twice"),
        (
            {"metrics": [{"metric": "tool_routing", "weight": True}]},
            "metrics[0].weight: must be a number of at least 0",
        ),
        ({"metrics": [{"metric": "tool_routing", "weight": "1"}]}, "metrics[0].weight: must be a number of at least 0"),
        ({"metrics": [{"metric": "tool_routing", "weight": -1}]}, "metrics[0].weight: must be a number of at least 0"),
        ({"metrics": [{"metric": "tool_routing", "weight": math.nan}]}, "metrics[0].weight: must be a number"),
        ({"metrics": [{"metric": "tool_routing", "weight": math.inf}]}, "metrics[0].weight: must be a number"),
        ({"metrics": [{"metric": "tool_routing", "weight": 0}]}, "metrics: at least one weight must be above 0"),
        ({"pass_threshold": 100.5}, "pass_threshold: must be a number from 0 to 100"),
        ({"pass_threshold": -1}, "pass_threshold: must be a number from 0 to 100"),
        ({"pass_threshold": True}, "pass_threshold: must be a number from 0 to 100"),
        ({"pass_threshold": "75"}, "pass_threshold: must be a number from 0 to 100"),
        ({"pass_threshold": None}, "pass_threshold: must be a number from 0 to 100"),
        ({"model": 4}, "model: must be a name, or null"),
        ({"provider": " "}, "provider: must be a name, or null"),
    ],
)
def test_each_mistake_is_told_with_its_path(data, problem):
    with pytest.raises(JudgeConfigError) as refused:
        parse_judge_config(data)
    assert len(refused.value.problems) == 1
    assert refused.value.problems[0].startswith(problem)


def test_all_mistakes_are_told_at_once():
    data = {"metrics": [{"metric": "x"}, {"metric": "task_completion"}, 1], "pass_threshold": 101, "model": 1, "y": 2}
    with pytest.raises(JudgeConfigError) as refused:
        parse_judge_config(data)
    assert len(refused.value.problems) == 6


def test_model_and_provider_are_kept():
    config = parse_judge_config({"model": "m-2026-01-01", "provider": "p", "pass_threshold": 80})
    assert (config.model, config.provider, config.pass_threshold) == ("m-2026-01-01", "p", 80)


@given(
    st.dictionaries(st.sampled_from(list(DEFINITIONS)), st.floats(0, 1e6, allow_subnormal=False), min_size=1).filter(
        lambda weights: sum(weights.values()) > 0
    )
)
def test_weights_sum_to_one_and_keep_their_proportions(weights):
    chosen = tuple(MetricSelection(metric=name, weight=weight) for name, weight in weights.items())
    found = JudgeConfig(metrics=chosen).weights()
    assert math.fsum(found.values()) == pytest.approx(1.0)
    total = math.fsum(weights.values())
    for name, weight in weights.items():
        assert found[name] == pytest.approx(weight / total)
