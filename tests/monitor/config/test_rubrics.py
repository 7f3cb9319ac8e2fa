from __future__ import annotations

import pytest

from sidejudge.monitor.config import Config
from sidejudge.monitor.config.rubrics import cards, configured

SELECTED = [{"metric": "tool_routing", "weight": 1.0}, {"metric": "task_completion", "weight": 0.5}]


def test_a_judges_configuration_decides_what_agent_measures() -> None:
    change = {"judge_config": {"metrics": SELECTED, "pass_threshold": 60}, "min_coverage": 0.5}
    found = configured(Config.model_validate({"rubrics": {"agent": change}}))["agent"]
    assert {c.metric.id: round(c.weight, 3) for c in found.criteria} == {
        "tool_routing": 0.667,
        "task_completion": 0.333,
    }
    assert (found.pass_mark, found.min_coverage) == (60, 0.5)


def test_a_pass_mark_beside_it_wins() -> None:
    change = {"judge_config": {"pass_threshold": 60}, "pass_mark": 90.0}
    found = configured(Config.model_validate({"rubrics": {"agent": change}}))["agent"]
    assert found.pass_mark == 90


def test_all_nine_metrics_of_agent_have_a_card() -> None:
    of_agent = [card for card in cards() if card.rubric.id == "agent"]
    assert len(of_agent) == 9
    assert of_agent[-1].weight.startswith("none: it is opt-in")
    assert of_agent[0].weight == pytest.approx("0.15")
